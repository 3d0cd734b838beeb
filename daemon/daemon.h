/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon: everything that lives as long as the process, and one turn of its
 * loop. A turn is: wait, read what can be read, act on deadlines, tell people.
 */

#include <stdbool.h>

#include "lib/util.h"

struct daemon;
struct rights_user;

struct daemon_options {
    const char *config; /* the main policy file; NULL: the built-in policy of `--user` */
    const char *state;  /* the folder for records */
    bool is_user;
    int probe;                      /* what probe_start gave; it is taken */
    const struct rights_user *user; /* to become once the sockets are there; NULL: nobody else */
};

/*
 * Starts: policy, records, sockets, control; then it gives up every right. NULL when it cannot,
 * which was logged: another daemon is there, or no socket could be opened at all. A bad policy is
 * no reason.
 */
struct daemon *daemon_new(const struct daemon_options *options) MUST_CHECK;

/* Runs until it is told to stop, and stops in good order. False when it was not told to, but has
 * lost what it cannot run without. */
bool daemon_run(struct daemon *daemon);

/* Returns NULL. */
struct daemon *daemon_free(struct daemon *daemon);
