/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What can be wrong with the file of a hook or profiler before it is loaded:
 * the one table of codes, what they mean and what to do about each. A code
 * is for programs and never changes; the texts are for people.
 */

#include "lib/util.h"

enum preflight {
    PREFLIGHT_GOOD, /* nothing is known against it */
    PREFLIGHT_NO_PLATFORM,
    PREFLIGHT_FILE_MISSING,
    PREFLIGHT_PATH_BLOCKED,
    PREFLIGHT_LINK_LOOP,
    PREFLIGHT_LOOK_REFUSED,
    PREFLIGHT_LOOK_TIMEOUT,
    PREFLIGHT_LOOK_FAILED,
    PREFLIGHT_FOLDER_CLOSED,
    PREFLIGHT_FILE_CLOSED,
    PREFLIGHT_IS_FOLDER,
    PREFLIGHT_NOT_REGULAR,
    PREFLIGHT_TOO_LARGE,
    PREFLIGHT_NO_EXEC,
    PREFLIGHT_NOT_ELF,
    PREFLIGHT_DAMAGED,
    PREFLIGHT_WRONG_CLASS,
    PREFLIGHT_WRONG_BYTE_ORDER,
    PREFLIGHT_WRONG_MACHINE,
    PREFLIGHT_NOT_A_LIBRARY,
    PREFLIGHT_WRONG_LIBC,
    PREFLIGHT_NO_ENTRY_POINT,
    PREFLIGHT_NEEDS_LIBRARY,
    PREFLIGHT_NEEDS_VERSION,
    PREFLIGHT_NEEDS_SYMBOL,
    PREFLIGHT_NOT_MANAGED,
    PREFLIGHT_NO_STARTUP_HOOK,
    PREFLIGHT_NO_INITIALIZE,
    PREFLIGHT_REPLACED, /* found right before Resume, as the next one: the step is done by then */
    PREFLIGHT_REMOVED,
};

enum { PREFLIGHT_COUNT = PREFLIGHT_REMOVED + 1 };

/* Its name, such as "file-missing"; NULL for PREFLIGHT_GOOD, as of the other two. */
const char *preflight_name(enum preflight code);

/* What is wrong, as the end of a sentence that starts with the path. */
const char *preflight_why(enum preflight code);

/* What to do about it, as a sentence. */
const char *preflight_remedy(enum preflight code);
