/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a runtime is told to do wrong, and when: the faults, and the rules that
 * say for which command or connection each one is due.
 *
 * A rule is written KIND[@WHICH][:ARGUMENT], for connections [@WHICH][:ARGUMENT].
 * KIND is a command as commands.h names it, a group of them, four hexadecimal
 * digits of set and id, or "any". WHICH counts the commands of that KIND, or
 * the connections, from 1: "3", "2-4", "3+"; without it every one is meant.
 *
 * This file decides, it does nothing; doing is up to server.c and port.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_id {
    /* Before the command is read. */
    FAULT_UNREAD,
    FAULT_RESET,
    /* Between reading and doing it. */
    FAULT_STUCK,
    FAULT_REFUSE,
    /* Between doing it and the end of the answer. */
    FAULT_STOP_BEFORE_REPLY,
    FAULT_DELAY,
    FAULT_DIE_BEFORE_REPLY,
    FAULT_CLOSE_BEFORE_REPLY,
    FAULT_SILENT,
    FAULT_WRONG_MAGIC,
    FAULT_REPLY_SIZE,
    FAULT_REPLY_SET,
    FAULT_HALF_REPLY,
    FAULT_SLOW_REPLY,
    FAULT_EXTRA_BYTES,
    FAULT_QUEUE_NEXT,
    /* After the answer. */
    FAULT_LEAVE_OPEN,
    FAULT_STOP_AFTER_REPLY,
    FAULT_DIE_AFTER_REPLY,
    FAULT_EXEC_AFTER,
    /* On a new connection. */
    FAULT_NO_ADVERTISE,
    FAULT_HALF_ADVERTISE,
    FAULT_CUT_ADVERTISE,
    FAULT_GARBAGE_ADVERTISE,
    FAULT_STOP_AFTER_ADVERTISE,
    FAULT_COUNT,
};

/* What follows the colon of a rule. */
enum fault_argument {
    FAULT_ARGUMENT_NONE,
    FAULT_ARGUMENT_NUMBER,  /* required */
    FAULT_ARGUMENT_MAYBE,   /* a number that has a default */
    FAULT_ARGUMENT_HRESULT, /* hexadecimal, then perhaps ":COUNT" */
    FAULT_ARGUMENT_TEXT,    /* any bytes, \xHH for those that are not text */
};

/* The start of managed code, for the faults that are due then. */
enum { FAULT_SET_START = 0xFE };

struct fault {
    enum fault_id id;
    bool is_any;
    uint32_t kinds; /* one bit for each row of the table of commands */
    int code;       /* set and id, or -1 */
    unsigned first, last;
    unsigned seen;
    bool has_argument;
    unsigned long argument;
    char *text;
    size_t text_length;
};

struct faults {
    struct fault *list;
    size_t n;
};

void faults_deinit(struct faults *faults);

/* Adds a rule for `id`. NULL, or why it is not one. */
const char *faults_add(struct faults *faults, enum fault_id id, enum fault_argument argument,
                       const char *rule);

/* Which rules are due for one command; NULL where none is. */
struct fault_plan {
    const struct fault *due[FAULT_COUNT];
};

/* Counts a command that has arrived: for the rules of what happens before it is read, or for all
 * others once it is. */
struct fault_plan faults_command(struct faults *faults, uint8_t set, uint8_t number, bool is_read);

/* Counts a new connection. */
struct fault_plan faults_connection(struct faults *faults);
