/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <string.h>

#include "lib/record.h"

static const uint8_t boot[RECORD_BOOT_SIZE] = {1, 2,  3,  4,  5,  6,  7,  8,
                                               9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t other_boot[RECORD_BOOT_SIZE] = {9};

static struct record sample(void)
{
    return (struct record){
        .phase = RECORD_BEGUN,
        .pid = 4711,
        .start_time = UINT64_C(0x1122334455667788),
        .cookie = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
    };
}

START_TEST(what_is_written_is_read)
{
    struct record record = sample(), read;
    uint8_t bytes[RECORD_SLOT_SIZE];

    record_write(&record, bytes);
    ck_assert(record_read(bytes, &read));
    ck_assert_int_eq(read.phase, RECORD_BEGUN);
    ck_assert_int_eq(read.pid, 4711);
    ck_assert_uint_eq(read.start_time, record.start_time);
    ck_assert_int_eq(guid_compare(&read.cookie, &record.cookie), 0);
    record.phase = RECORD_RESUMED;
    record_write(&record, bytes);
    ck_assert(record_read(bytes, &read));
    ck_assert_int_eq(read.phase, RECORD_RESUMED);
}
END_TEST

START_TEST(a_free_slot_is_all_zero)
{
    struct record nothing = {.phase = RECORD_NONE, .pid = 5}, read;
    uint8_t bytes[RECORD_SLOT_SIZE], zero[RECORD_SLOT_SIZE] = {0};

    record_write(&nothing, bytes);
    ck_assert_mem_eq(bytes, zero, sizeof zero);
    ck_assert(record_read(zero, &read));
    ck_assert_int_eq(read.phase, RECORD_NONE);
}
END_TEST

/* A slot that was cut in the middle of being written, or changed by anything, is seen. */
START_TEST(every_changed_bit_of_a_slot_is_seen)
{
    struct record record = sample(), read;
    uint8_t bytes[RECORD_SLOT_SIZE];

    record_write(&record, bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert(!record_read(bytes, &read));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t length = 1; length < sizeof bytes; length++) {
        uint8_t cut[RECORD_SLOT_SIZE] = {0};

        memcpy(cut, bytes, length);
        ck_assert(!record_read(cut, &read));
    }
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

UNIT_TESTS(what_is_written_is_read, a_free_slot_is_all_zero, every_changed_bit_of_a_slot_is_seen,
           a_header_knows_its_boot, a_file_that_is_cut_or_changed_is_damaged);
