/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happened, told to people: every notice becomes a line in the log, and
 * the newest ones are kept for those who follow over the control socket.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/util.h"

struct notice;
struct notices;

enum { NOTICES_KEPT = 4096 };

/* NULL when memory is out. */
struct notices *notices_new(void) MUST_CHECK;

/* Says what was left out until now; returns NULL. */
struct notices *notices_free(struct notices *notices);

/* Logs it, unless its user's ration (daemon/ration.h) is used up, and keeps it; takes it. */
void notices_take(struct notices *notices, struct notice *notice);

/* When notices_run has to be called at the latest; MOMENT_NEVER when nothing is due. */
struct moment notices_deadline(const struct notices *notices);

/* Says how many lines were left out, when it is time to. */
void notices_run(struct notices *notices, struct moment now);

/* Numbers count from 1, and never again. The next one will have this number. */
uint64_t notices_next(const struct notices *notices);

/* The oldest one that is still kept. */
uint64_t notices_oldest(const struct notices *notices);

/* NULL when it is not kept any more, or did not happen yet. */
const struct notice *notices_get(const struct notices *notices, uint64_t number);
