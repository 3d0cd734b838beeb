/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One accepted connection to a diagnostic port: a descriptor that moves bytes
 * between its peer and the core. What they mean is the core's business.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/tree.h"
#include "lib/util.h"

struct broker;
struct loop;
struct peer;

TAILQ_HEAD(peer_list, peer);

struct peer_owner {
    struct broker *broker;
    struct loop *loop;
    /* Carries out what the core wants done; after every call into it. */
    void (*settle)(void *context);
    void *context;
    struct peer_list all;
    struct peer *reading;   /* the one whose turn it is; NULL once it was closed */
    struct peer_list asked; /* those that the core wants read before anything else */
};

void peer_owner_init(struct peer_owner *owner, struct broker *broker, struct loop *loop,
                     void (*settle)(void *context), void *context);

/* Closes all of them, which hangs up on those that nobody keeps. The core must not be called about
 * them any more. */
void peer_owner_deinit(struct peer_owner *owner);

/*
 * Takes an accepted, non-blocking descriptor and announces it to the core under
 * that listener's number. Closes it when that is not possible.
 */
void peer_open(struct peer_owner *owner, int fd, uint32_t listener);

/* The same with one that was kept for us under that number. False when nobody knows what to do
 * with it: it stays the caller's. */
bool peer_adopt(struct peer_owner *owner, int fd, uint32_t listener, uint64_t kept) MUST_CHECK;

/* Somebody else has a copy of its descriptor. */
void peer_be_kept(struct peer *peer);

/* Notes that the core wants it read. */
void peer_ask_read(struct peer *peer);

/* Reads once from one of those; false when there is none. What the core wants done about it has to
 * be carried out before the next call. */
bool peer_read_asked(struct peer_owner *owner) MUST_CHECK;

/* Writes a message in one piece, or hangs up so that its end is reported. */
void peer_send(struct peer *peer, const uint8_t *bytes, size_t length);

/* Closes it for good; the core knows. */
void peer_close(struct peer *peer);

/* Its descriptor, for asking the kernel who it is. */
int peer_descriptor(const struct peer *peer);
