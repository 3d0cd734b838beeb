/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/glob.h"

#include <stdint.h>
#include <string.h>

/* One bracket while it is read. */
struct bracket {
    const char *at;
    unsigned char byte; /* the one that is looked for */
    bool has_byte;      /* it was found */
    enum glob_fault fault;
};

/* The classes of POSIX for the bytes of ASCII, which are all that the C locale puts into them. */
static bool class_has(const char *name, size_t length, unsigned char byte, bool *ret_has)
{
    static const char names[][8] = {"alnum", "alpha", "blank", "cntrl", "digit", "graph",
                                    "lower", "print", "punct", "space", "upper", "xdigit"};
    const bool is_graph = byte > 0x20 && byte < 0x7F;
    const bool is_lower = byte >= 'a' && byte <= 'z';
    const bool is_upper = byte >= 'A' && byte <= 'Z';
    const bool is_digit = byte >= '0' && byte <= '9';
    const bool is_hexadecimal =
        is_digit || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
    const bool has[] = {
        is_lower || is_upper || is_digit,
        is_lower || is_upper,
        byte == ' ' || byte == '\t',
        byte < 0x20 || byte == 0x7F,
        is_digit,
        is_graph,
        is_lower,
        is_graph || byte == ' ',
        is_graph && !is_lower && !is_upper && !is_digit,
        byte == ' ' || (byte >= '\t' && byte <= '\r'),
        is_upper,
        is_hexadecimal,
    };

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            *ret_has = has[i];
            return true;
        }
    }
    return false;
}

/* Takes "[:name:]"; false, and nothing taken, when it is something else. */
static bool take_class(struct bracket *bracket)
{
    const char *name = bracket->at + 2;
    size_t length = 0;
    bool has = false;

    if (bracket->at[0] != '[' || bracket->at[1] != ':')
        return false;
    while (name[length] >= 'a' && name[length] <= 'z')
        length++;
    if (name[length] != ':' || name[length + 1] != ']')
        return false;
    if (!class_has(name, length, bracket->byte, &has))
        bracket->fault = GLOB_UNKNOWN_CLASS;
    bracket->has_byte |= has;
    bracket->at = name + length + 2;
    return true;
}

/* Takes one character: as it is, after a backslash, or as "[.x.]" or "[=x=]". False at the end of
 * the pattern. */
static bool take_character(struct bracket *bracket, unsigned char *ret_character)
{
    const char *at = bracket->at;

    if (at[0] == '[' && (at[1] == '.' || at[1] == '=')) {
        if (at[2] != '\0' && at[3] == at[1] && at[4] == ']') {
            *ret_character = (unsigned char)at[2];
            bracket->at += 5;
            return true;
        }
        bracket->fault = GLOB_STRAY_ELEMENT;
    }
    if (at[0] == '\\' && at[1] != '\0')
        at++;
    if (at[0] == '\0')
        return false;
    *ret_character = (unsigned char)at[0];
    bracket->at = at + 1;
    return true;
}

static bool is_equivalence(const char *at)
{
    return at[0] == '[' && at[1] == '=';
}

static bool is_class(const char *at)
{
    return at[0] == '[' && at[1] == ':';
}

/* A character or a range of them, at whose ends nothing can stand that means several. */
static bool take_range(struct bracket *bracket)
{
    const char *start = bracket->at;
    unsigned char first, last;

    if (!take_character(bracket, &first))
        return false;
    last = first;
    if (bracket->at[0] == '-' && bracket->at[1] != ']' && bracket->at[1] != '\0') {
        bracket->at++;
        if (is_equivalence(start) || is_equivalence(bracket->at) || is_class(bracket->at))
            bracket->fault = GLOB_STRAY_ELEMENT;
        if (!take_character(bracket, &last))
            return false;
    }
    if (first > last)
        bracket->fault = GLOB_EMPTY_RANGE;
    bracket->has_byte |= bracket->byte >= first && bracket->byte <= last;
    return true;
}

/*
 * Reads the bracket that opens before `at`. Returns what follows it, NULL when
 * it is not closed, and whether it has the byte.
 */
static const char *bracket_read(const char *at, unsigned char byte, bool *ret_has,
                                enum glob_fault *ret_fault)
{
    struct bracket bracket = {.at = at, .byte = byte, .fault = GLOB_FINE};
    const bool is_negated = *at == '!' || *at == '^';
    const char *first;

    bracket.at += is_negated ? 1 : 0;
    first = bracket.at;
    while (*bracket.at != ']' || bracket.at == first) {
        if (!take_class(&bracket) && !take_range(&bracket))
            return NULL;
    }
    *ret_has = bracket.has_byte != is_negated;
    *ret_fault = bracket.fault;
    return bracket.at + 1;
}

/* What follows the first element of the pattern, which is not a star, when the byte fits it; else
 * NULL. */
static const char *match_one(const char *glob, char byte)
{
    switch (*glob) {
    case '\0':
        return NULL;
    case '?':
        return glob + 1;
    case '[': {
        enum glob_fault fault;
        bool has;
        const char *rest = bracket_read(glob + 1, (unsigned char)byte, &has, &fault);

        if (rest)
            return has ? rest : NULL;
        break;
    }
    case '\\':
        if (glob[1] != '\0')
            glob++;
        break;
    default:
        break;
    }
    return *glob == byte ? glob + 1 : NULL;
}

/* Only the last star met can still be wrong about what it took, so one point to go back to is
 * enough. */
bool glob_match_within(const char *glob, const char *text, size_t *steps)
{
    const char *after_star = NULL, *taken_to = NULL;

    while (*text != '\0') {
        const char *rest;

        if (*steps == 0)
            return false;
        --*steps;
        if (*glob == '*') {
            after_star = ++glob;
            taken_to = text;
            continue;
        }
        rest = match_one(glob, *text);
        if (rest) {
            glob = rest;
            text++;
        } else if (after_star && *after_star != '\0') {
            glob = after_star;
            text = ++taken_to;
        } else {
            return after_star != NULL;
        }
    }
    while (*glob == '*')
        glob++;
    return *glob == '\0';
}

bool glob_match(const char *glob, const char *text)
{
    size_t steps = SIZE_MAX;

    return glob_match_within(glob, text, &steps);
}

enum glob_fault glob_check(const char *glob)
{
    while (*glob != '\0') {
        enum glob_fault fault = GLOB_FINE;
        bool has;

        if (*glob == '[') {
            glob = bracket_read(glob + 1, 0, &has, &fault);
            if (!glob)
                return GLOB_OPEN_BRACKET;
            if (fault != GLOB_FINE)
                return fault;
            continue;
        }
        if (*glob == '\\' && *++glob == '\0')
            return GLOB_OPEN_BACKSLASH;
        glob++;
    }
    return GLOB_FINE;
}

bool glob_is_literal(const char *glob)
{
    return strpbrk(glob, "*?[\\") == NULL;
}
