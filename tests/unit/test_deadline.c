/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include "lib/deadline.h"

static struct moment at(int64_t us)
{
    return (struct moment){us};
}

static struct deadline *take_due(struct deadline_queue *queue, struct moment now)
{
    struct deadline *deadline = deadline_queue_due(queue, now);

    ck_assert_ptr_null(deadline_queue_take_prepared(queue, now));
    if (!deadline)
        return NULL;
    deadline_prepare(queue, deadline);
    ck_assert_ptr_eq(deadline_queue_take_prepared(queue, now), deadline);
    return deadline;
}

START_TEST(nothing_is_due_in_an_empty_queue)
{
    struct deadline_queue queue;

    deadline_queue_init(&queue);
    ck_assert(moment_is_never(deadline_queue_next(&queue)));
    ck_assert_ptr_null(take_due(&queue, at(INT64_MAX - 1)));
}
END_TEST

START_TEST(the_earliest_comes_first_and_not_a_microsecond_too_soon)
{
    struct deadline_queue queue;
    struct deadline late, early;

    deadline_queue_init(&queue);
    deadline_init(&late, 1);
    deadline_init(&early, 2);
    deadline_set(&queue, &late, at(200));
    deadline_set(&queue, &early, at(100));
    ck_assert_int_eq(deadline_queue_next(&queue).us, 100);
    ck_assert_ptr_null(take_due(&queue, at(99)));
    ck_assert_ptr_eq(take_due(&queue, at(100)), &early);
    ck_assert(moment_is_never(early.at));
    ck_assert_ptr_null(take_due(&queue, at(199)));
    ck_assert_ptr_eq(take_due(&queue, at(1000)), &late);
    ck_assert(moment_is_never(deadline_queue_next(&queue)));
}
END_TEST

START_TEST(those_of_one_moment_come_in_the_order_in_which_they_were_set)
{
    struct deadline_queue queue;
    struct deadline list[20];

    deadline_queue_init(&queue);
    for (int i = 0; i < 20; i++) {
        deadline_init(&list[i], i);
        deadline_set(&queue, &list[i], at(7));
    }
    for (int i = 0; i < 20; i++)
        ck_assert_ptr_eq(take_due(&queue, at(7)), &list[i]);
}
END_TEST

START_TEST(moving_and_stopping_leave_nothing_behind)
{
    struct deadline_queue queue;
    struct deadline deadline;

    deadline_queue_init(&queue);
    deadline_init(&deadline, 0);
    deadline_set(&queue, &deadline, at(10));
    deadline_set(&queue, &deadline, at(30));
    ck_assert_ptr_null(take_due(&queue, at(20)));
    deadline_set(&queue, &deadline, MOMENT_NEVER);
    ck_assert_ptr_null(take_due(&queue, at(1000)));
    deadline_stop(&queue, &deadline);
    deadline_set(&queue, &deadline, at(5));
    ck_assert_ptr_eq(take_due(&queue, at(5)), &deadline);
}
END_TEST

START_TEST(many_come_out_sorted)
{
    enum { N = 2000 };
    static struct deadline list[N];
    struct deadline_queue queue;
    uint64_t state = 42;
    struct deadline *taken;
    int64_t before = 0;
    int n = 0;

    deadline_queue_init(&queue);
    for (int i = 0; i < N; i++) {
        deadline_init(&list[i], i);
        deadline_set(&queue, &list[i], at(1 + unit_random(&state) % 500));
    }
    for (int i = 0; i < N; i += 3)
        deadline_set(&queue, &list[i], at(1 + unit_random(&state) % 500));
    for (int i = 1; i < N; i += 7)
        deadline_stop(&queue, &list[i]);
    while (!moment_is_never(deadline_queue_next(&queue))) {
        struct moment next = deadline_queue_next(&queue);

        ck_assert_int_ge(next.us, before);
        before = next.us;
        taken = take_due(&queue, next);
        ck_assert_ptr_nonnull(taken);
        n++;
    }
    ck_assert_int_eq(n, N - (N + 5) / 7);
}
END_TEST

START_TEST(only_what_is_prepared_is_taken)
{
    struct deadline_queue queue;
    struct deadline list[3];

    deadline_queue_init(&queue);
    for (int i = 0; i < 3; i++) {
        deadline_init(&list[i], i);
        deadline_set(&queue, &list[i], at(10 * (i + 1)));
    }
    ck_assert_ptr_eq(deadline_queue_due_after(&list[0], at(20)), &list[1]);
    ck_assert_ptr_null(deadline_queue_due_after(&list[1], at(29)));
    deadline_prepare(&queue, &list[1]);
    deadline_prepare(&queue, &list[1]);
    deadline_prepare(&queue, &list[2]);
    ck_assert_ptr_eq(deadline_queue_take_prepared(&queue, at(29)), &list[1]);
    ck_assert_ptr_null(deadline_queue_take_prepared(&queue, at(29)));
    /* A new setting has to be prepared anew, also one to be stopped and set to the same. */
    deadline_set(&queue, &list[2], at(25));
    ck_assert_ptr_null(deadline_queue_take_prepared(&queue, at(100)));
    deadline_prepare(&queue, &list[2]);
    deadline_stop(&queue, &list[2]);
    deadline_set(&queue, &list[2], at(25));
    ck_assert_ptr_null(deadline_queue_take_prepared(&queue, at(100)));
    ck_assert_uint_eq(queue.n_prepared, 0);
}
END_TEST

UNIT_TESTS(nothing_is_due_in_an_empty_queue,
           the_earliest_comes_first_and_not_a_microsecond_too_soon,
           those_of_one_moment_come_in_the_order_in_which_they_were_set,
           moving_and_stopping_leave_nothing_behind, many_come_out_sorted,
           only_what_is_prepared_is_taken);
