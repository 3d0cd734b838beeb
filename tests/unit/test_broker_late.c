/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may still get a plan: a runtime that is running, or of which nobody can
 * tell, gets Resume and nothing else; and over a restart of the daemon nobody
 * gets a plan twice.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"

#define RULE                                                                                      \
    "rules: [ { name: r, match: all, env: { ONE: \"1\" }, startup_hooks: [ { path: /opt/a.dll } " \
    "] } ]\n"

#define OURS "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0"

static const char policy[] = HEAD RULE;
static const uint32_t first[] = {0};
static const struct world_file files[] = {
    {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/run/diagport/runtime.sock", .mode = 0140666, .inode = 100},
    {.path = "/srv/ours.sock", .mode = 0140666, .inode = 100},
    {.path = "/tmp/monitor.sock", .mode = 0140666, .inode = 7},
};

static const char planned[] = "kind, info3, env ONE=1, hook /opt/a.dll, resume";

static struct world_runtime *runtime_in(struct world *world, const char *environ)
{
    struct world_process *process = world_process(world, "/app", environ);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, "aaaaaaaa", first, 1);
}

static void gets(struct world *world, struct world_runtime *runtime, const char *story,
                 enum runtime_outcome outcome)
{
    world_start(runtime);
    world_pass(world, span_from_s(20), true);
    ck_assert_str_eq(world_story(runtime), story);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, outcome);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
}

START_TEST(who_runs_gets_resume)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);

    runtime->process->picture = WORLD_RUNNING;
    gets(world, runtime, "resume", OUTCOME_LATE);
    world_free(world);
}
END_TEST

START_TEST(who_does_not_suspend_gets_resume)
{
    static const char *const environs[] = {
        "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock,nosuspend\0",
        "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock,NoSuspend;/tmp/x,nosuspend\0",
        "COMPlus_DiagnosticPorts=/run/diagport/runtime.sock,nosuspend\0",
        "DOTNET_DiagnosticPorts=\0COMPlus_DiagnosticPorts=/run/diagport/runtime.sock,nosuspend\0",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(environs); i++) {
        struct world *world = world_new(policy);
        struct world_runtime *runtime = runtime_in(world, environs[i]);

        runtime->suspends[0] = false;
        gets(world, runtime, "resume", OUTCOME_LATE);
        world_free(world);
    }
}
END_TEST

/* In a list of both kinds the entry that is our socket decides, as the process sees its path. */
START_TEST(the_entry_that_is_our_socket_decides)
{
    static const struct {
        const char *environ;
        const char *story;
        enum runtime_outcome outcome;
    } cases[] = {
        {"DOTNET_DiagnosticPorts=/run/diagport/runtime.sock;/tmp/monitor.sock,nosuspend\0", planned,
         OUTCOME_APPLIED},
        {"DOTNET_DiagnosticPorts=/srv/ours.sock;/tmp/monitor.sock,nosuspend\0", planned,
         OUTCOME_APPLIED},
        {"DOTNET_DiagnosticPorts=/srv/ours.sock,nosuspend;/nowhere\0", "resume", OUTCOME_LATE},
        /* None of them is ours, or one is in two modes: nothing that could kill is sent. */
        {"DOTNET_DiagnosticPorts=/nowhere;/tmp/monitor.sock,nosuspend\0", "kind, info3, resume",
         OUTCOME_FAILED},
        {"DOTNET_DiagnosticPorts=/srv/ours.sock,nosuspend;/run/diagport/runtime.sock\0",
         "kind, info3, resume", OUTCOME_FAILED},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct world *world = world_new(policy);

        gets(world, runtime_in(world, cases[i].environ), cases[i].story, cases[i].outcome);
        world_free(world);
    }
}
END_TEST

START_TEST(without_its_port_list_nothing_that_could_kill_is_sent)
{
    struct world *world = world_new(policy);

    gets(world, runtime_in(world, NULL), "kind, info3, environment, resume", OUTCOME_FAILED);
    world_free(world);
}
END_TEST

/* Old and suspended, without a record: it waited for the first start of the daemon. */
START_TEST(who_waited_suspended_gets_its_plan)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);

    runtime->process->age = span_from_s(30);
    gets(world, runtime, planned, OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

START_TEST(who_shows_nothing_gets_a_plan_while_it_is_young)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);

    runtime->process->picture = WORLD_STRANGE;
    runtime->process->age = span_from_ms(2000);
    gets(world, runtime, planned, OUTCOME_APPLIED);
    world_free(world);
    world = world_new(policy);
    runtime = runtime_in(world, OURS);
    runtime->process->picture = WORLD_STRANGE;
    runtime->process->age = span_from_ms(2001);
    gets(world, runtime, "resume", OUTCOME_UNKNOWN);
    world_free(world);
    world = world_new(policy);
    runtime = runtime_in(world, OURS);
    runtime->process->picture = WORLD_UNREADABLE;
    runtime->process->age = span_from_us(-1);
    gets(world, runtime, "resume", OUTCOME_UNKNOWN);
    world_free(world);
}
END_TEST

/* Restarts. */

/* At each point of the plan, from before the first command to after the Resume, with the next one
 * in flight and never taken. */
START_TEST(a_restart_goes_on_with_the_plan)
{
    static const enum runtime_outcome outcomes[] = {
        OUTCOME_APPLIED, OUTCOME_APPLIED, OUTCOME_APPLIED, /* the variable may be sent again */
        OUTCOME_PARTIAL,                                   /* the hook may not */
        OUTCOME_LATE,    OUTCOME_LATE,    OUTCOME_LATE,
    };

    for (size_t n = 0; n < ARRAY_LENGTH(outcomes); n++) {
        struct world *world = world_new(policy);
        struct world_runtime *runtime = runtime_in(world, OURS);
        size_t n_variables = 0, n_hooks = 0;

        world_start(runtime);
        for (size_t i = 0; i < n; i++)
            world_serve_one(runtime);
        world_restart(world, BROKER_TRUSTS_RECORDS);
        world_pass(world, span_from_s(5), true);
        for (size_t i = 0; i < runtime->n_commands; i++) {
            n_variables += runtime->commands[i].id == COMMAND_SET_ENVIRONMENT;
            n_hooks += runtime->commands[i].id == COMMAND_APPLY_STARTUP_HOOK;
        }
        ck_assert_uint_eq(n_variables, 1);
        ck_assert_uint_eq(n_hooks, n == 3 ? 0 : 1);
        ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, outcomes[n]);
        world_free(world);
    }
}
END_TEST

/* A policy that is in force by then is for those who come then. */
START_TEST(a_restart_goes_on_by_the_policy_of_the_plan)
{
    for (size_t is_lost = 0; is_lost < 2; is_lost++) {
        struct world *world = world_new(policy);
        struct world_runtime *runtime = runtime_in(world, OURS);

        world_start(runtime);
        for (size_t i = 0; i < 3; i++)
            world_serve_one(runtime);
        ck_assert(world_set_policy(world, HEAD));
        world->are_policies_lost = is_lost > 0;
        world_restart(world, BROKER_TRUSTS_RECORDS);
        world_pass(world, span_from_s(5), true);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome,
                         is_lost ? OUTCOME_UNKNOWN : OUTCOME_PARTIAL);
        ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
        world_free(world);
    }
}
END_TEST

/* Before its first step nothing can be repeated: whoever is in force decides. */
START_TEST(who_was_only_known_is_decided_about_anew)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);

    world_start(runtime);
    world_serve_one(runtime);
    world->are_policies_lost = true;
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_pass(world, span_from_s(5), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

/* Beside another runtime of its process it is only resumed, and its record says so from then on. */
START_TEST(who_gets_no_plan_any_more_is_recorded_where_it_was)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS), *second;

    world_start(runtime);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    second = world_runtime(world, runtime->process, "bbbbbbbb", first, 1);
    world_start(second);
    world_connect_port(runtime, 0);
    ck_assert(world_serve_one(runtime));
    ck_assert_str_eq(world_story(runtime), "resume");
    world_restart(world, BROKER_TRUSTS_RECORDS);
    runtime->process->picture = WORLD_SUSPENDED;
    world_connect_port(runtime, 0);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime), "resume, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    world_free(world);
}
END_TEST

/* Its time is not given anew with each daemon. */
START_TEST(the_deadline_goes_on_over_restarts)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);
    struct moment begin;

    runtime->is_stuck = true;
    world_start(runtime);
    begin = world->now;
    world_pass(world, span_from_s(2), false);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_connect_port(runtime, 0);
    world_settle(world);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->connected_at.us, begin.us);
    world_pass(world, span_from_s(1), false);
    ck_assert_int_ge(world_find(world, "aaaaaaaa")->state, RUNTIME_RESUMING);
    world_free(world);
}
END_TEST

/* Three daemons, the first of which dies before, or after, it begins to take back what there is no
 * time left to complete, and the second while it asks what it has to know for that. */
START_TEST(a_restart_goes_on_with_taking_back)
{
    static const int64_t at_ms[] = {2450, 2600};

    for (size_t i = 0; i < ARRAY_LENGTH(at_ms); i++) {
        struct world *world =
            world_new(HEAD "rules: [ { name: r, match: all, deadline: 3s, env: { "
                           "A: \"1\", B: { value: \"2\", required: false } } } ]\n");
        struct world_runtime *runtime = runtime_in(world, OURS);

        world_start(runtime);
        while (!world_variable(runtime, "A"))
            ck_assert(world_serve_one(runtime));
        runtime->is_stuck = true;
        world_pass(world, span_from_ms(at_ms[i]), false);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->state,
                         i == 0 ? RUNTIME_APPLYING : RUNTIME_WITHDRAWING);
        world_restart(world, BROKER_TRUSTS_RECORDS);
        world_pass(world, span_from_ms(100), false);
        runtime->is_stuck = false;
        world_connect_port(runtime, 0);
        ck_assert(world_serve_one(runtime));
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_ASKING);
        world_restart(world, BROKER_TRUSTS_RECORDS);
        world_connect_port(runtime, 0);
        world_pass(world, span_from_s(5), true);
        ck_assert_ptr_null(world_variable(runtime, "A"));
        ck_assert_ptr_null(world_variable(runtime, "B"));
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_ROLLED_BACK);
        world_free(world);
    }
}
END_TEST

/* To the next daemon, which goes again and leaves everybody to the one after it. */
static struct runtime *comes_to_one_that_goes(struct world *world, struct world_runtime *runtime)
{
    struct runtime *seen;

    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_stop(world, BROKER_STOP_KEEP);
    world_connect_port(runtime, 0);
    world_settle(world);
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    return seen;
}

/* A daemon that leaves it to the next one is told to hold it: that is no plan. */
START_TEST(who_was_resumed_stays_so_in_the_records)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);
    struct runtime *seen;

    world->lag = span_from_s(60);
    world_start(runtime);
    while (!runtime->is_resumed[0])
        ck_assert(world_serve_one(runtime));
    seen = comes_to_one_that_goes(world, runtime);
    broker_hold(seen, span_from_s(1), world->now);
    world_settle(world);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(5), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    world_free(world);
}
END_TEST

/* Nor is what was done of a plan forgotten for it. */
START_TEST(a_plan_that_is_left_to_the_next_one_stays_as_it_was)
{
    struct world *world =
        world_new(HEAD "rules: [ { name: r, match: all, env: { A: \"1\", B: \"2\" } } ]\n");
    struct world_runtime *runtime = runtime_in(world, OURS);
    struct runtime *seen;

    world_start(runtime);
    while (!world_variable(runtime, "A"))
        ck_assert(world_serve_one(runtime));
    seen = comes_to_one_that_goes(world, runtime);
    ck_assert_int_eq(broker_hold(seen, span_from_s(60), world->now), BROKER_DONE);
    world_settle(world);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(5), true);
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    ck_assert_int_eq(seen->state, RUNTIME_HELD);
    ck_assert_int_eq(broker_resume(seen, world->now), BROKER_DONE);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env A=1, kind, info3, env B=2, resume");
    ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

static void remember(struct world *world, uint32_t slot, const struct record *record)
{
    ck_assert_int_eq(broker_remember(world->broker, slot, record, NULL), 0);
}

/* Its alarm ends with the next record that finds a place. */
START_TEST(without_a_place_for_its_record_nothing_is_applied)
{
    struct world *world = world_new(policy);
    struct world_runtime *first_one = runtime_in(world, OURS), *second, *third;
    const bool *alarms = broker_counters(world->broker)->alarms;

    for (uint32_t slot = 1; slot < RECORD_SLOTS; slot++) {
        struct record record = {.phase = RECORD_BEGUN, .sequence = 1, .pid = 1, .start_time = slot};

        remember(world, slot, &record);
    }
    gets(world, first_one, planned, OUTCOME_APPLIED);
    second = world_runtime(world, world_process(world, "/app", OURS), "bbbbbbbb", first, 1);
    second->process->files = files;
    second->process->n_files = ARRAY_LENGTH(files);
    world_start(second);
    world_pass(world, span_from_s(20), true);
    ck_assert_str_eq(world_story(second), "kind, info3, resume");
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_FAILED);
    ck_assert(alarms[ALARM_RECORDS]);
    world_kill(world, first_one->process);
    world_pass(world, span_from_s(1), true);
    third = world_runtime(world, world_process(world, "/app", OURS), "cccccccc", first, 1);
    third->process->files = files;
    third->process->n_files = ARRAY_LENGTH(files);
    world_start(third);
    world_pass(world, span_from_s(20), true);
    ck_assert_str_eq(world_story(third), planned);
    ck_assert(!alarms[ALARM_RECORDS]);
    world_free(world);
}
END_TEST

/* Until whoever it is about comes back. */
START_TEST(a_policy_that_a_record_names_is_needed)
{
    struct world *world = world_new(policy);
    struct record record = {.phase = RECORD_BEGUN, .sequence = 1, .pid = 1, .policy = {1, 2, 3}};

    ck_assert(!broker_needs_policy(world->broker, record.policy));
    remember(world, 0, &record);
    ck_assert(broker_needs_policy(world->broker, record.policy));
    world_free(world);
}
END_TEST

/* A record that is whole and names a rule, or steps, that its policy does not have. */
static void does_not_fit(bool is_rule)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);
    uint8_t bytes[RECORD_MARK_SIZE];
    struct record record;

    world_start(runtime);
    while (!world_variable(runtime, "ONE"))
        ck_assert(world_serve_one(runtime));
    ck_assert(world_find_record(world, runtime, &record));
    if (is_rule)
        record.rule = 1;
    else
        record.runs[0].n = 100;
    record.sequence++;
    record_write(&record, bytes);
    record_put(world->marks[0], bytes);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "kind, info3, env ONE=1, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_UNKNOWN);
    world_free(world);
}

START_TEST(a_record_that_does_not_fit_is_not_gone_on_with)
{
    does_not_fit(true);
    does_not_fit(false);
}
END_TEST

START_TEST(after_the_end_of_a_runtime_its_record_is_free)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);
    static const uint8_t zero[RECORD_SLOT_SIZE];

    world_start(runtime);
    world_serve(world);
    ck_assert_mem_ne(world->marks[0], zero, sizeof zero);
    world_kill(world, runtime->process);
    world_pass(world, span_from_s(1), true);
    ck_assert_mem_eq(world->marks[0], zero, sizeof zero);
    world_free(world);
}
END_TEST

/* As daemons of earlier versions left them: what comes of it is written where that one is. */
START_TEST(of_two_records_the_one_that_says_resumed_counts)
{
    static const uint8_t zero[RECORD_SLOT_SIZE];

    for (uint32_t slot = 2; slot <= 3; slot++) {
        struct world *world = world_new(policy);
        struct world_runtime *runtime = runtime_in(world, OURS);
        struct record resumed = {.phase = RECORD_RESUMED,
                                 .sequence = 1,
                                 .pid = runtime->process->pid,
                                 .start_time = runtime->process->start_time,
                                 .cookie = runtime->cookie};
        struct record begun = resumed;
        uint8_t bytes[RECORD_MARK_SIZE];

        begun.phase = RECORD_BEGUN;
        begun.sequence = 4;
        record_write(&resumed, bytes);
        record_put(world->marks[slot], bytes);
        for (uint32_t i = 2; i <= 3; i++)
            ck_assert_int_eq(broker_remember(world->broker, i, i == slot ? &resumed : &begun, NULL),
                             0);
        gets(world, runtime, "resume", OUTCOME_LATE);
        world_kill(world, runtime->process);
        world_pass(world, span_from_s(1), true);
        ck_assert_mem_eq(world->marks[slot], zero, sizeof zero);
        world_free(world);
    }
}
END_TEST

/* One of its ports was resumed over a limit before it was known who it is: that is written, too,
 * where the last daemon wrote of it. */
START_TEST(what_is_written_first_of_it_is_written_where_it_was)
{
    struct world *world = world_new(HEAD RULE "limits: { connections_per_user: 1 }\n");
    struct world_runtime *runtime = runtime_in(world, OURS);
    struct world_connection *other;
    struct record record;

    world_start(runtime);
    while (!world_find_record(world, runtime, &record))
        ck_assert(world_serve_one(runtime));
    ck_assert_int_eq(record.phase, RECORD_BEGUN);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    other = world_connect(world, world_process(world, "/app", OURS), 0);
    world_connect_port(runtime, 0);
    ck_assert(world_serve_one(runtime));
    world_end(other);
    world_connect_port(runtime, 0);
    world_pass(world, span_from_s(1), true);
    ck_assert(world_find_record(world, runtime, &record));
    ck_assert_int_eq(record.phase, RECORD_RESUMED);
    /* Two records would be a broken promise. */
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_free(world);
}
END_TEST

/* It was taken for replaced by another program while it had no connection, and comes back to the
 * next daemon. */
START_TEST(who_was_taken_for_replaced_keeps_its_record)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS), *second;
    struct world_command command;

    world_start(runtime);
    world_serve(world);
    world_end(runtime->connections[0]);
    second = world_runtime(world, runtime->process, "bbbbbbbb", first, 1);
    second->process->picture = WORLD_SUSPENDED;
    world_start(second);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_connect_port(runtime, 0);
    ck_assert(world_take_command(runtime->connections[0], &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_LATE);
    world_free(world);
}
END_TEST

/* Damaged records: whoever is older than the daemon may have had its plan. */
START_TEST(without_records_only_the_young_are_planned)
{
    struct world *world = world_new_with(policy, BROKER_DISTRUSTS_RECORDS, 1000);
    struct world_runtime *old = runtime_in(world, OURS), *young;

    old->process->age = span_from_ms(20);
    gets(world, old, "resume", OUTCOME_UNKNOWN);
    young = world_runtime(world, world_process(world, "/app", OURS), "bbbbbbbb", first, 1);
    young->process->files = files;
    young->process->n_files = ARRAY_LENGTH(files);
    young->process->age = span_from_ms(20);
    world_start(young);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(young), planned);
    world_free(world);
}
END_TEST

START_TEST(where_nothing_can_be_recorded_nothing_is_applied)
{
    struct world *world = world_new_with(policy, BROKER_HAS_NO_RECORDS, 1000);

    gets(world, runtime_in(world, OURS), "resume", OUTCOME_UNKNOWN);
    world_free(world);
}
END_TEST

/* Who it is. */

START_TEST(a_claim_that_disagrees_gets_no_plan)
{
    struct world *world = world_new(policy);
    struct world_process *process = world_process(world, "/app", OURS);
    struct world_connection *connection = world_connect(world, process, 0);
    struct guid cookie = world_cookie("aaaaaaaa");
    struct world_command command;

    world_advertise(connection, &cookie, (uint64_t)process->pid + 1);
    ck_assert(world_take_command(connection, &command));
    ck_assert_int_eq(command.id, COMMAND_RESUME);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_UNKNOWN);
    ck_assert_uint_eq(broker_counters(world->broker)->peer_errors[PEER_CLAIMED_WRONG], 1);
    world_free(world);
}
END_TEST

START_TEST(in_a_container_the_inner_pid_is_claimed)
{
    struct world *world =
        world_new(HEAD "rules: [ { name: r, match: { container: any }, env: { ONE: \"1\" } } ]\n");
    struct world_runtime *runtime = runtime_in(world, OURS);

    runtime->process->ns_pid = 1;
    gets(world, runtime, "kind, info3, env ONE=1, resume", OUTCOME_APPLIED);
    world_free(world);
}
END_TEST

START_TEST(who_has_no_pid_here_gets_resume)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS);

    runtime->process->hides_pid = true;
    world_start(runtime);
    world_pass(world, span_from_s(100), true);
    /* Nothing shows that it runs, so it gets a few more. */
    ck_assert_str_eq(world_story(runtime), "resume, resume, resume, resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_UNKNOWN);
    world_end(runtime->connections[0]);
    world_pass(world, span_from_s(60), false);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    world_free(world);
}
END_TEST

START_TEST(a_cookie_of_two_processes_gets_one_plan)
{
    struct world *world = world_new(policy);
    struct world_runtime *honest = runtime_in(world, OURS);
    struct world_runtime *thief = runtime_in(world, OURS);
    struct runtime *found, *both[2];

    world_start(honest);
    world_start(thief);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(honest), planned);
    ck_assert_str_eq(world_story(thief), "resume");
    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &found), BROKER_FOUND_MANY);
    ck_assert_uint_eq(broker_find_all(world->broker, "aaaaaaaa", both, 2), 2);
    ck_assert_ptr_eq(both[0], found);
    ck_assert_ptr_eq(broker_runtime_after(world->broker, both[0]->serial), both[1]);
    ck_assert_uint_eq(broker_find_all(world->broker, "aaaaaaaa", both, 1), 1);
    ck_assert_uint_eq(broker_find_all(world->broker, "bbbbbbbb", both, 2), 0);
    ck_assert_uint_eq(broker_counters(world->broker)->peer_errors[PEER_CLAIMED_WRONG], 1);
    world_free(world);
}
END_TEST

START_TEST(an_exec_is_a_new_runtime)
{
    struct world *world = world_new(policy);
    struct world_runtime *before = runtime_in(world, OURS), *after;

    world_start(before);
    world_serve(world);
    world_end(before->connections[0]);
    before->connections[0] = NULL;
    before->process->picture = WORLD_SUSPENDED;
    after = world_runtime(world, before->process, "bbbbbbbb", first, 1);
    world_start(after);
    world_serve(world);
    ck_assert_str_eq(world_story(after), planned);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_APPLIED);
    /* The old cookie again would be a lie or a mistake: never a second plan. */
    world_connect_port(before, 0);
    world_serve(world);
    ck_assert_str_eq(world_story(before),
                     "kind, info3, env ONE=1, hook /opt/a.dll, resume, resume");
    world_free(world);
}
END_TEST

START_TEST(a_second_runtime_in_a_process_gets_resume)
{
    struct world *world = world_new(policy);
    struct world_runtime *outer = runtime_in(world, OURS), *inner;

    world_start(outer);
    world_serve(world);
    inner = world_runtime(world, outer->process, "bbbbbbbb", first, 1);
    world_start(inner);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(outer), planned);
    ck_assert_str_eq(world_story(inner), "resume");
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_UNKNOWN);
    world_free(world);
}
END_TEST

/* With one descriptor for both of them, each comes when the other is away, and neither has ended.
 */
START_TEST(two_runtimes_that_take_turns_are_two)
{
    struct world *world = world_new(HEAD);
    struct world_process *process = world_process(world, "/app", OURS);
    struct guid cookies[] = {world_cookie("aaaaaaaa"), world_cookie("bbbbbbbb")};
    struct world_command command;

    for (size_t i = 0; i < 20; i++) {
        struct world_connection *connection = world_connect(world, process, 0);

        world_advertise(connection, &cookies[i % 2], (uint64_t)process->pid);
        if (world_take_command(connection, &command))
            world_send_status(connection, true, 0);
        world_end(connection);
    }
    ck_assert_uint_le(broker_counters(world->broker)->n_seen, 4);
    ck_assert_int_lt(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    ck_assert_int_lt(world_find(world, "bbbbbbbb")->state, RUNTIME_GONE);
    world_free(world);
}
END_TEST

/* What was sent to it before is not known to be nothing, because the daemon goes. */
START_TEST(who_comes_back_to_a_daemon_that_goes_is_not_called_untouched)
{
    struct world *world = world_new(policy);
    struct world_runtime *runtime = runtime_in(world, OURS), *second;

    world_start(runtime);
    for (size_t i = 0; i < 3; i++)
        ck_assert(world_serve_one(runtime));
    world_end(runtime->connections[0]);
    second = world_runtime(world, runtime->process, "bbbbbbbb", first, 1);
    world_start(second);
    world_end(second->connections[0]);
    world_stop(world, BROKER_STOP_RESUME);
    world_connect_port(runtime, 0);
    world_serve(world);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_UNKNOWN);
    ck_assert_int_eq(runtime->process->picture, WORLD_RUNNING);
    world_free(world);
}
END_TEST

/* Facts that do not come. */

START_TEST(whose_facts_never_come_is_resumed_at_its_deadline)
{
    struct world *world = world_new(HEAD "defaults: { deadline: 3s }\n" RULE);
    struct world_runtime *runtime = runtime_in(world, OURS);

    runtime->process->is_silent = true;
    world_start(runtime);
    world_pass(world, span_from_us(2999999), true);
    ck_assert_uint_eq(runtime->n_commands, 0);
    world_pass(world, span_from_us(1), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    world_answer_late(world);
    world_pass(world, span_from_s(5), true);
    ck_assert_str_eq(world_story(runtime), "resume");
    world_free(world);
}
END_TEST

UNIT_TESTS(who_runs_gets_resume, who_does_not_suspend_gets_resume,
           the_entry_that_is_our_socket_decides,
           without_its_port_list_nothing_that_could_kill_is_sent,
           who_waited_suspended_gets_its_plan, who_shows_nothing_gets_a_plan_while_it_is_young,
           a_restart_goes_on_with_the_plan, a_restart_goes_on_by_the_policy_of_the_plan,
           who_was_only_known_is_decided_about_anew,
           who_gets_no_plan_any_more_is_recorded_where_it_was, the_deadline_goes_on_over_restarts,
           a_restart_goes_on_with_taking_back, who_was_resumed_stays_so_in_the_records,
           a_plan_that_is_left_to_the_next_one_stays_as_it_was,
           without_a_place_for_its_record_nothing_is_applied,
           a_policy_that_a_record_names_is_needed, a_record_that_does_not_fit_is_not_gone_on_with,
           after_the_end_of_a_runtime_its_record_is_free,
           of_two_records_the_one_that_says_resumed_counts,
           what_is_written_first_of_it_is_written_where_it_was,
           who_was_taken_for_replaced_keeps_its_record, without_records_only_the_young_are_planned,
           where_nothing_can_be_recorded_nothing_is_applied, a_claim_that_disagrees_gets_no_plan,
           in_a_container_the_inner_pid_is_claimed, who_has_no_pid_here_gets_resume,
           a_cookie_of_two_processes_gets_one_plan, an_exec_is_a_new_runtime,
           a_second_runtime_in_a_process_gets_resume, two_runtimes_that_take_turns_are_two,
           who_comes_back_to_a_daemon_that_goes_is_not_called_untouched,
           whose_facts_never_come_is_resumed_at_its_deadline);
