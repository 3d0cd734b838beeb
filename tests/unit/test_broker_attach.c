/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Profilers that operators have loaded into runtimes that run: what is asked and
 * checked before, what comes of each, and that it always comes to an end.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/hresult.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"

#define OURS "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0"

#define HRESULT_ALREADY_ACTIVE UINT32_C(0x8013136A)

static const char none[] = HEAD;
static const char planned[] = HEAD "rules:\n"
                                   "  - { name: r, match: all, env: { ONE: \"1\", TWO: null } }\n";

static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/q.so", .mode = 0100644},
    {.path = "/opt/closed.so", .mode = 0100600},
    {.path = "/opt/missing.so", .error = ENOENT},
};

#define RULE                                                                           \
    "rules:\n"                                                                         \
    "  - name: r\n"                                                                    \
    "    match: all\n"                                                                 \
    "    env: { ONE: \"1\" }\n"                                                        \
    "    command_timeout: 500ms\n"                                                     \
    "    profilers:\n"                                                                 \
    "      - { clsid: cf0d821e-299b-5307-a3d8-b283c03916dd, path: /opt/p.so }\n"       \
    "      - { clsid: cf0d821e-299b-5307-a3d8-b283c03916de, path: /opt/missing.so }\n" \
    "      - { clsid: cf0d821e-299b-5307-a3d8-b283c03916df, path: /opt/q.so }\n"

static struct world_runtime *runtime_in(struct world *world)
{
    static const uint32_t port[] = {0};
    struct world_process *process = world_process(world, "/app", OURS);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, "aaaaaaaa", port, 1);
}

static struct world_runtime *running_in(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world);

    world_start(runtime);
    world_serve(world);
    world_pass(world, span_from_ms(20), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    return runtime;
}

static enum broker_verdict attach_as(struct world *world, const struct broker_attach *wanted)
{
    enum broker_verdict verdict;
    struct runtime *runtime;

    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &runtime), BROKER_FOUND_ONE);
    verdict = broker_attach(runtime, wanted, world->now);
    world_settle(world);
    return verdict;
}

static enum broker_verdict attach(struct world *world, const char *path)
{
    const struct broker_attach wanted = {.clsid = {.bytes = {1}},
                                         .path = path,
                                         .data = "hello",
                                         .n_data = 5,
                                         .timeout = span_from_s(5)};

    return attach_as(world, &wanted);
}

static const struct step *last_step(struct world *world)
{
    const struct attach *last = TAILQ_LAST(&world_find(world, "aaaaaaaa")->attaches, attach_list);

    if (!last)
        ck_abort_msg("nothing was attached");
    return &last->step;
}

static void came_to(struct world *world, enum step_result result, const char *why)
{
    const struct step *step = last_step(world);

    ck_assert_int_eq(step->result, result);
    ck_assert_str_eq(step->why ? step->why : "", why);
    ck_assert(!moment_is_never(step->at));
}

START_TEST(it_is_loaded_with_its_data)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(1), true);
    ck_assert_str_eq(world_story(runtime), "resume, kind, attach /opt/p.so with hello");
    ck_assert_uint_eq(runtime->n_attached, 1);
    came_to(world, STEP_OK, "");
    ck_assert_uint_eq(last_step(world)->hresult, 0);
    /* It is on its port again, and gets no other Resume. */
    ck_assert_uint_eq(world_find(world, "aaaaaaaa")->n_connections, 1);
    ck_assert_uint_eq(broker_counters(world->broker)->steps[STEP_ATTACH][STEP_OK], 1);
    world_free(world);
}
END_TEST

START_TEST(who_was_asked_is_not_asked_again)
{
    struct world *world = world_new(planned);
    struct world_runtime *runtime = running_in(world);

    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(1), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, unset TWO, resume, "
                                           "attach /opt/p.so with hello");
    came_to(world, STEP_OK, "");
    world_free(world);
}
END_TEST

/* Nothing of it was sent. */
static void is_refused_unsent(const char *path, enum preflight code)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    ck_assert_int_eq(attach(world, path), BROKER_DONE);
    world_pass(world, span_from_ms(1), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    came_to(world, STEP_REFUSED, preflight_why(code));
    ck_assert_int_eq(last_step(world)->code, code);
    ck_assert_uint_eq(last_step(world)->attempts, 0);
    world_free(world);
}

START_TEST(files_are_looked_at_first)
{
    is_refused_unsent("/opt/missing.so", PREFLIGHT_FILE_MISSING);
    is_refused_unsent("/opt/closed.so", PREFLIGHT_FILE_CLOSED);
}
END_TEST

START_TEST(nativeaot_gets_none)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    runtime->kind = RUNTIME_KIND_NATIVEAOT;
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(1), true);
    ck_assert_str_eq(world_story(runtime), "resume, kind");
    came_to(world, STEP_REFUSED, "is not supported by NativeAOT programs");
    /* It is known from now on. */
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(1), true);
    ck_assert_str_eq(world_story(runtime), "resume, kind");
    came_to(world, STEP_REFUSED, "is not supported by NativeAOT programs");
    world_free(world);
}
END_TEST

START_TEST(it_has_to_show_that_it_runs)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    runtime->process->picture = WORLD_SUSPENDED;
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(999), true);
    ck_assert_int_eq(last_step(world)->result, STEP_PENDING);
    world_pass(world, span_from_ms(2), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    came_to(world, STEP_REFUSED,
            "is only sent to a runtime that runs, and this one does not show that it does");
    world_free(world);
}
END_TEST

/* It takes a while until it does. */
START_TEST(threads_show_it_late)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    runtime->process->picture = WORLD_SUSPENDED;
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(300), true);
    runtime->process->picture = WORLD_RUNNING;
    world_pass(world, span_from_ms(60), true);
    came_to(world, STEP_OK, "");
    world_free(world);
}
END_TEST

START_TEST(what_cannot_be_begun)
{
    static char long_path[40000];
    struct world *world = world_new(HEAD "rules:\n"
                                         "  - { name: r, match: all, env: { ONE: \"1\" } }\n");
    struct world_runtime *runtime = runtime_in(world);

    world_start(runtime);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_NOT_RUNNING);
    world_serve(world);
    world_pass(world, span_from_ms(20), true);
    memset(long_path, '/', sizeof long_path - 1);
    ck_assert_int_eq(attach(world, long_path), BROKER_DOES_NOT_FIT);
    ck_assert_int_eq(attach(world, "/opt/\xff.so"), BROKER_DOES_NOT_FIT);
    ck_assert(TAILQ_EMPTY(&world_find(world, "aaaaaaaa")->attaches));
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_ALREADY);
    world_pass(world, span_from_ms(1), true);
    ck_assert_uint_eq(runtime->n_attached, 1);
    world_stop(world, BROKER_STOP_KEEP);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_STOPS);
    world_kill(world, runtime->process);
    world_pass(world, span_from_s(60), true);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_TOO_LATE);
    world_free(world);
}
END_TEST

/* What a runtime does with AttachProfiler, so many times. */
struct habit {
    enum world_fault fault;
    uint32_t hresult;
    enum command_id command;
    unsigned n;
};

static enum world_fault has_habit(struct world_runtime *runtime,
                                  const struct world_command *command, uint32_t *ret_hresult)
{
    struct habit *habit = runtime->context;

    if (command->id != habit->command || habit->n == 0)
        return WORLD_ANSWERS;
    habit->n--;
    *ret_hresult = habit->hresult;
    return habit->fault;
}

static struct world_runtime *running_with(struct world *world, struct habit *habit)
{
    struct world_runtime *runtime = running_in(world);

    runtime->fault = has_habit;
    runtime->context = habit;
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    return runtime;
}

/* It takes another one, whatever came of the one before. */
static void takes_another(struct world *world, const struct world_runtime *runtime)
{
    unsigned n_attached = runtime->n_attached;

    world_pass(world, span_from_s(1), true);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_s(1), true);
    came_to(world, STEP_OK, "");
    ck_assert_uint_eq(runtime->n_attached, n_attached + 1);
}

START_TEST(a_runtime_that_just_started_is_asked_again)
{
    struct habit habit = {WORLD_REFUSES, HRESULT_NOT_YET_AVAILABLE, COMMAND_ATTACH_PROFILER, 3};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);

    world_pass(world, span_from_ms(149), true);
    ck_assert_int_eq(last_step(world)->result, STEP_PENDING);
    world_pass(world, span_from_ms(2), true);
    came_to(world, STEP_OK, "");
    ck_assert_uint_eq(last_step(world)->attempts, 4);
    ck_assert_uint_eq(runtime->n_attached, 1);
    world_free(world);
}
END_TEST

START_TEST(but_not_for_ever)
{
    struct habit habit = {WORLD_REFUSES, HRESULT_NOT_YET_AVAILABLE, COMMAND_ATTACH_PROFILER, 1000};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);

    world_pass(world, span_from_ms(1100), true);
    came_to(world, STEP_REFUSED, "");
    ck_assert_uint_eq(last_step(world)->hresult, HRESULT_NOT_YET_AVAILABLE);
    habit.n = 0;
    takes_another(world, runtime);
    world_free(world);
}
END_TEST

START_TEST(what_the_runtime_says_is_told)
{
    struct habit habit = {WORLD_REFUSES, HRESULT_ALREADY_ACTIVE, COMMAND_ATTACH_PROFILER, 1};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);

    world_pass(world, span_from_ms(1), true);
    came_to(world, STEP_REFUSED, "");
    ck_assert_uint_eq(last_step(world)->hresult, HRESULT_ALREADY_ACTIVE);
    ck_assert_uint_eq(last_step(world)->attempts, 1);
    takes_another(world, runtime);
    world_free(world);
}
END_TEST

/* The timeout that it was given, and a second. */
START_TEST(what_is_not_answered_is_lost)
{
    struct habit habit = {WORLD_READS_ONLY, 0, COMMAND_ATTACH_PROFILER, 1};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);

    world_pass(world, span_from_ms(5999), true);
    ck_assert_int_eq(last_step(world)->result, STEP_PENDING);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_ALREADY);
    world_pass(world, span_from_ms(10), true);
    came_to(world, STEP_LOST, "");
    takes_another(world, runtime);
    world_free(world);
}
END_TEST

static void is_lost_at_once(enum world_fault fault)
{
    struct habit habit = {fault, 0, COMMAND_ATTACH_PROFILER, 1};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);

    world_pass(world, span_from_ms(1), true);
    came_to(world, STEP_LOST, "");
    takes_another(world, runtime);
    world_free(world);
}

START_TEST(a_connection_that_ends_takes_the_answer_along)
{
    is_lost_at_once(WORLD_CLOSES);
    is_lost_at_once(WORLD_ANSWERS_GARBAGE);
}
END_TEST

START_TEST(a_question_without_an_answer_is_asked_once_more)
{
    struct habit habit = {WORLD_CLOSES, 0, COMMAND_ASK_KIND, 1};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);

    world_pass(world, span_from_s(1), true);
    came_to(world, STEP_OK, "");
    habit.n = 2;
    world_free(world);

    world = world_new(none);
    runtime = running_with(world, &habit);
    world_pass(world, span_from_s(1), true);
    came_to(world, STEP_REFUSED,
            "is only sent to CoreCLR, and this runtime did not say what it is");
    ck_assert_uint_eq(runtime->n_attached, 0);
    world_free(world);
}
END_TEST

START_TEST(a_question_that_is_never_answered_ends_too)
{
    struct habit habit = {WORLD_READS_ONLY, 0, COMMAND_ASK_KIND, 1};
    struct world *world = world_new(none);

    running_with(world, &habit);
    world_pass(world, span_from_ms(6001), true);
    came_to(world, STEP_REFUSED,
            "is only sent to CoreCLR, and this runtime did not say what it is");
    world_free(world);
}
END_TEST

START_TEST(what_nothing_comes_of_ends_too)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    runtime->process->is_silent = true;
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(6001), true);
    came_to(world, STEP_SKIPPED, "its file could not be looked at in time");
    runtime->process->is_silent = false;
    /* It does not come back. */
    world_end(runtime->connections[0]);
    runtime->is_stuck = true;
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_pass(world, span_from_ms(6001), true);
    came_to(world, STEP_SKIPPED, "no connection of the runtime was free in time");
    ck_assert_str_eq(world_story(runtime), "resume");
    world_free(world);
}
END_TEST

START_TEST(its_end_ends_it)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    /* In flight. */
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    ck_assert(world_serve_one(runtime));
    world_settle(world);
    world_kill(world, runtime->process);
    world_pass(world, span_from_ms(100), true);
    ck_assert(runtime_has_ended(world_find(world, "aaaaaaaa")));
    came_to(world, STEP_LOST, "");
    world_free(world);
}
END_TEST

START_TEST(a_kill_ends_it)
{
    struct habit habit = {WORLD_READS_ONLY, 0, COMMAND_ATTACH_PROFILER, 1};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_with(world, &habit);
    struct runtime *found;

    world_pass(world, span_from_ms(1), true);
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &found), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_kill(found, world->now), BROKER_DONE);
    world_settle(world);
    came_to(world, STEP_LOST, "it is being killed");
    ck_assert(runtime->process->was_killed);
    world_free(world);
}
END_TEST

START_TEST(a_daemon_that_goes_begins_nothing)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);

    world_end(runtime->connections[0]);
    ck_assert_int_eq(attach(world, "/opt/p.so"), BROKER_DONE);
    world_stop(world, BROKER_STOP_KEEP);
    world_pass(world, span_from_ms(6001), true);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    came_to(world, STEP_SKIPPED, "no connection of the runtime was free in time");
    world_free(world);
}
END_TEST

START_TEST(the_last_ones_are_remembered)
{
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);
    const struct attach *first, *last;

    for (unsigned i = 1; i <= RUNTIME_ATTACHES_MAX + 3; i++) {
        ck_assert_int_eq(attach(world, i % 2 ? "/opt/p.so" : "/opt/missing.so"), BROKER_DONE);
        world_pass(world, span_from_ms(1), true);
    }
    first = TAILQ_FIRST(&world_find(world, "aaaaaaaa")->attaches);
    last = TAILQ_LAST(&world_find(world, "aaaaaaaa")->attaches, attach_list);
    ck_assert_uint_eq(first->number, 4);
    ck_assert_uint_eq(last->number, RUNTIME_ATTACHES_MAX + 3);
    ck_assert_uint_eq(runtime->n_attached, (RUNTIME_ATTACHES_MAX + 3 + 1) / 2);
    world_free(world);
}
END_TEST

/* One that runs when it comes. */
static struct world_runtime *late_in(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world);

    runtime->process->environ = "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock,nosuspend\0";
    runtime->process->picture = WORLD_RUNNING;
    runtime->suspends[0] = false;
    world_start(runtime);
    return runtime;
}

static size_t n_attaches(struct world *world)
{
    const struct attach *attach;
    size_t n = 0;

    TAILQ_FOREACH(attach, &world_find(world, "aaaaaaaa")->attaches, link) {
        n++;
    }
    return n;
}

/* One after the other, whatever comes of each, and nothing else of the rule. */
START_TEST(a_rule_has_them_loaded_late)
{
    struct world *world = world_new(HEAD RULE "    late: attach\n");
    struct world_runtime *runtime = late_in(world);

    world_pass(world, span_from_ms(100), true);
    ck_assert_str_eq(world_story(runtime), "resume, kind, attach /opt/p.so, attach /opt/q.so");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    ck_assert_uint_eq(n_attaches(world), 3);
    came_to(world, STEP_OK, "");
    ck_assert_uint_eq(broker_counters(world->broker)->steps[STEP_ATTACH][STEP_REFUSED], 1);
    /* The next daemon does not do it again. */
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_pass(world, span_from_s(1), true);
    ck_assert_uint_eq(runtime->n_attached, 2);
    ck_assert_uint_eq(n_attaches(world), 0);
    world_free(world);
}
END_TEST

START_TEST(one_that_is_lost_is_not_the_last)
{
    struct habit habit = {WORLD_READS_ONLY, 0, COMMAND_ATTACH_PROFILER, 1};
    struct world *world = world_new(HEAD RULE "    late: attach\n");
    struct world_runtime *runtime = late_in(world);

    runtime->fault = has_habit;
    runtime->context = &habit;
    world_pass(world, span_from_s(4), true);
    ck_assert_uint_eq(n_attaches(world), 3);
    came_to(world, STEP_OK, "");
    ck_assert_uint_eq(broker_counters(world->broker)->steps[STEP_ATTACH][STEP_LOST], 1);
    world_free(world);
}
END_TEST

START_TEST(only_where_the_rule_says_so)
{
    static const char *const rules[] = {
        HEAD RULE,
        HEAD RULE "    late: resume\n",
        HEAD RULE "    late: attach\n    mode: observe\n",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++) {
        struct world *world = world_new(rules[i]);
        struct world_runtime *runtime = late_in(world);

        world_pass(world, span_from_s(1), true);
        ck_assert_str_eq(world_story(runtime), "resume");
        ck_assert_uint_eq(n_attaches(world), 0);
        world_free(world);
    }
}
END_TEST

START_TEST(and_not_to_who_has_its_plan)
{
    struct world *world = world_new(HEAD "defaults: { late: attach }\n" RULE);
    struct world_runtime *runtime = runtime_in(world);

    world_start(runtime);
    world_pass(world, span_from_s(10), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert_uint_eq(n_attaches(world), 0);
    world_free(world);
}
END_TEST

/* Returns how many allocations there were. */
static size_t attach_short_of_memory(size_t fails_at)
{
    struct unit_shortage shortage = {.fails_at = fails_at};
    struct world *world = world_new(none);
    struct world_runtime *runtime = running_in(world);
    struct runtime *found;
    const struct broker_attach wanted = {.path = "/opt/p.so",
                                         .data = "hello",
                                         .n_data = 5,
                                         .timeout = span_from_s(5)};
    enum broker_verdict verdict;

    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &found), BROKER_FOUND_ONE);
    world->before_call = unit_shortage_begin;
    world->after_call = unit_shortage_end;
    world->context = &shortage;
    unit_shortage_begin(&shortage);
    verdict = broker_attach(found, &wanted, world->now);
    unit_shortage_end(&shortage);
    world_settle(world);
    world_pass(world, span_from_s(7), true);
    world->before_call = world->after_call = NULL;
    if (verdict == BROKER_DONE)
        ck_assert_int_ne(last_step(world)->result, STEP_PENDING);
    else
        ck_assert_int_eq(verdict, BROKER_NO_MEMORY);
    ck_assert_int_eq(found->state, RUNTIME_RUNNING);
    ck_assert_ptr_null(found->attach);
    takes_another(world, runtime);
    world_free(world);
    return shortage.n_allocations;
}

START_TEST(memory_runs_out)
{
    size_t n = attach_short_of_memory(0);

    ck_assert_uint_gt(n, 5);
    for (size_t i = 1; i <= n; i++)
        attach_short_of_memory(i);
}
END_TEST

UNIT_TESTS(it_is_loaded_with_its_data, who_was_asked_is_not_asked_again, files_are_looked_at_first,
           nativeaot_gets_none, it_has_to_show_that_it_runs, threads_show_it_late,
           what_cannot_be_begun, a_runtime_that_just_started_is_asked_again, but_not_for_ever,
           what_the_runtime_says_is_told, what_is_not_answered_is_lost,
           a_connection_that_ends_takes_the_answer_along,
           a_question_without_an_answer_is_asked_once_more,
           a_question_that_is_never_answered_ends_too, what_nothing_comes_of_ends_too,
           its_end_ends_it, a_kill_ends_it, a_daemon_that_goes_begins_nothing,
           a_rule_has_them_loaded_late, one_that_is_lost_is_not_the_last,
           only_where_the_rule_says_so, and_not_to_who_has_its_plan, the_last_ones_are_remembered,
           memory_runs_out);
