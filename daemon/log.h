/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines on standard error, with the level in front where systemd reads them.
 *
 * Nothing here may be called between the decision about a runtime and its
 * Resume. Text from outside has to be escaped before it comes here.
 */

#include "lib/util.h"

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
};

/* Levels are written as "<N>" in front of each line when standard error goes to the journal. */
void log_open(void);

void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...)  log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
