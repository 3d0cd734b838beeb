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

/* Tells the broker of every record whose process still lives, and frees the others. 0 or -ENOMEM.
 */
int store_recall(struct store *store, struct broker *broker) MUST_CHECK;

void store_mark(struct store *store, uint32_t slot, const uint8_t mark[static RECORD_SLOT_SIZE]);

/* Returns NULL. NULL is allowed. */
struct store *store_close(struct store *store);
