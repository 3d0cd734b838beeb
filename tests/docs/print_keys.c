/* SPDX-License-Identifier: Apache-2.0 */

/*
 * print_keys: writes the table of policy keys as the reference part of the
 * manual page, in mdoc: by section those that are in force, and all others in
 * one list at the end. check-manuals compares it with what the page has.
 */

#include <ctype.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/bytes.h"
#include "lib/policy_key.h"

/* "a rule", "limits". */
static void put_name(enum policy_section section, struct bytes *out)
{
    for (const char *at = policy_section_name(section); *at != '\0'; at++) {
        if (*at != '"')
            bytes_put_u8(out, (uint8_t)*at);
    }
}

static void put_heading(enum policy_section section, struct bytes *out)
{
    bytes_put_string(out, "Keys of ");
    put_name(section, out);
}

static bool takes_keys(const struct policy_key *key)
{
    switch (key->type) {
    case TYPE_MAPPING:
    case TYPE_MAPPINGS:
    case TYPE_NAMED_MAPPINGS:
    case TYPE_MAPPING_OR_ALL:
    case TYPE_MAPPING_OR_OFF:
    case TYPE_VARIABLES:
        return true;
    default:
        return false;
    }
}

static bool is_of(const struct policy_key *key, enum policy_section section)
{
    return (key->sections & 1U << section) != 0;
}

/* False for a section that only keys that are not in force lead to. */
static bool can_be_written(enum policy_section section)
{
    bool is_inner = false;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        if (!takes_keys(key) || key->inner != section)
            continue;
        if (key->since)
            return true;
        is_inner = true;
    }
    return !is_inner;
}

static void put_takes(const struct policy_key *key, struct bytes *out)
{
    /* Its patterns are for a later version. */
    if (key == policy_key_row(KEY_MATCH_CONTAINER))
        bytes_put_string(out, "any");
    else
        policy_key_put_takes(key, out);
}

static void put_help(const struct policy_key *key, struct bytes *out)
{
    bytes_put_format(out, ".It Cm %s\n%c%s.\n", key->name, toupper(key->help[0]), key->help + 1);
}

static void put_key(const struct policy_key *key, struct bytes *out)
{
    put_help(key, out);
    bytes_put_string(out, "Takes ");
    put_takes(key, out);
    if (takes_keys(key)) {
        bytes_put_string(out, "; see\n.Sx ");
        put_heading(key->inner, out);
        bytes_put_string(out, " .\n");
    } else {
        bytes_put_string(out, ".\n");
    }
    if (key->fallback)
        bytes_put_format(out, "Default: %s.\n", key->fallback);
    bytes_put_format(out, "Since %s.\n", key->since);
}

static bool has_keys(enum policy_section section)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        if (is_of(key, section) && key->since)
            return true;
    }
    return false;
}

static void put_section(enum policy_section section, struct bytes *out)
{
    if (!has_keys(section) || !can_be_written(section))
        return;
    bytes_put_string(out, ".Ss ");
    put_heading(section, out);
    bytes_put_string(out, "\n.Bl -tag -width Ds\n");
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        if (is_of(key, section) && key->since)
            put_key(key, out);
    }
    bytes_put_string(out, ".El\n");
}

static void put_places(const struct policy_key *key, struct bytes *out)
{
    const char *separator = "Of ";

    for (unsigned i = 0; i < SECTION_COUNT; i++) {
        if (!is_of(key, (enum policy_section)i))
            continue;
        bytes_put_string(out, separator);
        put_name((enum policy_section)i, out);
        separator = ", ";
    }
    bytes_put_string(out, ".\n");
}

static void put_later(struct bytes *out)
{
    bytes_put_string(out, ".Ss Keys that are not in force in this version\n"
                          "To write one of these is an error that says so.\n"
                          ".Bl -tag -width Ds\n");
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        if (key->since)
            continue;
        put_help(key, out);
        put_places(key, out);
    }
    bytes_put_string(out, ".El\n");
}

int main(void)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    for (unsigned i = 0; i < SECTION_COUNT; i++)
        put_section((enum policy_section)i, &out);
    put_later(&out);
    if (bytes_finish(&out) != 0)
        errx(EXIT_FAILURE, "memory");
    fputs((const char *)out.data, stdout);
    bytes_deinit(&out);
    return EXIT_SUCCESS;
}
