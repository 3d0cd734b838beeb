/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The diagnostics server: one thread that takes a connection, reads one
 * command, has it carried out, answers and closes, and the faults that come
 * in between.
 */

struct runtime;

/* The thread; never returns. */
void *server_run(void *runtime);
