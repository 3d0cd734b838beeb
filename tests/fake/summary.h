/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Adds up the report lines and the deaths of a fleet, and says what was wrong.
 * Knows the keys of the report, and nothing of processes.
 */

#include <stdbool.h>
#include <stddef.h>

struct json_t;

/* What every runtime has to tell. */
struct summary_expectation {
    const char *name;
    const char *value; /* of a variable; NULL when a command is meant */
    unsigned long count;
};

struct summary {
    const struct summary_expectation *expectations;
    size_t n_expectations;
    size_t count; /* runtimes that were started */

    bool may_repeat; /* variables: the answer to one may have been lost with a daemon */
    size_t n_started;
    size_t n_resumed;
    size_t n_told_pause;
    size_t connections;
    struct json_t *commands; /* name: how many */
    struct json_t *signals;  /* number: how many died by it */
    long *ms_to_resume;      /* `n_resumed` of them */

    /* What must not be. */
    size_t n_died;
    size_t n_failed;     /* another exit status than 0 */
    size_t n_unfinished; /* killed by us */
    size_t n_unreadable; /* report lines */
    size_t n_twice;
    size_t n_after_resume;
    size_t n_unexpected;
};

/* False when memory is out. */
bool summary_init(struct summary *summary, size_t count,
                  const struct summary_expectation *expectations, size_t n_expectations);
void summary_deinit(struct summary *summary);

/* One line of the report file, NUL-terminated. */
void summary_take_line(struct summary *summary, const char *line);

/* One end of a process, as waitpid tells it. `is_ours` when we had sent the signal. */
void summary_take_status(struct summary *summary, int status, bool is_ours);

/* Prints the JSON; true when all is as it has to be. */
bool summary_print(struct summary *summary);
