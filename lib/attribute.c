/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/attribute.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void attribute_set_none(struct attribute *attribute, enum attribute_state state, const char *why)
{
    free(attribute->block);
    *attribute = (struct attribute){.state = state, .source = attribute->source, .why = why};
}

void attribute_set_unknown(struct attribute *attribute, const char *why)
{
    if (attribute->state == ATTRIBUTE_UNKNOWN)
        attribute_set_none(attribute, ATTRIBUTE_UNKNOWN, why);
}

static size_t count_texts(const char *data, size_t length, size_t count_max, size_t *ret_length)
{
    size_t count = 0, at = 0;

    while (at < length && count < count_max) {
        const char *end = memchr(data + at, '\0', length - at);

        at = end ? (size_t)(end - data) + 1 : length;
        count++;
    }
    *ret_length = at;
    return count;
}

int attribute_set_texts(struct attribute *attribute, const char *data, size_t length,
                        size_t count_max, bool is_cut)
{
    size_t kept, n_texts = count_texts(data, length, count_max, &kept);
    size_t pointers = n_texts * sizeof(char *);
    char *block = malloc(pointers + kept + 1);
    const char **texts = (const char **)(void *)block;
    char *at;

    if (!block)
        return -ENOMEM;
    at = block + pointers;
    memcpy(at, data, kept);
    at[kept] = '\0';
    for (size_t i = 0; i < n_texts; i++) {
        texts[i] = at;
        at += strlen(at) + 1;
    }
    free(attribute->block);
    attribute->state = ATTRIBUTE_PRESENT;
    attribute->why = "";
    attribute->is_cut = is_cut || kept < length;
    attribute->n_texts = n_texts;
    attribute->texts = texts;
    attribute->block = block;
    return 0;
}

size_t attribute_size(const struct attribute *attribute)
{
    const char *last;

    if (attribute->n_texts == 0)
        return 0;
    last = attribute->texts[attribute->n_texts - 1];
    return (size_t)(last - attribute->texts[0]) + strlen(last) + 1;
}
