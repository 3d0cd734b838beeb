/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/record.h"
#include "tests/unit/unit_record.h"

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
        .knows_primer = true,
        .outcome = 3,
        .kept = UINT64_C(0x0102030405060708),
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
    struct record_header found = {0};

    record_write_header(boot, 4711, header);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE, boot, &found), RECORD_WHOLE);
    ck_assert_uint_eq(found.distrusted_until, 4711);
    ck_assert_uint_eq(found.version, RECORD_VERSION);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE, other_boot, &found),
                     RECORD_OTHER_BOOT);
}
END_TEST

START_TEST(a_file_that_is_cut_or_changed_is_damaged)
{
    uint8_t header[RECORD_HEADER_SIZE];
    struct record_header found = {0};

    record_write_header(boot, 4711, header);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE - 1, boot, &found),
                     RECORD_DAMAGED);
    ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE + 1, boot, &found),
                     RECORD_DAMAGED);
    ck_assert_int_eq(record_read_header(header, 0, boot, &found), RECORD_DAMAGED);
    for (size_t bit = 0; bit < 8 * sizeof header; bit++) {
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(record_read_header(header, RECORD_FILE_SIZE, boot, &found),
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

/* Other versions. */

enum {
    OLD_SLOTS = 8, /* of the file that was kept */
    OLD_SLOT_SIZE = 2 * UNIT_RECORD_OLD_MARK,
    OLD_SIZE = RECORD_HEADER_SIZE + RECORD_SLOTS * OLD_SLOT_SIZE,
};

static const uint8_t old_boot[RECORD_BOOT_SIZE] = {0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7,
                                                   0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf};

/* The first slots of a file that the last daemon of version 2 wrote. */
static const uint8_t *old_file(void)
{
    static uint8_t bytes[RECORD_HEADER_SIZE + OLD_SLOTS * OLD_SLOT_SIZE];
    int fd = open(FIXTURES "/records-2", O_RDONLY);

    ck_assert_int_eq(read(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    return bytes;
}

static const uint8_t *old_slot(size_t slot)
{
    return old_file() + RECORD_HEADER_SIZE + slot * OLD_SLOT_SIZE;
}

static struct record old_record(size_t slot)
{
    struct record record;

    ck_assert(record_read_older(UNIT_RECORD_OLD_VERSION, old_slot(slot), &record));
    return record;
}

/* What each of them was written with. */
static struct record base(int32_t pid, enum record_phase phase, uint32_t sequence)
{
    struct record record = {
        .phase = phase,
        .sequence = sequence,
        .pid = pid,
        .start_time = 123456789,
        .rule = 7,
        .connected_at = 1122334455,
    };

    for (size_t i = 0; i < GUID_SIZE; i++) {
        record.cookie.bytes[i] = (uint8_t)(i + 1);
        record.policy[i] = (uint8_t)(0xf0 + i);
    }
    return record;
}

static void old_slot_is(size_t slot, const struct record *expected)
{
    struct record record = old_record(slot);

    ck_assert_mem_eq(&record, expected, sizeof record);
}

START_TEST(the_file_of_version_2_is_read)
{
    struct record_header found = {0};
    struct record record;

    ck_assert_int_eq(record_read_header(old_file(), OLD_SIZE, old_boot, &found), RECORD_OLDER);
    ck_assert_uint_eq(found.version, UNIT_RECORD_OLD_VERSION);
    ck_assert_uint_eq(found.distrusted_until, 4321);
    ck_assert_uint_eq(record_slot_size(found.version), OLD_SLOT_SIZE);
    record = base(4711, RECORD_BEGUN, 2);
    record_add_step(&record, RECORD_STEP_OK);
    record_add_step(&record, RECORD_STEP_SENT);
    record_add_step(&record, RECORD_STEP_PENDING);
    old_slot_is(0, &record);
    record = base(4712, RECORD_HELD, 5);
    record.hold_until = INT64_MAX;
    record.is_hold_wished = true;
    record.outcome = 4;
    old_slot_is(1, &record);
    record = base(4713, RECORD_WITHDRAWING, 8);
    for (size_t i = 0; i < RECORD_RUNS_MAX + 1; i++)
        record_add_step(&record, (enum record_step)(i % 10));
    ck_assert(record.is_tangled);
    old_slot_is(2, &record);
    record = base(4714, RECORD_KILLING, 1);
    record.outcome = 5;
    record_add_step(&record, RECORD_STEP_REFUSED);
    old_slot_is(3, &record);
    record = (struct record){.phase = RECORD_RESUMED, .sequence = 3, .pid = 4715, .start_time = 99};
    record.cookie = base(1, RECORD_NONE, 1).cookie;
    old_slot_is(4, &record);
    ck_assert_int_eq(old_record(5).phase, RECORD_NONE);
    record = base(4716, RECORD_BEGUN, 1);
    record.is_torn = true;
    old_slot_is(6, &record);
    ck_assert(!record_read_older(UNIT_RECORD_OLD_VERSION, old_slot(7), &record));
}
END_TEST

/* Also that the newest half of it was torn: what came before it must not be taken for all. */
START_TEST(what_was_read_is_written_as_it_was)
{
    for (size_t slot = 0; slot < 7; slot++) {
        struct record record = old_record(slot), again;
        uint8_t bytes[RECORD_SLOT_SIZE];

        record_write_slot(&record, bytes);
        ck_assert(record_read(bytes, &again));
        ck_assert_mem_eq(&again, &record, sizeof record);
    }
}
END_TEST

/* It has the marks of today, but for what it did not know. */
START_TEST(a_slot_of_version_3_is_read)
{
    struct record record = sample(), read;
    uint8_t slot[RECORD_SLOT_SIZE] = {0};

    ck_assert_uint_eq(record_slot_size(3), RECORD_SLOT_SIZE);
    record.knows_primer = false;
    write_into(slot, &record);
    ck_assert(record_read_older(3, slot, &read));
    ck_assert_mem_eq(&read, &record, sizeof record);

    record.knows_primer = true;
    write_into(slot, &record);
    record.sequence++;
    write_into(slot, &record);
    ck_assert(!record_read_older(3, slot, &read));
}
END_TEST

/* What other tests use for a file of version 2 is one. */
START_TEST(the_version_2_of_these_tests_is_that_one)
{
    for (size_t slot = 0; slot < 5; slot++) {
        struct record record = old_record(slot);
        uint8_t mark[RECORD_MARK_SIZE], old_mark[UNIT_RECORD_OLD_MARK];

        record_write(&record, mark);
        unit_record_old_mark(mark, old_mark);
        ck_assert_mem_eq(old_mark, old_slot(slot) + (record.sequence & 1) * UNIT_RECORD_OLD_MARK,
                         sizeof old_mark);
    }
}
END_TEST

START_TEST(an_older_file_that_is_cut_is_damaged)
{
    struct record_header found;

    ck_assert_int_eq(record_read_header(old_file(), OLD_SIZE - 1, old_boot, &found),
                     RECORD_DAMAGED);
    ck_assert_int_eq(record_read_header(old_file(), RECORD_FILE_SIZE, old_boot, &found),
                     RECORD_DAMAGED);
    ck_assert_int_eq(record_read_header(old_file(), OLD_SIZE, boot, &found), RECORD_OTHER_BOOT);
}
END_TEST

static enum record_health of_version(uint32_t version, size_t length, const uint8_t *own_boot)
{
    uint8_t header[RECORD_HEADER_SIZE];
    struct record_header found = {0};
    enum record_health health;

    record_write_header(boot, 4711, header);
    header[8] = (uint8_t)version;
    unit_record_sum(header, sizeof header);
    health = record_read_header(header, length, own_boot, &found);
    if (health == RECORD_NEWER)
        ck_assert_uint_eq(found.version, version);
    return health;
}

/* Whatever its slots are like, and however many there are. */
START_TEST(a_newer_file_is_known_for_one)
{
    for (uint32_t version = RECORD_VERSION + 1; version < 200; version++) {
        ck_assert_int_eq(of_version(version, RECORD_FILE_SIZE, boot), RECORD_NEWER);
        ck_assert_int_eq(of_version(version, RECORD_HEADER_SIZE, boot), RECORD_NEWER);
        ck_assert_int_eq(of_version(version, RECORD_FILE_SIZE, other_boot), RECORD_OTHER_BOOT);
    }
    for (uint32_t version = 0; version < RECORD_VERSION_OLDEST; version++)
        ck_assert_int_eq(of_version(version, RECORD_FILE_SIZE, boot), RECORD_DAMAGED);
}
END_TEST

UNIT_TESTS(the_file_of_version_2_is_read, a_slot_of_version_3_is_read,
           what_was_read_is_written_as_it_was, the_version_2_of_these_tests_is_that_one,
           an_older_file_that_is_cut_is_damaged, a_newer_file_is_known_for_one, a_boot_has_an_id,
           an_empty_folder_may_have_what_a_dead_daemon_began, what_is_written_is_read,
           steps_of_a_kind_go_together, a_free_slot_is_all_zero, a_torn_mark_leaves_the_one_before,
           every_changed_bit_of_a_mark_is_seen, a_header_knows_its_boot,
           a_file_that_is_cut_or_changed_is_damaged);
