/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of a runtime's life: its states and lists, its connections, and
 * which room an event belongs to. What is done in a state is the business of
 * runtime_decide.c, runtime_apply.c and runtime_resume.c.
 */

#include "lib/runtime.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/broker_core.h"
#include "lib/facts.h"
#include "lib/procfs.h"

const struct policy_defaults *runtime_keys(const struct runtime *runtime)
{
    return runtime->rule ? &runtime->rule->keys : &runtime->policy->defaults;
}

bool runtime_is_pending(const struct runtime *runtime)
{
    return runtime->state < RUNTIME_RUNNING;
}

static bool is_end(enum runtime_state state)
{
    return state == RUNTIME_GONE || state == RUNTIME_KILLED;
}

bool runtime_has_ended(const struct runtime *runtime)
{
    return is_end(runtime->state);
}

static void join_state(struct runtime *runtime, enum runtime_state state)
{
    struct broker *broker = runtime->broker;

    runtime->state = state;
    TAILQ_INSERT_TAIL(&broker->by_state[state], runtime, in_state);
    broker->n_by_state[state]++;
    if (runtime_is_pending(runtime)) {
        broker->counters.n_pending++;
        runtime->process->user->n_pending++;
    }
}

static void leave_state(struct runtime *runtime)
{
    struct broker *broker = runtime->broker;

    TAILQ_REMOVE(&broker->by_state[runtime->state], runtime, in_state);
    broker->n_by_state[runtime->state]--;
    if (runtime_is_pending(runtime)) {
        broker->counters.n_pending--;
        runtime->process->user->n_pending--;
    }
}

static void fill_notice(const struct runtime *runtime, struct notice *notice, struct moment now)
{
    notice->at = now;
    notice->pid = runtime->pid;
    notice->uid = runtime->uid;
    notice->has_runtime = true;
    notice->cookie = runtime->cookie;
    notice->start_time = runtime->start_time;
    notice->state = runtime_state_name(runtime->state);
    notice->outcome = runtime_outcome_name(runtime->outcome);
}

static void tell_state(struct runtime *runtime, const char *old_state, const char *why,
                       struct moment now)
{
    struct notice notice = {.kind = NOTICE_RUNTIME, .why = why, .old_state = old_state};

    fill_notice(runtime, &notice, now);
    broker_notice(runtime->broker, &notice, runtime->rule ? runtime->rule->name : NULL,
                  attributes_text(&runtime->attributes, ATTRIBUTE_EXE));
}

void runtime_tell_file(struct runtime *runtime, const struct step *step, struct moment now)
{
    struct notice notice = {
        .kind = NOTICE_STEP,
        .step = step_kind_name(step->kind),
        .result = step_result_name(step->result),
        .is_required = step->is_required,
        .hresult = step->hresult,
        .attempts = step->attempts,
        .why = step->why,
    };

    fill_notice(runtime, &notice, now);
    broker_notice(runtime->broker, &notice, runtime->rule ? runtime->rule->name : NULL, step->name);
}

void runtime_tell_step(struct runtime *runtime, const struct step *step, struct moment now)
{
    runtime->broker->counters.steps[step->kind][step->result]++;
    runtime_tell_file(runtime, step, now);
}

void runtime_tell_proof(struct runtime *runtime, const struct step *step, struct moment now)
{
    struct broker *broker = runtime->broker;
    struct notice notice = {
        .kind = NOTICE_PROOF,
        .step = step_kind_name(step->kind),
        .result = step_proof_name(step->proof),
        .is_required = step->is_required,
        .hresult = step->proof_code,
        .why = step->proof_why,
    };

    /* The primer is ours, and is not what was asked for. */
    if (step->kind != STEP_PRIMER)
        broker->counters.proofs[step->proof]++;
    fill_notice(runtime, &notice, now);
    broker_notice(broker, &notice, runtime->rule ? runtime->rule->name : NULL, step->name);
}

/* Nothing tells which of its ports a connection is, so that one that has come says nothing of the
 * next; only its own list does. */
static bool is_waiting(const struct runtime *runtime)
{
    size_t n_wanted = 1;

    if (!runtime_is_pending(runtime) || runtime->state == RUNTIME_HELD ||
        runtime->state == RUNTIME_KILLING)
        return false;
    if (runtime->state >= RUNTIME_RESUMING && runtime->n_suspending > 1 && !runtime->other_ports)
        n_wanted = (size_t)runtime->n_suspending;
    return runtime->n_connections < n_wanted;
}

void runtime_judge_waiting(struct runtime *runtime)
{
    struct broker *broker = runtime->broker;
    bool is_now = is_waiting(runtime);

    if (is_now == runtime->is_waiting)
        return;
    runtime->is_waiting = is_now;
    if (is_now) {
        TAILQ_INSERT_TAIL(&broker->waiting, runtime, in_waiting);
        broker->n_waiting++;
        room_wanted(broker);
    } else {
        TAILQ_REMOVE(&broker->waiting, runtime, in_waiting);
        broker->n_waiting--;
    }
}

void runtime_set_next(struct runtime *runtime, struct moment at)
{
    deadline_set(&runtime->broker->deadlines, &runtime->next, at);
}

void runtime_set_state(struct runtime *runtime, enum runtime_state state, struct moment deadline,
                       const char *why, struct moment now)
{
    const char *old_state = runtime_state_name(runtime->state);
    struct connection *connection;
    bool moves = runtime_has_ended(runtime) != is_end(state); /* in the registry of cookies */

    if (moves)
        identify_unregister(runtime);
    leave_state(runtime);
    join_state(runtime, state);
    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        room_consider(connection);
    }
    if (moves)
        identify_register(runtime);
    runtime_set_next(runtime, deadline);
    runtime_judge_waiting(runtime);
    if (!runtime_is_pending(runtime) && runtime->kept)
        keep_end(runtime->kept);
    keep_held(runtime, now);
    /* What only a plan under way needs. */
    if (state >= RUNTIME_HELD) {
        deadline_stop(&runtime->broker->ends, &runtime->end);
        plan_forget_old_values(&runtime->plan);
        attributes_forget_groups(&runtime->attributes);
    }
    if (state == RUNTIME_WITHDRAWING || state == RUNTIME_HELD || state == RUNTIME_KILLING)
        runtime_mark_progress(runtime, now);
    if (old_state != runtime_state_name(state))
        tell_state(runtime, old_state, why, now);
}

struct runtime *runtime_new(struct broker *broker, struct process *process,
                            struct connection *connection)
{
    struct runtime *runtime = calloc(1, sizeof *runtime);

    if (!runtime)
        return NULL;
    runtime->broker = broker;
    runtime->serial = broker_serial(broker);
    runtime->process = process;
    runtime->pid = process->pid;
    runtime->start_time = process->is_identified ? process->start_time : 0;
    runtime->uid = process->user->uid;
    runtime->cookie = connection->advertise.cookie;
    runtime->claimed_pid = connection->advertise.pid;
    runtime->listener = connection->listener;
    attributes_init(&runtime->attributes);
    runtime->policy = policy_ref(broker->policy);
    runtime->why = "";
    runtime->connected_at = connection->advertised_at;
    runtime->resumed_at = MOMENT_NEVER;
    runtime->ended_at = MOMENT_NEVER;
    runtime->deadline_length = runtime->policy->defaults.deadline;
    runtime->retry_at = MOMENT_NEVER;
    runtime->hold_until = MOMENT_NEVER;
    runtime->n_suspending = -1;
    plan_init(&runtime->plan);
    TAILQ_INIT(&runtime->connections);
    TAILQ_INIT(&runtime->attaches);
    deadline_init(&runtime->end, DEADLINE_RUNTIME_END);
    deadline_init(&runtime->next, DEADLINE_RUNTIME_NEXT);
    deadline_init(&runtime->alive, DEADLINE_RUNTIME_ALIVE);
    broker_enlist(runtime);
    TAILQ_INSERT_TAIL(&process->runtimes, runtime, in_process);
    identify_register(runtime);
    join_state(runtime, RUNTIME_DECIDING);
    deadline_set(&broker->ends, &runtime->end,
                 moment_after(runtime->connected_at, runtime->deadline_length));
    broker->counters.n_seen++;
    TAILQ_INSERT_TAIL(&runtime->connections, connection, in_runtime);
    runtime->n_connections = 1;
    connection->runtime = runtime;
    connection_set_state(connection, CONNECTION_IDLE, MOMENT_NEVER);
    memory_take_slot(runtime);
    return runtime;
}

static void leave_process(struct runtime *runtime, struct moment now)
{
    struct process *process = runtime->process;

    runtime->process = NULL;
    TAILQ_REMOVE(&process->runtimes, runtime, in_process);
    if (runtime->holds_process)
        process_release(runtime->broker, process, now);
    runtime->holds_process = false;
    process_settle(runtime->broker, process);
}

void runtime_free(struct runtime *runtime)
{
    struct broker *broker = runtime->broker;

    assert(!runtime->process && TAILQ_EMPTY(&runtime->connections));
    broker_forget_question(broker, runtime->question);
    leave_state(runtime);
    session_forget_runtime(runtime);
    identify_unregister(runtime);
    broker_delist(runtime);
    deadline_stop(&broker->ends, &runtime->end);
    deadline_stop(&broker->deadlines, &runtime->next);
    deadline_stop(&broker->deadlines, &runtime->alive);
    match_decision_deinit(&runtime->decision);
    attributes_deinit(&runtime->attributes);
    plan_deinit(&runtime->plan);
    attach_free_all(runtime);
    policy_unref(runtime->policy);
    free(runtime->version);
    free(runtime->rid);
    free(runtime->entry_assembly);
    free(runtime->other_ports);
    free(runtime);
}

void runtime_forget_history(struct broker *broker)
{
    const struct policy_limits *limits = &broker->policy->limits;

    while (broker->n_by_state[RUNTIME_GONE] + broker->n_by_state[RUNTIME_KILLED] >
           limits->history_records) {
        struct runtime *oldest = TAILQ_FIRST(&broker->by_state[RUNTIME_GONE]);

        if (!oldest)
            oldest = TAILQ_FIRST(&broker->by_state[RUNTIME_KILLED]);
        /* A killed process whose end was not reported yet still has connections. */
        if (oldest->process)
            return;
        runtime_free(oldest);
    }
}

/* It ended before it was resumed: what became of its plan. */
static void end_plan(struct runtime *runtime, const char *why, struct moment now)
{
    plan_skip_rest(&runtime->plan, "the process ended before it", now);
    if (runtime->outcome == OUTCOME_NONE && !runtime->rule)
        runtime->outcome = OUTCOME_UNKNOWN;
    else if (runtime->outcome == OUTCOME_NONE)
        runtime->outcome = plan_was_sent(&runtime->plan) ? OUTCOME_PARTIAL : OUTCOME_FAILED;
    runtime->why = why;
}

void runtime_end(struct runtime *runtime, const char *why, struct moment now)
{
    struct broker *broker = runtime->broker;
    enum runtime_state state = runtime->state == RUNTIME_KILLED ? RUNTIME_KILLED : RUNTIME_GONE;

    if (!runtime->process)
        return;
    runtime->question = broker_forget_question(broker, runtime->question);
    if (runtime->state < RUNTIME_RESUMING)
        end_plan(runtime, why, now);
    attach_stop(runtime, why, now);
    deadline_stop(&broker->deadlines, &runtime->alive);
    runtime->blocked = BLOCKED_NOT;
    runtime->ended_at = now;
    runtime->busy = NULL;
    runtime->flight = FLIGHT_NONE;
    runtime_set_state(runtime, state, moment_after(now, broker->policy->limits.history_age), why,
                      now);
    while (!TAILQ_EMPTY(&runtime->connections))
        connection_close(TAILQ_FIRST(&runtime->connections), now);
    session_runtime_ended(runtime, now);
    leave_process(runtime, now);
    runtime_forget_history(broker);
}

struct connection *runtime_free_connection(const struct runtime *runtime)
{
    struct connection *connection;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->state == CONNECTION_IDLE)
            return connection;
    }
    return NULL;
}

bool runtime_send(struct runtime *runtime, struct connection *connection,
                  enum runtime_flight flight, enum command_id command, struct bytes *message,
                  struct moment deadline, struct moment now)
{
    assert(!runtime->busy && connection->state == CONNECTION_IDLE);
    if (!connection_send(connection, command, message)) {
        broker_out_of_memory(runtime->broker, now);
        runtime_set_next(runtime, moment_after(now, BROKER_MEMORY_RETRY));
        return false;
    }
    connection_set_state(connection, CONNECTION_BUSY, MOMENT_NEVER);
    runtime->busy = connection;
    runtime->flight = flight;
    runtime->sent_at = now;
    runtime_set_next(runtime, deadline);
    return true;
}

static bool is_resume(enum runtime_flight flight)
{
    return flight == FLIGHT_RESUME || flight == FLIGHT_RESUME_AGAIN;
}

static bool is_session(enum runtime_flight flight)
{
    return flight == FLIGHT_SESSION || flight == FLIGHT_STOP;
}

bool runtime_flies_resume(const struct runtime *runtime)
{
    return is_resume(runtime->flight);
}

void runtime_lose_flight(struct runtime *runtime, struct moment now)
{
    assert(runtime->flight != FLIGHT_NONE && !runtime_flies_resume(runtime));
    connection_close(runtime->busy, now);
}

void runtime_attach(struct runtime *runtime, struct connection *connection, struct moment now)
{
    if (runtime->n_connections >= RUNTIME_CONNECTIONS_MAX) {
        broker_peer_error(runtime->broker, PEER_OVER_LIMIT, &connection->peer, runtime,
                          "it has more connections than any runtime has ports", now);
        connection_be_nameless(connection, &runtime->process->pace, CONNECTION_LEAVING, now);
        return;
    }
    TAILQ_INSERT_TAIL(&runtime->connections, connection, in_runtime);
    runtime->n_connections++;
    connection->runtime = runtime;
    connection_set_state(connection, CONNECTION_IDLE, MOMENT_NEVER);
    runtime_judge_waiting(runtime);
    room_came_back(runtime, connection, now);
    if (keep_held(runtime, now))
        runtime_mark_progress(runtime, now);
    deadline_stop(&runtime->broker->deadlines, &runtime->alive);
    runtime->n_alive_looks = 0;
    /* Another port of it waits: the end of the session is less urgent. */
    if (runtime->flight == FLIGHT_STOP && resume_wanted(runtime))
        runtime_lose_flight(runtime, now);
    runtime_advance(runtime, now);
}

void runtime_give_away(struct runtime *runtime, struct connection *connection, struct moment now)
{
    assert(runtime->busy == connection && connection->kept == 0);
    runtime->busy = NULL;
    runtime->flight = FLIGHT_NONE;
    runtime->blocked = BLOCKED_NOT;
    runtime_set_next(runtime, MOMENT_NEVER);
    connection->runtime = NULL;
    TAILQ_REMOVE(&runtime->connections, connection, in_runtime);
    runtime->n_connections--;
    runtime_judge_waiting(runtime);
    runtime->n_alive_looks = 0;
    runtime_watch_alive(runtime, now);
}

void runtime_watch_alive(struct runtime *runtime, struct moment now)
{
    static const int64_t waits_ms[] = {50, 1000, 5000, 30000, 60000};
    size_t n = runtime->n_alive_looks;
    struct span wait;

    if (runtime->n_connections > 0 || runtime->process->is_held)
        return;
    if (n >= ARRAY_LENGTH(waits_ms))
        n = ARRAY_LENGTH(waits_ms) - 1;
    wait = span_from_ms(waits_ms[n]);
    /* Time for it to come back and to be taken for the same one, since it is not looked for. */
    if (!runtime->process->is_identified)
        wait.us = runtime->policy->defaults.deadline.us + waits_ms[1] * 1000;
    runtime->n_alive_looks++;
    deadline_set(&runtime->broker->deadlines, &runtime->alive, moment_after(now, wait));
}

void runtime_hold_process(struct runtime *runtime)
{
    if (runtime->holds_process)
        return;
    runtime->holds_process = true;
    process_hold(runtime->broker, runtime->process);
}

void runtime_release_process(struct runtime *runtime, struct moment now)
{
    if (!runtime->holds_process)
        return;
    runtime->holds_process = false;
    process_release(runtime->broker, runtime->process, now);
}

void runtime_detached(struct runtime *runtime, struct connection *connection, bool was_answered,
                      struct moment now)
{
    bool was_busy = runtime->busy == connection;
    enum runtime_flight flight = runtime->flight;

    runtime_judge_waiting(runtime);
    if (was_busy) {
        runtime->busy = NULL;
        runtime->flight = FLIGHT_NONE;
    }
    if (runtime_has_ended(runtime))
        return;
    /* The next one may be that port again, or another: the count of Resumes begins anew. */
    if (!was_answered)
        runtime->n_ports = 0;
    runtime->n_alive_looks = 0;
    runtime_watch_alive(runtime, now);
    if (keep_held(runtime, now))
        runtime_mark_progress(runtime, now);
    if (was_busy && flight == FLIGHT_STOP && runtime->state == RUNTIME_RUNNING)
        runtime_set_next(runtime, MOMENT_NEVER);
    if (was_busy && is_resume(flight))
        resume_lost(runtime, now);
    else if (was_busy && flight == FLIGHT_ATTACH)
        attach_lost(runtime, now);
    else if (was_busy && flight != FLIGHT_NONE && !is_session(flight))
        apply_lost(runtime, now);
    else if (was_busy)
        runtime_advance(runtime, now);
}

void runtime_answered(struct runtime *runtime, struct connection *connection, struct moment now)
{
    enum runtime_flight flight = runtime->flight;

    assert(runtime->busy == connection);
    runtime->flight = FLIGHT_NONE;
    runtime->blocked = BLOCKED_NOT;
    /* A Resume can be answered while it is being killed, which has a deadline of its own. */
    if (runtime->state != RUNTIME_KILLING)
        runtime_set_next(runtime, MOMENT_NEVER);
    if (is_resume(flight))
        resume_answered(runtime, connection, flight, now);
    else if (flight == FLIGHT_ATTACH)
        attach_answered(runtime, connection, now);
    else if (flight == FLIGHT_SESSION)
        session_refused(connection, now);
    else if (flight != FLIGHT_STOP)
        apply_answered(runtime, connection, now);
}

static bool is_dead(const struct runtime *runtime, const struct facts *facts)
{
    struct procfs_stat stat;

    /* Of a process that cannot be identified nothing can be read, dead or alive. */
    if (!runtime->process->is_identified)
        return false;
    if (facts->stat.error == ENOENT || facts->stat.error == ESRCH)
        return true;
    if (facts->stat.error != 0 || !procfs_read_stat(facts->stat.data, facts->stat.length, &stat))
        return false;
    return stat.has_ended || stat.start_time != runtime->start_time;
}

void runtime_facts(struct runtime *runtime, enum question_purpose purpose, struct facts *facts,
                   struct moment now)
{
    /* Whatever was asked: a look that finds it dead is the last one. */
    if (runtime->n_connections == 0 && is_dead(runtime, facts)) {
        runtime_end(runtime, "its process ended", now);
        return;
    }
    switch (purpose) {
    case QUESTION_IDENTITY:
    case QUESTION_PLAN:
    case QUESTION_SOCKETS:
        decide_facts(runtime, purpose, facts, now);
        return;
    case QUESTION_FILES:
    case QUESTION_PORTS:
    case QUESTION_LOOK:
        resume_facts(runtime, purpose, facts, now);
        return;
    case QUESTION_KILL:
        kill_facts(runtime, facts, now);
        return;
    case QUESTION_ATTACH:
        attach_facts(runtime, facts, now);
        return;
    case QUESTION_ALIVE:
        return;
    }
}

static void look_alive(struct runtime *runtime, struct moment now)
{
    /* What cannot be identified cannot be told from its successor either. */
    if (!runtime->process->is_identified) {
        runtime_end(runtime, "its process cannot be told from another", now);
        return;
    }
    if (!runtime->question &&
        !broker_ask(runtime->broker, QUESTION_ALIVE, NULL, runtime, FACTS_STAT, NULL, 0))
        broker_out_of_memory(runtime->broker, now);
    /* The answer may never come, or say that it lives: then there is another look. */
    runtime_watch_alive(runtime, now);
}

static void state_deadline(struct runtime *runtime, struct moment now)
{
    switch (runtime->state) {
    case RUNTIME_DECIDING:
    case RUNTIME_ASKING:
    case RUNTIME_APPLYING:
    case RUNTIME_WITHDRAWING:
    case RUNTIME_HELD:
    case RUNTIME_KILLING:
        apply_deadline(runtime, now);
        return;
    case RUNTIME_RESUMING:
    case RUNTIME_SETTLING:
    case RUNTIME_RUNNING:
        resume_deadline(runtime, now);
        return;
    case RUNTIME_GONE:
    case RUNTIME_KILLED:
        runtime_free(runtime);
        return;
    }
}

void runtime_deadline(struct runtime *runtime, enum deadline_kind kind, struct moment now)
{
    switch (kind) {
    case DEADLINE_RUNTIME_END:
        runtime->broker->counters.n_deadlines++;
        apply_stop(runtime, "its deadline came", false, now);
        return;
    case DEADLINE_RUNTIME_NEXT:
        state_deadline(runtime, now);
        return;
    case DEADLINE_RUNTIME_ALIVE:
        look_alive(runtime, now);
        return;
    case DEADLINE_CONNECTION:
    case DEADLINE_USER:
    case DEADLINE_ROOM:
    case DEADLINE_ATTACH:
        return;
    }
}

void runtime_advance(struct runtime *runtime, struct moment now)
{
    if (runtime->busy)
        return;
    switch (runtime->state) {
    case RUNTIME_DECIDING:
        recall_advance(runtime, now);
        return;
    case RUNTIME_ASKING:
    case RUNTIME_APPLYING:
    case RUNTIME_WITHDRAWING:
        apply_advance(runtime, now);
        return;
    case RUNTIME_RESUMING:
    case RUNTIME_SETTLING:
    case RUNTIME_RUNNING:
        resume_advance(runtime, now);
        attach_advance(runtime, now);
        return;
    case RUNTIME_HELD:
    case RUNTIME_KILLING:
    case RUNTIME_GONE:
    case RUNTIME_KILLED:
        return;
    }
}

const char *runtime_state_name(enum runtime_state state)
{
    switch (state) {
    case RUNTIME_DECIDING:
    case RUNTIME_ASKING:
        return "known";
    case RUNTIME_APPLYING:
    case RUNTIME_WITHDRAWING:
        return "applying";
    case RUNTIME_HELD:
    case RUNTIME_KILLING:
        return "held";
    case RUNTIME_RESUMING:
    case RUNTIME_SETTLING:
        return "resuming";
    case RUNTIME_RUNNING:
        return "running";
    case RUNTIME_GONE:
        return "gone";
    case RUNTIME_KILLED:
        return "killed";
    }
    return "known";
}

const char *runtime_outcome_name(enum runtime_outcome outcome)
{
    switch (outcome) {
    case OUTCOME_NONE:
        return NULL;
    case OUTCOME_UNTOUCHED:
        return "untouched";
    case OUTCOME_APPLIED:
        return "applied";
    case OUTCOME_PARTIAL:
        return "partial";
    case OUTCOME_ROLLED_BACK:
        return "rolled_back";
    case OUTCOME_FAILED:
        return "failed";
    case OUTCOME_LATE:
        return "late";
    case OUTCOME_UNKNOWN:
        return "unknown";
    }
    return NULL;
}

const char *runtime_blocked_name(enum runtime_blocked blocked)
{
    switch (blocked) {
    case BLOCKED_NOT:
        return NULL;
    case BLOCKED_STOPPED:
        return "stopped";
    case BLOCKED_TRACED:
        return "traced";
    case BLOCKED_FROZEN:
        return "frozen";
    case BLOCKED_SERVER_BUSY:
        return "server_busy";
    case BLOCKED_OTHER_PORT:
        return "other_port";
    }
    return NULL;
}
