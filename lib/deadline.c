/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/deadline.h"

static int compare(const struct deadline *a, const struct deadline *b)
{
    if (a->at.us != b->at.us)
        return a->at.us < b->at.us ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return 0;
}

TREE_GENERATE(deadline_tree, deadline, link, compare)

void deadline_queue_init(struct deadline_queue *queue)
{
    RB_INIT(&queue->tree);
    queue->n_set = 0;
    queue->n_prepared = 0;
}

void deadline_init(struct deadline *deadline, int kind)
{
    *deadline = (struct deadline){.at = MOMENT_NEVER, .kind = kind};
}

void deadline_stop(struct deadline_queue *queue, struct deadline *deadline)
{
    if (moment_is_never(deadline->at))
        return;
    RB_REMOVE(deadline_tree, &queue->tree, deadline);
    deadline->at = MOMENT_NEVER;
    queue->n_prepared -= deadline->is_prepared;
    deadline->is_prepared = false;
}

void deadline_set(struct deadline_queue *queue, struct deadline *deadline, struct moment at)
{
    if (deadline->at.us == at.us)
        return;
    deadline_stop(queue, deadline);
    if (moment_is_never(at))
        return;
    deadline->at = at;
    deadline->order = queue->n_set++;
    RB_INSERT(deadline_tree, &queue->tree, deadline);
}

/* The earliest deadline is looked at on every turn of the loop, so this has to be cheap: it is the
 * leftmost node of a balanced tree. */
static struct deadline *earliest(const struct deadline_queue *queue)
{
    struct deadline *deadline = RB_ROOT(&queue->tree);

    while (deadline && RB_LEFT(deadline, link))
        deadline = RB_LEFT(deadline, link);
    return deadline;
}

struct moment deadline_queue_next(const struct deadline_queue *queue)
{
    const struct deadline *deadline = earliest(queue);

    return deadline ? deadline->at : MOMENT_NEVER;
}

static struct deadline *if_due(struct deadline *deadline, struct moment now)
{
    return deadline && moment_is_due(deadline->at, now) ? deadline : NULL;
}

struct deadline *deadline_queue_due(const struct deadline_queue *queue, struct moment now)
{
    return if_due(earliest(queue), now);
}

struct deadline *deadline_queue_due_after(struct deadline *deadline, struct moment now)
{
    return if_due(RB_NEXT(deadline_tree, NULL, deadline), now);
}

void deadline_prepare(struct deadline_queue *queue, struct deadline *deadline)
{
    queue->n_prepared += !deadline->is_prepared;
    deadline->is_prepared = true;
}

/* Those that are not are few: they were set when the ones before them had been prepared. */
struct deadline *deadline_queue_take_prepared(struct deadline_queue *queue, struct moment now)
{
    struct deadline *deadline = queue->n_prepared > 0 ? deadline_queue_due(queue, now) : NULL;

    while (deadline && !deadline->is_prepared)
        deadline = deadline_queue_due_after(deadline, now);
    if (deadline)
        deadline_stop(queue, deadline);
    return deadline;
}
