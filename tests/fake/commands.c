/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/commands.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hresult.h"
#include "lib/util.h"
#include "lib/wire.h"
#include "tests/fake/fields.h"
#include "tests/fake/process_commands.h"
#include "tests/fake/runtime.h"
#include "tests/fake/session_commands.h"

enum { REPLY_OK = 0x00, REPLY_ERROR = 0xFF };

enum { SET_DUMP = 1, SET_EVENT_PIPE = 2, SET_PROFILER = 3, SET_PROCESS = 4 };

struct row {
    const char *key;
    const char *name;
    uint8_t set;
    uint8_t id;
    uint8_t since; /* the first major version that knows it */
    void (*run)(struct call *call);
};

static void run_startup_profiler(struct call *call);
static void run_attach_profiler(struct call *call);
static void run_dump(struct call *call);

/* clang-format off */
static const struct row rows[] = {
    {"dump1",            "GenerateCoreDump",       SET_DUMP,       0x01, 5,  run_dump},
    {"dump2",            "GenerateCoreDump2",      SET_DUMP,       0x02, 6,  run_dump},
    {"dump3",            "GenerateCoreDump3",      SET_DUMP,       0x03, 8,  run_dump},
    {"stop",             "StopTracing",            SET_EVENT_PIPE, 0x01, 5,  session_run_stop},
    {"collect1",         "CollectTracing",         SET_EVENT_PIPE, 0x02, 5,  session_run_collect},
    {"collect2",         "CollectTracing2",        SET_EVENT_PIPE, 0x03, 5,  session_run_collect},
    {"collect3",         "CollectTracing3",        SET_EVENT_PIPE, 0x04, 9,  session_run_collect},
    {"collect4",         "CollectTracing4",        SET_EVENT_PIPE, 0x05, 9,  session_run_collect},
    {"collect5",         "CollectTracing5",        SET_EVENT_PIPE, 0x06, 10, session_run_collect},
    {"collect6",         "CollectTracing6",        SET_EVENT_PIPE, 0x07, 11, session_run_collect},
    {"attach",           "AttachProfiler",         SET_PROFILER,   0x01, 5,  run_attach_profiler},
    {"startup-profiler", "StartupProfiler",        SET_PROFILER,   0x02, 6,  run_startup_profiler},
    {"info1",            "ProcessInfo",            SET_PROCESS,    0x00, 5,  process_run_info},
    {"resume",           "ResumeRuntime",          SET_PROCESS,    0x01, 5,  process_run_resume},
    {"environment",      "ProcessEnvironment",     SET_PROCESS,    0x02, 5,  process_run_environment},
    {"set-env",          "SetEnvironmentVariable", SET_PROCESS,    0x03, 6,  process_run_set_environment},
    {"info2",            "ProcessInfo2",           SET_PROCESS,    0x04, 6,  process_run_info},
    {"perf-map",         "EnablePerfMap",          SET_PROCESS,    0x05, 8,  process_run_enable_perf_map},
    {"perf-map-off",     "DisablePerfMap",         SET_PROCESS,    0x06, 8,  process_run_disable_perf_map},
    {"hook",             "ApplyStartupHook",       SET_PROCESS,    0x07, 8,  process_run_startup_hook},
    {"info3",            "ProcessInfo3",           SET_PROCESS,    0x08, 8,  process_run_info},
};
/* clang-format on */

/* "info" is info1 to info3, and so on. */
static bool is_of_group(const char *key, const char *group)
{
    size_t length = strlen(group);

    if (strncmp(key, group, length) != 0)
        return false;
    return key[length] == '\0' || (key[length] >= '0' && key[length] <= '9');
}

uint32_t commands_kinds(const char *key)
{
    uint32_t kinds = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (is_of_group(rows[i].key, key))
            kinds |= UINT32_C(1) << i;
    }
    return kinds;
}

static const struct row *find_row(uint8_t set, uint8_t id)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (rows[i].set == set && rows[i].id == id)
            return &rows[i];
    }
    return NULL;
}

uint32_t commands_kind(uint8_t set, uint8_t id)
{
    const struct row *row = find_row(set, id);

    return row ? UINT32_C(1) << (row - rows) : 0;
}

const char *commands_name(uint8_t set, uint8_t id)
{
    const struct row *row = find_row(set, id);

    return row ? row->name : "unknown";
}

void commands_print_help(void)
{
    int column = printf("  any");

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (column > 70) {
            printf("\n ");
            column = 1;
        }
        column += printf(" %s", rows[i].key);
    }
    printf("\n");
}

static void make_reply(struct call *call, uint8_t id, uint32_t hresult)
{
    call->result = hresult;
    call->reply.length = 0;
    call->continuation.length = 0;
    wire_message_begin(&call->reply, WIRE_SET_SERVER, id);
    bytes_put_u32(&call->reply, hresult);
    if (wire_message_end(&call->reply) != 0)
        abort();
}

void commands_fail(struct call *call, uint32_t hresult)
{
    make_reply(call, REPLY_ERROR, hresult);
}

/* The answer of most commands: OK with zero, or an error. */
static void finish(struct call *call)
{
    if (call->reply.length > 0)
        return;
    make_reply(call, call->result == HRESULT_OK ? REPLY_OK : REPLY_ERROR, call->result);
}

/* StartupProfiler looks at the flag before it looks at its payload. */
static void run_startup_profiler(struct call *call)
{
    char id[GUID_TEXT_SIZE];
    struct guid clsid;
    char *path;

    if (!call->runtime->is_paused_for_startup) {
        call->result = HRESULT_INVALID_ARGUMENT;
        return;
    }
    if (!fields_get_guid(call, "clsid", &clsid) || !fields_get_string(call, "path", &path))
        return;
    guid_format(&clsid, id);
    call->result = profilers_store(call->runtime, &clsid, path);
    fields_set_subject(call, id, " ", path);
    free(path);
}

static void run_attach_profiler(struct call *call)
{
    struct runtime *runtime = call->runtime;
    bool inverted = runtime->version->attach_data_inverted;
    uint32_t timeout, length;
    struct guid clsid;
    char *path;

    if (!runtime->is_started) {
        call->result = HRESULT_NOT_YET_AVAILABLE;
        return;
    }
    if (!fields_get_u32(call, "timeout", &timeout) || !fields_get_guid(call, "clsid", &clsid) ||
        !fields_get_string(call, "path", &path))
        return;
    /* Up to 10 the check is the wrong way round. The field itself is missed by all. */
    if (!bytes_get_u32(&call->payload, &length) ||
        (inverted ? call->payload.left > length : call->payload.left < length))
        call->result = HRESULT_BAD_ENCODING;
    else {
        fields_note_rest(call, "data");
        call->result = profilers_attach(runtime, &clsid, path);
    }
    free(path);
}

static void write_dump(struct call *call, const char *path, uint32_t type)
{
    bool is_full = type == 4;
    FILE *file;

    /* Suspended, all but a full dump come to nothing, and nobody says so. */
    if (!path || (!call->runtime->is_started && !is_full))
        return;
    file = fopen(path, "we");
    if (!file) {
        call->result = HRESULT_FAIL;
        return;
    }
    fputs("the core dump of a fake runtime\n", file);
    fclose(file);
}

static void run_dump(struct call *call)
{
    uint32_t type, flags;
    char *path;

    if (call->runtime->version->kind == KIND_MONO) {
        call->result = HRESULT_NOT_SUPPORTED;
        return;
    }
    if (!fields_get_string(call, "path", &path))
        return;
    if (fields_get_u32(call, "type", &type) && fields_get_u32(call, "flags", &flags)) {
        if (call->runtime->version->core_dumps)
            write_dump(call, path, type);
        else
            call->result = HRESULT_FAIL;
    }
    free(path);
}

/* The profiler set has manners of its own. True when nothing is left to do. */
static bool refuse_profiler_set(struct call *call, bool is_known)
{
    const struct version *version = call->runtime->version;

    if (!version->profilers) {
        call->result = HRESULT_NOT_SUPPORTED;
        return true;
    }
    if (version->profilers_unknown && !call->runtime->is_started) {
        call->result = HRESULT_NOT_YET_AVAILABLE;
        return true;
    }
    if (is_known)
        return false;
    call->result = HRESULT_UNKNOWN_COMMAND;
    call->leaves_open = true;
    return true;
}

void commands_run(struct call *call)
{
    const struct row *row = find_row(call->set, call->id);
    bool is_known = row && row->since <= call->runtime->version->major;

    call->result = HRESULT_OK;
    if (call->set == SET_PROFILER && refuse_profiler_set(call, is_known))
        finish(call);
    else if (!is_known)
        commands_fail(call, HRESULT_UNKNOWN_COMMAND);
    else {
        row->run(call);
        finish(call);
    }
}
