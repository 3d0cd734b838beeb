/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lines to standard error. Each begins with its level where it goes to the
 * journal, and with the name of the program elsewhere. A reader that is stuck
 * stops nobody: then the line is lost.
 */

#include "lib/util.h"

enum line_level { LINE_ERROR = 3, LINE_WARNING = 4, LINE_NOTICE = 5, LINE_INFO = 6 };

/* Looks where standard error goes. */
void line_open(void);

void line_write(enum line_level level, const char *format, ...) PRINTF_LIKE(2, 3);
