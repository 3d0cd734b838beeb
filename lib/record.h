/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is kept of runtimes over a restart of the daemon, as bytes: a header and
 * then slots of one size. One slot is one runtime: how far its plan came, or that
 * it was resumed.
 *
 * The file is a shared mapping, so a mark is written without a system call and
 * survives the death of the daemon. That may come in the middle of a mark, so a
 * slot has two halves, each with its own checksum, and they are written in turn:
 * what is torn is the newest, and the one before it says what was so before
 * anything was sent. The file does not survive the boot, and need not: neither do
 * the runtimes. Values of variables are never in it.
 *
 * A daemon that was upgraded meanwhile reads the file of the version before, and
 * makes one of its own version of it. One of a newer version is refused. For that
 * the header has the same form in every version.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

enum {
    RECORD_VERSION = 4,
    RECORD_VERSION_OLDEST = 2, /* that can be read */
    RECORD_HEADER_SIZE = 64,
    RECORD_MARK_SIZE = 160, /* one half of a slot; 24 bytes of it are to spare */
    RECORD_SLOT_SIZE = 2 * RECORD_MARK_SIZE,
    RECORD_SLOTS = 32768,
    RECORD_FILE_SIZE = RECORD_HEADER_SIZE + RECORD_SLOTS * RECORD_SLOT_SIZE,
    RECORD_BOOT_SIZE = 16,
    RECORD_POLICY_SIZE = 16,
    RECORD_RUNS_MAX = 24,  /* of steps with the same result, one after the other */
    RECORD_RUN_MAX = 4095, /* steps in one of them */
};

enum record_phase {
    RECORD_NONE,        /* the slot is free */
    RECORD_BEGUN,       /* its rule's plan is under way */
    RECORD_WITHDRAWING, /* the plan failed, and what was done is taken back */
    RECORD_HELD,        /* nothing is sent to it until `hold_until` */
    RECORD_KILLING,     /* it is to be killed */
    RECORD_RESUMED,     /* Resume was about to be sent */
};

enum record_step {
    RECORD_STEP_PENDING,
    RECORD_STEP_SENT, /* about to be sent, or sent; no answer was read */
    RECORD_STEP_OK,
    RECORD_STEP_REFUSED, /* by the runtime */
    RECORD_STEP_BARRED,  /* by our own checks, and never sent */
    RECORD_STEP_LOST,
    RECORD_STEP_SKIPPED,
    RECORD_STEP_ROLLED_BACK,
    RECORD_STEP_STAYS,    /* was ok, and could not be taken back */
    RECORD_STEP_UNDOING,  /* was ok, and taking it back was about to be sent, or was sent */
    RECORD_STEP_LEFT_OUT, /* by our own checks, and the plan goes on without it. Since version 4 */
};

struct record {
    enum record_phase phase;
    bool is_torn;      /* read: one half was not whole, so something newer may have been there */
    uint32_t sequence; /* of the marks of a slot, from 1 on: the higher one of its halves counts */
    int32_t pid;
    uint64_t start_time; /* clock ticks after boot */
    struct guid cookie;
    /* All below is 0 with RECORD_RESUMED. */
    uint8_t policy[RECORD_POLICY_SIZE]; /* the first bytes of its hash */
    uint32_t rule;                      /* its place in the policy */
    int64_t connected_at;               /* microseconds of CLOCK_MONOTONIC */
    int64_t hold_until;                 /* likewise; INT64_MAX for no limit */
    bool is_hold_wished;                /* by an operator, once the plan has ended */
    uint8_t outcome;                    /* the core's number of it */
    /* The steps of its plan in their order, those with the same result together. */
    struct record_run {
        enum record_step step;
        uint16_t n;
    } runs[RECORD_RUNS_MAX];
    size_t n_runs;
    bool is_tangled; /* there were more: the plan cannot be gone on with */
    bool
        knows_primer; /* the primer's are among them, where the rule may need it. Since version 4 */
    uint64_t kept;    /* serial number of its connection where that is kept over a restart; 0: it is
                         not. Since version 3, 0 in those before */
};

/* Adds a step behind those that are there. */
void record_add_step(struct record *record, enum record_step step);

/* Names in the state folder: the file, and the one that becomes it when it is whole. */
#define RECORD_FILE     "records"
#define RECORD_NEW_FILE "records.new"

/* Names that one is put aside under which cannot be used. They are for people, and never read
 * again: their runtimes have been resumed since. */
#define RECORD_DAMAGED_FILE "records.damaged"
#define RECORD_NEWER_FILE   "records.newer"
#define RECORD_OLDER_FILE   "records.older"

/* True when a file of that name says that an earlier daemon was there: all do but the folder
 * itself, the one above it, and the file of one that died while it made its first. */
bool record_is_trace(const char *name);

/* The id of a boot as the kernel writes it, with a line feed or without. False when it is none. */
bool record_read_boot(const char *text, uint8_t ret_boot[static RECORD_BOOT_SIZE]) MUST_CHECK;

enum record_health {
    RECORD_WHOLE,
    RECORD_OLDER,      /* whole, but of an older version: its slots are read by record_read_older */
    RECORD_NEWER,      /* of a newer version, so nobody here knows what is in it */
    RECORD_OTHER_BOOT, /* whole, but of another boot: it says nothing about anybody alive */
    RECORD_DAMAGED,    /* cut, corrupt, or of a version that is older than those that are known */
};

/* What it says. */
struct record_header {
    uint32_t version;
    uint64_t distrusted_until; /* as in record_write_header */
};

/* Writes a header for the boot with that id. `distrusted_until`: whoever was started by then, in
 * clock ticks after boot, may have had a record that was lost; 0 when none was. */
void record_write_header(const uint8_t boot[static RECORD_BOOT_SIZE], uint64_t distrusted_until,
                         uint8_t ret_bytes[static RECORD_HEADER_SIZE]);

/* Judges the header of a file of `length` bytes, of which RECORD_HEADER_SIZE at most are looked at.
 * `*ret_header` is set with RECORD_WHOLE and RECORD_OLDER, with RECORD_NEWER only the version. */
enum record_health record_read_header(const uint8_t *bytes, size_t length,
                                      const uint8_t boot[static RECORD_BOOT_SIZE],
                                      struct record_header *ret_header);

/* RECORD_NONE is all zero. */
void record_write(const struct record *record, uint8_t ret_bytes[static RECORD_MARK_SIZE]);

/* Puts a mark into its slot: into the half that is its turn, or, when it is all zero, into both. */
void record_put(uint8_t slot[static RECORD_SLOT_SIZE], const uint8_t mark[static RECORD_MARK_SIZE]);

/* The newest whole half; RECORD_NONE where there is none, or only the first was torn. False when
 * the slot is damaged: that is more than one death can do. */
bool record_read(const uint8_t bytes[static RECORD_SLOT_SIZE],
                 struct record *ret_record) MUST_CHECK;

/* The size of a slot in a version from RECORD_VERSION_OLDEST to RECORD_VERSION; there are
 * RECORD_SLOTS in each. */
size_t record_slot_size(uint32_t version);

/* The same for a slot of such a version. What it has not is 0. */
bool record_read_older(uint32_t version, const uint8_t *bytes,
                       struct record *ret_record) MUST_CHECK;

/* The slot that reads as this record does, a torn one included: for one that was read. */
void record_write_slot(const struct record *record, uint8_t ret_slot[static RECORD_SLOT_SIZE]);
