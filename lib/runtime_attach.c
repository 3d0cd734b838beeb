/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Profilers that operators, or its rule (`late: attach`), have loaded into a
 * runtime that runs: one at a time, after a look at the file and at the process,
 * on a connection that waits. A suspended runtime gets none.
 *
 * The runtime loads it before it answers, and serves nobody else meanwhile; so
 * there is a deadline, after which the connection is closed and nobody knows
 * whether it is there.
 *
 * Settings that keep profilers out at the start have no say here: neither
 * DOTNET_EnableDiagnostics_Profiler=0 nor the PreventLoad that kills a runtime
 * which is sent a startup profiler (measured on 8 to 11).
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/facts.h"
#include "lib/hresult.h"

/* Life. */

static void free_attach(struct attach *attach)
{
    assert(moment_is_never(attach->deadline.at));
    free(attach->step.detail);
    free(attach->path);
    free(attach->data);
    free(attach);
}

void attach_free_all(struct runtime *runtime)
{
    struct attach *attach;

    while ((attach = TAILQ_FIRST(&runtime->attaches))) {
        TAILQ_REMOVE(&runtime->attaches, attach, link);
        free_attach(attach);
    }
}

static void forget_oldest(struct runtime *runtime)
{
    struct attach *attach, *oldest = TAILQ_FIRST(&runtime->attaches);
    size_t n = 0;

    TAILQ_FOREACH(attach, &runtime->attaches, link) {
        n++;
    }
    if (n < RUNTIME_ATTACHES_MAX)
        return;
    TAILQ_REMOVE(&runtime->attaches, oldest, link);
    free_attach(oldest);
}

static struct attach *new_attach(struct runtime *runtime, const struct broker_attach *wanted)
{
    struct attach *attach = calloc(1, sizeof *attach);

    if (!attach)
        return NULL;
    deadline_init(&attach->deadline, DEADLINE_ATTACH);
    attach->runtime = runtime;
    attach->path = strdup(wanted->path);
    attach->data = malloc(wanted->n_data + 1);
    if (!attach->path || !attach->data) {
        free_attach(attach);
        return NULL;
    }
    if (wanted->n_data > 0)
        memcpy(attach->data, wanted->data, wanted->n_data);
    attach->n_data = wanted->n_data;
    attach->clsid = wanted->clsid;
    attach->timeout = wanted->timeout;
    attach->retry_at = MOMENT_NEVER;
    attach->step = (struct step){.kind = STEP_ATTACH,
                                 .is_required = true,
                                 .at = MOMENT_NEVER,
                                 .name = attach->path,
                                 .clsid = &attach->clsid,
                                 .retry_until = MOMENT_NEVER};
    return attach;
}

static int write_message(const struct attach *attach, struct bytes *message)
{
    return command_write_attach_profiler(message, (uint32_t)(attach->timeout.us / 1000),
                                         &attach->clsid, attach->path, attach->data,
                                         attach->n_data);
}

static enum broker_verdict try_message(const struct attach *attach)
{
    struct bytes message;
    int error;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    error = write_message(attach, &message);
    bytes_deinit(&message);
    if (error == 0)
        return BROKER_DONE;
    return error < 0 ? BROKER_NO_MEMORY : BROKER_DOES_NOT_FIT;
}

/* It is given up then. */
static void set_until(struct attach *attach, struct moment now)
{
    attach->until = moment_after(now, span_from_us(attach->timeout.us + BROKER_ATTACH_GRACE.us));
}

static void set_deadline(struct attach *attach)
{
    deadline_set(&attach->runtime->broker->deadlines, &attach->deadline,
                 moment_earlier(attach->until, attach->retry_at));
}

/* BROKER_DONE, BROKER_DOES_NOT_FIT or BROKER_NO_MEMORY. */
static enum broker_verdict begin(struct runtime *runtime, const struct broker_attach *wanted,
                                 struct moment now)
{
    struct attach *attach = new_attach(runtime, wanted);
    enum broker_verdict verdict = attach ? try_message(attach) : BROKER_NO_MEMORY;

    if (verdict != BROKER_DONE) {
        if (attach)
            free_attach(attach);
        return verdict;
    }
    forget_oldest(runtime);
    TAILQ_INSERT_TAIL(&runtime->attaches, attach, link);
    attach->number = ++runtime->n_attaches;
    runtime->attach = attach;
    set_until(attach, now);
    set_deadline(attach);
    return BROKER_DONE;
}

enum broker_verdict broker_attach(struct runtime *runtime, const struct broker_attach *wanted,
                                  struct moment now)
{
    enum broker_verdict verdict;

    if (runtime_has_ended(runtime))
        return BROKER_TOO_LATE;
    if (runtime->state != RUNTIME_RUNNING)
        return BROKER_NOT_RUNNING;
    if (runtime->attach)
        return BROKER_ALREADY;
    if (runtime->broker->is_stopping)
        return BROKER_STOPS;
    verdict = begin(runtime, wanted, now);
    attach_advance(runtime, now);
    return verdict;
}

/* The next one of its rule, where it came too late for its plan. */
static void begin_late(struct runtime *runtime, struct moment now)
{
    const struct policy_rule *rule = runtime->rule;

    while (runtime->n_late > 0 && !runtime->attach) {
        const struct policy_profiler *profiler =
            &rule->profilers[rule->n_profilers - runtime->n_late];
        struct span timeout = rule->keys.command_timeout;
        const struct broker_attach wanted = {.clsid = profiler->clsid,
                                             .path = profiler->path,
                                             .timeout = timeout.us < BROKER_ATTACH_TIMEOUT_MAX.us
                                                            ? timeout
                                                            : BROKER_ATTACH_TIMEOUT_MAX};

        runtime->n_late--;
        if (begin(runtime, &wanted, now) == BROKER_NO_MEMORY)
            broker_out_of_memory(runtime->broker, now);
    }
}

/* The one under way has come to its end. */
static void finish(struct runtime *runtime, enum step_result result, const char *why,
                   struct moment now)
{
    struct attach *attach = util_take(&runtime->attach);

    deadline_stop(&runtime->broker->deadlines, &attach->deadline);
    if (runtime->question && runtime->question->purpose == QUESTION_ATTACH)
        runtime->question = broker_forget_question(runtime->broker, runtime->question);
    free(util_take(&attach->data));
    attach->step.result = result;
    attach->step.at = now;
    if (why)
        attach->step.why = why;
    runtime_tell_step(runtime, &attach->step, now);
}

void attach_stop(struct runtime *runtime, const char *why, struct moment now)
{
    runtime->n_late = 0;
    if (runtime->attach)
        finish(runtime, runtime->attach->step.is_unanswered ? STEP_LOST : STEP_SKIPPED, why, now);
}

/* What speaks against it. */

/* Its environment says where the loader looks for what the file needs. */
static void ask_facts(struct runtime *runtime, struct moment now)
{
    const char *files[] = {runtime->attach->path};

    if (runtime->question && runtime->question->purpose == QUESTION_ATTACH)
        return;
    if (broker_ask(runtime->broker, QUESTION_ATTACH, NULL, runtime,
                   FACTS_STAT | FACTS_STATUS | FACTS_THREADS | FACTS_ENVIRON | FACTS_FILES |
                       FACTS_IMAGES,
                   files, ARRAY_LENGTH(files)))
        return;
    broker_out_of_memory(runtime->broker, now);
    runtime->attach->retry_at = moment_after(now, BROKER_MEMORY_RETRY);
    set_deadline(runtime->attach);
}

/* Nothing else may have shown that it runs, and then its threads have to. */
static bool shows_running(const struct runtime *runtime, const struct facts *facts)
{
    enum picture picture = resume_picture(runtime, facts);

    return picture == PICTURE_RUNNING || (picture == PICTURE_UNKNOWN && !runtime->runs_unseen);
}

/* Straight after Resume what it shows, and what it says, is that it does not run yet: then it is
 * tried again, for a while. */
static bool may_start_yet(struct attach *attach, struct moment now)
{
    struct step *step = &attach->step;

    if (moment_is_never(step->retry_until))
        step->retry_until = moment_after(now, BROKER_PROFILER_RACE);
    if (moment_is_due(step->retry_until, now))
        return false;
    attach->retry_at = moment_after(now, BROKER_ATTACH_WAIT);
    set_deadline(attach);
    return true;
}

/* False when memory ran out. */
static bool check_facts(struct runtime *runtime, const struct facts *facts)
{
    struct step *step = &runtime->attach->step;
    struct attributes attributes;
    int error;

    attributes_init(&attributes);
    error = attributes_take_facts(&attributes, runtime->pid, facts, NULL);
    if (error == 0) {
        plan_check_file(step, facts, &attributes);
        if (runtime->target.kind != RUNTIME_KIND_UNKNOWN)
            plan_check_step(step, &runtime->target);
    }
    attributes_deinit(&attributes);
    return error == 0;
}

void attach_facts(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    struct attach *attach = runtime->attach;

    if (!attach || attach->is_checked || runtime->state != RUNTIME_RUNNING)
        return;
    if (!facts->is_alive) {
        finish(runtime, STEP_SKIPPED, "its process could not be looked at any more", now);
    } else if (!shows_running(runtime, facts)) {
        if (!may_start_yet(attach, now))
            finish(runtime, STEP_REFUSED,
                   "is only sent to a runtime that runs, and this one does not show that it does",
                   now);
    } else if (!check_facts(runtime, facts)) {
        broker_out_of_memory(runtime->broker, now);
        finish(runtime, STEP_SKIPPED, "memory ran out", now);
    } else if (attach->step.result != STEP_PENDING) {
        finish(runtime, attach->step.result, NULL, now);
    } else {
        attach->is_checked = true;
        attach->step.retry_until = MOMENT_NEVER;
    }
    attach_advance(runtime, now);
}

/* Sending. */

static void send(struct runtime *runtime, struct connection *connection, struct moment now)
{
    struct attach *attach = runtime->attach;
    bool is_question = runtime->target.kind == RUNTIME_KIND_UNKNOWN;
    enum command_id command = is_question ? COMMAND_ASK_KIND : COMMAND_ATTACH_PROFILER;
    struct bytes message;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    attach->retry_at = MOMENT_NEVER;
    if ((is_question ? command_write_plain(&message, command) : write_message(attach, &message)) !=
        0) {
        broker_out_of_memory(runtime->broker, now);
        attach->retry_at = moment_after(now, BROKER_MEMORY_RETRY);
    } else if (!runtime_send(runtime, connection, FLIGHT_ATTACH, command, &message, MOMENT_NEVER,
                             now)) {
        runtime_set_next(runtime, MOMENT_NEVER);
        attach->retry_at = moment_after(now, BROKER_MEMORY_RETRY);
    } else if (is_question) {
        attach->n_asked++;
    } else {
        attach->step.attempts++;
        attach->step.was_sent = true;
        attach->step.is_unanswered = true;
        set_until(attach, now);
    }
    set_deadline(attach);
    bytes_deinit(&message);
}

void attach_advance(struct runtime *runtime, struct moment now)
{
    struct connection *connection;
    struct attach *attach;

    if (runtime->state != RUNTIME_RUNNING || runtime->busy || runtime->broker->is_stopping)
        return;
    begin_late(runtime, now);
    attach = runtime->attach;
    if (!attach)
        return;
    if (!moment_is_never(attach->retry_at) && !moment_is_due(attach->retry_at, now))
        return;
    if (!attach->is_checked) {
        ask_facts(runtime, now);
        return;
    }
    connection = runtime_free_connection(runtime);
    if (connection)
        send(runtime, connection, now);
}

/* Answers. */

/* A runtime that just started takes none yet (measured: up to 101 ms after Resume on 8 to 11). */
static bool is_start(struct attach *attach, uint32_t hresult, struct moment now)
{
    return hresult == HRESULT_NOT_YET_AVAILABLE && may_start_yet(attach, now);
}

static void take_answer(struct runtime *runtime, const struct reply *reply, struct moment now)
{
    struct step *step = &runtime->attach->step;
    bool is_done = reply_is_ok(reply) && reply_hresult(reply) == HRESULT_OK;

    step->is_unanswered = false;
    step->hresult = reply_hresult(reply);
    if (is_done || !is_start(runtime->attach, step->hresult, now))
        finish(runtime, is_done ? STEP_OK : STEP_REFUSED, NULL, now);
}

static void take_kind(struct runtime *runtime, const struct reply *reply, struct moment now)
{
    struct step *step = &runtime->attach->step;

    ask_take_kind(runtime, reply);
    plan_check_step(step, &runtime->target);
    if (step->result != STEP_PENDING)
        finish(runtime, step->result, NULL, now);
}

void attach_answered(struct runtime *runtime, struct connection *connection, struct moment now)
{
    bool leaves_open = !reply_is_ok(&connection->reply);

    if (connection->command == COMMAND_ASK_KIND)
        take_kind(runtime, &connection->reply, now);
    else
        take_answer(runtime, &connection->reply, now);
    /* After an error in the profiler set the runtime waits for us to close (measured on 8 to 11).
     */
    if (leaves_open)
        connection_close(connection, now);
}

/* Of a question without an answer there is one more, while there is time. */
void attach_lost(struct runtime *runtime, struct moment now)
{
    struct attach *attach = runtime->attach;

    if (attach && attach->step.is_unanswered)
        finish(runtime, STEP_LOST, NULL, now);
    else if (attach &&
             (attach->n_asked >= BROKER_QUESTION_ATTEMPTS || moment_is_due(attach->until, now)))
        finish(runtime, STEP_REFUSED,
               "is only sent to CoreCLR, and this runtime did not say what it is", now);
    runtime_advance(runtime, now);
}

/* Nothing is in flight. */
static void give_up(struct runtime *runtime, struct moment now)
{
    const struct attach *attach = runtime->attach;

    if (attach->step.attempts > 0)
        finish(runtime, STEP_REFUSED, NULL, now);
    else
        finish(runtime, STEP_SKIPPED,
               attach->is_checked ? "no connection of the runtime was free in time"
                                  : "its file could not be looked at in time",
               now);
}

void attach_deadline(struct attach *attach, struct moment now)
{
    struct runtime *runtime = attach->runtime;

    if (moment_is_due(attach->until, now)) {
        if (runtime->flight == FLIGHT_ATTACH)
            runtime_lose_flight(runtime, now);
        else
            give_up(runtime, now);
    }
    attach_advance(runtime, now);
    /* It may have nothing to do but to wait on. */
    if (runtime->attach == attach && moment_is_never(attach->deadline.at)) {
        attach->retry_at = MOMENT_NEVER;
        set_deadline(attach);
    }
}
