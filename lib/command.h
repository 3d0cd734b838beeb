/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every command of the diagnostics protocol: what it is, since when it exists,
 * what may be done with it, and its bytes.
 *
 * One table row per command; whoever wants to know whether a command may be
 * repeated, undone or sent at all asks the table, never a list of their own.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-*-protocol.c and
 * dotnet/diagnostics src/Microsoft.Diagnostics.NETCore.Client. Which version
 * knows a command, and what kills a runtime, was measured on CoreCLR 8.0.0,
 * 8.0.34, 9.0.23, 10.0.15, 11.0.0 and NativeAOT 8.0.31, 9.0.20, 10.0.12;
 * "since" below .NET 8 is from source.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

struct bytes;

enum command_id {
    COMMAND_GENERATE_CORE_DUMP,
    COMMAND_GENERATE_CORE_DUMP_2,
    COMMAND_GENERATE_CORE_DUMP_3,
    COMMAND_STOP_TRACING,
    COMMAND_COLLECT_TRACING,
    COMMAND_COLLECT_TRACING_2,
    COMMAND_COLLECT_TRACING_3,
    COMMAND_COLLECT_TRACING_4,
    COMMAND_COLLECT_TRACING_5,
    COMMAND_COLLECT_TRACING_6,
    COMMAND_ASK_KIND,
    COMMAND_ATTACH_PROFILER,
    COMMAND_STARTUP_PROFILER,
    COMMAND_PROCESS_INFO,
    COMMAND_RESUME,
    COMMAND_PROCESS_ENVIRONMENT,
    COMMAND_SET_ENVIRONMENT,
    COMMAND_PROCESS_INFO_2,
    COMMAND_ENABLE_PERF_MAP,
    COMMAND_DISABLE_PERF_MAP,
    COMMAND_APPLY_STARTUP_HOOK,
    COMMAND_PROCESS_INFO_3,
};

enum { COMMAND_COUNT = COMMAND_PROCESS_INFO_3 + 1 };

enum command_repeat {
    COMMAND_REPEATABLE, /* a second one changes nothing */
    COMMAND_ONCE,       /* a second one applies a second time */
};

enum command_undo {
    COMMAND_NOTHING_TO_UNDO, /* it only asks, or it is Resume */
    COMMAND_UNDONE_BY_VALUE, /* the old value is set again */
    COMMAND_UNDONE_BY_OTHER, /* another command takes it back */
    COMMAND_STAYS,           /* nothing takes it back */
};

enum command_answer {
    COMMAND_ANSWERS_STATUS,       /* a result code */
    COMMAND_ANSWERS_PROCESS_INFO, /* see process_info.h */
    COMMAND_ANSWERS_ENVIRONMENT,  /* see environment.h; a continuation follows the reply */
    COMMAND_ANSWERS_SESSION,      /* a session id, then a stream on the same connection */
    COMMAND_ANSWERS_SESSION_ID,   /* a session id alone: that of one which ends */
};

enum runtime_kind {
    RUNTIME_KIND_UNKNOWN,
    RUNTIME_KIND_CORECLR,
    RUNTIME_KIND_NATIVEAOT,
    RUNTIME_KIND_MONO,
};

/* What is known of the runtime that is to get a command. */
struct command_target {
    enum runtime_kind kind;
    unsigned major;          /* its major version; 0 when it is not known */
    bool port_suspends;      /* its port is known to be a suspending one */
    bool shows_running;      /* the process shows a sign of running */
    bool shows_suspended;    /* the process shows the picture of a suspended one */
    bool prevents_profilers; /* DOTNET_ProfAPI_ProfilerCompatibilitySetting=PreventLoad */
};

struct command {
    const char *name; /* as the protocol's documentation has it */
    uint8_t set;
    uint8_t id;
    uint8_t since; /* the first major version that knows it */
    enum command_repeat repeat;
    enum command_undo undo;
    enum command_answer answer;
    /* Why this command would kill, hang or mislead that target; NULL when it would not, or the
     * whole column is NULL when it never does. `removes` is true for an environment command
     * without a value. */
    const char *(*deadly)(const struct command_target *target, bool removes);
};

const struct command *command_row(enum command_id id);

/* The row of a set and id as they are on the wire; false when there is none. */
bool command_find(uint8_t set, uint8_t id, enum command_id *ret_id) MUST_CHECK;

/*
 * Why `id` must not be sent to `target`, as the end of a sentence that starts
 * with the command's name; NULL when it may be. Nothing may be sent without
 * asking here.
 */
const char *command_deadly(enum command_id id, const struct command_target *target, bool removes);

/* True when a runtime of that major version knows the command, or when the version is not known
 * (`major` 0) and nothing says that it does not. */
bool command_is_known_to(enum command_id id, unsigned major);

/* "coreclr", "nativeaot", "mono"; NULL for an unknown kind. */
const char *runtime_kind_name(enum runtime_kind kind);

/*
 * The writers below fill an empty buffer with one whole message. Each returns
 * 0, -ENOMEM, WIRE_E_TOO_LONG or WIRE_E_TEXT.
 */

/* For every command without a payload: ProcessInfo in all forms, Resume, ProcessEnvironment,
 * DisablePerfMap and the question for the kind. */
int command_write_plain(struct bytes *message, enum command_id id) MUST_CHECK;

/* UTF-16 units of a name and its value together that fit into a message. */
enum { COMMAND_VARIABLE_UNITS_MAX = 32751 };

/* `value` NULL unsets. A name with '=' is split there by the runtime: do not pass one. */
int command_write_set_environment(struct bytes *message, const char *name,
                                  const char *value) MUST_CHECK;

int command_write_startup_profiler(struct bytes *message, const struct guid *clsid,
                                   const char *path) MUST_CHECK;

/* `timeout_ms` is how long the runtime may wait for a garbage collection to end. */
int command_write_attach_profiler(struct bytes *message, uint32_t timeout_ms,
                                  const struct guid *clsid, const char *path, const void *data,
                                  size_t data_length) MUST_CHECK;

/* `paths` is one or several absolute paths joined by ':', which run in that order. */
int command_write_apply_startup_hook(struct bytes *message, const char *paths) MUST_CHECK;

/* `type`: 1 all, 2 jitdump, 3 perf map. */
int command_write_enable_perf_map(struct bytes *message, uint32_t type) MUST_CHECK;

/* `id` is one of the three dump commands; `type` 1 normal, 2 heap, 3 triage, 4 full. */
int command_write_core_dump(struct bytes *message, enum command_id id, const char *path,
                            uint32_t type, uint32_t flags) MUST_CHECK;

int command_write_stop_tracing(struct bytes *message, uint64_t session) MUST_CHECK;

/* Reads the session's id from the payload of an OK reply to StopTracing or any CollectTracing;
 * false, and nothing returned, when it is too short. Behind the reply of the latter, which has 28
 * bytes, the session's stream follows without a gap (measured on 8.0.34 to 11.0.0). */
bool command_read_session(const uint8_t *payload, size_t length, uint64_t *ret_session) MUST_CHECK;

struct command_provider {
    uint64_t keywords;
    uint32_t level;
    const char *name;
    const char *arguments; /* NULL for none */
};

enum { COMMAND_PROVIDERS_MAX = 1000 };

struct command_session {
    uint32_t buffer_mb;        /* not 0 */
    bool rundown;              /* CollectTracing 2 and 3 */
    uint64_t rundown_keywords; /* CollectTracing 4 and later */
    bool stacks;               /* CollectTracing 3 and later */
    bool block_when_full;      /* CollectTracing 6 */
    const struct command_provider *providers;
    size_t n_providers; /* up to COMMAND_PROVIDERS_MAX */
};

/*
 * A session in nettrace format. `id` is one of the six CollectTracing commands;
 * what its form of the command cannot say is left out. -EINVAL without a buffer
 * or with too many providers: CollectTracing2 with either kills 8.0.34 and
 * 9.0.23, and 10.0.15 and 11.0.0 refuse it (measured).
 */
int command_write_collect_tracing(struct bytes *message, enum command_id id,
                                  const struct command_session *session) MUST_CHECK;
