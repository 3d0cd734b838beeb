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
#include <stdint.h>

#include "lib/moment.h"
#include "lib/tree.h"
#include "lib/util.h"

struct deadline {
    RB_ENTRY(deadline) link;
    struct moment at; /* MOMENT_NEVER: not in the queue */
    uint64_t order;
    int kind; /* the owner's, to tell its deadlines apart */
};

struct deadline_queue {
    RB_HEAD(deadline_tree, deadline) tree;
    uint64_t n_set;
};

void deadline_queue_init(struct deadline_queue *queue);

void deadline_init(struct deadline *deadline, int kind);

/* Sets, moves, or, with MOMENT_NEVER, stops. */
void deadline_set(struct deadline_queue *queue, struct deadline *deadline, struct moment at);

void deadline_stop(struct deadline_queue *queue, struct deadline *deadline);

/* When the next one is due; MOMENT_NEVER when none is set. */
struct moment deadline_queue_next(const struct deadline_queue *queue);

/* Takes out the earliest deadline that is due; NULL when none is. */
struct deadline *deadline_queue_take_due(struct deadline_queue *queue, struct moment now);
