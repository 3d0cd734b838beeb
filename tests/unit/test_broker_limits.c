/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Neighbours: whatever one peer does costs him, and nobody else.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "lib/hresult.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"

#define ENVIRON "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0"
#define RULE    "rules: [ { name: r, match: all, env: { ONE: \"1\" } } ]\n"

static const uint32_t first[] = {0};

static uint64_t n_errors(const struct world *world, enum notice_peer_error error)
{
    return broker_counters(world->broker)->peer_errors[error];
}

START_TEST(who_says_nothing_is_let_go)
{
    struct world *world = world_new(HEAD "limits: { hello: 500ms }\n");
    struct world_connection *connection =
        world_connect(world, world_process(world, "/app", ENVIRON), 0);

    world_pass(world, span_from_us(499999), false);
    ck_assert(!connection->is_closed);
    world_pass(world, span_from_us(1), false);
    ck_assert(connection->is_closed);
    ck_assert_uint_eq(n_errors(world, PEER_SENT_NO_ADVERTISE), 1);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    world_free(world);
}
END_TEST

START_TEST(garbage_is_let_go_at_its_first_wrong_byte)
{
    static const char *const garbage[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", "ADVR_V2",
                                          "DOTNET_IPC_V1"};

    for (size_t i = 0; i < ARRAY_LENGTH(garbage); i++) {
        struct world *world = world_new(HEAD);
        struct world_connection *connection =
            world_connect(world, world_process(world, "/app", ENVIRON), 0);

        for (const char *at = garbage[i]; *at != '\0' && !connection->is_closed; at++)
            world_send(connection, at, 1);
        ck_assert(connection->is_closed);
        ck_assert_uint_eq(n_errors(world, PEER_SENT_GARBAGE), 1);
        world_free(world);
    }
}
END_TEST

START_TEST(an_advertise_may_come_byte_by_byte_and_not_be_cut)
{
    struct advertise advertise = {.cookie = world_cookie("aaaaaaaa"), .pid = 1000};
    uint8_t bytes[ADVERTISE_SIZE + 1];

    advertise_write(&advertise, bytes);
    for (size_t length = 0; length < ADVERTISE_SIZE; length++) {
        struct world *world = world_new(HEAD);
        struct world_connection *connection =
            world_connect(world, world_process(world, "/app", ENVIRON), 0);

        for (size_t i = 0; i < length; i++)
            world_send(connection, &bytes[i], 1);
        ck_assert(!connection->is_closed);
        world_end(connection);
        ck_assert(connection->is_closed);
        ck_assert_ptr_null(world_find(world, "aaaaaaaa"));
        world_free(world);
    }
    {
        struct world *world = world_new(HEAD);
        struct world_connection *connection =
            world_connect(world, world_process(world, "/app", ENVIRON), 0);

        for (size_t i = 0; i < ADVERTISE_SIZE; i++)
            world_send(connection, &bytes[i], 1);
        ck_assert_ptr_nonnull(world_find(world, "aaaaaaaa"));
        ck_assert_uint_eq(connection->n_messages, 1);
        world_free(world);
    }
    {
        struct world *world = world_new(HEAD);
        struct world_connection *connection =
            world_connect(world, world_process(world, "/app", ENVIRON), 0);

        bytes[ADVERTISE_SIZE] = 0;
        world_send(connection, bytes, sizeof bytes);
        ck_assert(connection->is_closed);
        world_free(world);
    }
}
END_TEST

START_TEST(the_oldest_silent_one_makes_room)
{
    enum { LIMIT = 10 };
    struct world *world = world_new(HEAD "limits: { silent: 10, hello: 10s }\n");
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_connection *connections[3 * LIMIT];

    for (size_t i = 0; i < ARRAY_LENGTH(connections); i++)
        connections[i] = world_connect(world, process, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(connections); i++)
        ck_assert_int_eq(connections[i]->is_closed, i < 2 * LIMIT);
    ck_assert_uint_eq(n_errors(world, PEER_EVICTED), 2 * LIMIT);
    ck_assert_uint_eq(broker_counters(world->broker)->n_silent, LIMIT);
    world_free(world);
}
END_TEST

/* Ten thousand that say nothing, and one that does: it does not wait for any of them. */
START_TEST(silence_delays_nobody)
{
    struct world *world = world_new(HEAD);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *runtime;

    for (size_t i = 0; i < 4000; i++)
        world_connect(world, process, 0);
    ck_assert_uint_eq(broker_counters(world->broker)->n_silent, 1000);
    runtime = world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);
    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume");
    world_free(world);
}
END_TEST

START_TEST(a_process_with_many_cookies_is_resumed)
{
    enum { N = 1000 };
    struct world *world = world_new_with(HEAD RULE, BROKER_TRUSTS_RECORDS, 100000);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_connection *connections[N];
    size_t n_planned = 0, n_resumed = 0;

    for (size_t i = 0; i < N; i++) {
        struct guid cookie;
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        cookie = world_cookie(text);
        connections[i] = world_connect(world, process, 0);
        world_advertise(connections[i], &cookie, (uint64_t)process->pid);
    }
    world_pass(world, span_from_s(3), false);
    for (size_t i = 0; i < N; i++) {
        struct world_command command;

        if (!world_take_command(connections[i], &command))
            continue;
        n_resumed += command.id == COMMAND_RESUME;
        n_planned += command.id != COMMAND_RESUME;
    }
    /* The first gets a plan; the second to fourth are further runtimes in one process. */
    ck_assert_uint_ge(n_planned + n_resumed, N - 1);
    ck_assert_uint_le(n_planned, 1);
    ck_assert_uint_eq(n_errors(world, PEER_OVER_LIMIT), N - 4);
    world_free(world);
}
END_TEST

/* It runs since it was resumed, and its threads do not show it yet; that another policy has room
 * for it does not make it new. */
/* Whoever is over it waits his turn for Resume, and has nothing to say before that. */
START_TEST(who_speaks_before_its_turn_is_hung_up)
{
    struct world *world = world_new(HEAD "limits: { cookies_per_process: 1 }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_connection *connections[20];
    struct world_command command;
    size_t n_waiting = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(connections); i++) {
        char text[16];
        struct guid cookie;

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        cookie = world_cookie(text);
        connections[i] = world_connect(world, process, 0);
        world_advertise(connections[i], &cookie, (uint64_t)process->pid);
    }
    for (size_t i = 1; i < ARRAY_LENGTH(connections); i++) {
        if (world_peek_command(connections[i], &command))
            continue;
        n_waiting++;
        world_send(connections[i], "noise", 5);
        ck_assert(connections[i]->is_closed);
    }
    ck_assert_uint_gt(n_waiting, 0);
    ck_assert_uint_eq(n_errors(world, PEER_SENT_GARBAGE), n_waiting);
    world_free(world);
}
END_TEST

START_TEST(over_the_limit_of_cookies_nobody_is_new_to_the_next_policy)
{
    static const char *const policies[] = {HEAD "limits: { cookies_per_process: 1 }\n" RULE,
                                           HEAD "limits: { cookies_per_process: 8 }\n" RULE};
    struct world *world = world_new(policies[0]);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *before = world_runtime(world, process, "aaaaaaaa", first, 1);
    struct world_runtime *runtime = world_runtime(world, process, "bbbbbbbb", first, 1);
    struct world_runtime *later;

    world->lag = span_from_s(5);
    world_connect_port(before, 0);
    world_end(before->connections[0]);
    world_connect_port(runtime, 0);
    ck_assert(world_set_policy(world, policies[1]));
    ck_assert(world_serve_one(runtime));
    ck_assert_str_eq(world_story(runtime), "resume");
    world_serve_one(runtime);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_UNKNOWN);
    /* Long after that whoever comes by an exec is new. */
    world_pass(world, span_from_s(10), false);
    world_end(runtime->connections[0]);
    process->picture = WORLD_SUSPENDED;
    later = world_runtime(world, process, "cccccccc", first, 1);
    world_start(later);
    ck_assert(world_serve_one(later));
    ck_assert_str_eq(world_story(later), "kind");
    world_free(world);
}
END_TEST

/* It took its Resume late, and shows even later that it runs. */
START_TEST(a_resume_over_the_limit_of_cookies_that_is_taken_late_is_remembered)
{
    struct world *world = world_new(HEAD "limits: { cookies_per_process: 1 }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *before = world_runtime(world, process, "aaaaaaaa", first, 1);
    struct world_runtime *runtime = world_runtime(world, process, "bbbbbbbb", first, 1);

    world->lag = span_from_s(5);
    world_connect_port(before, 0);
    world_end(before->connections[0]);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(20), false);
    ck_assert(world_set_policy(world, HEAD "limits: { cookies_per_process: 8 }\n" RULE));
    ck_assert(world_serve_one(runtime));
    world_serve_one(runtime);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_UNKNOWN);
    world_free(world);
}
END_TEST

/* Its arguments and its environment may be as long as the kernel allows, so they are not read again
 * and again. */
START_TEST(a_process_without_room_for_a_cookie_is_not_looked_at_in_full)
{
    struct world *world = world_new(HEAD "limits: { cookies_per_process: 1 }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct guid cookies[] = {world_cookie("aaaaaaaa"), world_cookie("bbbbbbbb")};
    struct world_connection *connection;
    struct world_command command;

    for (size_t i = 0; i < ARRAY_LENGTH(cookies); i++) {
        connection = world_connect(world, process, 0);
        world_advertise(connection, &cookies[i], (uint64_t)process->pid);
    }
    ck_assert_uint_eq(n_errors(world, PEER_OVER_LIMIT), 1);
    ck_assert_uint_eq(world->wanted & (FACTS_ARGUMENTS | FACTS_ENVIRON | FACTS_EXE), 0);
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    /* Nor does it stand in the way of another one that gets its pid. */
    process->start_time++;
    connection = world_connect(world, process, 0);
    world_advertise(connection, &cookies[1], (uint64_t)process->pid);
    ck_assert_ptr_nonnull(world_find(world, "bbbbbbbb"));
    world_free(world);
}
END_TEST

/* Whoever is not remembered must not be resumed in a tight circle. */
START_TEST(a_nameless_one_that_comes_back_is_paced)
{
    struct world *world = world_new(HEAD RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    size_t n_resumed = 0;

    for (size_t i = 0; i < 4; i++) {
        struct guid cookie;
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        cookie = world_cookie(text);
        world_advertise(world_connect(world, process, 0), &cookie, (uint64_t)process->pid);
    }
    for (size_t i = 0; i < 500; i++) {
        struct guid cookie = world_cookie("ffffffff");
        struct world_connection *connection = world_connect(world, process, 0);
        struct world_command command;

        world_advertise(connection, &cookie, (uint64_t)process->pid);
        world_pass(world, span_from_ms(1), false);
        if (world_take_command(connection, &command)) {
            n_resumed++;
            world_send_status(connection, true, 0);
        }
        world_end(connection);
    }
    ck_assert_uint_le(n_resumed, 32);
    ck_assert_uint_ge(n_resumed, 1);
    world_free(world);
}
END_TEST

START_TEST(over_its_connections_a_user_is_resumed_and_let_go)
{
    struct world *world = world_new(HEAD "limits: { connections_per_user: 5 }\n");
    struct world_connection *connection;
    struct world_command command;
    struct guid cookie;

    for (size_t i = 0; i < 5; i++) {
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        world_start(world_runtime(world, world_process(world, "/app", ENVIRON), text, first, 1));
    }
    world_serve(world);
    {
        struct world_process *process = world_process(world, "/app", ENVIRON);

        connection = world_connect(world, process, 0);
        cookie = world_cookie("aaaaaaaa");
        world_advertise(connection, &cookie, (uint64_t)process->pid);
    }
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    ck_assert(!connection->is_closed);
    world_pass(world, span_from_us(999999), false);
    ck_assert(!connection->is_closed);
    world_pass(world, span_from_us(1), false);
    ck_assert(connection->is_closed);
    ck_assert_uint_eq(n_errors(world, PEER_OVER_LIMIT), 1);
    /* Another user is not concerned. */
    {
        struct world_process *process = world_process(world, "/app", ENVIRON);
        struct world_runtime *other = world_runtime(world, process, "bbbbbbbb", first, 1);

        process->uid = 2000;
        world_start(other);
        world_serve(world);
        ck_assert_str_eq(world_story(other), "resume");
        ck_assert(!other->connections[0]->is_closed);
    }
    world_free(world);
}
END_TEST

/* Who comes back for the next step of its plan is over no limit, even where no handle says who it
 * is. */
START_TEST(in_the_middle_of_its_plan_nobody_is_over_the_limit)
{
    static const char planned[] = "kind, info3, env ONE=1, resume";
    struct world *world = world_new(HEAD "limits: { connections_per_user: 1 }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    process->has_no_handle = true;
    world_start(runtime);
    ck_assert(world_serve_one(runtime));
    world_connect(world, world_process(world, "/app", ENVIRON), 0);
    world_serve(world);
    ck_assert_int_eq(strncmp(world_story(runtime), planned, strlen(planned)), 0);
    world_free(world);
}
END_TEST

/* But not with more ports than that: then one of them is resumed, and no step follows. */
START_TEST(a_port_over_the_limit_ends_the_plan)
{
    static const uint32_t ports[] = {0, 1, 2};
    struct world *world = world_new(HEAD "limits: { connections_per_user: 3 }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", ports, 3);

    process->has_no_handle = true;
    world_start(runtime);
    world_connect(world, world_process(world, "/app", ENVIRON), 0);
    world_serve(world);
    ck_assert_int_eq(strncmp(world_story(runtime), "kind, resume, resume", 20), 0);
    ck_assert_ptr_null(strstr(world_story(runtime), "env"));
    world_pass(world, span_from_s(5), true);
    ck_assert_int_eq(process->picture, WORLD_RUNNING);
    ck_assert_ptr_null(strstr(world_story(runtime), "env"));
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_FAILED);
    world_free(world);
}
END_TEST

/* Who was resumed over the limit may run when it comes back, although its threads do not show it
 * yet. */
START_TEST(who_may_have_been_resumed_over_the_limit_gets_no_plan)
{
    struct world *world = world_new(HEAD "limits: { connections_per_user: 5 }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *runtimes[5], *later, *other;
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_connection *connection;
    struct world_command command;

    for (size_t i = 0; i < ARRAY_LENGTH(runtimes); i++) {
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        runtimes[i] = world_runtime(world, world_process(world, "/app", ENVIRON), text, first, 1);
        world_start(runtimes[i]);
    }
    world_serve(world);
    connection = world_connect(world, process, 0);
    world_advertise(connection, &cookie, (uint64_t)process->pid);
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    world_send_status(connection, true, 0);
    world_end(connection);
    world_kill(world, runtimes[0]->process);
    /* There is room again when it comes back. */
    connection = world_connect(world, process, 0);
    world_advertise(connection, &cookie, (uint64_t)process->pid);
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_UNKNOWN);
    world_end(connection);
    /* Nobody else is concerned. */
    other = world_runtime(world, world_process(world, "/app", ENVIRON), "bbbbbbbb", first, 1);
    other->process->uid = 2000;
    world_start(other);
    world_serve(world);
    ck_assert_str_eq(world_story(other), "kind, info3, env ONE=1, resume");
    later = world_runtime(world, world_process(world, "/app", ENVIRON), "cccccccc", first, 1);
    world_start(later);
    world_serve(world);
    ck_assert_str_eq(world_story(later), "kind, info3, env ONE=1, resume");
    world_free(world);
}
END_TEST

/* It runs already when it becomes known to a daemon that leaves everybody to the next one. */
START_TEST(resume_over_the_limit_is_recorded_while_stopping)
{
    struct world *world = world_new(HEAD "limits: { connections_per_user: 1 }\n" RULE);
    struct world_connection *other = world_connect(world, world_process(world, "/app", ENVIRON), 0);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);

    world->lag = span_from_s(5);
    world_start(runtime);
    world_end(other);
    world_stop(world, BROKER_STOP_KEEP);
    ck_assert(world_serve_one(runtime));
    ck_assert_str_eq(world_story(runtime), "resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_DECIDING);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    world_free(world);
}
END_TEST

/* A plan that fails before anything was sent leaves no record. So the Resume that follows has to,
 * even the one over the limit that may be the only one: threads do not show at once that it runs,
 * and the next daemon would begin again. */
START_TEST(resume_over_the_limit_is_recorded)
{
    struct world *world =
        world_new(HEAD "limits: { connections_per_user: 1 }\n"
                       "rules: [ { name: r, match: all, env: { ONE: null } } ]\n");
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *runtime = world_runtime(world, process, "aaaaaaaa", first, 1);

    process->has_no_handle = true;
    process->hides_environ = true;
    world->lag = span_from_s(5);
    world_start(runtime);
    while (world_find(world, "aaaaaaaa")->state < RUNTIME_RESUMING) {
        if (runtime->n_commands == 1)
            world_connect(world, world_process(world, "/app", ENVIRON), 0);
        ck_assert(world_serve_one(runtime));
    }
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_FAILED);
    ck_assert_uint_eq(world_find(world, "aaaaaaaa")->n_connections, 0);
    ck_assert(world_serve_one(runtime));
    ck_assert_str_eq(world_story(runtime), "kind, info3, environment, resume");
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_serve(world);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    ck_assert_str_eq(world_story(runtime), "kind, info3, environment, resume, resume");
    world_free(world);
}
END_TEST

static const char *story_of_another(struct world *world, const char *cookie)
{
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", ENVIRON), cookie, first, 1);

    world_start(runtime);
    world_serve(world);
    return world_story(runtime);
}

/* One that is over the limit for long is resumed again and again, and still only one. */
START_TEST(one_that_was_resumed_over_the_limit_many_times)
{
    static const char planned[] = "kind, info3, env ONE=1, resume";
    struct world *world = world_new(HEAD "limits: { connections_per_user: 1, hello: 1m }\n" RULE);
    struct world_connection *silent =
        world_connect(world, world_process(world, "/app", ENVIRON), 0);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);

    world_start(runtime);
    world_pass(world, span_from_s(50), true);
    ck_assert_uint_gt(runtime->n_taken, 32);
    ck_assert_ptr_null(strstr(world_story(runtime), "kind"));
    world_kill(world, runtime->process);
    world_end(silent);
    ck_assert_str_eq(story_of_another(world, "bbbbbbbb"), planned);
    world_free(world);
}
END_TEST

/* They are too many to be remembered one by one: then it may be any of its user for a while, even
 * when nothing else of that user is left. */
START_TEST(many_that_were_resumed_over_the_limit)
{
    enum { N = 100 };
    static const char planned[] = "kind, info3, env ONE=1, resume";
    struct world *world = world_new(HEAD "limits: { connections_per_user: 1, hello: 10s }\n" RULE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_connection *silent = world_connect(world, process, 0);

    for (size_t i = 0; i < N; i++) {
        struct world_connection *connection = world_connect(world, process, 0);
        struct world_command command;
        struct guid cookie;
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        cookie = world_cookie(text);
        world_advertise(connection, &cookie, (uint64_t)process->pid);
        world_pass(world, span_from_ms(70), false);
        ck_assert(world_take_command(connection, &command));
        world_end(connection);
    }
    world_end(silent);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    ck_assert_str_eq(story_of_another(world, "aaaaaaaa"), "resume");
    world_kill(world, &world->processes[1]);
    world_pass(world, span_from_s(9), false);
    ck_assert_str_eq(story_of_another(world, "bbbbbbbb"), "resume");
    world_kill(world, &world->processes[2]);
    world_pass(world, span_from_s(2), false);
    ck_assert_str_eq(story_of_another(world, "cccccccc"), planned);
    world_free(world);
}
END_TEST

START_TEST(over_its_runtimes_a_user_is_resumed_without_a_plan)
{
    struct world *world = world_new(HEAD "limits: { runtimes_per_user: 3 }\n" RULE);
    struct world_runtime *runtimes[5], *other;

    for (size_t i = 0; i < ARRAY_LENGTH(runtimes); i++) {
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        runtimes[i] = world_runtime(world, world_process(world, "/app", ENVIRON), text, first, 1);
        world_start(runtimes[i]);
    }
    other = world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);
    other->process->uid = 2000;
    world_start(other);
    world_serve(world);
    for (size_t i = 0; i < ARRAY_LENGTH(runtimes); i++) {
        ck_assert_str_eq(world_story(runtimes[i]),
                         i < 3 ? "kind, info3, env ONE=1, resume" : "resume");
    }
    ck_assert_str_eq(world_story(other), "kind, info3, env ONE=1, resume");
    world_free(world);
}
END_TEST

START_TEST(descriptors_that_run_short_pause_the_listeners)
{
    enum { USABLE = 20 };
    struct world *world = world_new_with(HEAD "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    struct world_runtime *runtimes[USABLE];

    for (size_t i = 0; i < USABLE; i++) {
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        runtimes[i] = world_runtime(world, world_process(world, "/app", ENVIRON), text, first, 1);
        world_start(runtimes[i]);
        ck_assert_int_eq(world->is_paused, i + 1 == USABLE);
    }
    ck_assert(broker_counters(world->broker)->alarms[ALARM_DESCRIPTORS]);
    world_serve(world);
    world_end(runtimes[0]->connections[0]);
    ck_assert(!world->is_paused);
    ck_assert(!broker_counters(world->broker)->alarms[ALARM_DESCRIPTORS]);
    world_free(world);
}
END_TEST

/* A listener that should be paused and is not, or the other way round, would stay so. */
START_TEST(listeners_are_paused_without_memory)
{
    enum { USABLE = 2 };
    struct world *world = world_new_with(HEAD "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);
    struct world_connection *silent;
    size_t n_left;

    world_start(runtime);
    world_serve(world);
    silent = world_connect(world, runtime->process, 0);
    ck_assert(world->is_paused);
    world->is_network_slow = true;
    world_end(silent);
    unit_memory_watch(1);
    world_deliver(silent, SIZE_MAX);
    unit_memory_release(&n_left);
    ck_assert(!world->is_paused);
    world_free(world);
}
END_TEST

/* Who says nothing goes before anybody has to wait outside. */
START_TEST(silence_pauses_no_listener)
{
    enum { USABLE = 20 };
    struct world *world = world_new_with(HEAD RULE "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *runtime;

    for (size_t i = 0; i < 3 * USABLE; i++) {
        world_connect(world, process, 0);
        ck_assert(!world->is_paused);
    }
    ck_assert_uint_eq(broker_counters(world->broker)->n_silent, USABLE - 1);
    ck_assert_uint_eq(n_errors(world, PEER_EVICTED), 2 * USABLE + 1);
    runtime = world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);
    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, resume");
    /* The handle of a process is a descriptor, too. */
    ck_assert(!world->is_paused);
    world_free(world);
}
END_TEST

/* Who opens many of them displaces his own, and nobody else whose advertise is still on its way. */
START_TEST(silence_of_one_user_costs_no_other)
{
    struct world *world = world_new(HEAD RULE "limits: { silent: 10 }\n");
    struct world_process *rude = world_process(world, "/app", ENVIRON);
    struct world_process *other = world_process(world, "/app", ENVIRON);
    struct world_connection *slow, *at_once[3];
    struct guid cookie = world_cookie("bbbbbbbb");
    struct world_command command;

    other->uid = 2000;
    slow = world_connect(world, other, 0);
    for (size_t i = 0; i < 100; i++)
        world_connect(world, rude, 0);
    ck_assert(!slow->is_closed);
    ck_assert_uint_eq(broker_counters(world->broker)->n_silent, 10);
    world_advertise(slow, &cookie, (uint64_t)other->pid);
    ck_assert(world_take_command(slow, &command));
    /* And where he has none, somebody else's oldest one goes. */
    other->uid = 3000;
    world_connect(world, rude, 0);
    slow = world_connect(world, other, 0);
    ck_assert(!slow->is_closed);
    ck_assert_uint_eq(broker_counters(world->broker)->n_silent, 10);
    /* Nor does he who has several displace his own, as long as the rude one has more. */
    for (size_t i = 0; i < ARRAY_LENGTH(at_once); i++)
        at_once[i] = world_connect(world, other, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(at_once); i++)
        ck_assert(!at_once[i]->is_closed);
    ck_assert(!slow->is_closed);
    world_free(world);
}
END_TEST

/* In the middle of its plan a runtime costs the handle of its process, and has to be let in again
 * for every step: as many as there are descriptors would all wait outside, for ever. */
START_TEST(plans_leave_descriptors_to_go_on_with)
{
    enum { USABLE = 16, N = 3 * USABLE };
    struct world *world = world_new_with(HEAD RULE "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    size_t n_planned = 0;

    for (size_t i = 0; i < N; i++) {
        struct world_process *process = world_process(world, "/app", ENVIRON);
        struct world_connection *connection = world_connect(world, process, 0);
        struct world_command command;
        struct guid cookie;
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        cookie = world_cookie(text);
        world_advertise(connection, &cookie, (uint64_t)process->pid);
        ck_assert(world_take_command(connection, &command));
        n_planned += command.id != COMMAND_RESUME;
        /* Its next connection comes when all the others have come. */
        world_send_status(connection, command.id == COMMAND_RESUME, HRESULT_UNKNOWN_COMMAND);
        world_end(connection);
        ck_assert_msg(!world->is_paused, "after %zu", i);
    }
    ck_assert_uint_eq(n_planned, USABLE / 2);
    world_free(world);
}
END_TEST

/* Starts a runtime of its own process, which may have to wait in the queue. */
static struct world_runtime *one_more(struct world *world, size_t n)
{
    struct world_runtime *runtime;
    char text[16];

    snprintf(text, sizeof text, "%08zx", 0x10000000 + n);
    runtime = world_runtime(world, world_process(world, "/app", ENVIRON), text, first, 1);
    world_start(runtime);
    return runtime;
}

/* All descriptors are those of runtimes that run and stay, and others wait in the queue before the
 * next connection of one whose plan was begun. It comes in without waiting for anybody's end. */
START_TEST(those_who_run_make_room_for_who_is_missed)
{
    enum { USABLE = 12, N_QUEUED = 400 };
    struct world *world = world_new_with(HEAD RULE "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    struct world_runtime *planned;
    size_t n = 0;

    while (n < USABLE - 2) {
        one_more(world, n++);
        world_serve(world);
    }
    planned = one_more(world, n++);
    for (size_t i = 0; i < N_QUEUED; i++)
        one_more(world, n++);
    ck_assert(world->is_paused);
    world_serve(world);
    world_pass(world, span_from_ms(900), true);
    ck_assert_str_eq(world_story(planned), "kind, info3, env ONE=1, resume");
    ck_assert(broker_counters(world->broker)->alarms[ALARM_DESCRIPTORS]);
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_RUNNING),
                      broker_counters(world->broker)->n_seen);
    world_free(world);
}
END_TEST

/* Who is missed and does not come costs the others a bounded number of connections. */
START_TEST(who_is_missed_and_does_not_come_costs_little)
{
    enum { USABLE = 12, N_QUEUED = 5 };
    struct world *world = world_new_with(HEAD RULE "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    struct world_runtime *gone_quiet;
    struct world_command command;
    size_t n = 0, n_before;

    while (n < USABLE - 2) {
        one_more(world, n++);
        world_serve(world);
    }
    gone_quiet = one_more(world, n++);
    for (size_t i = 0; i < N_QUEUED; i++)
        one_more(world, n++);
    ck_assert(world_take_command(gone_quiet->connections[0], &command));
    world_end(gone_quiet->connections[0]);
    world_serve(world);
    n_before = world->n_connections;
    for (size_t i = 0; i < 100; i++)
        world_pass(world, span_from_ms(100), true);
    ck_assert_uint_gt(world->n_connections, n_before);
    /* At most one round a second, after the first few, in which everybody comes back once. */
    ck_assert_uint_le(world->n_connections - n_before, 14 * (USABLE + N_QUEUED));
    world_free(world);
}
END_TEST

static struct runtime *nth_of(struct world *world, size_t n)
{
    struct runtime *runtime;
    char text[16];

    snprintf(text, sizeof text, "%08zx", 0x10000000 + n);
    ck_assert_int_eq(broker_find(world->broker, text, &runtime), BROKER_FOUND_ONE);
    return runtime;
}

/* Who is held keeps a connection and the handle of his process; of these, only the first is needed.
 */
START_TEST(handles_make_room_for_who_is_missed)
{
    enum { USABLE = 8, HELD = USABLE / 2 };
    struct world *world = world_new_with(HEAD RULE "limits: { connections_per_user: 1000 }\n",
                                         BROKER_TRUSTS_RECORDS, USABLE);
    struct world_runtime *missed = NULL;

    for (size_t n = 0; n < HELD; n++) {
        missed = one_more(world, n);
        if (n + 1 == HELD)
            break;
        ck_assert_int_eq(broker_hold(nth_of(world, n), SPAN_FOREVER, world->now), BROKER_DONE);
        world_settle(world);
    }
    /* The other places are those of processes that nobody can be asked about yet. */
    for (size_t n = 0; !world->is_paused; n++) {
        struct world_process *process = world_process(world, "/app", ENVIRON);
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x20000000 + n);
        process->is_silent = true;
        world_start(world_runtime(world, process, text, first, 1));
    }
    world_serve(world);
    world_pass(world, span_from_s(1), true);
    ck_assert_str_eq(world_story(missed), "kind, info3, env ONE=1, resume");
    world_free(world);
}
END_TEST

/* Connections over a limit wait for their end, and make room before that. */
START_TEST(who_is_over_a_limit_pauses_no_listener)
{
    enum { USABLE = 20 };
    struct world *world = world_new_with(HEAD RULE, BROKER_TRUSTS_RECORDS, USABLE);
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct world_runtime *other;

    for (size_t i = 0; i < 3 * USABLE; i++) {
        struct world_connection *connection = world_connect(world, process, 0);
        struct guid cookie;
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x20000000 + i);
        cookie = world_cookie(text);
        world_advertise(connection, &cookie, (uint64_t)process->pid);
    }
    other = world_runtime(world, world_process(world, "/app", ENVIRON), "bbbbbbbb", first, 1);
    other->process->uid = 2000;
    world_start(other);
    /* They stay as long as it takes to read their Resume, not for BROKER_LEAVING_TIME. */
    world_pass(world, span_from_ms(1500), true);
    ck_assert_str_eq(world_story(other), "kind, info3, env ONE=1, resume");
    world_free(world);
}
END_TEST

/* The system may have fewer descriptors than it promised. */
START_TEST(the_system_gives_no_descriptor)
{
    struct world *world = world_new(HEAD RULE);
    struct world_runtime *runtime = one_more(world, 0);

    world_serve(world);
    broker_descriptors_ran_out(world->broker, world->now);
    world_settle(world);
    ck_assert(world->is_paused);
    ck_assert(broker_counters(world->broker)->alarms[ALARM_DESCRIPTORS]);
    world_pass(world, span_from_ms(100), true);
    ck_assert(!world->is_paused);
    ck_assert(!broker_counters(world->broker)->alarms[ALARM_DESCRIPTORS]);
    ck_assert(!runtime->connections[0]->is_closed);
    world_free(world);
}
END_TEST

/* Bytes that nobody asked for, on a connection that waits or after the answer. */
START_TEST(noise_costs_the_connection_only)
{
    struct world *world = world_new(HEAD);
    struct world_runtime *runtime =
        world_runtime(world, world_process(world, "/app", ENVIRON), "aaaaaaaa", first, 1);

    world_start(runtime);
    world_serve(world);
    world_send(runtime->connections[0], "noise", 5);
    ck_assert(runtime->connections[0]->is_closed);
    ck_assert_uint_eq(n_errors(world, PEER_SENT_GARBAGE), 1);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_pass(world, span_from_s(1), true);
    ck_assert(!runtime->connections[0]->is_closed);
    world_free(world);
}
END_TEST

/* After its reply a runtime has nothing to say, or a few bytes. Who goes on is not read for ever.
 */
START_TEST(who_goes_on_after_the_reply_is_let_go)
{
    enum { IS_ONE_OF_A_RUNTIME, IS_NAMELESS, CASES };
    static const uint8_t noise[128];

    for (int i = 0; i < CASES; i++) {
        struct world *world = world_new(HEAD "limits: { connections_per_user: 1 }\n");
        struct world_process *process = world_process(world, "/app", ENVIRON);
        struct guid cookie = world_cookie("aaaaaaaa");
        struct world_connection *connection, *another = world_connect(world, process, 0);
        struct world_command command;

        if (i == IS_ONE_OF_A_RUNTIME)
            world_end(another);
        connection = world_connect(world, process, 0);
        world_advertise(connection, &cookie, (uint64_t)process->pid);
        ck_assert(world_take_command(connection, &command));
        ck_assert_int_eq(command.id, COMMAND_RESUME);
        world_send_status(connection, true, 0);
        world_send(connection, noise, sizeof noise);
        ck_assert(!connection->is_closed);
        world_send(connection, noise, sizeof noise);
        world_send(connection, noise, sizeof noise);
        ck_assert(connection->is_closed);
        ck_assert_uint_eq(n_errors(world, PEER_SENT_GARBAGE), 1);
        world_free(world);
    }
}
END_TEST

START_TEST(a_runtime_with_too_many_connections_keeps_its_ports)
{
    struct world *world = world_new(HEAD "limits: { connections_per_user: 1000 }\n");
    struct world_process *process = world_process(world, "/app", ENVIRON);
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_connection *connections[2 * RUNTIME_CONNECTIONS_MAX];
    size_t n_closed = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(connections); i++) {
        connections[i] = world_connect(world, process, 0);
        world_advertise(connections[i], &cookie, (uint64_t)process->pid);
    }
    world_pass(world, span_from_s(3), false);
    for (size_t i = 0; i < ARRAY_LENGTH(connections); i++)
        n_closed += connections[i]->is_closed;
    ck_assert_uint_eq(n_closed, RUNTIME_CONNECTIONS_MAX);
    world_free(world);
}
END_TEST

/* What is remembered follows the limit, and not only at the next end of a runtime. */
START_TEST(a_smaller_history_is_forgotten_at_once)
{
    struct world *world = world_new(HEAD "limits: { history: { records: 10 } }\n");

    for (size_t i = 0; i < 3; i++) {
        char text[16];

        snprintf(text, sizeof text, "%08zx", 0x10000000 + i);
        story_of_another(world, text);
        world_kill(world, &world->processes[i]);
    }
    world_pass(world, span_from_s(1), true);
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_GONE), 3);
    ck_assert(world_set_policy(world, HEAD "limits: { history: { records: 1 } }\n"));
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_GONE), 1);
    ck_assert_ptr_nonnull(world_find(world, "10000002"));
    world_free(world);
}
END_TEST

UNIT_TESTS(
    a_process_without_room_for_a_cookie_is_not_looked_at_in_full,
    who_goes_on_after_the_reply_is_let_go, who_says_nothing_is_let_go,
    garbage_is_let_go_at_its_first_wrong_byte, an_advertise_may_come_byte_by_byte_and_not_be_cut,
    the_oldest_silent_one_makes_room, silence_delays_nobody, a_process_with_many_cookies_is_resumed,
    a_nameless_one_that_comes_back_is_paced, over_its_connections_a_user_is_resumed_and_let_go,
    who_may_have_been_resumed_over_the_limit_gets_no_plan, many_that_were_resumed_over_the_limit,
    a_port_over_the_limit_ends_the_plan, over_the_limit_of_cookies_nobody_is_new_to_the_next_policy,
    a_resume_over_the_limit_of_cookies_that_is_taken_late_is_remembered,
    one_that_was_resumed_over_the_limit_many_times, resume_over_the_limit_is_recorded,
    resume_over_the_limit_is_recorded_while_stopping,
    in_the_middle_of_its_plan_nobody_is_over_the_limit,
    over_its_runtimes_a_user_is_resumed_without_a_plan,
    descriptors_that_run_short_pause_the_listeners, listeners_are_paused_without_memory,
    those_who_run_make_room_for_who_is_missed, who_is_missed_and_does_not_come_costs_little,
    handles_make_room_for_who_is_missed, who_is_over_a_limit_pauses_no_listener,
    the_system_gives_no_descriptor, silence_pauses_no_listener, silence_of_one_user_costs_no_other,
    plans_leave_descriptors_to_go_on_with, noise_costs_the_connection_only,
    who_speaks_before_its_turn_is_hung_up, a_runtime_with_too_many_connections_keeps_its_ports,
    a_smaller_history_is_forgotten_at_once);
