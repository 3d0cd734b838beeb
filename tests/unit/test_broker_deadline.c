/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first promise: at its rule's deadline nothing of ours keeps a runtime.
 * Resume is the next message, written the instant a connection of it is free.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

#define HEAD                                                                                    \
    "version: 1\n"                                                                              \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"                         \
    "control: { path: /run/diagport/control.sock }\n"                                           \
    "rules:\n"                                                                                  \
    "  - name: r\n"                                                                             \
    "    match: all\n"                                                                          \
    "    env: { ONE: \"1\", OLD: \"new\", GONE: null }\n"                                       \
    "    profilers: [ { clsid: \"cf0d821e-299b-5307-a3d8-b283c03916dd\", path: /opt/p.so } ]\n" \
    "    startup_hooks: [ { path: /opt/a.dll } ]\n"                                             \
    "    deadline: 2s\n"

#define ENVIRON "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0OLD=old\0GONE=here\0"

enum { N_COMMANDS = 8 };

static const uint32_t first[] = {0};
static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
};

static struct world_runtime *runtime_in(struct world *world, const char *cookie)
{
    struct world_process *process = world_process(world, "/app", ENVIRON);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, cookie, first, 1);
}

static bool was_resumed(const struct world_runtime *runtime)
{
    return runtime->n_commands > 0 &&
           runtime->commands[runtime->n_commands - 1].id == COMMAND_RESUME;
}

/* Its server thread is stuck from the nth command on, with somebody else; at the deadline we let
 * go, and when it is free again Resume is all it gets. */
START_TEST(a_stuck_server_thread)
{
    for (size_t n = 0; n < N_COMMANDS; n++) {
        struct world *world = world_new(HEAD "    command_timeout: 500ms\n");
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
        const struct runtime *seen;

        world_start(runtime);
        for (size_t i = 0; i < n; i++)
            ck_assert(world_serve_one(runtime));
        runtime->is_stuck = true;
        world_pass(world, span_from_s(2), true);
        seen = world_find(world, "aaaaaaaa");
        ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
        world_pass(world, span_from_s(60), true);
        ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
        ck_assert_int_eq(seen->blocked, BLOCKED_SERVER_BUSY);
        ck_assert_uint_eq(runtime->n_commands, n);
        runtime->is_stuck = false;
        world_pass(world, span_from_s(1), true);
        ck_assert_uint_eq(runtime->n_commands, n + 1);
        ck_assert(was_resumed(runtime));
        ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
        ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
        world_free(world);
    }
}
END_TEST

static enum world_fault swallow(struct world_runtime *runtime, const struct world_command *command,
                                uint32_t *ret_hresult)
{
    const size_t *n = runtime->context;

    (void)ret_hresult;
    return runtime->n_commands >= *n && command->id != COMMAND_RESUME ? WORLD_READS_ONLY
                                                                      : WORLD_ANSWERS;
}

/* It reads and never answers from the nth command on: every one of them is given up in time, and a
 * Resume reaches it exactly at the deadline or before. */
START_TEST(a_silent_runtime)
{
    static const char *const time_outs[] = {"100ms", "700ms", "1900ms"};

    for (size_t t = 0; t < ARRAY_LENGTH(time_outs); t++) {
        for (size_t n = 0; n < N_COMMANDS; n++) {
            char policy[2048];
            struct world *world;
            struct world_runtime *runtime;
            struct moment start;

            snprintf(policy, sizeof policy, HEAD "    command_timeout: %s\n", time_outs[t]);
            world = world_new(policy);
            runtime = runtime_in(world, "aaaaaaaa");
            runtime->fault = swallow;
            runtime->context = &n;
            start = world->now;
            world_start(runtime);
            world_pass(world, span_from_s(10), true);
            ck_assert(was_resumed(runtime));
            ck_assert_int_le(moment_between(start, runtime->commands[runtime->n_commands - 1].at)
                                 .us,
                             2000000);
            ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
            world_free(world);
        }
    }
}
END_TEST

/* Nobody looks for ten seconds, at each point of the plan. What was answered meanwhile counts as
 * answered, and then Resume is the first message. */
START_TEST(a_stall_of_the_daemon)
{
    for (size_t n = 0; n < N_COMMANDS; n++) {
        for (int is_answered = 0; is_answered < 2; is_answered++) {
            struct world *world = world_new(HEAD);
            struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
            size_t n_before;

            world_start(runtime);
            for (size_t i = 0; i < n; i++)
                ck_assert(world_serve_one(runtime));
            world_stall(world, span_from_s(10));
            /* An answer that is read before anybody is found late must not lead to a next step. */
            if (is_answered && n + 1 < N_COMMANDS) {
                struct world_command next;

                ck_assert(world_serve_one(runtime));
                if (world_peek_command(runtime->connections[0], &next))
                    ck_assert_int_eq(next.id, COMMAND_RESUME);
            }
            n_before = runtime->n_commands;
            world_wake(world);
            world_pass(world, span_from_s(1), true);
            /* Only the command that was in flight, if any, came before it. */
            if (!(is_answered && n + 1 == N_COMMANDS)) {
                ck_assert(was_resumed(runtime));
                ck_assert_uint_le(runtime->n_commands, n_before + 2);
            }
            ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
            for (size_t i = n_before + (is_answered ? 0 : 1); i < runtime->n_commands; i++)
                ck_assert_int_eq(runtime->commands[i].id, COMMAND_RESUME);
            world_free(world);
        }
    }
}
END_TEST

/* An answer that is there counts, however late we look: who is late is read before he is judged,
 * and nobody else has to be. */
START_TEST(an_answer_that_nobody_read_yet)
{
    struct world *world = world_new(HEAD);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa"), *other;
    const struct runtime *seen;

    world_start(runtime);
    for (size_t i = 0; i + 2 < N_COMMANDS; i++)
        ck_assert(world_serve_one(runtime));
    seen = world_find(world, "aaaaaaaa");
    world->is_network_slow = true;
    ck_assert(world_serve_one(runtime));
    world_stall(world, span_from_s(10));
    other = runtime_in(world, "bbbbbbbb");
    world_start(other);
    world_wake(world);
    ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
    ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
    ck_assert_ptr_null(world_find(world, "bbbbbbbb"));
    world_hear(world);
    world_pass(world, span_from_s(1), true);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

/* So with an advertise that came in time, and with an end. */
START_TEST(what_was_said_in_time)
{
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world *world = world_new(HEAD);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_connection *late = world_connect(world, process, 0);
    struct world_connection *gone = world_connect(world, process, 0);

    world->is_network_slow = true;
    world_advertise(late, &cookie, (uint64_t)process->pid);
    world_end(gone);
    world_stall(world, span_from_s(10));
    world_wake(world);
    ck_assert(!late->is_closed);
    ck_assert_ptr_nonnull(world_find(world, "aaaaaaaa"));
    ck_assert(gone->is_closed);
    world_free(world);
}
END_TEST

/* The end of a rule comes before everything else that is due, however much that is. */
START_TEST(nothing_is_taken_before_the_ends_of_rules)
{
    enum { N = 1000 };
    struct world *world = world_new(HEAD "limits: { silent: 2000 }\n");
    struct world_process *process = world_process(world, "/other", ENVIRON);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct world_connection *first_silent = NULL;
    size_t n_left = 0;

    for (size_t i = 0; i < N; i++) {
        struct world_connection *silent = world_connect(world, process, 0);

        first_silent = first_silent ? first_silent : silent;
    }
    world_start(runtime);
    ck_assert(world_serve_one(runtime));
    world_stall(world, span_from_s(10));
    broker_read_due(world->broker, world->now);
    world_settle(world);
    broker_deadlines(world->broker, world->now);
    world_settle(world);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RESUMING);
    for (size_t i = 0; i < world->n_connections; i++)
        n_left += !world->connections[i]->is_closed;
    ck_assert_uint_gt(n_left, N / 2);
    ck_assert(first_silent->is_closed);
    world_wake(world);
    ck_assert_uint_eq(broker_counters(world->broker)->n_silent, 0);
    world_free(world);
}
END_TEST

START_TEST(nobody_waits_for_the_others)
{
    enum { N = 1000 };
    struct world *world = world_new(HEAD);
    struct world_runtime *stuck = runtime_in(world, "aaaaaaaa");
    const struct runtime *seen;

    world_start(stuck);
    stuck->is_stuck = true;
    for (size_t i = 0; i < N; i++) {
        char cookie[16];

        snprintf(cookie, sizeof cookie, "%08zx", 0x10000000 + i);
        world_start(runtime_in(world, cookie));
        world_pass(world, span_from_ms(2), true);
    }
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
    stuck->is_stuck = false;
    world_serve(world);
    ck_assert_int_eq(stuck->process->picture, WORLD_RUNNING);
    ck_assert_uint_eq(broker_counters(world->broker)->n_pending, 0);
    world_free(world);
}
END_TEST

/* The rule of a runtime that has come is the old one's, and so is its deadline. */
START_TEST(a_reload_changes_nothing_for_who_has_come)
{
    struct world *world = world_new(HEAD);
    struct world *other = world_new(HEAD);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    for (int i = 0; i < 4; i++)
        ck_assert(world_serve_one(runtime));
    runtime->is_stuck = true;
    ck_assert_int_eq(broker_set_policy(world->broker, other->policy), 0);
    world_pass(world, span_from_us(2000000), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RESUMING);
    world_free(other);
    world_free(world);
}
END_TEST

/* Holding. */

START_TEST(a_hold_is_bounded)
{
    struct world *world = world_new(HEAD);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct runtime *found;

    world_start(runtime);
    ck_assert(world_serve_one(runtime));
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &found), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_hold(found, span_from_s(30), world->now), BROKER_DONE);
    world_pass(world, span_from_us(29999999), true);
    ck_assert_int_eq(found->state, RUNTIME_HELD);
    ck_assert_int_eq(found->outcome, OUTCOME_APPLIED);
    ck_assert(!was_resumed(runtime));
    world_pass(world, span_from_us(1), true);
    ck_assert(was_resumed(runtime));
    ck_assert_int_eq(found->state, RUNTIME_RUNNING);
    ck_assert_int_eq(broker_hold(found, span_from_s(30), world->now), BROKER_TOO_LATE);
    world_free(world);
}
END_TEST

START_TEST(an_operator_resumes_at_any_point)
{
    for (size_t n = 0; n <= N_COMMANDS; n++) {
        struct world *world = world_new(HEAD "    on_failure: hold\n");
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
        struct runtime *found;
        enum broker_verdict verdict;

        world_start(runtime);
        for (size_t i = 0; i < n; i++)
            ck_assert(world_serve_one(runtime));
        ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &found), BROKER_FOUND_ONE);
        verdict = broker_resume(found, world->now);
        world_settle(world);
        ck_assert_int_eq(verdict, n + 1 >= N_COMMANDS ? BROKER_ALREADY : BROKER_DONE);
        world_pass(world, span_from_ms(1), true);
        ck_assert(was_resumed(runtime));
        ck_assert_int_eq(found->state, RUNTIME_RUNNING);
        world_free(world);
    }
}
END_TEST

START_TEST(stopping_resumes_or_keeps)
{
    for (size_t n = 0; n < N_COMMANDS; n++) {
        struct world *world = world_new(HEAD);
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

        world_start(runtime);
        for (size_t i = 0; i < n; i++)
            ck_assert(world_serve_one(runtime));
        world_stop(world, BROKER_STOP_RESUME);
        /* Its connection may have been given up: then it has to come back for its Resume. */
        ck_assert(!broker_is_quiet(world->broker));
        world_pass(world, span_from_ms(1), true);
        ck_assert(was_resumed(runtime));
        ck_assert(broker_is_quiet(world->broker));
        world_free(world);

        world = world_new(HEAD);
        runtime = runtime_in(world, "aaaaaaaa");
        world_start(runtime);
        for (size_t i = 0; i < n; i++)
            ck_assert(world_serve_one(runtime));
        world_stop(world, BROKER_STOP_KEEP);
        world_serve(world);
        ck_assert(broker_is_quiet(world->broker));
        ck_assert_uint_eq(runtime->n_commands, n + 1);
        ck_assert(n + 1 == N_COMMANDS || !was_resumed(runtime));
        world_free(world);
    }
}
END_TEST

UNIT_TESTS(a_stuck_server_thread, a_silent_runtime, a_stall_of_the_daemon,
           an_answer_that_nobody_read_yet, what_was_said_in_time,
           nothing_is_taken_before_the_ends_of_rules, nobody_waits_for_the_others,
           a_reload_changes_nothing_for_who_has_come, a_hold_is_bounded,
           an_operator_resumes_at_any_point, stopping_resumes_or_keeps);
