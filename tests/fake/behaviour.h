/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Everything a runtime can be told about itself, in one table: a key, what it
 * takes, where it is kept and what it means. A new behaviour is a new row; the
 * command line, the environment and --help all come from the table.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/guid.h"
#include "tests/fake/fault.h"
#include "tests/fake/version.h"

enum picture {
    PICTURE_HONEST,
    PICTURE_SUSPENDED,
    PICTURE_RUNNING,
    PICTURE_BARE,
};

enum files {
    FILES_CHECKED,
    FILES_UNCHECKED,
    FILES_OFF,
};

enum child {
    CHILD_NONE,
    CHILD_MANAGED,
    CHILD_NATIVE,
};

enum run_for {
    RUN_FOR_EXIT,
    RUN_FOR_STDIN,
    RUN_FOR_SIGNAL,
};

struct behaviour {
    /* Who it is. */
    const char *version_text;
    unsigned kind; /* enum kind */
    struct version version;
    struct guid cookie;
    bool has_cookie;
    unsigned long cookies;   /* how many different ones it uses in turn; 0 is one */
    unsigned long claim_pid; /* 0: the real one */
    const char *entry;
    const char *rid;

    /* Its ports. */
    const char *default_port;
    unsigned long read_timeout;
    unsigned long slow_bytes;

    /* How it starts. */
    unsigned long wait_fd; /* 0: none */
    unsigned long profiler_race;
    unsigned long start_delay;
    unsigned long message_after;
    unsigned picture;
    unsigned hooks;
    unsigned profilers;

    /* What it answers. */
    unsigned long environment_bytes;
    unsigned long info_payload;
    unsigned long rundown_bytes;

    /* What it does once it runs. */
    const char *report;
    unsigned run_for;
    unsigned child;
    unsigned long exit_status;

    struct faults faults;
};

/* The behaviour of a healthy runtime. */
void behaviour_init(struct behaviour *behaviour);
void behaviour_deinit(struct behaviour *behaviour);

/* Whether `key` takes a value; false too when there is no such key. */
bool behaviour_takes_value(const char *key);

/* Sets one key, `value` NULL when none was given; texts are kept as pointers. False, and a line on
 * standard error, when that is not possible. */
bool behaviour_set(struct behaviour *behaviour, const char *key, const char *value);

/* Sets every KEY or KEY=VALUE of a list with commas between them; "\," is a comma inside a value.
 * The list is cut up in place and has to live as long as the behaviour. */
bool behaviour_set_list(struct behaviour *behaviour, char *list);

/* Settles what depends on several keys. False, and a line on standard error, when they do not fit.
 */
bool behaviour_complete(struct behaviour *behaviour);

/* The key of a fault. */
const char *behaviour_fault_name(enum fault_id id);

/* The table, for --help. */
void behaviour_print_help(void);
