/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/command.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/wire.h"

enum { SET_DUMP = 1, SET_EVENT_PIPE = 2, SET_PROFILER = 3, SET_PROCESS = 4 };

enum { FORMAT_NETTRACE = 1, SESSION_STREAMS = 0 };

/*
 * While suspended a runtime of 9 or 10 takes a hook; once it runs, a hook that
 * fails aborts the process (measured on 9.0.23 and 10.0.15), and nothing but
 * the picture of its threads tells which of the two it is.
 */
static const char *deadly_unless_held(const struct command_target *target)
{
    if (!target->port_suspends)
        return "is only sent through a port that is known to suspend";
    if (target->shows_running)
        return "is not sent to a runtime that is already running";
    return NULL;
}

static const char *deadly_environment(const struct command_target *target, bool removes)
{
    if (!removes)
        return NULL;
    /* SIGSEGV on NativeAOT 8.0.31, 9.0.20 and 10.0.12, whether the variable exists or not. */
    if (target->kind != RUNTIME_KIND_CORECLR)
        return "without a value kills a NativeAOT program, and this one is not known to be CoreCLR";
    return deadly_unless_held(target);
}

/* SIGSEGV on NativeAOT 8.0.31 and 10.0.12 when a value is not UTF-8. */
static const char *deadly_question(const struct command_target *target, bool removes)
{
    (void)removes;
    if (target->kind != RUNTIME_KIND_CORECLR)
        return "can kill a NativeAOT program, and this one is not known to be CoreCLR";
    return NULL;
}

static const char *deadly_startup_profiler(const struct command_target *target, bool removes)
{
    (void)removes;
    if (target->prevents_profilers)
        return "kills a runtime that is started with "
               "DOTNET_ProfAPI_ProfilerCompatibilitySetting=PreventLoad";
    return deadly_unless_held(target);
}

static const char *deadly_startup_hook(const struct command_target *target, bool removes)
{
    (void)removes;
    return deadly_unless_held(target);
}

/* SIGSEGV of a suspended 8.0.0, 8.0.34 and 9.0.23; 10.0.15 and 11.0.0 do it well, and all of them
 * DisablePerfMap. */
static const char *deadly_perf_map(const struct command_target *target, bool removes)
{
    (void)removes;
    if (target->major >= 10 || target->shows_running)
        return NULL;
    return "kills a suspended runtime before .NET 10";
}

static const struct command table[COMMAND_COUNT] = {
#define ROW(id, name, set, number, since, repeat, undo, answer, deadly)                         \
    [COMMAND_##id] =                                                                            \
        {name,  set, number, since, COMMAND_##repeat, COMMAND_##undo, COMMAND_ANSWERS_##answer, \
         deadly}
    /* clang-format off */
    ROW(GENERATE_CORE_DUMP,   "GenerateCoreDump",       SET_DUMP,       0x01, 3,  ONCE,       STAYS,           STATUS,       NULL),
    ROW(GENERATE_CORE_DUMP_2, "GenerateCoreDump2",      SET_DUMP,       0x02, 6,  ONCE,       STAYS,           STATUS,       NULL),
    ROW(GENERATE_CORE_DUMP_3, "GenerateCoreDump3",      SET_DUMP,       0x03, 8,  ONCE,       STAYS,           STATUS,       NULL),
    ROW(STOP_TRACING,         "StopTracing",            SET_EVENT_PIPE, 0x01, 3,  REPEATABLE, NOTHING_TO_UNDO, SESSION_ID,   NULL),
    ROW(COLLECT_TRACING,      "CollectTracing",         SET_EVENT_PIPE, 0x02, 3,  ONCE,       UNDONE_BY_OTHER, SESSION,      NULL),
    ROW(COLLECT_TRACING_2,    "CollectTracing2",        SET_EVENT_PIPE, 0x03, 5,  ONCE,       UNDONE_BY_OTHER, SESSION,      NULL),
    ROW(COLLECT_TRACING_3,    "CollectTracing3",        SET_EVENT_PIPE, 0x04, 9,  ONCE,       UNDONE_BY_OTHER, SESSION,      NULL),
    ROW(COLLECT_TRACING_4,    "CollectTracing4",        SET_EVENT_PIPE, 0x05, 9,  ONCE,       UNDONE_BY_OTHER, SESSION,      NULL),
    ROW(COLLECT_TRACING_5,    "CollectTracing5",        SET_EVENT_PIPE, 0x06, 10, ONCE,       UNDONE_BY_OTHER, SESSION,      NULL),
    ROW(COLLECT_TRACING_6,    "CollectTracing6",        SET_EVENT_PIPE, 0x07, 11, ONCE,       UNDONE_BY_OTHER, SESSION,      NULL),
    ROW(ASK_KIND,             "the question for the kind", SET_PROFILER, 0x00, 5, REPEATABLE, NOTHING_TO_UNDO, STATUS,       NULL),
    ROW(ATTACH_PROFILER,      "AttachProfiler",         SET_PROFILER,   0x01, 3,  ONCE,       STAYS,           STATUS,       NULL),
    ROW(STARTUP_PROFILER,     "StartupProfiler",        SET_PROFILER,   0x02, 6,  ONCE,       STAYS,           STATUS,       deadly_startup_profiler),
    ROW(PROCESS_INFO,         "ProcessInfo",            SET_PROCESS,    0x00, 5,  REPEATABLE, NOTHING_TO_UNDO, PROCESS_INFO, NULL),
    ROW(RESUME,               "ResumeRuntime",          SET_PROCESS,    0x01, 5,  REPEATABLE, NOTHING_TO_UNDO, STATUS,       NULL),
    ROW(PROCESS_ENVIRONMENT,  "ProcessEnvironment",     SET_PROCESS,    0x02, 5,  REPEATABLE, NOTHING_TO_UNDO, ENVIRONMENT,  deadly_question),
    ROW(SET_ENVIRONMENT,      "SetEnvironmentVariable", SET_PROCESS,    0x03, 6,  REPEATABLE, UNDONE_BY_VALUE, STATUS,       deadly_environment),
    ROW(PROCESS_INFO_2,       "ProcessInfo2",           SET_PROCESS,    0x04, 6,  REPEATABLE, NOTHING_TO_UNDO, PROCESS_INFO, NULL),
    ROW(ENABLE_PERF_MAP,      "EnablePerfMap",          SET_PROCESS,    0x05, 8,  REPEATABLE, UNDONE_BY_OTHER, STATUS,       deadly_perf_map),
    ROW(DISABLE_PERF_MAP,     "DisablePerfMap",         SET_PROCESS,    0x06, 8,  REPEATABLE, NOTHING_TO_UNDO, STATUS,       NULL),
    ROW(APPLY_STARTUP_HOOK,   "ApplyStartupHook",       SET_PROCESS,    0x07, 8,  ONCE,       STAYS,           STATUS,       deadly_startup_hook),
    ROW(PROCESS_INFO_3,       "ProcessInfo3",           SET_PROCESS,    0x08, 8,  REPEATABLE, NOTHING_TO_UNDO, PROCESS_INFO, NULL),
/* clang-format on */
#undef ROW
};

const struct command *command_row(enum command_id id)
{
    return &table[id];
}

bool command_find(uint8_t set, uint8_t id, enum command_id *ret_id)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (table[i].set == set && table[i].id == id) {
            *ret_id = (enum command_id)i;
            return true;
        }
    }
    return false;
}

const char *command_deadly(enum command_id id, const struct command_target *target, bool removes)
{
    return table[id].deadly ? table[id].deadly(target, removes) : NULL;
}

bool command_is_known_to(enum command_id id, unsigned major)
{
    return major == 0 || major >= table[id].since;
}

const char *runtime_kind_name(enum runtime_kind kind)
{
    switch (kind) {
    case RUNTIME_KIND_UNKNOWN:
        return NULL;
    case RUNTIME_KIND_CORECLR:
        return "coreclr";
    case RUNTIME_KIND_NATIVEAOT:
        return "nativeaot";
    case RUNTIME_KIND_MONO:
        return "mono";
    }
    return NULL;
}

static void begin(struct bytes *message, enum command_id id)
{
    wire_message_begin(message, table[id].set, table[id].id);
}

/* An empty payload where fields are expected kills every runtime before .NET 11. */
static bool has_payload(enum command_id id)
{
    return id != COMMAND_ASK_KIND && id != COMMAND_DISABLE_PERF_MAP && id != COMMAND_PROCESS_INFO &&
           id != COMMAND_PROCESS_INFO_2 && id != COMMAND_PROCESS_INFO_3 &&
           id != COMMAND_PROCESS_ENVIRONMENT && id != COMMAND_RESUME;
}

int command_write_plain(struct bytes *message, enum command_id id)
{
    assert(!has_payload(id));
    begin(message, id);
    return wire_message_end(message);
}

int command_write_set_environment(struct bytes *message, const char *name, const char *value)
{
    begin(message, COMMAND_SET_ENVIRONMENT);
    wire_put_string(message, name);
    wire_put_string(message, value);
    return wire_message_end(message);
}

int command_write_startup_profiler(struct bytes *message, const struct guid *clsid,
                                   const char *path)
{
    begin(message, COMMAND_STARTUP_PROFILER);
    wire_put_guid(message, clsid);
    wire_put_string(message, path);
    return wire_message_end(message);
}

int command_write_attach_profiler(struct bytes *message, uint32_t timeout_ms,
                                  const struct guid *clsid, const char *path, const void *data,
                                  size_t data_length)
{
    begin(message, COMMAND_ATTACH_PROFILER);
    bytes_put_u32(message, timeout_ms);
    wire_put_guid(message, clsid);
    wire_put_string(message, path);
    /* .NET up to 10 reads past its buffer when the length says more than follows. */
    bytes_put_u32(message, (uint32_t)data_length);
    bytes_put_run(message, data, data_length);
    return wire_message_end(message);
}

int command_write_apply_startup_hook(struct bytes *message, const char *paths)
{
    begin(message, COMMAND_APPLY_STARTUP_HOOK);
    wire_put_string(message, paths);
    return wire_message_end(message);
}

int command_write_enable_perf_map(struct bytes *message, uint32_t type)
{
    begin(message, COMMAND_ENABLE_PERF_MAP);
    bytes_put_u32(message, type);
    return wire_message_end(message);
}

int command_write_core_dump(struct bytes *message, enum command_id id, const char *path,
                            uint32_t type, uint32_t flags)
{
    assert(table[id].set == SET_DUMP);
    begin(message, id);
    wire_put_string(message, path);
    bytes_put_u32(message, type);
    bytes_put_u32(message, flags);
    return wire_message_end(message);
}

int command_write_stop_tracing(struct bytes *message, uint64_t session)
{
    begin(message, COMMAND_STOP_TRACING);
    bytes_put_u64(message, session);
    return wire_message_end(message);
}

bool command_read_session(const uint8_t *payload, size_t length, uint64_t *ret_session)
{
    struct bytes_reader reader = bytes_reader_over(payload, length);

    return bytes_get_u64(&reader, ret_session);
}

static void put_provider(struct bytes *message, const struct command_provider *provider,
                         bool with_filter)
{
    bytes_put_u64(message, provider->keywords);
    bytes_put_u32(message, provider->level);
    wire_put_string(message, provider->name);
    wire_put_string(message, provider->arguments);
    if (with_filter) {
        bytes_put_u8(message, 0);
        bytes_put_u32(message, 0);
    }
}

int command_write_collect_tracing(struct bytes *message, enum command_id id,
                                  const struct command_session *session)
{
    assert(id >= COMMAND_COLLECT_TRACING && id <= COMMAND_COLLECT_TRACING_6);
    if (session->buffer_mb == 0 || session->n_providers > COMMAND_PROVIDERS_MAX)
        return -EINVAL;
    begin(message, id);
    if (id >= COMMAND_COLLECT_TRACING_5)
        bytes_put_u32(message, SESSION_STREAMS);
    bytes_put_u32(message, session->buffer_mb);
    bytes_put_u32(message, FORMAT_NETTRACE);
    if (id == COMMAND_COLLECT_TRACING_2 || id == COMMAND_COLLECT_TRACING_3)
        bytes_put_u8(message, session->rundown);
    if (id >= COMMAND_COLLECT_TRACING_4)
        bytes_put_u64(message, session->rundown_keywords);
    if (id >= COMMAND_COLLECT_TRACING_3)
        bytes_put_u8(message, session->stacks);
    bytes_put_u32(message, (uint32_t)session->n_providers);
    for (size_t i = 0; i < session->n_providers; i++)
        put_provider(message, &session->providers[i], id >= COMMAND_COLLECT_TRACING_5);
    if (id == COMMAND_COLLECT_TRACING_6)
        bytes_put_u32(message, session->block_when_full);
    return wire_message_end(message);
}
