/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of records as other versions write them. The oldest is kept as it was
 * written, in tests/fixtures.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/record.h"

/* Puts the sum of all that is before its last bytes into these, as headers and marks have it. */
void unit_record_sum(uint8_t *bytes, size_t length);

enum { UNIT_RECORD_OLD_VERSION = 2, UNIT_RECORD_OLD_MARK = 128 };

/* A mark of today as version 2 has it. */
void unit_record_old_mark(const uint8_t *mark, uint8_t ret_mark[static UNIT_RECORD_OLD_MARK]);

/* Makes a file of today one that version 2 has written. */
void unit_record_make_older(const char *path);

/* What is in a slot of a file of today. */
struct record unit_record_at(const char *path, uint32_t slot);

/* Makes it one of a version after this one. */
void unit_record_make_newer(const char *path);
