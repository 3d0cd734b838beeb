/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/process_commands.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hresult.h"
#include "lib/wire.h"
#include "tests/fake/commands.h"
#include "tests/fake/fields.h"
#include "tests/fake/runtime.h"
#include "tests/fake/utf8.h"

enum { REPLY_OK = 0x00 };

void process_run_resume(struct call *call)
{
    runtime_resume(call->runtime, call->port);
}

/* A bug of all versions (8 to 11): for a command that should have had no payload, what is sent as
 * the reply is that payload and the 20 bytes that lie behind it. */
static void echo_payload(struct call *call)
{
    if (call->is_empty)
        return;
    call->reply.length = 0;
    bytes_put_run(&call->reply, call->payload.at, call->payload.left);
    for (unsigned i = 0; i < WIRE_HEADER_SIZE; i++)
        bytes_put_u8(&call->reply, 0);
}

/* The program alone while managed code has not begun, then its arguments too, without quotes; on
 * NativeAOT always the program alone. */
static char *command_line(const struct runtime *runtime)
{
    bool is_whole = runtime->is_managed && runtime->version->kind != KIND_NATIVEAOT;
    struct bytes out;
    char *text, *repaired;

    bytes_init(&out, SIZE_MAX - 1);
    bytes_put_string(&out, runtime->program);
    for (int i = 0; is_whole && i < runtime->n_arguments; i++)
        bytes_put_format(&out, " %s", runtime->arguments[i]);
    if (bytes_finish(&out) != 0)
        return NULL;
    text = (char *)bytes_take(&out);
    repaired = utf8_repair(text);
    free(text);
    return repaired;
}

static void put_info(struct call *call, struct bytes *out, const char *line)
{
    const struct runtime *runtime = call->runtime;
    const struct version *version = runtime->version;
    struct guid cookie = runtime_cookie(runtime, runtime->ports.connections);
    bool knows_entry = version->entry_known_early || runtime->is_managed;
    char entry[256];

    if (call->id == 0x08)
        bytes_put_u32(out, 1);
    bytes_put_u64(out, runtime_pid(runtime));
    wire_put_guid(out, &cookie);
    wire_put_string(out, line);
    wire_put_string(out, "Linux");
    wire_put_string(out, FAKE_ARCHITECTURE);
    if (call->id == 0x00)
        return;
    wire_put_string(out, knows_entry ? runtime_entry(runtime, entry, sizeof entry) : "");
    wire_put_string(out, version->text);
    if (call->id == 0x08)
        wire_put_string(out, runtime->behaviour->rid ? runtime->behaviour->rid
                                                     : "linux-" FAKE_ARCHITECTURE);
}

/* `line` with as many blanks behind it as bring the payload to that size, less one byte if that is
 * odd. */
static char *stretch(struct call *call, char *line, size_t payload)
{
    struct bytes out;
    size_t length = strlen(line), more;
    char *longer;

    bytes_init(&out, SIZE_MAX - 1);
    put_info(call, &out, line);
    more = out.length < payload ? (payload - out.length) / 2 : 0;
    bytes_deinit(&out);
    longer = realloc(line, length + more + 1);
    if (!longer)
        abort();
    memset(longer + length, ' ', more);
    longer[length + more] = '\0';
    return longer;
}

void process_run_info(struct call *call)
{
    size_t wanted = call->runtime->behaviour->info_payload;
    char *line = command_line(call->runtime);

    if (line && wanted > 0)
        line = stretch(call, line, wanted);
    wire_message_begin(&call->reply, WIRE_SET_SERVER, REPLY_OK);
    if (line)
        put_info(call, &call->reply, line);
    if (call->reply.length + 1 == WIRE_HEADER_SIZE + wanted)
        bytes_put_u8(&call->reply, 0);
    if (!line || wire_message_end(&call->reply) != 0)
        commands_fail(call, HRESULT_FAIL);
    free(line);
    echo_payload(call);
}

void process_run_environment(struct call *call)
{
    if (!variables_put(&call->runtime->variables, &call->continuation))
        runtime_die(SIGSEGV, "an environment that is not UTF-8");
    wire_message_begin(&call->reply, WIRE_SET_SERVER, REPLY_OK);
    bytes_put_u32(&call->reply, (uint32_t)call->continuation.length);
    bytes_put_u16(&call->reply, 0);
    if (wire_message_end(&call->reply) != 0)
        abort();
    echo_payload(call);
}

/* NativeAOT gives what it gets to setenv, which checks the name first and the value never. */
static void die_if_setenv_does(const struct version *version, const char *name, const char *value)
{
    bool good_name = name && *name != '\0' && !strchr(name, '=');

    if (version->kind != KIND_NATIVEAOT)
        return;
    if ((version->null_name_kills && (!name || !value)) || (good_name && !value))
        runtime_die(SIGSEGV, "a null string for setenv");
}

void process_run_set_environment(struct call *call)
{
    struct runtime *runtime = call->runtime;
    char *name, *value;

    if (!fields_get_string(call, "name", &name))
        return;
    if (!fields_get_string(call, "value", &value)) {
        free(name);
        return;
    }
    die_if_setenv_does(runtime->version, name, value);
    call->result = variables_set(&runtime->variables, name, value);
    if (runtime->version->kind == KIND_MONO && call->result != HRESULT_OK)
        call->result = HRESULT_FAIL;
    fields_set_subject(call, name, "=", value);
    free(name);
    free(value);
}

void process_run_enable_perf_map(struct call *call)
{
    const struct runtime *runtime = call->runtime;
    uint32_t type;

    if (!runtime->version->perf_maps) {
        call->result = HRESULT_NOT_SUPPORTED;
        return;
    }
    if (!fields_get_u32(call, "type", &type))
        return;
    if (type == 0 || type > 3) {
        call->result = HRESULT_INVALID_ARGUMENT;
        return;
    }
    if (runtime->version->perf_map_kills && !runtime->is_started)
        runtime_die(SIGSEGV, "a perf map while suspended");
}

void process_run_disable_perf_map(struct call *call)
{
    if (!call->runtime->version->perf_maps)
        call->result = HRESULT_NOT_SUPPORTED;
}

void process_run_startup_hook(struct call *call)
{
    struct runtime *runtime = call->runtime;
    char *paths;

    if (!fields_get_string(call, "path", &paths))
        return;
    if (!runtime->version->startup_hooks)
        call->result = HRESULT_NOT_SUPPORTED;
    else if (!paths)
        call->result = HRESULT_INVALID_ARGUMENT;
    else if (runtime->is_started)
        call->result = hooks_run_now(runtime, paths);
    else
        call->result = hooks_store(runtime, paths);
    if (paths)
        fields_set_subject(call, paths, "", NULL);
    free(paths);
}
