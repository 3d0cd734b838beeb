/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is kept of runtimes over a restart of the daemon, as bytes: a header and
 * then slots of one size, each with its own checksum. One slot is one runtime:
 * that its plan was begun, or that it was resumed.
 *
 * The file is a shared mapping, so a slot is written without a system call and
 * survives the death of the daemon. It does not survive the boot, and need not:
 * neither do the runtimes. Values of variables are never in it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

enum {
    RECORD_VERSION = 1,
    RECORD_HEADER_SIZE = 64,
    RECORD_SLOT_SIZE = 64,
    RECORD_SLOTS = 32768,
    RECORD_FILE_SIZE = RECORD_HEADER_SIZE + RECORD_SLOTS * RECORD_SLOT_SIZE,
    RECORD_BOOT_SIZE = 16,
};

enum record_phase {
    RECORD_NONE,    /* the slot is free */
    RECORD_BEGUN,   /* the first step of a plan was about to be sent */
    RECORD_RESUMED, /* Resume was about to be sent */
};

struct record {
    enum record_phase phase;
    int32_t pid;
    uint64_t start_time; /* clock ticks after boot */
    struct guid cookie;
};

enum record_health {
    RECORD_WHOLE,
    RECORD_OTHER_BOOT, /* whole, but of another boot: it says nothing about anybody alive */
    RECORD_DAMAGED,    /* cut, corrupt, or of a version that is not known */
};

/* Writes a header for the boot with that id. `distrusted_until`: whoever was started by then, in
 * clock ticks after boot, may have had a record that was lost; 0 when none was. */
void record_write_header(const uint8_t boot[static RECORD_BOOT_SIZE], uint64_t distrusted_until,
                         uint8_t ret_bytes[static RECORD_HEADER_SIZE]);

/* Judges the header of a file of `length` bytes, of which RECORD_HEADER_SIZE at most are looked at.
 * `*ret_distrusted_until` is set with RECORD_WHOLE. */
enum record_health record_read_header(const uint8_t *bytes, size_t length,
                                      const uint8_t boot[static RECORD_BOOT_SIZE],
                                      uint64_t *ret_distrusted_until);

void record_write(const struct record *record, uint8_t ret_bytes[static RECORD_SLOT_SIZE]);

/* False when the slot is damaged. A slot of zeroes is free. */
bool record_read(const uint8_t bytes[static RECORD_SLOT_SIZE],
                 struct record *ret_record) MUST_CHECK;
