/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "ctl/help.h"

#include <stdio.h>
#include <string.h>

#include "ctl/arguments.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "lib/util.h"

enum { COLUMN = 20 };

static const char synopsis[] = "Usage: diagportctl [--socket PATH] [--json] COMMAND [ARGUMENTS]\n";

static const char introduction[] =
    "\n"
    "Asks diagportd, the daemon that holds .NET runtimes before their first\n"
    "instruction, and tells it what to do.\n"
    "\n"
    "Commands:\n";

static const char end[] =
    "\n"
    "\"diagportctl help COMMAND\" says more. The socket is that of --socket, else that\n"
    "of $DIAGPORT_CONTROL, else that of your own instance (diagportd --user) where it\n"
    "is there, else /run/diagport/control.sock.\n"
    "\n"
    "Exit status: 0 done, 1 the answer is no, 2 called wrongly, 3 refused, 4 no daemon.\n";

static void print_options(const struct command_option *options, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct command_option *option = &options[i];
        char letter[8] = "", words[64];

        if (!option->help)
            continue;
        if (option->letter != '\0')
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(words, sizeof words, "%s--%s%s%s", letter, option->name,
                 option->argument ? " " : "", option->argument ? option->argument : "");
        printf("  %-*s  %s\n", COLUMN, words, option->help);
    }
}

static void print_synopsis(const struct command *command)
{
    printf("Usage: diagportctl %s", command->name);
    for (size_t i = 0; i < command->n_options; i++) {
        const struct command_option *option = &command->options[i];

        if (!option->help)
            continue;
        printf(" [--%s%s%s]", option->name, option->argument ? " " : "",
               option->argument ? option->argument : "");
    }
    if (command->operands)
        printf(" %s", command->operands);
    putchar('\n');
}

static void print_command(const struct command *command)
{
    print_synopsis(command);
    printf("\n%s\n", command->help);
    puts("Options:");
    print_options(command->options, command->n_options);
    print_options(arguments_common, arguments_n_common);
}

static void print_program(void)
{
    fputs(synopsis, stdout);
    fputs(introduction, stdout);
    for (size_t i = 0; commands[i]; i++)
        printf("  %-*s  %s\n", COLUMN, commands[i]->name, commands[i]->summary);
    puts("\nOptions:");
    print_options(arguments_common, arguments_n_common);
    fputs(end, stdout);
}

void help_print(const struct command *command)
{
    if (command)
        print_command(command);
    else
        print_program();
}

void help_print_usage(void)
{
    fputs(synopsis, stderr);
    fputs("See \"diagportctl help\".\n", stderr);
}

void help_print_version(void)
{
    printf("diagportctl %s\n", PACKAGE_VERSION);
}

static int run(const struct call *call)
{
    const struct command *command = NULL;

    if (call->n_operands > 0) {
        command = command_find(call->operands[0]);
        if (!command) {
            output_error("there is no command \"%s\"; see \"diagportctl help\"", call->operands[0]);
            return STATUS_USAGE;
        }
    }
    help_print(command);
    return STATUS_DONE;
}

const struct command command_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "say what a command does",
    .help = "Says what the command does and which options it takes, or which commands\n"
            "there are.\n",
    .n_operands_max = 1,
    .run = run,
};
