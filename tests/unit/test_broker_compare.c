/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files that are not the same any more when the runtime that is to load them is
 * resumed: that is said, and keeps nobody.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/broker_core.h"
#include "tests/sim/world.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"

#define RULE                                                                                    \
    "rules:\n"                                                                                  \
    "  - name: r\n"                                                                             \
    "    match: all\n"                                                                          \
    "    env: { ONE: \"1\" }\n"                                                                 \
    "    profilers: [ { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dd\", path: /opt/p.so } ]\n" \
    "    primer_path: /opt/primer.so\n"                                                         \
    "    startup_hooks: [ { path: /opt/a.dll }, { path: /opt/b.dll, required: false } ]\n"

static const uint32_t first[] = {0};
static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/primer.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
};
static const struct world_file without_hook[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/primer.so", .mode = 0100644},
};

/* A world with one runtime whose answers about files wait for somebody. */
static struct world_runtime *begin(const char *policy)
{
    struct world *world = world_new(policy);
    struct world_process *process =
        world_process(world, "/app", "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0");
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    world_start(runtime);
    return runtime;
}

static const struct runtime *seen_of(const struct world_runtime *runtime)
{
    return world_find(runtime->world, "aaaaaaaa");
}

/* Up to when it has answered all steps, and the one question about their files is open. */
static void serve_all_steps(const struct world_runtime *runtime)
{
    while (seen_of(runtime)->state < RUNTIME_APPLYING)
        world_serve_one((struct world_runtime *)(uintptr_t)runtime);
    runtime->world->are_answers_slow = true;
    world_serve(runtime->world);
}

static const struct step *step_of(const struct world_runtime *runtime, const char *name)
{
    const struct plan *plan = &seen_of(runtime)->plan;

    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].name && strcmp(plan->steps[i].name, name) == 0)
            return &plan->steps[i];
    }
    ck_abort_msg("there is no step %s", name);
}

static bool was_resumed(const struct world_runtime *runtime)
{
    return runtime->n_commands > 0 &&
           runtime->commands[runtime->n_commands - 1].id == COMMAND_RESUME;
}

/* One answer is given, and what follows from it is done. */
static void answer(const struct world_runtime *runtime)
{
    ck_assert(world_answer_one(runtime->world, 0));
    world_serve(runtime->world);
}

static void check_code(const struct world_runtime *runtime, const char *name, enum preflight code)
{
    const struct step *step = step_of(runtime, name);

    ck_assert_int_eq(step->result, STEP_OK);
    ck_assert_int_eq(step->code, code);
    if (code != PREFLIGHT_GOOD)
        ck_assert_str_eq(step->why, preflight_why(code));
}

START_TEST(files_that_are_the_same_are_no_news)
{
    struct world_runtime *runtime = begin(HEAD RULE);

    serve_all_steps(runtime);
    ck_assert(compare_is_under_way(seen_of(runtime)));
    ck_assert_uint_eq(runtime->world->wanted, FACTS_STAT | FACTS_FILES);
    ck_assert(!was_resumed(runtime));
    answer(runtime);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen_of(runtime)->outcome, OUTCOME_APPLIED);
    check_code(runtime, "/opt/p.so", PREFLIGHT_GOOD);
    check_code(runtime, "/opt/a.dll", PREFLIGHT_GOOD);
    ck_assert_ptr_null(step_of(runtime, "/opt/a.dll")->why);
    world_free(runtime->world);
}
END_TEST

START_TEST(each_file_that_is_another_one_is_said_to_be)
{
    struct world_runtime *runtime = begin(HEAD RULE);
    const struct broker_counters *counters = broker_counters(runtime->world->broker);
    size_t n_notices;

    serve_all_steps(runtime);
    runtime->process->n_replaced++;
    n_notices = runtime->world->n_notices;
    answer(runtime);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen_of(runtime)->outcome, OUTCOME_APPLIED);
    check_code(runtime, "/opt/p.so", PREFLIGHT_REPLACED);
    check_code(runtime, "/opt/primer.so", PREFLIGHT_REPLACED);
    check_code(runtime, "/opt/a.dll", PREFLIGHT_REPLACED);
    /* What was not there had its say before. */
    ck_assert_int_eq(step_of(runtime, "/opt/b.dll")->code, PREFLIGHT_FILE_MISSING);
    /* Three of files, Resume, and that it runs. */
    ck_assert_uint_eq(runtime->world->n_notices, n_notices + 5);
    ck_assert_uint_eq(counters->steps[STEP_HOOK][STEP_OK], 1);
    ck_assert_uint_eq(counters->steps[STEP_PROFILER][STEP_OK], 1);
    world_free(runtime->world);
}
END_TEST

START_TEST(a_file_that_is_gone_is_said_to_be)
{
    struct world_runtime *runtime = begin(HEAD RULE);

    serve_all_steps(runtime);
    runtime->process->files = without_hook;
    runtime->process->n_files = ARRAY_LENGTH(without_hook);
    answer(runtime);
    ck_assert(was_resumed(runtime));
    check_code(runtime, "/opt/p.so", PREFLIGHT_GOOD);
    check_code(runtime, "/opt/a.dll", PREFLIGHT_REMOVED);
    world_free(runtime->world);
}
END_TEST

/* Whatever keeps it from being looked at says nothing about it. */
START_TEST(a_file_that_cannot_be_looked_at_is_no_news)
{
    static const struct world_file closed[] = {{.path = "/opt/a.dll", .error = EACCES}};
    struct world_runtime *runtime = begin(HEAD RULE);

    serve_all_steps(runtime);
    runtime->process->files = closed;
    runtime->process->n_files = 1;
    answer(runtime);
    ck_assert(was_resumed(runtime));
    check_code(runtime, "/opt/a.dll", PREFLIGHT_GOOD);
    world_free(runtime->world);
}
END_TEST

START_TEST(who_loads_nothing_is_not_asked_about)
{
    struct world_runtime *runtime =
        begin(HEAD "rules: [ { name: r, match: all, env: { ONE: \"1\" }, startup_hooks: [ { path: "
                   "/opt/b.dll, required: false } ] } ]\n");

    serve_all_steps(runtime);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen_of(runtime)->outcome, OUTCOME_APPLIED);
    ck_assert_uint_ne(runtime->world->wanted, FACTS_STAT | FACTS_FILES);
    world_free(runtime->world);
}
END_TEST

START_TEST(what_failed_is_asked_about_where_a_part_of_it_stays)
{
    struct world_runtime *runtime = begin(HEAD RULE);

    while (seen_of(runtime)->state < RUNTIME_APPLYING)
        world_serve_one(runtime);
    runtime->world->are_answers_slow = true;
    while (step_of(runtime, "/opt/a.dll")->attempts == 0)
        world_serve_one(runtime);
    runtime->major = 6; /* which does not know hooks */
    world_serve(runtime->world);
    ck_assert_int_eq(step_of(runtime, "/opt/a.dll")->result, STEP_REFUSED);
    ck_assert(compare_is_under_way(seen_of(runtime)));
    runtime->process->n_replaced++;
    answer(runtime);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen_of(runtime)->outcome, OUTCOME_PARTIAL);
    check_code(runtime, "/opt/p.so", PREFLIGHT_REPLACED);
    ck_assert_int_eq(step_of(runtime, "/opt/a.dll")->code, PREFLIGHT_GOOD);
    world_free(runtime->world);
}
END_TEST

/* Time. */

static void is_kept_for(const char *policy, int64_t ms)
{
    struct world_runtime *runtime = begin(policy);
    struct moment from = runtime->world->now;

    serve_all_steps(runtime);
    ck_assert(!was_resumed(runtime));
    world_pass(runtime->world, span_from_us(ms * 1000 - 1), true);
    ck_assert(!was_resumed(runtime));
    world_pass(runtime->world, span_from_us(1), true);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen_of(runtime)->outcome, OUTCOME_APPLIED);
    ck_assert_int_eq(moment_between(from, seen_of(runtime)->resumed_at).us, ms * 1000);
    /* It comes too late for anybody. */
    runtime->process->n_replaced++;
    world_answer_late(runtime->world);
    check_code(runtime, "/opt/a.dll", PREFLIGHT_GOOD);
    world_free(runtime->world);
}

START_TEST(nobody_is_kept_for_longer_than_for_a_command)
{
    is_kept_for(HEAD "defaults: { deadline: 3s, command_timeout: 500ms }\n" RULE, 500);
}
END_TEST

START_TEST(nobody_is_kept_past_the_deadline)
{
    is_kept_for(HEAD "defaults: { deadline: 300ms, command_timeout: 2s }\n" RULE, 300);
}
END_TEST

/* Another daemon checked them, and nobody knows any more what they were. */
START_TEST(what_an_earlier_daemon_checked_is_not_asked_about)
{
    struct world_runtime *runtime = begin(HEAD RULE);

    serve_all_steps(runtime);
    world_restart(runtime->world, BROKER_TRUSTS_RECORDS);
    runtime->process->n_replaced++;
    runtime->world->are_answers_slow = false;
    world_serve(runtime->world);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen_of(runtime)->outcome, OUTCOME_APPLIED);
    ck_assert_uint_ne(runtime->world->wanted, FACTS_STAT | FACTS_FILES);
    check_code(runtime, "/opt/a.dll", PREFLIGHT_GOOD);
    world_free(runtime->world);
}
END_TEST

/* What happens during a hold is seen at its end, however long ago the deadline was. */
START_TEST(what_is_replaced_during_a_hold_is_said_to_be)
{
    struct world_runtime *runtime = begin(HEAD RULE);
    struct runtime *seen;

    ck_assert_int_eq(broker_find(runtime->world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_hold(seen, span_from_s(60), runtime->world->now), BROKER_DONE);
    world_settle(runtime->world);
    serve_all_steps(runtime);
    ck_assert_int_eq(seen->state, RUNTIME_HELD);
    world_pass(runtime->world, span_from_s(59), true);
    runtime->process->n_replaced++;
    ck_assert(!was_resumed(runtime));
    world_pass(runtime->world, span_from_s(1), true);
    ck_assert(compare_is_under_way(seen));
    answer(runtime);
    ck_assert(was_resumed(runtime));
    check_code(runtime, "/opt/a.dll", PREFLIGHT_REPLACED);
    world_free(runtime->world);
}
END_TEST

/* An operator who kills it, and a process that ends, wait for nothing. */
START_TEST(whoever_ends_meanwhile_ends)
{
    struct world_runtime *runtime = begin(HEAD RULE);
    struct runtime *seen;

    serve_all_steps(runtime);
    ck_assert_int_eq(broker_find(runtime->world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_kill(seen, runtime->world->now), BROKER_DONE);
    world_settle(runtime->world);
    while (world_answer_one(runtime->world, 0))
        ;
    ck_assert(runtime->process->was_killed);
    ck_assert(!was_resumed(runtime));
    world_kill(runtime->world, runtime->process);
    ck_assert_int_eq(seen->state, RUNTIME_KILLED);
    world_free(runtime->world);
}
END_TEST

UNIT_TESTS(files_that_are_the_same_are_no_news, each_file_that_is_another_one_is_said_to_be,
           a_file_that_is_gone_is_said_to_be, a_file_that_cannot_be_looked_at_is_no_news,
           who_loads_nothing_is_not_asked_about,
           what_failed_is_asked_about_where_a_part_of_it_stays,
           nobody_is_kept_for_longer_than_for_a_command, nobody_is_kept_past_the_deadline,
           what_an_earlier_daemon_checked_is_not_asked_about,
           what_is_replaced_during_a_hold_is_said_to_be, whoever_ends_meanwhile_ends);
