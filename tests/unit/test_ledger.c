/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who is resumed when, without a socket. Each runtime gets one Resume for each of
 * its ports, and one too many rather than one too few.
 */

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "rescue/ledger.h"
#include "tests/unit/unit_ledger.h"

static struct ledger *ledger;
static struct moment now;

static void set_up(uint32_t n_usable)
{
    free(ledger);
    ledger = calloc(1, sizeof *ledger);
    ck_assert_ptr_nonnull(ledger);
    ledger_init(ledger, n_usable);
    now = (struct moment){5000000};
}

static void tear_down(void)
{
    ck_assert_ptr_null(ledger_check(ledger));
    free(ledger);
    ledger = NULL;
}

static struct ledger_who who(uint8_t cookie)
{
    return (
        struct ledger_who){.pid = 100 + cookie, .uid = 7, .start_time = 9, .cookie = {{cookie}}};
}

static uint16_t comes_to(uint8_t listener, uint8_t cookie)
{
    uint16_t connection = ledger_accept(ledger, listener, now);
    struct ledger_who it = who(cookie);

    ck_assert_uint_eq(ledger_introduce(ledger, connection, &it, now), LEDGER_NOBODY);
    return connection;
}

static uint16_t comes(uint8_t cookie)
{
    return comes_to(0, cookie);
}

static void is_resumed(uint16_t connection)
{
    struct ledger_who it;
    uint16_t found;
    bool is_first;

    ck_assert(ledger_next_resume(ledger, now, &found, &it, &is_first));
    ck_assert_uint_eq(found, connection);
    ck_assert(ledger_awaits_answer(ledger, connection));
}

static void nobody_is_resumed(void)
{
    struct ledger_who it;
    uint16_t found;
    bool is_first;

    ck_assert_ptr_null(ledger_check(ledger));
    ck_assert(!ledger_next_resume(ledger, now, &found, &it, &is_first));
}

/* Whoever waits gets one more, again and again, for so long. */
static void settles(uint8_t cookie, uint32_t n_ports)
{
    for (int i = 0; i < LEDGER_SETTLE_ROUNDS; i++) {
        struct ledger_who it;
        uint16_t found;
        bool is_first;
        uint32_t n = 0;

        now.us += LEDGER_SETTLE.us;
        ck_assert_uint_eq(ledger_expire(ledger, now), LEDGER_NOBODY);
        for (; ledger_next_resume(ledger, now, &found, &it, &is_first); n++)
            ledger_answered(ledger, found, now);
        ck_assert_uint_eq(n, n_ports);
        while (n-- > 0)
            (void)comes(cookie);
    }
}

/* Nobody has to be closed. */
static void time_passes(int64_t ms)
{
    now.us += ms * 1000;
    ck_assert_uint_eq(ledger_expire(ledger, now), LEDGER_NOBODY);
}

static void is_answered(uint16_t connection)
{
    ledger_answered(ledger, connection, now);
}

START_TEST(one_port_gets_one)
{
    struct ledger_who it;
    uint16_t first, found;
    bool is_first;

    set_up(10);
    first = comes(1);
    ck_assert(ledger_next_resume(ledger, now, &found, &it, &is_first));
    ck_assert_uint_eq(found, first);
    ck_assert(is_first);
    ck_assert_int_eq(it.pid, 101);
    ck_assert(ledger_is_busy(ledger));
    is_answered(first);
    ck_assert(!ledger_is_busy(ledger));
    for (int i = 0; i < 100; i++) {
        uint16_t again = comes(1);

        nobody_is_resumed();
        time_passes(10000);
        nobody_is_resumed();
        /* Who ends without an answer may have had another port: this one gets Resume again. */
        if (i == 99) {
            ledger_ended(ledger, again);
            again = comes(1);
            ck_assert(ledger_next_resume(ledger, now, &found, &it, &is_first));
            ck_assert_uint_eq(found, again);
            ck_assert(!is_first);
        } else {
            is_resumed((ledger_ended(ledger, again), again = comes(1)));
            is_answered(again);
        }
    }
    ck_assert_uint_eq(ledger->counters.n_runtimes, 1);
    tear_down();
}
END_TEST

/* The answer, the end and the next advertise are all there before anybody looks. */
START_TEST(the_next_connection_may_be_met_before_the_answer)
{
    uint16_t first;

    set_up(10);
    first = comes(1);
    is_resumed(first);
    (void)comes(1);
    nobody_is_resumed();
    is_answered(first);
    nobody_is_resumed();
    time_passes(10000);
    nobody_is_resumed();
    tear_down();
}
END_TEST

START_TEST(the_same_path_twice_gets_two_at_least)
{
    uint16_t first, second;

    set_up(10);
    first = comes(1);
    second = comes(1);
    is_resumed(first);
    nobody_is_resumed();
    is_answered(first);
    nobody_is_resumed();
    (void)comes(1);
    is_resumed(second);
    is_answered(second);
    nobody_is_resumed();
    /* Nothing says that it was the second port and not the first one again. */
    settles(1, 1);
    (void)comes(1);
    nobody_is_resumed();
    time_passes(10000);
    nobody_is_resumed();
    tear_down();
}
END_TEST

/* The port that came first comes again before the second one was met: the count takes it for that
 * one. */
START_TEST(a_second_port_that_comes_late_is_not_forgotten)
{
    uint16_t first, again, late;

    set_up(10);
    first = comes(1);
    is_resumed(first);
    is_answered(first);
    again = comes(1);
    nobody_is_resumed();
    late = comes(1);
    is_resumed(again);
    is_answered(again);
    again = comes(1);
    nobody_is_resumed();
    time_passes(99);
    nobody_is_resumed();
    time_passes(1);
    is_resumed(late);
    is_answered(late);
    is_resumed(again);
    is_answered(again);
    nobody_is_resumed();
    tear_down();
}
END_TEST

/* It is met only after a while: in the queue of a listener, say. */
START_TEST(a_second_port_may_come_very_late)
{
    uint16_t first, late;

    set_up(10);
    first = comes(1);
    late = comes(1);
    is_resumed(first);
    is_answered(first);
    is_resumed((first = comes(1), late));
    is_answered(late);
    for (int i = 0; i < LEDGER_SETTLE_ROUNDS - 1; i++) {
        time_passes(100);
        is_resumed(first);
        is_answered(first);
        first = comes(1);
    }
    late = comes(1);
    time_passes(100);
    is_resumed(first);
    is_answered(first);
    is_resumed(late);
    is_answered(late);
    tear_down();
}
END_TEST

START_TEST(each_listener_has_its_count)
{
    uint16_t first, second;

    set_up(10);
    first = comes_to(0, 1);
    second = comes_to(15, 1);
    is_resumed(first);
    is_answered(first);
    is_resumed(second);
    is_answered(second);
    (void)comes_to(0, 1);
    (void)comes_to(15, 1);
    nobody_is_resumed();
    time_passes(10000);
    nobody_is_resumed();
    tear_down();
}
END_TEST

/* Everything that makes a runtime, by itself. */
START_TEST(runtimes_are_told_apart)
{
    struct ledger_who others[5] = {who(1), who(1), who(1), who(1), who(1)};

    others[1].pid++;
    others[2].start_time++;
    others[3].uid++;
    others[4].cookie.bytes[15] = 1;
    set_up(10);
    for (int i = 0; i < 5; i++) {
        uint16_t connection = ledger_accept(ledger, 0, now);

        ck_assert_uint_eq(ledger_introduce(ledger, connection, &others[i], now), LEDGER_NOBODY);
        is_resumed(connection);
        is_answered(connection);
    }
    for (int i = 0; i < 5; i++) {
        uint16_t connection = ledger_accept(ledger, 0, now);

        ck_assert_uint_eq(ledger_introduce(ledger, connection, &others[i], now), LEDGER_NOBODY);
        nobody_is_resumed();
    }
    ck_assert_uint_eq(ledger->counters.n_runtimes, 5);
    tear_down();
}
END_TEST

START_TEST(who_says_nothing_is_closed_in_time)
{
    uint16_t silent;

    set_up(10);
    silent = ledger_accept(ledger, 0, now);
    ck_assert(ledger_is_greeting(ledger, silent));
    ck_assert_int_eq(ledger_deadline(ledger).us, now.us + 1000000);
    time_passes(999);
    now.us += 1000;
    ck_assert_uint_eq(ledger_expire(ledger, now), silent);
    ck_assert_uint_eq(ledger_expire(ledger, now), LEDGER_NOBODY);
    ck_assert_uint_eq(ledger_n_open(ledger), 0);
    ck_assert(moment_is_never(ledger_deadline(ledger)));
    tear_down();
}
END_TEST

/* It is not closed, since that would take the Resume back; but another port is tried. */
START_TEST(who_does_not_answer_keeps_no_other_port_waiting)
{
    uint16_t first, second, third;

    set_up(10);
    first = comes(1);
    second = comes(1);
    third = comes(1);
    is_resumed(first);
    time_passes(999);
    nobody_is_resumed();
    time_passes(1);
    is_resumed(second);
    is_resumed(third);
    ck_assert(ledger_awaits_answer(ledger, first));
    is_answered(first);
    is_answered(second);
    is_answered(third);
    nobody_is_resumed();
    tear_down();
}
END_TEST

/* No more than a program could mean to have; the newest one goes. */
START_TEST(one_runtime_has_so_many_connections)
{
    struct ledger_who it = who(1);
    uint16_t last;

    set_up(1000);
    for (int i = 0; i < LEDGER_PER_RUNTIME_MAX; i++)
        (void)comes(1);
    last = ledger_accept(ledger, 0, now);
    ck_assert_uint_eq(ledger_introduce(ledger, last, &it, now), last);
    ck_assert_uint_eq(ledger_n_open(ledger), LEDGER_PER_RUNTIME_MAX);
    tear_down();
    /* Nor a large part of what there is. */
    set_up(40);
    for (int i = 0; i < 10; i++)
        (void)comes(1);
    last = ledger_accept(ledger, 0, now);
    ck_assert_uint_eq(ledger_introduce(ledger, last, &it, now), last);
    tear_down();
}
END_TEST

/* It was resumed, and has no connection at this moment. */
static void comes_and_goes(uint8_t cookie)
{
    uint16_t connection = comes(cookie);

    is_resumed(connection);
    is_answered(connection);
}

static uint16_t is_silent(void)
{
    return ledger_accept(ledger, 0, now);
}

static void goes(uint16_t connection)
{
    uint16_t closed;

    ck_assert(!ledger_make_room(ledger, now, &closed));
    ck_assert_uint_eq(closed, connection);
}

START_TEST(room_is_made_in_order)
{
    uint16_t stuck, parked, silent, waiting, closed;

    set_up(4);
    stuck = comes(1);
    is_resumed(stuck);
    time_passes(1000);
    comes_and_goes(2);
    parked = comes(2);
    silent = is_silent();
    ck_assert(ledger_make_room(ledger, now, &closed));
    waiting = comes(3);
    is_resumed(waiting);
    goes(silent);
    is_resumed(comes(4));
    /* It is not closed: it gets Resume, and its runtime ends it. */
    goes(LEDGER_NOBODY);
    is_resumed(parked);
    goes(LEDGER_NOBODY);
    nobody_is_resumed();
    is_answered(parked);
    ck_assert(ledger_make_room(ledger, now, &closed));
    is_resumed(comes(5));
    goes(stuck);
    is_resumed(comes(6));
    /* All of the others wait for an answer, which may still come. */
    goes(LEDGER_NOBODY);
    time_passes(99);
    goes(LEDGER_NOBODY);
    time_passes(1);
    goes(waiting);
    ck_assert(ledger_make_room(ledger, now, &closed));
    ck_assert(!moment_is_never(ledger_deadline(ledger)));
    tear_down();
}
END_TEST

/* One too many, of those who run: they are not let in and out without end. */
START_TEST(who_made_room_comes_back_at_a_pace)
{
    uint8_t cookies[4] = {0}, queue[4] = {3}; /* whose a connection is; who waits, in order */
    uint32_t n_queued = 1;
    uint64_t n_before;

    set_up(2);
    comes_and_goes(1);
    comes_and_goes(2);
    comes_and_goes(3);
    cookies[comes(1)] = 1;
    cookies[comes(2)] = 2;
    n_before = ledger->counters.n_connections;
    for (int ms = 0; ms < 10000; ms++) {
        struct ledger_who it;
        uint16_t connection;
        bool is_first;

        while (n_queued > 0 && ledger_make_room(ledger, now, &connection)) {
            cookies[comes(queue[0])] = queue[0];
            memmove(queue, queue + 1, --n_queued);
        }
        while (ledger_next_resume(ledger, now, &connection, &it, &is_first)) {
            is_answered(connection);
            queue[n_queued++] = cookies[connection];
        }
        time_passes(1);
    }
    /* Ten rounds a second, in which both go. */
    ck_assert_uint_le(ledger->counters.n_connections - n_before, 10 * 10 * 3);
    ck_assert_uint_ge(ledger->counters.n_connections - n_before, 10 * 10);
    tear_down();
}
END_TEST

/* There are so many places for runtimes; who is gone for longest is forgotten. */
START_TEST(the_table_of_runtimes_may_fill_up)
{
    set_up(10);
    for (uint32_t i = 0; i < LEDGER_RUNTIMES_MAX + 1000; i++) {
        struct ledger_who it = {.pid = 5, .start_time = i};
        uint16_t connection = ledger_accept(ledger, 0, now);

        ck_assert_uint_eq(ledger_introduce(ledger, connection, &it, now), LEDGER_NOBODY);
        is_resumed(connection);
        is_answered(connection);
    }
    ck_assert_uint_eq(ledger->counters.n_runtimes, LEDGER_RUNTIMES_MAX + 1000);
    tear_down();
}
END_TEST

static uint32_t choose(void *context, uint32_t n)
{
    return unit_random(context) % n;
}

static void play(uint64_t seed, uint32_t n_usable, struct unit_ledger_outcome *ret_outcome)
{
    struct unit_ledger_options options = {
        .n_runtimes = 8,
        .n_usable = n_usable,
        .n_steps = 300,
        .choose = choose,
        .context = &seed,
    };
    uint64_t was = seed;

    unit_ledger_play(&options, ret_outcome);
    ck_assert_msg(!ret_outcome->problem, "seed %llu with %u: %s", (unsigned long long)was, n_usable,
                  ret_outcome->problem);
}

START_TEST(whatever_happens_all_of_them_run)
{
    struct unit_ledger_outcome outcome;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        play(seed, 100, &outcome);
        play(seed, 12, &outcome);
        play(seed, 3, &outcome);
    }
}
END_TEST

UNIT_TESTS(one_port_gets_one, the_next_connection_may_be_met_before_the_answer,
           the_same_path_twice_gets_two_at_least, a_second_port_that_comes_late_is_not_forgotten,
           a_second_port_may_come_very_late, each_listener_has_its_count, runtimes_are_told_apart,
           who_says_nothing_is_closed_in_time, who_does_not_answer_keeps_no_other_port_waiting,
           one_runtime_has_so_many_connections, room_is_made_in_order,
           who_made_room_comes_back_at_a_pace, the_table_of_runtimes_may_fill_up,
           whatever_happens_all_of_them_run);
