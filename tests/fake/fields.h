/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The fields of a command's payload, read as carelessly as the runtime reads
 * them. Up to .NET 10 a payload that is not there at all ends the process, a
 * number that is cut reads as if zeros followed, and a string whose length is
 * cut ends the process too; .NET 11 answers BAD_ENCODING.
 *
 * Each function notes the field in the report, and on false has set the
 * command's result.
 */

#include <stdbool.h>
#include <stdint.h>

struct call;
struct guid;

bool fields_get_u8(struct call *call, const char *name, uint8_t *ret_value);
bool fields_get_u32(struct call *call, const char *name, uint32_t *ret_value);
bool fields_get_u64(struct call *call, const char *name, uint64_t *ret_value);
bool fields_get_guid(struct call *call, const char *name, struct guid *ret_guid);

/* `*ret_text` is NULL for a null string; the caller frees it. */
bool fields_get_string(struct call *call, const char *name, char **ret_text);

/* Notes what is left of the payload, as pairs of hexadecimal digits. */
void fields_note_rest(const struct call *call, const char *name);

/* What must not come twice: both texts, NULL for none, with `between` between them. */
void fields_set_subject(struct call *call, const char *text, const char *between, const char *more);
