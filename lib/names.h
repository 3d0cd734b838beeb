/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of users and groups for numbers, as a table made when the policy is
 * loaded: looking them up may block for seconds, so nobody does it later.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct names;

/* NULL when memory is out. */
struct names *names_new(void) MUST_CHECK;

/* Returns NULL. */
struct names *names_free(struct names *names);

/* Adds a pair; a number keeps the first name it was given. 0 or -ENOMEM. */
int names_add_user(struct names *names, uint32_t id, const char *name) MUST_CHECK;
int names_add_group(struct names *names, uint32_t id, const char *name) MUST_CHECK;

/* NULL when the table has no name for the number. */
const char *names_user(const struct names *names, uint32_t id);
const char *names_group(const struct names *names, uint32_t id);
