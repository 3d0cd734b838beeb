/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/text.h"

#include <string.h>

#include "lib/bytes.h"

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

size_t text_decode(const uint8_t *text, size_t length, uint32_t *ret_code_point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code_point;
    size_t size;

    if (text[0] < 0x80) {
        *ret_code_point = text[0];
        return 1;
    }
    if (text[0] >= 0xC2 && text[0] <= 0xDF) {
        size = 2;
        code_point = text[0] & 0x1F;
    } else if (text[0] >= 0xE0 && text[0] <= 0xEF) {
        size = 3;
        code_point = text[0] & 0x0F;
    } else if (text[0] >= 0xF0 && text[0] <= 0xF4) {
        size = 4;
        code_point = text[0] & 0x07;
    } else {
        return 0;
    }
    if (length < size)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if (!is_continuation(text[i]))
            return 0;
        code_point = code_point << 6 | (text[i] & 0x3F);
    }
    if (code_point < smallest[size] || code_point > 0x10FFFF ||
        (code_point >= 0xD800 && code_point <= 0xDFFF))
        return 0;
    *ret_code_point = code_point;
    return size;
}

bool text_is_utf8(const void *text, size_t length)
{
    const uint8_t *at = text;

    while (length > 0) {
        uint32_t code_point;
        size_t size = text_decode(at, length, &code_point);

        if (size == 0)
            return false;
        at += size;
        length -= size;
    }
    return true;
}

/* Characters that a terminal obeys, or that make two different texts look alike. */
static bool is_unsafe(uint32_t code_point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1F},     {'\\', '\\'},     {0x7F, 0x9F},     {0xAD, 0xAD},
        {0x61C, 0x61C},   {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},
        {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(ranges); i++) {
        if (code_point >= ranges[i].first && code_point <= ranges[i].last)
            return true;
    }
    return false;
}

void text_put_escaped(struct bytes *out, const void *text, size_t length)
{
    const uint8_t *at = text;

    while (length > 0) {
        uint32_t code_point;
        size_t size = text_decode(at, length, &code_point);
        bool shown = size > 0 && !is_unsafe(code_point);

        if (size == 0)
            size = 1;
        if (shown) {
            bytes_put_run(out, at, size);
        } else {
            for (size_t i = 0; i < size; i++)
                bytes_put_format(out, "\\x%02x", at[i]);
        }
        at += size;
        length -= size;
    }
}

char *text_escape(const void *text, size_t length)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    text_put_escaped(&out, text, length);
    if (bytes_finish(&out) != 0) {
        bytes_deinit(&out);
        return NULL;
    }
    return (char *)bytes_take(&out);
}

size_t text_utf16_units(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t left = strlen(text), units = 0;

    while (left > 0) {
        uint32_t code_point = 0;
        size_t size = text_decode(at, left, &code_point);

        units += code_point > 0xFFFF ? 2 : 1;
        if (size == 0)
            size = 1;
        at += size;
        left -= size;
    }
    return units;
}

bool text_put_utf16(struct bytes *out, const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t left = strlen(text);

    if (!text_is_utf8(text, left))
        return false;
    while (left > 0) {
        uint32_t code_point = 0;
        size_t size = text_decode(at, left, &code_point);

        if (code_point > 0xFFFF) {
            code_point -= 0x10000;
            bytes_put_u16(out, (uint16_t)(0xD800 | code_point >> 10));
            bytes_put_u16(out, (uint16_t)(0xDC00 | (code_point & 0x3FF)));
        } else {
            bytes_put_u16(out, (uint16_t)code_point);
        }
        at += size;
        left -= size;
    }
    return true;
}

static void put_code_point(struct bytes *out, uint32_t code_point)
{
    if (code_point < 0x80) {
        bytes_put_u8(out, (uint8_t)code_point);
    } else if (code_point < 0x800) {
        bytes_put_u8(out, (uint8_t)(0xC0 | code_point >> 6));
        bytes_put_u8(out, (uint8_t)(0x80 | (code_point & 0x3F)));
    } else if (code_point < 0x10000) {
        bytes_put_u8(out, (uint8_t)(0xE0 | code_point >> 12));
        bytes_put_u8(out, (uint8_t)(0x80 | (code_point >> 6 & 0x3F)));
        bytes_put_u8(out, (uint8_t)(0x80 | (code_point & 0x3F)));
    } else {
        bytes_put_u8(out, (uint8_t)(0xF0 | code_point >> 18));
        bytes_put_u8(out, (uint8_t)(0x80 | (code_point >> 12 & 0x3F)));
        bytes_put_u8(out, (uint8_t)(0x80 | (code_point >> 6 & 0x3F)));
        bytes_put_u8(out, (uint8_t)(0x80 | (code_point & 0x3F)));
    }
}

static uint32_t utf16_unit(const uint8_t *utf16, size_t index)
{
    return (uint32_t)(utf16[2 * index] | utf16[2 * index + 1] << 8);
}

void text_put_utf8(struct bytes *out, const uint8_t *utf16, size_t units)
{
    for (size_t i = 0; i < units; i++) {
        uint32_t unit = utf16_unit(utf16, i);

        if (unit == 0)
            return;
        if (unit >= 0xD800 && unit <= 0xDBFF && i + 1 < units) {
            uint32_t low = utf16_unit(utf16, i + 1);

            if (low >= 0xDC00 && low <= 0xDFFF) {
                unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                i++;
            }
        }
        put_code_point(out, unit);
    }
}

bool text_number(const char *text, size_t length, uint64_t largest, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (length == 0 || (length > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';

        if (digit > 9 || digit > largest || number > (largest - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return true;
}

int text_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}
