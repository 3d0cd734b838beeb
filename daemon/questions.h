/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions that wait for somebody to look: the users of the processes take
 * turns, and each has one looked at at a time. So one with thousands of them, or
 * whose processes are slow to look at, keeps nobody else waiting. What is asked
 * is not known here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/tree.h"
#include "lib/util.h"

struct questions;

/* Part of whatever waits. */
struct questions_entry {
    TAILQ_ENTRY(questions_entry) link;
    uint32_t uid; /* whose turn it takes */
};

/* NULL when memory is out. */
struct questions *questions_new(void) MUST_CHECK;
/* Those that wait are their owner's, who has taken them out. Returns NULL. */
struct questions *questions_free(struct questions *questions);

/* Puts one behind the others of its user. False when memory is out: it does not wait. */
bool questions_put(struct questions *questions, struct questions_entry *entry) MUST_CHECK;

/* The first one of the user whose turn it is; NULL when there is none. That user has no other turn
 * before questions_done. */
struct questions_entry *questions_take(struct questions *questions);

/* The one of that user that was taken is done with. */
void questions_done(struct questions *questions, uint32_t uid);

/* Any one of that user that waits, whether it is his turn or not; NULL when there is none. */
struct questions_entry *questions_take_of(struct questions *questions, uint32_t uid);

/* Any one that waits, whoever's; NULL when there is none. */
struct questions_entry *questions_take_any(struct questions *questions);

/* True when questions_take has something. */
bool questions_are_there(const struct questions *questions);
