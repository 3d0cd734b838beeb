/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Members of what the daemon answered, whatever was there instead of them: a
 * newer daemon may answer more, and a foreign one anything.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/bytes.h"

/* NULL when it is missing, null or no text. */
const char *answer_text(const json_t *object, const char *member);

/* "" instead. */
const char *answer_text_or_empty(const json_t *object, const char *member);

/* 0 when it is no number. */
int64_t answer_number(const json_t *object, const char *member);

/* False when it is no number; whole ones are fine. */
bool answer_seconds(const json_t *object, const char *member, double *ret_seconds);

/* From one time of the daemon's to another; false when one is NULL or no such time. */
bool answer_seconds_between(const char *start, const char *end, double *ret_seconds);

bool answer_is_true(const json_t *object, const char *member);

/* What can be given to the functions of jansson: NULL when it is missing. */
const json_t *answer_member(const json_t *object, const char *member);

/* "s" behind the name of more than one thing, or of none. */
const char *answer_plural(int64_t n);

/* As much of a length of time as people want to know: "41ms", "12.3s", "3m05s", "2h07m", "3d04h".
 */
enum { ANSWER_SPAN_SIZE = 32 };
const char *answer_span(double seconds, char text[static ANSWER_SPAN_SIZE]);

/* The same for a member; "-" when it is no number. */
const char *answer_member_span(const json_t *object, const char *member,
                               char text[static ANSWER_SPAN_SIZE]);

/* Appends the texts of a list with a separator between them. */
void answer_put_list(struct bytes *out, const json_t *list, const char *separator);

/*
 * Turns a text of the daemon's, with its `\xNN`, back into the bytes that it
 * stands for, which the caller frees. NULL when it is not such a text, has a NUL
 * in it, or memory is out.
 */
char *answer_unescape(const char *text);
