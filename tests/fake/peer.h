/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The process at the other end of a connection, and holding it still for a moment. */

#include <sys/types.h>

struct fault;

/*
 * Stops the process that listens at the other end of `fd`, or the one that the
 * fault names, and waits until all of its threads stand: until it is continued
 * it can look at nothing. Returns its pid, or 0 when nothing was stopped: the
 * fault names 0, or it may not be stopped.
 */
pid_t peer_stop(int fd, const struct fault *fault);
