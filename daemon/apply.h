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
struct loop;
struct store;

struct apply_options {
    struct broker *broker;
    struct loop *loop;
    struct store *store; /* NULL when no records can be kept */
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

/* Answers questions of the core, for some milliseconds; those of one user take turns with those of
 * others. */
void apply_look(struct apply *apply);

/* True when apply_look has something to do. */
bool apply_has_questions(const struct apply *apply);
