/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/result.h"

#include "shim/wide.h"

/* What does not fit is left out, and a text without its last line is none. */
static void put_unit(struct result *result, uint16_t unit)
{
    if (result->n + 1 < PRIMER_RESULT_MAX)
        result->text[result->n++] = unit;
}

void result_begin(struct result *result)
{
    result->n = 0;
    result_put(result, PRIMER_VERSION "\n");
}

void result_put(struct result *result, const char *text)
{
    for (; *text != '\0'; text++)
        put_unit(result, (uint16_t)*text);
}

void result_put_number(struct result *result, size_t number)
{
    char digits[21];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    result_put(result, digits + at);
}

void result_put_words(struct result *result, const char *words)
{
    size_t length = 0;

    while (words[length] != '\0') {
        uint16_t units[2];
        size_t size;
        const uint32_t character = wide_decode(words + length, &size);
        const size_t n = wide_write(character, units);

        if (length + size > PRIMER_WORDS_MAX)
            return;
        length += size;
        for (size_t i = 0; i < n; i++)
            put_unit(result, units[i]);
    }
}

void result_end(struct result *result)
{
    result_put(result, PRIMER_END "\n");
    result->text[result->n] = 0;
}
