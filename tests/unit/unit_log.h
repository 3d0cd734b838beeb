/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Somebody who reads the log: a journald that takes datagrams, and systemd's end
 * of standard error.
 */

#include <stdbool.h>
#include <stddef.h>

/* Opens the log with both of them; `is_systemd` false: standard error is nobody's. */
void unit_log_open(bool is_systemd);

/* Closes it, and gives standard error back. */
void unit_log_close(void);

/* From now on nobody listens where the journal did. */
void unit_log_end_journal(void);

/* The next entry that came to the journal, with NULs in it if somebody wrote some; NULL when there
 * is none. It stays until the next call. */
const char *unit_log_entry(size_t *ret_length);

/* The value of a field of the entry that unit_log_entry() returned last, "" when it has none. It
 * stays until the next call. */
const char *unit_log_field(const char *name);

/* What came to standard error since the last call, "" for nothing; it stays until the next call. */
const char *unit_log_lines(void);
