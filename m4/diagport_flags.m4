# SPDX-License-Identifier: Apache-2.0

# DIAGPORT_PROBE_FLAGS(VARIABLE, KIND, FLAGS)
#
# Appends to VARIABLE each of FLAGS that works. KIND is "compile" or "link".
# The user's own CFLAGS and LDFLAGS are left alone. A -Wno- flag is tried by its
# positive form: compilers report an unknown negative one only beside another
# warning.
AC_DEFUN([DIAGPORT_PROBE_FLAGS], [
  for diagport_flag in m4_normalize([$3]); do
    AS_VAR_PUSHDEF([diagport_cache], [diagport_cv_$2_$diagport_flag])
    AC_CACHE_CHECK([whether the compiler takes $diagport_flag], [diagport_cache], [
      diagport_saved_CFLAGS=$CFLAGS
      diagport_saved_LDFLAGS=$LDFLAGS
      CFLAGS="$CFLAGS -Werror"
      AS_CASE([$diagport_flag],
        [-Wno-*], [CFLAGS="$CFLAGS -W${diagport_flag@%:@-Wno-}"],
        [CFLAGS="$CFLAGS $diagport_flag"])
      AS_IF([test "x$2" = xlink], [
        LDFLAGS="$LDFLAGS $diagport_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
          [AS_VAR_SET([diagport_cache], [yes])], [AS_VAR_SET([diagport_cache], [no])])
      ], [
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
          [AS_VAR_SET([diagport_cache], [yes])], [AS_VAR_SET([diagport_cache], [no])])
      ])
      CFLAGS=$diagport_saved_CFLAGS
      LDFLAGS=$diagport_saved_LDFLAGS
    ])
    AS_VAR_IF([diagport_cache], [yes], [$1="$$1 $diagport_flag"])
    AS_VAR_POPDEF([diagport_cache])
  done
])

# DIAGPORT_OPTION(NAME, VARIABLE, DEFAULT, HELP)
#
# An --enable-NAME switch; VARIABLE is yes or no.
AC_DEFUN([DIAGPORT_OPTION], [
  AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$4 (default: $3)])],
    [AS_CASE([$enableval], [yes|no], [$2=$enableval],
      [AC_MSG_ERROR([--enable-$1 takes yes or no, not $enableval])])],
    [$2=$3])
])
