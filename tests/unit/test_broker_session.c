/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The session in which a runtime says what it loaded: when it is opened, read,
 * stopped and given up, and that nobody waits for it.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/hresult.h"
#include "lib/proof.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_nettrace.h"

#define HEAD                                                            \
    "version: 1\n"                                                      \
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n" \
    "control: { path: /run/diagport/control.sock }\n"                   \
    "rules:\n"                                                          \
    "  - name: r\n"                                                     \
    "    match: all\n"
#define LIMITED "limits: { connections_per_user: 100 }\n" HEAD
#define PROFILER                                                                              \
    "    profilers: [ { clsid: \"{d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e61}\", path: /opt/p.so, " \
    "primer: never } ]\n"
#define HOOK    "    startup_hooks: [ { path: /opt/a.dll } ]\n"
#define AUTO    "    verify: auto\n"
#define RECEIPT "    verify: receipt\n"

static const uint32_t first[] = {0};
static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
};

static struct world_runtime *runtime_in(struct world *world, const char *cookie)
{
    struct world_process *process =
        world_process(world, "/app", "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0");

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    return world_runtime(world, process, cookie, first, 1);
}

static const struct step *step_at(struct world *world, const char *cookie, size_t place)
{
    const struct runtime *runtime = world_find(world, cookie);

    ck_assert_uint_gt(runtime->plan.n_steps, place);
    return &runtime->plan.steps[place];
}

/* Its profiler was loaded, and it goes on saying things. */
static struct bytes said_loaded(void)
{
    struct bytes stream = unit_nettrace_recorded("loaded", 10);

    /* Without its end. */
    stream.length -= 40;
    return stream;
}

START_TEST(it_is_opened_last_and_stopped_when_all_is_known)
{
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct bytes stream = said_loaded();

    runtime->said = stream.data;
    runtime->said_length = stream.length;
    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, profiler /opt/p.so, CollectTracing2, resume, StopTracing");
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_LOADED);
    ck_assert_uint_eq(broker_counters(world->broker)->proofs[PROOF_LOADED], 1);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    ck_assert_ptr_null(world_find(world, "aaaaaaaa")->session);
    /* It has its one port again. */
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 1);
    broker_check(world->broker);
    world_free(world);
    bytes_deinit(&stream);
}
END_TEST

/* Nothing is said: it ends in its time, and what was sent stays unknown. */
START_TEST(silence_ends)
{
    struct world *world = world_new(HEAD PROFILER HOOK AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    world_start(runtime);
    world_serve(world);
    ck_assert_str_eq(world_story(runtime),
                     "kind, info3, profiler /opt/p.so, hook /opt/a.dll, CollectTracing2, resume");
    ck_assert_ptr_nonnull(world_find(world, "aaaaaaaa")->session);
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 1)->proof, PROOF_OPEN);
    world_pass(world, span_from_us(SESSION_TIME.us + 1000), true);
    ck_assert_ptr_nonnull(strstr(world_story(runtime), "resume, StopTracing"));
    ck_assert_ptr_null(world_find(world, "aaaaaaaa")->session);
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_UNKNOWN);
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 1)->proof, PROOF_UNKNOWN);
    ck_assert_uint_eq(broker_counters(world->broker)->proofs[PROOF_UNKNOWN], 2);
    world_free(world);
}
END_TEST

static enum world_fault fault_of(struct world_runtime *runtime, const struct world_command *command,
                                 uint32_t *ret_hresult)
{
    const enum world_fault *faults = runtime->context;

    *ret_hresult = HRESULT_FAIL;
    if (command->id == COMMAND_COLLECT_TRACING_2)
        return faults[0];
    return command->id == COMMAND_STOP_TRACING ? faults[1] : WORLD_ANSWERS;
}

/* However it is answered, the runtime is resumed in time, and once. */
START_TEST(nobody_waits_for_a_session)
{
    static const enum world_fault ways[][2] = {
        {WORLD_REFUSES, WORLD_ANSWERS},   {WORLD_READS_ONLY, WORLD_ANSWERS},
        {WORLD_CLOSES, WORLD_ANSWERS},    {WORLD_ANSWERS_GARBAGE, WORLD_ANSWERS},
        {WORLD_ANSWERS, WORLD_REFUSES},   {WORLD_ANSWERS, WORLD_READS_ONLY},
        {WORLD_ANSWERS, WORLD_CLOSES},    {WORLD_ANSWERS, WORLD_ANSWERS_GARBAGE},
        {WORLD_ANSWERS_HALF, WORLD_DIES},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(ways); i++) {
        struct world *world = world_new(HEAD PROFILER AUTO "    command_timeout: 100ms\n");
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
        const struct runtime *seen;

        runtime->fault = fault_of;
        runtime->context = (void *)(uintptr_t)ways[i];
        world_start(runtime);
        world_pass(world, span_from_ms(500), true);
        seen = world_find(world, "aaaaaaaa");
        ck_assert_int_eq(seen->state, RUNTIME_RUNNING);
        ck_assert_int_eq(seen->outcome, OUTCOME_APPLIED);
        world_pass(world, span_from_s(10), true);
        ck_assert_ptr_null(seen->session);
        ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_UNKNOWN);
        ck_assert_ptr_nonnull(step_at(world, "aaaaaaaa", 0)->proof_why);
        ck_assert_uint_eq(world->broker->n_sessions, 0);
        broker_check(world->broker);
        world_free(world);
    }
}
END_TEST

/* One that ended is read to the end: what it said last may be why. */
START_TEST(what_was_said_before_the_end_counts)
{
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct bytes stream = unit_nettrace_recorded("initialize-fails", 10);
    const struct step *step;

    world_start(runtime);
    world_serve(world);
    world->is_network_slow = true;
    world_send(runtime->session, stream.data, stream.length);
    world_kill(world, runtime->process);
    broker_process_ended(world->broker, world_find(world, "aaaaaaaa")->process->id, world->now);
    world_settle(world);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_GONE);
    world_hear(world);
    step = step_at(world, "aaaaaaaa", 0);
    ck_assert_int_eq(step->proof, PROOF_NOT_LOADED);
    ck_assert_uint_eq(step->proof_code, HRESULT_FAIL);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    world_free(world);
    bytes_deinit(&stream);
}
END_TEST

struct rule_case {
    const char *policy;
    unsigned major;
    bool has_session;
    const char *why; /* a part of it */
};

/* Beside a profiler on .NET 8 only where the rule says so. */
START_TEST(whom_it_is_opened_for)
{
    static const struct rule_case cases[] = {
        {HEAD PROFILER AUTO, 9, true, NULL},
        {HEAD PROFILER AUTO, 8, false, "may block"},
        {HEAD PROFILER RECEIPT, 8, true, NULL},
        {HEAD HOOK AUTO, 8, true, NULL},
        {HEAD PROFILER "    verify: off\n", 10, false, "verify: off"},
        {HEAD "    env: { A: \"1\" }\n" AUTO, 10, false, NULL},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct world *world = world_new(cases[i].policy);
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
        const char *why;

        runtime->major = cases[i].major;
        world_start(runtime);
        world_serve(world);
        ck_assert_int_eq(runtime->n_sessions, cases[i].has_session);
        why = step_at(world, "aaaaaaaa", 0)->proof_why;
        ck_assert(cases[i].why ? why && strstr(why, cases[i].why) : !why);
        world_free(world);
    }
}
END_TEST

/* Two ports: the session is on one of them, and each gets its Resume. */
START_TEST(it_is_none_of_the_ports)
{
    static const uint32_t both[] = {0, 0};
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_process *process = world_process(world, "/app",
                                                  "DOTNET_DiagnosticPorts=/run/diagport/"
                                                  "runtime.sock;/run/diagport/runtime.sock\0");
    struct world_runtime *runtime;

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    runtime = world_runtime(world, process, "aaaaaaaa", both, 2);
    world_start(runtime);
    world_serve(world);
    ck_assert(runtime->is_resumed[0] && runtime->is_resumed[1]);
    ck_assert_uint_eq(runtime->n_sessions, 1);
    broker_check(world->broker);
    world_free(world);
}
END_TEST

/* Whoever needs a descriptor gets that of a session. */
START_TEST(it_goes_first)
{
    struct world *world = world_new_with(LIMITED PROFILER AUTO, BROKER_TRUSTS_RECORDS, 4);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa"), *other;

    world_start(runtime);
    world_serve(world);
    ck_assert_uint_eq(world->broker->n_sessions, 1);
    other = runtime_in(world, "bbbbbbbb");
    world_start(other);
    world_serve(world);
    ck_assert_uint_eq(world->broker->n_sessions, 0);
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_UNKNOWN);
    ck_assert_int_eq(world_find(world, "bbbbbbbb")->outcome, OUTCOME_APPLIED);
    broker_check(world->broker);
    world_free(world);
}
END_TEST

/* Without end, or longer than any runtime speaks. */
START_TEST(who_says_too_much_is_not_listened_to)
{
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct bytes stream = said_loaded();
    static const uint8_t rest[65536];
    size_t n = 0;

    runtime->said = stream.data;
    /* A block that goes on for ever. */
    runtime->said_length = 102;
    world_start(runtime);
    world_serve(world);
    while (world_find(world, "aaaaaaaa")->session && n < 2 * SESSION_BYTES_MAX) {
        world_send(runtime->session, rest, sizeof rest);
        world_settle(world);
        n += sizeof rest;
    }
    ck_assert_ptr_null(world_find(world, "aaaaaaaa")->session);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->state, RUNTIME_RUNNING);
    world_free(world);
    bytes_deinit(&stream);
}
END_TEST

/* What is sent instead of an answer, byte for byte. */
struct words {
    enum command_id about;
    const void *bytes;
    size_t length;
};

static enum world_fault says(struct world_runtime *runtime, const struct world_command *command,
                             uint32_t *ret_hresult)
{
    const struct words *words = runtime->context;

    *ret_hresult = HRESULT_FAIL;
    if (command->id != words->about)
        return WORLD_ANSWERS;
    if (words->length > 0)
        world_send(runtime->connections[0], words->bytes, words->length);
    return WORLD_READS_ONLY;
}

/* It says OK and opens none: that is its fault, and no memory has run out. */
START_TEST(an_answer_without_a_session)
{
    static const uint8_t answer[] = "DOTNET_IPC_V1\0\x18\0\xff\0\0\0id!!";
    struct words words = {COMMAND_COLLECT_TRACING_2, answer, sizeof answer - 1};
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    const struct broker_counters *counters = broker_counters(world->broker);

    runtime->fault = says;
    runtime->context = &words;
    world_start(runtime);
    world_serve(world);
    ck_assert(!counters->alarms[ALARM_MEMORY]);
    ck_assert_uint_eq(counters->peer_errors[PEER_SENT_BAD_REPLY], 1);
    ck_assert(runtime->is_resumed[0]);
    ck_assert_ptr_nonnull(strstr(step_at(world, "aaaaaaaa", 0)->proof_why, "none that it names"));
    world_free(world);
}
END_TEST

/* Two ports; on one of them the end of the session is asked for and not answered. */
static struct world_runtime *is_asked_to_stop(struct world *world)
{
    static const uint32_t both[] = {0, 1};
    static const enum world_fault faults[] = {WORLD_ANSWERS, WORLD_READS_ONLY};
    struct world_process *process = world_process(world, "/app",
                                                  "DOTNET_DiagnosticPorts=/run/diagport/"
                                                  "runtime.sock;/run/diagport/second.sock\0");
    struct world_runtime *runtime;

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    runtime = world_runtime(world, process, "aaaaaaaa", both, ARRAY_LENGTH(both));
    runtime->fault = fault_of;
    runtime->context = (void *)(uintptr_t)faults;
    world_start(runtime);
    world_serve(world);
    world_pass(world, span_from_us(SESSION_TIME.us + 1000), true);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->flight, FLIGHT_STOP);
    return runtime;
}

/* The end of another one of its connections is not the end of that. */
START_TEST(a_stop_is_waited_for_in_its_time)
{
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = is_asked_to_stop(world);
    const struct runtime *seen = world_find(world, "aaaaaaaa");

    for (size_t i = 0; i < runtime->n_ports; i++) {
        if (runtime->connections[i]->core != seen->busy)
            world_end(runtime->connections[i]);
    }
    world_settle(world);
    ck_assert_uint_eq(seen->n_connections, 1);
    world_pass(world, span_from_us(SESSION_STOP_TIME.us + 1000), false);
    ck_assert_ptr_null(seen->busy);
    ck_assert_uint_eq(world->broker->n_unanswered, 0);
    world_free(world);
}
END_TEST

/* The answer to a stop is not the beginning of a session, and what is still said in the one there
 * is counts. */
START_TEST(what_is_said_after_the_stop_counts)
{
    static const uint8_t answer[] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x10\x32\x54\x76\0\0\0\0";
    struct words words = {COMMAND_STOP_TRACING, answer, sizeof answer - 1};
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct bytes stream = unit_nettrace_recorded("initialize-fails", 10);

    runtime->fault = says;
    runtime->context = &words;
    world_start(runtime);
    world_serve(world);
    world_pass(world, span_from_us(SESSION_TIME.us + 1000), true);
    ck_assert_ptr_nonnull(strstr(world_story(runtime), "StopTracing"));
    world_end(runtime->connections[0]);
    world_settle(world);
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_OPEN);
    world_send(runtime->session, stream.data, stream.length);
    world_settle(world);
    ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_NOT_LOADED);
    ck_assert_uint_eq(world->broker->n_sessions, 0);
    world_free(world);
    bytes_deinit(&stream);
}
END_TEST

START_TEST(an_operator_kills_meanwhile)
{
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = is_asked_to_stop(world);
    struct runtime *seen;

    ck_assert_int_eq(broker_find(world->broker, "aaaaaaaa", &seen), BROKER_FOUND_ONE);
    ck_assert_int_eq(broker_kill(seen, world->now), BROKER_DONE);
    broker_check(world->broker);
    world_settle(world);
    ck_assert(runtime->process->was_killed);
    world_free(world);
}
END_TEST

/* What was read off its threads may have been another runtime's: each of its ports gets one more
 * Resume, and at once, also the one that is asked for the end of the session. */
START_TEST(a_stop_does_not_keep_a_resume_waiting)
{
    static const uint32_t first_port[] = {0};

    for (int is_answered = 0; is_answered < 2; is_answered++) {
        struct world *world = world_new(HEAD PROFILER AUTO);
        struct world_runtime *runtime = is_asked_to_stop(world);
        const struct runtime *seen = world_find(world, "aaaaaaaa");
        unsigned n_taken = runtime->n_taken;

        for (size_t i = 0; is_answered && i < runtime->n_ports; i++) {
            if (runtime->connections[i]->core == seen->busy)
                world_send_status(runtime->connections[i], true, 0);
        }
        world_settle(world);
        ck_assert_ptr_nonnull(seen->busy);
        world_start(world_runtime(world, runtime->process, "bbbbbbbb", first_port, 1));
        world_serve(world);
        ck_assert_uint_eq(runtime->n_taken, n_taken + 2);
        ck_assert_int_eq(runtime->commands[runtime->n_commands - 1].id, COMMAND_RESUME);
        world_free(world);
    }
}
END_TEST

/* Nobody looks for longer than a rule has: a plan all of whose steps are done has not failed. */
START_TEST(a_stall_is_no_failure)
{
    static const enum world_fault faults[] = {WORLD_READS_ONLY, WORLD_ANSWERS};
    static const char *const policies[] = {
        HEAD PROFILER AUTO "    on_failure: kill\n",
        HEAD PROFILER AUTO "    on_failure: hold\n",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(policies); i++) {
        struct world *world = world_new(policies[i]);
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

        runtime->fault = fault_of;
        runtime->context = (void *)(uintptr_t)faults;
        world_start(runtime);
        world_serve(world);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->flight, FLIGHT_SESSION);
        world_stall(world, span_from_s(30));
        world_wake(world);
        world_serve(world);
        ck_assert(!runtime->process->was_killed);
        ck_assert(runtime->is_resumed[0]);
        ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_APPLIED);
        world_free(world);
    }
}
END_TEST

/* They are counted from when they are asked for, not from when they are answered. */
START_TEST(many_are_asked_for_at_once)
{
    enum { SHARE = SESSION_MAX / SESSION_SHARES, N = SHARE + 8 };
    struct world *world = world_new(HEAD HOOK AUTO);
    struct world_runtime *runtimes[N];

    for (size_t i = 0; i < N; i++) {
        char cookie[9];

        snprintf(cookie, sizeof cookie, "%08zx", i + 1);
        runtimes[i] = runtime_in(world, cookie);
        world_start(runtimes[i]);
    }
    /* The same command for all, and then the next one. */
    for (bool is_over = false; !is_over;) {
        is_over = true;
        for (size_t i = 0; i < N; i++)
            is_over &= !world_serve_one(runtimes[i]);
    }
    ck_assert_uint_eq(world->broker->n_sessions, SHARE);
    world_free(world);
}
END_TEST

/* Nobody is over the limit of his user because of what is only there to tell. */
START_TEST(who_comes_goes_before_it)
{
    struct world *world = world_new("limits: { connections_per_user: 3 }\n" HEAD PROFILER AUTO);
    static const char *const cookies[] = {"aaaaaaaa", "bbbbbbbb", "cccccccc"};

    for (size_t i = 0; i < ARRAY_LENGTH(cookies); i++) {
        struct world_runtime *runtime = runtime_in(world, cookies[i]);

        world_start(runtime);
        world_serve(world);
        ck_assert_ptr_nonnull(world_find(world, cookies[i]));
        ck_assert_int_eq(world_find(world, cookies[i])->outcome, OUTCOME_APPLIED);
    }
    ck_assert_uint_eq(broker_counters(world->broker)->peer_errors[PEER_OVER_LIMIT], 0);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 3);
    world_free(world);
}
END_TEST

/* It ended and is forgotten, and with it the policy that names its hooks: what is still in its
 * session is nobody's. */
START_TEST(what_a_forgotten_runtime_said)
{
    struct world *world = world_new(HEAD HOOK AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct world_runtime *other = runtime_in(world, "bbbbbbbb");
    struct bytes stream = unit_nettrace_recorded("hook", 10);

    world_start(runtime);
    world_serve(world);
    ck_assert_uint_eq(world->broker->n_sessions, 1);
    /* The world keeps that many, and the daemon none. */
    for (int i = 0; i < WORLD_POLICIES_MAX; i++)
        ck_assert(world_set_policy(world, "limits: { history: { records: 1 } }\n" HEAD HOOK AUTO));
    world_start(other);
    world_serve(world);
    world->is_network_slow = true;
    world_send(runtime->session, stream.data, stream.length);
    world_kill(world, runtime->process);
    broker_process_ended(world->broker, world_find(world, "aaaaaaaa")->process->id, world->now);
    world_kill(world, other->process);
    broker_process_ended(world->broker, world_find(world, "bbbbbbbb")->process->id, world->now);
    ck_assert_ptr_null(world_find(world, "aaaaaaaa"));
    world_hear(world);
    ck_assert_uint_eq(broker_counters(world->broker)->n_connections, 0);
    world_free(world);
    bytes_deinit(&stream);
}
END_TEST

/* A session goes with its daemon, and there is no second one. */
START_TEST(the_next_daemon_does_not_ask_again)
{
    static const enum world_fault faults[] = {WORLD_READS_ONLY, WORLD_ANSWERS};
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->fault = fault_of;
    runtime->context = (void *)(uintptr_t)faults;
    world_start(runtime);
    world_serve(world);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->flight, FLIGHT_SESSION);
    runtime->fault = NULL;
    world_restart(world, BROKER_TRUSTS_RECORDS);
    world_serve(world);
    ck_assert(runtime->is_resumed[0]);
    ck_assert_int_eq(world_find(world, "aaaaaaaa")->outcome, OUTCOME_APPLIED);
    ck_assert_ptr_nonnull(step_at(world, "aaaaaaaa", 0)->proof_why);
    ck_assert_uint_eq(runtime->n_sessions, 0);
    world_free(world);
}
END_TEST

/* A daemon that goes away starts nothing new, and does not wait for what is only told. */
START_TEST(who_stops_asks_for_no_end)
{
    static const enum world_fault faults[] = {WORLD_ANSWERS, WORLD_READS_ONLY};
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

    runtime->fault = fault_of;
    runtime->context = (void *)(uintptr_t)faults;
    world_start(runtime);
    world_serve(world);
    ck_assert_uint_eq(world->broker->n_sessions, 1);
    world_stop(world, BROKER_STOP_RESUME);
    ck_assert(broker_is_quiet(world->broker));
    world_pass(world, span_from_us(SESSION_TIME.us + 1000), true);
    ck_assert(broker_is_quiet(world->broker));
    ck_assert_ptr_null(strstr(world_story(runtime), "StopTracing"));
    world_free(world);
}
END_TEST

/* The stream right behind the answer and before Resume, in two pieces of all sizes. */
START_TEST(what_is_said_at_once)
{
    static const uint8_t answer[] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\x10\x32\x54\x76\0\0\0\0";
    enum { ANSWER_SIZE = sizeof answer - 1, AROUND = 40 };
    struct bytes stream = unit_nettrace_recorded("loaded", 10), said;
    struct words words = {.about = COMMAND_COLLECT_TRACING_2};

    bytes_init(&said, SIZE_MAX - 1);
    bytes_put_run(&said, answer, ANSWER_SIZE);
    bytes_put_run(&said, stream.data, stream.length);
    words.bytes = said.data;
    words.length = said.length;
    for (size_t size = 1; size < ANSWER_SIZE + AROUND; size++) {
        struct world *world = world_new(HEAD PROFILER AUTO);
        struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");

        runtime->fault = says;
        runtime->context = &words;
        world_start(runtime);
        while (!strstr(world_story(runtime), "CollectTracing2")) {
            world->is_network_slow = strstr(world_story(runtime), "profiler") != NULL;
            ck_assert(world_serve_one(runtime) || world->is_network_slow);
            if (world->is_network_slow && !strstr(world_story(runtime), "CollectTracing2"))
                world_deliver_all(world);
        }
        ck_assert(world_deliver(runtime->connections[0], size));
        world_settle_all_but_queues(world);
        world_hear(world);
        ck_assert_int_eq(step_at(world, "aaaaaaaa", 0)->proof, PROOF_LOADED);
        ck_assert_uint_eq(world->broker->n_sessions, 0);
        world_connect_port(runtime, 0);
        world_serve(world);
        ck_assert(runtime->is_resumed[0]);
        world_free(world);
    }
    bytes_deinit(&said);
    bytes_deinit(&stream);
}
END_TEST

enum event {
    EVENT_DESCRIPTORS,
    EVENT_HOLD,
    EVENT_RESUME,
    EVENT_KILL,
    EVENT_RELOAD,
    EVENT_STOP_KEEP,
    EVENT_STOP_RESUME,
    EVENT_RESTART,
    EVENT_STALL,
    EVENT_PORT_ENDS,
    EVENT_SESSION_ENDS,
    EVENT_DEATH,
    EVENT_EXEC,
    EVENTS,
};

static void end_if_open(struct world_connection *connection)
{
    if (connection && !connection->is_closed && !connection->has_ended)
        world_end(connection);
}

static void happens(enum event event, struct world *world, struct world_runtime *runtime)
{
    struct runtime *seen;
    bool is_there = broker_find(world->broker, "aaaaaaaa", &seen) == BROKER_FOUND_ONE;

    switch (event) {
    case EVENT_DESCRIPTORS:
        broker_descriptors_ran_out(world->broker, world->now);
        break;
    case EVENT_HOLD:
        if (is_there)
            (void)broker_hold(seen, span_from_s(20), world->now);
        break;
    case EVENT_RESUME:
        if (is_there)
            (void)broker_resume(seen, world->now);
        break;
    case EVENT_KILL:
        if (is_there)
            (void)broker_kill(seen, world->now);
        break;
    case EVENT_RELOAD:
        ck_assert(world_set_policy(world, HEAD HOOK AUTO));
        break;
    case EVENT_STOP_KEEP:
        world_stop(world, BROKER_STOP_KEEP);
        world_restart(world, BROKER_TRUSTS_RECORDS);
        break;
    case EVENT_STOP_RESUME:
        world_stop(world, BROKER_STOP_RESUME);
        break;
    case EVENT_RESTART:
        world_restart(world, BROKER_TRUSTS_RECORDS);
        break;
    case EVENT_STALL:
        world_stall(world, span_from_s(30));
        world_wake(world);
        break;
    case EVENT_PORT_ENDS:
        end_if_open(runtime->connections[0]);
        break;
    case EVENT_SESSION_ENDS:
        end_if_open(runtime->session);
        break;
    case EVENT_DEATH:
        world_kill(world, runtime->process);
        break;
    case EVENT_EXEC:
        end_if_open(runtime->connections[0]);
        end_if_open(runtime->session);
        world_start(world_runtime(world, runtime->process, "bbbbbbbb", first, 1));
        break;
    case EVENTS:
        break;
    }
    world_settle(world);
    if (runtime->process->was_killed)
        world_kill(world, runtime->process);
}

static const enum world_fault habits[][2] = {
    {WORLD_ANSWERS, WORLD_ANSWERS},
    {WORLD_ANSWERS, WORLD_READS_ONLY},
    {WORLD_READS_ONLY, WORLD_ANSWERS},
    {WORLD_ANSWERS_HALF, WORLD_CLOSES},
};

/* After how many commands; and whether its profiler is spoken of. */
static void let_happen(enum event event, unsigned after, const enum world_fault habit[static 2],
                       bool is_said)
{
    struct world *world = world_new(HEAD PROFILER AUTO);
    struct world_runtime *runtime = runtime_in(world, "aaaaaaaa");
    struct bytes stream = said_loaded();
    const struct runtime *seen;

    runtime->fault = fault_of;
    runtime->context = (void *)(uintptr_t)habit;
    runtime->said = stream.data;
    runtime->said_length = is_said ? stream.length : 0;
    world_start(runtime);
    for (unsigned i = 0; i < after; i++) {
        if (!world_serve_one(runtime))
            world_pass(world, span_from_ms(1200), false);
    }
    happens(event, world, runtime);
    world_pass(world, span_from_s(60), true);
    seen = world_find(world, "aaaaaaaa");
    ck_assert_msg(runtime->is_resumed[0] || runtime->process->is_dead || event == EVENT_EXEC,
                  "event %u after %u: %s", event, after, world_story(runtime));
    ck_assert_msg(world->broker->n_sessions == 0 && world->broker->n_unanswered == 0,
                  "event %u after %u is not over: %s", event, after, world_story(runtime));
    for (size_t i = 0; seen && i < seen->plan.n_steps; i++)
        ck_assert_msg(!proof_is_about(&seen->plan.steps[i]) ||
                          seen->plan.steps[i].proof != PROOF_OPEN,
                      "event %u after %u leaves it open: %s", event, after, world_story(runtime));
    world_free(world);
    bytes_deinit(&stream);
}

/* At each moment of a life with a session: nobody hangs, and nothing of it stays. */
START_TEST(whatever_happens)
{
    for (unsigned after = 0; after < 9; after++) {
        for (size_t i = 0; i < ARRAY_LENGTH(habits); i++) {
            let_happen((enum event)_i, after, habits[i], true);
            let_happen((enum event)_i, after, habits[i], false);
        }
    }
}
END_TEST

void unit_add_tests(TCase *tests)
{
    const TTest *const once[] = {it_is_opened_last_and_stopped_when_all_is_known,
                                 silence_ends,
                                 nobody_waits_for_a_session,
                                 what_was_said_before_the_end_counts,
                                 whom_it_is_opened_for,
                                 it_is_none_of_the_ports,
                                 it_goes_first,
                                 who_says_too_much_is_not_listened_to,
                                 an_answer_without_a_session,
                                 a_stop_is_waited_for_in_its_time,
                                 what_is_said_after_the_stop_counts,
                                 an_operator_kills_meanwhile,
                                 a_stop_does_not_keep_a_resume_waiting,
                                 a_stall_is_no_failure,
                                 many_are_asked_for_at_once,
                                 who_comes_goes_before_it,
                                 what_a_forgotten_runtime_said,
                                 the_next_daemon_does_not_ask_again,
                                 who_stops_asks_for_no_end,
                                 what_is_said_at_once};

    for (size_t i = 0; i < ARRAY_LENGTH(once); i++)
        tcase_add_test(tests, once[i]);
    tcase_add_loop_test(tests, whatever_happens, 0, EVENTS);
}
