/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The payload of the three ProcessInfo replies.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-process-protocol.c; field
 * order measured on 8.0.0 to 11.0.0. While suspended the command line is only
 * the host's path, without arguments (dotnet/runtime issue 59439), and the
 * entry assembly is "" before .NET 8.
 */

#include <stdint.h>

#include "lib/command.h"
#include "lib/guid.h"
#include "lib/util.h"

struct process_info {
    uint64_t pid; /* in the runtime's own pid namespace, as in the advertise */
    struct guid cookie;
    char *command_line;
    char *os;
    char *architecture;
    char *entry_assembly; /* NULL when the form of the reply has none */
    char *version;        /* likewise; may carry a prerelease label and build metadata */
    char *rid;            /* likewise */
};

/*
 * Reads the payload of a reply to `form`, one of the ProcessInfo commands.
 * Bytes after the last known field are ignored: newer runtimes may append.
 * False, and nothing returned, when a field is cut or memory is out.
 */
bool process_info_read(enum command_id form, const uint8_t *payload, size_t length,
                       struct process_info *ret_info) MUST_CHECK;

void process_info_deinit(struct process_info *info);

/* The major version that a version text begins with; 0 when it does not begin with a number from 1
 * to 999 and a dot. */
unsigned process_info_major(const char *version);
