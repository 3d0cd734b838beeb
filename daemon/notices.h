/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happened, told to people: every notice becomes a line in the log, and
 * the newest ones are kept for those who follow over the control socket.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct notice;
struct notices;

enum { NOTICES_KEPT = 4096 };

/* NULL when memory is out. */
struct notices *notices_new(void) MUST_CHECK;

/* Returns NULL. */
struct notices *notices_free(struct notices *notices);

/* Logs it and keeps it; takes it. */
void notices_take(struct notices *notices, struct notice *notice);

/* Numbers count from 1, and never again. The next one will have this number. */
uint64_t notices_next(const struct notices *notices);

/* The oldest one that is still kept. */
uint64_t notices_oldest(const struct notices *notices);

/* NULL when it is not kept any more, or did not happen yet. */
const struct notice *notices_get(const struct notices *notices, uint64_t number);
