/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The commands of diagportctl: one table row each, in the file of its name.
 *
 * The row says what may be written and what it means; usage texts, help and the
 * parser (arguments.h) are made from it. What a command does is not known here.
 */

#include <stdbool.h>
#include <stddef.h>

enum {
    STATUS_DONE,
    STATUS_NO,        /* the answer is no */
    STATUS_USAGE,     /* called wrongly */
    STATUS_REFUSED,   /* the caller may not */
    STATUS_NO_DAEMON, /* nobody to ask */
};

enum {
    COMMAND_OPTIONS_MAX = 12,
    COMMAND_OPERANDS_UNLIMITED = -1,
};

struct command_option {
    const char *name;
    char letter;          /* '\0': it has none */
    const char *argument; /* what its argument is called; NULL: it takes none */
    const char *help;     /* one line; NULL: not in this version, and refused */
};

struct call;

struct command {
    const char *name;
    const char *operands; /* as in usage texts; NULL: it takes none */
    const char *summary;  /* one line */
    const char *help;     /* paragraphs, with a line feed at the end of each line */
    const struct command_option *options;
    size_t n_options;
    int n_operands_min;
    int n_operands_max;
    bool is_weighty; /* done by the wrong daemon it would do harm: the user hears which one is asked
                      * where that may be a surprise */
    bool ends_options; /* the first operand is the first word of another command line */
    /* Returns the exit status; has said why when it is not 0. */
    int (*run)(const struct call *call);
};

/* What a command was called with. */
struct call {
    const struct command *command;
    const char *socket; /* of --socket, or NULL */
    bool is_json;
    const char *values[COMMAND_OPTIONS_MAX]; /* by the places of its options: the argument, "" for
                                                one that takes none, or NULL */
    char *const *operands;
    int n_operands;
};

extern const struct command command_attach_profiler;
extern const struct command command_check;
extern const struct command command_env;
extern const struct command command_events;
extern const struct command command_explain;
extern const struct command command_help;
extern const struct command command_hold;
extern const struct command command_kill;
extern const struct command command_list;
extern const struct command command_metrics;
extern const struct command command_reload;
extern const struct command command_resume;
extern const struct command command_rules;
extern const struct command command_run;
extern const struct command command_show;
extern const struct command command_status;

/* All of them in the order of the help, NULL-terminated. */
extern const struct command *const commands[];

/* NULL when there is none of that name. */
const struct command *command_find(const char *name);

/* What is planned under that name, as the start of a sentence; NULL when nothing is. */
const char *command_find_later(const char *name);
