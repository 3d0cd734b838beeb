/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes that may not be UTF-8, as the two sides of a runtime see them: CoreCLR
 * puts U+FFFD in the place of each byte that is not, Python reads lone
 * surrogates from JSON and gets the bytes back.
 */

struct bytes;

/* A copy in which every byte that is not part of UTF-8 is U+FFFD (measured on 8.0.34 to 11.0.0);
 * NULL when memory is out. The caller frees it. */
char *utf8_repair(const char *text);

/* Appends `text` as a JSON string, or null for NULL. A byte that is not UTF-8 becomes the lone
 * surrogate that Python's surrogateescape uses. */
void utf8_put_json(struct bytes *out, const char *text);
