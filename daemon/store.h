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
    bool is_kept;              /* the one that the daemon before had kept is still the only one */
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

/*
 * Before store_open: a file of records that the daemon before had kept, since it was not in its
 * place any more, or -1. It is the store's from then on. Where it is whole it counts, and not what
 * is in the folder.
 */
void store_take_kept(struct store *store, int fd);

/* What a look at the records has found, and done. */
struct store_look {
    bool is_in_place;  /* the next daemon finds what it needs; nothing had to be done */
    bool is_put_right; /* it does now */
    bool is_anew;      /* the file was made anew: what else was in the folder may be gone, too */
    bool is_lost;      /* there are no records any more, unless they were made anew */
    bool is_first;     /* and there were no records up to now; nobody older than it has one */
    uint64_t distrusted_until; /* then: as broker_set_trust wants it */
    char *why; /* what was wrong and what to do, one line that the caller frees; NULL with
                  `is_in_place`, and where memory ran out */
};

/*
 * Looks whether folder and file are where the next daemon looks for them, and as it needs them,
 * and puts right what can be: all records that there are, are written anew. Marks go on whatever
 * comes of it. After store_open only.
 */
void store_look(struct store *store, struct store_look *ret_look);

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

/* The file itself, for having it kept; -1 while there is none. The store keeps the descriptor. */
int store_file(const struct store *store);

/* The state folder itself, for others who keep files in it; the store keeps the descriptor. -1
 * while there is none that can be used: not before the records are opened, if it was missing. */
int store_folder(const struct store *store);
const char *store_path(const struct store *store);
/* The id of this boot, RECORD_BOOT_SIZE bytes; NULL when it cannot be told. */
const uint8_t *store_boot(const struct store *store);

void store_mark(struct store *store, uint32_t slot, const uint8_t mark[static RECORD_MARK_SIZE]);

/* Returns NULL. NULL is allowed. */
struct store *store_close(struct store *store);
