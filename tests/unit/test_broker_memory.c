/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lives of runtimes in which memory runs out once, for each allocation that the
 * broker makes: whichever fails, the runtime is resumed in the end, and what
 * was done to it is all of its plan or nothing.
 */

#include "tests/unit/unit.h"

#include <string.h>

#include "lib/hresult.h"
#include "lib/policy.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"
#include "tests/unit/unit_nettrace.h"

#define RULE(name, more)                                                                       \
    "  - { name: " name ", match: { exe: /" name " },\n"                                       \
    "      env: { ONE: \"1\", OLD: \"new\", GONE: null },\n"                                   \
    "      profilers: [ { clsid: d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e61, path: /opt/p.so } ],\n" \
    "      startup_hooks: [ { path: /opt/a.dll } ]" more " }\n"

static const char policy[] =
    "version: 1\n"
    "listen:\n"
    "  - { name: runtime, path: /run/diagport/runtime.sock }\n"
    "  - { name: second, path: /run/diagport/second.sock }\n"
    "control: { path: /run/diagport/control.sock }\n"
    "defaults: { hold_limit: 2s, verify: off }\n"
    "limits: { history: { records: 1 } }\n"
    "rules:\n" RULE("resume", "") RULE("hold", ", on_failure: hold") RULE("prove", ", verify: auto")
        RULE("watch",
             ", mode: observe") "  - { name: left, match: { exe: /left }, ignore: true }\n";

#define PORTS "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock;/run/diagport/second.sock\0"

static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/run/diagport/runtime.sock", .mode = 0140666, .inode = 100},
    {.path = "/run/diagport/second.sock", .mode = 0140666, .inode = 101},
};

/* What a runtime says of a profiler and a hook. */
static struct bytes said;

static struct world_runtime *runtime_in(struct world *world, const char *exe, const char *cookie)
{
    static const uint32_t ports[] = {0, 1};
    struct world_process *process = world_process(world, exe, PORTS "OLD=old\0GONE=here\0");

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, cookie, ports, ARRAY_LENGTH(ports));
}

static enum world_fault refuses_hooks(struct world_runtime *runtime,
                                      const struct world_command *command, uint32_t *ret_hresult)
{
    (void)runtime;
    *ret_hresult = HRESULT_FAIL;
    return command->id == COMMAND_APPLY_STARTUP_HOOK ? WORLD_REFUSES : WORLD_ANSWERS;
}

static enum world_fault is_lost_at_hooks(struct world_runtime *runtime,
                                         const struct world_command *command, uint32_t *ret_hresult)
{
    (void)runtime;
    *ret_hresult = 0;
    return command->id == COMMAND_APPLY_STARTUP_HOOK ? WORLD_READS_ONLY : WORLD_ANSWERS;
}

/* Lives. Each lets one runtime come and returns it. */

static struct world_runtime *gets_a_plan(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    world_start(runtime);
    return runtime;
}

static struct world_runtime *is_asked_for_everything(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    runtime->process->hides_environ = true;
    runtime->process->has_no_handle = true;
    world_set_variable(runtime, "DOTNET_DiagnosticPorts",
                       "/run/diagport/runtime.sock;/run/diagport/second.sock");
    world_start(runtime);
    return runtime;
}

static struct world_runtime *is_proved(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/prove", "aaaaaaaa");

    runtime->said = said.data;
    runtime->said_length = said.length;
    world_start(runtime);
    return runtime;
}

/* It says nothing, and its session has to be stopped. */
static struct world_runtime *is_not_proved(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/prove", "aaaaaaaa");

    world_start(runtime);
    return runtime;
}

/* What it said last is read after its end. */
static struct world_runtime *is_proved_at_its_end(struct world *world)
{
    struct world_runtime *runtime = is_proved(world);

    world_serve(world);
    if (runtime->session && !runtime->session->is_closed)
        world_send(runtime->session, said.data, said.length);
    world_kill(world, runtime->process);
    return runtime;
}

static struct world_runtime *is_taken_back(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    runtime->fault = refuses_hooks;
    world_start(runtime);
    return runtime;
}

static struct world_runtime *does_not_answer(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    runtime->fault = is_lost_at_hooks;
    world_start(runtime);
    return runtime;
}

static struct world_runtime *is_held(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/hold", "aaaaaaaa");

    runtime->fault = refuses_hooks;
    world_start(runtime);
    return runtime;
}

static struct world_runtime *is_watched(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/watch", "aaaaaaaa");

    world_start(runtime);
    return runtime;
}

static struct world_runtime *is_left_alone(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/left", "aaaaaaaa");

    world_start(runtime);
    return runtime;
}

static struct world_runtime *runs_already(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    runtime->process->picture = WORLD_RUNNING;
    world_start(runtime);
    return runtime;
}

static struct world_runtime *has_no_pid(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    runtime->process->hides_pid = true;
    runtime->process->ns_pid = 7;
    world_start(runtime);
    return runtime;
}

static struct world_runtime *is_native(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    runtime->kind = RUNTIME_KIND_NATIVEAOT;
    runtime->process->picture = WORLD_STRANGE;
    world_start(runtime);
    return runtime;
}

/* A daemon after the first one, which began the plan. */
static struct world_runtime *outlives_the_daemon(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    world_start(runtime);
    for (int i = 0; i < 4; i++)
        world_serve_one(runtime);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    return runtime;
}

static bool has_kept(const struct world *world)
{
    for (size_t i = 0; i < world->n_connections; i++) {
        if (world->connections[i]->kept != 0)
            return true;
    }
    return false;
}

/* Likewise, and that one reads what was in flight. */
static struct world_runtime *is_awaited(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    world_start(runtime);
    while (!has_kept(world) && world_serve_one(runtime))
        ;
    world_restart(world, BROKER_TRUSTS_RECORDS);
    return runtime;
}

/* It does not notice. */
static struct world_runtime *is_held_over_a_restart(struct world *world)
{
    struct world_runtime *runtime = is_held(world);

    world_pass(world, span_from_ms(500), true);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    return runtime;
}

/* Another one of its process, and two that have ended. */
static struct world_runtime *has_company(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");

    for (int i = 0; i < 2; i++) {
        struct world_runtime *other = runtime_in(world, "/resume", i ? "bbbbbbbb" : "cccccccc");

        world_start(other);
        world_serve(world);
        world_kill(world, other->process);
    }
    world_start(runtime);
    world_serve_one(runtime);
    world_start(world_runtime(world, runtime->process, "dddddddd", runtime->ports, 1));
    return runtime;
}

static struct world_runtime *is_held_by_an_operator(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "/resume", "aaaaaaaa");
    struct runtime *seen;

    world->are_answers_slow = true;
    world_start(runtime);
    if (broker_find(world->broker, "aaaaaaaa", &seen) == BROKER_FOUND_ONE) {
        unit_shortage_begin(world->context);
        (void)broker_hold(seen, span_from_s(1), world->now);
        unit_shortage_end(world->context);
    }
    world->are_answers_slow = false;
    world_settle(world);
    return runtime;
}

static const struct life {
    const char *name;
    struct world_runtime *(*live)(struct world *world);
} lives[] = {
    {"gets a plan", gets_a_plan},
    {"is asked for everything", is_asked_for_everything},
    {"is proved", is_proved},
    {"is not proved", is_not_proved},
    {"is proved at its end", is_proved_at_its_end},
    {"is taken back", is_taken_back},
    {"does not answer", does_not_answer},
    {"is held", is_held},
    {"is watched", is_watched},
    {"is left alone", is_left_alone},
    {"runs already", runs_already},
    {"has no pid", has_no_pid},
    {"is native", is_native},
    {"outlives the daemon", outlives_the_daemon},
    {"is awaited", is_awaited},
    {"is held over a restart", is_held_over_a_restart},
    {"has company", has_company},
    {"is held by an operator", is_held_by_an_operator},
};

static bool is_as_it_was(const struct world_runtime *runtime)
{
    const char *old = world_variable(runtime, "OLD"), *gone = world_variable(runtime, "GONE");

    return !world_variable(runtime, "ONE") && old && strcmp(old, "old") == 0 && gone &&
           strcmp(gone, "here") == 0;
}

/* What could not be kept of what it said is not its fault. */
static bool is_called_unreadable(const struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->plan.n_steps; i++) {
        const char *why = runtime->plan.steps[i].proof_why;

        if (why && strstr(why, "cannot be read"))
            return true;
    }
    return false;
}

static void check(const struct life *life, const struct world_runtime *runtime, size_t fails_at)
{
    const struct runtime *seen = world_find(runtime->world, "aaaaaaaa");
    bool has_all = world_variable(runtime, "ONE") && runtime->n_hooks > 0;

    for (size_t i = 0; i < runtime->n_ports; i++)
        ck_assert_msg(runtime->is_resumed[i], "%s, allocation %zu: port %zu waits for ever: %s",
                      life->name, fails_at, i, world_story(runtime));
    ck_assert_msg(!seen || !is_called_unreadable(seen), "%s, allocation %zu: unreadable? %s",
                  life->name, fails_at, world_story(runtime));
    if (seen && seen->outcome == OUTCOME_APPLIED)
        ck_assert_msg(has_all, "%s, allocation %zu: applied? %s", life->name, fails_at,
                      world_story(runtime));
    if (seen && (seen->outcome == OUTCOME_UNTOUCHED || seen->outcome == OUTCOME_FAILED))
        ck_assert_msg(is_as_it_was(runtime), "%s, allocation %zu: untouched? %s", life->name,
                      fails_at, world_story(runtime));
}

/* Returns how many allocations there were. */
static size_t live(const struct life *life, size_t fails_at)
{
    struct unit_shortage shortage = {.fails_at = fails_at};
    struct world *world = world_new_keeping(policy, 100000, 8);
    struct world_runtime *runtime;

    world->context = &shortage;
    world->before_call = unit_shortage_begin;
    world->after_call = unit_shortage_end;
    runtime = life->live(world);
    world_pass(world, span_from_s(60), true);
    check(life, runtime, fails_at);
    world_free(world);
    return shortage.n_allocations;
}

START_TEST(every_allocation_of_a_life_may_fail)
{
    const struct life *life = &lives[_i];
    size_t n = live(life, 0);

    ck_assert_uint_gt(n, 20);
    for (size_t fails_at = 1; fails_at <= n; fails_at += unit_share())
        live(life, fails_at);
}
END_TEST

static void record(void)
{
    said = unit_nettrace_recorded("hooks-profiler", 10);
}

static void forget(void)
{
    bytes_deinit(&said);
}

void unit_add_tests(TCase *tests)
{
    tcase_add_checked_fixture(tests, record, forget);
    tcase_add_loop_test(tests, every_allocation_of_a_life_may_fail, 0, ARRAY_LENGTH(lives));
}
