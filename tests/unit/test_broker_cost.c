/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What peers cost in memory: no more than lib/broker.h says, whatever they send
 * and however long everything about their processes is.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/hresult.h"
#include "lib/wire.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"

enum {
    N = 16,
    /* As long as the kernel has them. */
    PATH_LENGTH = 4095,
    ARGUMENT_LENGTH = 128 * 1024 - 1,
    /* What fits into a message besides the rest of it. */
    SAID_LENGTH = 10000,
};

#define PORTS "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock"

static const char policy[] =
    "version: 1\n"
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
    "control: { path: /run/diagport/control.sock }\n"
    "limits: { hello: 1m }\n"
    "rules:\n"
    "  - { name: other, match: { cwd: /nowhere, parent: /nobody }, ignore: true }\n"
    "  - { name: r, match: all, env: { OLD: \"new\", ALSO: \"new\", GONE: null } }\n";

static void before_call(void *context)
{
    (void)context;
    unit_memory_charge_begin();
}

static void after_call(void *context)
{
    (void)context;
    unit_memory_charge_end();
}

static struct world *begin(void)
{
    struct world *world = world_new(policy);

    world->before_call = before_call;
    world->after_call = after_call;
    return world;
}

/* What the broker holds more than before, for each of N. */
static size_t each_of(size_t before)
{
    return (unit_memory_charged() - before) / N;
}

START_TEST(a_connection_without_an_advertise)
{
    static const uint8_t half[] = "ADVR_V1\0aaaaaaaaaaaaaaaaaaaaaaa";

    for (size_t length = 0; length < ADVERTISE_SIZE; length += ADVERTISE_SIZE - 3) {
        struct world *world = begin();
        size_t before = unit_memory_charged();

        for (size_t i = 0; i < N; i++) {
            struct world_process *process = world_process(world, "/app", NULL);
            struct world_connection *connection;

            process->uid = 2000 + (uint32_t)i;
            connection = world_connect(world, process, 0);
            world_send(connection, half, length);
        }
        ck_assert_uint_eq(broker_counters(world->broker)->n_silent, N);
        ck_assert_uint_le(each_of(before), BROKER_BYTES_SILENT);
        world_free(world);
    }
}
END_TEST

/* What a process looks like, and what its runtime says. */
struct shape {
    const char *name;
    char *exe;
    char *arguments;
    char *cgroup;
    char *environ;
    size_t said;    /* characters of each text that it says of itself */
    size_t refused; /* bytes of a refusal */
};

static char *repeat(const char *head, char letter, size_t length, const char *tail)
{
    size_t n_head = strlen(head), n_tail = strlen(tail);
    char *text = calloc(1, n_head + length + n_tail + 2);

    ck_assert_ptr_nonnull(text);
    memcpy(text, head, n_head);
    memset(text + n_head, letter, length);
    memcpy(text + n_head + length, tail, n_tail);
    return text;
}

/* A list of `n` texts, each as long as that, and its end. */
static char *list_of(const char *first, size_t n, size_t length)
{
    size_t n_first = strlen(first) + 1;
    char *list = calloc(1, n_first + n * (length + 1) + 1);

    ck_assert_ptr_nonnull(list);
    memcpy(list, first, n_first);
    for (size_t i = 0; i < n; i++)
        memset(list + n_first + i * (length + 1), 'a', length);
    return list;
}

/* Two variables of the plan, as long as they can be put back. */
static char *long_values(void)
{
    enum { LENGTH = 30000 };
    static const char *const heads[] = {PORTS, "OLD=", "ALSO="};
    char *environ = calloc(3, LENGTH), *at = environ;

    ck_assert_ptr_nonnull(environ);
    for (size_t i = 0; i < ARRAY_LENGTH(heads); i++) {
        at = stpcpy(at, heads[i]);
        memset(at, 'a', i > 0 ? LENGTH : 0);
        at += (i > 0 ? LENGTH : 0) + 1;
    }
    return environ;
}

static void put_said(struct bytes *payload, size_t length)
{
    char *text = repeat("", 'v', length, "");

    wire_put_string(payload, text);
    free(text);
}

static void send_info(struct world_connection *connection, const struct world_runtime *runtime,
                      const struct shape *shape)
{
    struct bytes payload;

    bytes_init(&payload, WIRE_PAYLOAD_MAX);
    bytes_put_u32(&payload, 1);
    bytes_put_u64(&payload, (uint64_t)runtime->process->pid);
    wire_put_guid(&payload, &runtime->cookie);
    put_said(&payload, shape->said);
    wire_put_string(&payload, "Linux");
    wire_put_string(&payload, "x64");
    put_said(&payload, shape->said);
    wire_put_string(&payload, "10.0.7");
    put_said(&payload, shape->said);
    ck_assert_int_eq(bytes_finish(&payload), 0);
    world_send_reply(connection, true, payload.data, payload.length);
    bytes_deinit(&payload);
}

/* The first step is done, the second refused, so that the first is taken back. */
static bool answer(struct world_runtime *runtime, const struct shape *shape)
{
    struct world_connection *connection = runtime->connections[0];
    uint8_t *refusal = calloc(1, shape->refused + 4);
    struct world_command command;
    bool is_there = world_take_command(connection, &command);

    ck_assert_ptr_nonnull(refusal);
    if (is_there && command.id == COMMAND_PROCESS_INFO_3)
        send_info(connection, runtime, shape);
    else if (is_there && command.id == COMMAND_ASK_KIND)
        world_send_status(connection, false, HRESULT_UNKNOWN_COMMAND);
    else if (is_there)
        world_send_reply(connection, !command.is_unset, refusal,
                         command.is_unset ? 4 + shape->refused : 4);
    free(refusal);
    if (!is_there)
        return false;
    runtime->is_resumed[0] |= command.id == COMMAND_RESUME;
    world_end(connection);
    world_connect_port(runtime, 0);
    return true;
}

static struct world_runtime *add(struct world *world, const struct shape *shape, size_t i)
{
    static const uint32_t first[] = {0};
    struct world_process *process = world_process(world, shape->exe, PORTS "\0");
    struct world_runtime *runtime;
    char cookie[16];

    snprintf(cookie, sizeof cookie, "%08zx", 0x10000000 + i);
    runtime = world_runtime(world, process, cookie, first, 1);
    process->arguments = shape->arguments;
    process->cgroup = shape->cgroup;
    process->environ = shape->environ;
    process->cwd = process->parent_exe = shape->exe;
    process->uid = 2000 + (uint32_t)i;
    return runtime;
}

static void check_cost(const struct shape *shape)
{
    struct world *world = begin();
    struct world_runtime *runtimes[N];
    size_t before = unit_memory_charged(), cost, cost_ended;

    for (size_t i = 0; i < N; i++) {
        runtimes[i] = add(world, shape, i);
        world_start(runtimes[i]);
        while (answer(runtimes[i], shape))
            ;
        ck_assert(runtimes[i]->is_resumed[0]);
    }
    /* Or another port holds it. */
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_RUNNING) +
                          broker_count(world->broker, RUNTIME_SETTLING),
                      N);
    cost = each_of(before);
    ck_assert_msg(cost <= BROKER_BYTES_RUNTIME, "%s: %zu bytes for a runtime", shape->name, cost);
    for (size_t i = 0; i < N; i++)
        world_kill(world, runtimes[i]->process);
    world_pass(world, span_from_s(100), false);
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_GONE), N);
    cost_ended = each_of(before);
    ck_assert_msg(cost_ended <= BROKER_BYTES_ENDED, "%s: %zu bytes for one that ended", shape->name,
                  cost_ended);
    world_free(world);
}

static void free_shape(struct shape *shape)
{
    free(shape->exe);
    free(shape->arguments);
    free(shape->cgroup);
    free(shape->environ);
}

START_TEST(a_runtime)
{
    struct shape shapes[] = {
        {"usual", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 3, 20),
         repeat("0::/system.slice/", 'a', 10, ".service\n"), list_of(PORTS, 20, 40), 30, 0},
        {"long paths", repeat("/", 'a', PATH_LENGTH - 1, ""), list_of("/opt/app", 1, 1),
         repeat("0::/", 'a', PATH_LENGTH - 1, "\n"), list_of(PORTS, 0, 0), 30, 0},
        {"many short arguments", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 100000, 1),
         repeat("0::/", 'a', 1, "\n"), list_of(PORTS, 0, 0), 30, 0},
        {"one long argument", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 1, ARGUMENT_LENGTH),
         repeat("0::/", 'a', 1, "\n"), list_of(PORTS, 0, 0), 30, 0},
        {"a long assembly", repeat("/", 'a', 0, "dotnet"),
         repeat("dotnet?", 'a', ARGUMENT_LENGTH, ".dll"), repeat("0::/", 'a', 1, "\n"),
         list_of(PORTS, 0, 0), 30, 0},
        {"a large environment", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 1, 1),
         repeat("0::/", 'a', 1, "\n"), list_of(PORTS, 10000, 50), 30, 0},
        {"a long old value", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 1, 1),
         repeat("0::/", 'a', 1, "\n"), long_values(), 30, 0},
        {"a long list of ports", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 1, 1),
         repeat("0::/", 'a', 1, "\n"), repeat(PORTS ";/", 'a', 100, ""), 30, 0},
        {"everything", repeat("/", 'a', PATH_LENGTH - 1, ""),
         list_of("/opt/app", 1, ARGUMENT_LENGTH), repeat("0::/", 'a', PATH_LENGTH - 1, "\n"),
         long_values(), SAID_LENGTH, 60000},
        {"says much", repeat("/opt/", 'a', 20, ""), list_of("/opt/app", 1, 1),
         repeat("0::/", 'a', 1, "\n"), list_of(PORTS, 0, 0), SAID_LENGTH, 60000},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(shapes); i++) {
        char *mark;

        /* Where a list has to be longer than one text. */
        if ((mark = strchr(shapes[i].arguments, '?')))
            *mark = '\0';
        check_cost(&shapes[i]);
        free_shape(&shapes[i]);
    }
}
END_TEST

/* Resume is waited for without end, and its answer may never be whole. */
START_TEST(half_an_answer_to_resume)
{
    struct shape shape = {.name = "half an answer"};
    struct world *world = begin();
    size_t before;
    struct world_runtime *runtimes[N];

    shape.exe = repeat("/opt/", 'a', 20, "");
    shape.arguments = list_of("/opt/app", 3, 20);
    shape.cgroup = repeat("0::/", 'a', 1, "\n");
    shape.environ = list_of(PORTS, 0, 0);
    before = unit_memory_charged();
    for (size_t i = 0; i < N; i++) {
        uint8_t *much = calloc(1, 60000);
        struct world_command command;
        struct bytes message;

        ck_assert_ptr_nonnull(much);
        runtimes[i] = add(world, &shape, i);
        world_start(runtimes[i]);
        while (world_peek_command(runtimes[i]->connections[0], &command) &&
               command.id != COMMAND_RESUME)
            answer(runtimes[i], &shape);
        ck_assert(world_take_command(runtimes[i]->connections[0], &command));
        bytes_init(&message, WIRE_MESSAGE_MAX);
        wire_message_begin(&message, WIRE_SET_SERVER, 0);
        bytes_put_run(&message, much, 60000);
        ck_assert_int_eq(wire_message_end(&message), 0);
        world_send(runtimes[i]->connections[0], message.data, message.length - 1);
        bytes_deinit(&message);
        free(much);
    }
    world_pass(world, span_from_s(100), false);
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_RESUMING), N);
    ck_assert_uint_le(each_of(before), BROKER_BYTES_RUNTIME);
    world_free(world);
    free_shape(&shape);
}
END_TEST

UNIT_TESTS(a_connection_without_an_advertise, a_runtime, half_an_answer_to_resume);
