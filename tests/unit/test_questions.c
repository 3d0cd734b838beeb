/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>

#include "daemon/questions.h"
#include "tests/unit/unit_memory.h"

struct question {
    struct questions_entry entry;
    unsigned id;
};

enum { QUESTIONS_MAX = 200 };

static struct question asked[QUESTIONS_MAX];
static unsigned n_asked;

static void put(struct questions *questions, uint32_t uid, unsigned id)
{
    struct question *question = &asked[n_asked++];

    *question = (struct question){.entry.uid = uid, .id = id};
    ck_assert(questions_put(questions, &question->entry));
}

static unsigned id_of(struct questions_entry *entry)
{
    return entry ? container_of(entry, struct question, entry)->id : 0;
}

/* 0 when there is none. */
static unsigned take(struct questions *questions)
{
    return id_of(questions_take(questions));
}

static unsigned take_and_be_done(struct questions *questions)
{
    struct questions_entry *entry = questions_take(questions);

    if (entry)
        questions_done(questions, entry->uid);
    return id_of(entry);
}

START_TEST(those_of_one_user_come_in_order)
{
    struct questions *questions = questions_new();

    ck_assert(!questions_are_there(questions));
    ck_assert_uint_eq(take(questions), 0);
    for (unsigned id = 1; id <= 5; id++)
        put(questions, 1000, id);
    for (unsigned id = 1; id <= 5; id++) {
        ck_assert(questions_are_there(questions));
        ck_assert_uint_eq(take_and_be_done(questions), id);
    }
    ck_assert(!questions_are_there(questions));
    questions_free(questions);
}
END_TEST

START_TEST(users_take_turns)
{
    static const unsigned wanted[] = {1, 201, 301, 2, 302, 3, 401, 4};
    struct questions *questions = questions_new();

    for (unsigned id = 1; id <= 100; id++)
        put(questions, 1000, id);
    put(questions, 2000, 201);
    put(questions, 3000, 301);
    put(questions, 3000, 302);
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        /* Who comes while others wait is the last one of this round. */
        if (wanted[i] == 3)
            put(questions, 4000, 401);
        ck_assert_uint_eq(take_and_be_done(questions), wanted[i]);
    }
    questions_free(questions);
}
END_TEST

START_TEST(one_at_a_time_of_each_user)
{
    struct questions *questions = questions_new();

    put(questions, 1000, 1);
    put(questions, 1000, 2);
    put(questions, 2000, 3);
    ck_assert_uint_eq(take(questions), 1);
    ck_assert_uint_eq(take(questions), 3);
    ck_assert(!questions_are_there(questions));
    ck_assert_uint_eq(take(questions), 0);
    put(questions, 1000, 4);
    put(questions, 2000, 5);
    ck_assert(!questions_are_there(questions));
    questions_done(questions, 2000);
    ck_assert_uint_eq(take(questions), 5);
    questions_done(questions, 1000);
    ck_assert_uint_eq(take(questions), 2);
    questions_done(questions, 2000);
    questions_done(questions, 1000);
    ck_assert_uint_eq(take(questions), 4);
    questions_done(questions, 1000);
    ck_assert(!questions_are_there(questions));
    questions_free(questions);
}
END_TEST

START_TEST(those_of_one_user_can_be_taken_out)
{
    struct questions *questions = questions_new();

    put(questions, 1000, 1);
    put(questions, 1000, 2);
    put(questions, 2000, 3);
    put(questions, 3000, 4);
    put(questions, 3000, 5);
    ck_assert_uint_eq(id_of(questions_take_of(questions, 4000)), 0);
    /* While one of his is looked at, and while none is. */
    ck_assert_uint_eq(take(questions), 1);
    ck_assert_uint_eq(id_of(questions_take_of(questions, 1000)), 2);
    ck_assert_uint_eq(id_of(questions_take_of(questions, 1000)), 0);
    questions_done(questions, 1000);
    ck_assert_uint_eq(id_of(questions_take_of(questions, 3000)), 4);
    ck_assert_uint_eq(id_of(questions_take_of(questions, 3000)), 5);
    ck_assert_uint_eq(id_of(questions_take_of(questions, 3000)), 0);
    ck_assert_uint_eq(take_and_be_done(questions), 3);
    ck_assert_uint_eq(take(questions), 0);
    questions_free(questions);
}
END_TEST

START_TEST(all_can_be_taken_out)
{
    struct questions *questions = questions_new();
    unsigned sum = 0, id;

    put(questions, 1000, 1);
    put(questions, 1000, 2);
    put(questions, 2000, 4);
    put(questions, 3000, 8);
    ck_assert_uint_eq(take(questions), 1);
    while ((id = id_of(questions_take_any(questions))) != 0)
        sum += id;
    ck_assert_uint_eq(sum, 2 + 4 + 8);
    ck_assert(!questions_are_there(questions));
    put(questions, 1000, 3);
    questions_done(questions, 1000);
    ck_assert_uint_eq(take_and_be_done(questions), 3);
    questions_free(questions);
}
END_TEST

START_TEST(whoever_is_left_is_freed)
{
    struct questions *questions = questions_new();

    for (uint32_t uid = 0; uid < 10; uid++)
        put(questions, uid, uid + 1);
    ck_assert_uint_eq(take(questions), 1);
    questions_free(questions);
    questions_free(NULL);
}
END_TEST

static int put_two(void *context)
{
    struct question two[2] = {{.entry.uid = 0}, {.entry.uid = 1}};
    struct questions *questions = questions_new();
    int error = questions ? 0 : -ENOMEM;

    (void)context;
    for (size_t i = 0; error == 0 && i < ARRAY_LENGTH(two); i++)
        error = questions_put(questions, &two[i].entry) ? 0 : -ENOMEM;
    questions_free(questions);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    ck_assert_uint_ge(unit_memory_exhaust(put_two, NULL, -ENOMEM), 3);
}
END_TEST

UNIT_TESTS(those_of_one_user_come_in_order, users_take_turns, one_at_a_time_of_each_user,
           those_of_one_user_can_be_taken_out, all_can_be_taken_out, whoever_is_left_is_freed,
           every_allocation_may_fail);
