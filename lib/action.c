/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/action.h"

#include <stdlib.h>

struct action *action_free(struct action *action)
{
    if (!action)
        return NULL;
    for (size_t i = 0; i < action->question.n_files; i++)
        free(action->question.files[i]);
    free(action->question.files);
    free(action->bytes);
    free(action);
    return NULL;
}

void action_queue_init(struct action_queue *queue)
{
    STAILQ_INIT(queue);
}

void action_queue_deinit(struct action_queue *queue)
{
    struct action *action;

    while ((action = action_take(queue)))
        action_free(action);
}

struct action *action_add(struct action_queue *queue, enum action_kind kind)
{
    struct action *action = calloc(1, sizeof *action);

    if (!action)
        return NULL;
    action->kind = kind;
    STAILQ_INSERT_TAIL(queue, action, link);
    return action;
}

struct action *action_take(struct action_queue *queue)
{
    struct action *action = STAILQ_FIRST(queue);

    if (action)
        STAILQ_REMOVE_HEAD(queue, link);
    return action;
}
