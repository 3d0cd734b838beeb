/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command line: what is before the command, the command, and what is after
 * it. What commands do with it is not known here.
 */

#include <stddef.h>

#include "ctl/command.h"

/* What comes with every command, before it or after it. */
extern const struct command_option arguments_common[];
extern const size_t arguments_n_common;

/*
 * Reads the words of a command line into `ret_call`, which points into them.
 * They may be put into another order. -1 when the command is to be run, else
 * the status to exit with; then everything was said.
 */
int arguments_read(int argc, char **argv, struct call *ret_call);
