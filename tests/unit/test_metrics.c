/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The metrics: their whole text for fixed numbers, which is what scrapers see.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics.h"
#include "daemon/ports.h"
#include "daemon/self.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/notice.h"
#include "tests/unit/unit_memory.h"

/* Every number is another one. */
static void fill(struct broker_counters *counters)
{
    uint64_t n = 100;

    counters->n_seen = n++;
    counters->n_deadlines = n++;
    counters->n_rollbacks = n++;
    for (size_t kind = 0; kind < BROKER_STEP_KINDS; kind++) {
        for (size_t result = 0; result < BROKER_STEP_RESULTS; result++)
            counters->steps[kind][result] = n++;
    }
    for (size_t i = 0; i < PEER_ERROR_COUNT; i++)
        counters->peer_errors[i] = n++;
    for (size_t i = 0; i < BROKER_HOLD_BUCKETS; i++)
        counters->n_holds += counters->hold_buckets[i] = i + 1;
    counters->hold_sum_us = 1234567;
    for (size_t proof = 0; proof < STEP_PROOFS; proof++)
        counters->proofs[proof] = 900 + proof;
}

static char *read_expected(void)
{
    static char text[64 * 1024];
    FILE *file = fopen(FIXTURES "/metrics.txt", "re");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* Line by line, so that what differs can be seen. */
static void are_same(const char *text, const char *expected)
{
    while (*text != '\0' || *expected != '\0') {
        size_t length = strcspn(text, "\n"), expected_length = strcspn(expected, "\n");

        ck_assert_msg(length == expected_length && memcmp(text, expected, length) == 0,
                      "%.*s\n  instead of\n%.*s", (int)length, text, (int)expected_length,
                      expected);
        text += length + (text[length] == '\n');
        expected += expected_length + (expected[expected_length] == '\n');
    }
}

START_TEST(the_whole_text)
{
    struct broker_rule_use rules[] = {{.name = (char[]){"web"}, .n_matches = 7},
                                      {.name = (char[]){"a\"b\\c\nd"}, .n_matches = 8}};
    struct broker_counters counters = {.rules = rules, .n_rules = ARRAY_LENGTH(rules)};
    const struct self self = {1.25, 30, 1024, 4096, 8192};
    const struct ports_entry listeners[] = {{.name = "runtime", .is_in_place = true},
                                            {.name = "a\"b\n"}};
    struct metrics metrics = {
        .counters = &counters,
        .version = "0.1.0",
        .is_ready = true,
        .listeners = listeners,
        .n_listeners = ARRAY_LENGTH(listeners),
        .n_reloads_done = 3,
        .n_reloads_failed = 4,
        .policy_hash = "0123abcd",
        .policy_origin = "last_good",
        .self = &self,
        .started_at = 1700000000.5,
    };
    struct bytes text;

    fill(&counters);
    counters.alarms[ALARM_POLICY] = true;
    for (size_t i = 0; i < RUNTIME_STATES; i++)
        metrics.by_state[i] = i + 1;
    bytes_init(&text, SIZE_MAX - 1);
    metrics_write(&metrics, &text);
    ck_assert_int_eq(bytes_finish(&text), 0);
    are_same((const char *)text.data, read_expected());
    bytes_deinit(&text);
}
END_TEST

static int write_all(void *context)
{
    struct bytes text;
    int error;

    bytes_init(&text, SIZE_MAX - 1);
    metrics_write(context, &text);
    error = bytes_finish(&text);
    bytes_deinit(&text);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    struct broker_rule_use rules[] = {{.name = (char[]){"web"}, .n_matches = 7}};
    struct broker_counters counters = {.rules = rules, .n_rules = ARRAY_LENGTH(rules)};
    const struct self self = {.n_open_fds = 3};
    const struct ports_entry listener = {.name = "runtime"};
    struct metrics metrics = {.counters = &counters,
                              .policy_hash = "0123abcd",
                              .policy_origin = "files",
                              .version = "0.1.0",
                              .listeners = &listener,
                              .n_listeners = 1,
                              .self = &self};

    ck_assert_uint_gt(unit_memory_exhaust(write_all, &metrics, -ENOMEM), 0);
}
END_TEST

START_TEST(this_process)
{
    struct self self;

    self_look(&self);
    ck_assert_uint_gt(self.n_open_fds, 2);
    ck_assert_uint_gt(self.n_max_fds, self.n_open_fds);
    ck_assert_uint_gt(self.resident_bytes, 100000);
    ck_assert_uint_ge(self.virtual_bytes, self.resident_bytes);
    ck_assert(self.cpu_seconds >= 0);
}
END_TEST

UNIT_TESTS(the_whole_text, every_allocation_may_fail, this_process);
