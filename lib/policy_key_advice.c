/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What somebody may have meant who wrote a key that is none: one that is
 * spelled nearly so, one that belongs elsewhere, or one of those there are.
 */

#include <string.h>

#include "lib/bytes.h"
#include "lib/policy_key.h"

enum {
    NAME_MAX = 32,          /* longer names are like no key at all */
    DISTANCE_MAX = 2,       /* changes by which a name still is like a key */
    DISTANCE_NONE = 99,     /* not alike */
    SHORT_NAME_MAX = 4,     /* names this long are like another by one change only */
    COMMON_PART_MIN = 3,    /* "environment" and "env" */
    DISTANCE_OF_COMMON = 2, /* how alike such names are */
};

/* One spelling for startupHooks, startup-hooks and startup_hooks. */
static char plain(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return (char)(letter - 'A' + 'a');
    return letter == '-' ? '_' : letter;
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to insert, remove, replace or swap with their neighbour to get from one to the other. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t n_a = strlen(a), n_b = strlen(b);
    size_t rows[3][NAME_MAX + 1];

    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const bool is_same = plain(a[i - 1]) == plain(b[j - 1]);

            row[j] = least_of(above[j - 1] + (is_same ? 0 : 1), least_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) &&
                plain(a[i - 2]) == plain(b[j - 1]))
                row[j] = least_of(row[j], above_that[j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

/* True when one name begins or ends with the other. */
static bool has_common_part(const char *a, const char *b)
{
    const char *longer = strlen(a) > strlen(b) ? a : b, *shorter = longer == a ? b : a;
    const size_t length = strlen(shorter);

    return length >= COMMON_PART_MIN && (strncmp(longer, shorter, length) == 0 ||
                                         strcmp(longer + strlen(longer) - length, shorter) == 0);
}

static size_t distance(const char *name, const char *key)
{
    size_t edits;

    if (strlen(name) > NAME_MAX || strlen(key) > NAME_MAX)
        return DISTANCE_NONE;
    edits = edit_distance(name, key);
    if (edits <= (strlen(name) <= SHORT_NAME_MAX ? 1 : DISTANCE_MAX))
        return edits;
    return has_common_part(name, key) ? DISTANCE_OF_COMMON : DISTANCE_NONE;
}

static bool stands_in(enum policy_key_id id, enum policy_section section)
{
    return (policy_key_row(id)->sections & 1U << section) != 0;
}

/* The key of the section that is most like the name; false when none is. */
static bool find_nearest(enum policy_section section, const char *name, enum policy_key_id *ret_id)
{
    size_t nearest = DISTANCE_NONE;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        const enum policy_key_id id = (enum policy_key_id)i;
        const size_t here =
            stands_in(id, section) ? distance(name, policy_key_row(id)->name) : DISTANCE_NONE;

        if (here < nearest) {
            nearest = here;
            *ret_id = id;
        }
    }
    return nearest != DISTANCE_NONE;
}

/* "user" and "users" */
static bool is_plural(const char *name, const char *key)
{
    const size_t n = strlen(name), n_key = strlen(key);

    return (n + 1 == n_key || n_key + 1 == n) && has_common_part(name, key);
}

/* True when something that is in force has the keys of that section. */
static bool is_in_force(enum policy_section section)
{
    if (section == SECTION_MAIN || section == SECTION_DROP_IN)
        return true;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        /* No section is the inner one of a key that has none, but the first. */
        if (key->inner == section && key->since)
            return true;
    }
    return false;
}

/* Where the key could stand. */
static uint32_t sections_of(const char *name)
{
    uint32_t sections = 0;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        if (strcmp(key->name, name) == 0)
            sections |= key->sections;
    }
    for (unsigned i = 0; i < SECTION_COUNT; i++) {
        if (!is_in_force((enum policy_section)i))
            sections &= ~(1U << i);
    }
    return sections;
}

static void put_sections(uint32_t sections, struct bytes *out)
{
    const uint32_t top = 1U << SECTION_MAIN | 1U << SECTION_DROP_IN;

    bytes_put_string(out, "; it belongs ");
    if (sections == top) {
        bytes_put_string(out, "at the top level of a file");
        return;
    }
    for (unsigned i = 0; i < SECTION_COUNT; i++) {
        if ((sections & 1U << i) == 0)
            continue;
        bytes_put_string(out, (top & 1U << i) != 0 ? "at " : "in ");
        bytes_put_string(out, policy_section_name((enum policy_section)i));
        sections &= ~(1U << i);
        if (sections != 0)
            bytes_put_string(out, (sections & (sections - 1)) == 0 ? " or " : ", ");
    }
}

static void put_keys(enum policy_section section, struct bytes *out)
{
    const char *separator = "; its keys are ";

    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (!stands_in((enum policy_key_id)i, section) ||
            !policy_key_row((enum policy_key_id)i)->since)
            continue;
        bytes_put_string(out, separator);
        bytes_put_string(out, policy_key_row((enum policy_key_id)i)->name);
        separator = ", ";
    }
}

bool policy_key_put_advice(enum policy_section section, const char *name, struct bytes *out,
                           enum policy_key_id *ret_meant)
{
    const uint32_t sections = sections_of(name);
    enum policy_key_id nearest;
    const bool is_alike = find_nearest(section, name, &nearest);

    if (is_alike && (sections == 0 || is_plural(name, policy_key_row(nearest)->name))) {
        bytes_put_format(out, "; did you mean \"%s\"?", policy_key_row(nearest)->name);
        *ret_meant = nearest;
        return true;
    }
    if (sections != 0)
        put_sections(sections, out);
    else
        put_keys(section, out);
    return false;
}
