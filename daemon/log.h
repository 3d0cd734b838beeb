/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon writes for people: to the journal, with fields, when systemd
 * has connected standard error to it, else as lines on standard error.
 *
 * Nothing here may be called between the decision about a runtime and its
 * Resume. Text from outside has to be escaped before it comes here. Nothing here
 * waits: what nobody takes is lost, and the next line says how many were.
 */

#include <stdbool.h>

#include "daemon/entry.h"
#include "lib/util.h"

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
};

#define LOG_JOURNAL "/run/systemd/journal/socket"

/*
 * Finds out where standard error goes. `journal` is the journal's socket. Where
 * that cannot be used lines go to standard error, with their level in front as
 * "<N>" as the journal takes it there.
 */
void log_open(const char *journal);

/* True when what is said goes to the journal, which takes no more than so much of one service. */
bool log_is_journal(void);

/* Forgets that. */
void log_close(void);

void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same with an id, and the fields of its kind that `notice`, which may be NULL, has. */
void log_entry(enum entry_kind kind, enum log_level level, const struct notice *notice,
               const char *format, ...) PRINTF_LIKE(4, 5);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
