/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "lib/hresult.h"
#include "lib/text.h"
#include "lib/wire.h"
#include "tests/fake/utf8.h"

/* What setenv's failure becomes on NativeAOT. */
#define HRESULT_SETENV_FAILED UINT32_C(0xFFFFFFFF)

/* A filling variable: its length without what a string takes in a message, and the least and the
 * most of it. */
enum { FILLER_NAME = 19, FILLER_MAX = 1000 };

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void variables_deinit(struct variables *variables)
{
    free_list(variables->list, variables->n);
    free_list(variables->launched, variables->n_launched);
    *variables = (struct variables){0};
}

static bool add(char ***list, size_t *n, char *string)
{
    char **longer;

    if (!string)
        return false;
    longer = realloc(*list, (*n + 1) * sizeof *longer);
    if (!longer) {
        free(string);
        return false;
    }
    longer[(*n)++] = string;
    *list = longer;
    return true;
}

bool variables_init(struct variables *variables, bool is_private)
{
    *variables = (struct variables){.is_private = is_private};
    for (char **at = environ; at && *at; at++) {
        if (!add(&variables->launched, &variables->n_launched, strdup(*at)))
            return false;
        if (is_private && !add(&variables->list, &variables->n, utf8_repair(*at)))
            return false;
    }
    return true;
}

/* The bytes that ProcessEnvironment streams, the count included. */
static size_t stream_size(const struct variables *variables)
{
    size_t size = 4;

    for (size_t i = 0; i < variables->n; i++)
        size += wire_string_size(variables->list[i]);
    return size;
}

/* The length of the next filler when `left` bytes are to be filled: as long as it may be, but never
 * so that less than the shortest one is left. */
static size_t filler_length(size_t left)
{
    const size_t shortest = WIRE_STRING_OVERHEAD + 2 * FILLER_NAME;
    size_t length, rest;

    if (left <= shortest)
        return FILLER_NAME;
    length = (left - WIRE_STRING_OVERHEAD) / 2;
    if (length <= FILLER_MAX)
        return length;
    rest = left - WIRE_STRING_OVERHEAD - 2 * (size_t)FILLER_MAX;
    return rest < shortest ? FILLER_MAX - shortest / 2 : FILLER_MAX;
}

bool variables_fill(struct variables *variables, size_t size)
{
    size_t have = stream_size(variables);

    for (unsigned number = 0; have < size; number++) {
        size_t length = filler_length(size - have);
        char text[FILLER_MAX + 1];

        memset(text, 'x', length);
        text[length] = '\0';
        /* The name takes as many bytes as FILLER_NAME says. */
        snprintf(text, FILLER_NAME + 1, "FAKE_FILLER_%06u=", number % 1000000);
        if (length > FILLER_NAME)
            text[FILLER_NAME] = 'x';
        if (!add(&variables->list, &variables->n, strdup(text)))
            return false;
        have += wire_string_size(text);
    }
    return true;
}

static bool has_name(const char *string, const char *name, size_t length)
{
    return strncmp(string, name, length) == 0 && string[length] == '=';
}

static const char *find(char *const *list, size_t n, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < n; i++) {
        if (has_name(list[i], name, length))
            return list[i] + length + 1;
    }
    return NULL;
}

const char *variables_get(const struct variables *variables, const char *name)
{
    return variables->is_private ? find(variables->list, variables->n, name) : getenv(name);
}

const char *variables_get_launched(const struct variables *variables, const char *name)
{
    return find(variables->launched, variables->n_launched, name);
}

static uint32_t set_private(struct variables *variables, const char *name, const char *value)
{
    size_t length = strlen(name) + strlen(value) + 2;
    size_t name_length = strcspn(name, "=");
    char *string = malloc(length);

    if (!string)
        return UINT32_C(0x80070008);
    snprintf(string, length, "%s=%s", name, value);
    for (size_t i = 0; i < variables->n; i++) {
        if (has_name(variables->list[i], name, name_length)) {
            free(variables->list[i]);
            variables->list[i] = string;
            return HRESULT_OK;
        }
    }
    return add(&variables->list, &variables->n, string) ? HRESULT_OK : UINT32_C(0x80070008);
}

static uint32_t unset_private(struct variables *variables, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < variables->n; i++) {
        /* A name with '=' was never a name. */
        if (!strchr(name, '=') && has_name(variables->list[i], name, length)) {
            free(variables->list[i]);
            variables->list[i] = variables->list[--variables->n];
            return HRESULT_OK;
        }
    }
    return HRESULT_VARIABLE_NOT_FOUND;
}

uint32_t variables_set(struct variables *variables, const char *name, const char *value)
{
    if (!variables->is_private)
        return name && value && setenv(name, value, 1) == 0 ? HRESULT_OK : HRESULT_SETENV_FAILED;
    if (!name)
        return HRESULT_INVALID_ARGUMENT;
    if (*name == '\0')
        return HRESULT_OK;
    return value ? set_private(variables, name, value) : unset_private(variables, name);
}

/* What the runtime has now: its copy, or the real environment. */
static char *const *current(const struct variables *variables, size_t *ret_n)
{
    size_t n = 0;

    if (variables->is_private) {
        *ret_n = variables->n;
        return variables->list;
    }
    while (environ && environ[n])
        n++;
    *ret_n = n;
    return environ;
}

bool variables_put(const struct variables *variables, struct bytes *out)
{
    size_t n;
    char *const *list = current(variables, &n);

    bytes_put_u32(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        if (!text_is_utf8(list[i], strlen(list[i])))
            return false;
        wire_put_string(out, list[i]);
    }
    return true;
}

static void put_member(struct bytes *out, bool *is_first, const char *name, const char *value)
{
    if (!*is_first)
        bytes_put_u8(out, ',');
    *is_first = false;
    utf8_put_json(out, name);
    bytes_put_u8(out, ':');
    utf8_put_json(out, value);
}

/* The part before '='; NULL for what has none, is a filler, or when memory is out. */
static char *name_of(const char *string)
{
    const char *equals = strchr(string, '=');

    if (!equals || strncmp(string, "FAKE_FILLER_", strlen("FAKE_FILLER_")) == 0)
        return NULL;
    return strndup(string, (size_t)(equals - string));
}

/* Whether that value was there at launch, if only with bytes that the copy has replaced. */
static bool is_as_launched(const struct variables *variables, const char *name, const char *value)
{
    const char *before = variables_get_launched(variables, name);
    char *repaired = before ? utf8_repair(before) : NULL;
    bool same =
        before && (strcmp(before, value) == 0 || (repaired && strcmp(repaired, value) == 0));

    free(repaired);
    return same;
}

void variables_put_changes(const struct variables *variables, struct bytes *out)
{
    bool is_first = true;
    size_t n;
    char *const *list = current(variables, &n);

    bytes_put_u8(out, '{');
    for (size_t i = 0; i < n; i++) {
        char *name = name_of(list[i]);
        const char *value = name ? list[i] + strlen(name) + 1 : NULL;

        if (name && !is_as_launched(variables, name, value))
            put_member(out, &is_first, name, value);
        free(name);
    }
    for (size_t i = 0; i < variables->n_launched; i++) {
        char *name = name_of(variables->launched[i]);

        if (name && !variables_get(variables, name))
            put_member(out, &is_first, name, NULL);
        free(name);
    }
    bytes_put_u8(out, '}');
}

char **variables_array(const struct variables *variables)
{
    size_t n;
    char *const *list = current(variables, &n);
    char **array = calloc(n + 1, sizeof *array);

    for (size_t i = 0; array && i < n; i++)
        array[i] = list[i];
    return array;
}
