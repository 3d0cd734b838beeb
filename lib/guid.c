/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/guid.h"

#include <string.h>

#include "lib/text.h"

/* Which byte each pair of digits in the text form shows. */
static const uint8_t text_order[GUID_SIZE] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

static bool dash_before(size_t pair)
{
    return pair == 4 || pair == 6 || pair == 8 || pair == 10;
}

void guid_format(const struct guid *guid, char ret_text[static GUID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *at = ret_text;

    for (size_t pair = 0; pair < GUID_SIZE; pair++) {
        uint8_t byte = guid->bytes[text_order[pair]];

        if (dash_before(pair))
            *at++ = '-';
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 0x0F];
    }
    *at = '\0';
}

bool guid_parse(const char *text, struct guid *ret_guid)
{
    bool braced = text[0] == '{';
    const char *at = text + (braced ? 1 : 0);
    struct guid guid;

    for (size_t pair = 0; pair < GUID_SIZE; pair++) {
        int high, low;

        if (dash_before(pair) && *at++ != '-')
            return false;
        high = text_hex_digit(at[0]);
        low = high < 0 ? -1 : text_hex_digit(at[1]);
        if (low < 0)
            return false;
        guid.bytes[text_order[pair]] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    if (braced && *at++ != '}')
        return false;
    if (*at != '\0')
        return false;
    *ret_guid = guid;
    return true;
}

int guid_compare(const struct guid *a, const struct guid *b)
{
    return memcmp(a->bytes, b->bytes, GUID_SIZE);
}
