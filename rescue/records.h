/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The daemon's file of records, as the rescue leaves it to the next daemon: who
 * was resumed has to be known there, or a program that runs would be set up
 * again.
 *
 * Each runtime is marked in the file (lib/record.h) before it gets Resume. Where
 * that cannot be, the next daemon has to distrust its records, for everybody
 * who was started until then:
 *
 *   the file is whole     its header says until when it is distrusted
 *   it is damaged         the daemon distrusts such a file anyway
 *   it is of another      it is put aside, since the daemon may be of that version: then it is
 *   version               missing. Nothing of it is missed, since everybody in it is resumed
 *   it is missing         the daemon distrusts a folder that is not empty: into
 *                         an empty one goes a file that says nothing
 *
 * And where not even that can be done (a folder that is missing or cannot be
 * written, a daemon that still lives in it), it is tried again. Nothing here ever
 * keeps anybody from being resumed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/record.h"

enum records_state {
    RECORDS_UNTRIED,
    RECORDS_LOCKED,     /* a daemon, or another rescue, lives in the folder: nothing is written */
    RECORDS_CLOSED,     /* the folder is not there, or cannot be used */
    RECORDS_EMPTY,      /* nothing is in the folder: a file has to be put there */
    RECORDS_OLDER,      /* the file is of an older version: it is put aside */
    RECORDS_NEWER,      /* or of a newer one: likewise */
    RECORDS_DISTRUSTED, /* the daemon will distrust what it finds */
    RECORDS_KEPT,       /* the file is whole, and written to */
};

/* Looks at the folder, which is locked from then on until the process ends. `folder` stays the
 * caller's, and has to live as long. */
void records_open(const char *folder, struct moment now);

/* Before Resume. With pid or start time 0 nobody can be marked, and all are distrusted. */
void records_mark(const struct record *record, struct moment now);

/* Tries again what could not be done; at most once in a second. */
void records_retry(struct moment now);

/* When to call that; MOMENT_NEVER while nothing is open. */
struct moment records_deadline(void);

enum records_state records_state(void);

/* Runtimes that were resumed and are not known in the file. */
uint64_t records_n_unmarked(void);

/* True when a next daemon may take somebody for new who was resumed here. */
bool records_are_owed(void);

/* What is so, as the end of a sentence that begins with "records". */
const char *records_describe(void);
