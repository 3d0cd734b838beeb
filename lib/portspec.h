/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The grammar of DOTNET_DiagnosticPorts as the runtime reads it, blanks, empty
 * pieces and unknown tags included.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-ipc.c
 * (ds_ipc_stream_factory_configure, ipc_stream_factory_build_and_add_port);
 * every line of the grammar was measured on 8.0.0 to 11.0.0.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/util.h"

enum {
    /* Longer ones do not fit into sun_path: 8.0.0 waits for ever, later ones drop the port. */
    PORTSPEC_PATH_MAX = 107,
    /* More are cut off and said to be. */
    PORTSPEC_ENTRIES_MAX = 16,
};

struct portspec_entry {
    const char *path; /* `path_length` bytes inside the text that was read */
    size_t path_length;
    bool listens; /* tag listen: ignored by desktop runtimes, which have a port of their own */
    bool suspends;
    bool is_too_long;
};

struct portspec {
    struct portspec_entry entries[PORTSPEC_ENTRIES_MAX];
    size_t n_entries;
    bool is_cut;
};

/* Reads a value of the variable; never fails, since the runtime never complains either. The entries
 * point into `value`. */
void portspec_read(const char *value, struct portspec *ret_portspec);

enum portspec_mode {
    PORTSPEC_UNKNOWN, /* the entries differ, or there are none, or too many */
    PORTSPEC_SUSPENDS,
    PORTSPEC_RUNS_ON,
};

/* What all entries that connect agree on. An entry that is too long or listens has no say. */
enum portspec_mode portspec_mode(const struct portspec *portspec);
