/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions that wait for somebody to look: the users of the processes take
 * turns, so one with thousands of them, or whose processes are slow to look at,
 * keeps nobody else waiting for longer than one of his takes. What is asked is
 * not known here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

struct action;
struct questions;

/* NULL when memory is out. */
struct questions *questions_new(void) MUST_CHECK;
/* Returns NULL. */
struct questions *questions_free(struct questions *questions);

/* Takes an ACTION_ASK, behind the others of its user. False when memory is out: it is freed. */
bool questions_put(struct questions *questions, struct action *action) MUST_CHECK;

/* The first one of the user whose turn it is; NULL when there is none. The caller frees it. */
struct action *questions_take(struct questions *questions);

bool questions_is_empty(const struct questions *questions);
