/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Usage texts and help, made from the table of commands.
 */

struct command;

/* What a command does, or for NULL what the program does, on standard output. */
void help_print(const struct command *command);

/* How the program is called, on standard error. */
void help_print_usage(void);

void help_print_version(void);
