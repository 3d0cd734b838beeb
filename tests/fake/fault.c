/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/fault.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/commands.h"

void faults_deinit(struct faults *faults)
{
    for (size_t i = 0; i < faults->n; i++)
        free(faults->list[i].text);
    free(faults->list);
    *faults = (struct faults){0};
}

static bool is_connection_fault(enum fault_id id)
{
    return id >= FAULT_NO_ADVERTISE;
}

/* Reads a number at `*at` and moves past it. */
static bool take_number(const char **at, int base, unsigned long *ret_number)
{
    char *end;
    unsigned long number = strtoul(*at, &end, base);

    if (end == *at || **at == '-' || **at == '+' || **at == ' ')
        return false;
    *at = end;
    *ret_number = number;
    return true;
}

/* "@3", "@2-4" or "@3+" at `*at`, or nothing. */
static bool take_which(const char **at, struct fault *fault)
{
    unsigned long first, last;

    fault->first = 1;
    fault->last = UINT_MAX;
    if (**at != '@')
        return true;
    ++*at;
    if (!take_number(at, 10, &first) || first == 0 || first > UINT_MAX)
        return false;
    last = first;
    if (**at == '+') {
        ++*at;
        last = UINT_MAX;
    } else if (**at == '-') {
        ++*at;
        if (!take_number(at, 10, &last) || last < first || last > UINT_MAX)
            return false;
    }
    fault->first = (unsigned)first;
    fault->last = (unsigned)last;
    return true;
}

static bool take_kind(const char **at, struct fault *fault)
{
    size_t length = strcspn(*at, "@:");
    char *kind = strndup(*at, length);
    char *end;

    if (!kind)
        return false;
    fault->is_any = strcmp(kind, "any") == 0;
    fault->kinds = commands_kinds(kind);
    fault->code = strcmp(kind, "start") == 0 ? FAULT_SET_START << 8 : -1;
    if (!fault->is_any && fault->kinds == 0 && fault->code < 0 && length == 4) {
        unsigned long code = strtoul(kind, &end, 16);

        if (*end == '\0')
            fault->code = (int)code;
    }
    free(kind);
    *at += length;
    return fault->is_any || fault->kinds != 0 || fault->code >= 0;
}

static int hex_value(char digit)
{
    const char *digits = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit | 0x20);

    return found ? (int)(found - digits) : -1;
}

static bool take_text(const char *at, struct fault *fault)
{
    fault->text = malloc(strlen(at) + 1);
    if (!fault->text)
        return false;
    while (*at != '\0') {
        char byte = *at++;

        if (byte == '\\' && at[0] == 'x' && hex_value(at[1]) >= 0 && hex_value(at[2]) >= 0) {
            byte = (char)(hex_value(at[1]) << 4 | hex_value(at[2]));
            at += 3;
        }
        fault->text[fault->text_length++] = byte;
    }
    return true;
}

static const char *take_hresult(const char *at, struct fault *fault)
{
    unsigned long count;

    if (!take_number(&at, 16, &fault->argument) || fault->argument > UINT32_MAX)
        return "a code in hexadecimal is missing after ':'";
    if (*at == ':') {
        at++;
        if (!take_number(&at, 10, &count) || count == 0 || count > UINT_MAX)
            return "the count after the code is not a number";
        fault->last = fault->first + (unsigned)count - 1;
    }
    return *at == '\0' ? NULL : "something follows the code";
}

static const char *take_argument(const char *at, enum fault_argument argument, struct fault *fault)
{
    fault->has_argument = *at == ':';
    if (*at != '\0' && *at != ':')
        return "after the kind comes '@' or ':'";
    if (fault->has_argument)
        at++;
    switch (argument) {
    case FAULT_ARGUMENT_NONE:
        return fault->has_argument ? "there is no argument to this" : NULL;
    case FAULT_ARGUMENT_MAYBE:
        if (!fault->has_argument)
            return NULL;
        return take_number(&at, 10, &fault->argument) && *at == '\0' ? NULL : "not a number";
    case FAULT_ARGUMENT_NUMBER:
        return take_number(&at, 10, &fault->argument) && *at == '\0'
                   ? NULL
                   : "a number is missing after ':'";
    case FAULT_ARGUMENT_HRESULT:
        return take_hresult(at, fault);
    case FAULT_ARGUMENT_TEXT:
        return take_text(at, fault) ? NULL : "out of memory";
    }
    return NULL;
}

static const char *read_rule(const char *rule, enum fault_argument argument, struct fault *fault)
{
    const char *at = rule;

    /* A text for every connection needs no colon before it. */
    if (argument == FAULT_ARGUMENT_TEXT && *at != '@') {
        fault->first = 1;
        fault->last = UINT_MAX;
        return take_text(at, fault) ? NULL : "out of memory";
    }
    if (!is_connection_fault(fault->id) && !take_kind(&at, fault))
        return "no such kind of command";
    if (!take_which(&at, fault))
        return "after '@' comes N, N-M or N+";
    return take_argument(at, argument, fault);
}

const char *faults_add(struct faults *faults, enum fault_id id, enum fault_argument argument,
                       const char *rule)
{
    struct fault fault = {.id = id, .code = -1};
    const char *error = read_rule(rule, argument, &fault);
    struct fault *list;

    if (error) {
        free(fault.text);
        return error;
    }
    list = realloc(faults->list, (faults->n + 1) * sizeof *list);
    if (!list) {
        free(fault.text);
        return "out of memory";
    }
    faults->list = list;
    list[faults->n++] = fault;
    return NULL;
}

static void count(struct fault *fault, struct fault_plan *plan)
{
    fault->seen++;
    if (fault->seen >= fault->first && fault->seen <= fault->last && !plan->due[fault->id])
        plan->due[fault->id] = fault;
}

static bool is_before_reading(enum fault_id id)
{
    return id <= FAULT_RESET;
}

static bool is_meant(const struct fault *fault, uint8_t set, uint8_t number)
{
    return (fault->is_any && set != FAULT_SET_START) || fault->code == (set << 8 | number) ||
           (fault->kinds & commands_kind(set, number)) != 0;
}

struct fault_plan faults_command(struct faults *faults, uint8_t set, uint8_t number, bool is_read)
{
    struct fault_plan plan = {{NULL}};

    for (size_t i = 0; i < faults->n; i++) {
        struct fault *fault = &faults->list[i];

        if (!is_connection_fault(fault->id) && is_before_reading(fault->id) != is_read &&
            is_meant(fault, set, number))
            count(fault, &plan);
    }
    return plan;
}

struct fault_plan faults_connection(struct faults *faults)
{
    struct fault_plan plan = {{NULL}};

    for (size_t i = 0; i < faults->n; i++) {
        if (is_connection_fault(faults->list[i].id))
            count(&faults->list[i], &plan);
    }
    return plan;
}
