/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/version.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* What all CoreCLR versions share, and all that are older than a fix. */
#define CORECLR                                                                     \
    .kind = KIND_CORECLR, .profilers = true, .perf_maps = true, .core_dumps = true, \
    .private_copy = true, .complus_prefix = true, .server_is_named = true,          \
    .finalizer = ".NET Finalizer", .has_debugger = true
#define BEFORE_10                                                                           \
    .short_payload_is_read = true, .bad_session_kills = true, .attach_data_inverted = true, \
    .terminate_is_lost = true, .terminate_is_clean = true, .has_synch_manager = true,       \
    .tiering = ".NET Tiered Com"

#define NATIVEAOT .kind = KIND_NATIVEAOT, .entry_known_early = true
#define MONO                                                                     \
    .kind = KIND_MONO, .entry_known_early = true, .short_payload_is_read = true, \
    .server_is_named = true, .finalizer = "Finalizer"

/* clang-format off */
static const struct version rows[] = {
    {CORECLR, BEFORE_10, .major = 5, .text = "5.0.17", .too_long_waits = true,
     .profilers_unknown = true},
    {CORECLR, BEFORE_10, .major = 6, .text = "6.0.36", .too_long_waits = true},
    {CORECLR, BEFORE_10, .major = 7, .text = "7.0.20", .too_long_waits = true},
    {CORECLR, BEFORE_10, .major = 8, .text = "8.0.34", .startup_hooks = true,
     .last_profiler_first = true, .entry_known_early = true, .perf_map_kills = true},
    {CORECLR, BEFORE_10, .major = 9, .text = "9.0.23", .startup_hooks = true,
     .last_profiler_first = true, .entry_known_early = true, .perf_map_kills = true,
     .failing_hook_kills = true, .bad_session_stays = true},
    {CORECLR, .major = 10, .text = "10.0.15", .startup_hooks = true, .last_profiler_first = true,
     .entry_known_early = true, .failing_hook_kills = true, .bad_session_stays = true,
     .short_payload_is_read = true, .attach_data_inverted = true, .has_synch_manager = true,
     .tiering = ".NET Tiered Com"},
    {CORECLR, .major = 11, .text = "11.0.0", .startup_hooks = true, .last_profiler_first = true,
     .entry_known_early = true, .bad_session_stays = true, .streams_at_once = true,
     .settings_filtered = true, .tiering = ".NET Tiered JIT"},
    {NATIVEAOT, .major = 8, .text = "8.0.31", .short_payload_is_read = true,
     .bad_session_kills = true, .null_name_kills = true},
    {NATIVEAOT, .major = 9, .text = "9.0.20", .short_payload_is_read = true,
     .bad_session_kills = true, .bad_session_stays = true},
    {NATIVEAOT, .major = 10, .text = "10.0.12", .short_payload_is_read = true,
     .bad_session_stays = true, .server_is_named = true, .finalizer = ".NET Finalizer"},
    {NATIVEAOT, .major = 11, .text = "11.0.0", .bad_session_stays = true, .server_is_named = true,
     .finalizer = ".NET Finalizer"},
    {MONO, .major = 8, .text = "8.0.34"},
    {MONO, .major = 9, .text = "9.0.23"},
    {MONO, .major = 10, .text = "10.0.15"},
};
/* clang-format on */

const struct version *version_find(enum kind kind, const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);

    if (end == text || (*end != '\0' && *end != '.'))
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (rows[i].kind == kind && rows[i].major == major)
            return &rows[i];
    }
    return NULL;
}

struct version version_adjust(const struct version *version, const char *text)
{
    struct version adjusted = *version;

    if (strchr(text, '.'))
        adjusted.text = text;
    if (version->kind == KIND_CORECLR && strcmp(text, "8.0.0") == 0)
        adjusted.too_long_waits = true;
    return adjusted;
}

const char *kind_name(enum kind kind)
{
    switch (kind) {
    case KIND_CORECLR:
        return "coreclr";
    case KIND_NATIVEAOT:
        return "nativeaot";
    case KIND_MONO:
        return "mono";
    }
    return NULL;
}
