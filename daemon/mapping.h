/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files in memory that may be cut short while they are used: what is not there
 * any more reads as zero and takes what is written, instead of ending the daemon
 * with SIGBUS. What the files are is not known here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { MAPPINGS_MAX = 4 };

/*
 * Maps that much of a file: shared, for reading and writing, or private and only
 * for reading. NULL with errno when that fails, and with ENOSPC when there are
 * MAPPINGS_MAX already. For one thread; the first one takes SIGBUS for the process.
 */
uint8_t *mapping_new(int fd, size_t length, bool is_shared) MUST_CHECK;

/* True when the file was shorter than that once at a place that was used: what was there is lost,
 * and what was written since is in no file. */
bool mapping_was_cut(const uint8_t *map);

/* Returns NULL. NULL is allowed. */
uint8_t *mapping_free(uint8_t *map);
