/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Histories that nobody thought of: a seed makes a policy, some runtimes with
 * their ports, kinds and bad habits, and a schedule of what happens next. After
 * every event the broker is checked; at the end of each history so are the
 * promises that can be seen from outside:
 *
 *   Resume comes last, and everybody who lives and can be reached runs;
 *   a profiler or a hook is never sent twice, over restarts too;
 *   a runtime that no rule matches gets nothing but Resume;
 *   nothing is sent that kills that kind of runtime;
 *   nobody is kept past the deadline of its rule;
 *   nothing is kept of who is gone.
 *
 *   sim [SEEDS [FIRST]]   runs that many seeds; a failing one is printed, and
 *   sim 1 SEED            replays it.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/hresult.h"
#include "lib/policy.h"
#include "tests/sim/world.h"

static uint64_t sim_seed;

/* Whatever aborts, the seed is told. */
static void tell_seed(int number)
{
    char text[64];
    int length = snprintf(text, sizeof text, "this was seed %llu\n", (unsigned long long)sim_seed);

    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}

enum { RUNTIMES_MAX = 12, EVENTS_MAX = 400 };

struct habits {
    struct world_runtime *runtime;
    unsigned fault_percent;
    bool is_matched;
    bool may_hold;
    struct moment came_at;
};

struct history {
    uint64_t state;
    uint64_t seed;
    struct world *world;
    struct habits habits[RUNTIMES_MAX];
    size_t n_habits;
    bool was_stalled;
    bool was_restarted;
};

static uint32_t draw(struct history *history, uint32_t n)
{
    /* xorshift64*: small, and the same everywhere. */
    history->state ^= history->state >> 12;
    history->state ^= history->state << 25;
    history->state ^= history->state >> 27;
    return (uint32_t)((history->state * UINT64_C(2685821657736338717)) >> 33) % n;
}

static bool chance(struct history *history, uint32_t percent)
{
    return draw(history, 100) < percent;
}

static _Noreturn void broken(const struct history *history, const struct world_runtime *runtime,
                             const char *promise)
{
    fprintf(stderr, "seed %llu: %s\n  it got: %s\n", (unsigned long long)history->seed, promise,
            runtime ? world_story(runtime) : "-");
    for (size_t i = 0; runtime && i < runtime->n_ports; i++)
        fprintf(stderr, "  port %zu: listener %u, %s\n", i, runtime->ports[i],
                runtime->is_resumed[i] ? "resumed" : "not resumed");
    if (runtime) {
        char id[16];
        struct runtime *seen;

        snprintf(id, sizeof id, "pid:%d", runtime->process->pid);
        if (broker_find(history->world->broker, id, &seen) != BROKER_FOUND_NONE)
            fprintf(stderr, "  the broker says: %s, %s, %s; %zu connections, %s\n",
                    runtime_state_name(seen->state),
                    seen->outcome ? runtime_outcome_name(seen->outcome) : "-", seen->why,
                    seen->n_connections, seen->blocked ? runtime_blocked_name(seen->blocked) : "-");
    }
    abort();
}

static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/run/diagport/runtime.sock", .mode = 0140666, .inode = 100},
    {.path = "/run/diagport/second.sock", .mode = 0140666, .inode = 101},
};

/* Rules by exe: /app/plan has everything, /app/few only variables, /app/hold holds on failure. */
static struct world *make_world(struct history *history)
{
    static const char *const time_outs[] = {"50ms", "300ms", "1s"};
    static const char *const deadlines[] = {"100ms", "1s", "3s"};
    char policy[2048];

    snprintf(policy, sizeof policy,
             "version: 1\n"
             "listen:\n"
             "  - { name: runtime, path: /run/diagport/runtime.sock }\n"
             "  - { name: second, path: /run/diagport/second.sock }\n"
             "control: { path: /run/diagport/control.sock }\n"
             "defaults: { deadline: %s, command_timeout: %s, hold_limit: 5s }\n"
             "rules:\n"
             "  - name: plan\n"
             "    match: { exe: /app/plan }\n"
             "    env: { ONE: \"1\", OLD: \"new\", GONE: { value: null, required: %s } }\n"
             "    profilers: [ { clsid: cf0d821e-299b-5307-a3d8-b283c03916dd, path: /opt/p.so, "
             "required: %s } ]\n"
             "    startup_hooks: [ { path: /opt/a.dll, required: %s } ]\n"
             "  - name: few\n"
             "    match: { exe: /app/few }\n"
             "    env: { ONE: \"1\", OLD: \"new\" }\n"
             "  - name: hold\n"
             "    match: { exe: /app/hold }\n"
             "    env: { ONE: \"1\" }\n"
             "    on_failure: hold\n",
             deadlines[draw(history, 3)], time_outs[draw(history, 3)],
             draw(history, 2) ? "true" : "false", draw(history, 2) ? "true" : "false",
             draw(history, 2) ? "true" : "false");
    return world_new(policy);
}

static enum world_fault misbehave(struct world_runtime *runtime,
                                  const struct world_command *command, uint32_t *ret_hresult)
{
    static const enum world_fault faults[] = {
        WORLD_REFUSES, WORLD_REFUSES, WORLD_READS_ONLY, WORLD_ANSWERS_HALF, WORLD_ANSWERS_GARBAGE,
        WORLD_CLOSES,  WORLD_CLOSES,  WORLD_DIES,       WORLD_DIES_AFTER,
    };
    static const uint32_t codes[] = {HRESULT_FAIL, HRESULT_INVALID_ARGUMENT,
                                     HRESULT_UNKNOWN_COMMAND, HRESULT_NOT_SUPPORTED, 0};
    struct history *history = runtime->context;
    unsigned percent = 0;
    enum world_fault fault;

    for (size_t i = 0; i < history->n_habits; i++) {
        if (history->habits[i].runtime == runtime)
            percent = history->habits[i].fault_percent;
    }
    if (!chance(history, percent))
        return WORLD_ANSWERS;
    fault = faults[draw(history, ARRAY_LENGTH(faults))];
    *ret_hresult = codes[draw(history, ARRAY_LENGTH(codes))];
    /* A kind that lies about itself deserves what it gets. */
    if (command->id == COMMAND_ASK_KIND)
        *ret_hresult = HRESULT_FAIL;
    /* Real runtimes answer Resume, or are gone. */
    if (command->id == COMMAND_RESUME && fault != WORLD_CLOSES && fault != WORLD_DIES &&
        fault != WORLD_DIES_AFTER)
        return WORLD_ANSWERS;
    return fault;
}

static const char *make_environ(size_t n_ports, const uint32_t *ports, bool is_hidden)
{
    static char buffers[16][256];
    static size_t next;
    char *block = buffers[next++ % ARRAY_LENGTH(buffers)];
    size_t length;

    if (is_hidden)
        return NULL;
    length = (size_t)snprintf(block, 256, "DOTNET_DiagnosticPorts=");
    for (size_t i = 0; i < n_ports; i++)
        length += (size_t)snprintf(block + length, 256 - length, "%s/run/diagport/%s.sock",
                                   i ? ";" : "", ports[i] ? "second" : "runtime");
    memcpy(block + length + 1, "OLD=old\0GONE=here\0", 19);
    return block;
}

static void add_runtime(struct history *history)
{
    static const char *const exes[] = {"/app/plan", "/app/plan", "/app/few",
                                       "/app/hold", "/app/none", NULL};
    struct world *world = history->world;
    struct habits *habits = &history->habits[history->n_habits++];
    size_t n_ports = 1 + (draw(history, 3) == 0) + (draw(history, 8) == 0);
    uint32_t ports[3] = {draw(history, 2), draw(history, 2), draw(history, 2)};
    const char *exe = exes[draw(history, ARRAY_LENGTH(exes))];
    struct world_process *process;
    char cookie[16];

    process = world_process(world, exe, make_environ(n_ports, ports, chance(history, 15)));
    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    process->uid = 1000 + draw(history, 2);
    process->has_no_handle = chance(history, 20);
    process->is_silent = chance(history, 3);
    process->hides_pid = chance(history, 3);
    snprintf(cookie, sizeof cookie, "%08zx", 0xa0000000 + history->n_habits);
    habits->runtime = world_runtime(world, process, cookie, ports, n_ports);
    habits->runtime->major = 6 + draw(history, 6);
    habits->runtime->kind = habits->runtime->major >= 8 && chance(history, 25)
                                ? RUNTIME_KIND_NATIVEAOT
                                : RUNTIME_KIND_CORECLR;
    if (habits->runtime->kind == RUNTIME_KIND_NATIVEAOT)
        process->picture = WORLD_STRANGE;
    habits->runtime->n_refusals_left = chance(history, 30) ? draw(history, 8) : 0;
    habits->runtime->has_foreign_port = chance(history, 5);
    habits->fault_percent = chance(history, 50) ? 0 : draw(history, 40);
    habits->runtime->fault = misbehave;
    habits->runtime->context = history;
    habits->is_matched = exe && strcmp(exe, "/app/none") != 0;
    habits->came_at = world->now;
    habits->runtime->environment[0] = "OLD=asked";
    world_start(habits->runtime);
}

static struct habits *somebody(struct history *history)
{
    return history->n_habits == 0 ? NULL
                                  : &history->habits[draw(history, (uint32_t)history->n_habits)];
}

static void operate(struct history *history, struct habits *habits)
{
    struct world *world = history->world;
    struct runtime *runtime;
    char id[16];

    snprintf(id, sizeof id, "pid:%d", habits->runtime->process->pid);
    if (broker_find(world->broker, id, &runtime) != BROKER_FOUND_ONE)
        return;
    if (draw(history, 2)) {
        broker_resume(runtime, world->now);
    } else {
        broker_hold(runtime, span_from_ms(draw(history, 3000)), world->now);
        habits->may_hold = true;
    }
    world_settle(world);
}

static void happen(struct history *history)
{
    struct world *world = history->world;
    struct habits *habits = somebody(history);

    switch (draw(history, 16)) {
    case 0:
    case 1:
        if (history->n_habits < RUNTIMES_MAX)
            add_runtime(history);
        return;
    case 2:
        world_pass(world, span_from_us(draw(history, 20000)), false);
        return;
    case 3:
        world_pass(world, span_from_ms(draw(history, 2000)), false);
        return;
    case 4:
        if (habits && chance(history, 20))
            world_kill(world, habits->runtime->process);
        return;
    case 5:
        if (habits && chance(history, 30))
            habits->runtime->is_stuck = !habits->runtime->is_stuck;
        return;
    case 6:
        if (chance(history, 15)) {
            world_restart(world, BROKER_TRUSTS_RECORDS);
            history->was_restarted = true;
        }
        return;
    case 7:
        if (habits && chance(history, 40))
            operate(history, habits);
        return;
    case 8:
        if (chance(history, 10)) {
            world_stall(world, span_from_ms(draw(history, 12000)));
            history->was_stalled = true;
            if (chance(history, 50) && habits)
                world_serve_one(habits->runtime);
            world_wake(world);
        }
        return;
    case 9:
        world_answer_late(world);
        return;
    case 10:
        if (habits && habits->runtime->connections[0] && chance(history, 10))
            world_end(habits->runtime->connections[0]);
        return;
    default:
        for (uint32_t i = draw(history, 6); habits && i > 0; i--)
            world_serve_one(habits->runtime);
        return;
    }
}

/* What a runtime was told. */

/* Who could not be identified is not in the records: a new daemon that can knows nothing of him. */
static bool may_be_forgotten(const struct history *history, const struct world_runtime *runtime)
{
    return history->was_restarted && runtime->process->is_silent;
}

static void judge_commands(const struct history *history, const struct habits *habits)
{
    const struct world_runtime *runtime = habits->runtime;
    size_t n_hooks = 0, n_profilers = 0;
    bool was_resumed = false;

    for (size_t i = 0; i < runtime->n_commands; i++) {
        const struct world_command *command = &runtime->commands[i];

        if (!habits->is_matched && command->id != COMMAND_RESUME)
            broken(history, runtime, "a runtime that no rule matches got more than Resume");
        if (was_resumed && command->id != COMMAND_RESUME && !may_be_forgotten(history, runtime))
            broken(history, runtime, "something was sent after Resume");
        was_resumed |= command->id == COMMAND_RESUME;
        n_hooks += command->id == COMMAND_APPLY_STARTUP_HOOK;
        n_profilers += command->id == COMMAND_STARTUP_PROFILER && !command->was_refused;
        if (runtime->kind == RUNTIME_KIND_NATIVEAOT &&
            (command->is_unset || command->id == COMMAND_APPLY_STARTUP_HOOK ||
             command->id == COMMAND_STARTUP_PROFILER))
            broken(history, runtime, "a NativeAOT program got what it cannot take");
        if (runtime->has_told_version && !command_is_known_to(command->id, runtime->major) &&
            command_row(command->id)->answer == COMMAND_ANSWERS_STATUS &&
            command->id != COMMAND_ASK_KIND)
            broken(history, runtime, "a runtime got a command that its version does not know");
    }
    if (n_hooks > 1)
        broken(history, runtime, "a hook was sent twice");
    if (n_profilers > 1)
        broken(history, runtime, "a profiler was sent twice");
}

static bool can_be_reached(const struct world_runtime *runtime)
{
    return !runtime->process->is_dead && !runtime->is_stuck;
}

/* Nobody is kept past its deadline: after the longest one and every time-out, all who can be
 * reached run, but for those that an operator or their rule holds. */
static void judge_end(struct history *history)
{
    struct world *world = history->world;

    for (size_t i = 0; i < history->n_habits; i++)
        history->habits[i].runtime->is_stuck = false;
    world_pass(world, span_from_s(30), true);
    world_answer_late(world);
    world_pass(world, span_from_s(30), true);
    for (size_t i = 0; i < history->n_habits; i++) {
        const struct habits *habits = &history->habits[i];
        const struct world_runtime *runtime = habits->runtime;

        judge_commands(history, habits);
        if (!can_be_reached(runtime))
            continue;
        for (size_t port = 0; port < runtime->n_ports; port++) {
            if (!runtime->is_resumed[port])
                broken(history, runtime, "a port was not resumed");
        }
    } /* Whoever looks for us answers in the end, if only that he cannot tell. */
    for (size_t i = 0; i < history->n_habits; i++) {
        history->habits[i].runtime->process->is_silent = false;
        world_kill(world, history->habits[i].runtime->process);
    }
    world_pass(world, span_from_s(200), true);
    if (broker_counters(world->broker)->n_connections != 0)
        broken(history, NULL, "connections of the dead are kept");
    if (broker_counters(world->broker)->n_pending != 0)
        broken(history, NULL, "the dead are waited for");
}

static void run(uint64_t seed)
{
    struct history history = {.seed = seed, .state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    uint32_t n_events;

    history.world = make_world(&history);
    history.world->piece_state = chance(&history, 50) ? seed + 1 : 0;
    n_events = draw(&history, EVENTS_MAX);
    for (uint32_t i = 0; i < n_events; i++) {
        happen(&history);
        for (size_t j = 0; j < history.n_habits; j++)
            judge_commands(&history, &history.habits[j]);
    }
    judge_end(&history);
    world_free(history.world);
}

int main(int argc, char **argv)
{
    uint64_t n_seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    signal(SIGABRT, tell_seed);
    signal(SIGSEGV, tell_seed);
    for (uint64_t seed = first; seed < first + n_seeds; seed++) {
        sim_seed = seed;
        run(seed);
    }
    printf("%llu histories from seed %llu\n", (unsigned long long)n_seeds,
           (unsigned long long)first);
    return EXIT_SUCCESS;
}
