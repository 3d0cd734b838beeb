/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text that came from somewhere else: UTF-8, UTF-16 as the runtime speaks it,
 * and the one way in which foreign bytes are shown to people and machines.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct bytes;

/*
 * Reads one code point of strict UTF-8 (no overlong forms, no surrogates) at
 * `text`, of which `length` > 0 bytes are there. Returns how many bytes it
 * took, or 0 when they are not UTF-8.
 */
size_t text_decode(const uint8_t *text, size_t length, uint32_t *ret_code_point);

/* True when the whole run is strict UTF-8. */
bool text_is_utf8(const void *text, size_t length);

/*
 * Appends `length` bytes of `text` as they may be shown: every byte that is
 * not part of valid UTF-8, every control character (C0, DEL, C1), every
 * invisible or direction-changing character and the backslash itself become
 * `\xNN`, one escape per byte. The result is printable UTF-8 on one line and
 * can be turned back into the bytes.
 */
void text_put_escaped(struct bytes *out, const void *text, size_t length);

/* The same as a new string, which the caller frees; NULL when memory is out. */
char *text_escape(const void *text, size_t length) MUST_CHECK;

/* UTF-16 code units that `text`, NUL-terminated UTF-8, takes; each byte that is not UTF-8 counts
 * as one unit. */
size_t text_utf16_units(const char *text);

/* Appends `text`, NUL-terminated strict UTF-8, as UTF-16LE without a NUL; false, and nothing
 * appended, when it is not UTF-8. */
bool text_put_utf16(struct bytes *out, const char *text) MUST_CHECK;

/*
 * Appends `units` UTF-16LE code units as UTF-8, stopping at the first NUL.
 * An unpaired surrogate becomes its three-byte form, which is not valid UTF-8
 * and therefore shows as `\xNN`: nothing is lost or guessed.
 */
void text_put_utf8(struct bytes *out, const uint8_t *utf16, size_t units);

/* Reads `length` bytes that are nothing but a decimal number, without sign, blanks or leading
 * zeros; false, and nothing returned, for anything else and for more than `largest`. */
bool text_number(const char *text, size_t length, uint64_t largest,
                 uint64_t *ret_number) MUST_CHECK;

/* The value of a hexadecimal digit of either case; -1 for anything else. */
int text_hex_digit(char digit);
