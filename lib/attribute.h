/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One attribute: a state and texts in one block of memory. What it is an
 * attribute of is not known here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/attributes.h"
#include "lib/util.h"

/*
 * Makes the texts in `data`, each ended by a NUL but perhaps the last, those of
 * the attribute, which then is present. No more than `count_max` are taken; that
 * there were more, or `is_cut`, is noted. `data` may be a part of the attribute's
 * own block. 0, or -ENOMEM, and then nothing is changed.
 */
int attribute_set_texts(struct attribute *attribute, const char *data, size_t length,
                        size_t count_max, bool is_cut) MUST_CHECK;

/* Takes all texts away; `state` is unknown or absent, and `why` a constant. */
void attribute_set_none(struct attribute *attribute, enum attribute_state state, const char *why);

/* Notes that reading failed, which takes away nothing that was known before. */
void attribute_set_unknown(struct attribute *attribute, const char *why);

/* Bytes of the texts, each with its NUL. */
size_t attribute_size(const struct attribute *attribute);
