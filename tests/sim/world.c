/* SPDX-License-Identifier: Apache-2.0 */

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
#include "lib/reply.h"
#include "lib/wire.h"

enum { TURNS_MAX = 1000000 };

struct world_question {
    struct world_question *next;
    struct action_question question;
    struct world_process *process;
};

static _Noreturn void fail(const char *format, ...) PRINTF_LIKE(1, 2);

static void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

static void *need(void *memory)
{
    if (!memory)
        fail("memory ran out in the test itself");
    return memory;
}

/* Life. */

static struct policy *read_policy(const char *text)
{
    struct policy_source source = {.name = "test.yaml", .bytes = text, .length = strlen(text)};
    struct policy_host host = {.may_kill = true, .has_peer_pidfd = true};
    struct policy_problems problems;
    struct policy *policy;

    if (policy_read(&source, 1, &host, &policy, &problems) != 0)
        fail("memory ran out for the policy");
    if (!policy)
        fail("test policy: %u:%u: %s", problems.list[0].line, problems.list[0].column,
             problems.list[0].text);
    policy_problems_deinit(&problems);
    return policy;
}

static void start_broker(struct world *world, enum broker_trust trust, size_t usable_descriptors)
{
    struct broker_options options = {.policy = world->policy,
                                     .trust = trust,
                                     .usable_descriptors = usable_descriptors};
    static const char *const names[] = {"runtime", "second", "third"};

    world->broker = need(broker_new(&options, world->now));
    for (uint32_t i = 0; i < ARRAY_LENGTH(names); i++) {
        char path[64];

        snprintf(path, sizeof path, "/run/diagport/%s.sock", names[i]);
        if (broker_listener_add(world->broker, i, names[i], path, 1, 100 + i) != 0)
            fail("memory ran out for a listener");
    }
}

struct world *world_new_with(const char *policy, enum broker_trust trust, size_t usable_descriptors)
{
    struct world *world = need(calloc(1, sizeof *world));

    world->now = (struct moment){1000000000};
    world->policy = read_policy(policy);
    world->usable_descriptors = usable_descriptors;
    world->nobody.is_dead = true;
    start_broker(world, trust, usable_descriptors);
    return world;
}

struct world *world_new(const char *policy)
{
    return world_new_with(policy, BROKER_TRUSTS_RECORDS, 100000);
}

static void drop_message(struct world_connection *connection)
{
    free(connection->message);
    connection->message = NULL;
    connection->message_length = 0;
}

static void free_questions(struct world *world)
{
    while (world->questions) {
        struct world_question *question = world->questions;

        world->questions = question->next;
        for (size_t i = 0; i < question->question.n_files; i++)
            free(question->question.files[i]);
        free(question->question.files);
        free(question);
    }
}

void world_free(struct world *world)
{
    broker_free(world->broker);
    policy_unref(world->policy);
    free_questions(world);
    for (size_t i = 0; i < world->n_connections; i++) {
        drop_message(world->connections[i]);
        free(world->connections[i]->unread);
        free(world->connections[i]);
    }
    for (size_t i = 0; i < world->n_runtimes; i++)
        free(world->runtimes[i]);
    free(world);
}

/* Facts. */

static void set_link(struct facts_text *text, const char *value)
{
    if (value)
        facts_text_set(text, value, strlen(value));
    else
        text->error = EACCES;
}

static size_t block_length(const char *block)
{
    const char *at = block;

    while (*at != '\0')
        at += strlen(at) + 1;
    return (size_t)(at - block);
}

static void set_threads(struct facts *facts, const struct world_process *process)
{
    static const char *const running[] = {".NET SynchManag", ".NET EventPipe", ".NET Finalizer",
                                          ".NET DebugPipe"};
    size_t n = process->picture == WORLD_RUNNING ? 4 : process->picture == WORLD_SUSPENDED ? 2 : 0;

    if (process->picture == WORLD_UNREADABLE) {
        facts->threads_error = EACCES;
        return;
    }
    facts->threads_error = 0;
    facts->threads[facts->n_threads++] = (struct facts_thread){process->pid, "app"};
    if (process->picture == WORLD_STRANGE)
        facts->threads[facts->n_threads++] = (struct facts_thread){process->pid + 1, "app"};
    for (size_t i = 0; i < n; i++) {
        struct facts_thread *thread = &facts->threads[facts->n_threads++];

        thread->id = process->pid + 1 + (int32_t)i;
        snprintf(thread->name, sizeof thread->name, "%s", running[i]);
    }
}

static void set_file(struct facts_file *file, const struct world_process *process, const char *path)
{
    file->path = need(strdup(path));
    file->error = ENOENT;
    file->nodes = need(calloc(2, sizeof *file->nodes));
    file->nodes[file->n_nodes++] = (struct facts_node){.mode = 040755};
    for (size_t i = 0; i < process->n_files; i++) {
        if (strcmp(process->files[i].path, path) != 0)
            continue;
        file->error = process->files[i].error;
        file->inode = process->files[i].inode;
        file->device = 1;
        if (file->error == 0)
            file->nodes[file->n_nodes++] = (struct facts_node){.mode = process->files[i].mode,
                                                               .owner = process->files[i].owner};
    }
}

static struct facts *look(const struct world_process *process,
                          const struct action_question *question)
{
    struct facts *facts = need(facts_new(question->wanted, ENODATA));
    char text[512];

    if (process->is_dead) {
        facts->stat.error = ENOENT;
        return facts;
    }
    snprintf(text, sizeof text, "%d (app) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 %llu 1 1",
             process->pid, process->state ? process->state : 'S',
             (unsigned long long)process->start_time);
    facts_text_set(&facts->stat, text, strlen(text));
    facts->stat.error = 0;
    if (process->ns_pid == 0)
        snprintf(text, sizeof text,
                 "Uid:\t%u\t%u\t%u\t%u\nGid:\t5\t5\t5\t5\nGroups:\t5 \nNSpid:\t%d\n", process->uid,
                 process->uid, process->uid, process->uid, process->pid);
    else
        snprintf(text, sizeof text,
                 "Uid:\t%u\t%u\t%u\t%u\nGid:\t5\t5\t5\t5\nGroups:\t5 \nNSpid:\t%d\t%llu\n",
                 process->uid, process->uid, process->uid, process->uid, process->pid,
                 (unsigned long long)process->ns_pid);
    if (question->wanted & FACTS_STATUS)
        facts_text_set(&facts->status, text, strlen(text));
    if (question->wanted & FACTS_EXE)
        set_link(&facts->exe, process->exe);
    if (question->wanted & FACTS_CWD)
        set_link(&facts->cwd, "/");
    if (question->wanted & FACTS_CGROUP)
        set_link(&facts->cgroup, process->cgroup);
    if (question->wanted & FACTS_PARENT)
        set_link(&facts->parent_exe, "/bin/sh");
    if (question->wanted & FACTS_ARGUMENTS) {
        if (process->arguments)
            facts_text_set(&facts->arguments, process->arguments, block_length(process->arguments));
        else
            facts->arguments.error = EACCES;
    }
    if (question->wanted & FACTS_ENVIRON) {
        if (process->environ)
            facts_text_set(&facts->environ, process->environ, block_length(process->environ));
        else
            facts->environ.error = EACCES;
    }
    if (question->wanted & FACTS_THREADS)
        set_threads(facts, process);
    if (question->wanted & FACTS_FILES) {
        facts->files = need(calloc(question->n_files, sizeof *facts->files));
        for (; facts->n_files < question->n_files; facts->n_files++)
            set_file(&facts->files[facts->n_files], process, question->files[facts->n_files]);
    }
    facts->is_alive = question->start_time == 0 || question->start_time == process->start_time;
    facts->has_handle = !process->has_no_handle;
    facts->age = process->age;
    return facts;
}

/* The shell. */

static struct world_process *find_process(struct world *world, int32_t pid)
{
    for (size_t i = world->n_processes; i-- > 0;) {
        if (world->processes[i].pid == pid)
            return &world->processes[i];
    }
    return NULL;
}

static struct world_process *find_held(struct world *world, uint64_t number)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        if (world->processes[i].held == number)
            return &world->processes[i];
    }
    return NULL;
}

static void leave_open(struct world *world, struct action *action, struct world_process *process)
{
    struct world_question *question = need(calloc(1, sizeof *question));

    question->question = action->question;
    action->question.files = NULL;
    action->question.n_files = 0;
    question->process = process;
    question->next = world->questions;
    world->questions = question;
}

static void send_to(struct world_connection *connection, struct action *action)
{
    if (connection->is_closed)
        fail("a message was sent to a connection that was closed");
    if (connection->message && !connection->has_ended)
        fail("two messages were sent on one connection");
    drop_message(connection);
    connection->message = action->bytes;
    connection->message_length = action->length;
    connection->n_messages++;
    action->bytes = NULL;
}

static void close_connection(struct world_connection *connection)
{
    if (connection->is_closed)
        fail("a connection was closed twice");
    connection->is_closed = true;
    connection->core = NULL;
    /* A runtime that did not take the message yet drops it. */
    drop_message(connection);
}

static void carry_out(struct world *world, struct action *action,
                      struct world_question **ret_answers)
{
    struct world_process *process;

    switch (action->kind) {
    case ACTION_SEND:
        send_to(action->connection, action);
        return;
    case ACTION_CLOSE:
        close_connection(action->connection);
        return;
    case ACTION_READ:
        ((struct world_connection *)action->connection)->is_asked_for = true;
        return;
    case ACTION_ASK:
        world->wanted = action->question.wanted;
        process = find_process(world, action->question.pid);
        if (!process)
            process = &world->nobody;
        leave_open(world, action, process);
        if (!process->is_silent) {
            struct world_question *question = world->questions, **end = ret_answers;

            world->questions = question->next;
            question->next = NULL;
            while (*end)
                end = &(*end)->next;
            *end = question;
        }
        return;
    case ACTION_HOLD_PROCESS:
        if (!world->answering)
            fail("a handle was to be held of nothing");
        world->answering->held = action->process;
        return;
    case ACTION_RELEASE_PROCESS:
        process = find_held(world, action->process);
        if (!process)
            fail("a handle was given back that was not held");
        process->held = 0;
        return;
    case ACTION_KILL:
        process = find_held(world, action->process);
        if (!process)
            fail("a kill without a handle");
        process->was_killed = true;
        return;
    case ACTION_MARK:
        memcpy(world->marks[action->slot], action->mark, RECORD_SLOT_SIZE);
        world->n_marks++;
        return;
    case ACTION_PAUSE:
    case ACTION_UNPAUSE:
        world->is_paused = action->kind == ACTION_PAUSE;
        return;
    }
}

static void free_question(struct world_question *question)
{
    for (size_t i = 0; i < question->question.n_files; i++)
        free(question->question.files[i]);
    free(question->question.files);
    free(question);
}

static void read_unread(struct world_connection *connection)
{
    uint8_t *unread = connection->unread;
    size_t n_unread = connection->n_unread;

    connection->is_asked_for = false;
    connection->unread = NULL;
    connection->n_unread = 0;
    if (n_unread > 0)
        broker_connection_bytes(connection->core, unread, n_unread, connection->world->now);
    free(unread);
}

/* Reads what one connection has, as the shell does: bytes, and the end at the next time; false when
 * nothing is wanted. */
static bool read_asked(struct world *world)
{
    for (size_t i = 0; world->is_deaf && i < world->n_connections; i++) {
        struct world_connection *connection = world->connections[i];
        bool has_bytes = connection->n_unread > 0;

        if (!connection->is_asked_for || connection->is_closed)
            continue;
        if (!has_bytes && connection->is_end_unread)
            broker_connection_ended(connection->core, world->now);
        else
            read_unread(connection);
        connection->is_asked_for = has_bytes && connection->is_end_unread;
        return true;
    }
    return false;
}

void world_settle(struct world *world)
{
    struct world_question *answers = NULL;
    struct notice *notice;

    for (;;) {
        struct action *action = broker_take_action(world->broker);

        if (action) {
            carry_out(world, action, &answers);
            action_free(action);
            continue;
        }
        broker_check(world->broker);
        world->answering = NULL;
        if (read_asked(world))
            continue;
        if (!answers)
            break;
        {
            struct world_question *question = answers;

            answers = question->next;
            world->answering = question->process;
            broker_answer(world->broker, question->question.id,
                          look(question->process, &question->question), world->now);
            free_question(question);
        }
    }
    while ((notice = broker_take_notice(world->broker))) {
        world->n_notices++;
        notice_free(notice);
    }
}

void world_answer_late(struct world *world)
{
    while (world->questions) {
        struct world_question *question = world->questions;

        world->questions = question->next;
        world->answering = question->process;
        broker_answer(world->broker, question->question.id,
                      look(question->process, &question->question), world->now);
        world_settle(world);
        free_question(question);
    }
}

/* Processes and connections. */

struct world_process *world_process(struct world *world, const char *exe, const char *environ)
{
    struct world_process *process = &world->processes[world->n_processes];

    if (world->n_processes == WORLD_PROCESSES_MAX)
        fail("too many processes in the world");
    *process = (struct world_process){
        .pid = 1000 + (int32_t)world->n_processes,
        .start_time = 5000 + world->n_processes,
        .uid = 1000,
        .age = span_from_ms(20),
        .exe = exe,
        .arguments = "app\0--serve\0",
        .cgroup = "0::/system.slice/app.service\n",
        .environ = environ,
        .picture = WORLD_SUSPENDED,
    };
    world->n_processes++;
    return process;
}

struct world_connection *world_connect(struct world *world, struct world_process *process,
                                       uint32_t listener)
{
    struct world_connection *connection = need(calloc(1, sizeof *connection));
    struct broker_peer peer = {.pid = process->pid, .uid = process->uid, .gid = 5};

    if (world->n_connections == WORLD_CONNECTIONS_MAX)
        fail("too many connections in the world");
    world->connections[world->n_connections++] = connection;
    connection->world = world;
    connection->process = process;
    connection->listener = listener;
    if (process->hides_pid)
        peer.pid = 0;
    if (broker_connection_new(world->broker, listener, connection, &peer, world->now,
                              &connection->core) != 0)
        fail("a connection was not taken");
    world_settle(world);
    return connection;
}

static size_t next_piece(struct world *world, size_t length)
{
    if (world->piece_state == 0)
        return length;
    world->piece_state = world->piece_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return 1 + (size_t)(world->piece_state >> 33) % length;
}

static void leave_unread(struct world_connection *connection, const void *bytes, size_t length)
{
    connection->unread = need(realloc(connection->unread, connection->n_unread + length));
    memcpy(connection->unread + connection->n_unread, bytes, length);
    connection->n_unread += length;
}

void world_send(struct world_connection *connection, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    if (connection->world->is_deaf) {
        leave_unread(connection, bytes, length);
        return;
    }
    while (length > 0 && !connection->is_closed && !connection->has_ended) {
        size_t piece = next_piece(connection->world, length);

        broker_connection_bytes(connection->core, at, piece, connection->world->now);
        world_settle(connection->world);
        at += piece;
        length -= piece;
    }
}

void world_advertise(struct world_connection *connection, const struct guid *cookie, uint64_t pid)
{
    struct advertise advertise = {.cookie = *cookie, .pid = pid};
    uint8_t bytes[ADVERTISE_SIZE];

    advertise_write(&advertise, bytes);
    world_send(connection, bytes, sizeof bytes);
}

static void send_reply(struct world_connection *connection, bool is_ok, const void *payload,
                       size_t length)
{
    struct bytes reply;

    bytes_init(&reply, WIRE_MESSAGE_MAX);
    wire_message_begin(&reply, WIRE_SET_SERVER, is_ok ? 0x00 : 0xFF);
    bytes_put_run(&reply, payload, length);
    if (wire_message_end(&reply) != 0)
        fail("a reply does not fit");
    world_send(connection, reply.data, reply.length);
    bytes_deinit(&reply);
}

void world_send_status(struct world_connection *connection, bool is_ok, uint32_t hresult)
{
    uint8_t payload[4] = {(uint8_t)hresult, (uint8_t)(hresult >> 8), (uint8_t)(hresult >> 16),
                          (uint8_t)(hresult >> 24)};

    send_reply(connection, is_ok, payload, sizeof payload);
}

void world_end(struct world_connection *connection)
{
    if (connection->is_closed || connection->has_ended)
        return;
    connection->has_ended = true;
    if (connection->world->is_deaf) {
        connection->is_end_unread = true;
        return;
    }
    broker_connection_ended(connection->core, connection->world->now);
    world_settle(connection->world);
}

struct guid world_cookie(const char *text)
{
    char whole[GUID_TEXT_SIZE];
    struct guid cookie;

    snprintf(whole, sizeof whole, "%.8s-0000-4000-8000-000000000000", text);
    if (!guid_parse(whole, &cookie))
        fail("%s is no beginning of a cookie", text);
    return cookie;
}

static void copy_text(char *target, size_t size, char *text)
{
    snprintf(target, size, "%s", text ? text : "");
    free(text);
}

static void read_arguments(struct world_command *command, struct bytes_reader *reader)
{
    struct guid clsid;
    char *name = NULL, *value = NULL;

    switch (command->id) {
    case COMMAND_SET_ENVIRONMENT:
        if (!wire_get_string(reader, &name) || !wire_get_string(reader, &value))
            fail("a variable that no runtime could read");
        command->is_unset = !value;
        break;
    case COMMAND_STARTUP_PROFILER:
        if (!wire_get_guid(reader, &clsid) || !wire_get_string(reader, &name))
            fail("a profiler that no runtime could read");
        break;
    case COMMAND_APPLY_STARTUP_HOOK:
        if (!wire_get_string(reader, &name))
            fail("a hook that no runtime could read");
        break;
    default:
        break;
    }
    if (reader->left != 0)
        fail("a message with bytes that no runtime reads");
    copy_text(command->name, sizeof command->name, name);
    copy_text(command->value, sizeof command->value, value);
}

bool world_take_command(struct world_connection *connection, struct world_command *ret_command)
{
    if (!world_peek_command(connection, ret_command))
        return false;
    drop_message(connection);
    return true;
}

bool world_peek_command(struct world_connection *connection, struct world_command *ret_command)
{
    struct world_command command = {.listener = connection->listener, .at = connection->world->now};
    struct wire_header header;
    struct bytes_reader reader;

    if (!connection->message)
        return false;
    if (connection->message_length < WIRE_HEADER_SIZE ||
        wire_header_read(connection->message, &header) != 0 ||
        header.size != connection->message_length ||
        !command_find(header.set, header.id, &command.id))
        fail("something was sent that is no command");
    reader = bytes_reader_over(connection->message + WIRE_HEADER_SIZE,
                               connection->message_length - WIRE_HEADER_SIZE);
    read_arguments(&command, &reader);
    *ret_command = command;
    return true;
}

/* Runtimes. */

void world_connect_port(struct world_runtime *runtime, size_t port)
{
    struct world_process *process = runtime->process;
    struct world_connection *connection =
        world_connect(runtime->world, process, runtime->ports[port]);

    connection->runtime = runtime;
    runtime->connections[port] = connection;
    world_advertise(connection, &runtime->cookie,
                    process->ns_pid ? process->ns_pid : (uint64_t)process->pid);
}

struct world_runtime *world_runtime(struct world *world, struct world_process *process,
                                    const char *cookie, const uint32_t *ports, size_t n_ports)
{
    struct world_runtime *runtime = need(calloc(1, sizeof *runtime));

    if (world->n_runtimes == ARRAY_LENGTH(world->runtimes))
        fail("too many runtimes in the world");
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
    return runtime;
}

void world_start(struct world_runtime *runtime)
{
    for (size_t i = 0; i < runtime->n_ports; i++)
        world_connect_port(runtime, i);
}

static void resume_port(struct world_runtime *runtime, size_t port)
{
    runtime->is_resumed[port] = true;
    for (size_t i = 0; i < runtime->n_ports; i++) {
        if (runtime->suspends[i] && !runtime->is_resumed[i])
            return;
    }
    if (!runtime->has_foreign_port)
        runtime->process->picture = WORLD_RUNNING;
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
    bytes_put_u64(&payload, process->ns_pid ? process->ns_pid : (uint64_t)process->pid);
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
    send_reply(connection, true, payload.data, payload.length);
    bytes_deinit(&payload);
}

static void send_environment(struct world_connection *connection)
{
    const struct world_runtime *runtime = connection->runtime;
    struct bytes continuation, payload;
    uint32_t n = 0;

    while (n < ARRAY_LENGTH(runtime->environment) && runtime->environment[n])
        n++;
    bytes_init(&continuation, 1024 * 1024);
    bytes_put_u32(&continuation, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_string(&continuation, runtime->environment[i]);
    bytes_init(&payload, WIRE_PAYLOAD_MAX);
    bytes_put_u32(&payload, (uint32_t)continuation.length);
    bytes_put_u16(&payload, 0);
    send_reply(connection, true, payload.data, payload.length);
    world_send(connection, continuation.data, continuation.length);
    bytes_deinit(&payload);
    bytes_deinit(&continuation);
}

/* As measured: what a runtime of that version and kind answers while it is suspended. */
static void answer(struct world_connection *connection, const struct world_command *command)
{
    struct world_runtime *runtime = connection->runtime;
    bool is_native = runtime->kind != RUNTIME_KIND_CORECLR;

    if (!command_is_known_to(command->id, runtime->major)) {
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
            fail("an unset was sent to a NativeAOT program");
        world_send_status(connection, true, 0);
        return;
    case COMMAND_STARTUP_PROFILER:
    case COMMAND_APPLY_STARTUP_HOOK:
        if (is_native) {
            world_send_status(connection, false, HRESULT_NOT_SUPPORTED);
        } else if (command->id == COMMAND_STARTUP_PROFILER && runtime->n_refusals_left > 0) {
            runtime->n_refusals_left--;
            runtime->commands[runtime->n_commands - 1].was_refused = true;
            world_send_status(connection, false, HRESULT_INVALID_ARGUMENT);
        } else {
            world_send_status(connection, true, 0);
        }
        return;
    default:
        world_send_status(connection, true, 0);
        return;
    }
}

static void come_back(struct world_runtime *runtime, size_t port)
{
    if (!runtime->process->is_dead)
        world_connect_port(runtime, port);
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
    if (runtime->n_commands == WORLD_COMMANDS_MAX)
        fail("a runtime got more commands than it can remember: %.2000s", world_story(runtime));
    recorded = &runtime->commands[runtime->n_commands++];
    *recorded = *command;
    if (command->id == COMMAND_RESUME && fault == WORLD_ANSWERS)
        resume_port(runtime, port);
    switch (fault) {
    case WORLD_ANSWERS:
        answer(connection, command);
        break;
    case WORLD_REFUSES:
        recorded->was_refused = true;
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
        break;
    case WORLD_DIES:
        world_kill(runtime->world, runtime->process);
        return;
    case WORLD_DIES_AFTER:
        answer(connection, command);
        world_kill(runtime->world, runtime->process);
        return;
    }
    world_end(connection);
    come_back(runtime, port);
}

/* A connection that the broker closed is noticed, and made anew. */
static bool notice_closed(struct world_runtime *runtime)
{
    for (size_t i = 0; i < runtime->n_ports; i++) {
        if (runtime->connections[i] && runtime->connections[i]->is_closed &&
            !runtime->process->is_dead) {
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
            fail("the world does not come to rest");
        is_busy = false;
        for (size_t i = 0; i < world->n_runtimes; i++)
            is_busy |= world_serve_one(world->runtimes[i]);
    }
}

static void act_on_deadlines(struct world *world)
{
    broker_read_due(world->broker, world->now);
    world_settle(world);
    broker_deadlines(world->broker, world->now);
    world_settle(world);
}

void world_pass(struct world *world, struct span length, bool is_served)
{
    struct moment end = moment_after(world->now, length);

    if (is_served)
        world_serve(world);
    for (int turn = 0;; turn++) {
        struct moment next = broker_next_deadline(world->broker);

        if (turn == TURNS_MAX)
            fail("deadlines never end");
        if (moment_is_before(end, next))
            break;
        if (moment_is_before(world->now, next))
            world->now = next;
        act_on_deadlines(world);
        if (is_served)
            world_serve(world);
    }
    world->now = end;
}

void world_stall(struct world *world, struct span length)
{
    world->now = moment_after(world->now, length);
}

void world_wake(struct world *world)
{
    while (moment_is_due(broker_next_deadline(world->broker), world->now))
        act_on_deadlines(world);
}

void world_hear(struct world *world)
{
    for (size_t i = 0; i < world->n_connections; i++)
        world->connections[i]->is_asked_for = true;
    world_settle(world);
    world->is_deaf = false;
}

void world_hear_once(struct world_connection *connection)
{
    read_unread(connection);
    world_settle(connection->world);
}

void world_stop(struct world *world, enum broker_stop stop)
{
    broker_stop(world->broker, stop, world->now);
    world_settle(world);
}

void world_kill(struct world *world, struct world_process *process)
{
    process->is_dead = true;
    for (size_t i = 0; i < world->n_connections; i++) {
        if (world->connections[i]->process == process)
            world_end(world->connections[i]);
    }
    if (process->held != 0) {
        uint64_t held = process->held;

        broker_process_ended(world->broker, held, world->now);
        world_settle(world);
    }
}

void world_restart(struct world *world, enum broker_trust trust)
{
    broker_free(world->broker);
    free_questions(world);
    for (size_t i = 0; i < world->n_connections; i++) {
        world->connections[i]->core = NULL;
        world->connections[i]->is_closed = true;
        drop_message(world->connections[i]);
    }
    for (size_t i = 0; i < world->n_processes; i++)
        world->processes[i].held = 0;
    start_broker(world, trust, world->usable_descriptors);
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
        struct record record;

        if (!record_read(world->marks[slot], &record))
            fail("a mark that cannot be read");
        if (record.phase != RECORD_NONE && broker_remember(world->broker, slot, &record) != 0)
            fail("memory ran out for a record");
    }
}

/* Looking at it. */

const struct runtime *world_find(struct world *world, const char *cookie)
{
    char id[16];
    struct runtime *runtime;

    snprintf(id, sizeof id, "%.8s", cookie);
    return broker_find(world->broker, id, &runtime) == BROKER_FOUND_NONE ? NULL : runtime;
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
        bytes_put_format(story, "profiler %s", command->name);
        break;
    case COMMAND_APPLY_STARTUP_HOOK:
        bytes_put_format(story, "hook %s", command->name);
        break;
    case COMMAND_RESUME:
        bytes_put_string(story, "resume");
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
        fail("a story that is too long");
    snprintf(text, sizeof text, "%s", (const char *)story.data);
    bytes_deinit(&story);
    return text;
}
