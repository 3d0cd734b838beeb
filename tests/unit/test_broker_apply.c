/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Plans: what is sent, in which order, once; and what becomes of everything
 * that can go wrong on the way.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "lib/hresult.h"
#include "tests/sim/world.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"                   \
    "rules:\n"                                                          \
    "  - name: r\n"                                                     \
    "    match: all\n"

#define PORT      "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0"
#define ENVIRON   PORT "OLD=old\0GONE=here\0"
#define VARIABLES "    env: { ONE: \"1\", OLD: \"new\", GONE: null }\n"
#define PROFILER                                                                              \
    "    profilers: [ { clsid: \"{cf0d821e-299b-5307-a3d8-b283c03916dd}\", path: /opt/p.so, " \
    "primer: never } ]\n"
#define HOOK "    startup_hooks: [ { path: /opt/a.dll } ]\n"

static const char whole[] = HEAD VARIABLES PROFILER HOOK;
static const uint32_t first[] = {0};
static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},      {.path = "/opt/q.so", .mode = 0100644},
    {.path = "/opt/primer.so", .mode = 0100644}, {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/opt/b.dll", .mode = 0100644},
};

static struct world_runtime *runtime_in(struct world *world, const char *cookie)
{
    struct world_process *process = world_process(world, "/app", ENVIRON);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, cookie, first, 1);
}

static const struct step *step_named(const struct runtime *runtime, const char *name)
{
    for (size_t i = 0; i < runtime->plan.n_steps; i++) {
        if (runtime->plan.steps[i].name && strcmp(runtime->plan.steps[i].name, name) == 0)
            return &runtime->plan.steps[i];
    }
    ck_abort_msg("there is no step %s", name);
}

static size_t count_commands(const struct world_runtime *runtime, enum command_id id)
{
    size_t n = 0;

    for (size_t i = 0; i < runtime->n_commands; i++)
        n += runtime->commands[i].id == id;
    return n;
}

START_TEST(a_whole_plan_in_its_order)
{
    struct world *world =
        world_new(HEAD VARIABLES
                  "    profilers:\n"
                  "      - { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dd\", path: /opt/p.so, "
                  "primer: never }\n"
                  "      - { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dc\", path: /opt/q.so, "
                  "primer: never }\n"
                  "    startup_hooks: [ { path: /opt/a.dll }, { path: /opt/b.dll } ]\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/q.so, "
                     "profiler /opt/p.so, hook /opt/a.dll:/opt/b.dll, resume");
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_uint_eq(seen->plan.n_steps, 8);
    for (size_t i = 0; i < seen->plan.n_steps; i++) {
        ck_assert_int_eq(seen->plan.steps[i].result, STEP_OK);
        ck_assert_uint_eq(seen->plan.steps[i].attempts, 1);
    }
    ck_assert_int_eq(seen->plan.steps[7].kind, STEP_RESUME);
    ck_assert_str_eq(seen->version, "10.0.7");
    ck_assert_int_eq(seen->target.kind, RUNTIME_KIND_CORECLR);
    world_free(world);
}
END_TEST

/* With the primer, which is sent behind all that it is to come before. */
START_TEST(a_whole_plan_with_a_primer)
{
    struct world *world =
        world_new(HEAD VARIABLES
                  "    profilers:\n"
                  "      - { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dd\", path: /opt/p.so }\n"
                  "      - { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dc\", path: /opt/q.so }\n"
                  "    primer_path: /opt/primer.so\n" HOOK);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, env ONE=1, env OLD=new, unset GONE, "
                     "env DIAGPORT_PRIMER_NAMES=ONE\nOLD\nGONE, "
                     "env DIAGPORT_PRIMER_PROBE=/opt/p.so\n/opt/q.so, profiler /opt/q.so, "
                     "profiler /opt/p.so, primer /opt/primer.so, hook /opt/a.dll, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

/* It is where the policy says, and not there; the program gets all the rest. */
START_TEST(a_primer_that_is_missing)
{
    static const char head[] = HEAD VARIABLES
        "    primer_path: /opt/absent.so\n"
        "    profilers: [ { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dd\", path: /opt/p.so } ]\n";
    struct world *world = world_new(head);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, env OLD=new, unset GONE, "
                                           "profiler /opt/p.so, resume");
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
    ck_assert_int_eq(step_named(seen, "/opt/absent.so")->result, STEP_REFUSED);
    ck_assert_int_eq(step_named(seen, "/opt/p.so")->result, STEP_OK);
    ck_assert_ptr_nonnull(strstr(step_named(seen, "/opt/p.so")->why, "without the primer"));
    ck_assert_uint_eq(broker_counters(world->broker)->steps[STEP_PRIMER][STEP_REFUSED], 1);
    ck_assert_uint_eq(broker_counters(world->broker)->steps[STEP_VARIABLE][STEP_SKIPPED], 2);
    world_free(world);
}
END_TEST

/* A plan whose old values are all known and present needs nothing from the runtime. */
START_TEST(nothing_is_asked_that_is_not_needed)
{
    struct world *world = world_new(HEAD "    env: { OLD: \"new\" }\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "env OLD=new, resume");
    world_free(world);
}
END_TEST

/* Where /proc does not tell the environment, the runtime does; its port's mode it does not. */
START_TEST(a_runtime_is_asked_for_its_environment)
{
    struct world *world = world_new(HEAD "    env: { OLD: \"new\", ONE: \"1\" }\n"
                                         "    command_timeout: 100ms\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    runtime->process->environ = NULL;
    world_set_variable(runtime, "OLD", "before");
    world_set_variable(runtime, "DOTNET_DiagnosticPorts", "/run/diagport/runtime.sock");
    world_start(runtime);
    seen = world_find(world, "aaaaaaaa");
    while (runtime->n_commands < 4)
        ck_assert(world_serve_one(runtime));
    ck_assert_str_eq(step_named(seen, "OLD")->old_value, "before");
    ck_assert_int_eq(step_named(seen, "ONE")->old, STEP_OLD_ABSENT);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, environment, env OLD=new, env ONE=1, resume");
    /* Nothing is taken back any more. */
    ck_assert_ptr_null(step_named(seen, "OLD")->old_value);
    world_free(world);
}
END_TEST

/* Faults at one command of a plan. */

struct fault_at {
    size_t command; /* the number of the command, from 0 */
    enum world_fault fault;
    uint32_t hresult;
    unsigned n_times;
};

static enum world_fault fault_at(struct world_runtime *runtime, const struct world_command *command,
                                 uint32_t *ret_hresult)
{
    struct fault_at *at = runtime->context;

    (void)command;
    if (runtime->n_commands < at->command || runtime->n_commands >= at->command + at->n_times)
        return WORLD_ANSWERS;
    *ret_hresult = at->hresult;
    return at->fault;
}

/* kind, info3, ONE, OLD, GONE, profiler, hook, resume */
enum { AT_KIND, AT_INFO, AT_ONE, AT_OLD, AT_GONE, AT_PROFILER, AT_HOOK, AT_RESUME };

static struct world_runtime *with_fault(struct world *world, struct fault_at *at)
{
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->fault = fault_at;
    runtime->context = at;
    world_start(runtime);
    world_pass(world, span_from_s(20), true);
    return runtime;
}

static void fails_with(size_t command, enum world_fault fault, unsigned n_times, const char *story,
                       enum runtime_outcome outcome)
{
    struct fault_at at = {.command = command,
                          .fault = fault,
                          .hresult = HRESULT_FAIL,
                          .n_times = n_times};
    struct world *world = world_new(whole);
    struct world_runtime *runtime = with_fault(world, &at);
    const struct runtime *seen = world_find(world, "aaaaaaaa");

    ck_assert_str_eq(world_story(runtime), story);
    ck_assert_int_eq(seen->outcome, outcome);
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
    world_free(world);
}

START_TEST(a_refused_step_is_taken_back)
{
    fails_with(AT_ONE, WORLD_REFUSES, 1, "kind, info3, env ONE=1, resume", OUTCOME_ROLLED_BACK);
    fails_with(AT_OLD, WORLD_REFUSES, 1, "kind, info3, env ONE=1, env OLD=new, unset ONE, resume",
               OUTCOME_ROLLED_BACK);
    fails_with(AT_GONE, WORLD_REFUSES, 1,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, env OLD=old, unset ONE, resume",
               OUTCOME_ROLLED_BACK);
    fails_with(AT_PROFILER, WORLD_REFUSES, 1,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
               "env GONE=here, env OLD=old, unset ONE, resume",
               OUTCOME_ROLLED_BACK);
    /* The profiler was taken and stays. */
    fails_with(AT_HOOK, WORLD_REFUSES, 1,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
               "hook /opt/a.dll, env GONE=here, env OLD=old, unset ONE, resume",
               OUTCOME_PARTIAL);
}
END_TEST

START_TEST(a_lost_variable_is_sent_again)
{
    static const enum world_fault faults[] = {WORLD_READS_ONLY, WORLD_ANSWERS_HALF,
                                              WORLD_ANSWERS_GARBAGE, WORLD_CLOSES};

    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
        fails_with(AT_OLD, faults[i], 1,
                   "kind, info3, env ONE=1, env OLD=new, env OLD=new, unset GONE, "
                   "profiler /opt/p.so, hook /opt/a.dll, resume",
                   OUTCOME_APPLIED);
    }
    fails_with(AT_ONE, WORLD_CLOSES, 3,
               "kind, info3, env ONE=1, env ONE=1, env ONE=1, unset ONE, resume",
               OUTCOME_ROLLED_BACK);
}
END_TEST

START_TEST(a_lost_profiler_or_hook_is_never_sent_again)
{
    static const enum world_fault faults[] = {WORLD_READS_ONLY, WORLD_ANSWERS_HALF,
                                              WORLD_ANSWERS_GARBAGE, WORLD_CLOSES};

    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
        fails_with(AT_PROFILER, faults[i], 1,
                   "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
                   "env GONE=here, env OLD=old, unset ONE, resume",
                   OUTCOME_PARTIAL);
        fails_with(AT_HOOK, faults[i], 1,
                   "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
                   "hook /opt/a.dll, env GONE=here, env OLD=old, unset ONE, resume",
                   OUTCOME_PARTIAL);
    }
}
END_TEST

START_TEST(what_cannot_be_taken_back_is_said)
{
    /* The hook is refused, then the first undo too; the others go on. */
    fails_with(AT_HOOK, WORLD_REFUSES, 2,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
               "hook /opt/a.dll, env GONE=here, env OLD=old, unset ONE, resume",
               OUTCOME_PARTIAL);
    fails_with(AT_GONE, WORLD_REFUSES, 2,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, env OLD=old, unset ONE, resume",
               OUTCOME_PARTIAL);
}
END_TEST

/* Whatever dies, at whichever point: nothing is kept of it, and the record says what happened. */
START_TEST(a_runtime_may_die_at_any_point)
{
    static const enum world_fault faults[] = {WORLD_DIES, WORLD_DIES_AFTER};

    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
        for (size_t command = AT_KIND; command <= AT_RESUME; command++) {
            struct fault_at at = {.command = command, .fault = faults[i], .n_times = 1};
            struct world *world = world_new(whole);
            struct world_runtime *runtime = with_fault(world, &at);
            const struct runtime *seen = world_find(world, "aaaaaaaa");

            ck_assert_uint_eq(runtime->n_commands, command + 1);
            ck_assert_int_eq(seen->state, RUNTIME_GONE);
            ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
            ck_assert_uint_eq(broker_counters(world->broker)->n_pending, 0);
            ck_assert_uint_eq(runtime->process->held, 0);
            if (command == AT_RESUME || (command == AT_HOOK && faults[i] == WORLD_DIES_AFTER))
                ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
            else if (command >= AT_ONE)
                ck_assert_int_eq(seen->outcome, OUTCOME_PARTIAL);
            else
                ck_assert_int_eq(seen->outcome, OUTCOME_FAILED);
            world_free(world);
        }
    }
}
END_TEST

START_TEST(an_unanswered_question_is_asked_once_more)
{
    fails_with(AT_INFO, WORLD_CLOSES, 1,
               "kind, info3, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
               "hook /opt/a.dll, resume",
               OUTCOME_APPLIED);
    /* Without its kind nothing may be sent that could kill it: the plan fails, untouched. */
    fails_with(AT_KIND, WORLD_CLOSES, 2, "kind, kind, info3, resume", OUTCOME_FAILED);
    fails_with(AT_KIND, WORLD_REFUSES, 1, "kind, info3, resume", OUTCOME_FAILED);
    /* The version is only good to know. */
    fails_with(AT_INFO, WORLD_REFUSES, 1,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
               "hook /opt/a.dll, resume",
               OUTCOME_APPLIED);
}
END_TEST

START_TEST(a_resume_that_is_not_answered_is_sent_again_on_the_next_connection)
{
    static const enum world_fault faults[] = {WORLD_ANSWERS_GARBAGE, WORLD_CLOSES};

    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++) {
        fails_with(AT_RESUME, faults[i], 1,
                   "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
                   "hook /opt/a.dll, resume, resume",
                   OUTCOME_APPLIED);
    }
}
END_TEST

/* Optional steps may fail. */

START_TEST(what_is_not_required_may_be_refused)
{
    struct fault_at at = {.command = 2,
                          .fault = WORLD_REFUSES,
                          .hresult = HRESULT_FAIL,
                          .n_times = 1};
    struct world *world =
        world_new(HEAD "    env: { ONE: { value: \"1\", required: false }, TWO: \"2\" }\n");
    struct world_runtime *runtime = with_fault(world, &at);
    const struct runtime *seen = world_find(world, "aaaaaaaa");

    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, env TWO=2, resume");
    ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
    ck_assert_int_eq(step_named(seen, "ONE")->result, STEP_REFUSED);
    ck_assert_uint_eq(step_named(seen, "ONE")->hresult, HRESULT_FAIL);
    world_free(world);
}
END_TEST

/* The start-up race of profilers. */

START_TEST(a_profiler_that_comes_too_early_is_sent_again)
{
    struct world *world = world_new(HEAD PROFILER);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;
    struct moment start;

    runtime->n_refusals_left = 6;
    world_start(runtime);
    start = world->now;
    world_pass(world, span_from_s(1), true);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, profiler /opt/p.so, profiler /opt/p.so, profiler /opt/p.so, "
                     "profiler /opt/p.so, profiler /opt/p.so, profiler /opt/p.so, "
                     "profiler /opt/p.so, resume");
    /* After 1, 2, 4, 8, 16 and 32 ms. */
    ck_assert_int_eq(moment_between(start, runtime->commands[8].at).us, 63000);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
    ck_assert_uint_eq(step_named(seen, "/opt/p.so")->attempts, 7);
    world_free(world);
}
END_TEST

START_TEST(a_profiler_that_is_refused_for_a_second_is_refused)
{
    struct world *world = world_new(HEAD "    env: { ONE: \"1\" }\n" PROFILER);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    runtime->n_refusals_left = 1000;
    world_start(runtime);
    world_pass(world, span_from_s(10), true);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->outcome, OUTCOME_ROLLED_BACK);
    ck_assert_int_eq(step_named(seen, "/opt/p.so")->result, STEP_REFUSED);
    ck_assert_uint_gt(step_named(seen, "/opt/p.so")->attempts, 20);
    ck_assert_uint_lt(step_named(seen, "/opt/p.so")->attempts, 30);
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    world_free(world);
}
END_TEST

START_TEST(any_other_refusal_of_a_profiler_is_final)
{
    fails_with(AT_PROFILER, WORLD_REFUSES, 1,
               "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
               "env GONE=here, env OLD=old, unset ONE, resume",
               OUTCOME_ROLLED_BACK);
}
END_TEST

START_TEST(two_hundred_in_the_race_get_it_once_each)
{
    enum { N = 200 };
    struct world *world = world_new(HEAD PROFILER);
    struct world_runtime *runtimes[N];

    for (size_t i = 0; i < N; i++) {
        char cookie[16];

        snprintf(cookie, sizeof cookie, "%08zx", 0x10000000 + i);
        runtimes[i] = runtime_in(world, cookie);
        runtimes[i]->n_refusals_left = 5;
        world_start(runtimes[i]);
    }
    world_pass(world, span_from_s(2), true);
    for (size_t i = 0; i < N; i++) {
        ck_assert_uint_eq(count_commands(runtimes[i], COMMAND_STARTUP_PROFILER), 6);
        ck_assert_uint_eq(count_commands(runtimes[i], COMMAND_RESUME), 1);
        ck_assert_int_eq(runtimes[i]->process->picture, WORLD_RUNNING);
    }
    world_free(world);
}
END_TEST

/* Versions and kinds. */

static void goes(const char *policy, unsigned major, enum runtime_kind kind, const char *story,
                 enum runtime_outcome outcome)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->major = major;
    runtime->kind = kind;
    if (kind == RUNTIME_KIND_NATIVEAOT)
        runtime->process->picture = WORLD_STRANGE;
    world_start(runtime);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), story);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, outcome);
    ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
    world_free(world);
}

START_TEST(every_version_and_kind)
{
    static const char optional[] = HEAD
        "    env: { ONE: \"1\", OLD: { value: \"new\" }, GONE: { value: null, required: false } }\n"
        "    profilers: [ { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dd\", path: /opt/p.so, "
        "primer: never, "
        "required: false } ]\n"
        "    startup_hooks: [ { path: /opt/a.dll, required: false } ]\n";
    static const char all[] = "kind, info3, env ONE=1, env OLD=new, unset GONE, "
                              "profiler /opt/p.so, hook /opt/a.dll, resume";

    for (unsigned major = 8; major <= 11; major++) {
        goes(whole, major, RUNTIME_KIND_CORECLR, all, OUTCOME_APPLIED);
        goes(optional, major, RUNTIME_KIND_CORECLR, all, OUTCOME_APPLIED);
        /* With the defaults nothing but questions and Resume is sent. */
        goes(whole, major, RUNTIME_KIND_NATIVEAOT, "kind, info3, resume", OUTCOME_FAILED);
        goes(optional, major, RUNTIME_KIND_NATIVEAOT, "kind, info3, env ONE=1, env OLD=new, resume",
             OUTCOME_APPLIED);
    }
    /* 6 and 7 have no hooks; 5 has no variables either. */
    goes(whole, 7, RUNTIME_KIND_CORECLR, "kind, info3, info2, resume", OUTCOME_FAILED);
    goes(optional, 7, RUNTIME_KIND_CORECLR,
         "kind, info3, info2, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, resume",
         OUTCOME_APPLIED);
    goes(optional, 5, RUNTIME_KIND_CORECLR, "kind, info3, info2, info1, resume", OUTCOME_FAILED);
}
END_TEST

/* Never an unset to NativeAOT, taking back included: what it would need stays, and is said. */
START_TEST(nothing_that_kills_nativeaot_is_sent_when_taking_back)
{
    struct fault_at at = {.command = 3,
                          .fault = WORLD_REFUSES,
                          .hresult = HRESULT_FAIL,
                          .n_times = 1};
    struct world *world = world_new(HEAD "    env: { ONE: \"1\", OLD: \"new\" }\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->kind = RUNTIME_KIND_NATIVEAOT;
    runtime->process->picture = WORLD_STRANGE;
    runtime->fault = fault_at;
    runtime->context = &at;
    world_start(runtime);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, env OLD=new, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_PARTIAL);
    world_free(world);
}
END_TEST

/* Files. */

static void file_refuses(const struct world_file *file, const char *why)
{
    struct world *world = world_new(HEAD VARIABLES HOOK);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    runtime->process->files = file;
    runtime->process->n_files = 1;
    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume");
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->outcome, OUTCOME_FAILED);
    ck_assert_int_eq(step_named(seen, "/opt/a.dll")->result, STEP_REFUSED);
    ck_assert_str_eq(step_named(seen, "/opt/a.dll")->why, why);
    ck_assert_int_eq(step_named(seen, "ONE")->result, STEP_SKIPPED);
    world_free(world);
}

START_TEST(a_file_that_will_not_do_is_found_before_the_first_command)
{
    static const struct world_file missing = {.path = "/opt/other", .mode = 0100644};
    static const struct world_file folder = {.path = "/opt/a.dll", .mode = 040755};
    static const struct world_file secret = {.path = "/opt/a.dll", .mode = 0100600};
    static const struct world_file pipe = {.path = "/opt/a.dll", .mode = 010644};

    file_refuses(&missing, "does not exist as the process sees it");
    file_refuses(&folder, "is a folder");
    file_refuses(&secret, "may not be read by the process");
    file_refuses(&pipe, "is not a regular file");
}
END_TEST

START_TEST(preventload_refuses_the_profiler)
{
    struct world *world = world_new(HEAD PROFILER);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->process->environ = PORT "DOTNET_ProfAPI_ProfilerCompatibilitySetting=PreventLoad\0";
    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "kind, info3, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_FAILED);
    world_free(world);
}
END_TEST

START_TEST(children_are_detached)
{
    struct world *world = world_new(HEAD "    children: detach\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env DOTNET_DiagnosticPorts=, "
                                           "env COMPlus_DiagnosticPorts=, resume");
    world_free(world);
}
END_TEST

START_TEST(observing_sends_nothing)
{
    struct world *world = world_new(HEAD VARIABLES HOOK "    mode: observe\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume");
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->outcome, OUTCOME_UNTOUCHED);
    ck_assert_str_eq(seen->rule->name, "r");
    ck_assert_int_eq(step_named(seen, "ONE")->result, STEP_SKIPPED);
    ck_assert_uint_eq(broker_counters(world->broker)->rules[0].n_matches, 1);
    world_free(world);
}
END_TEST

START_TEST(ignoring_is_one_command)
{
    struct world *world = world_new(HEAD "    ignore: true\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_UNTOUCHED);
    world_free(world);
}
END_TEST

/* What happens after a failure. */

START_TEST(on_failure_holds)
{
    struct fault_at at = {.command = AT_HOOK, .fault = WORLD_REFUSES, .hresult = 1, .n_times = 1};
    struct world *world =
        world_new(HEAD VARIABLES PROFILER HOOK "    on_failure: hold\n    hold_limit: 1m\n");
    struct world_runtime *runtime = with_fault(world, &at);
    const struct runtime *seen = world_find(world, "aaaaaaaa");

    ck_assert_int_eq(seen->state, RUNTIME_HELD);
    ck_assert_int_eq(seen->outcome, OUTCOME_PARTIAL);
    ck_assert_uint_eq(count_commands(runtime, COMMAND_RESUME), 0);
    world_pass(world, span_from_s(60), true);
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_uint_eq(count_commands(runtime, COMMAND_RESUME), 1);
    world_free(world);
}
END_TEST

START_TEST(on_failure_kills)
{
    struct fault_at at = {.command = AT_HOOK, .fault = WORLD_REFUSES, .hresult = 1, .n_times = 1};
    struct world *world = world_new(HEAD VARIABLES PROFILER HOOK "    on_failure: kill\n");
    struct world_runtime *runtime = with_fault(world, &at);
    const struct runtime *seen = world_find(world, "aaaaaaaa");

    ck_assert(runtime->process->was_killed);
    ck_assert_int_eq(seen->state, RUNTIME_KILLED);
    ck_assert_uint_eq(count_commands(runtime, COMMAND_RESUME), 0);
    world_kill(world, runtime->process);
    ck_assert_int_eq(seen->state, RUNTIME_KILLED);
    ck_assert(!moment_is_never(seen->ended_at));
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    world_free(world);
}
END_TEST

/* Nobody who became another program is killed in its place; he is resumed. */
START_TEST(only_the_same_program_is_killed)
{
    struct fault_at at = {.command = AT_HOOK, .fault = WORLD_REFUSES, .hresult = 1, .n_times = 1};
    struct world *world = world_new(HEAD VARIABLES PROFILER HOOK "    on_failure: kill\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->fault = fault_at;
    runtime->context = &at;
    world_start(runtime);
    for (int i = 0; i < 6; i++)
        ck_assert(world_serve_one(runtime));
    runtime->process->exe = "/bin/sh";
    world_pass(world, span_from_s(5), true);
    ck_assert(!runtime->process->was_killed);
    ck_assert_uint_eq(count_commands(runtime, COMMAND_RESUME), 1);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_free(world);
}
END_TEST

/* The first message was lost, and may have been taken for all that; then it is refused. */
static enum world_fault lost_then_refused(struct world_runtime *runtime,
                                          const struct world_command *command,
                                          uint32_t *ret_hresult)
{
    (void)command;
    *ret_hresult = HRESULT_FAIL;
    if (runtime->n_commands == AT_ONE)
        return WORLD_CLOSES;
    return runtime->n_commands == AT_ONE + 1 ? WORLD_REFUSES : WORLD_ANSWERS;
}

START_TEST(what_may_have_been_taken_before_it_was_refused_is_taken_back)
{
    struct world *world = world_new(whole);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->fault = lost_then_refused;
    world_start(runtime);
    world_pass(world, span_from_s(20), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, env ONE=1, unset ONE, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_ROLLED_BACK);
    world_free(world);
}
END_TEST

/* Nobody knows whether it was taken, so nobody says that it was not. */
START_TEST(a_variable_that_was_sent_and_never_answered_is_lost)
{
    struct world *world = world_new(HEAD "    env: { OLD: \"new\" }\n");
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_connection *connection = world_connect(world, runtime->process, 0);
    struct world_command command;
    const struct runtime *seen;

    world_advertise(connection, &cookie, (uint64_t)runtime->process->pid);
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_SET_ENVIRONMENT);
    world_end(connection);
    world_pass(world, span_from_s(20), false);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
    ck_assert_int_eq(seen->outcome, OUTCOME_PARTIAL);
    ck_assert_int_eq(step_named(seen, "OLD")->result, STEP_LOST);
    world_free(world);
}
END_TEST

/* The hook is refused, so that all is taken back; and what the runtime does with what is sent then.
 */
struct undo_faults {
    enum world_fault first, second;
};

static enum world_fault undo_fault(struct world_runtime *runtime,
                                   const struct world_command *command, uint32_t *ret_hresult)
{
    const struct undo_faults *faults = runtime->context;

    (void)command;
    *ret_hresult = HRESULT_FAIL;
    switch (runtime->n_commands) {
    case AT_HOOK:
        return WORLD_REFUSES;
    case AT_HOOK + 1:
        return faults->first;
    case AT_HOOK + 2:
        return faults->second;
    default:
        return WORLD_ANSWERS;
    }
}

/* The first one that is taken back is GONE, whose value was removed. */
static void undo_goes(const char *timing, struct undo_faults faults, const char *undos,
                      enum step_result result)
{
    const char *why = result == STEP_LOST ? "taking it back was not answered" : NULL;
    struct world_runtime *runtime;
    const struct runtime *seen;
    char policy[1000], story[500];
    struct world *world;

    snprintf(policy, sizeof policy, "%s%s", whole, timing);
    snprintf(story, sizeof story,
             "kind, info3, env ONE=1, env OLD=new, unset GONE, profiler /opt/p.so, "
             "hook /opt/a.dll, %s, resume",
             undos);
    world = world_new(policy);
    runtime = runtime_in(world, "aaaaaaaa");
    runtime->fault = undo_fault;
    runtime->context = &faults;
    world_start(runtime);
    world_pass(world, span_from_s(20), true);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_str_eq(world_story(runtime), story);
    ck_assert_int_eq(seen->outcome, OUTCOME_PARTIAL);
    ck_assert_int_eq(step_named(seen, "GONE")->result, result);
    ck_assert_pstr_eq(step_named(seen, "GONE")->why, why);
    ck_assert_uint_eq(broker_counters(world->broker)->steps[STEP_VARIABLE][STEP_LOST],
                      result == STEP_LOST);
    world_free(world);
}

/* What the runtime may have done is not said to be undone, nor to be there. */
START_TEST(whether_it_was_taken_back_is_not_always_known)
{
    static const char slow[] = "    command_timeout: 10s\n", usual[] = "";
    const char *rest = "env GONE=here, env GONE=here, env OLD=old, unset ONE";

    /* The deadline comes while it is in flight. */
    undo_goes(slow, (struct undo_faults){WORLD_READS_ONLY, WORLD_ANSWERS}, "env GONE=here",
              STEP_LOST);
    /* Nobody answers, as often as it is tried; and one attempt is enough. */
    undo_goes(usual, (struct undo_faults){WORLD_CLOSES, WORLD_CLOSES}, rest, STEP_LOST);
    undo_goes(usual, (struct undo_faults){WORLD_CLOSES, WORLD_REFUSES}, rest, STEP_LOST);
    undo_goes(usual, (struct undo_faults){WORLD_CLOSES, WORLD_ANSWERS}, rest, STEP_ROLLED_BACK);
    /* It says so itself. */
    undo_goes(usual, (struct undo_faults){WORLD_REFUSES, WORLD_ANSWERS},
              "env GONE=here, env OLD=old, unset ONE", STEP_OK);
}
END_TEST

START_TEST(who_ends_while_a_step_is_taken_back_leaves_it_open)
{
    struct undo_faults faults = {.first = WORLD_DIES};
    struct world *world = world_new(whole);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    runtime->fault = undo_fault;
    runtime->context = &faults;
    world_start(runtime);
    world_pass(world, span_from_s(20), true);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_GONE);
    ck_assert_int_eq(seen->outcome, OUTCOME_PARTIAL);
    ck_assert_int_eq(step_named(seen, "GONE")->result, STEP_LOST);
    ck_assert_int_eq(step_named(seen, "ONE")->result, STEP_OK);
    world_free(world);
}
END_TEST

/* The answer to a Resume that was under way does not take the deadline of killing away. */
START_TEST(killing_ends_whatever_is_answered_meanwhile)
{
    for (int is_answered = 0; is_answered <= 1; is_answered++) {
        struct world *world = world_new(HEAD "    env: { OLD: \"new\" }\n    mode: observe\n");
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
        struct world_connection *connection;
        struct runtime *seen;

        world_start(runtime);
        connection = runtime->connections[0];
        ck_assert_int_eq(broker_find(world->broker, "pid:1000", &seen), BROKER_FOUND_ONE);
        ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
        runtime->process->is_silent = true;
        ck_assert_int_eq(broker_kill(seen, world->now), BROKER_DONE);
        world_settle(world);
        ck_assert_int_eq(seen->state, RUNTIME_KILLING);
        if (is_answered)
            world_send_status(connection, true, 0);
        world_end(connection);
        world_pass(world, span_from_ms(300), false);
        ck_assert_int_eq(seen->state, RUNTIME_KILLING);
        world_pass(world, span_from_s(20), false);
        ck_assert_int_ne(seen->state, RUNTIME_KILLING);
        world_free(world);
    }
}
END_TEST

UNIT_TESTS(a_whole_plan_in_its_order, a_whole_plan_with_a_primer, a_primer_that_is_missing,
           nothing_is_asked_that_is_not_needed, a_runtime_is_asked_for_its_environment,
           a_refused_step_is_taken_back, a_lost_variable_is_sent_again,
           a_lost_profiler_or_hook_is_never_sent_again, what_cannot_be_taken_back_is_said,
           a_runtime_may_die_at_any_point, an_unanswered_question_is_asked_once_more,
           a_resume_that_is_not_answered_is_sent_again_on_the_next_connection,
           what_is_not_required_may_be_refused, a_profiler_that_comes_too_early_is_sent_again,
           a_profiler_that_is_refused_for_a_second_is_refused,
           any_other_refusal_of_a_profiler_is_final, two_hundred_in_the_race_get_it_once_each,
           every_version_and_kind, nothing_that_kills_nativeaot_is_sent_when_taking_back,
           a_file_that_will_not_do_is_found_before_the_first_command,
           preventload_refuses_the_profiler, children_are_detached, observing_sends_nothing,
           ignoring_is_one_command, on_failure_holds, on_failure_kills,
           only_the_same_program_is_killed,
           what_may_have_been_taken_before_it_was_refused_is_taken_back,
           a_variable_that_was_sent_and_never_answered_is_lost,
           whether_it_was_taken_back_is_not_always_known,
           who_ends_while_a_step_is_taken_back_leaves_it_open,
           killing_ends_whatever_is_answered_meanwhile);
