/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections in the descriptor store: whose are kept, and what the next daemon
 * makes of each that it is given.
 */

#include "tests/unit/unit.h"

#include <errno.h>
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
    "    match: all\n"                                                  \
    "    env: { ONE: \"1\" }\n"                                         \
    "    deadline: 3s\n"

#define PROFILER                                                                              \
    "    profilers: [ { clsid: \"{cf0d821e-299b-5307-a3d8-b283c03916dd}\", path: /opt/p.so, " \
    "primer: never } ]\n"
#define HOOK "    startup_hooks: [ { path: /opt/a.dll }, { path: /opt/b.dll } ]\n"
#define FAIL "    on_lost: fail\n"
#define HOLD "    on_failure: hold\n    hold_limit: 1m\n"
#define OURS "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0"

#define HOOKS "hook /opt/a.dll:/opt/b.dll"

static const char whole[] = HEAD PROFILER HOOK;
static const uint32_t first[] = {0};
static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/opt/b.dll", .mode = 0100644},
};

static struct world *world_keeping(const char *policy)
{
    return world_new_keeping(policy, 1000, 8);
}

static struct world_runtime *runtime_in(struct world *world, const char *cookie)
{
    struct world_process *process = world_process(world, "/app", OURS);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, cookie, first, 1);
}

static size_t n_kept(const struct world *world)
{
    size_t n = 0;

    for (size_t i = 0; i < world->n_connections; i++)
        n += world->connections[i]->kept != 0;
    return n;
}

static struct world_connection *kept_one(const struct world *world)
{
    struct world_connection *found = NULL;

    for (size_t i = 0; i < world->n_connections; i++) {
        if (world->connections[i]->kept != 0)
            found = world->connections[i];
    }
    ck_assert_ptr_nonnull(found);
    return found;
}

/* Started, and served until that command is on its way to it. */
static struct world_runtime *gets_to(struct world *world, enum command_id id)
{
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct world_command command;

    world_start(runtime);
    while (!world_peek_command(runtime->connections[0], &command) || command.id != id)
        ck_assert(world_serve_one(runtime));
    return runtime;
}

/* What it answers is not read by the daemon that sent it. */
static void answers_nobody(struct world_runtime *runtime)
{
    runtime->world->is_network_slow = true;
    ck_assert(world_serve_one(runtime));
    runtime->world->is_network_slow = false;
}

static void restart(struct world *world)
{
    world_restart(world, BROKER_TRUSTS_RECORDS);
}

static void ends(struct world *world, const struct world_runtime *runtime, const char *story,
                 enum runtime_outcome outcome)
{
    world_pass(world, span_from_s(10), true);
    ck_assert_str_eq(world_story(runtime), story);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, outcome);
    ck_assert_uint_eq(n_kept(world), 0);
}

static const char start[] = "kind, info3, env ONE=1, profiler /opt/p.so";

static const char * and (const char *story, const char *rest)
{
    static char text[512];

    snprintf(text, sizeof text, "%s, %s", story, rest);
    return text;
}

/* Only what must not be sent twice, and only for as long as that matters. */
START_TEST(steps_that_are_sent_once_are_kept)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    for (struct world_command command; runtime->process->picture != WORLD_RUNNING;) {
        bool is_once = world_peek_command(runtime->connections[0], &command) &&
                       command_row(command.id)->repeat == COMMAND_ONCE;

        ck_assert_uint_eq(n_kept(world), is_once ? 1 : 0);
        ck_assert(world_serve_one(runtime));
    }
    ck_assert_uint_eq(n_kept(world), 0);
    world_free(world);
}
END_TEST

START_TEST(an_answer_that_was_kept_is_read)
{
    static const enum command_id ids[] = {COMMAND_STARTUP_PROFILER, COMMAND_APPLY_STARTUP_HOOK};
    static const char *const stories[] = {"kind, info3, " HOOKS ", resume", "kind, info3, resume"};

    for (size_t i = 0; i < 2 * ARRAY_LENGTH(ids); i++) {
        struct world *world = world_keeping(whole);
        struct world_runtime *runtime = gets_to(world, ids[i / 2]);
        char before[256];

        snprintf(before, sizeof before, "%s%s", start, i / 2 ? ", " HOOKS : "");
        /* Before the next daemon is there, or after it. */
        if (i % 2)
            answers_nobody(runtime);
        restart(world);
        ends(world, runtime, and(before, stories[i / 2]), OUTCOME_APPLIED);
        world_free(world);
    }
}
END_TEST

/* The runtime answers and connects again before anybody is there to read. */
START_TEST(it_is_read_before_anything_else_is_sent)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_STARTUP_PROFILER);

    answers_nobody(runtime);
    ck_assert(!runtime->connections[0]->is_accepted);
    world->is_network_slow = true;
    restart(world);
    world_connect_port(runtime, 0);
    ck_assert(world_accept(world, 0));
    ck_assert(!runtime->connections[0]->message);
    world->is_network_slow = false;
    world_deliver_all(world);
    ends(world, runtime, and(start, "kind, info3, " HOOKS ", resume"), OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

START_TEST(it_comes_in_any_pieces)
{
    for (size_t length = 0; length <= 24; length++) {
        struct world *world = world_keeping(whole);
        struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);
        struct world_connection *connection = runtime->connections[0];
        bool is_whole = length == 24;

        answers_nobody(runtime);
        ck_assert_uint_eq(connection->inbox_length, 24);
        connection->inbox_length = length;
        world->is_network_slow = true;
        restart(world);
        for (size_t i = 0; i < length; i++)
            ck_assert(world_deliver(connection, 1));
        world_hear(world);
        ends(world, runtime, and(start, HOOKS ", kind, info3, resume"),
             is_whole ? OUTCOME_APPLIED : OUTCOME_PARTIAL);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->plan.steps[2].result,
                         is_whole ? STEP_OK : STEP_LOST);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->plan.steps[3].result,
                         is_whole ? STEP_OK : STEP_LOST);
        world_free(world);
    }
}
END_TEST

static enum world_fault is_faulty(struct world_runtime *runtime,
                                  const struct world_command *command, uint32_t *ret_hresult)
{
    (void)ret_hresult;
    return command->id == COMMAND_APPLY_STARTUP_HOOK ? *(const enum world_fault *)runtime->context
                                                     : WORLD_ANSWERS;
}

/* As if the connection had not been kept: on_lost decides. */
START_TEST(what_is_no_answer_is_a_lost_one)
{
    static const enum world_fault faults[] = {WORLD_CLOSES, WORLD_READS_ONLY, WORLD_ANSWERS_HALF,
                                              WORLD_ANSWERS_GARBAGE};

    for (size_t i = 0; i < 2 * 2 * ARRAY_LENGTH(faults); i++) {
        enum world_fault fault = faults[i / 4];
        struct world *world = world_keeping(i % 2 ? HEAD HOOK FAIL : HEAD HOOK);
        struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);
        const struct runtime *seen;

        runtime->fault = is_faulty;
        runtime->context = &fault;
        world->refuses_to_keep = i / 2 % 2 > 0;
        if (world->refuses_to_keep)
            world_drop_store(world);
        answers_nobody(runtime);
        restart(world);
        ck_assert_uint_eq(n_kept(world), !world->refuses_to_keep && (fault == WORLD_READS_ONLY ||
                                                                     fault == WORLD_ANSWERS_HALF)
                                             ? 1
                                             : 0);
        world_pass(world, span_from_s(10), true);
        seen = world_find(world, "aaaaaaaa");
        ck_assert_int_eq(seen->plan.steps[1].result, STEP_LOST);
        ck_assert_int_eq(seen->plan.steps[0].result, i % 2 ? STEP_ROLLED_BACK : STEP_OK);
        ck_assert_int_eq(seen->outcome, OUTCOME_PARTIAL);
        ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
        ck_assert_uint_eq(runtime->n_hooks, 1);
        ck_assert_uint_eq(n_kept(world), 0);
        world_free(world);
    }
}
END_TEST

static enum world_fault refuses_profiler(struct world_runtime *runtime,
                                         const struct world_command *command, uint32_t *ret_hresult)
{
    *ret_hresult = HRESULT_FAIL;
    return command->id == COMMAND_STARTUP_PROFILER && !runtime->context ? WORLD_REFUSES
                                                                        : WORLD_ANSWERS;
}

START_TEST(a_refusal_that_was_kept_is_one)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_STARTUP_PROFILER);

    runtime->fault = refuses_profiler;
    answers_nobody(runtime);
    restart(world);
    ends(world, runtime, and(start, "kind, info3, unset ONE, resume"), OUTCOME_ROLLED_BACK);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->plan.steps[1].result, STEP_REFUSED);
    world_free(world);
}
END_TEST

START_TEST(a_refusal_in_the_start_up_race_is_none)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_STARTUP_PROFILER);

    runtime->n_refusals_left = 2;
    answers_nobody(runtime);
    restart(world);
    ends(world, runtime,
         and(start, "kind, info3, profiler /opt/p.so, profiler /opt/p.so, " HOOKS ", resume"),
         OUTCOME_APPLIED);
    ck_assert_uint_eq(runtime->n_profilers, 1);
    world_free(world);
}
END_TEST

/* One daemon after the other dies while it waits. */
START_TEST(it_is_kept_over_any_number_of_daemons)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);
    uint64_t kept = kept_one(world)->kept;

    for (int i = 0; i < 3; i++) {
        restart(world);
        ck_assert_uint_eq(kept_one(world)->kept, kept);
    }
    ends(world, runtime, and(start, HOOKS ", kind, info3, resume"), OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

/* No number is given twice, be it that of one that no daemon has taken over. */
START_TEST(every_number_is_a_new_one)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_STARTUP_PROFILER);
    uint64_t kept = kept_one(world)->kept;
    struct broker_peer nobody = {.pid = 1};
    struct connection *connection;

    restart(world);
    ck_assert_int_eq(broker_adopt(world->broker, 0, NULL, &nobody, 77, world->now, &connection),
                     -ENOENT);
    ck_assert(world_serve_one(runtime));
    while (n_kept(world) == 0)
        ck_assert(world_serve_one(runtime));
    ck_assert_uint_gt(kept_one(world)->kept, kept);
    ck_assert_uint_eq(kept_one(world)->kept, 78);
    world_free(world);
}
END_TEST

START_TEST(nor_is_one_given_that_only_a_record_names)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_STARTUP_PROFILER);
    uint64_t kept = kept_one(world)->kept;

    world_drop_store(world);
    restart(world);
    while (n_kept(world) == 0)
        ck_assert(world_serve_one(runtime));
    ck_assert_uint_gt(kept_one(world)->kept, kept);
    world_free(world);
}
END_TEST

/* Its time is not given anew, and what came in time counts whenever it is looked at. */
START_TEST(the_deadline_goes_on)
{
    for (size_t is_answered = 0; is_answered < 2; is_answered++) {
        struct world *world = world_keeping(whole);
        struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);

        runtime->is_stuck = !is_answered;
        if (is_answered)
            answers_nobody(runtime);
        world_stall(world, span_from_s(60));
        world->is_network_slow = true;
        restart(world);
        world_pass(world, span_from_us(0), false);
        world_hear(world);
        ck_assert_int_ge(world_find(world, "aaaaaaaa")->state, RUNTIME_RESUMING);
        runtime->is_stuck = false;
        ends(world, runtime, is_answered ? and(start, HOOKS ", resume") : and(start, "resume"),
             is_answered ? OUTCOME_APPLIED : OUTCOME_PARTIAL);
        world_free(world);
    }
}
END_TEST

/* It is not known on which step it waits, but it can be resumed. */
START_TEST(without_its_policy_it_is_only_resumed)
{
    struct world *world = world_keeping(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);

    world->are_policies_lost = true;
    answers_nobody(runtime);
    restart(world);
    ends(world, runtime, and(start, HOOKS ", resume"), OUTCOME_UNKNOWN);
    world_free(world);
}
END_TEST

/* As a daemon leaves it that dies while it writes: the newest half, or what was there before. */
static void tear(uint8_t slot[static RECORD_SLOT_SIZE], bool is_newest)
{
    bool is_second_newest = slot[RECORD_MARK_SIZE] > slot[0];

    slot[(is_second_newest == is_newest ? RECORD_MARK_SIZE : 0) + 6] ^= 1;
}

/* Nothing is sent there, and it connects again. */
START_TEST(what_no_record_names_is_hung_up)
{
    enum {
        OTHER_NUMBER,
        OTHER_PROCESS,
        OTHER_PROCESS_TOO,
        NO_RECORD,
        TORN,
        TORN_BEFORE,
        NO_RECORDS,
        HOWS
    };

    for (int how = 0; how < HOWS; how++) {
        struct world *world = world_keeping(whole);
        struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);
        struct world_connection *connection = kept_one(world);

        if (how == OTHER_NUMBER)
            connection->kept += 5;
        else if (how == NO_RECORD)
            memset(world->marks, 0, sizeof world->marks);
        else if (how == TORN || how == TORN_BEFORE)
            tear(world->marks[0], how == TORN);
        runtime->process->pid += how == OTHER_PROCESS ? -1 : how == OTHER_PROCESS_TOO;
        world_restart(world, how == NO_RECORDS ? BROKER_HAS_NO_RECORDS : BROKER_TRUSTS_RECORDS);
        runtime->process->pid -= how == OTHER_PROCESS ? -1 : how == OTHER_PROCESS_TOO;
        ck_assert(connection->is_closed);
        ck_assert_uint_eq(connection->n_messages, 1);
        ck_assert_uint_eq(n_kept(world), 0);
        world_pass(world, span_from_s(10), true);
        ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
        /* With no record it was never planned. */
        ck_assert_uint_eq(runtime->n_hooks, how == NO_RECORD ? 1 : 0);
        world_free(world);
    }
}
END_TEST

/* The newest mark of the first slot says that of its first step, and of all others that nothing was
 * done. */
static void forge(struct world *world, enum record_step step)
{
    struct record record;
    uint8_t mark[RECORD_MARK_SIZE];
    size_t n_steps = 0;

    ck_assert(record_read(world->marks[0], &record));
    for (size_t i = 0; i < record.n_runs; i++)
        n_steps += record.runs[i].n;
    record.n_runs = 0;
    record.sequence++;
    for (size_t i = 0; i < n_steps; i++)
        record_add_step(&record, i == 0 ? step : RECORD_STEP_PENDING);
    record_write(&record, mark);
    record_put(world->marks[0], mark);
}

/* As when memory ran out for the message, or by a fault of ours. */
START_TEST(where_nothing_is_in_flight_nothing_is_awaited)
{
    for (size_t is_sent = 0; is_sent < 2; is_sent++) {
        struct world *world = world_keeping(whole);
        struct world_runtime *runtime = gets_to(world, COMMAND_STARTUP_PROFILER);
        struct world_connection *connection = kept_one(world);

        forge(world, is_sent ? RECORD_STEP_SENT : RECORD_STEP_PENDING);
        restart(world);
        ck_assert(connection->is_closed);
        ck_assert_uint_eq(n_kept(world), 0);
        world_pass(world, span_from_s(10), true);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome,
                         is_sent ? OUTCOME_UNKNOWN : OUTCOME_APPLIED);
        ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
        world_free(world);
    }
}
END_TEST

static struct world_runtime *is_held(struct world *world)
{
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->fault = refuses_profiler;
    world_start(runtime);
    world_pass(world, span_from_s(1), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_HELD);
    return runtime;
}

START_TEST(who_is_held_does_not_notice)
{
    struct world *world = world_keeping(HEAD PROFILER HOLD);
    struct world_runtime *runtime = is_held(world);
    struct world_connection *connection = runtime->connections[0];
    struct runtime *seen;

    ck_assert_uint_ne(connection->kept, 0);
    for (int i = 0; i < 3; i++) {
        restart(world);
        world_pass(world, span_from_s(1), true);
        ck_assert(!connection->is_closed && runtime->connections[0] == connection);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_HELD);
        ck_assert_str_eq(attributes_text(&world_find(world, "aaaaaaaa")->attributes, ATTRIBUTE_EXE),
                         "/app");
        ck_assert_uint_ne(runtime->process->held, 0);
    }
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_resume(seen, world->now), BROKER_DONE);
    world_settle(world);
    /* From then on nothing more of it is to be gone on with. */
    ck_assert_uint_eq(n_kept(world), 0);
    ends(world, runtime, and(start, "unset ONE, resume"), OUTCOME_ROLLED_BACK);
    world_free(world);
}
END_TEST

/* By a rule that fails before anything was sent. */
START_TEST(who_is_held_from_the_beginning_is_kept)
{
    struct world *world = world_keeping(HEAD "    startup_hooks: [ { path: /nowhere } ]\n" HOLD);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_HELD);
    ck_assert_uint_ne(runtime->connections[0]->kept, 0);
    restart(world);
    ck_assert(!runtime->connections[0]->is_closed);
    world_free(world);
}
END_TEST

/* Its connections come and go meanwhile. */
START_TEST(one_connection_of_who_is_held_is_kept)
{
    struct world *world = world_keeping(HEAD PROFILER HOLD);
    struct world_runtime *runtime = is_held(world);
    struct world_connection *connection = runtime->connections[0], *second;

    world_connect_port(runtime, 0);
    second = runtime->connections[0];
    ck_assert_uint_eq(n_kept(world), 1);
    ck_assert_ptr_eq(kept_one(world), connection);
    world_end(connection);
    ck_assert_ptr_eq(kept_one(world), second);
    world_end(second);
    ck_assert_uint_eq(n_kept(world), 0);
    world_connect_port(runtime, 0);
    ck_assert_ptr_eq(kept_one(world), runtime->connections[0]);
    restart(world);
    ck_assert(!runtime->connections[0]->is_closed);
    world_kill(world, runtime->process);
    ck_assert_uint_eq(n_kept(world), 0);
    world_free(world);
}
END_TEST

/* Neither all of them nor one user takes more than there is. */
START_TEST(no_more_are_kept_than_may_be)
{
    struct world *world = world_new_keeping(HEAD HOOK, 1000, 8);
    static const uint32_t users[] = {1, 2, 3, 4, 5};

    for (size_t i = 0; i < 3 * ARRAY_LENGTH(users); i++) {
        char cookie[16];
        struct world_runtime *runtime;

        snprintf(cookie, sizeof cookie, "%08zx", i + 1);
        runtime = runtime_in(world, cookie);
        runtime->process->uid = 1000 + users[i / 3];
        world_start(runtime);
        for (int n = 0; n < 3; n++)
            ck_assert(world_serve_one(runtime));
        ck_assert(runtime->connections[0]->message);
        ck_assert_int_eq(runtime->connections[0]->kept != 0, i % 3 < 2 && i / 3 < 4);
    }
    /* What is not kept is applied all the same. */
    world_pass(world, span_from_s(1), true);
    ck_assert_uint_eq(broker_count(world->broker, RUNTIME_RUNNING), 15);
    ck_assert_uint_eq(n_kept(world), 0);
    world_free(world);
}
END_TEST

/* Held for somebody who asked a daemon for it that leaves all to the next one, which has only the
 * record that says resumed. */
START_TEST(who_may_run_is_not_kept)
{
    struct world *world = world_keeping(HEAD);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct runtime *seen;

    world_start(runtime);
    while (!runtime->is_resumed[0])
        ck_assert(world_serve_one(runtime));
    restart(world);
    world_stop(world, BROKER_STOP_KEEP);
    world_connect_port(runtime, 0);
    world_settle(world);
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_hold(seen, span_from_s(60), world->now), BROKER_DONE);
    world_pass(world, span_from_s(5), false);
    ck_assert_int_eq(seen->state, RUNTIME_HELD);
    ck_assert_uint_eq(n_kept(world), 0);
    world_free(world);
}
END_TEST

START_TEST(without_a_keeper_nothing_is_kept)
{
    struct world *world = world_new(whole);
    struct world_runtime *runtime = gets_to(world, COMMAND_APPLY_STARTUP_HOOK);

    ck_assert_uint_eq(n_kept(world), 0);
    restart(world);
    ends(world, runtime, and(start, "kind, info3, resume"), OUTCOME_PARTIAL);
    world_free(world);
}
END_TEST

UNIT_TESTS(where_nothing_is_in_flight_nothing_is_awaited, steps_that_are_sent_once_are_kept,
           an_answer_that_was_kept_is_read, it_is_read_before_anything_else_is_sent,
           it_comes_in_any_pieces, what_is_no_answer_is_a_lost_one, a_refusal_that_was_kept_is_one,
           a_refusal_in_the_start_up_race_is_none, it_is_kept_over_any_number_of_daemons,
           every_number_is_a_new_one, nor_is_one_given_that_only_a_record_names,
           who_is_held_from_the_beginning_is_kept, the_deadline_goes_on,
           without_its_policy_it_is_only_resumed, what_no_record_names_is_hung_up,
           who_is_held_does_not_notice, one_connection_of_who_is_held_is_kept,
           no_more_are_kept_than_may_be, who_may_run_is_not_kept, without_a_keeper_nothing_is_kept);
