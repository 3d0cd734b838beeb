/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { SUM_SIZE = 8, VERSION_AT = 8, SLOT_SIZE_AT = 12 };

void unit_record_sum(uint8_t *bytes, size_t length)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length - SUM_SIZE; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < SUM_SIZE; i++)
        bytes[length - SUM_SIZE + i] = (uint8_t)(sum >> (8 * i));
}

void unit_record_old_mark(const uint8_t *mark, uint8_t ret_mark[static UNIT_RECORD_OLD_MARK])
{
    memset(ret_mark, 0, UNIT_RECORD_OLD_MARK);
    for (size_t i = 0; i < RECORD_MARK_SIZE; i++) {
        if (mark[i] == 0)
            continue;
        memcpy(ret_mark, mark, UNIT_RECORD_OLD_MARK - SUM_SIZE);
        unit_record_sum(ret_mark, UNIT_RECORD_OLD_MARK);
        return;
    }
}

struct record unit_record_at(const char *path, uint32_t slot)
{
    uint8_t bytes[RECORD_SLOT_SIZE];
    struct record record;
    int fd = open(path, O_RDONLY);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, bytes, sizeof bytes,
                           RECORD_HEADER_SIZE + (off_t)slot * RECORD_SLOT_SIZE),
                     sizeof bytes);
    close(fd);
    ck_assert(record_read(bytes, &record));
    return record;
}

static uint8_t *read_whole(const char *path, int *ret_fd)
{
    uint8_t *bytes = malloc(RECORD_FILE_SIZE);

    *ret_fd = open(path, O_RDWR);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(read(*ret_fd, bytes, RECORD_FILE_SIZE), RECORD_FILE_SIZE);
    return bytes;
}

void unit_record_make_older(const char *path)
{
    const size_t size = RECORD_HEADER_SIZE + (size_t)RECORD_SLOTS * 2 * UNIT_RECORD_OLD_MARK;
    uint8_t *older = calloc(1, size), *at = older + RECORD_HEADER_SIZE;
    int fd;
    uint8_t *bytes = read_whole(path, &fd);

    ck_assert_ptr_nonnull(older);
    memcpy(older, bytes, RECORD_HEADER_SIZE);
    older[VERSION_AT] = UNIT_RECORD_OLD_VERSION;
    older[SLOT_SIZE_AT] = 2 * UNIT_RECORD_OLD_MARK & 0xff;
    older[SLOT_SIZE_AT + 1] = 2 * UNIT_RECORD_OLD_MARK >> 8;
    unit_record_sum(older, RECORD_HEADER_SIZE);
    for (size_t i = 0; i < 2 * RECORD_SLOTS; i++)
        unit_record_old_mark(bytes + RECORD_HEADER_SIZE + i * RECORD_MARK_SIZE,
                             at + i * UNIT_RECORD_OLD_MARK);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, older, size, 0), (ssize_t)size);
    close(fd);
    free(bytes);
    free(older);
}

void unit_record_make_newer(const char *path)
{
    uint8_t header[RECORD_HEADER_SIZE];
    int fd = open(path, O_RDWR);

    ck_assert_int_eq(pread(fd, header, sizeof header, 0), sizeof header);
    header[VERSION_AT] = RECORD_VERSION + 1;
    unit_record_sum(header, sizeof header);
    ck_assert_int_eq(pwrite(fd, header, sizeof header, 0), sizeof header);
    close(fd);
}
