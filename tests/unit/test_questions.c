/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/questions.h"
#include "lib/action.h"
#include "tests/unit/unit_memory.h"

static void put(struct questions *questions, uint32_t uid, uint64_t id)
{
    struct action *action = calloc(1, sizeof *action);

    ck_assert_ptr_nonnull(action);
    action->kind = ACTION_ASK;
    action->question.uid = uid;
    action->question.id = id;
    ck_assert(questions_put(questions, action));
}

/* 0 when there is none. */
static uint64_t take(struct questions *questions)
{
    struct action *action = questions_take(questions);
    uint64_t id = action ? action->question.id : 0;

    action_free(action);
    return id;
}

START_TEST(those_of_one_user_come_in_order)
{
    struct questions *questions = questions_new();

    ck_assert(questions_is_empty(questions));
    ck_assert_uint_eq(take(questions), 0);
    for (uint64_t id = 1; id <= 5; id++)
        put(questions, 1000, id);
    for (uint64_t id = 1; id <= 5; id++) {
        ck_assert(!questions_is_empty(questions));
        ck_assert_uint_eq(take(questions), id);
    }
    ck_assert(questions_is_empty(questions));
    questions_free(questions);
}
END_TEST

START_TEST(users_take_turns)
{
    static const uint64_t wanted[] = {1, 201, 301, 2, 302, 3, 401, 4};
    struct questions *questions = questions_new();

    for (uint64_t id = 1; id <= 100; id++)
        put(questions, 1000, id);
    put(questions, 2000, 201);
    put(questions, 3000, 301);
    put(questions, 3000, 302);
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        /* Who comes while others wait is the last one of this round. */
        if (wanted[i] == 3)
            put(questions, 4000, 401);
        ck_assert_uint_eq(take(questions), wanted[i]);
    }
    questions_free(questions);
}
END_TEST

START_TEST(whoever_is_left_is_freed)
{
    struct questions *questions = questions_new();

    for (uint32_t uid = 0; uid < 10; uid++)
        put(questions, uid, uid + 1);
    questions_free(questions);
    questions_free(NULL);
}
END_TEST

static int put_two(void *context)
{
    struct questions *questions = questions_new();
    int error = questions ? 0 : -ENOMEM;

    (void)context;
    for (uint32_t uid = 0; error == 0 && uid < 2; uid++) {
        struct action *action = calloc(1, sizeof *action);

        if (!action) {
            error = -ENOMEM;
            break;
        }
        action->kind = ACTION_ASK;
        action->question.uid = uid;
        error = questions_put(questions, action) ? 0 : -ENOMEM;
    }
    questions_free(questions);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    ck_assert_uint_ge(unit_memory_exhaust(put_two, NULL, -ENOMEM), 5);
}
END_TEST

UNIT_TESTS(those_of_one_user_come_in_order, users_take_turns, whoever_is_left_is_freed,
           every_allocation_may_fail);
