/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Suspended or running: no command tells, but the names of a process's threads
 * do, as a hint that is good against mistakes and not against lies.
 *
 * Measured on CoreCLR 8.0.0 to 11.0.0 and NativeAOT 8 and 10: a suspended
 * CoreCLR has its main thread, ".NET EventPipe" and (not on 11)
 * ".NET SynchManag", and no other; ".NET Finalizer", ".NET DebugPipe" or
 * ".NET Debugger" are there 2 to 16 ms after Resume. NativeAOT shows
 * ".NET SigHandler" when it runs.
 */

#include <stdint.h>

#include "lib/util.h"

struct facts;

enum picture {
    PICTURE_UNKNOWN, /* could not be read, or neither of the two */
    PICTURE_SUSPENDED,
    PICTURE_RUNNING,
};

/* `pid` is the id of the main thread. */
enum picture picture_of(const struct facts *facts, int32_t pid);
