/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/questions.h"

#include <stdlib.h>

/* A user with questions, or of whom one is being looked at; there is none without. */
struct asker {
    RB_ENTRY(asker) link;
    TAILQ_ENTRY(asker) in_turn;
    uint32_t uid;
    bool is_served;
    TAILQ_HEAD(, questions_entry) queue;
};

struct questions {
    RB_HEAD(asker_tree, asker) askers;
    TAILQ_HEAD(, asker) turns; /* those who are not served and have something; the next one first */
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
    struct asker *asker, *following;

    if (!questions)
        return NULL;
    RB_FOREACH_SAFE(asker, asker_tree, &questions->askers, following) {
        RB_REMOVE(asker_tree, &questions->askers, asker);
        free(asker);
    }
    free(questions);
    return NULL;
}

static struct asker *find(struct questions *questions, uint32_t uid)
{
    struct asker key = {.uid = uid};

    return RB_FIND(asker_tree, &questions->askers, &key);
}

static struct asker *get(struct questions *questions, uint32_t uid)
{
    struct asker *asker = find(questions, uid);

    if (asker)
        return asker;
    asker = calloc(1, sizeof *asker);
    if (!asker)
        return NULL;
    asker->uid = uid;
    TAILQ_INIT(&asker->queue);
    RB_INSERT(asker_tree, &questions->askers, asker);
    return asker;
}

bool questions_put(struct questions *questions, struct questions_entry *entry)
{
    struct asker *asker = get(questions, entry->uid);

    if (!asker)
        return false;
    if (!asker->is_served && TAILQ_EMPTY(&asker->queue))
        TAILQ_INSERT_TAIL(&questions->turns, asker, in_turn);
    TAILQ_INSERT_TAIL(&asker->queue, entry, link);
    return true;
}

/* NULL when there is none. */
static struct questions_entry *take_first(struct asker *asker)
{
    struct questions_entry *entry = TAILQ_FIRST(&asker->queue);

    if (entry)
        TAILQ_REMOVE(&asker->queue, entry, link);
    return entry;
}

struct questions_entry *questions_take(struct questions *questions)
{
    struct asker *asker = TAILQ_FIRST(&questions->turns);

    if (!asker)
        return NULL;
    TAILQ_REMOVE(&questions->turns, asker, in_turn);
    asker->is_served = true;
    return take_first(asker);
}

static void forget(struct questions *questions, struct asker *asker)
{
    RB_REMOVE(asker_tree, &questions->askers, asker);
    free(asker);
}

void questions_done(struct questions *questions, uint32_t uid)
{
    struct asker *asker = find(questions, uid);

    if (!asker)
        return;
    asker->is_served = false;
    if (TAILQ_EMPTY(&asker->queue))
        forget(questions, asker);
    else
        TAILQ_INSERT_TAIL(&questions->turns, asker, in_turn);
}

static struct questions_entry *take_of(struct questions *questions, struct asker *asker)
{
    struct questions_entry *entry = take_first(asker);

    if (!asker->is_served && TAILQ_EMPTY(&asker->queue)) {
        TAILQ_REMOVE(&questions->turns, asker, in_turn);
        forget(questions, asker);
    }
    return entry;
}

struct questions_entry *questions_take_of(struct questions *questions, uint32_t uid)
{
    struct asker *asker = find(questions, uid);

    return asker && !TAILQ_EMPTY(&asker->queue) ? take_of(questions, asker) : NULL;
}

struct questions_entry *questions_take_any(struct questions *questions)
{
    struct asker *asker;

    RB_FOREACH(asker, asker_tree, &questions->askers) {
        if (!TAILQ_EMPTY(&asker->queue))
            return take_of(questions, asker);
    }
    return NULL;
}

bool questions_are_there(const struct questions *questions)
{
    return !TAILQ_EMPTY(&questions->turns);
}
