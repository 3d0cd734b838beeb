/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/guid.h"

#include <string.h>

#include "tests/unit/unit.h"

START_TEST(text_has_its_fields_in_order)
{
    struct guid guid;
    char text[GUID_TEXT_SIZE];

    ck_assert(guid_parse("123e4567-e89b-12d3-a456-426614174000", &guid));
    unit_assert_bytes(guid.bytes, sizeof guid.bytes, "C");
    guid_format(&guid, text);
    ck_assert_str_eq(text, "123e4567-e89b-12d3-a456-426614174000");

    ck_assert(guid_parse("{CF0D821E-299B-5307-A3D8-B283C03916DD}", &guid));
    unit_assert_bytes(guid.bytes, sizeof guid.bytes, "G");
    guid_format(&guid, text);
    ck_assert_str_eq(text, "cf0d821e-299b-5307-a3d8-b283c03916dd");
}
END_TEST

START_TEST(everything_else_is_refused)
{
    static const char *const texts[] = {
        "",
        "{",
        "{}",
        "123e4567",
        "123e4567-e89b-12d3-a456-42661417400",
        "123e4567-e89b-12d3-a456-4266141740000",
        "123e4567-e89b-12d3-a456-426614174000 ",
        " 123e4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-426614174000}",
        "{123e4567-e89b-12d3-a456-426614174000",
        "{123e4567-e89b-12d3-a456-426614174000}}",
        "(123e4567-e89b-12d3-a456-426614174000)",
        "123e4567e89b12d3a456426614174000",
        "123e4567-e89b-12d3-a4-56426614174000",
        "123e4567-e89b-12d3-a456_426614174000",
        "g23e4567-e89b-12d3-a456-426614174000",
        "1 3e4567-e89b-12d3-a456-426614174000",
        "-23e4567-e89b-12d3-a456-426614174000",
        "0x3e4567-e89b-12d3-a456-426614174000",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct guid guid = {.bytes = {0x55}};

        ck_assert_msg(!guid_parse(texts[i], &guid), "%s", texts[i]);
        ck_assert_uint_eq(guid.bytes[0], 0x55);
    }
}
END_TEST

START_TEST(every_cut_is_refused)
{
    static const char whole[] = "{123e4567-e89b-12d3-a456-426614174000}";

    for (size_t length = 0; length < strlen(whole); length++) {
        char text[sizeof whole] = {0};
        struct guid guid;

        memcpy(text, whole, length);
        ck_assert(!guid_parse(text, &guid));
    }
}
END_TEST

START_TEST(every_guid_survives_the_round_trip)
{
    uint64_t state = 3;

    for (unsigned round = 0; round < 1000; round++) {
        struct guid guid, back;
        char text[GUID_TEXT_SIZE];

        for (size_t i = 0; i < GUID_SIZE; i++)
            guid.bytes[i] = (uint8_t)unit_random(&state);
        guid_format(&guid, text);
        ck_assert_uint_eq(strlen(text), GUID_TEXT_SIZE - 1);
        ck_assert(guid_parse(text, &back));
        ck_assert_int_eq(guid_compare(&guid, &back), 0);
    }
}
END_TEST

START_TEST(order_is_that_of_the_bytes)
{
    struct guid a = {.bytes = {1, 255}}, b = {.bytes = {2, 0}};

    ck_assert_int_lt(guid_compare(&a, &b), 0);
    ck_assert_int_gt(guid_compare(&b, &a), 0);
    ck_assert_int_eq(guid_compare(&a, &a), 0);
}
END_TEST

UNIT_TESTS(text_has_its_fields_in_order, everything_else_is_refused, every_cut_is_refused,
           every_guid_survives_the_round_trip, order_is_that_of_the_bytes);
