/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Profilers: the list that StartupProfiler fills, what loading one comes to,
 * and the messages that the runtime sends about it. Called with the runtime's
 * lock held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"

struct bytes;
struct runtime;

struct profiler {
    struct guid clsid;
    char *path; /* NULL when none was given */
};

struct profilers {
    struct profiler *stored;
    size_t n_stored;
    bool has_main;
    char *loaded; /* JSON objects with commas between them, in the order of loading */
};

/* StartupProfiler: stores it and looks at nothing. */
uint32_t profilers_store(struct runtime *runtime, const struct guid *clsid, const char *path);

/* What the runtime does between the pause and the first managed code. May end the process. */
void profilers_load_stored(struct runtime *runtime);

/* AttachProfiler, of a runtime that runs. */
uint32_t profilers_attach(struct runtime *runtime, const struct guid *clsid, const char *path);
