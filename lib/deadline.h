/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A queue of deadlines: set, stop, which is next, which are due.
 *
 * A deadline is embedded in whatever waits; its owner finds itself again by
 * its kind and container_of. Deadlines of the same moment come due in the order
 * in which they were set.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/tree.h"
#include "lib/util.h"

struct deadline {
    RB_ENTRY(deadline) link;
    struct moment at; /* MOMENT_NEVER: not in the queue */
    uint64_t order;
    int kind; /* the owner's, to tell its deadlines apart */
    bool is_prepared;
};

struct deadline_queue {
    RB_HEAD(deadline_tree, deadline) tree;
    uint64_t n_set;
    size_t n_prepared;
};

void deadline_queue_init(struct deadline_queue *queue);

void deadline_init(struct deadline *deadline, int kind);

/* Sets, moves, or, with MOMENT_NEVER, stops. */
void deadline_set(struct deadline_queue *queue, struct deadline *deadline, struct moment at);

void deadline_stop(struct deadline_queue *queue, struct deadline *deadline);

/* When the next one is due; MOMENT_NEVER when none is set. */
struct moment deadline_queue_next(const struct deadline_queue *queue);

/* The earliest one that is due, and the one after another one; NULL when there is none. They stay
 * in the queue. */
struct deadline *deadline_queue_due(const struct deadline_queue *queue, struct moment now);
struct deadline *deadline_queue_due_after(struct deadline *deadline, struct moment now);

/* What has to be done before it is acted on was done; that ends when it is set anew or stopped. */
void deadline_prepare(struct deadline_queue *queue, struct deadline *deadline);

/* Takes out the earliest one that is due and prepared; NULL when none is. */
struct deadline *deadline_queue_take_prepared(struct deadline_queue *queue, struct moment now);
