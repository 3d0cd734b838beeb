/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which of the policies in the state folder is the last good one: that was in
 * force last, and without an error. A daemon that is started and finds none that
 * it can load goes on with it.
 *
 * A file beside them names it, with all that has to be so that it may be used:
 * the boot, the main file that it was loaded from, and what its own file holds.
 * What is not exactly as it was written is not used. Nor is one of an earlier
 * boot, wherever the folder is: a boot begins with what is on disk.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/snapshots.h"
#include "lib/record.h"
#include "lib/util.h"

struct last_good;

struct last_good_options {
    const struct store *store; /* the caller's, as is the rest */
    const struct snapshots *snapshots;
    const char *main_file; /* that the policy is loaded from; NULL: none, and none is named */
};

/* NULL when memory is out. */
struct last_good *last_good_new(const struct last_good_options *options) MUST_CHECK;
/* Returns NULL. NULL is allowed. */
struct last_good *last_good_free(struct last_good *last_good);

/*
 * The last good policy, for the caller to give back; NULL when there is none, or
 * when there is one that is not used: then `*ret_why` says why, in one line that
 * the caller frees. 0 or -ENOMEM.
 */
int last_good_load(struct last_good *last_good, struct policy **ret_policy,
                   char **ret_why) MUST_CHECK;

/* From now on it is that one. 0 or a negative errno: then there is none, and never an older one. */
int last_good_set(struct last_good *last_good, const struct snapshot_name *name) MUST_CHECK;

/* There is none. */
void last_good_clear(struct last_good *last_good);

/* Whether it is the one of that id, as far as it was loaded or set. */
bool last_good_is(const struct last_good *last_good, const uint8_t id[static RECORD_POLICY_SIZE]);
