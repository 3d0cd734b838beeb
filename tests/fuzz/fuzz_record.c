/* SPDX-License-Identifier: Apache-2.0 */

/* The record file as it may be found: its header, and one slot after the other, of this version and
 * of those before. */

#include "lib/record.h"
#include "tests/fuzz/fuzz.h"

static void check_header(const uint8_t *data, size_t length)
{
    static const uint8_t boot[RECORD_BOOT_SIZE] = "0123456789abcde";
    uint8_t *header = fuzz_copy(data, RECORD_HEADER_SIZE), written[RECORD_HEADER_SIZE];
    struct record_header found = {0}, again = {0};

    if (record_read_header(header, length, boot, &found) == RECORD_WHOLE) {
        record_write_header(boot, found.distrusted_until, written);
        FUZZ_HOLDS(record_read_header(written, length, boot, &again) == RECORD_WHOLE);
        FUZZ_HOLDS(again.distrusted_until == found.distrusted_until);
    }
    free(header);
}

static void check_slot(const uint8_t *data)
{
    uint8_t *slot = fuzz_copy(data, RECORD_SLOT_SIZE);
    uint8_t written[RECORD_SLOT_SIZE] = {0}, mark[RECORD_MARK_SIZE];
    struct record record, again;

    if (record_read(slot, &record) && record.phase != RECORD_NONE) {
        record.is_torn = false;
        record_write(&record, mark);
        record_put(written, mark);
        FUZZ_HOLDS(record_read(written, &again));
        FUZZ_HOLDS(memcmp(&again, &record, sizeof record) == 0);
        FUZZ_HOLDS(record.pid > 0);
        /* One bit that falls over is noticed. */
        written[(record.sequence & 1) * RECORD_MARK_SIZE + record.start_time % RECORD_MARK_SIZE] ^=
            1;
        FUZZ_HOLDS(record_read(written, &again) && again.is_torn && again.phase == RECORD_NONE);
    }
    free(slot);
}

/* An upgrade makes of it what it was. */
static void check_older(const uint8_t *data)
{
    for (uint32_t version = RECORD_VERSION_OLDEST; version <= RECORD_VERSION; version++) {
        uint8_t *slot = fuzz_copy(data, record_slot_size(version)), written[RECORD_SLOT_SIZE];
        struct record record, again;

        if (record_read_older(version, slot, &record) && record.phase != RECORD_NONE) {
            record_write_slot(&record, written);
            FUZZ_HOLDS(record_read(written, &again));
            FUZZ_HOLDS(memcmp(&again, &record, sizeof record) == 0);
        }
        free(slot);
    }
}

/* A record as anybody might want to write it. */
static void check_written(const uint8_t *data)
{
    struct record record = {
        .phase = (enum record_phase)(RECORD_BEGUN + data[0] % RECORD_RESUMED),
    };
    uint8_t slot[RECORD_SLOT_SIZE] = {0}, mark[RECORD_MARK_SIZE];
    struct record again;

    memcpy(&record.pid, data + 1, sizeof record.pid);
    memcpy(&record.start_time, data + 5, sizeof record.start_time);
    memcpy(&record.cookie, data + 13, sizeof record.cookie);
    for (size_t i = 0; i < data[30]; i++)
        record_add_step(&record, (enum record_step)(data[31 + i % 80] % (RECORD_STEP_UNDOING + 1)));
    record.sequence = data[29] + 1u;
    record_write(&record, mark);
    record_put(slot, mark);
    FUZZ_HOLDS(record_read(slot, &again) && again.is_torn == (record.pid <= 0));
    check_slot(slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct record_header ignored;

    if (input.left < RECORD_HEADER_SIZE) {
        FUZZ_HOLDS(record_read_header(data, size, (const uint8_t[RECORD_BOOT_SIZE]){0}, &ignored) ==
                   RECORD_DAMAGED);
        return 0;
    }
    check_header(fuzz_take(&input, RECORD_HEADER_SIZE), RECORD_FILE_SIZE);
    check_header(data, size);
    while (input.left >= RECORD_SLOT_SIZE) {
        const uint8_t *slot = fuzz_take(&input, RECORD_SLOT_SIZE);

        check_slot(slot);
        check_older(slot);
        check_written(slot);
    }
    return 0;
}
