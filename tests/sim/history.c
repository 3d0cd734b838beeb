/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/sim/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/hresult.h"
#include "lib/policy.h"
#include "tests/sim/dice.h"
#include "tests/unit/unit_memory.h"

static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/run/diagport/runtime.sock", .mode = 0140666, .inode = 100},
    {.path = "/run/diagport/second.sock", .mode = 0140666, .inode = 101},
};

/* The policy. */

static const char *one_of(struct dice *dice, const char *const *list, uint32_t n)
{
    return list[dice_throw(dice, n)];
}

#define ONE_OF(dice, ...)                              \
    one_of((dice), (const char *const[]){__VA_ARGS__}, \
           ARRAY_LENGTH(((const char *const[]){__VA_ARGS__})))

static void put_limits(const struct history *history, struct dice *dice, char *text, size_t size)
{
    if (!history->has_limits) {
        snprintf(text, size, "{ hello: 500ms, history: { records: 100 } }");
        return;
    }
    snprintf(text, size,
             "{ hello: %s, runtimes: %u, runtimes_per_user: %u, silent: %u, "
             "connections_per_user: %u, cookies_per_process: %u, history: { records: %u, age: 1m } "
             "}",
             ONE_OF(dice, "10ms", "200ms", "1s"), 1 + dice_throw(dice, 12), 1 + dice_throw(dice, 8),
             1 + dice_throw(dice, 8), 1 + dice_throw(dice, 16), 1 + dice_throw(dice, 4),
             1 + dice_throw(dice, 20));
}

/*
 * Rules by exe: /app/plan has everything, /app/few only variables, /app/hold and
 * /app/kill do that on failure, /app/watch is only watched, /app/left is to be
 * left alone. GEN tells which policy it was.
 */
static void write_policy(const struct history *history, char *text, size_t size)
{
    struct dice dice = dice_new(history->salt + UINT64_C(7919) * history->generation);
    char limits[256];

    put_limits(history, &dice, limits, sizeof limits);
    snprintf(text, size,
             "version: 1\n"
             "listen:\n"
             "  - { name: runtime, path: /run/diagport/runtime.sock }\n"
             "  - { name: second, path: /run/diagport/second.sock }\n"
             "  - { name: third, path: /run/diagport/third.sock }\n"
             "control: { path: /run/diagport/control.sock }\n"
             "limits: %s\n"
             "defaults: { deadline: %s, command_timeout: %s, hold_limit: %s }\n"
             "rules:\n"
             "  - { name: left, match: { exe: /app/left }, ignore: true }\n"
             "  - name: plan\n"
             "    match: { exe: /app/plan }\n"
             "    match_unknown: %s\n"
             "    env: { GEN: \"%u\", OLD: new, GONE: { value: null, required: %s } }\n"
             "    profilers: [ { clsid: cf0d821e-299b-5307-a3d8-b283c03916dd, path: /opt/p.so, "
             "required: %s } ]\n"
             "    startup_hooks: [ { path: /opt/a.dll, required: %s } ]\n"
             "  - name: few\n"
             "    match: { exe: /app/few }\n"
             "    env: { GEN: \"%u\", OLD: \"new\" }\n"
             "  - name: hold\n"
             "    match: { exe: /app/hold }\n"
             "    env: { GEN: \"%u\" }\n"
             "    on_failure: hold\n"
             "  - name: kill\n"
             "    match: { exe: /app/kill }\n"
             "    env: { GEN: \"%u\" }\n"
             "    on_failure: kill\n"
             "  - name: watch\n"
             "    match: { exe: /app/watch }\n"
             "    mode: observe\n"
             "    env: { GEN: \"%u\" }\n",
             limits, ONE_OF(&dice, "100ms", "1s", "3s"), ONE_OF(&dice, "50ms", "300ms", "1s"),
             ONE_OF(&dice, "1s", "5s"), ONE_OF(&dice, "stop", "next"), history->generation,
             ONE_OF(&dice, "true", "false"), ONE_OF(&dice, "true", "false"),
             ONE_OF(&dice, "true", "false"), history->generation, history->generation,
             history->generation, history->generation);
}

static void remember_limits(struct history *history)
{
    const struct policy *policy = history->world->policy;

    if (policy->defaults.deadline.us > history->deadline.us)
        history->deadline = policy->defaults.deadline;
    if (policy->limits.silent > history->silent)
        history->silent = policy->limits.silent;
}

/* Memory. */

static void before_call(void *context)
{
    struct history *history = context;

    if (history->failing_allocation > 0)
        unit_memory_watch(history->failing_allocation);
}

static void after_call(void *context)
{
    struct history *history = context;
    size_t n_left;

    if (history->failing_allocation == 0)
        return;
    if (unit_memory_release(&n_left) >= history->failing_allocation)
        history->shortage = moment_after(history->world->now, span_from_s(2));
    history->failing_allocation = 0;
}

/* Actors. */

static enum world_fault misbehave(struct world_runtime *runtime,
                                  const struct world_command *command, uint32_t *ret_hresult)
{
    static const enum world_fault faults[] = {
        WORLD_REFUSES, WORLD_REFUSES, WORLD_READS_ONLY, WORLD_ANSWERS_HALF, WORLD_ANSWERS_GARBAGE,
        WORLD_CLOSES,  WORLD_DROPS,   WORLD_DROPS,      WORLD_DIES,         WORLD_DIES_AFTER,
    };
    static const uint32_t codes[] = {HRESULT_FAIL, HRESULT_INVALID_ARGUMENT,
                                     HRESULT_UNKNOWN_COMMAND, HRESULT_NOT_SUPPORTED, 0};
    const struct actor *actor = runtime->context;
    struct dice dice = dice_new(actor->salt + UINT64_C(31) * runtime->n_taken);
    enum world_fault fault;

    if (!dice_chance(&dice, actor->fault_percent))
        return WORLD_ANSWERS;
    fault = faults[dice_throw(&dice, ARRAY_LENGTH(faults))];
    *ret_hresult = codes[dice_throw(&dice, ARRAY_LENGTH(codes))];
    /* A kind that lies about itself deserves what it gets. */
    if (command->id == COMMAND_ASK_KIND)
        *ret_hresult = HRESULT_FAIL;
    /* Real runtimes answer Resume, or are gone. */
    if (command->id == COMMAND_RESUME && fault != WORLD_CLOSES && fault != WORLD_DROPS &&
        fault != WORLD_DIES && fault != WORLD_DIES_AFTER)
        return WORLD_ANSWERS;
    return fault;
}

/* Kept until the end of the program: processes point to it. */
static const char *make_environ(size_t n_ports, const uint32_t *ports)
{
    static const char *const names[WORLD_LISTENERS] = {"runtime", "second", "third"};
    static struct environ_block {
        uint32_t ports[3];
        size_t n_ports;
        char text[256];
    } blocks[64];
    static size_t n_blocks;
    struct environ_block *block = blocks;
    size_t length;

    for (; block < blocks + n_blocks; block++) {
        if (block->n_ports == n_ports && memcmp(block->ports, ports, n_ports * sizeof *ports) == 0)
            return block->text;
    }
    n_blocks++;
    block->n_ports = n_ports;
    memcpy(block->ports, ports, n_ports * sizeof *ports);
    length = (size_t)snprintf(block->text, sizeof block->text, "DOTNET_DiagnosticPorts=");
    for (size_t i = 0; i < n_ports; i++)
        length += (size_t)snprintf(block->text + length, sizeof block->text - length,
                                   "%s/run/diagport/%s.sock", i ? ";" : "", names[ports[i]]);
    memcpy(block->text + length + 1, "OLD=old\0GONE=here\0", 19);
    return block->text;
}

static struct world_process *add_process(struct history *history, struct dice *dice,
                                         const char *exe, const char *environ)
{
    struct world_process *process = world_process(history->world, exe, environ);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    process->uid = 1000 + dice_throw(dice, 2);
    process->has_no_handle = dice_chance(dice, 20);
    process->is_silent = dice_chance(dice, 3);
    process->hides_pid = dice_chance(dice, 3);
    process->hides_environ = dice_chance(dice, 15);
    process->ns_pid = dice_chance(dice, 10) ? 7 : 0;
    return process;
}

static struct actor *add_actor(struct history *history, struct dice *dice,
                               struct world_process *process, const uint32_t *ports, size_t n_ports)
{
    struct actor *actor = &history->actors[history->n_actors++];
    struct world_runtime *runtime;
    const char *exe = process->exe;
    char cookie[16];

    snprintf(cookie, sizeof cookie, "%08zx", 0xa0000000 + history->n_actors);
    runtime = world_runtime(history->world, process, cookie, ports, n_ports);
    runtime->major = 6 + dice_throw(dice, 6);
    runtime->kind = runtime->major >= 8 && dice_chance(dice, 25) ? RUNTIME_KIND_NATIVEAOT
                                                                 : RUNTIME_KIND_CORECLR;
    process->picture = runtime->kind == RUNTIME_KIND_NATIVEAOT ? WORLD_STRANGE : WORLD_SUSPENDED;
    runtime->n_refusals_left = dice_chance(dice, 30) ? dice_throw(dice, 8) : 0;
    runtime->has_foreign_port = dice_chance(dice, 5);
    runtime->fault = misbehave;
    runtime->context = actor;
    *actor = (struct actor){
        .runtime = runtime,
        .exe = exe,
        .salt = dice_throw(dice, UINT32_MAX),
        .fault_percent = dice_chance(dice, 50) ? 0 : dice_throw(dice, 40),
        .generation = history->generation,
        .is_matched = exe && strcmp(exe, "/app/none") != 0 && strcmp(exe, "/app/watch") != 0 &&
                      strcmp(exe, "/app/left") != 0,
        .is_unchanged = true,
        .may_be_touched = true,
        .n_variables = runtime->n_variables,
    };
    memcpy(actor->variables, runtime->variables, sizeof actor->variables);
    return actor;
}

/* What processes run. */
static const char *const exes[] = {"/app/plan", "/app/plan",  "/app/plan", "/app/few",
                                   "/app/hold", "/app/kill",  "/app/none", "/app/none",
                                   "/app/left", "/app/watch", NULL};

/* NULL when there is nobody. */
static struct actor *somebody(struct history *history, struct dice *dice)
{
    return history->n_actors == 0 ? NULL
                                  : &history->actors[dice_throw(dice, (uint32_t)history->n_actors)];
}

static bool has_room(const struct history *history)
{
    return history->n_actors < HISTORY_ACTORS_MAX;
}

/* Events. Each takes the history and the dice that decide what it leaves open. */

static void runtime_comes(struct history *history, struct dice *dice)
{
    size_t n_ports = 1 + (dice_throw(dice, 3) == 0) + (dice_throw(dice, 8) == 0);
    uint32_t ports[3] = {dice_throw(dice, WORLD_LISTENERS), dice_throw(dice, WORLD_LISTENERS),
                         dice_throw(dice, WORLD_LISTENERS)};
    struct world_process *process;

    if (!has_room(history))
        return;
    process = add_process(history, dice, exes[dice_throw(dice, ARRAY_LENGTH(exes))],
                          make_environ(n_ports, ports));
    world_start(add_actor(history, dice, process, ports, n_ports)->runtime);
}

/* Who lied with the cookie of another one may be the first to say it now. */
static void let_liars_go(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].may_be_touched |= history->actors[i].is_namesake;
}

/* A library with a runtime of its own in a program that has one. */
static void second_runtime_comes(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice), *second;

    if (!actor || !has_room(history) || actor->runtime->process->is_dead)
        return;
    let_liars_go(history);
    actor->is_unchanged = false;
    second = add_actor(history, dice, actor->runtime->process, actor->runtime->ports,
                       actor->runtime->n_ports);
    second->is_unchanged = false;
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].has_neighbour |=
            history->actors[i].runtime->process == actor->runtime->process;
    world_start(second->runtime);
}

static void drop_connections(const struct actor *actor)
{
    for (size_t i = 0; i < actor->runtime->n_ports; i++) {
        if (actor->runtime->connections[i])
            world_end(actor->runtime->connections[i]);
        actor->runtime->connections[i] = NULL;
    }
}

/* The process becomes another program: its runtime is gone, and a new one comes. */
static void process_execs(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice), *next;

    if (!actor || !has_room(history) || actor->runtime->process->is_dead)
        return;
    let_liars_go(history);
    for (size_t i = 0; i < history->n_actors; i++) {
        if (history->actors[i].runtime->process != actor->runtime->process)
            continue;
        drop_connections(&history->actors[i]);
        history->actors[i].is_unchanged = false;
        history->actors[i].is_over = true;
    }
    if (dice_chance(dice, 50) && actor->runtime->process->exe)
        actor->runtime->process->exe = exes[dice_throw(dice, ARRAY_LENGTH(exes))];
    next = add_actor(history, dice, actor->runtime->process, actor->runtime->ports,
                     actor->runtime->n_ports);
    next->is_unchanged = false;
    world_start(next->runtime);
}

/* Somebody claims to be another runtime, or another process. */
static void liar_comes(struct history *history, struct dice *dice)
{
    static const uint32_t port[] = {0};
    struct actor *victim = somebody(history, dice), *liar;
    struct world_process *process;

    if (!victim || !has_room(history))
        return;
    process = add_process(history, dice, "/app/plan", make_environ(1, port));
    liar = add_actor(history, dice, process, port, 1);
    liar->is_unchanged = false;
    if (dice_chance(dice, 50)) {
        const struct runtime *seen = promises_find(history, victim);

        liar->may_be_touched = !seen || !seen->process || !seen->process->is_identified ||
                               victim->runtime->process->is_dead || victim->is_namesake ||
                               victim->has_neighbour || runtime_has_ended(seen) || victim->is_over;
        liar->runtime->cookie = victim->runtime->cookie;
        victim->is_unchanged = false;
        liar->is_namesake = victim->is_namesake = true;
    } else {
        liar->runtime->claimed_pid = victim->runtime->process->pid;
        liar->may_be_touched = false;
    }
    world_start(liar->runtime);
}

static void stranger_comes(struct history *history, struct dice *dice)
{
    static const uint8_t half[] = "ADVR_V1\0abcdef";
    static const uint8_t garbage[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\nand more than that\r\n";
    struct world_process *process;
    struct world_connection *stranger;

    if (history->n_strangers == HISTORY_STRANGERS_MAX)
        return;
    process = add_process(history, dice, "/bin/nc", NULL);
    stranger = world_connect(history->world, process, dice_throw(dice, WORLD_LISTENERS));
    history->strangers[history->n_strangers++] = stranger;
    if (dice_chance(dice, 30))
        world_send(stranger, half, 1 + dice_throw(dice, sizeof half - 1));
    else if (dice_chance(dice, 30))
        world_send(stranger, garbage, sizeof garbage - 1);
}

static void stranger_goes(struct history *history, struct dice *dice)
{
    if (history->n_strangers > 0)
        world_end(history->strangers[dice_throw(dice, (uint32_t)history->n_strangers)]);
}

static void runtime_serves(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice);

    for (uint32_t n = 1 + dice_throw(dice, 4); actor && n > 0; n--)
        world_serve_one(actor->runtime);
}

static void all_serve(struct history *history, struct dice *dice)
{
    for (uint32_t n = 1 + dice_throw(dice, 4); n > 0; n--) {
        for (size_t i = 0; i < history->n_actors; i++)
            world_serve_one(history->actors[i].runtime);
    }
}

static void connection_is_accepted(struct history *history, struct dice *dice)
{
    world_accept(history->world, dice_throw(dice, WORLD_LISTENERS));
}

/* A few bytes, or all, of a runtime's connection, which may be an old one. */
static void bytes_come(struct history *history, struct dice *dice)
{
    struct world *world = history->world;
    uint32_t back;

    if (world->n_connections == 0)
        return;
    back = dice_throw(dice, world->n_connections < 40 ? (uint32_t)world->n_connections : 40);
    world_deliver(world->connections[world->n_connections - 1 - back],
                  dice_chance(dice, 70) ? SIZE_MAX : 1 + dice_throw(dice, 40));
}

static void all_bytes_come(struct history *history, struct dice *dice)
{
    (void)dice;
    world_deliver_all(history->world);
}

static void question_is_answered(struct history *history, struct dice *dice)
{
    world_answer_one(history->world, dice_chance(dice, 70) ? 0 : dice_throw(dice, 4));
}

static void silence_is_broken(struct history *history, struct dice *dice)
{
    (void)dice;
    world_answer_late(history->world);
}

/* After a stall everything that is there is read before a deadline is judged. */
static void pass(struct history *history, struct span length)
{
    if (!history->is_current)
        world_wake(history->world);
    world_pass(history->world, length, false);
    history->is_current = true;
}

static void time_passes(struct history *history, struct dice *dice)
{
    pass(history, span_from_us(dice_throw(dice, 20000)));
}

static void long_time_passes(struct history *history, struct dice *dice)
{
    pass(history, span_from_ms(dice_throw(dice, 2000)));
}

/* What happens next is seen late, before any deadline is looked at. */
static void daemon_stalls(struct history *history, struct dice *dice)
{
    world_stall(history->world, span_from_ms(dice_throw(dice, 12000)));
    history->is_current = false;
}

static void daemon_wakes(struct history *history, struct dice *dice)
{
    (void)dice;
    world_wake(history->world);
    history->is_current = true;
}

static void process_dies(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice);

    if (!actor)
        return;
    let_liars_go(history);
    world_kill(history->world, actor->runtime->process);
}

static void process_stops(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice);

    if (!actor)
        return;
    actor->is_unchanged = false;
    actor->runtime->is_stuck = true;
    if (dice_chance(dice, 50))
        actor->runtime->process->state = 'T';
}

static void process_continues(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice);

    if (!actor)
        return;
    actor->runtime->is_stuck = false;
    actor->runtime->process->state = 'S';
}

static void connection_is_reset(struct history *history, struct dice *dice)
{
    struct actor *actor = somebody(history, dice);
    size_t port = actor ? dice_throw(dice, (uint32_t)actor->runtime->n_ports) : 0;

    if (!actor || !actor->runtime->connections[port])
        return;
    actor->is_unchanged = false;
    world_end(actor->runtime->connections[port]);
}

static void policy_is_reloaded(struct history *history, struct dice *dice)
{
    char text[4096];

    (void)dice;
    history->generation++;
    write_policy(history, text, sizeof text);
    if (!world_set_policy(history->world, text))
        history->generation--;
    remember_limits(history);
}

static void begin_anew(struct history *history, enum broker_trust trust)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        struct actor *actor = &history->actors[i];
        const struct runtime *runtime = promises_find(history, actor);

        actor->is_unchanged = false;
        actor->may_be_touched |= actor->is_namesake;
        actor->was_restarted = true; /* Who could not be identified is not in the records. */
        actor->is_forgotten |= history->has_no_records || !runtime || !runtime->process ||
                               !runtime->process->is_identified;
    }
    history->has_no_records = trust == BROKER_HAS_NO_RECORDS;
    world_restart(history->world, trust);
    history->is_stopping = false;
    history->resumes_all = false;
    history->is_current = true;
}

static void daemon_crashes(struct history *history, struct dice *dice)
{
    (void)dice;
    begin_anew(history, BROKER_TRUSTS_RECORDS);
}

static void records_are_lost(struct history *history, struct dice *dice)
{ /* Those that cannot be read now may be read later. */
    bool are_there = dice_chance(dice, 50);

    if (!are_there)
        memset(history->world->marks, 0, sizeof history->world->marks);
    begin_anew(history, are_there ? BROKER_HAS_NO_RECORDS : BROKER_DISTRUSTS_RECORDS);
}

static void daemon_stops(struct history *history, struct dice *dice)
{
    if (history->is_stopping)
        return;
    history->is_stopping = true;
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].is_unchanged = false;
    history->resumes_all = dice_chance(dice, 50);
    world_stop(history->world, history->resumes_all ? BROKER_STOP_RESUME : BROKER_STOP_KEEP);
}

static void operator_acts(struct history *history, struct dice *dice)
{
    struct world *world = history->world;
    struct actor *actor = somebody(history, dice);
    struct runtime *runtime;
    char id[16];

    if (!actor)
        return;
    snprintf(id, sizeof id, "pid:%d", actor->runtime->process->pid);
    if (broker_find(world->broker, id, &runtime) != BROKER_FOUND_ONE)
        return;
    actor->is_unchanged = false;
    switch (dice_throw(dice, 5)) {
    case 0:
    case 1:
        broker_resume(runtime, world->now);
        break;
    case 2:
        actor->was_killed_by_us = true;
        broker_kill(runtime, world->now);
        break;
    default:
        broker_hold(runtime, span_from_ms(dice_throw(dice, 3000)), world->now);
        break;
    }
    world_settle(world);
}

static void killed_die(struct history *history, struct dice *dice)
{
    let_liars_go(history);
    (void)dice;
    for (size_t i = 0; i < history->n_actors; i++) {
        struct world_process *process = history->actors[i].runtime->process;

        if (process->was_killed && !process->is_dead)
            world_kill(history->world, process);
    }
}

static void shell_fails(struct history *history, struct dice *dice)
{
    struct world *world = history->world;

    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].is_unchanged = false;
    switch (dice_throw(dice, 3)) {
    case 0:
        world->fails_to_hold = true;
        return;
    case 1:
        world->fails_to_kill = true;
        return;
    default:
        world->fails_to_send = world->is_network_slow;
        return;
    }
}

static void memory_runs_short(struct history *history, struct dice *dice)
{
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].is_unchanged = false;
    history->failing_allocation = 1 + dice_throw(dice, 12);
}

static const struct event {
    const char *name;
    unsigned weight;
    void (*happen)(struct history *history, struct dice *dice);
} events[] = {
    {"runtime-comes", 10, runtime_comes},
    {"second-runtime-comes", 1, second_runtime_comes},
    {"process-execs", 1, process_execs},
    {"liar-comes", 1, liar_comes},
    {"stranger-comes", 2, stranger_comes},
    {"stranger-goes", 1, stranger_goes},
    {"runtime-serves", 24, runtime_serves},
    {"all-serve", 4, all_serve},
    {"connection-is-accepted", 12, connection_is_accepted},
    {"bytes-come", 40, bytes_come},
    {"all-bytes-come", 3, all_bytes_come},
    {"question-is-answered", 16, question_is_answered},
    {"silence-is-broken", 1, silence_is_broken},
    {"time-passes", 12, time_passes},
    {"long-time-passes", 4, long_time_passes},
    {"daemon-stalls", 1, daemon_stalls},
    {"daemon-wakes", 2, daemon_wakes},
    {"process-dies", 1, process_dies},
    {"process-stops", 1, process_stops},
    {"process-continues", 2, process_continues},
    {"connection-is-reset", 1, connection_is_reset},
    {"policy-is-reloaded", 1, policy_is_reloaded},
    {"daemon-crashes", 1, daemon_crashes},
    {"records-are-lost", 1, records_are_lost},
    {"daemon-stops", 1, daemon_stops},
    {"operator-acts", 2, operator_acts},
    {"killed-die", 2, killed_die},
    {"shell-fails", 1, shell_fails},
    {"memory-runs-short", 1, memory_runs_short},
};

size_t history_n_kinds(void)
{
    return ARRAY_LENGTH(events);
}

const char *history_kind_name(uint32_t kind)
{
    return events[kind].name;
}

bool history_find_kind(const char *name, uint32_t *ret_kind)
{
    for (uint32_t kind = 0; kind < ARRAY_LENGTH(events); kind++) {
        if (strcmp(events[kind].name, name) == 0) {
            *ret_kind = kind;
            return true;
        }
    }
    return false;
}

uint32_t history_draw_kind(uint32_t number)
{
    unsigned sum = 0;
    uint32_t kind = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(events); i++)
        sum += events[i].weight;
    number %= sum;
    while (number >= events[kind].weight)
        number -= events[kind++].weight;
    return kind;
}

/* The whole. */

struct history *history_new(uint32_t salt)
{
    struct history *history = world_need(calloc(1, sizeof *history));
    struct dice dice = dice_new(salt);
    size_t usable = dice_chance(&dice, 85) ? 100000 : 4 + dice_throw(&dice, 24);
    char text[4096];

    history->salt = salt;
    history->has_limits = usable < 100000 || dice_chance(&dice, 40);
    write_policy(history, text, sizeof text);
    history->world = world_new_with(text, BROKER_TRUSTS_RECORDS, usable);
    history->world->is_network_slow = dice_chance(&dice, 60);
    history->world->are_answers_slow = dice_chance(&dice, 40);
    history->world->piece_state = dice_chance(&dice, 50) ? salt + UINT64_C(1) : 0;
    history->world->before_call = before_call;
    history->world->after_call = after_call;
    history->world->context = history;
    history->is_current = true;
    history->shortage = history->world->now;
    remember_limits(history);
    return history;
}

/* Whoever could not be identified may be somebody else the next time; and who dies leaves his
 * cookie to whoever took it. */
static void note_changes(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        struct actor *actor = &history->actors[i];
        const struct runtime *seen = promises_find(history, actor);

        actor->is_forgotten |= seen && seen->process && !seen->process->is_identified;
        if (actor->is_namesake && actor->runtime->process->is_dead)
            let_liars_go(history);
    }
}

void history_happen(struct history *history, const struct happening *happening)
{
    struct dice dice = dice_new(happening->salt);

    events[happening->kind].happen(history, &dice);
    /* As in the daemon, deadlines are looked at after everything else. */
    if (history->is_current)
        world_pass(history->world, span_from_us(0), false);
    if (history->is_told) {
        fprintf(stderr, "%s at %.6f\n", events[happening->kind].name,
                (double)history->world->now.us / 1e6);
        for (size_t i = 0; i < history->n_actors; i++)
            promises_tell(history, &history->actors[i]);
    }
    /* Without memory nothing could be read. */
    if (moment_is_before(history->world->now, history->shortage))
        history->world->n_unread = 0;
    note_changes(history);
    promises_check(history);
}

static void come_to_rest(struct history *history)
{
    bool is_busy = true;

    for (int turn = 0; is_busy; turn++) {
        if (turn == 100000)
            promises_broken(history, NULL, "nobody comes to rest");
        world_deliver_all(history->world);
        is_busy = false;
        while (world_answer_one(history->world, 0))
            is_busy = true;
        for (size_t i = 0; i < history->n_actors; i++)
            is_busy |= world_serve_one(history->actors[i].runtime);
    }
}

void history_live_on(struct history *history, struct span length)
{
    struct world *world = history->world;
    struct moment end = moment_after(world->now, length);

    for (;;) {
        struct moment next;

        come_to_rest(history);
        next = broker_next_deadline(world->broker);
        if (moment_is_before(end, next))
            break;
        if (moment_is_before(world->now, next))
            world->now = next;
        world_wake(world);
        history->is_current = true;
        note_changes(history);
        promises_check(history);
    }
    world->now = end;
}

void history_end(struct history *history)
{
    struct dice dice = dice_new(0);

    history->failing_allocation = 0;
    for (size_t i = 0; i < history->n_actors; i++) {
        history->actors[i].runtime->is_stuck = false;
        history->actors[i].runtime->process->state = 'S';
    }
    history_live_on(history, span_from_s(30));
    /* Whoever stops is followed by another. */
    if (history->is_stopping)
        begin_anew(history, BROKER_TRUSTS_RECORDS);
    history_live_on(history, span_from_s(30));
    silence_is_broken(history, &dice);
    killed_die(history, &dice);
    history_live_on(history, span_from_s(30));
    promises_check_rest(history);
    world_free(history->world);
    free(history);
}
