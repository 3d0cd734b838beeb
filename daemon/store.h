/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of records in the state folder: opened or made at the start, then
 * written through a shared mapping, so that a mark costs no system call and
 * survives our death. The format is lib/record.h's.
 */

#include <stdint.h>

#include "lib/broker.h"
#include "lib/record.h"
#include "lib/util.h"

struct policy;
struct store;

struct store_found {
    enum broker_trust trust;
    uint64_t distrusted_until; /* BROKER_DISTRUSTS_RECORDS: as broker_options wants it */
    char *why; /* why the trust is not full; one line, the caller frees; NULL when it is */
};

/*
 * Opens the records in `folder`, which is made when it is missing. NULL, and
 * why, when none can be kept: then the daemon has to do without. -EBUSY in
 * `*ret_error` when another daemon uses the folder, else 0.
 */
struct store *store_open(const char *folder, struct store_found *ret_found,
                         int *ret_error) MUST_CHECK;

struct store_policies {
    /* The policy of that id, which stays the callee's; NULL when it is not there any more. */
    struct policy *(*find)(void *context, const uint8_t id[static RECORD_POLICY_SIZE]);
    void *context;
};

/* Tells the broker of every record whose process still lives, and frees the others. 0 or -ENOMEM.
 */
int store_recall(struct store *store, struct broker *broker,
                 const struct store_policies *policies) MUST_CHECK;

/* The state folder itself, for others who keep files in it; the store keeps the descriptor. */
int store_folder(const struct store *store);

void store_mark(struct store *store, uint32_t slot, const uint8_t mark[static RECORD_MARK_SIZE]);

/* Returns NULL. NULL is allowed. */
struct store *store_close(struct store *store);
