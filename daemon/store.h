/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of records in the state folder: opened or made at the start, then
 * written through a shared mapping, so that a mark costs no system call and
 * survives our death. The format is lib/record.h's.
 */

#include <stdint.h>

#include "daemon/progress.h"
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
 * Makes sure that no other daemon uses the folder, if there is one, and neither
 * makes nor changes anything. NULL and `*ret_error`: -EBUSY when one does, or
 * -ENOMEM.
 */
struct store *store_claim(const char *folder, int *ret_error) MUST_CHECK;

/*
 * Opens the records, or makes them where there are none; once, and before the
 * other calls. 0, also where none can be kept: then the trust says so, and marks
 * go nowhere. -EBUSY when another daemon has made the folder meanwhile.
 */
int store_open(struct store *store, struct store_found *ret_found) MUST_CHECK;

struct store_policies {
    /* The policy of that id, which stays the callee's; NULL when it is not there any more. */
    struct policy *(*find)(void *context, const uint8_t id[static RECORD_POLICY_SIZE]);
    void *context;
    const struct progress *progress; /* told of each record; NULL */
};

/* Tells the broker of every record whose process still lives, and frees the others. 0 or -ENOMEM.
 */
int store_recall(struct store *store, struct broker *broker,
                 const struct store_policies *policies) MUST_CHECK;

/* The state folder itself, for others who keep files in it; the store keeps the descriptor. -1
 * while there is none that can be used: not before the records are opened, if it was missing. */
int store_folder(const struct store *store);
const char *store_path(const struct store *store);
/* The id of this boot, RECORD_BOOT_SIZE bytes; NULL when it cannot be told. */
const uint8_t *store_boot(const struct store *store);

void store_mark(struct store *store, uint32_t slot, const uint8_t mark[static RECORD_MARK_SIZE]);

/* Returns NULL. NULL is allowed. */
struct store *store_close(struct store *store);
