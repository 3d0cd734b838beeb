/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Carries out what the core wants done, in the order in which it wants it, and
 * brings back the answers to its questions. Whoever calls the core calls
 * apply_settle afterwards.
 */

#include <stdbool.h>

#include "daemon/peer.h"
#include "lib/util.h"

struct apply;
struct broker;
struct keeper;
struct looks;
struct loop;
struct store;
struct workers;

struct apply_options {
    struct broker *broker;
    struct loop *loop;
    struct workers *workers; /* of the probe; ours to use */
    struct store *store;     /* NULL when no records can be kept */
    struct keeper *keeper;   /* of connections */
    bool may_kill;           /* there can be workers that kill */
    /* The core wants nobody accepted, or wants it again. */
    void (*pause)(void *context, bool is_paused);
    void *context;
};

/* NULL when memory is out. */
struct apply *apply_new(const struct apply_options *options) MUST_CHECK;

/* Returns NULL. */
struct apply *apply_free(struct apply *apply);

/* For opening accepted connections. */
struct peer_owner *apply_peers(struct apply *apply);

/* After every call into the core: its actions, then what it wants read, until there is nothing left
 * but questions. */
void apply_settle(struct apply *apply);

/* For looks that others want. */
struct looks *apply_looks(struct apply *apply);

/* When to call apply_run at the latest. */
struct moment apply_next(const struct apply *apply);
/* Has processes looked at and killed; what comes of it are events of the loop. */
void apply_run(struct apply *apply);
