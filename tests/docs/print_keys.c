/* SPDX-License-Identifier: Apache-2.0 */

/*
 * print_keys: writes the table of policy keys as the reference part of the
 * manual page, in mdoc. check-manuals compares it with what the page has.
 */

#include <ctype.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/bytes.h"
#include "lib/policy_key.h"

/* As a heading: "Keys of a rule", "Keys of limits". */
static void put_heading(enum policy_section section, struct bytes *out)
{
    bytes_put_string(out, "Keys of ");
    for (const char *at = policy_section_name(section); *at != '\0'; at++) {
        if (*at != '"')
            bytes_put_u8(out, (uint8_t)*at);
    }
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

static void put_key(const struct policy_key *key, struct bytes *out)
{
    bytes_put_format(out, ".It Cm %s\n%c%s.\nTakes ", key->name, toupper(key->help[0]),
                     key->help + 1);
    policy_key_put_takes(key, out);
    if (takes_keys(key)) {
        bytes_put_string(out, "; see\n.Sx ");
        put_heading(key->inner, out);
        bytes_put_string(out, " .\n");
    } else {
        bytes_put_string(out, ".\n");
    }
    if (key->fallback)
        bytes_put_format(out, "Default: %s.\n", key->fallback);
    if (key->since)
        bytes_put_format(out, "Since %s.\n", key->since);
    else
        bytes_put_string(out, "Not in force in this version.\n");
}

static void put_section(enum policy_section section, struct bytes *out)
{
    bytes_put_string(out, ".Ss ");
    put_heading(section, out);
    bytes_put_string(out, "\n.Bl -tag -width Ds\n");
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const struct policy_key *key = policy_key_row((enum policy_key_id)i);

        if ((key->sections & 1U << section) != 0)
            put_key(key, out);
    }
    bytes_put_string(out, ".El\n");
}

int main(void)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    for (unsigned i = 0; i < SECTION_COUNT; i++)
        put_section((enum policy_section)i, &out);
    if (bytes_finish(&out) != 0)
        errx(EXIT_FAILURE, "memory");
    fputs((const char *)out.data, stdout);
    bytes_deinit(&out);
    return EXIT_SUCCESS;
}
