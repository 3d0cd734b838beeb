/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kills processes that the daemon itself may not: by workers of the probe that
 * may, which get the handle and nothing else. One at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/util.h"

struct handle_table;
struct kills;
struct workers;

struct kills_options {
    struct workers *workers;
    const struct handle_table *handles;
    /* It could not be done. */
    void (*failed)(void *context, uint64_t process);
    void *context;
};

/* NULL when memory is out. */
struct kills *kills_new(const struct kills_options *options) MUST_CHECK;
/* Returns NULL. */
struct kills *kills_free(struct kills *kills);

/* Kills the process of that number in the table of handles, behind those before it. False when
 * memory is out. */
bool kills_put(struct kills *kills, uint64_t process) MUST_CHECK;

/* When to call kills_run at the latest. */
struct moment kills_next(const struct kills *kills);
void kills_run(struct kills *kills, struct moment now);
