/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/preflight.h"

#include <stddef.h>

struct row {
    const char *name;
    const char *why;
    const char *remedy;
};

/* One line of docs/CONTROL.md each, which is tested against it. */
static const struct row rows[PREFLIGHT_COUNT] = {
    [PREFLIGHT_NO_PLATFORM] = {"no-platform", "is named by a platform that is not known",
                               "Run diagportd with the right to look at processes of other users, "
                               "or write the path without a template."},
    [PREFLIGHT_FILE_MISSING] = {"file-missing", "does not exist as the process sees it",
                                "Put it where the process looks, in its container too, or correct "
                                "the path."},
    [PREFLIGHT_PATH_BLOCKED] = {"path-blocked", "leads through something that is not a folder",
                                "Correct the path."},
    [PREFLIGHT_LINK_LOOP] = {"link-loop", "leads through too many links",
                             "Name the file itself, or make its links end somewhere."},
    [PREFLIGHT_LOOK_REFUSED] = {"look-refused", "may not be looked at",
                                "Run diagportd with the right to look at processes of other "
                                "users."},
    [PREFLIGHT_LOOK_TIMEOUT] = {"look-timeout", "took too long to look at",
                                "Put it on a file system that answers; the process would wait for "
                                "it, too."},
    [PREFLIGHT_LOOK_FAILED] = {"look-failed", "could not be looked at",
                               "Look at the file as root; the journal may say more."},
    [PREFLIGHT_FOLDER_CLOSED] = {"folder-closed", "is in a folder that the process may not enter",
                                 "Let the user of the process enter each folder on the way."},
    [PREFLIGHT_FILE_CLOSED] = {"file-closed", "may not be read by the process",
                               "Let the user of the process read the file."},
    [PREFLIGHT_IS_FOLDER] = {"is-folder", "is a folder", "Name the file in it."},
    [PREFLIGHT_NOT_REGULAR] = {"not-regular", "is not a regular file",
                               "Name a file, not a device, pipe or socket."},
    [PREFLIGHT_TOO_LARGE] = {"too-large", "is larger than 256 MiB",
                             "Check that it is the right file; nothing of that size is taken."},
    [PREFLIGHT_NO_EXEC] = {"no-exec", "is on a file system that is mounted noexec",
                           "Put it on a file system from which code may be run."},
    [PREFLIGHT_NOT_ELF] = {"not-elf", "is not a shared library",
                           "Name the native library of the profiler (a .so file)."},
    [PREFLIGHT_DAMAGED] = {"damaged", "is cut or damaged", "Copy or install it again."},
    [PREFLIGHT_WRONG_CLASS] = {"wrong-class", "is not of the word size of the process",
                               "Name the build for the architecture of the process."},
    [PREFLIGHT_WRONG_BYTE_ORDER] = {"wrong-byte-order", "is not of the byte order of the process",
                                    "Name the build for the architecture of the process."},
    [PREFLIGHT_WRONG_MACHINE] = {"wrong-machine", "was built for another architecture",
                                 "Name the build for the architecture of the process."},
    [PREFLIGHT_NOT_A_LIBRARY] = {"not-a-library", "is a program and no library",
                                 "Name the shared library of the profiler."},
    [PREFLIGHT_WRONG_LIBC] = {"wrong-libc", "was built for another C library (glibc, musl)",
                              "Name the build for the C library of the process: linux-musl for "
                              "Alpine, linux for others."},
    [PREFLIGHT_NO_ENTRY_POINT] = {"no-entry-point", "does not export DllGetClassObject",
                                  "Name the library that is the profiler, not one that it uses."},
    [PREFLIGHT_NEEDS_LIBRARY] = {"needs-library", "needs a library that is not there",
                                 "Install it where the process looks, in its container too."},
    [PREFLIGHT_NEEDS_VERSION] = {"needs-version", "needs a version that a library does not have",
                                 "Use a build for older systems, or a newer system under the "
                                 "process."},
    [PREFLIGHT_NEEDS_SYMBOL] = {"needs-symbol", "needs a symbol that no library has",
                                "Use a build that fits the libraries of the process; with this one "
                                "it would end."},
    [PREFLIGHT_NOT_MANAGED] = {"not-managed", "is not a .NET assembly",
                               "Name the assembly of the hook (a .dll file)."},
    [PREFLIGHT_NO_STARTUP_HOOK] = {"no-startup-hook",
                                   "has no type StartupHook outside of any namespace",
                                   "Name the assembly with the hook, not one that it uses."},
    [PREFLIGHT_NO_INITIALIZE] = {"no-initialize",
                                 "has no method static void Initialize() in its type StartupHook",
                                 "Give the hook that method, without parameters."},
    [PREFLIGHT_REPLACED] = {"replaced", "was replaced or changed after it was checked",
                            "Nobody checked what the process loads: look at the file, and start "
                            "the process anew if it is not the right one."},
    [PREFLIGHT_REMOVED] = {"removed", "was removed after it was checked",
                           "Put it back and start the process anew; without it nothing is "
                           "loaded, and a missing hook ends the process."},
};

const char *preflight_name(enum preflight code)
{
    return rows[code].name;
}

const char *preflight_why(enum preflight code)
{
    return rows[code].why;
}

const char *preflight_remedy(enum preflight code)
{
    return rows[code].remedy;
}
