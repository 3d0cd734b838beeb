/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's end of the probe (probe/probe.h): its workers, each with a socket,
 * those that were given up and are not gone yet, and the end of all of them. What
 * they are asked is not known here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/moment.h"
#include "lib/util.h"

struct loop;
struct worker;
struct workers;

/* Given up and still there, since the kernel lets nobody end them: no more than so many. */
enum { WORKERS_ABANDONED_MAX = 8 };

struct workers_options {
    struct loop *loop;
    int channel; /* what probe_start gave; it is taken */
    /* The probe's parent is gone, and with it all workers: told once. */
    void (*lost)(void *context);
    void *context;
};

/* NULL when memory is out, or the loop can watch no more: the channel is closed then. */
struct workers *workers_new(const struct workers_options *options) MUST_CHECK;
/* All workers must have been freed. Closes the channel, and with that the probe ends. Returns NULL.
 */
struct workers *workers_free(struct workers *workers);

enum worker_kind {
    WORKER_LOOKS,
    WORKER_KILLS, /* the process of `pidfd`, once */
};

/*
 * Has one forked, and watches its socket: `ready` is called while it can be
 * read, which an end of the worker makes it, too. `pidfd` stays the caller's.
 * NULL when there can be none now.
 */
struct worker *worker_new(struct workers *workers, enum worker_kind kind, int pidfd,
                          void (*ready)(void *context), void *context) MUST_CHECK;

/* Its socket, without blocking; the worker keeps it. */
int worker_socket(const struct worker *worker);

/*
 * True when anything has happened with it since this was asked last, or it waits for a processor.
 * One that hangs waits in the kernel, and for one thing. False too when it cannot be seen.
 */
bool worker_moves(struct worker *worker);

/* Lets it end by itself. Returns NULL. */
struct worker *worker_free(struct worker *worker);

/* Kills it and waits for nothing. Returns NULL. */
struct worker *worker_abandon(struct worker *worker);

/* Likewise one that has hung up, or talks nonsense: people are told how it ended. Returns NULL. */
struct worker *worker_lose(struct worker *worker);

/* How many were abandoned and are still there. */
size_t workers_abandoned(const struct workers *workers);

/* Tells the parent what could not be told before. */
struct moment workers_next(const struct workers *workers);
void workers_run(struct workers *workers, struct moment now);
