/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/wide.h"

enum {
    HIGH_FIRST = 0xD800,
    LOW_FIRST = 0xDC00,
    SURROGATE_LAST = 0xDFFF,
    CHARACTER_LAST = 0x10FFFF,
};

static bool is_surrogate(uint32_t character)
{
    return character >= HIGH_FIRST && character <= SURROGATE_LAST;
}

/* The character that begins at a unit, of `n` that are left, and how many it has; none for half of
 * a pair. */
static size_t join(const uint16_t *units, size_t n, uint32_t *ret_character)
{
    if (!is_surrogate(units[0])) {
        *ret_character = units[0];
        return 1;
    }
    if (units[0] >= LOW_FIRST || n < 2 || units[1] < LOW_FIRST || units[1] > SURROGATE_LAST)
        return 0;
    *ret_character =
        0x10000 + ((uint32_t)(units[0] - HIGH_FIRST) << 10) + (uint32_t)(units[1] - LOW_FIRST);
    return 2;
}

/* The bytes of a character; returns how many. */
static size_t encode(uint32_t character, char ret_bytes[static 4])
{
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    const size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    for (size_t i = size; i-- > 1;) {
        ret_bytes[i] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    ret_bytes[0] = (char)(leads[size] | character);
    return size;
}

bool wide_read(const uint16_t *units, size_t n, char *ret_text, size_t capacity)
{
    size_t length = 0;

    for (size_t at = 0; at < n;) {
        char bytes[4];
        uint32_t character = 0;
        const size_t n_units = join(units + at, n - at, &character);
        size_t size;

        if (n_units == 0 || character == 0)
            return false;
        at += n_units;
        size = encode(character, bytes);
        if (size >= capacity - length)
            return false;
        for (size_t i = 0; i < size; i++)
            ret_text[length++] = bytes[i];
    }
    if (length >= capacity)
        return false;
    ret_text[length] = '\0';
    return true;
}

/* How many bytes a character has that begins with this one; 0 for none. */
static size_t size_of(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead < 0xE0)
        return 2;
    if (lead >= 0xE0 && lead < 0xF0)
        return 3;
    return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

uint32_t wide_decode(const char *text, size_t *ret_size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t size = size_of((uint8_t)text[0]);
    uint32_t character = size < 2 ? (uint8_t)text[0] : (uint8_t)text[0] & (0x7FU >> size);

    *ret_size = 1;
    /* The NUL at the end is no such byte, so nothing behind it is read. */
    for (size_t i = 1; i < size; i++) {
        if (((uint8_t)text[i] & 0xC0) != 0x80)
            return '?';
        character = character << 6 | ((uint8_t)text[i] & 0x3F);
    }
    if (size == 0 || character < least[size] || character > CHARACTER_LAST ||
        is_surrogate(character))
        return '?';
    *ret_size = size;
    return character < 0x20 || (character >= 0x7F && character < 0xA0) ? '?' : character;
}

size_t wide_write(uint32_t character, uint16_t ret_units[static 2])
{
    if (character < 0x10000) {
        ret_units[0] = (uint16_t)character;
        return 1;
    }
    ret_units[0] = (uint16_t)(HIGH_FIRST + ((character - 0x10000) >> 10));
    ret_units[1] = (uint16_t)(LOW_FIRST + ((character - 0x10000) & 0x3FF));
    return 2;
}
