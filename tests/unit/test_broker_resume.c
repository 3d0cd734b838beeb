/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resume: one command for whom nothing is to be done, and one on every port of
 * ours for everybody, whatever order things come in.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

static const char no_rules[] = "version: 1\n"
                               "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
                               "control: { path: /run/diagport/control.sock }\n";

static const char one_variable[] =
    "version: 1\n"
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
    "control: { path: /run/diagport/control.sock }\n"
    "rules: [ { name: r, match: all, env: { A: \"1\" } } ]\n";

#define PORT    "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0"
#define TWICE   "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock;/run/diagport/runtime.sock\0"
#define BOTH    "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock;/run/diagport/second.sock\0"
#define FOREIGN "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock;/tmp/a.sock;/tmp/b.sock\0"

static const uint32_t first[] = {0}, twice[] = {0, 0}, both[] = {0, 1}, thrice[] = {0, 0, 0};

static bool runs(const struct world_runtime *runtime)
{
    return runtime->process->picture == WORLD_RUNNING;
}

START_TEST(who_matches_nothing_gets_one_command)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);
    const struct runtime *seen;

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert(runs(runtime));
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_int_eq(seen->outcome, OUTCOME_UNTOUCHED);
    /* Its connection stays open and silent, however long it lives. */
    world_pass(world, span_from_s(1000), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert(!runtime->connections[0]->is_closed);
    world_free(world);
}
END_TEST

/* Without its list of ports only its threads tell that it runs: that is no traffic either. */
START_TEST(who_hides_its_environment_gets_one_command_too)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", NULL), "aaaaaaaa", first, 1);

    world_start(runtime);
    world_pass(world, span_from_s(10), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_free(world);
}
END_TEST

/* While the daemon stands still nobody takes the answers to its questions: they are not lost. */
START_TEST(a_stall_costs_no_second_resume)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);

    world_start(runtime);
    world->are_answers_slow = true;
    world_serve(world);
    /* It comes back, and who that is was answered; its list of ports was not yet. */
    ck_assert(world_answer_one(world, 1));
    world_stall(world, span_from_s(1));
    world_wake(world);
    world->are_answers_slow = false;
    world_pass(world, span_from_s(1), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_free(world);
}
END_TEST

/* On a busy machine a look takes its time; who could wait longer does. */
START_TEST(a_slow_look_costs_no_second_resume)
{
    struct world *world = world_new(no_rules);
    struct world_process *process = world_process(world, "/app", PORT);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    world_start(runtime);
    world->are_answers_slow = true;
    world_serve(world);
    ck_assert(world_answer_one(world, 1));
    world_pass(world, span_from_ms(200), true);
    world->are_answers_slow = false;
    world_pass(world, span_from_s(1), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_free(world);
}
END_TEST

/* On a busy machine nobody comes to read its list of ports when that is asked for. */
START_TEST(a_list_that_was_not_read_is_asked_for_again)
{
    struct world *world = world_new(no_rules);
    struct world_process *process = world_process(world, "/app", PORT);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    process->hides_environ = true;
    /* And its threads say something else for ever. */
    world->lag = span_from_s(1000);
    world_start(runtime);
    world_pass(world, span_from_s(1), true);
    ck_assert_int_ne(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    process->hides_environ = false;
    world_pass(world, span_from_s(60), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_free(world);
}
END_TEST

static void ports_get_their_resume(const char *policy, const char *environ, const uint32_t *ports,
                                   size_t n_ports, const char *story)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", environ), "aaaaaaaa", ports, n_ports);

    world_start(runtime);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), story);
    ck_assert(runs(runtime));
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->blocked, BLOCKED_NOT);
    world_free(world);
}

START_TEST(every_port_of_ours_gets_its_resume)
{
    ports_get_their_resume(no_rules, TWICE, twice, 2, "resume, resume");
    ports_get_their_resume(no_rules, BOTH, both, 2, "resume, resume");
    ports_get_their_resume(no_rules, NULL, twice, 2, "resume, resume");
    ports_get_their_resume(no_rules, NULL, both, 2, "resume, resume");
    ports_get_their_resume(no_rules, NULL, thrice, 3, "resume, resume, resume");
    ports_get_their_resume(one_variable, TWICE, twice, 2, "kind, info3, env A=1, resume, resume");
    ports_get_their_resume(one_variable, BOTH, both, 2, "kind, info3, env A=1, resume, resume");
}
END_TEST

/* The count of Resumes is the old daemon's; the new one begins at zero, and one too many is fine.
 */
START_TEST(after_a_restart_every_port_gets_one_again)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", TWICE), "aaaaaaaa", twice, 2);

    world_start(runtime);
    ck_assert(world_serve_one(runtime));
    ck_assert_uint_eq(runtime->n_commands, 1);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_pass(world, span_from_s(5), true);
    ck_assert(runs(runtime));
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    world_free(world);
}
END_TEST

START_TEST(a_foreign_port_is_named)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", FOREIGN), "aaaaaaaa", first, 1);
    const struct runtime *seen;
    size_t n_commands;

    runtime->has_foreign_port = true;
    world_start(runtime);
    world_pass(world, span_from_s(1), true);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_SETTLING);
    ck_assert_int_eq(seen->blocked, BLOCKED_OTHER_PORT);
    ck_assert_str_eq(seen->other_ports, "/tmp/a.sock;/tmp/b.sock");
    /* After the looks at 10, 50 and 250 ms it is left alone. */
    n_commands = runtime->n_taken;
    ck_assert_uint_le(n_commands, 4);
    world_pass(world, span_from_s(1000), true);
    ck_assert_uint_eq(runtime->n_taken, n_commands);
    /* Its owner lets it go: the next look sees it. */
    runtime->process->picture = WORLD_RUNNING;
    world_pass(world, span_from_s(60), true);
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_int_eq(seen->blocked, BLOCKED_NOT);
    world_free(world);
}
END_TEST

/* A daemon that goes away waits until every port is surely resumed, and not for those of others. */
START_TEST(stopping_waits_for_every_port)
{
    for (size_t n = 0; n < 5; n++) {
        struct world *world = world_new(one_variable);
        struct world_runtime *runtime =
            world_runtime(world, world_process(world, "/app", TWICE), "aaaaaaaa", twice, 2);

        world_start(runtime);
        for (size_t i = 0; i < n; i++)
            ck_assert(world_serve_one(runtime));
        world_stop(world, BROKER_STOP_RESUME);
        for (int i = 0; i < 2000 && !broker_is_quiet(world->broker); i++) {
            /* One message a millisecond: it may be looked at between any two. */
            world_serve_one(runtime);
            world_pass(world, span_from_ms(1), false);
        }
        ck_assert(broker_is_quiet(world->broker));
        ck_assert_msg(runs(runtime), "after %zu commands: %s", n, world_story(runtime));
        world_free(world);
    }
}
END_TEST

START_TEST(stopping_does_not_wait_for_foreign_ports)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", NULL), "aaaaaaaa", first, 1);

    runtime->has_foreign_port = true;
    world_start(runtime);
    world_pass(world, span_from_s(2), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->blocked, BLOCKED_OTHER_PORT);
    world_stop(world, BROKER_STOP_RESUME);
    ck_assert(broker_is_quiet(world->broker));
    world_free(world);
}
END_TEST

/* A second port that comes late, when the first was resumed long ago. */
START_TEST(a_late_port_is_resumed)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", NULL), "aaaaaaaa", both, 2);

    runtime->n_ports = 1;
    world_start(runtime);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    runtime->n_ports = 2;
    world_connect_port(runtime, 1);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    ck_assert(runs(runtime));
    world_free(world);
}
END_TEST

static enum world_fault close_first_resume(struct world_runtime *runtime,
                                           const struct world_command *command,
                                           uint32_t *ret_hresult)
{
    (void)ret_hresult;
    return command->id == COMMAND_RESUME && runtime->n_commands == 0 ? WORLD_CLOSES : WORLD_ANSWERS;
}

/* It may run already before the answer is read; whether it does, the next advertise tells. */
START_TEST(a_resume_without_an_answer_is_sent_again)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);

    runtime->fault = close_first_resume;
    world_start(runtime);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    ck_assert(runs(runtime));
    world_free(world);
}
END_TEST

/* A Resume is never timed out and never closed, however long its answer takes. */
START_TEST(a_resume_is_waited_for)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);
    const struct runtime *seen;

    runtime->is_stuck = true;
    world_start(runtime);
    world_pass(world, span_from_s(3600), true);
    ck_assert(!runtime->connections[0]->is_closed);
    ck_assert_uint_eq(runtime->connections[0]->n_messages, 1);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_RESUMING);
    ck_assert_int_eq(seen->blocked, BLOCKED_SERVER_BUSY);
    runtime->process->state = 'T';
    world_pass(world, span_from_s(60), true);
    ck_assert_int_eq(seen->blocked, BLOCKED_STOPPED);
    runtime->process->state = 't';
    world_pass(world, span_from_s(60), true);
    ck_assert_int_eq(seen->blocked, BLOCKED_TRACED);
    runtime->is_stuck = false;
    world_serve(world);
    ck_assert(runs(runtime));
    ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
    ck_assert_int_eq(seen->blocked, BLOCKED_NOT);
    world_free(world);
}
END_TEST

START_TEST(the_end_of_a_process_is_seen)
{
    struct world *world = world_new(no_rules);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);
    const struct runtime *seen;

    world_start(runtime);
    world_serve(world);
    world_kill(world, runtime->process);
    world_pass(world, span_from_ms(100), true);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_int_eq(seen->state, RUNTIME_GONE);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    /* And forgotten when its time is over. */
    world_pass(world, span_from_s(2 * 3600), true);
    ck_assert_ptr_null(world_find(world, "aaaaaaaa"));
    world_free(world);
}
END_TEST

/* The first thread of a program may end before the others: it lives, and is not planned anew. */
START_TEST(a_process_outlives_its_first_thread)
{
    struct world *world = world_new(one_variable);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);

    world_start(runtime);
    world_serve(world);
    runtime->process->state = 'Z';
    world_end(runtime->connections[0]);
    world_pass(world, span_from_s(100), false);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env A=1, resume, resume");
    ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 1);
    world_free(world);
}
END_TEST

/* A runtime that lost its connections and lives comes back as itself. */
START_TEST(who_comes_back_is_known)
{
    struct world *world = world_new(one_variable);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", PORT), "aaaaaaaa", first, 1);

    world_start(runtime);
    world_serve(world);
    world_end(runtime->connections[0]);
    world_pass(world, span_from_s(100), false);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env A=1, resume, resume");
    ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 1);
    world_free(world);
}
END_TEST

/* After Resume a runtime comes back once more, and a short program has ended by the time that this
 * is seen: its last connection is still its own, and nothing new. */
START_TEST(a_last_connection_of_the_dead_is_its_own)
{
    for (int was_told = 0; was_told <= 1; was_told++) {
        struct world *world = world_new(one_variable);
        struct world_process *process = world_process(world, "/app", PORT);
        struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);
        struct guid cookie = world_cookie("aaaaaaaa");
        struct world_connection *last;

        world_start(runtime);
        world_serve(world);
        last = world_connect(world, process, 0);
        if (was_told) {
            /* Its end is known before the advertise is read. */
            world_end(runtime->connections[0]);
            process->is_dead = true;
            world_pass(world, span_from_s(1), false);
            ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
        }
        process->is_dead = true;
        world_advertise(last, &cookie, (uint64_t)process->pid);
        ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 1);
        world_end(last);
        if (!was_told)
            world_end(runtime->connections[0]);
        world_pass(world, span_from_s(1), false);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_APPLIED);
        ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
        world_free(world);
    }
}
END_TEST

/* However long ago its runtime was forgotten, the last connection of a process that has ended makes
 * no new one: its end is there to be read behind its advertise. */
START_TEST(a_last_connection_of_the_forgotten_is_nobody)
{
    struct world *world =
        world_new("version: 1\n"
                  "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
                  "control: { path: /run/diagport/control.sock }\n"
                  "limits: { hello: 1m, history: { records: 1 } }\n");
    const char *const cookies[] = {"aaaaaaaa", "bbbbbbbb"};
    struct world_connection *last = NULL;
    struct guid cookie = world_cookie(cookies[0]);

    for (size_t i = 0; i < 2; i++) {
        struct world_process *process = world_process(world, "/app", PORT);
        struct world_runtime *runtime = world_runtime(world, process, cookies[i], first, 1);

        world_start(runtime);
        world_serve(world);
        if (i == 0)
            last = world_connect(world, process, 0);
        process->is_dead = true;
        world_end(runtime->connections[0]);
        world_pass(world, span_from_s(1), false);
        ck_assert_int_eq(world_find(world, cookies[i])->state, RUNTIME_GONE);
    }
    ck_assert_ptr_null(world_find(world, cookies[0]));
    world->is_network_slow = true;
    world_advertise(last, &cookie, 1000);
    world_end(last);
    world_deliver(last, SIZE_MAX);
    ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 2);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    ck_assert(last->is_closed);
    world_free(world);
}
END_TEST

/* Whose connection does not end is served, though nobody can be asked about: it may be that of a
 * child. */
START_TEST(whose_process_has_ended_and_who_still_speaks_is_resumed)
{
    struct world *world = world_new(no_rules);
    struct world_process *process = world_process(world, "/app", PORT);
    struct world_connection *connection = world_connect(world, process, 0);
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_command command;

    process->is_dead = true;
    world->is_network_slow = true;
    world_advertise(connection, &cookie, (uint64_t)process->pid);
    world_deliver(connection, SIZE_MAX);
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 1);
    world_free(world);
}
END_TEST

/* But in the middle of a plan only the process itself goes on with it. */
START_TEST(who_cannot_be_identified_goes_on_with_no_plan)
{
    struct world *world = world_new(one_variable);
    struct world_process *process = world_process(world, "/app", PORT);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_connection *other;
    struct world_command command;

    process->has_no_handle = true;
    world_start(runtime);
    other = world_connect(world, process, 0);
    process->is_dead = true;
    world_advertise(other, &cookie, (uint64_t)process->pid);
    world_end(runtime->connections[0]);
    world_pass(world, span_from_ms(10), false);
    while (world_take_command(other, &command))
        ck_assert_int_eq(command.id, COMMAND_RESUME);
    world_free(world);
}
END_TEST

/* Another runtime of the process, whose first Resume is not heard: it does not count as running
 * because the other one does, and gets its Resume when it comes back. */
static void neighbour_is_resumed(struct world *world, struct world_process *process)
{
    struct guid cookie = world_cookie("bbbbbbbb");

    for (int i = 0; i < 2; i++) {
        struct world_connection *connection = world_connect(world, process, 0);
        struct world_command command;

        world_advertise(connection, &cookie, (uint64_t)process->pid);
        ck_assert(world_take_command(connection, &command));
        ck_assert_int_eq(command.id, COMMAND_RESUME);
        world_end(connection);
        world_pass(world, span_from_s(2), false);
        ck_assert_int_eq(world_find(world, "bbbbbbbb")->state, RUNTIME_RESUMING);
    }
}

/* The threads of a process show that one of its runtimes runs, whichever that is: so where both are
 * known, where one could not be identified, where only the records know of it, and where they may
 * have been lost. */
START_TEST(a_neighbour_that_runs_says_nothing)
{
    enum { IS_KNOWN, IS_UNIDENTIFIED, IS_RECORDED, IS_LOST, CASES };

    for (int i = 0; i < CASES; i++) {
        struct world *world = world_new(no_rules);
        struct world_process *process = world_process(world, "/app", PORT);
        struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

        process->is_silent = i == IS_UNIDENTIFIED;
        world_start(runtime);
        world_pass(world, span_from_s(30), true);
        ck_assert(runs(runtime));
        process->is_silent = false;
        if (i == IS_RECORDED || i == IS_LOST)
            world_restart(world, i == IS_LOST ? BROKER_HAS_NO_RECORDS : BROKER_TRUSTS_RECORDS);
        neighbour_is_resumed(world, process);
        world_free(world);
    }
}
END_TEST

/* While somebody needs the handle of a process, nobody in it is looked after; then all are. */
START_TEST(neighbours_are_looked_after_when_the_handle_goes)
{
    struct world *world = world_new(one_variable);
    struct world_process *process = world_process(world, "/app", PORT);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);
    struct guid cookie = world_cookie("bbbbbbbb");
    struct world_connection *connection;

    world_start(runtime);
    connection = world_connect(world, process, 0);
    world_advertise(connection, &cookie, (uint64_t)process->pid);
    world_send_status(connection, true, 0);
    world_end(connection);
    ck_assert(process->held != 0);
    world_serve(world);
    ck_assert(process->held == 0);
    process->is_dead = true;
    world_end(runtime->connections[0]);
    world_pass(world, span_from_s(200), false);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->state, RUNTIME_GONE);
    world_free(world);
}
END_TEST

/* So when the handle goes because the one that needed it has ended. */
START_TEST(neighbours_are_looked_after_when_its_owner_ends)
{
    struct world *world = world_new(one_variable);
    struct world_process *process = world_process(world, "/app", PORT);
    struct guid cookies[] = {world_cookie("aaaaaaaa"), world_cookie("bbbbbbbb")};
    struct world_connection *connections[ARRAY_LENGTH(cookies)];

    for (size_t i = 0; i < ARRAY_LENGTH(cookies); i++) {
        connections[i] = world_connect(world, process, 0);
        world_advertise(connections[i], &cookies[i], (uint64_t)process->pid);
    }
    ck_assert(process->held != 0);
    world_end(connections[0]);
    world_end(connections[1]);
    /* A third one: for all that is known the process has become another program. */
    cookies[0] = world_cookie("cccccccc");
    world_advertise(world_connect(world, process, 0), &cookies[0], (uint64_t)process->pid);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    world_pass(world, span_from_s(1), false);
    world_free(world);
}
END_TEST

/* Nobody answers what its process is: its second port is no other runtime for that. */
START_TEST(a_second_port_without_facts_is_its_own)
{
    struct world *world =
        world_new("version: 1\n"
                  "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
                  "control: { path: /run/diagport/control.sock }\n"
                  "defaults: { deadline: 1s }\n"
                  "rules: [ { name: r, match: all, env: { A: \"1\" }, deadline: 60s } ]\n");
    struct world_process *process = world_process(world, "/app", BOTH);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", both, 2);
    struct world_command command;

    process->has_no_handle = true;
    world_connect_port(runtime, 0);
    ck_assert(world_peek_command(runtime->connections[0], &command));
    process->is_silent = true;
    runtime->is_stuck = true;
    world_connect_port(runtime, 1);
    world_pass(world, span_from_s(2), true);
    ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 1);
    world_free(world);
}
END_TEST

/* Whom nobody tells about comes back after its Resume, and is still the one it was when that is
 * told as little. */
START_TEST(who_stays_unidentified_stays_one)
{
    struct world *world = world_new(no_rules);
    struct world_process *process = world_process(world, "/app", PORT);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    process->is_silent = true;
    world_start(runtime);
    world_pass(world, span_from_s(100), true);
    ck_assert_uint_eq(broker_counters(world->broker)->n_seen, 1);
    ck_assert_uint_le(runtime->n_taken, 4);
    world_free(world);
}
END_TEST

/* Over a limit, what comes back from its Resume is not counted, so that one that waits would be
 * taken for it. */
static void check_another_port(enum world_picture picture, enum runtime_state state)
{
    struct world *world =
        world_new("version: 1\n"
                  "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
                  "control: { path: /run/diagport/control.sock }\n"
                  "limits: { connections_per_user: 3 }\n");
    struct world_process *process = world_process(world, "/app", TWICE);
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_connection *resumed, *waiting;
    struct world_command command;

    process->picture = picture;
    for (size_t i = 0; i < 2; i++)
        world_start(world_runtime(world, world_process(world, "/app", PORT),
                                  i == 0 ? "11111111" : "22222222", first, 1));
    world_serve(world);
    resumed = world_connect(world, process, 0);
    world_advertise(resumed, &cookie, (uint64_t)process->pid);
    ck_assert(world_take_command(resumed, &command));
    world_send_status(resumed, true, 0);
    world_end(resumed);
    world_pass(world, span_from_s(1), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, state);
    waiting = world_connect(world, process, 0);
    world_advertise(waiting, &cookie, (uint64_t)process->pid);
    ck_assert(!world_peek_command(waiting, &command));
    resumed = world_connect(world, process, 0);
    world_advertise(resumed, &cookie, (uint64_t)process->pid);
    ck_assert(world_take_command(resumed, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    ck_assert_int_eq(world_peek_command(waiting, &command), picture != WORLD_RUNNING);
    world_free(world);
}

START_TEST(over_a_limit_another_port_is_not_forgotten)
{
    check_another_port(WORLD_SUSPENDED, RUNTIME_SETTLING);
    /* That nothing shows that it does not run is not to see it run. */
    check_another_port(WORLD_STRANGE, RUNTIME_RUNNING);
    check_another_port(WORLD_UNREADABLE, RUNTIME_RUNNING);
    check_another_port(WORLD_RUNNING, RUNTIME_RUNNING);
}
END_TEST

/* Nor does one that was over a limit when it was resumed, and is no runtime to us. */
START_TEST(a_neighbour_over_the_limit_says_nothing)
{
    struct world *world =
        world_new("version: 1\n"
                  "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
                  "control: { path: /run/diagport/control.sock }\n"
                  "limits: { connections_per_user: 2 }\n");
    struct world_process *process = world_process(world, "/app", TWICE);
    struct world_runtime *neighbour = world_runtime(world, process, "bbbbbbbb", first, 1);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", twice, 2);
    struct world_connection *others[2];

    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        others[i] = world_connect(world, world_process(world, "/app", PORT), 0);
    world_connect_port(neighbour, 0);
    world_serve_one(neighbour);
    ck_assert_int_eq(process->picture, WORLD_RUNNING);
    world_end(neighbour->connections[0]);
    neighbour->connections[0] = NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        world_end(others[i]);
    /* Both Resumes that are counted go to one of its ports. */
    world_connect_port(runtime, 0);
    world_serve(world);
    world_connect_port(runtime, 1);
    world_serve(world);
    ck_assert(!runtime->is_resumed[1]);
    world_pass(world, span_from_s(1), true);
    ck_assert(runtime->is_resumed[1]);
    world_free(world);
}
END_TEST

/* Nor does one that nobody knew of at the time: the daemon that resumed it could keep no records.
 */
START_TEST(a_neighbour_heard_of_late_says_nothing)
{
    struct world *world = world_new(no_rules);
    struct world_process *process = world_process(world, "/app", TWICE);
    struct world_runtime *neighbour = world_runtime(world, process, "bbbbbbbb", first, 1);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", twice, 2);

    world_restart(world, BROKER_HAS_NO_RECORDS);
    world_connect_port(neighbour, 0);
    world_serve_one(neighbour);
    ck_assert_int_eq(process->picture, WORLD_RUNNING);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    /* Both Resumes that are counted go to one of its ports. */
    for (size_t i = 0; i < 2; i++) {
        world_connect_port(runtime, i);
        world_serve_one(runtime);
    }
    world_pass(world, span_from_s(1), false);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert(!runtime->is_resumed[1]);
    world_connect_port(neighbour, 0);
    world_pass(world, span_from_s(1), true);
    ck_assert(runtime->is_resumed[1]);
    world_free(world);
}
END_TEST

UNIT_TESTS(who_matches_nothing_gets_one_command, who_hides_its_environment_gets_one_command_too,
           a_stall_costs_no_second_resume, a_slow_look_costs_no_second_resume,
           a_list_that_was_not_read_is_asked_for_again, every_port_of_ours_gets_its_resume,
           after_a_restart_every_port_gets_one_again, a_foreign_port_is_named,
           stopping_waits_for_every_port, stopping_does_not_wait_for_foreign_ports,
           a_late_port_is_resumed, a_resume_without_an_answer_is_sent_again, a_resume_is_waited_for,
           the_end_of_a_process_is_seen, a_process_outlives_its_first_thread,
           who_comes_back_is_known, a_last_connection_of_the_dead_is_its_own,
           a_last_connection_of_the_forgotten_is_nobody,
           whose_process_has_ended_and_who_still_speaks_is_resumed,
           who_cannot_be_identified_goes_on_with_no_plan, a_neighbour_that_runs_says_nothing,
           a_neighbour_over_the_limit_says_nothing, a_neighbour_heard_of_late_says_nothing,
           neighbours_are_looked_after_when_the_handle_goes,
           neighbours_are_looked_after_when_its_owner_ends, a_second_port_without_facts_is_its_own,
           over_a_limit_another_port_is_not_forgotten, who_stays_unidentified_stays_one);
