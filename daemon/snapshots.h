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

#include "lib/policy.h"
#include "lib/record.h"
#include "lib/util.h"

struct policy_problems;
struct snapshots;
struct store;

/* `store`, whose folder they are in, stays the caller's. While it has none nothing is kept, and
 * nothing found. NULL when memory is out. */
struct snapshots *snapshots_new(const struct store *store) MUST_CHECK;
/* Returns NULL. NULL is allowed. */
struct snapshots *snapshots_free(struct snapshots *snapshots);

/* One of them: which policy it is, and what its file holds. */
struct snapshot_name {
    char policy[POLICY_HASH_SIZE];
    char text[POLICY_HASH_SIZE];
};

/* Writes one; the file is readable for the daemon's user alone. 0 or a negative errno: then plans
 * by it cannot be gone on with. -ENOENT where there is no folder, -EMSGSIZE when its canonical form
 * is longer than a file that can be read. */
int snapshots_keep(struct snapshots *snapshots, const struct policy *policy,
                   struct snapshot_name *ret_name) MUST_CHECK;

/* Writes all of them anew that were written or found before, and are needed as far as is known:
 * their files may have gone. 0, or the first negative errno. */
int snapshots_keep_again(struct snapshots *snapshots) MUST_CHECK;

/*
 * Reads one. 0; `*ret_policy` NULL when this version cannot read it any more, which
 * `ret_problems` tells, to be freed with policy_problems_deinit. Or a negative errno:
 * -ENOENT, -EPERM when the file is not our own, -EBADMSG when it is not as it was
 * written, -ENOMEM.
 */
int snapshots_load(const struct snapshots *snapshots, const struct snapshot_name *name,
                   struct policy **ret_policy, struct policy_problems *ret_problems) MUST_CHECK;

/* The policy of that id, which stays ours; NULL when there is none, or its file is not as it was
 * written. */
struct policy *snapshots_find(void *snapshots, const uint8_t id[static RECORD_POLICY_SIZE]);

/* Forgets those that nobody needs, and removes their files. */
void snapshots_sweep(struct snapshots *snapshots,
                     bool (*is_needed)(void *context, const uint8_t id[static RECORD_POLICY_SIZE]),
                     void *context);
