/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The workers of the probe. Each has one end of a socket pair, and ends when the
 * other is closed. What it is asked it takes for a question of a daemon that may
 * have been taken over: it answers what it can be asked, and nothing else.
 */

/* Answers questions (lib/seam.h), one after the other. */
_Noreturn void worker_look(int socket);

/* Kills the process of the handle and writes the errno of that, 0 when it is done, as an int. */
_Noreturn void worker_kill(int socket, int pidfd);
