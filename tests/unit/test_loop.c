/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns of the loop: who is ready for ever does not keep the loop from coming
 * back to its caller, who has deadlines to look at.
 */

#include "tests/unit/unit.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/loop.h"

enum { N = 40 };

struct busy {
    int fd;
    struct loop_watch *watch;
    unsigned n_calls;
};

/* Takes its time, and is ready again at once. */
static void dawdle(void *context)
{
    struct busy *busy = context;
    struct moment end = moment_after(clock_now(), span_from_ms(1));

    busy->n_calls++;
    while (!moment_is_due(end, clock_now()))
        ;
}

START_TEST(a_turn_ends_whoever_is_ready)
{
    struct loop *loop = loop_new();
    struct busy list[N] = {0};
    unsigned n_called = 0, n_turns = 0;

    ck_assert_ptr_nonnull(loop);
    for (int i = 0; i < N; i++) {
        list[i].fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
        list[i].watch = loop_watch_new(loop, list[i].fd, dawdle, &list[i]);
        ck_assert_ptr_nonnull(list[i].watch);
    }
    ck_assert(loop_wait(loop, MOMENT_NEVER));
    for (int i = 0; i < N; i++)
        n_called += list[i].n_calls;
    ck_assert_uint_gt(n_called, 0);
    ck_assert_uint_lt(n_called, N);
    /* Who was not called comes before who was. */
    for (; n_called < N; n_turns++) {
        ck_assert_uint_lt(n_turns, N);
        ck_assert(loop_poll(loop));
        n_called = 0;
        for (int i = 0; i < N; i++) {
            ck_assert_uint_le(list[i].n_calls, 2);
            n_called += list[i].n_calls > 0;
        }
    }
    for (int i = 0; i < N; i++) {
        loop_watch_free(list[i].watch);
        close(list[i].fd);
    }
    /* Nobody is left, and nobody is waited for. */
    ck_assert(!loop_wait(loop, clock_now()));
    loop_free(loop);
}
END_TEST

UNIT_TESTS(a_turn_ends_whoever_is_ready);
