/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The life of the main thread: starting the server, the pause, what the
 * execution engine does after it, and the first managed code.
 */

#include <stdbool.h>

struct runtime;

/* From the first instruction to the start of managed code, whose report it writes. False, with a
 * line on standard error, when the runtime cannot be played. */
bool startup_run(struct runtime *runtime);
