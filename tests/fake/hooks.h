/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Startup hooks: the queue of the commands, what running one comes to, and the
 * death of a program whose hook fails. Measured on CoreCLR 8.0.34 to 11.0.0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runtime;

struct hooks {
    char **queue; /* one text for each command, last sent first */
    size_t n_queue;
    char **ran; /* the paths, in the order in which they ran */
    size_t n_ran;
};

/* ApplyStartupHook before the start: keeps the text and looks at nothing. With the lock held. */
uint32_t hooks_store(struct runtime *runtime, const char *paths);

/* Runs what is queued, then DOTNET_STARTUP_HOOKS. Ends the process by SIGABRT when one fails. */
void hooks_run_stored(struct runtime *runtime);

/* ApplyStartupHook after the start, with the lock held: the result, or the end of the process. */
uint32_t hooks_run_now(struct runtime *runtime, const char *paths);
