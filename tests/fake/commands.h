/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The commands as the runtime understands them: one row for each, with the
 * function that carries it out and writes the reply. When and how the reply is
 * sent is not known here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "tests/fake/fault.h"

struct port;
struct report_command;
struct runtime;

struct call {
    struct runtime *runtime;
    struct port *port; /* where it came in */
    int fd;
    uint8_t set;
    uint8_t id;
    struct bytes_reader payload;
    bool is_empty; /* the message had no payload at all */
    struct report_command *record;
    struct fault_plan plan;

    uint32_t result;
    struct bytes reply;        /* one whole message */
    struct bytes continuation; /* what follows it */
    bool leaves_open;          /* the real one does, after some errors */
    uint64_t session;          /* a session has the socket now */
};

/* A bit for each row of that key, or of its group; 0 when there is none. */
uint32_t commands_kinds(const char *key);

/* The bit of one command, or 0. */
uint32_t commands_kind(uint8_t set, uint8_t id);

/* "ResumeRuntime", or "unknown". */
const char *commands_name(uint8_t set, uint8_t id);

/* The keys, for --help. */
void commands_print_help(void);

/* Carries the command out, with the runtime's lock held. May end the process. */
void commands_run(struct call *call);

/* Makes the reply an error. */
void commands_fail(struct call *call, uint32_t hresult);
