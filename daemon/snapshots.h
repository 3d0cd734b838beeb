/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Policies in the state folder, each in a file of its own and in its canonical
 * form: those that plans are under way by, so that the next daemon goes on with
 * them under the policy they were begun under. Which plans there are is not known
 * here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/record.h"
#include "lib/util.h"

struct policy;
struct snapshots;

/* `folder` stays the caller's; -1: nothing is kept, and nothing found. NULL when memory is out. */
struct snapshots *snapshots_new(int folder) MUST_CHECK;
/* Returns NULL. NULL is allowed. */
struct snapshots *snapshots_free(struct snapshots *snapshots);

/* Writes one, unless it is there; the file is readable for the daemon's user alone. 0 or a negative
 * errno: then plans by it cannot be gone on with. */
int snapshots_keep(struct snapshots *snapshots, const struct policy *policy) MUST_CHECK;

/* The policy of that id, which stays ours; NULL when there is none, or its file is not as it was
 * written. */
struct policy *snapshots_find(void *snapshots, const uint8_t id[static RECORD_POLICY_SIZE]);

/* Removes the files of those that nobody needs. */
void snapshots_sweep(struct snapshots *snapshots,
                     bool (*is_needed)(void *context, const uint8_t id[static RECORD_POLICY_SIZE]),
                     void *context);
