/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/advertise.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* Vector 1 of the protocol. */
static const char vector[] = "41 44 56 52 5F 56 31 00 C 39 30 00 00 00 00 00 00 00 00";

START_TEST(advertise_is_read)
{
    struct unit_bytes bytes = unit_vector(vector), cookie = unit_vector("C");
    struct advertise advertise;

    ck_assert_uint_eq(bytes.length, ADVERTISE_SIZE);
    ck_assert(advertise_read(bytes.data, &advertise));
    ck_assert_mem_eq(advertise.cookie.bytes, cookie.data, GUID_SIZE);
    ck_assert_uint_eq(advertise.pid, 12345);
}
END_TEST

START_TEST(advertise_is_written)
{
    struct unit_bytes bytes = unit_vector(vector);
    uint8_t written[ADVERTISE_SIZE];
    struct advertise advertise;

    ck_assert(advertise_read(bytes.data, &advertise));
    memset(written, 0xFF, sizeof written);
    advertise_write(&advertise, written);
    unit_assert_bytes(written, sizeof written, vector);
}
END_TEST

START_TEST(pid_is_64_bits_wide)
{
    struct unit_bytes bytes =
        unit_vector("41 44 56 52 5F 56 31 00 C 01 02 03 04 05 06 07 88 FF FF");
    struct advertise advertise;

    /* the reserved bytes are not looked at */
    ck_assert(advertise_read(bytes.data, &advertise));
    ck_assert_uint_eq(advertise.pid, 0x8807060504030201);
}
END_TEST

START_TEST(every_byte_of_the_magic_counts)
{
    for (size_t i = 0; i < ADVERTISE_SIZE; i++) {
        struct unit_bytes bytes = unit_vector(vector);
        struct advertise advertise = {.pid = 5};
        bool in_magic = i < 8;

        bytes.data[i] ^= 0x01;
        ck_assert(advertise_is_possible(bytes.data, i));
        ck_assert(advertise_is_possible(bytes.data, i + 1) == !in_magic);
        ck_assert(advertise_read(bytes.data, &advertise) == !in_magic);
        ck_assert(!in_magic || advertise.pid == 5);
    }
}
END_TEST

START_TEST(every_beginning_is_possible)
{
    struct unit_bytes bytes = unit_vector(vector);

    for (size_t length = 0; length <= bytes.length; length++) {
        uint8_t *copy = unit_copy(bytes.data, length);

        ck_assert(advertise_is_possible(copy, length));
        free(copy);
    }
    ck_assert(!advertise_is_possible((const uint8_t *)"GET / HTTP/1.1", 14));
    ck_assert(!advertise_is_possible((const uint8_t *)"D", 1));
}
END_TEST

UNIT_TESTS(advertise_is_read, advertise_is_written, pid_is_64_bits_wide,
           every_byte_of_the_magic_counts, every_beginning_is_possible);
