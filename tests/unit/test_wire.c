/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

START_TEST(header_is_read)
{
    struct unit_bytes bytes = unit_vector("M 24 00 04 03 00 00");
    struct wire_header header;

    ck_assert_int_eq(wire_header_read(bytes.data, &header), 0);
    ck_assert_uint_eq(header.size, 36);
    ck_assert_uint_eq(header.set, 4);
    ck_assert_uint_eq(header.id, 3);

    bytes = unit_vector("M FF FF FF 00 AA BB");
    ck_assert_int_eq(wire_header_read(bytes.data, &header), 0);
    ck_assert_uint_eq(header.size, 65535);
    ck_assert_uint_eq(header.set, WIRE_SET_SERVER);
    ck_assert_uint_eq(header.id, 0);
}
END_TEST

START_TEST(header_smaller_than_itself_is_refused)
{
    struct unit_bytes bytes = unit_vector("M 13 00 04 03 00 00");
    struct wire_header header = {.size = 7};

    ck_assert_int_eq(wire_header_read(bytes.data, &header), WIRE_E_SIZE);
    bytes.data[14] = 0;
    ck_assert_int_eq(wire_header_read(bytes.data, &header), WIRE_E_SIZE);
    ck_assert_uint_eq(header.size, 7);
    bytes.data[14] = 20;
    ck_assert_int_eq(wire_header_read(bytes.data, &header), 0);
}
END_TEST

START_TEST(every_byte_of_the_magic_counts)
{
    struct unit_bytes good = unit_vector("M 14 00 04 00 00 00");

    for (size_t i = 0; i < WIRE_HEADER_SIZE; i++) {
        struct unit_bytes bytes = good;
        struct wire_header header;
        bool in_magic = i < 14;

        bytes.data[i] ^= 0x20;
        ck_assert(wire_magic_is_possible(bytes.data, i));
        ck_assert(wire_magic_is_possible(bytes.data, i + 1) == !in_magic);
        ck_assert(wire_magic_is_possible(bytes.data, bytes.length) == !in_magic);
        ck_assert((wire_header_read(bytes.data, &header) == WIRE_E_MAGIC) == in_magic);
    }
}
END_TEST

static struct bytes message_of(const char *text, size_t limit, int *ret_result)
{
    struct bytes message;

    bytes_init(&message, limit);
    wire_message_begin(&message, 4, 7);
    wire_put_string(&message, text);
    *ret_result = wire_message_end(&message);
    return message;
}

START_TEST(message_knows_its_size)
{
    int result;
    struct bytes message = message_of("/opt/h.dll", WIRE_MESSAGE_MAX, &result);

    ck_assert_int_eq(result, 0);
    unit_assert_bytes(message.data, message.length,
                      "M 2E 00 04 07 00 00 0B 00 00 00 2F 00 6F 00 70 00 74 00 2F 00 68 00 2E 00 "
                      "64 00 6C 00 6C 00 00 00");
    ck_assert_uint_eq(message.length, WIRE_HEADER_SIZE + wire_string_size("/opt/h.dll"));
    bytes_deinit(&message);
}
END_TEST

START_TEST(null_and_empty_strings_differ)
{
    int result;
    struct bytes message = message_of(NULL, WIRE_MESSAGE_MAX, &result);

    ck_assert_int_eq(result, 0);
    unit_assert_bytes(message.data, message.length, "M 18 00 04 07 00 00 00 00 00 00");
    ck_assert_uint_eq(wire_string_size(NULL), 4);
    bytes_deinit(&message);
    message = message_of("", WIRE_MESSAGE_MAX, &result);
    ck_assert_int_eq(result, 0);
    unit_assert_bytes(message.data, message.length, "M 1A 00 04 07 00 00 01 00 00 00 00 00");
    ck_assert_uint_eq(wire_string_size(""), WIRE_STRING_OVERHEAD);
    bytes_deinit(&message);
}
END_TEST

/* The longest path of ApplyStartupHook is 32754 units; one more needs 65536 bytes or so. */
START_TEST(size_field_never_wraps)
{
    static const size_t limits[] = {WIRE_MESSAGE_MAX, 1000000};
    char text[32756];

    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
        struct bytes message;
        int result;

        memset(text, 'x', sizeof text);
        text[32754] = '\0';
        message = message_of(text, limits[i], &result);
        ck_assert_int_eq(result, 0);
        ck_assert_uint_eq(message.length, 65534);
        ck_assert_uint_eq(message.data[14] | message.data[15] << 8, 65534);
        bytes_deinit(&message);
        text[32754] = 'x';
        text[32755] = '\0';
        message = message_of(text, limits[i], &result);
        ck_assert_int_eq(result, WIRE_E_TOO_LONG);
        bytes_deinit(&message);
    }
}
END_TEST

START_TEST(text_that_is_not_utf8_is_refused)
{
    static const char *const texts[] = {"\xFF", "a\xC3", "\xED\xA0\x80"};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        int result;
        struct bytes message = message_of(texts[i], WIRE_MESSAGE_MAX, &result);

        ck_assert_int_eq(result, WIRE_E_TEXT);
        bytes_deinit(&message);
    }
}
END_TEST

static void assert_string(const char *vector, const char *expected, size_t left)
{
    struct unit_bytes bytes = unit_vector(vector);
    uint8_t *copy = unit_copy(bytes.data, bytes.length);
    struct bytes_reader reader = bytes_reader_over(copy, bytes.length);
    char *text = NULL;

    ck_assert(wire_get_string(&reader, &text));
    if (expected)
        ck_assert_str_eq(text, expected);
    else
        ck_assert_ptr_null(text);
    ck_assert_uint_eq(reader.left, left);
    free(text);
    free(copy);
}

START_TEST(strings_are_read)
{
    assert_string("00 00 00 00", NULL, 0);
    assert_string("01 00 00 00 00 00", "", 0);
    assert_string("02 00 00 00 41 00 00 00 FF", "A", 1);
    assert_string("04 00 00 00 E9 00 3D D8 00 DE 00 00", "\xC3\xA9\xF0\x9F\x98\x80", 0);
    /* C code on the other side stops at the first NUL */
    assert_string("04 00 00 00 41 00 00 00 42 00 00 00 FF FF", "A", 2);
}
END_TEST

static void assert_no_string(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = unit_copy(bytes, length);
    struct bytes_reader reader = bytes_reader_over(copy, length);
    char nothing = 0, *text = &nothing;

    ck_assert(!wire_get_string(&reader, &text));
    ck_assert_ptr_eq(text, &nothing);
    ck_assert_ptr_eq(reader.at, copy);
    ck_assert_uint_eq(reader.left, length);
    free(copy);
}

START_TEST(strings_that_do_not_fit_are_refused)
{
    struct unit_bytes good = unit_vector("04 00 00 00 E9 00 3D D8 00 DE 00 00");
    static const char *const vectors[] = {
        "01 00 00 00 41 00",       /* the last unit is not NUL */
        "01 00 00 00 00 01",       /* nor is one of its bytes enough */
        "02 00 00 00 00 00 41 00", /* an earlier NUL does not count */
        "FF FF FF FF 00 00",       /* counts that are not there */
        "01 00 00 80 00 00",       /* and whose double does not fit 32 bits */
        "00 00 00 80 00 00",
    };

    for (size_t length = 0; length < good.length; length++)
        assert_no_string(good.data, length);
    for (size_t i = 0; i < ARRAY_LENGTH(vectors); i++) {
        struct unit_bytes bytes = unit_vector(vectors[i]);

        assert_no_string(bytes.data, bytes.length);
    }
}
END_TEST

START_TEST(random_strings_do_no_harm)
{
    uint64_t state = 11;
    unsigned n_read = 0;

    for (unsigned round = 0; round < 20000; round++) {
        uint8_t bytes[24];
        size_t length = unit_random(&state) % (sizeof bytes + 1);
        struct bytes_reader reader;
        uint8_t *copy;
        char *text;

        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)unit_random(&state);
        if (length >= 4) {
            /* a count that has a chance, and often a good end */
            memset(bytes + 1, 0, 3);
            bytes[0] %= 12;
            if (round % 2 == 0 && 4 + 2 * (size_t)bytes[0] <= length && bytes[0] > 0)
                memset(bytes + 2 + 2 * (size_t)bytes[0], 0, 2);
        }
        copy = unit_copy(bytes, length);
        reader = bytes_reader_over(copy, length);
        if (wire_get_string(&reader, &text)) {
            n_read++;
            free(text);
        }
        free(copy);
    }
    ck_assert_uint_gt(n_read, 100);
}
END_TEST

START_TEST(guid_is_raw)
{
    struct unit_bytes bytes = unit_vector("C");
    struct bytes out;
    struct guid guid;

    for (size_t length = 0; length <= bytes.length; length++) {
        uint8_t *copy = unit_copy(bytes.data, length);
        struct bytes_reader reader = bytes_reader_over(copy, length);

        ck_assert(wire_get_guid(&reader, &guid) == (length == bytes.length));
        free(copy);
    }
    ck_assert_mem_eq(guid.bytes, bytes.data, GUID_SIZE);
    bytes_init(&out, 16);
    wire_put_guid(&out, &guid);
    unit_assert_bytes(out.data, out.length, "C");
    bytes_deinit(&out);
}
END_TEST

static int write_message(void *context)
{
    int result;
    struct bytes message = message_of(context, WIRE_MESSAGE_MAX, &result);

    bytes_deinit(&message);
    return result;
}

static int read_string(void *context)
{
    struct bytes_reader reader = *(struct bytes_reader *)context;
    char *text;

    if (!wire_get_string(&reader, &text))
        return -ENOMEM;
    free(text);
    return 0;
}

START_TEST(running_out_of_memory_is_said)
{
    struct unit_bytes bytes = unit_vector("03 00 00 00 6E 00 6F 00 00 00");
    struct bytes_reader reader = bytes_reader_over(bytes.data, bytes.length);
    char text[500] = {0};

    memset(text, 'x', sizeof text - 1);
    ck_assert_uint_gt(unit_memory_exhaust(write_message, text, -ENOMEM), 1);
    ck_assert_uint_gt(unit_memory_exhaust(read_string, &reader, -ENOMEM), 0);
}
END_TEST

UNIT_TESTS(header_is_read, header_smaller_than_itself_is_refused, every_byte_of_the_magic_counts,
           message_knows_its_size, null_and_empty_strings_differ, size_field_never_wraps,
           text_that_is_not_utf8_is_refused, strings_are_read, strings_that_do_not_fit_are_refused,
           random_strings_do_no_harm, guid_is_raw, running_out_of_memory_is_said);
