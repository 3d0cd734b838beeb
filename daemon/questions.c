/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/questions.h"

#include <stdlib.h>

#include "lib/action.h"
#include "lib/tree.h"

/* A user with questions; there is none without. */
struct asker {
    RB_ENTRY(asker) link;
    TAILQ_ENTRY(asker) in_turn;
    uint32_t uid;
    struct action_queue queue;
};

struct questions {
    RB_HEAD(asker_tree, asker) askers;
    TAILQ_HEAD(, asker) turns; /* the next one first */
};

static int compare(const struct asker *a, const struct asker *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

TREE_GENERATE(asker_tree, asker, link, compare)

struct questions *questions_new(void)
{
    struct questions *questions = calloc(1, sizeof *questions);

    if (!questions)
        return NULL;
    RB_INIT(&questions->askers);
    TAILQ_INIT(&questions->turns);
    return questions;
}

struct questions *questions_free(struct questions *questions)
{
    struct action *action;

    while (questions && (action = questions_take(questions)))
        action_free(action);
    free(questions);
    return NULL;
}

static struct asker *get(struct questions *questions, uint32_t uid)
{
    struct asker key = {.uid = uid};
    struct asker *asker = RB_FIND(asker_tree, &questions->askers, &key);

    if (asker)
        return asker;
    asker = calloc(1, sizeof *asker);
    if (!asker)
        return NULL;
    asker->uid = uid;
    action_queue_init(&asker->queue);
    RB_INSERT(asker_tree, &questions->askers, asker);
    TAILQ_INSERT_TAIL(&questions->turns, asker, in_turn);
    return asker;
}

bool questions_put(struct questions *questions, struct action *action)
{
    struct asker *asker = get(questions, action->question.uid);

    if (!asker) {
        action_free(action);
        return false;
    }
    STAILQ_INSERT_TAIL(&asker->queue, action, link);
    return true;
}

struct action *questions_take(struct questions *questions)
{
    struct asker *asker = TAILQ_FIRST(&questions->turns);
    struct action *action;

    if (!asker)
        return NULL;
    action = action_take(&asker->queue);
    TAILQ_REMOVE(&questions->turns, asker, in_turn);
    if (STAILQ_EMPTY(&asker->queue)) {
        RB_REMOVE(asker_tree, &questions->askers, asker);
        free(asker);
    } else {
        TAILQ_INSERT_TAIL(&questions->turns, asker, in_turn);
    }
    return action;
}

bool questions_is_empty(const struct questions *questions)
{
    return TAILQ_EMPTY(&questions->turns);
}
