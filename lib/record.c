/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/record.h"

#include <string.h>

#include "lib/bytes.h"

enum { MAGIC_SIZE = 8, SUM_SIZE = 8 };

static const uint8_t magic[MAGIC_SIZE] = {'d', 'i', 'a', 'g', 'p', 'r', 'e', 'c'};

/* FNV-1a: the sum guards against cut and mixed-up writes, not against malice, which would need the
 * daemon's own user. */
static uint64_t checksum(const uint8_t *bytes, size_t length)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void put(uint8_t **at, uint64_t value, size_t length)
{
    for (size_t i = 0; i < length; i++)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

static bool sum_is_right(const uint8_t *bytes, size_t length)
{
    struct bytes_reader reader = bytes_reader_over(bytes + length - SUM_SIZE, SUM_SIZE);
    uint64_t sum;

    return bytes_get_u64(&reader, &sum) && sum == checksum(bytes, length - SUM_SIZE);
}

void record_write_header(const uint8_t boot[static RECORD_BOOT_SIZE], uint64_t distrusted_until,
                         uint8_t ret_bytes[static RECORD_HEADER_SIZE])
{
    uint8_t *at = ret_bytes + MAGIC_SIZE;

    memset(ret_bytes, 0, RECORD_HEADER_SIZE);
    memcpy(ret_bytes, magic, MAGIC_SIZE);
    put(&at, RECORD_VERSION, 4);
    put(&at, RECORD_SLOT_SIZE, 4);
    put(&at, RECORD_SLOTS, 4);
    memcpy(at, boot, RECORD_BOOT_SIZE);
    at += RECORD_BOOT_SIZE;
    put(&at, distrusted_until, 8);
    at = ret_bytes + RECORD_HEADER_SIZE - SUM_SIZE;
    put(&at, checksum(ret_bytes, RECORD_HEADER_SIZE - SUM_SIZE), SUM_SIZE);
}

enum record_health record_read_header(const uint8_t *bytes, size_t length,
                                      const uint8_t boot[static RECORD_BOOT_SIZE],
                                      uint64_t *ret_distrusted_until)
{
    struct bytes_reader reader = bytes_reader_over(bytes, length);
    const uint8_t *found_magic, *found_boot;
    uint32_t version, slot_size, n_slots;
    uint64_t distrusted_until;

    if (length != RECORD_FILE_SIZE || !sum_is_right(bytes, RECORD_HEADER_SIZE) ||
        !bytes_get_run(&reader, MAGIC_SIZE, &found_magic) || !bytes_get_u32(&reader, &version) ||
        !bytes_get_u32(&reader, &slot_size) || !bytes_get_u32(&reader, &n_slots) ||
        !bytes_get_run(&reader, RECORD_BOOT_SIZE, &found_boot) ||
        !bytes_get_u64(&reader, &distrusted_until))
        return RECORD_DAMAGED;
    if (memcmp(found_magic, magic, MAGIC_SIZE) != 0 || version != RECORD_VERSION ||
        slot_size != RECORD_SLOT_SIZE || n_slots != RECORD_SLOTS)
        return RECORD_DAMAGED;
    if (memcmp(found_boot, boot, RECORD_BOOT_SIZE) != 0)
        return RECORD_OTHER_BOOT;
    *ret_distrusted_until = distrusted_until;
    return RECORD_WHOLE;
}

void record_write(const struct record *record, uint8_t ret_bytes[static RECORD_SLOT_SIZE])
{
    uint8_t *at = ret_bytes;

    memset(ret_bytes, 0, RECORD_SLOT_SIZE);
    if (record->phase == RECORD_NONE)
        return;
    put(&at, record->phase, 4);
    put(&at, (uint32_t)record->pid, 4);
    put(&at, record->start_time, 8);
    memcpy(at, record->cookie.bytes, GUID_SIZE);
    at = ret_bytes + RECORD_SLOT_SIZE - SUM_SIZE;
    put(&at, checksum(ret_bytes, RECORD_SLOT_SIZE - SUM_SIZE), SUM_SIZE);
}

static bool is_free(const uint8_t *bytes)
{
    for (size_t i = 0; i < RECORD_SLOT_SIZE; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

bool record_read(const uint8_t bytes[static RECORD_SLOT_SIZE], struct record *ret_record)
{
    struct bytes_reader reader = bytes_reader_over(bytes, RECORD_SLOT_SIZE);
    struct record record = {0};
    const uint8_t *cookie;
    uint32_t phase, pid;

    if (is_free(bytes)) {
        *ret_record = (struct record){.phase = RECORD_NONE};
        return true;
    }
    if (!sum_is_right(bytes, RECORD_SLOT_SIZE) || !bytes_get_u32(&reader, &phase) ||
        !bytes_get_u32(&reader, &pid) || !bytes_get_u64(&reader, &record.start_time) ||
        !bytes_get_run(&reader, GUID_SIZE, &cookie))
        return false;
    if ((phase != RECORD_BEGUN && phase != RECORD_RESUMED) || pid == 0 || pid > INT32_MAX)
        return false;
    record.phase = (enum record_phase)phase;
    record.pid = (int32_t)pid;
    memcpy(record.cookie.bytes, cookie, GUID_SIZE);
    *ret_record = record;
    return true;
}
