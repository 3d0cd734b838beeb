/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resume, on every port of ours that holds the runtime, and what to say when it
 * does not run nevertheless.
 *
 * Resume counts for the port whose connection carried it, and nothing tells
 * which port a connection belongs to: the next arrival may be the second port
 * of the same path or the first one coming back. So, per listener: while more
 * connections are open than Resumes were answered, the oldest one that waits
 * gets one. One too many is harmless, one too few hangs the program.
 *
 * A Resume that was written is never given up: not timed out, not closed.
 */

#include "lib/broker_core.h"
#include "lib/facts.h"
#include "lib/procfs.h"

/* After the last counted Resume: when to look whether it runs. Later looks are only for showing
 * what blocks it. */
static const int64_t settle_looks_ms[] = {10, 40, 200};
static const int64_t blocked_looks_ms[] = {250, 750, 4000, 25000, 30000};

/* A look that was asked for is answered within this, on a busy machine too; it takes longer there
 * than up to the next one, and a Resume that nobody needs would be sent for want of patience. */
#define LATE_LOOK_TIME span_from_ms(300)

static struct moment next_look(const struct runtime *runtime, struct moment now)
{
    size_t n = runtime->n_looks, n_last = ARRAY_LENGTH(blocked_looks_ms) - 1;
    int64_t wait_ms = blocked_looks_ms[n < n_last ? n : n_last];

    if (runtime->state == RUNTIME_SETTLING &&
        runtime->n_settle_looks < ARRAY_LENGTH(settle_looks_ms))
        wait_ms = settle_looks_ms[runtime->n_settle_looks];
    return moment_after(now, span_from_ms(wait_ms));
}

/* The place of a listener in the counts; the last one is shared by all that found no place. */
static const struct runtime_port *find_port(const struct runtime *runtime, uint32_t listener)
{
    for (size_t i = 0; i < runtime->n_ports; i++) {
        if (runtime->ports[i].listener == listener)
            return &runtime->ports[i];
    }
    return runtime->n_ports == RUNTIME_PORTS_MAX ? &runtime->ports[RUNTIME_PORTS_MAX - 1] : NULL;
}

static void count_resume(struct runtime *runtime, uint32_t listener)
{
    const struct runtime_port *found = find_port(runtime, listener);
    size_t place = found ? (size_t)(found - runtime->ports) : runtime->n_ports;

    if (!found)
        runtime->ports[runtime->n_ports++] = (struct runtime_port){.listener = listener};
    runtime->ports[place].n_resumed++;
    runtime->n_resumes_answered++;
}

static uint32_t n_resumed(const struct runtime *runtime, uint32_t listener)
{
    const struct runtime_port *port = find_port(runtime, listener);

    return port ? port->n_resumed : 0;
}

static uint32_t n_open(const struct runtime *runtime, uint32_t listener)
{
    const struct runtime_port *port = find_port(runtime, listener);
    const struct connection *connection;
    uint32_t n = 0;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->listener == listener ||
            (port && find_port(runtime, connection->listener) == port))
            n++;
    }
    return n;
}

struct connection *resume_wanted(const struct runtime *runtime)
{
    struct connection *connection;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->state == CONNECTION_IDLE &&
            n_open(runtime, connection->listener) > n_resumed(runtime, connection->listener))
            return connection;
    }
    return NULL;
}

void resume_begin(struct runtime *runtime, enum runtime_outcome outcome, const char *why,
                  struct moment now)
{
    bool was_held = runtime->state == RUNTIME_HELD;

    runtime->outcome = outcome;
    runtime->why = why;
    session_missed(runtime, now);
    runtime->n_looks = 0;
    runtime->n_settle_looks = 0;
    runtime->again_up_to = 0;
    runtime->step = NULL;
    runtime_set_state(runtime, RUNTIME_RESUMING, MOMENT_NEVER, why, now);
    runtime_set_next(runtime, next_look(runtime, now));
    /* A command that is still in flight would keep Resume waiting for its answer. */
    if (runtime->flight != FLIGHT_NONE && !runtime_flies_resume(runtime))
        runtime_lose_flight(runtime, now);
    compare_begin(runtime, was_held, now);
    runtime_advance(runtime, now);
}

void resume_mark(struct runtime *runtime)
{
    /* What cannot be recorded is resumed all the same: the record is for us, the Resume for it. */
    if (!runtime->is_marked_resumed)
        runtime->is_marked_resumed = runtime_mark(runtime, RECORD_RESUMED, NULL) == 0;
    /* Nothing more of it is to be gone on with, also where Resume has to wait for memory. */
    if (runtime->kept)
        keep_end(runtime->kept);
}

static void send_resume(struct runtime *runtime, struct connection *connection,
                        enum runtime_flight flight, struct moment now)
{
    struct bytes message;
    struct step *step;

    resume_mark(runtime);
    bytes_init(&message, WIRE_MESSAGE_MAX);
    if (command_write_plain(&message, COMMAND_RESUME) != 0) {
        broker_out_of_memory(runtime->broker, now);
        runtime_set_next(runtime, moment_after(now, BROKER_MEMORY_RETRY));
    } else if (runtime_send(runtime, connection, flight, COMMAND_RESUME, &message,
                            next_look(runtime, now), now)) {
        step = plan_add_resume(&runtime->plan);
        if (step) {
            step->attempts++;
            step->was_sent = true;
            step->result = STEP_PENDING;
        }
        runtime->step = step;
    }
    bytes_deinit(&message);
}

static void be_running(struct runtime *runtime, struct moment now)
{
    runtime->blocked = BLOCKED_NOT;
    runtime->runs_unseen = false;
    runtime_set_state(runtime, RUNTIME_RUNNING, MOMENT_NEVER, NULL, now);
    runtime_release_process(runtime, now);
    session_advance(runtime, now);
    attach_advance(runtime, now);
}

/*
 * True when no port of its list can hold it any more, so that nobody need look.
 * Only with one suspending port does the number of answers say so: with two,
 * both may have been those of one of them.
 */
static bool is_surely_resumed(const struct runtime *runtime)
{
    return runtime->n_suspending >= 0 && runtime->n_suspending <= 1 &&
           !runtime->has_default_port_suspend &&
           runtime->n_resumes_answered >= (uint64_t)runtime->n_suspending;
}

/* Every Resume that the count asks for was answered: does it run? */
static void settle(struct runtime *runtime, struct moment now)
{
    if (is_surely_resumed(runtime)) {
        be_running(runtime, now);
        return;
    }
    if (runtime->state != RUNTIME_SETTLING) {
        runtime->n_looks = 0;
        runtime_set_state(runtime, RUNTIME_SETTLING, MOMENT_NEVER, NULL, now);
        runtime_set_next(runtime, next_look(runtime, now));
    }
    /* Its own list of ports is all that is needed where it can be read; it was not needed before.
     */
    if (runtime->n_suspending < 0 && !runtime->was_asked_for_ports) {
        runtime->was_asked_for_ports = true;
        if (!broker_ask(runtime->broker, QUESTION_PORTS, NULL, runtime, FACTS_STAT | FACTS_ENVIRON,
                        NULL, 0))
            broker_out_of_memory(runtime->broker, now);
    }
}

/* The oldest one of those that get one more, since the picture says that something holds it. */
static struct connection *resume_again_wanted(const struct runtime *runtime)
{
    struct connection *connection = runtime_free_connection(runtime);

    return connection && connection->serial <= runtime->again_up_to ? connection : NULL;
}

void resume_advance(struct runtime *runtime, struct moment now)
{
    struct connection *counted = resume_wanted(runtime);
    struct connection *connection = counted ? counted : resume_again_wanted(runtime);

    if (compare_is_under_way(runtime))
        return;
    if (connection) {
        if (counted)
            runtime->n_settle_looks = 0;
        if (runtime->state != RUNTIME_RESUMING)
            runtime_set_state(runtime, RUNTIME_RESUMING, MOMENT_NEVER, NULL, now);
        send_resume(runtime, connection, counted ? FLIGHT_RESUME : FLIGHT_RESUME_AGAIN, now);
    } else if (runtime->state == RUNTIME_RESUMING && runtime->n_resumes_answered > 0) {
        settle(runtime, now);
    } else {
        session_advance(runtime, now);
    }
}

static void count_hold(struct runtime *runtime, struct moment now)
{
    struct broker_counters *counters = &runtime->broker->counters;
    int64_t held_us = moment_between(runtime->connected_at, now).us;
    size_t bucket = 0;

    while (bucket < BROKER_HOLD_BUCKETS - 1 && held_us > broker_hold_bounds[bucket])
        bucket++;
    counters->hold_buckets[bucket]++;
    counters->n_holds++;
    counters->hold_sum_us += held_us;
}

void resume_answered(struct runtime *runtime, struct connection *connection,
                     enum runtime_flight flight, struct moment now)
{
    struct step *step = util_take(&runtime->step);

    if (step) {
        step->result = reply_is_ok(&connection->reply) ? STEP_OK : STEP_REFUSED;
        step->hresult = reply_hresult(&connection->reply);
        step->at = now;
        runtime_tell_step(runtime, step, now);
    }
    /* No runtime refuses Resume; one that did would get it again and again. */
    if (flight == FLIGHT_RESUME)
        count_resume(runtime, connection->listener);
    if (moment_is_never(runtime->resumed_at)) {
        count_hold(runtime, now);
        session_resumed(runtime, now);
    }
    runtime->resumed_at = now;
}

void resume_lost(struct runtime *runtime, struct moment now)
{
    struct step *step = util_take(&runtime->step);

    /* The program may run already, and even have ended, before its answer is read: the next
     * advertise tells, and gets another Resume, which does no harm. */
    if (step) {
        step->result = STEP_LOST;
        step->at = now;
        runtime_tell_step(runtime, step, now);
    }
    if (runtime->state != RUNTIME_KILLING)
        runtime_set_next(runtime, next_look(runtime, now));
    runtime_advance(runtime, now);
}

/* Whatever waits now gets Resume, counted or not. False when nothing waits. */
static bool resume_all(struct runtime *runtime, struct moment now)
{
    struct connection *connection;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->state == CONNECTION_IDLE)
            runtime->again_up_to = connection->serial;
    }
    /* The end of its session is less urgent, and who comes back from that is counted anew. */
    if (runtime->busy && runtime->state == RUNTIME_RUNNING && runtime->flight != FLIGHT_ATTACH) {
        runtime->n_ports = 0;
        connection_close(runtime->busy, now);
    }
    if (runtime->busy || !resume_again_wanted(runtime))
        return false;
    resume_advance(runtime, now);
    return true;
}

void resume_uncounted(struct runtime *runtime, struct moment now)
{
    if (runtime->state == RUNTIME_RESUMING || runtime->state == RUNTIME_SETTLING ||
        (runtime->state == RUNTIME_RUNNING && runtime->runs_unseen))
        resume_all(runtime, now);
}

void resume_doubt(struct runtime *runtime, struct moment now)
{
    if (runtime->state != RUNTIME_RUNNING || runtime->runs_unseen || is_surely_resumed(runtime))
        return;
    runtime->runs_unseen = true;
    resume_all(runtime, now);
}

enum picture resume_picture(const struct runtime *runtime, const struct facts *facts)
{
    enum picture picture = picture_of(facts, runtime->pid);
    const struct process *process = runtime->process;
    bool may_be_anothers = !process->is_identified || process->n_cookies > 1 ||
                           process->has_more_cookies || !decide_has_all_records(runtime) ||
                           process_has_namesake(runtime->broker, process);

    return picture == PICTURE_RUNNING && may_be_anothers ? PICTURE_UNKNOWN : picture;
}

static enum runtime_blocked blocked_by(const struct runtime *runtime, const struct facts *facts)
{
    struct procfs_stat stat;

    if (facts->stat.error == 0 && procfs_read_stat(facts->stat.data, facts->stat.length, &stat)) {
        if (stat.state == 'T')
            return BLOCKED_STOPPED;
        if (stat.state == 't')
            return BLOCKED_TRACED;
    }
    if (facts->is_frozen)
        return BLOCKED_FROZEN;
    if (resume_picture(runtime, facts) != PICTURE_SUSPENDED)
        return BLOCKED_NOT;
    return runtime->state == RUNTIME_SETTLING ? BLOCKED_OTHER_PORT : BLOCKED_SERVER_BUSY;
}

/* It shows that it runs although no Resume was answered: that one was taken all the same. */
static bool was_resumed_unanswered(const struct runtime *runtime, const struct facts *facts)
{
    return runtime->state == RUNTIME_RESUMING && !runtime->busy &&
           resume_picture(runtime, facts) == PICTURE_RUNNING;
}

/*
 * All that the count asks for was answered. Unless the process shows that it
 * runs, whatever waits gets one more, a few times: the count may have taken one
 * port for another, and without a picture nobody else would notice.
 */
static void judge_settling(struct runtime *runtime, enum picture picture,
                           enum runtime_blocked blocked, struct moment now)
{
    if (picture == PICTURE_RUNNING) {
        be_running(runtime, now);
        return;
    }
    if (runtime->n_settle_looks <= ARRAY_LENGTH(settle_looks_ms) && resume_all(runtime, now))
        return;
    if (runtime->n_settle_looks < ARRAY_LENGTH(settle_looks_ms))
        return;
    if (blocked != BLOCKED_NOT) {
        runtime->blocked = blocked;
        return;
    }
    be_running(runtime, now);
    runtime->runs_unseen = true;
}

static void take_ports(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    struct attributes attributes;

    attributes_init(&attributes);
    if (facts->is_alive &&
        attributes_take_facts(&attributes, runtime->pid, facts, runtime->policy->names) == 0)
        decide_ports(runtime, &attributes);
    attributes_deinit(&attributes);
    if (runtime->state == RUNTIME_SETTLING && is_surely_resumed(runtime))
        be_running(runtime, now);
}

static void take_look(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    enum runtime_blocked blocked = blocked_by(runtime, facts);

    if (facts->wanted & FACTS_ENVIRON)
        take_ports(runtime, facts, now);
    if (runtime->state == RUNTIME_RUNNING)
        return;
    if (runtime->state == RUNTIME_SETTLING)
        judge_settling(runtime, resume_picture(runtime, facts), blocked, now);
    else if (was_resumed_unanswered(runtime, facts))
        be_running(runtime, now);
    else
        runtime->blocked = blocked;
}

/* What it is to load is what it is; nothing keeps it any more. */
static void take_files(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    compare_facts(runtime, facts, now);
    runtime_set_next(runtime, next_look(runtime, now));
    runtime_advance(runtime, now);
}

void resume_facts(struct runtime *runtime, enum question_purpose purpose, const struct facts *facts,
                  struct moment now)
{
    if (runtime->state != RUNTIME_RESUMING && runtime->state != RUNTIME_SETTLING)
        return;
    if (purpose == QUESTION_FILES)
        take_files(runtime, facts, now);
    else if (purpose == QUESTION_PORTS)
        take_ports(runtime, facts, now);
    else
        take_look(runtime, facts, now);
}

void resume_deadline(struct runtime *runtime, struct moment now)
{
    if (runtime->state == RUNTIME_RUNNING) {
        if (runtime->flight == FLIGHT_STOP)
            runtime_lose_flight(runtime, now);
        return;
    }
    if (compare_is_under_way(runtime)) {
        compare_give_up(runtime);
        runtime_set_next(runtime, next_look(runtime, now));
        runtime_advance(runtime, now);
        return;
    }
    /* A send that memory ran out for is tried again. */
    if (runtime->state == RUNTIME_RESUMING && !runtime->busy && resume_wanted(runtime)) {
        resume_advance(runtime, now);
        return;
    }
    /* When we were late ourselves, the answer is there and only not taken yet. */
    if (runtime->state == RUNTIME_SETTLING && runtime->question && !runtime->is_look_late) {
        runtime->is_look_late = true;
        runtime_set_next(runtime, moment_after(now, LATE_LOOK_TIME));
        return;
    }
    runtime->is_look_late = false;
    runtime->n_looks++;
    if (runtime->state == RUNTIME_SETTLING)
        runtime->n_settle_looks++;
    runtime_set_next(runtime, next_look(runtime, now));
    /* The look before this one was never answered, so this one will not be either. */
    if (runtime->state == RUNTIME_SETTLING && runtime->question) {
        runtime->question = broker_forget_question(runtime->broker, runtime->question);
        judge_settling(runtime, PICTURE_UNKNOWN, BLOCKED_NOT, now);
        return;
    }
    /* Its list of ports, too, if nobody came to read it when that was asked for. */
    if (!broker_ask(runtime->broker, QUESTION_LOOK, NULL, runtime,
                    FACTS_STAT | FACTS_THREADS | FACTS_FREEZER |
                        (runtime->n_suspending < 0 ? FACTS_ENVIRON : 0),
                    NULL, 0))
        broker_out_of_memory(runtime->broker, now);
}
