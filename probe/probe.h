/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * diagport-probe: what looks at other processes and their files in the daemon's
 * stead, where that takes a right or may block. It is forked by the daemon
 * before that has read or made anything, so nothing of the daemon's is in it; a
 * fork and no program of its own, so that both ends always speak the same.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

struct rights_user;

/* Capabilities by which workers look, and kill; bits as in host/rights.h. */
uint64_t probe_rights_to_look(void);
uint64_t probe_rights_to_kill(void);

/*
 * Forks the probe's parent; it and its workers will be `user` (NULL: stay who
 * they are), and keep what they need of the capabilities that there are. Returns
 * the daemon's end of the channel to it (channel.h), or a negative errno. The
 * other side does not return, and ends with the daemon. `arguments` are those of
 * main(), where the name of the process is shown.
 */
int probe_start(const struct rights_user *user, int n_arguments, char **arguments) MUST_CHECK;
