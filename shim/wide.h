/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The runtime's texts are UTF-16, those of the C library bytes. Both end in a NUL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes `n` units, none of them NUL, as UTF-8. False, and nothing that may be used, when they are
 * no valid UTF-16 or do not fit. */
bool wide_read(const uint16_t *units, size_t n, char *ret_text, size_t capacity);

/* The next character of `text` and the number of its bytes; of bytes that are no UTF-8 each is a
 * question mark, and so are control characters. */
uint32_t wide_decode(const char *text, size_t *ret_size);

/* Writes a character, which is a valid one, as one or two units; returns how many. */
size_t wide_write(uint32_t character, uint16_t ret_units[static 2]);
