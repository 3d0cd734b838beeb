/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The report: everything that was done to the runtime, as one line of JSON at
 * the start of managed code and one at the end. README.md lists the keys.
 *
 * All functions are called with the runtime's lock held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"

struct runtime;
struct port;

struct report_command {
    uint8_t set;
    uint8_t id;
    size_t port;            /* its place in the list of ports */
    unsigned connection;    /* the how manieth connection of that port */
    struct bytes arguments; /* members of a JSON object */
    char *subject;          /* what must not come twice: a variable, a profiler, a hook */
    const char *fault;      /* the fault that was due, or NULL */
    bool has_result;
    uint32_t result;
    bool is_after_resume;
};

struct report {
    struct report_command **list;
    size_t n;
    size_t n_told;       /* of these an earlier line has told */
    size_t n_told_hooks; /* likewise, of the hooks that ran */
};

/* Notes a command that was read; NULL when memory is out. */
struct report_command *report_command(struct runtime *runtime, const struct port *port, uint8_t set,
                                      uint8_t id);

/* Adds an argument: a text (NULL for none), or a number. */
void report_text(struct report_command *command, const char *name, const char *text);
void report_number(struct report_command *command, const char *name, uint64_t number);

/* Writes the line of that event, "start" or "end", into the report file or to standard output. The
 * second one tells only the commands that the first has not told. */
void report_write(struct runtime *runtime, const char *event, const char *reason);
