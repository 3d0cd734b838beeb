/* SPDX-License-Identifier: Apache-2.0 */

/* Runtimes that behave as real ones were measured to, until they are told otherwise. */

#include "tests/sim/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/action.h"
#include "lib/bytes.h"
#include "lib/hresult.h"
#include "lib/policy_read.h"
#include "lib/primer_names.h"
#include "lib/reply.h"
#include "lib/wire.h"

enum { TURNS_MAX = 1000000 };

static void copy_text(char *target, size_t size, char *text)
{
    snprintf(target, size, "%s", text ? text : "");
    free(text);
}

static const uint8_t primer_clsid[GUID_SIZE] = {PRIMER_CLSID_BYTES};

/* The data is text here, and short. */
static void read_attach(struct world_command *command, struct bytes_reader *reader, char **ret_name)
{
    uint32_t timeout, length;
    const uint8_t *data;
    struct guid clsid;

    if (!bytes_get_u32(reader, &timeout) || !wire_get_guid(reader, &clsid) ||
        !wire_get_string(reader, ret_name) || !bytes_get_u32(reader, &length) ||
        length >= sizeof command->value || !bytes_get_run(reader, length, &data))
        world_fail("an attached profiler that no runtime could read");
    memcpy(command->value, data, length);
    command->value[length] = '\0';
}

static void read_arguments(struct world_command *command, struct bytes_reader *reader)
{
    struct guid clsid;
    char *name = NULL, *value = NULL;

    switch (command->id) {
    case COMMAND_SET_ENVIRONMENT:
        if (!wire_get_string(reader, &name) || !wire_get_string(reader, &value))
            world_fail("a variable that no runtime could read");
        command->is_unset = !value;
        break;
    case COMMAND_STARTUP_PROFILER:
        if (!wire_get_guid(reader, &clsid) || !wire_get_string(reader, &name))
            world_fail("a profiler that no runtime could read");
        command->is_primer = memcmp(clsid.bytes, primer_clsid, GUID_SIZE) == 0;
        break;
    case COMMAND_ATTACH_PROFILER:
        read_attach(command, reader, &name);
        break;
    case COMMAND_APPLY_STARTUP_HOOK:
        if (!wire_get_string(reader, &name))
            world_fail("a hook that no runtime could read");
        break;
    case COMMAND_COLLECT_TRACING_2:
    case COMMAND_STOP_TRACING:
        reader->left = 0;
        break;
    default:
        break;
    }
    if (reader->left != 0)
        world_fail("a message with bytes that no runtime reads");
    copy_text(command->name, sizeof command->name, name);
    if (command->id != COMMAND_ATTACH_PROFILER)
        copy_text(command->value, sizeof command->value, value);
}

bool world_take_command(struct world_connection *connection, struct world_command *ret_command)
{
    if (!world_peek_command(connection, ret_command))
        return false;
    world_drop_message(connection);
    return true;
}

bool world_peek_command(struct world_connection *connection, struct world_command *ret_command)
{
    struct world_command command = {.listener = connection->listener, .at = connection->world->now};
    struct wire_header header;
    struct bytes_reader reader;

    if (!connection->message || connection->has_ended)
        return false;
    if (connection->message_length < WIRE_HEADER_SIZE ||
        wire_header_read(connection->message, &header) != 0 ||
        header.size != connection->message_length ||
        !command_find(header.set, header.id, &command.id))
        world_fail("something was sent that is no command");
    reader = bytes_reader_over(connection->message + WIRE_HEADER_SIZE,
                               connection->message_length - WIRE_HEADER_SIZE);
    read_arguments(&command, &reader);
    *ret_command = command;
    return true;
}

static uint64_t claimed_pid(const struct world_runtime *runtime)
{
    const struct world_process *process = runtime->process;

    if (runtime->claimed_pid != 0)
        return (uint64_t)runtime->claimed_pid;
    return process->ns_pid ? process->ns_pid : (uint64_t)process->pid;
}

void world_connect_port(struct world_runtime *runtime, size_t port)
{
    struct world_process *process = runtime->process;
    struct world_connection *connection =
        world_connect(runtime->world, process, runtime->ports[port]);

    connection->runtime = runtime;
    runtime->connections[port] = connection;
    world_advertise(connection, &runtime->cookie, claimed_pid(runtime));
}

/* Where a variable is; n_variables when it is not set. */
static size_t find_variable(const struct world_runtime *runtime, const char *name)
{
    size_t i = 0;

    while (i < runtime->n_variables && strcmp(runtime->variables[i].name, name) != 0)
        i++;
    return i;
}

const char *world_variable(const struct world_runtime *runtime, const char *name)
{
    size_t i = find_variable(runtime, name);

    return i < runtime->n_variables ? runtime->variables[i].value : NULL;
}

void world_set_variable(struct world_runtime *runtime, const char *name, const char *value)
{
    size_t i = find_variable(runtime, name);

    if (!value) {
        if (i < runtime->n_variables)
            runtime->variables[i] = runtime->variables[--runtime->n_variables];
        return;
    }
    if (i == WORLD_VARIABLES_MAX)
        world_fail("a runtime has too many variables");
    if (i == runtime->n_variables)
        snprintf(runtime->variables[runtime->n_variables++].name, 32, "%s", name);
    snprintf(runtime->variables[i].value, sizeof runtime->variables[i].value, "%s", value);
}

/* A runtime starts with what /proc says, whether we may read that or not. */
static void take_environ(struct world_runtime *runtime)
{
    for (const char *at = runtime->process->environ; at && *at != '\0'; at += strlen(at) + 1) {
        char name[32];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
        world_set_variable(runtime, name, at + strcspn(at, "=") + 1);
    }
}

struct world_runtime *world_runtime(struct world *world, struct world_process *process,
                                    const char *cookie, const uint32_t *ports, size_t n_ports)
{
    struct world_runtime *runtime = world_need(calloc(1, sizeof *runtime));

    if (world->n_runtimes == ARRAY_LENGTH(world->runtimes))
        world_fail("too many runtimes in the world");
    world->runtimes[world->n_runtimes++] = runtime;
    runtime->world = world;
    runtime->process = process;
    runtime->cookie = world_cookie(cookie);
    runtime->major = 10;
    runtime->kind = RUNTIME_KIND_CORECLR;
    runtime->n_ports = n_ports;
    for (size_t i = 0; i < n_ports; i++) {
        runtime->ports[i] = ports[i];
        runtime->suspends[i] = true;
    }
    take_environ(runtime);
    return runtime;
}

void world_start(struct world_runtime *runtime)
{
    for (size_t i = 0; i < runtime->n_ports; i++)
        world_connect_port(runtime, i);
}

static bool runs(const struct world_runtime *runtime)
{
    for (size_t i = 0; i < runtime->n_ports; i++) {
        if (runtime->suspends[i] && !runtime->is_resumed[i])
            return false;
    }
    return !runtime->has_foreign_port;
}

static bool has_session(const struct world_runtime *runtime)
{
    return runtime->session && !runtime->session->is_closed && !runtime->session->has_ended;
}

static void resume_port(struct world_runtime *runtime, size_t port)
{
    struct world_process *process = runtime->process;

    runtime->is_resumed[port] = true;
    if (runs(runtime) && has_session(runtime) && runtime->said_length > 0)
        world_send(runtime->session, runtime->said, runtime->said_length);
    if (!runs(runtime) || process->picture == WORLD_RUNNING)
        return;
    process->late_picture = process->picture;
    process->shows_at = moment_after(runtime->world->now, runtime->world->lag);
    process->picture = WORLD_RUNNING;
}

static void send_info(struct world_connection *connection, enum command_id id)
{
    const struct world_runtime *runtime = connection->runtime;
    const struct world_process *process = runtime->process;
    struct bytes payload;
    char version[16];

    snprintf(version, sizeof version, "%u.0.7", runtime->major);
    bytes_init(&payload, WIRE_PAYLOAD_MAX);
    if (id == COMMAND_PROCESS_INFO_3)
        bytes_put_u32(&payload, 1);
    bytes_put_u64(&payload, claimed_pid(runtime));
    wire_put_guid(&payload, &runtime->cookie);
    wire_put_string(&payload, process->exe ? process->exe : "/app");
    wire_put_string(&payload, "Linux");
    wire_put_string(&payload, "x64");
    if (id != COMMAND_PROCESS_INFO) {
        wire_put_string(&payload, "App");
        wire_put_string(&payload, version);
    }
    if (id == COMMAND_PROCESS_INFO_3)
        wire_put_string(&payload, "linux-x64");
    connection->runtime->has_told_version = true;
    world_send_reply(connection, true, payload.data, payload.length);
    bytes_deinit(&payload);
}

static void send_environment(struct world_connection *connection)
{
    const struct world_runtime *runtime = connection->runtime;
    struct bytes continuation, payload;

    bytes_init(&continuation, 1024 * 1024);
    bytes_put_u32(&continuation, (uint32_t)runtime->n_variables);
    for (size_t i = 0; i < runtime->n_variables; i++) {
        char text[192];

        snprintf(text, sizeof text, "%s=%s", runtime->variables[i].name,
                 runtime->variables[i].value);
        wire_put_string(&continuation, text);
    }
    bytes_init(&payload, WIRE_PAYLOAD_MAX);
    bytes_put_u32(&payload, (uint32_t)continuation.length);
    bytes_put_u16(&payload, 0);
    world_send_reply(connection, true, payload.data, payload.length);
    world_send(connection, continuation.data, continuation.length);
    bytes_deinit(&payload);
    bytes_deinit(&continuation);
}

/* Its id; the same for all. */
static void send_session(struct world_connection *connection)
{
    static const uint8_t id[8] = {0x10, 0x32, 0x54, 0x76};

    world_send_reply(connection, true, id, sizeof id);
}

/* What a command that is taken does, whatever becomes of its answer. */
static void act(struct world_runtime *runtime, const struct world_command *command)
{
    bool is_coreclr = runtime->kind == RUNTIME_KIND_CORECLR;

    if (!command_is_known_to(command->id, runtime->major))
        return;
    if (command->id == COMMAND_SET_ENVIRONMENT)
        world_set_variable(runtime, command->name, command->is_unset ? NULL : command->value);
    if (command->id == COMMAND_ATTACH_PROFILER && is_coreclr && runs(runtime))
        runtime->n_attached++;
    if (command->id == COMMAND_APPLY_STARTUP_HOOK && is_coreclr)
        runtime->n_hooks++;
    if (command->id == COMMAND_STARTUP_PROFILER && is_coreclr && runtime->n_refusals_left == 0) {
        if (command->is_primer)
            runtime->n_primers++;
        else
            runtime->n_profilers++;
    }
}

/* As measured: what a runtime of that version and kind answers, mostly while it is suspended. */
static void answer(struct world_connection *connection, struct world_command *command)
{
    struct world_runtime *runtime = connection->runtime;
    bool is_native = runtime->kind != RUNTIME_KIND_CORECLR;

    if (!command_is_known_to(command->id, runtime->major)) {
        command->was_refused = true;
        world_send_status(connection, false, HRESULT_UNKNOWN_COMMAND);
        return;
    }
    switch (command->id) {
    case COMMAND_PROCESS_INFO:
    case COMMAND_PROCESS_INFO_2:
    case COMMAND_PROCESS_INFO_3:
        send_info(connection, command->id);
        return;
    case COMMAND_PROCESS_ENVIRONMENT:
        send_environment(connection);
        return;
    case COMMAND_ASK_KIND:
        world_send_status(connection, false,
                          is_native ? HRESULT_NOT_SUPPORTED : HRESULT_UNKNOWN_COMMAND);
        return;
    case COMMAND_SET_ENVIRONMENT:
        if (command->is_unset && is_native)
            world_fail("an unset was sent to a NativeAOT program");
        world_send_status(connection, true, 0);
        return;
    case COMMAND_ATTACH_PROFILER:
        command->was_refused = is_native || !runs(runtime);
        world_send_status(connection, !command->was_refused,
                          is_native       ? HRESULT_NOT_SUPPORTED
                          : runs(runtime) ? HRESULT_OK
                                          : HRESULT_NOT_YET_AVAILABLE);
        return;
    case COMMAND_STARTUP_PROFILER:
    case COMMAND_APPLY_STARTUP_HOOK:
        if (is_native) {
            command->was_refused = true;
            world_send_status(connection, false, HRESULT_NOT_SUPPORTED);
        } else if (command->id == COMMAND_STARTUP_PROFILER && runtime->n_refusals_left > 0) {
            runtime->n_refusals_left--;
            command->was_refused = true;
            world_send_status(connection, false, HRESULT_INVALID_ARGUMENT);
        } else {
            world_send_status(connection, true, 0);
        }
        return;
    case COMMAND_COLLECT_TRACING_2:
    case COMMAND_STOP_TRACING:
        send_session(connection);
        return;
    default:
        world_send_status(connection, true, 0);
        return;
    }
}

bool world_is_answer_kept(const struct world_runtime *runtime)
{
    const struct world *world = runtime->world;

    for (size_t i = 0; i < world->n_open; i++) {
        const struct world_connection *connection = world->open[i];

        if (connection->runtime == runtime && connection->kept != 0 && !connection->message &&
            connection->inbox_length == WIRE_HEADER_SIZE + 4)
            return true;
    }
    return false;
}

static void come_back(struct world_runtime *runtime, size_t port)
{
    if (!runtime->process->is_dead)
        world_connect_port(runtime, port);
}

/* Resumes that come again and again are remembered once. */
static struct world_command *record_command(struct world_runtime *runtime,
                                            const struct world_command *command)
{
    struct world_command *last =
        runtime->n_commands > 0 ? &runtime->commands[runtime->n_commands - 1] : NULL;

    runtime->n_taken++;
    if (last && last->id == COMMAND_RESUME && command->id == COMMAND_RESUME &&
        (last->listener == command->listener || runtime->n_commands > WORLD_COMMANDS_MAX / 2)) {
        last->n_more++;
        return last;
    }
    if (runtime->n_commands == WORLD_COMMANDS_MAX)
        world_fail("a runtime got more commands than it can remember: %.2000s",
                   world_story(runtime));
    runtime->commands[runtime->n_commands] = *command;
    return &runtime->commands[runtime->n_commands++];
}

/* The connection is no port's any more, and the next one is made. */
static void begin_session(struct world_runtime *runtime, size_t port)
{
    runtime->session = runtime->connections[port];
    runtime->n_sessions++;
    runtime->connections[port] = NULL;
}

static void end_session(struct world_runtime *runtime)
{
    if (has_session(runtime))
        world_end(runtime->session);
    runtime->session = NULL;
}

static void take(struct world_runtime *runtime, size_t port, const struct world_command *command)
{
    static const uint8_t half[] = "DOTNET_IPC";
    static const uint8_t garbage[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    struct world_connection *connection = runtime->connections[port];
    enum world_fault fault = WORLD_ANSWERS;
    uint32_t hresult = HRESULT_FAIL;
    struct world_command *recorded;

    if (runtime->fault)
        fault = runtime->fault(runtime, command, &hresult);
    recorded = record_command(runtime, command);
    recorded->came_late = runs(runtime);
    recorded->is_version_told = runtime->has_told_version;
    if (fault != WORLD_REFUSES && fault != WORLD_DROPS)
        act(runtime, command);
    if (command->id == COMMAND_RESUME && fault == WORLD_ANSWERS)
        resume_port(runtime, port);
    recorded->was_refused = fault == WORLD_REFUSES;
    recorded->was_answered =
        fault == WORLD_ANSWERS || fault == WORLD_REFUSES || fault == WORLD_DIES_AFTER;
    switch (fault) {
    case WORLD_ANSWERS:
        answer(connection, recorded);
        break;
    case WORLD_REFUSES:
        world_send_status(connection, false, hresult);
        break;
    case WORLD_READS_ONLY:
        return;
    case WORLD_ANSWERS_HALF:
        world_send(connection, half, sizeof half - 1);
        return;
    case WORLD_ANSWERS_GARBAGE:
        world_send(connection, garbage, sizeof garbage - 1);
        break;
    case WORLD_CLOSES:
    case WORLD_DROPS:
        break;
    case WORLD_DIES:
        world_kill(runtime->world, runtime->process);
        return;
    case WORLD_DIES_AFTER:
        answer(connection, recorded);
        world_kill(runtime->world, runtime->process);
        return;
    }
    if (command->id == COMMAND_STOP_TRACING && fault == WORLD_ANSWERS)
        end_session(runtime);
    if (command->id == COMMAND_COLLECT_TRACING_2 && fault == WORLD_ANSWERS &&
        !recorded->was_refused)
        begin_session(runtime, port);
    else
        world_end(connection);
    come_back(runtime, port);
}

/* A connection that ended is noticed, and made anew. */
static bool notice_closed(struct world_runtime *runtime)
{
    for (size_t i = 0; i < runtime->n_ports; i++) {
        const struct world_connection *connection = runtime->connections[i];

        if (connection && (connection->is_closed || connection->has_ended)) {
            world_connect_port(runtime, i);
            return true;
        }
    }
    return false;
}

bool world_serve_one(struct world_runtime *runtime)
{
    if (runtime->process->is_dead || runtime->is_stuck)
        return false;
    for (size_t i = 0; i < runtime->n_ports; i++) {
        struct world_command command;

        if (runtime->connections[i] && world_take_command(runtime->connections[i], &command)) {
            take(runtime, i, &command);
            return true;
        }
    }
    return notice_closed(runtime);
}

void world_serve(struct world *world)
{
    bool is_busy = true;

    for (int turn = 0; is_busy; turn++) {
        if (turn == TURNS_MAX)
            world_fail("the world does not come to rest");
        is_busy = false;
        for (size_t i = 0; i < world->n_runtimes; i++)
            is_busy |= world_serve_one(world->runtimes[i]);
    }
}

static void put_command(struct bytes *story, const struct world_command *command)
{
    switch (command->id) {
    case COMMAND_ASK_KIND:
        bytes_put_string(story, "kind");
        break;
    case COMMAND_PROCESS_INFO:
        bytes_put_string(story, "info1");
        break;
    case COMMAND_PROCESS_INFO_2:
        bytes_put_string(story, "info2");
        break;
    case COMMAND_PROCESS_INFO_3:
        bytes_put_string(story, "info3");
        break;
    case COMMAND_PROCESS_ENVIRONMENT:
        bytes_put_string(story, "environment");
        break;
    case COMMAND_SET_ENVIRONMENT:
        if (command->is_unset)
            bytes_put_format(story, "unset %s", command->name);
        else
            bytes_put_format(story, "env %s=%s", command->name, command->value);
        break;
    case COMMAND_STARTUP_PROFILER:
        bytes_put_format(story, "%s %s", command->is_primer ? "primer" : "profiler", command->name);
        break;
    case COMMAND_ATTACH_PROFILER:
        bytes_put_format(story, "attach %s%s%s", command->name, *command->value ? " with " : "",
                         command->value);
        break;
    case COMMAND_APPLY_STARTUP_HOOK:
        bytes_put_format(story, "hook %s", command->name);
        break;
    case COMMAND_RESUME:
        bytes_put_string(story, "resume");
        for (unsigned i = 0; i < command->n_more && i < 8; i++)
            bytes_put_string(story, ", resume");
        break;
    default:
        bytes_put_format(story, "%s", command_row(command->id)->name);
        break;
    }
}

const char *world_story(const struct world_runtime *runtime)
{
    static char text[16384];
    struct bytes story;

    bytes_init(&story, sizeof text - 1);
    for (size_t i = 0; i < runtime->n_commands; i++) {
        if (i > 0)
            bytes_put_string(&story, ", ");
        put_command(&story, &runtime->commands[i]);
    }
    if (bytes_finish(&story) != 0)
        world_fail("a story that is too long");
    snprintf(text, sizeof text, "%s", (const char *)story.data);
    bytes_deinit(&story);
    return text;
}
