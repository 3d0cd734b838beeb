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

const char *action_kind_name(enum action_kind kind)
{
    switch (kind) {
    case ACTION_SEND:
        return "send";
    case ACTION_CLOSE:
        return "close";
    case ACTION_READ:
        return "read";
    case ACTION_ASK:
        return "ask";
    case ACTION_HOLD_PROCESS:
        return "hold process";
    case ACTION_RELEASE_PROCESS:
        return "release process";
    case ACTION_KILL:
        return "kill";
    case ACTION_MARK:
        return "mark";
    case ACTION_PAUSE:
        return "pause";
    case ACTION_UNPAUSE:
        return "unpause";
    }
    return "none";
}
