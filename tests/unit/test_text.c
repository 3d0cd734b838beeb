/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

START_TEST(utf8_is_read_strictly)
{
    static const struct {
        const char *text;
        size_t size; /* 0: not UTF-8 */
        uint32_t code_point;
    } cases[] = {
        {"a", 1, 'a'},
        {"\x7F", 1, 0x7F},
        {"\xC2\x80", 2, 0x80},
        {"\xDF\xBF", 2, 0x7FF},
        {"\xE0\xA0\x80", 3, 0x800},
        {"\xED\x9F\xBF", 3, 0xD7FF},
        {"\xEE\x80\x80", 3, 0xE000},
        {"\xEF\xBF\xBF", 3, 0xFFFF},
        {"\xF0\x90\x80\x80", 4, 0x10000},
        {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF},
        /* overlong */
        {"\xC0\xAF", 0, 0},
        {"\xC1\xBF", 0, 0},
        {"\xE0\x9F\xBF", 0, 0},
        {"\xF0\x8F\xBF\xBF", 0, 0},
        /* surrogates */
        {"\xED\xA0\x80", 0, 0},
        {"\xED\xBF\xBF", 0, 0},
        /* past the last code point */
        {"\xF4\x90\x80\x80", 0, 0},
        {"\xF5\x80\x80\x80", 0, 0},
        {"\xFF", 0, 0},
        /* a continuation at the start, and none where one belongs */
        {"\x80", 0, 0},
        {"\xBF", 0, 0},
        {"\xC3\x28", 0, 0},
        {"\xE2\x82\x28", 0, 0},
        {"\xF0\x9F\x98\x28", 0, 0},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t length = strlen(cases[i].text);
        uint8_t *copy = unit_copy(cases[i].text, length);
        uint32_t code_point = 0;

        ck_assert_uint_eq(text_decode(copy, length, &code_point), cases[i].size);
        ck_assert_uint_eq(code_point, cases[i].code_point);
        ck_assert(text_is_utf8(copy, length) == (cases[i].size > 0));
        free(copy);
    }
}
END_TEST

START_TEST(cut_utf8_is_not_utf8)
{
    static const char *const texts[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        for (size_t length = 1; length < strlen(texts[i]); length++) {
            uint8_t *copy = unit_copy(texts[i], length);
            uint32_t code_point;

            ck_assert_uint_eq(text_decode(copy, length, &code_point), 0);
            ck_assert(!text_is_utf8(copy, length));
            free(copy);
        }
    }
    ck_assert(text_is_utf8("", 0));
    ck_assert(text_is_utf8("a\0b", 3));
}
END_TEST

static void assert_escaped(const char *text, size_t length, const char *expected)
{
    char *escaped = text_escape(text, length);

    ck_assert_ptr_nonnull(escaped);
    ck_assert_str_eq(escaped, expected);
    free(escaped);
}

START_TEST(what_is_shown_is_harmless)
{
    assert_escaped("", 0, "");
    assert_escaped("plain /opt/a b~", 15, "plain /opt/a b~");
    assert_escaped("a\0b", 3, "a\\x00b");
    assert_escaped("\x1B[2J\r\n\t\x7F", 8, "\\x1b[2J\\x0d\\x0a\\x09\\x7f");
    assert_escaped("\\x41", 4, "\\x5cx41");
    assert_escaped("\xC3\xA9\xF0\x9F\x98\x80", 6, "\xC3\xA9\xF0\x9F\x98\x80");
    /* C1, soft hyphen, right-to-left override, zero-width space, BOM, tag */
    assert_escaped("\xC2\x9B", 2, "\\xc2\\x9b");
    assert_escaped("\xC2\xAD", 2, "\\xc2\\xad");
    assert_escaped("\xE2\x80\xAE", 3, "\\xe2\\x80\\xae");
    assert_escaped("\xE2\x80\x8B", 3, "\\xe2\\x80\\x8b");
    assert_escaped("\xEF\xBB\xBF", 3, "\\xef\\xbb\\xbf");
    assert_escaped("\xF3\xA0\x80\x81", 4, "\\xf3\\xa0\\x80\\x81");
    /* not UTF-8: byte by byte, and what follows is read again */
    assert_escaped("\xFF\xC3", 2, "\\xff\\xc3");
    assert_escaped("\xE2\x82z", 3, "\\xe2\\x82z");
}
END_TEST

static int digit(char shown)
{
    return shown <= '9' ? shown - '0' : shown - 'a' + 10;
}

/* Turns the escapes back into bytes, which is possible without a doubt. */
static size_t unescape(const char *shown, uint8_t *ret_bytes)
{
    size_t length = 0;

    while (*shown != '\0') {
        if (*shown == '\\') {
            ret_bytes[length++] = (uint8_t)(digit(shown[2]) << 4 | digit(shown[3]));
            shown += 4;
        } else {
            ret_bytes[length++] = (uint8_t)*shown++;
        }
    }
    return length;
}

START_TEST(escapes_lose_nothing)
{
    uint64_t state = 1;

    for (unsigned round = 0; round < 2000; round++) {
        uint8_t bytes[24], back[sizeof bytes];
        size_t length = unit_random(&state) % (sizeof bytes + 1);
        char *shown;

        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)unit_random(&state);
        shown = text_escape(bytes, length);
        ck_assert_ptr_nonnull(shown);
        ck_assert(text_is_utf8(shown, strlen(shown)));
        ck_assert_uint_eq(unescape(shown, back), length);
        ck_assert_mem_eq(back, bytes, length);
        free(shown);
    }
}
END_TEST

START_TEST(utf16_is_counted)
{
    ck_assert_uint_eq(text_utf16_units(""), 0);
    ck_assert_uint_eq(text_utf16_units("abc"), 3);
    ck_assert_uint_eq(text_utf16_units("\xC3\xA9"), 1);
    ck_assert_uint_eq(text_utf16_units("\xE2\x82\xAC"), 1);
    ck_assert_uint_eq(text_utf16_units("\xF0\x9F\x98\x80"), 2);
    ck_assert_uint_eq(text_utf16_units("\xFF\xFFz"), 3);
}
END_TEST

START_TEST(utf16_is_written)
{
    struct bytes out;

    bytes_init(&out, 100);
    ck_assert(text_put_utf16(&out, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF"));
    ck_assert_int_eq(bytes_finish(&out), 0);
    unit_assert_bytes(out.data, out.length, "61 00 E9 00 AC 20 3D D8 00 DE FF DB FF DF");
    ck_assert(!text_put_utf16(&out, "abc\xFF"));
    ck_assert_uint_eq(out.length, 14);
    bytes_deinit(&out);
}
END_TEST

static void assert_utf8(const char *vector, const char *expected)
{
    struct unit_bytes utf16 = unit_vector(vector);
    uint8_t *copy = unit_copy(utf16.data, utf16.length);
    struct bytes out;

    bytes_init(&out, 100);
    text_put_utf8(&out, copy, utf16.length / 2);
    ck_assert_int_eq(bytes_finish(&out), 0);
    ck_assert_str_eq((char *)out.data, expected);
    bytes_deinit(&out);
    free(copy);
}

START_TEST(utf16_is_read)
{
    assert_utf8("61 00 E9 00 AC 20 3D D8 00 DE FF DB FF DF",
                "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF");
    assert_utf8("61 00 00 00 62 00", "a");
    assert_utf8("7F 00 80 00", "\x7F\xC2\x80");
    assert_utf8("00 D8 00 DC FF DB FF DF", "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
    assert_utf8("FF 07 00 08 FF FF", "\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF");
}
END_TEST

/* Nothing is lost or guessed: a lone surrogate is kept, and shows as what it is. */
START_TEST(lone_surrogates_stay_visible)
{
    assert_utf8("3D D8", "\xED\xA0\xBD");
    assert_utf8("00 DE 61 00", "\xED\xB8\x80"
                               "a");
    assert_utf8("3D D8 61 00", "\xED\xA0\xBD"
                               "a");
    assert_utf8("3D D8 3D D8 00 DE", "\xED\xA0\xBD\xF0\x9F\x98\x80");
    assert_escaped("\xED\xA0\xBD", 3, "\\xed\\xa0\\xbd");
}
END_TEST

START_TEST(utf16_survives_the_round_trip)
{
    uint64_t state = 7;

    for (unsigned round = 0; round < 2000; round++) {
        uint8_t utf16[32];
        struct bytes utf8, back;

        for (size_t i = 0; i < sizeof utf16; i += 2) {
            /* no NUL and no surrogates */
            uint32_t unit = 1 + unit_random(&state) % 0xD7FF;

            utf16[i] = (uint8_t)unit;
            utf16[i + 1] = (uint8_t)(unit >> 8);
        }
        bytes_init(&utf8, 100);
        bytes_init(&back, 100);
        text_put_utf8(&utf8, utf16, sizeof utf16 / 2);
        ck_assert_int_eq(bytes_finish(&utf8), 0);
        ck_assert(text_put_utf16(&back, (char *)utf8.data));
        ck_assert_uint_eq(text_utf16_units((char *)utf8.data), sizeof utf16 / 2);
        ck_assert_uint_eq(back.length, sizeof utf16);
        ck_assert_mem_eq(back.data, utf16, sizeof utf16);
        bytes_deinit(&utf8);
        bytes_deinit(&back);
    }
}
END_TEST

START_TEST(numbers_are_read_strictly)
{
    static const struct {
        const char *text;
        uint64_t largest;
        bool is_number;
        uint64_t number;
    } cases[] = {
        {"0", 0, true, 0},
        {"0", 9, true, 0},
        {"7", 7, true, 7},
        {"8", 7, false, 0},
        {"9", 5, false, 0},
        {"10", 9, false, 0},
        {"2147483647", INT32_MAX, true, INT32_MAX},
        {"2147483648", INT32_MAX, false, 0},
        {"4294967295", UINT32_MAX, true, UINT32_MAX},
        {"4294967296", UINT32_MAX, false, 0},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"18446744073709551625", UINT64_MAX, false, 0},
        {"99999999999999999999999999", UINT64_MAX, false, 0},
        {"", 9, false, 0},
        {"00", 9, false, 0},
        {"01", 9, false, 0},
        {"+1", 9, false, 0},
        {"-1", UINT64_MAX, false, 0},
        {" 1", 9, false, 0},
        {"1 ", 9, false, 0},
        {"1a", 99, false, 0},
        {"a", 99, false, 0},
        {"0x1", 99, false, 0},
        {"/", 99, false, 0},
        {":", 99, false, 0},
        {"\xB1", 99, false, 0},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        size_t length = strlen(cases[i].text);
        uint8_t *copy = unit_copy(cases[i].text, length);
        uint64_t number = 0;

        ck_assert_msg(text_number((char *)copy, length, cases[i].largest, &number) ==
                          cases[i].is_number,
                      "%s", cases[i].text);
        ck_assert_uint_eq(number, cases[i].number);
        free(copy);
    }
    ck_assert(!text_number("1\0", 2, 99, &(uint64_t){0}));
}
END_TEST

static int escape_much(void *context)
{
    char *escaped;

    (void)context;
    escaped = text_escape("\1\2\3\4\5\6\7\1\2\3\4\5\6\7\1\2\3\4\5\6\7", 21);
    if (!escaped)
        return -ENOMEM;
    free(escaped);
    return 0;
}

START_TEST(escaping_survives_exhaustion)
{
    ck_assert_uint_gt(unit_memory_exhaust(escape_much, NULL, -ENOMEM), 1);
}
END_TEST

START_TEST(hexadecimal_digits_have_values)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    size_t n_others = 0;

    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(text_hex_digit(lower[i]), i);
        ck_assert_int_eq(text_hex_digit(upper[i]), i);
    }
    for (int c = -128; c < 128; c++)
        n_others += text_hex_digit((char)c) < 0;
    ck_assert_uint_eq(n_others, 256 - 22);
}
END_TEST

UNIT_TESTS(utf8_is_read_strictly, cut_utf8_is_not_utf8, what_is_shown_is_harmless,
           escapes_lose_nothing, utf16_is_counted, utf16_is_written, utf16_is_read,
           lone_surrogates_stay_visible, utf16_survives_the_round_trip, numbers_are_read_strictly,
           hexadecimal_digits_have_values, escaping_survives_exhaustion);
