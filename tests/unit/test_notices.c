/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/entry.h"
#include "daemon/notices.h"
#include "lib/notice.h"
#include "tests/unit/unit_log.h"

static struct moment at_ms(int64_t ms)
{
    return moment_after((struct moment){1000000000}, span_from_ms(ms));
}

static void happen(struct notices *notices, const struct notice *content, unsigned times)
{
    while (times-- > 0) {
        struct notice *notice = notice_new(content, NULL, NULL);

        ck_assert_ptr_nonnull(notice);
        notices_take(notices, notice);
    }
}

static void misbehave(struct notices *notices, uint32_t uid, unsigned times, struct moment at)
{
    const struct notice content = {.kind = NOTICE_PEER_ERROR,
                                   .peer_error = PEER_SENT_GARBAGE,
                                   .uid = uid,
                                   .at = at};

    happen(notices, &content, times);
}

static unsigned count_entries(enum entry_kind kind)
{
    unsigned n = 0;

    while (unit_log_entry(NULL))
        n += strcmp(unit_log_field("MESSAGE_ID"), entry_kind_id(kind)) == 0;
    return n;
}

START_TEST(what_peers_do_is_told_within_bounds)
{
    struct notices *notices = notices_new();

    unit_log_open(true);
    misbehave(notices, 1000, 4, at_ms(0));
    ck_assert(moment_is_never(notices_deadline(notices)));
    misbehave(notices, 1000, 96, at_ms(10));
    misbehave(notices, 33, 1, at_ms(20));
    ck_assert_uint_eq(count_entries(ENTRY_PEER_ERROR), 6);
    /* All of it happened, for those who follow. */
    ck_assert_uint_eq(notices_next(notices), 102);
    notices_free(notices);
    unit_log_close();
}
END_TEST

START_TEST(what_was_left_out_is_told_a_second_later)
{
    struct notices *notices = notices_new();

    unit_log_open(true);
    misbehave(notices, 1000, 8, at_ms(0));
    ck_assert_uint_eq(count_entries(ENTRY_PEER_ERROR), 5);
    ck_assert_int_eq(notices_deadline(notices).us, at_ms(1000).us);
    notices_run(notices, at_ms(999));
    ck_assert_ptr_null(unit_log_entry(NULL));
    notices_run(notices, at_ms(1000));
    ck_assert_ptr_nonnull(unit_log_entry(NULL));
    ck_assert_str_eq(unit_log_field("MESSAGE_ID"), entry_kind_id(ENTRY_LEFT_OUT));
    ck_assert_str_eq(unit_log_field("MESSAGE"), "lines about peers were left out: 3 of uid=1000");
    ck_assert(moment_is_never(notices_deadline(notices)));
    notices_run(notices, at_ms(5000));
    ck_assert_ptr_null(unit_log_entry(NULL));
    misbehave(notices, 1000, 5, at_ms(5000));
    ck_assert_uint_eq(count_entries(ENTRY_PEER_ERROR), 5);
    notices_free(notices);
    unit_log_close();
}
END_TEST

/* In the order in which it happened, whoever comes first. */
START_TEST(or_before_the_next_one)
{
    struct notices *notices = notices_new();

    unit_log_open(true);
    misbehave(notices, 1000, 6, at_ms(0));
    count_entries(ENTRY_PEER_ERROR);
    misbehave(notices, 1000, 1, at_ms(1000));
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("MESSAGE_ID"), entry_kind_id(ENTRY_LEFT_OUT));
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("MESSAGE_ID"), entry_kind_id(ENTRY_PEER_ERROR));
    notices_free(notices);
    ck_assert_ptr_null(unit_log_entry(NULL));
    unit_log_close();
}
END_TEST

START_TEST(or_at_the_end)
{
    struct notices *notices = notices_new();

    unit_log_open(true);
    misbehave(notices, 1000, 6, at_ms(0));
    count_entries(ENTRY_PEER_ERROR);
    notices_free(notices);
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("MESSAGE"), "lines about peers were left out: 1 of uid=1000");
    unit_log_close();
}
END_TEST

static void run(struct notices *notices, uint32_t uid, unsigned times, struct moment at)
{
    const struct notice content = {.kind = NOTICE_RUNTIME,
                                   .state = "running",
                                   .old_state = "known",
                                   .uid = uid,
                                   .at = at};

    happen(notices, &content, times);
}

/* Or journald would leave out what it likes. */
START_TEST(what_runtimes_do_is_told_within_wide_bounds)
{
    struct notices *notices = notices_new();
    unsigned n = 0;

    unit_log_open(true);
    /* A few at a time, as the journal's socket holds. */
    for (int i = 0; i < 1000; i++) {
        run(notices, 1000, 5, at_ms(1000 + i));
        n += count_entries(ENTRY_RUNTIME);
    }
    ck_assert_uint_eq(n, 4000);
    /* One who has taken half of all does not hide what others do. */
    for (n = 0; n < 100; n += 5) {
        run(notices, 33, 5, at_ms(2000));
        ck_assert_uint_eq(count_entries(ENTRY_RUNTIME), 5);
    }
    run(notices, 33, 5, at_ms(2000));
    ck_assert_uint_eq(count_entries(ENTRY_RUNTIME), 0);
    ck_assert_int_eq(notices_deadline(notices).us, at_ms(1000 + 30000).us);
    notices_run(notices, at_ms(31000));
    ck_assert_ptr_nonnull(unit_log_entry(NULL));
    ck_assert_str_eq(unit_log_field("MESSAGE"),
                     "lines about runtimes were left out: 1000 of uid=1000, 5 of uid=33");
    run(notices, 1000, 1, at_ms(31000));
    ck_assert_uint_eq(count_entries(ENTRY_RUNTIME), 1);
    notices_free(notices);
    unit_log_close();
}
END_TEST

/* Whoever looks for warnings finds what was taken and is wrong all the same. */
START_TEST(what_is_wrong_with_a_step_is_a_warning)
{
    static const struct {
        const char *result, *why, *priority;
        bool is_required;
    } cases[] = {
        {"ok", NULL, "6", true},
        {"ok", "was replaced", "4", true},
        {"ok", "was replaced", "5", false},
        {"refused", NULL, "4", true},
        {"lost", NULL, "5", false},
        {"skipped", "is not needed", "6", true},
    };
    struct notices *notices = notices_new();

    unit_log_open(true);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const struct notice content = {.kind = NOTICE_STEP,
                                       .at = at_ms((int64_t)i),
                                       .step = "hook",
                                       .result = cases[i].result,
                                       .is_required = cases[i].is_required,
                                       .why = cases[i].why};

        happen(notices, &content, 1);
        ck_assert_ptr_nonnull(unit_log_entry(NULL));
        ck_assert_str_eq(unit_log_field("PRIORITY"), cases[i].priority);
    }
    notices_free(notices);
    unit_log_close();
}
END_TEST

UNIT_TESTS(what_peers_do_is_told_within_bounds, what_was_left_out_is_told_a_second_later,
           or_before_the_next_one, or_at_the_end, what_runtimes_do_is_told_within_wide_bounds,
           what_is_wrong_with_a_step_is_a_warning);
