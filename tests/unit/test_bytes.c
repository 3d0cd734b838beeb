/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

START_TEST(numbers_are_little_endian)
{
    struct unit_bytes bytes = unit_vector("01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F");
    struct bytes_reader reader = bytes_reader_over(bytes.data, bytes.length);
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    ck_assert(bytes_get_u8(&reader, &u8));
    ck_assert(bytes_get_u16(&reader, &u16));
    ck_assert(bytes_get_u32(&reader, &u32));
    ck_assert(bytes_get_u64(&reader, &u64));
    ck_assert_uint_eq(u8, 0x01);
    ck_assert_uint_eq(u16, 0x0302);
    ck_assert_uint_eq(u32, 0x07060504);
    ck_assert_uint_eq(u64, 0x0F0E0D0C0B0A0908);
    ck_assert_uint_eq(reader.left, 0);
}
END_TEST

/* A number that does not fit is not read, and neither the reader nor the result is touched. */
START_TEST(short_input_reads_nothing)
{
    for (size_t length = 0; length < 8; length++) {
        uint8_t *data = unit_copy("\1\2\3\4\5\6\7\10", length);
        struct bytes_reader reader = bytes_reader_over(data, length);
        const uint8_t *run = NULL;
        uint8_t u8 = 9;
        uint16_t u16 = 9;
        uint32_t u32 = 9;
        uint64_t u64 = 9;

        ck_assert(!bytes_get_u64(&reader, &u64));
        ck_assert(length >= 4 || !bytes_get_u32(&reader, &u32));
        ck_assert(length >= 2 || !bytes_get_u16(&reader, &u16));
        ck_assert(length >= 1 || !bytes_get_u8(&reader, &u8));
        ck_assert(!bytes_get_run(&reader, length + 1, &run));
        ck_assert(!bytes_get_run(&reader, SIZE_MAX, &run));
        ck_assert(u8 == 9 && u16 == 9 && u32 == 9 && u64 == 9 && !run);
        ck_assert_ptr_eq(reader.at, data);
        ck_assert_uint_eq(reader.left, length);
        free(data);
    }
}
END_TEST

START_TEST(run_is_taken_in_place)
{
    static const uint8_t data[] = {1, 2, 3};
    struct bytes_reader reader = bytes_reader_over(data, sizeof data);
    const uint8_t *run;

    ck_assert(bytes_get_run(&reader, 2, &run));
    ck_assert_ptr_eq(run, data);
    ck_assert(bytes_get_run(&reader, 1, &run));
    ck_assert_ptr_eq(run, data + 2);
    ck_assert(bytes_get_run(&reader, 0, &run));
    ck_assert(!bytes_get_run(&reader, 1, &run));
}
END_TEST

START_TEST(everything_can_be_put)
{
    struct bytes bytes;

    bytes_init(&bytes, 64);
    bytes_put_u8(&bytes, 0x01);
    bytes_put_u16(&bytes, 0x0302);
    bytes_put_u32(&bytes, 0x07060504);
    bytes_put_u64(&bytes, 0x0F0E0D0C0B0A0908);
    bytes_put_run(&bytes, "\x10\x11", 2);
    bytes_put_run(&bytes, NULL, 0);
    bytes_put_string(&bytes, "AB");
    bytes_put_format(&bytes, "%d%s", 7, "x");
    ck_assert_int_eq(bytes_finish(&bytes), 0);
    unit_assert_bytes(bytes.data, bytes.length,
                      "01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 10 11 41 42 37 78");
    ck_assert_uint_eq(bytes.data[bytes.length], 0);
    bytes_deinit(&bytes);
    ck_assert_ptr_null(bytes.data);
    ck_assert_uint_eq(bytes.limit, 64);
}
END_TEST

/* The limit can be reached, but not passed; the error stays whatever comes after. */
START_TEST(limit_is_kept)
{
    struct bytes bytes;

    bytes_init(&bytes, 4);
    bytes_put_u16(&bytes, 1);
    bytes_put_string(&bytes, "ab");
    ck_assert_int_eq(bytes_finish(&bytes), 0);
    ck_assert_uint_eq(bytes.length, 4);
    bytes_put_u8(&bytes, 1);
    ck_assert_int_eq(bytes.error, -EMSGSIZE);
    bytes_put_run(&bytes, NULL, 0);
    bytes_put_format(&bytes, "%s", "");
    ck_assert_int_eq(bytes_finish(&bytes), -EMSGSIZE);
    ck_assert_uint_eq(bytes.length, 4);
    bytes_deinit(&bytes);
    ck_assert_int_eq(bytes.error, 0);

    bytes_put_format(&bytes, "%s", "abcde");
    ck_assert_int_eq(bytes_finish(&bytes), -EMSGSIZE);
    ck_assert_uint_eq(bytes.length, 0);
    bytes_deinit(&bytes);

    bytes_put_run(&bytes, "abc", SIZE_MAX);
    ck_assert_int_eq(bytes_finish(&bytes), -EMSGSIZE);
    bytes_deinit(&bytes);

    bytes_init(&bytes, 0);
    ck_assert_int_eq(bytes_finish(&bytes), 0);
    ck_assert_str_eq((char *)bytes.data, "");
    bytes_deinit(&bytes);
}
END_TEST

START_TEST(buffer_grows_as_it_has_to)
{
    struct bytes bytes;

    bytes_init(&bytes, SIZE_MAX - 1);
    for (unsigned i = 0; i < 10000; i++)
        bytes_put_u8(&bytes, (uint8_t)i);
    ck_assert_int_eq(bytes_finish(&bytes), 0);
    ck_assert_uint_eq(bytes.length, 10000);
    for (unsigned i = 0; i < 10000; i++)
        ck_assert_uint_eq(bytes.data[i], (uint8_t)i);
    bytes_deinit(&bytes);
}
END_TEST

START_TEST(content_can_be_taken)
{
    struct bytes bytes;
    uint8_t *taken;

    bytes_init(&bytes, 10);
    ck_assert_ptr_null(bytes_take(&bytes));
    bytes_put_string(&bytes, "abc");
    ck_assert_int_eq(bytes_finish(&bytes), 0);
    taken = bytes_take(&bytes);
    ck_assert_str_eq((char *)taken, "abc");
    ck_assert_ptr_null(bytes.data);
    ck_assert_uint_eq(bytes.length, 0);
    ck_assert_uint_eq(bytes.limit, 10);
    free(taken);
}
END_TEST

START_TEST(the_beginning_can_be_dropped)
{
    struct bytes bytes;

    bytes_init(&bytes, 10);
    bytes_drop(&bytes, 0);
    bytes_put_string(&bytes, "abcdef");
    bytes_drop(&bytes, 0);
    bytes_drop(&bytes, 4);
    bytes_put_string(&bytes, "gh");
    ck_assert_int_eq(bytes_finish(&bytes), 0);
    ck_assert_str_eq((char *)bytes.data, "efgh");
    bytes_drop(&bytes, 4);
    ck_assert_uint_eq(bytes.length, 0);
    bytes_deinit(&bytes);
}
END_TEST

static int put_much(void *context)
{
    struct bytes bytes;
    int error;

    (void)context;
    bytes_init(&bytes, 4096);
    bytes_put_u8(&bytes, 1);
    for (unsigned i = 0; i < 100; i++)
        bytes_put_format(&bytes, "%u", i);
    bytes_put_u64(&bytes, 1);
    error = bytes_finish(&bytes);
    bytes_deinit(&bytes);
    return error;
}

START_TEST(running_out_of_memory_sticks)
{
    ck_assert_uint_gt(unit_memory_exhaust(put_much, NULL, -ENOMEM), 2);
}
END_TEST

UNIT_TESTS(numbers_are_little_endian, short_input_reads_nothing, run_is_taken_in_place,
           everything_can_be_put, limit_is_kept, buffer_grows_as_it_has_to, content_can_be_taken,
           the_beginning_can_be_dropped, running_out_of_memory_sticks);
