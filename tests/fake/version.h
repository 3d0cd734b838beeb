/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In what the runtimes that can be played differ: one row for each kind and
 * major version, and nothing else in this folder asks for a number.
 *
 * CoreCLR 8 to 11 and NativeAOT 8 to 10 were measured (8.0.0, 8.0.34, 9.0.23,
 * 10.0.15, 11.0.0; 8.0.31, 9.0.20, 10.0.12). CoreCLR 5 to 7, Mono and
 * NativeAOT 11 are derived from source and from their neighbours.
 */

#include <stdbool.h>

enum kind {
    KIND_CORECLR,
    KIND_NATIVEAOT,
    KIND_MONO,
};

struct version {
    enum kind kind;
    unsigned major;
    const char *text; /* what it calls itself unless told otherwise */

    /* What it can do. */
    bool profilers;      /* startup and attached profilers */
    bool startup_hooks;  /* ApplyStartupHook runs hooks */
    bool perf_maps;      /* EnablePerfMap and DisablePerfMap do something */
    bool core_dumps;     /* GenerateCoreDump writes a file */
    bool private_copy;   /* variables are set in a copy, not in the real environment */
    bool complus_prefix; /* settings are read under COMPlus_ too, and the switch for IPC is known */

    /* What it does in its own way. */
    bool too_long_waits;        /* a path that does not fit is waited for for ever */
    bool short_payload_is_read; /* fields that are missing are read as zeros, an empty one kills */
    bool bad_session_kills;     /* CollectTracing of no size or another format, or too many */
    bool bad_session_stays;     /* the socket of a refused CollectTracing is left open */
    bool streams_at_once;       /* a session sends its first bytes before Resume */
    bool last_profiler_first;   /* the stored profilers are loaded last sent first */
    bool profilers_unknown;     /* StartupProfiler came with .NET 6 */
    bool settings_filtered;     /* CORECLR_ names given over IPC are not looked at */
    bool entry_known_early;     /* the entry assembly is known while suspended */
    bool perf_map_kills;        /* a perf map kills it while it is suspended */
    bool failing_hook_kills;    /* so does a hook that fails while it is running */
    bool attach_data_inverted;  /* client data may be shorter, not longer, than announced */
    bool terminate_is_lost;     /* SIGTERM while suspended vanishes */
    bool terminate_is_clean;    /* SIGTERM while running ends it with status 143 */
    bool null_name_kills;       /* NativeAOT: setting a variable without a name */

    /* What its threads are called; see picture.h. */
    bool has_synch_manager;
    bool server_is_named;
    const char *tiering;
    const char *finalizer; /* NULL: as the main thread */
    bool has_debugger;
};

/*
 * The row for `text`, "8" or "8.0.34" or "11.0.0-rc.1". The caller's copy may
 * show another text than the row. NULL when nothing of that version can be played.
 */
const struct version *version_find(enum kind kind, const char *text);

/* Some versions within a row differ: 8.0.0 still waits for a path that is too long. */
struct version version_adjust(const struct version *version, const char *text);

const char *kind_name(enum kind kind);
