/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

enum { COUNT_SIZE = 4, UNIT_SIZE = 2 };

bool environment_init(struct environment *environment, const uint8_t *payload, size_t length,
                      struct environment_value *values, size_t n_values, size_t budget)
{
    struct bytes_reader reader = bytes_reader_over(payload, length);
    uint32_t announced;
    uint16_t reserved;

    if (!bytes_get_u32(&reader, &announced) || !bytes_get_u16(&reader, &reserved) ||
        announced < COUNT_SIZE)
        return false;
    *environment = (struct environment){
        .values = values,
        .n_values = n_values,
        .budget = budget,
        .left = announced,
    };
    bytes_init(&environment->text, ENVIRONMENT_STRING_MAX);
    return true;
}

void environment_deinit(struct environment *environment)
{
    bytes_deinit(&environment->text);
}

static struct environment_value *find_wanted(struct environment *environment, const char *name,
                                             size_t length)
{
    for (size_t i = 0; i < environment->n_values; i++) {
        struct environment_value *wanted = &environment->values[i];

        if (strlen(wanted->name) == length && memcmp(wanted->name, name, length) == 0)
            return wanted;
    }
    return NULL;
}

static enum environment_result keep_value(struct environment *environment, const char *string)
{
    const char *equals = strchr(string, '=');
    struct environment_value *wanted;
    size_t length;

    if (!equals)
        return ENVIRONMENT_MORE;
    wanted = find_wanted(environment, string, (size_t)(equals - string));
    if (!wanted || wanted->value || wanted->is_too_long)
        return ENVIRONMENT_MORE;
    length = strlen(equals + 1);
    if (environment->is_cut || length > environment->budget) {
        wanted->is_too_long = true;
        return ENVIRONMENT_MORE;
    }
    wanted->value = strdup(equals + 1);
    if (!wanted->value)
        return ENVIRONMENT_E_MEMORY;
    environment->budget -= length;
    return ENVIRONMENT_MORE;
}

static enum environment_result end_string(struct environment *environment)
{
    enum environment_result result;
    struct bytes utf8;

    if (environment->tail[0] != 0 || environment->tail[1] != 0)
        return ENVIRONMENT_E_ENCODING;
    bytes_init(&utf8, 2 * ENVIRONMENT_STRING_MAX);
    text_put_utf8(&utf8, environment->text.data, environment->text.length / UNIT_SIZE);
    result = bytes_finish(&utf8) == 0 ? keep_value(environment, (const char *)utf8.data)
                                      : ENVIRONMENT_E_MEMORY;
    bytes_deinit(&utf8);
    environment->text.length = 0;
    environment->is_cut = false;
    return result;
}

/* A u32 is complete: the count of strings, or the length of the next one. */
static enum environment_result take_number(struct environment *environment, uint32_t number)
{
    if (!environment->has_count) {
        environment->has_count = true;
        environment->strings_left = number;
        return ENVIRONMENT_MORE;
    }
    if (environment->strings_left == 0)
        return ENVIRONMENT_E_ENCODING;
    environment->strings_left--;
    environment->bytes_left = (uint64_t)number * UNIT_SIZE;
    return environment->bytes_left > environment->left ? ENVIRONMENT_E_ENCODING : ENVIRONMENT_MORE;
}

static enum environment_result feed_number(struct environment *environment, uint8_t byte)
{
    struct bytes_reader reader = bytes_reader_over(environment->number, sizeof environment->number);
    uint32_t number;

    environment->number[environment->n_number++] = byte;
    if (environment->n_number < sizeof environment->number)
        return ENVIRONMENT_MORE;
    environment->n_number = 0;
    if (!bytes_get_u32(&reader, &number))
        return ENVIRONMENT_E_ENCODING;
    return take_number(environment, number);
}

static enum environment_result feed_string(struct environment *environment, const uint8_t *bytes,
                                           size_t length)
{
    size_t room = ENVIRONMENT_STRING_MAX - environment->text.length;

    bytes_put_run(&environment->text, bytes, length < room ? length : room);
    if (environment->text.error != 0)
        return ENVIRONMENT_E_MEMORY;
    if (length > room)
        environment->is_cut = true;
    environment->tail[0] = length > 1 ? bytes[length - 2] : environment->tail[1];
    environment->tail[1] = bytes[length - 1];
    environment->bytes_left -= length;
    return environment->bytes_left == 0 ? end_string(environment) : ENVIRONMENT_MORE;
}

enum environment_result environment_feed(struct environment *environment, const uint8_t *bytes,
                                         size_t length, size_t *ret_taken)
{
    enum environment_result result = ENVIRONMENT_MORE;
    size_t taken = 0;

    while (result == ENVIRONMENT_MORE && taken < length && environment->left > 0) {
        size_t run = 1;

        if (environment->bytes_left > 0)
            run = environment->bytes_left < length - taken ? (size_t)environment->bytes_left
                                                           : length - taken;
        environment->left -= run;
        result = environment->bytes_left > 0 ? feed_string(environment, bytes + taken, run)
                                             : feed_number(environment, bytes[taken]);
        taken += run;
    }
    *ret_taken = taken;
    if (result != ENVIRONMENT_MORE || environment->left > 0)
        return result;
    return environment->has_count && environment->strings_left == 0 &&
                   environment->bytes_left == 0 && environment->n_number == 0
               ? ENVIRONMENT_WHOLE
               : ENVIRONMENT_E_ENCODING;
}

void environment_values_clear(struct environment_value *values, size_t n_values)
{
    for (size_t i = 0; i < n_values; i++) {
        free(values[i].value);
        values[i].value = NULL;
        values[i].is_too_long = false;
    }
}
