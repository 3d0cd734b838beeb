/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * GUIDs as the runtime has them: 16 bytes whose first three fields are little
 * endian. They are kept as those bytes and compared as bytes; only the text
 * form knows about fields.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { GUID_SIZE = 16, GUID_TEXT_SIZE = 37 };

struct guid {
    uint8_t bytes[GUID_SIZE];
};

/* "123e4567-e89b-12d3-a456-426614174000", lower case, NUL-terminated. */
void guid_format(const struct guid *guid, char ret_text[static GUID_TEXT_SIZE]);

/* Reads 8-4-4-4-12 hexadecimal digits in any case, with or without braces around them; false, and
 * nothing written, for anything else. */
bool guid_parse(const char *text, struct guid *ret_guid) MUST_CHECK;

/* Negative, zero or positive, as memcmp. */
int guid_compare(const struct guid *a, const struct guid *b);
