/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/arguments.h"

#include <getopt.h>
#include <string.h>

#include "ctl/help.h"
#include "ctl/output.h"
#include "lib/util.h"

enum { COMMON_SOCKET, COMMON_JSON, COMMON_HELP, COMMON_VERSION };

const struct command_option arguments_common[] = {
    [COMMON_SOCKET] = {"socket", '\0', "PATH", "the control socket of the daemon to ask"},
    [COMMON_JSON] = {"json", '\0', NULL, "write JSON, for machines"},
    [COMMON_HELP] = {"help", 'h', NULL, "say what can be written, and what it means"},
    [COMMON_VERSION] = {"version", '\0', NULL, "say which version this is"},
};
const size_t arguments_n_common = ARRAY_LENGTH(arguments_common);

enum {
    GO_ON = -1,
    /* What getopt_long returns for an option: its place, away from all letters. */
    COMMON = 0x1000,
    OWN = 0x2000,
    N_OPTIONS_MAX = ARRAY_LENGTH(arguments_common) + COMMAND_OPTIONS_MAX,
    OPERAND = 1,
};

/* One run of getopt_long over the words from `argv[1]` on. */
struct reader {
    struct call *call;
    int argc;
    char **argv;
    struct option options[N_OPTIONS_MAX + 1];
    char letters[2 + 2 * N_OPTIONS_MAX + 1];
    size_t n_options;
    size_t n_letters;
    int n_operands;
    bool wants_help;
    bool wants_version;
};

static void add_options(struct reader *reader, const struct command_option *options, size_t n,
                        int first)
{
    for (size_t i = 0; i < n; i++) {
        const bool takes = options[i].argument;

        reader->options[reader->n_options++] =
            (struct option){options[i].name, takes ? required_argument : no_argument, NULL,
                            first + (int)i};
        if (options[i].letter == '\0')
            continue;
        reader->letters[reader->n_letters++] = options[i].letter;
        if (takes)
            reader->letters[reader->n_letters++] = ':';
    }
}

/* `order` is '+' to stop at the first operand, or '-' to get operands one by one: either whatever
 * $POSIXLY_CORRECT says. */
static void reader_init(struct reader *reader, struct call *call, int argc, char **argv, char order)
{
    *reader = (struct reader){.call = call, .argc = argc, .argv = argv};
    reader->letters[reader->n_letters++] = order;
    reader->letters[reader->n_letters++] = ':';
    add_options(reader, arguments_common, arguments_n_common, COMMON);
    if (call->command)
        add_options(reader, call->command->options, call->command->n_options, OWN);
    optind = 0;
    opterr = 0;
}

static int complain(const struct reader *reader, const char *problem, const char *word)
{
    const struct command *command = reader->call->command;

    output_error("%s \"%s\"; see \"diagportctl help%s%s\"", problem, word, command ? " " : "",
                 command ? command->name : "");
    return STATUS_USAGE;
}

/* A letter that is not known may stand among others. */
static int complain_of_option(const struct reader *reader, int found)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    const bool is_letter = optopt > 0 && optopt < COMMON;
    const char *problem = "unknown option";

    if (found == ':')
        problem = "an argument has to follow";
    else if (optopt >= COMMON)
        problem = "no argument is expected in";
    return complain(reader, problem, is_letter ? letter : reader->argv[optind - 1]);
}

static const struct command_option *option_of(const struct reader *reader, int place)
{
    return place >= OWN ? &reader->call->command->options[place - OWN]
                        : &arguments_common[place - COMMON];
}

/* A letter comes back as itself. */
static int place_of(const struct reader *reader, int found)
{
    for (size_t i = 0; i < reader->n_options; i++) {
        const int place = reader->options[i].val;

        if (place == found || option_of(reader, place)->letter == found)
            return place;
    }
    return COMMON + COMMON_HELP;
}

static int take_common(struct reader *reader, int option)
{
    if (option == COMMON_SOCKET && optarg[0] == '\0')
        return complain(reader, "a socket has a path, not", optarg);
    if (option == COMMON_SOCKET)
        reader->call->socket = optarg;
    reader->call->is_json = reader->call->is_json || option == COMMON_JSON;
    reader->wants_help = reader->wants_help || option == COMMON_HELP;
    reader->wants_version = reader->wants_version || option == COMMON_VERSION;
    return GO_ON;
}

static int take_option(struct reader *reader, int place)
{
    const char **value;

    if (place < OWN)
        return take_common(reader, place - COMMON);
    if (!option_of(reader, place)->help)
        return complain(reader, "not in this version:", reader->argv[optind - 1]);
    value = &reader->call->values[place - OWN];
    if (*value)
        return complain(reader, "given more than once:", option_of(reader, place)->name);
    *value = optarg ? optarg : "";
    return GO_ON;
}

/* Operands among the options go to the front of argv, where getopt_long has been already. */
static int read_options(struct reader *reader)
{
    int status = GO_ON;

    while (status == GO_ON) {
        const int found =
            getopt_long(reader->argc, reader->argv, reader->letters, reader->options, NULL);

        if (found == -1)
            break;
        if (found == OPERAND)
            reader->argv[1 + reader->n_operands++] = optarg;
        else if (found == '?' || found == ':')
            status = complain_of_option(reader, found);
        else
            status = take_option(reader, place_of(reader, found));
    }
    return status;
}

static int answer_help(const struct reader *reader)
{
    if (reader->wants_version)
        help_print_version();
    else
        help_print(reader->call->command);
    return STATUS_DONE;
}

static int find_command(struct reader *reader, const char *name)
{
    const char *later = command_find_later(name);

    reader->call->command = command_find(name);
    if (reader->call->command)
        return GO_ON;
    if (!later)
        return complain(reader, "there is no command", name);
    output_error("\"%s\" is not in this version; see \"diagportctl help\"", later);
    return STATUS_USAGE;
}

static int check_operands(const struct reader *reader)
{
    const struct command *command = reader->call->command;
    const int n = reader->n_operands;

    if (n < command->n_operands_min) {
        output_error("\"diagportctl %s\" takes %s; see \"diagportctl help %s\"", command->name,
                     command->operands, command->name);
        return STATUS_USAGE;
    }
    if (command->n_operands_max != COMMAND_OPERANDS_UNLIMITED && n > command->n_operands_max)
        return complain(reader, "not expected here:", reader->argv[1 + command->n_operands_max]);
    return GO_ON;
}

/* From the command on, which is argv[0] here. */
static int read_command(int argc, char **argv, struct call *call)
{
    struct reader reader;
    int status;

    reader_init(&reader, call, argc, argv, call->command->ends_options ? '+' : '-');
    status = read_options(&reader);
    if (status != GO_ON)
        return status;
    if (reader.wants_help || reader.wants_version)
        return answer_help(&reader);
    while (optind < argc)
        argv[1 + reader.n_operands++] = argv[optind++];
    argv[1 + reader.n_operands] = NULL;
    call->operands = argv + 1;
    call->n_operands = reader.n_operands;
    return check_operands(&reader);
}

int arguments_read(int argc, char **argv, struct call *ret_call)
{
    struct reader reader;
    int status;

    *ret_call = (struct call){.command = NULL};
    reader_init(&reader, ret_call, argc, argv, '+');
    status = read_options(&reader);
    if (status != GO_ON)
        return status;
    if (reader.wants_help || reader.wants_version)
        return answer_help(&reader);
    if (optind >= argc) {
        help_print_usage();
        return STATUS_USAGE;
    }
    status = find_command(&reader, argv[optind]);
    return status != GO_ON ? status : read_command(argc - optind, argv + optind, ret_call);
}
