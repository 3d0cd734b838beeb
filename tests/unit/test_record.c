/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <string.h>

#include "lib/record.h"

static const uint8_t boot[RECORD_BOOT_SIZE] = {1, 2,  3,  4,  5,  6,  7,  8,
                                               9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t other_boot[RECORD_BOOT_SIZE] = {9};

static struct record sample(void)
{
    struct record record = {
        .phase = RECORD_WITHDRAWING,
        .sequence = 6,
        .pid = 4711,
        .start_time = UINT64_C(0x1122334455667788),
        .cookie = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
        .policy = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 255},
        .rule = 77,
        .connected_at = 1234567890123,
        .hold_until = INT64_MAX,
        .is_hold_wished = true,
        .outcome = 3,
    };

    for (size_t i = 0; i < RECORD_RUNS_MAX; i++) {
        for (size_t n = 0; n <= i; n++)
            record_add_step(&record, (enum record_step)(i % (RECORD_STEP_UNDOING + 1)));
    }
    return record;
}

static void write_into(uint8_t slot[static RECORD_SLOT_SIZE], const struct record *record)
{
    uint8_t mark[RECORD_MARK_SIZE];

    record_write(record, mark);
    record_put(slot, mark);
}

START_TEST(what_is_written_is_read)
{
    struct record record = sample(), read;
    uint8_t slot[RECORD_SLOT_SIZE] = {0};

    record.is_tangled = true;
    write_into(slot, &record);
    ck_assert(record_read(slot, &read));
    ck_assert_mem_eq(&read, &record, sizeof record);
    record.phase = RECORD_RESUMED;
    record.sequence++;
    write_into(slot, &record);
    ck_assert(record_read(slot, &read));
    ck_assert_mem_eq(&read, &record, sizeof record);
}
END_TEST

/* What is said of a plan that does not fit is that. */
START_TEST(steps_of_a_kind_go_together)
{
    struct record record = {.phase = RECORD_BEGUN};

    for (size_t i = 0; i < RECORD_RUN_MAX + 1; i++)
        record_add_step(&record, RECORD_STEP_OK);
    ck_assert_uint_eq(record.n_runs, 2);
    ck_assert_uint_eq(record.runs[0].n, RECORD_RUN_MAX);
    ck_assert_uint_eq(record.runs[1].n, 1);
    for (size_t i = 0; i < RECORD_RUNS_MAX - 2; i++)
        record_add_step(&record, i % 2 ? RECORD_STEP_OK : RECORD_STEP_BARRED);
    ck_assert(!record.is_tangled);
    record_add_step(&record, RECORD_STEP_PENDING);
    ck_assert(record.is_tangled);
}
END_TEST

START_TEST(a_free_slot_is_all_zero)
{
    struct record nothing = {.phase = RECORD_NONE, .pid = 5}, record = sample(), read;
    uint8_t slot[RECORD_SLOT_SIZE] = {0}, zero[RECORD_SLOT_SIZE] = {0};

    write_into(slot, &record);
    record.sequence++;
    write_into(slot, &record);
    write_into(slot, &nothing);
    ck_assert_mem_eq(slot, zero, sizeof zero);
    ck_assert(record_read(zero, &read));
    ck_assert_int_eq(read.phase, RECORD_NONE);
}
END_TEST

/* A death in the middle of a mark leaves the one before it, and what is left is seen to be torn. */
START_TEST(a_torn_mark_leaves_the_one_before)
{
    for (size_t length = 0; length <= RECORD_MARK_SIZE; length++) {
        struct record before = sample(), after = sample(), read;
        uint8_t slot[RECORD_SLOT_SIZE] = {0}, mark[RECORD_MARK_SIZE];

        before.sequence = 5;
        write_into(slot, &before);
        before.sequence = 6;
        write_into(slot, &before);
        after.sequence = 7;
        after.pid = 4712;
        record_write(&after, mark);
        memcpy(slot + RECORD_MARK_SIZE, mark, length);
        ck_assert(record_read(slot, &read));
        /* The first bytes are those of the sequence, of which one changes. */
        if (length == RECORD_MARK_SIZE) {
            ck_assert_int_eq(read.pid, 4712);
            ck_assert(!read.is_torn);
        } else {
            ck_assert_int_eq(read.pid, 4711);
            ck_assert(read.is_torn == (length > 0));
        }
    }
}
END_TEST

/* The first mark comes before the first message: torn, it says that nothing was sent. */
START_TEST(every_changed_bit_of_a_mark_is_seen)
{
    struct record record = sample(), read;
    uint8_t slot[RECORD_SLOT_SIZE] = {0};

    write_into(slot, &record);
    for (size_t bit = 0; bit < 8 * RECORD_MARK_SIZE; bit++) {
        slot[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert(record_read(slot, &read));
        ck_assert_int_eq(read.phase, RECORD_NONE);
        ck_assert(read.is_torn);
        slot[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    slot[0] ^= 1;
    slot[RECORD_MARK_SIZE] ^= 1;
    ck_assert(!record_read(slot, &read));
}
END_TEST

START_TEST(a_header_knows_its_boot)
{
    uint8_t header[RECORD_HEADER_SIZE];
    uint64_t until = 0;

    record_write_header(boot, 4711, header);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE, boot, &until), RECORD_WHOLE);
    ck_assert_uint_eq(until, 4711);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE, other_boot, &until),
                     RECORD_OTHER_BOOT);
}
END_TEST

START_TEST(a_file_that_is_cut_or_changed_is_damaged)
{
    uint8_t header[RECORD_HEADER_SIZE];
    uint64_t until = 0;

    record_write_header(boot, 4711, header);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE - 1, boot, &until),
                     RECORD_DAMAGED);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE + 1, boot, &until),
                     RECORD_DAMAGED);
    ck_assert_int_eq(record_read_header(header, 0, boot, &until), RECORD_DAMAGED);
    for (size_t bit = 0; bit < 8 * sizeof header; bit++) {
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE, boot, &until),
                         RECORD_DAMAGED);
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

START_TEST(a_boot_has_an_id)
{
    static const char text[] = "00112233-4455-6677-8899-aabbccddeeff\n";
    uint8_t with[RECORD_BOOT_SIZE], without[RECORD_BOOT_SIZE];
    char cut[sizeof text] = "";

    ck_assert(record_read_boot(text, with));
    for (size_t length = 0; length < sizeof text - 2; length++) {
        memcpy(cut, text, length);
        ck_assert(!record_read_boot(cut, without));
    }
    memcpy(cut, text, sizeof text - 2);
    ck_assert(record_read_boot(cut, without));
    ck_assert_mem_eq(with, without, sizeof with);
    ck_assert(!record_read_boot("00112233-4455-6677-8899-aabbccddeeff0\n", without));
}
END_TEST

START_TEST(an_empty_folder_may_have_what_a_dead_daemon_began)
{
    ck_assert(!record_is_trace(".") && !record_is_trace("..") && !record_is_trace(RECORD_NEW_FILE));
    ck_assert(record_is_trace(RECORD_FILE) && record_is_trace("...") && record_is_trace("other"));
}
END_TEST

UNIT_TESTS(a_boot_has_an_id, an_empty_folder_may_have_what_a_dead_daemon_began,
           what_is_written_is_read, steps_of_a_kind_go_together, a_free_slot_is_all_zero,
           a_torn_mark_leaves_the_one_before, every_changed_bit_of_a_mark_is_seen,
           a_header_knows_its_boot, a_file_that_is_cut_or_changed_is_damaged);
