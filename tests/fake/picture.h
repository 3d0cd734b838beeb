/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What /proc shows of the process: the threads and their names, from which a
 * tool may guess whether it is suspended. Measured on CoreCLR 8.0.34, 9.0.23,
 * 10.0.15, 11.0.0 and NativeAOT 8.0.31, 10.0.12.
 */

#include <stdbool.h>

struct runtime;

/* Starts a detached thread on a small stack, all signals blocked. It has that name when this
 * returns; NULL leaves it the name of the thread that starts it. */
bool picture_start_thread(const char *name, void *(*function)(void *), void *argument);

/* A thread that does nothing for ever. */
void *picture_idle(void *unused);

/* The threads that are there before the server thread; with diagnostics on, 10 and 11 also have
 * mapped something whose name says so. */
void picture_show_early(const struct runtime *runtime, bool has_server);

/* The name of the server thread, NULL for none. */
const char *picture_server_name(const struct runtime *runtime);

/* The threads of a runtime that runs. */
void picture_show_running(const struct runtime *runtime);
