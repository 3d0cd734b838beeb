/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Carries out a plan: its steps one at a time and, where it cannot be
 * completed, taking back what can be taken back. However it ends, it ends in
 * Resume, in a hold that was asked for, or in a kill.
 *
 * At most one message is in flight. When one goes unanswered its connection is
 * closed and the next message goes out on another one; a late answer can never
 * be taken for that of a later command.
 */

#include <errno.h>

#include "lib/broker_core.h"
#include "lib/hresult.h"

/* Up to here steps are sent; after it there is time to take them back before the deadline. All of
 * the time is for that where nothing but that is left to do. */
static struct moment last_moment(const struct runtime *runtime)
{
    struct span reserve = span_from_us(runtime->deadline_length.us / 4);

    if (runtime->has_failed)
        return runtime->end.at;
    if (reserve.us > BROKER_RESERVE_MAX.us)
        reserve = BROKER_RESERVE_MAX;
    return moment_after(runtime->connected_at,
                        span_from_us(runtime->deadline_length.us - reserve.us));
}

static bool is_out_of_time(const struct runtime *runtime, struct moment now)
{
    return moment_is_due(last_moment(runtime), now);
}

/* Nothing but Resume may be sent any more, whichever event comes before the deadline's own. */
static bool is_overdue(const struct runtime *runtime, struct moment now)
{
    return moment_is_due(runtime->end.at, now);
}

struct moment apply_answer_deadline(const struct runtime *runtime, struct moment now)
{
    struct moment time_out = moment_after(now, runtime_keys(runtime)->command_timeout);

    return runtime->state == RUNTIME_WITHDRAWING ? time_out
                                                 : moment_earlier(time_out, last_moment(runtime));
}

/* Nothing is in flight: the next thing that happens by itself. */
static struct moment idle_deadline(const struct runtime *runtime)
{
    return runtime->state == RUNTIME_WITHDRAWING
               ? MOMENT_NEVER
               : moment_earlier(runtime->retry_at, last_moment(runtime));
}

/* Steps. */

/* What our own checks refused, or left out, before anything was sent. */
static void tell_checked(struct runtime *runtime, struct moment now)
{
    for (size_t i = 0; i < runtime->plan.n_steps; i++) {
        struct step *step = &runtime->plan.steps[i];

        if (!(step->result == STEP_REFUSED || step->is_left_out) || !moment_is_never(step->at))
            continue;
        step->at = now;
        runtime_tell_step(runtime, step, now);
    }
}

/* Where an earlier daemon has sent something, there is something to take back. */
static bool fails_unsent(const struct runtime *runtime)
{
    return plan_has_failed(&runtime->plan) && !plan_was_sent(&runtime->plan);
}

void apply_steps(struct runtime *runtime, struct moment now)
{
    plan_check_target(&runtime->plan, &runtime->target);
    conflict_settle(&runtime->conflict, runtime->target.major, runtime_keys(runtime)->on_conflict,
                    &runtime->plan);
    tell_checked(runtime, now);
    if (fails_unsent(runtime)) {
        apply_fail(runtime, "a required step cannot be done", now);
        return;
    }
    runtime_set_state(runtime, RUNTIME_APPLYING, idle_deadline(runtime), NULL, now);
}

/* However the plan went: what the runtime gets now. */
static void finish(struct runtime *runtime, enum runtime_outcome outcome, const char *why,
                   struct moment now)
{
    runtime->outcome = outcome;
    runtime->why = why;
    if (runtime->is_hold_wished)
        runtime_set_state(runtime, RUNTIME_HELD, runtime->hold_until, "an operator holds it", now);
    else
        resume_begin(runtime, outcome, why, now);
}

static enum runtime_outcome outcome_of(const struct plan *plan)
{
    switch (plan_outcome(plan)) {
    case PLAN_APPLIED:
        return OUTCOME_APPLIED;
    case PLAN_FAILED:
        return OUTCOME_FAILED;
    case PLAN_ROLLED_BACK:
        return OUTCOME_ROLLED_BACK;
    case PLAN_PARTIAL:
        return OUTCOME_PARTIAL;
    }
    return OUTCOME_PARTIAL;
}

/* A plan that ends before its end: with only optional steps it has not failed by their results, but
 * it was not applied either. */
static enum runtime_outcome outcome_of_failed(const struct runtime *runtime)
{
    if (!runtime->rule)
        return OUTCOME_UNKNOWN;
    if (plan_has_failed(&runtime->plan))
        return outcome_of(&runtime->plan);
    return plan_was_sent(&runtime->plan) ? OUTCOME_PARTIAL : OUTCOME_FAILED;
}

/* The plan has failed and nothing more can be taken back. */
static void fail_finally(struct runtime *runtime, enum runtime_outcome outcome, const char *why,
                         struct moment now)
{
    const struct policy_defaults *keys = runtime_keys(runtime);

    runtime->outcome = outcome;
    runtime->why = why;
    switch (runtime->rule ? keys->on_failure : POLICY_FAILURE_RESUME) {
    case POLICY_FAILURE_RESUME:
        finish(runtime, outcome, why, now);
        return;
    case POLICY_FAILURE_HOLD:
        runtime_set_state(runtime, RUNTIME_HELD, moment_after(now, keys->hold_limit), why, now);
        return;
    case POLICY_FAILURE_KILL:
        kill_begin(runtime, why, now);
        return;
    }
}

static void tell_skipped(struct runtime *runtime, const char *why, struct moment now)
{
    for (size_t i = 0; i < runtime->plan.n_steps; i++) {
        if (plan_skip(&runtime->plan.steps[i], why, now))
            runtime_tell_step(runtime, &runtime->plan.steps[i], now);
    }
}

void apply_fail(struct runtime *runtime, const char *why, struct moment now)
{
    tell_skipped(runtime, "the plan ended before it", now);
    runtime->step = NULL;
    runtime->retry_at = MOMENT_NEVER;
    runtime->why = why;
    if (runtime->state != RUNTIME_APPLYING || !plan_next_undo(&runtime->plan)) {
        fail_finally(runtime, outcome_of_failed(runtime), why, now);
        return;
    }
    runtime->broker->counters.n_rollbacks++;
    runtime_set_state(runtime, RUNTIME_WITHDRAWING, MOMENT_NEVER, why, now);
    runtime_advance(runtime, now);
}

void apply_begin(struct runtime *runtime, struct moment now)
{
    /* What fails without asking fails now, and nothing at all is sent. */
    tell_checked(runtime, now);
    if (fails_unsent(runtime)) {
        apply_fail(runtime, "a required step cannot be done", now);
        return;
    }
    runtime_set_state(runtime, RUNTIME_ASKING, idle_deadline(runtime), NULL, now);
    ask_begin(runtime, now);
    runtime_advance(runtime, now);
}

static void answer_step(struct runtime *runtime, struct step *step, enum step_result result,
                        uint32_t hresult, struct moment now)
{
    bool is_hook = step->kind == STEP_HOOK;

    plan_answered(&runtime->plan, step, result, hresult, now);
    runtime_mark_progress(runtime, now);
    for (size_t i = 0; i < runtime->plan.n_steps; i++) {
        const struct step *told = &runtime->plan.steps[i];

        if (told == step ||
            (is_hook && told->kind == STEP_HOOK && told->result == result && told->at.us == now.us))
            runtime_tell_step(runtime, told, now);
    }
    /* Of those that are left some may have no sense any more. */
    tell_checked(runtime, now);
}

/*
 * The flag by which a runtime says that it is suspended is raised a little
 * after its server begins to listen; up to then a profiler is refused (measured
 * up to 46 ms and 67 tries on 8 to 11). Only on a port that is known to suspend
 * is a refusal such a race.
 */
static bool is_start_race(struct runtime *runtime, struct step *step, uint32_t hresult,
                          struct moment now)
{
    /* Where an earlier daemon sent it, that was known. */
    if (plan_command(step) != COMMAND_STARTUP_PROFILER || hresult != HRESULT_INVALID_ARGUMENT ||
        !(runtime->target.port_suspends || runtime->is_awaiting))
        return false;
    if (moment_is_never(step->retry_until))
        step->retry_until = moment_after(now, BROKER_PROFILER_RACE);
    if (moment_is_due(step->retry_until, now))
        return false;
    step->retry_delay.us = step->retry_delay.us == 0 ? 1000 : 2 * step->retry_delay.us;
    if (step->retry_delay.us > BROKER_PROFILER_WAIT_MAX.us)
        step->retry_delay = BROKER_PROFILER_WAIT_MAX;
    step->hresult = hresult;
    step->is_unanswered = false;
    runtime->retry_at = moment_after(now, step->retry_delay);
    runtime_mark_progress(runtime, now);
    return true;
}

static void step_answered(struct runtime *runtime, const struct reply *reply, struct moment now)
{
    struct step *step = util_take(&runtime->step);
    uint32_t hresult = reply_hresult(reply);
    bool is_done = reply_is_ok(reply) && hresult == HRESULT_OK;

    /* What should be removed was not there: that is what was wanted. */
    if (step->kind == STEP_VARIABLE && !step->value && hresult == HRESULT_VARIABLE_NOT_FOUND)
        is_done = true;
    if (is_done)
        answer_step(runtime, step, STEP_OK, hresult, now);
    else if (!is_start_race(runtime, step, hresult, now))
        answer_step(runtime, step, STEP_REFUSED, hresult, now);
}

/* A variable may be sent again, a profiler or a hook never: it may have been taken. */
static void step_lost(struct runtime *runtime, struct moment now)
{
    struct step *step = util_take(&runtime->step);

    if (step->kind == STEP_VARIABLE && step->attempts < BROKER_VARIABLE_ATTEMPTS &&
        !is_out_of_time(runtime, now))
        return;
    answer_step(runtime, step, STEP_LOST, 0, now);
}

static const char no_place[] = "there is no place left to record what is applied";

/* Where there is a place again; what else may be wrong with the records is not ours to judge. */
static void end_alarm(struct broker *broker, struct moment now)
{
    if (broker->counters.alarm_reasons[ALARM_RECORDS] == no_place)
        broker_alarm(broker, ALARM_RECORDS, false, NULL, now);
}

/* The record has to say so before the runtime can have taken anything. False when it does not go
 * out now: memory is out, or nothing can be recorded, and the plan ends. */
static bool is_recorded(struct runtime *runtime, const struct step *step, struct moment now)
{
    bool is_undo = runtime->state == RUNTIME_WITHDRAWING;
    int error = runtime_mark(runtime, is_undo ? RECORD_WITHDRAWING : RECORD_BEGUN, step);

    if (error == 0) {
        end_alarm(runtime->broker, now);
        return true;
    }
    if (error == -ENOMEM) {
        broker_out_of_memory(runtime->broker, now);
        runtime_set_next(runtime, moment_after(now, BROKER_MEMORY_RETRY));
        return false;
    }
    broker_alarm(runtime->broker, ALARM_RECORDS, true, no_place, now);
    /* What has to be taken back is, whoever remembers it. */
    if (is_undo)
        return true;
    apply_fail(runtime, "no record of it can be kept", now);
    return false;
}

static void send_step(struct runtime *runtime, struct step *step, struct connection *connection,
                      struct moment now)
{
    struct bytes message;
    int error;

    /* Should we die before its answer was read, the next daemon reads it. */
    if (command_row(plan_command(step))->repeat == COMMAND_ONCE)
        keep_begin(connection, now);
    if (!is_recorded(runtime, step, now))
        return;
    bytes_init(&message, WIRE_MESSAGE_MAX);
    error = plan_write(&runtime->plan, step, &message);
    if (error == -ENOMEM) {
        broker_out_of_memory(runtime->broker, now);
        runtime_set_next(runtime, moment_after(now, BROKER_MEMORY_RETRY));
    } else if (error != 0) {
        step->why = "does not fit into a message of the protocol";
        answer_step(runtime, step, STEP_REFUSED, 0, now);
        runtime_set_next(runtime, now);
    } else if (runtime_send(runtime, connection, FLIGHT_STEP, plan_command(step), &message,
                            apply_answer_deadline(runtime, now), now)) {
        plan_sent(&runtime->plan, step);
        runtime->step = step;
    }
    bytes_deinit(&message);
}

/* There is no time for a next step: with some left, what was done is taken back. */
static void give_up(struct runtime *runtime, struct moment now)
{
    runtime->broker->counters.n_deadlines++;
    if (is_overdue(runtime, now))
        apply_stop(runtime, "its deadline came", false, now);
    else
        apply_fail(runtime, "its deadline is near", now);
}

static void finish_plan(struct runtime *runtime, struct moment now)
{
    const char *shortfall = plan_shortfall(&runtime->plan);

    if (shortfall && !plan_was_sent(&runtime->plan))
        finish(runtime, OUTCOME_UNTOUCHED, shortfall, now);
    else
        finish(runtime, outcome_of(&runtime->plan), shortfall ? shortfall : "", now);
}

/* All of them are done. What it does not cost is told about them. */
static void end_steps(struct runtime *runtime, struct moment now)
{
    struct connection *connection;

    if (is_out_of_time(runtime, now) || !session_is_wanted(runtime)) {
        finish_plan(runtime, now);
        return;
    }
    runtime_set_next(runtime, idle_deadline(runtime));
    connection = runtime_free_connection(runtime);
    if (connection)
        session_send(runtime, connection, now);
}

static void advance_steps(struct runtime *runtime, struct moment now)
{
    struct step *step = plan_next(&runtime->plan);
    struct connection *connection;

    if (plan_has_failed(&runtime->plan)) {
        apply_fail(runtime, "a required step failed", now);
        return;
    }
    if (runtime->has_failed) {
        apply_fail(runtime, "its plan did not come to its end before the daemon was started anew",
                   now);
        return;
    }
    if (!step) {
        end_steps(runtime, now);
        return;
    }
    if (is_out_of_time(runtime, now)) {
        give_up(runtime, now);
        return;
    }
    runtime_set_next(runtime, idle_deadline(runtime));
    if (!moment_is_never(runtime->retry_at) && moment_is_before(now, runtime->retry_at))
        return;
    runtime->retry_at = MOMENT_NEVER;
    connection = runtime_free_connection(runtime);
    if (connection)
        send_step(runtime, step, connection, now);
}

/* Taking back. */

static void send_undo(struct runtime *runtime, struct step *step, struct connection *connection,
                      struct moment now)
{
    struct bytes message;
    int error;

    if (!is_recorded(runtime, step, now))
        return;
    bytes_init(&message, WIRE_MESSAGE_MAX);
    error = plan_write_undo(step, &message);
    if (error == -ENOMEM) {
        broker_out_of_memory(runtime->broker, now);
        runtime_set_next(runtime, moment_after(now, BROKER_MEMORY_RETRY));
    } else if (error != 0) {
        step->undo_failed = true;
        runtime_set_next(runtime, now);
    } else if (runtime_send(runtime, connection, FLIGHT_UNDO, COMMAND_SET_ENVIRONMENT, &message,
                            apply_answer_deadline(runtime, now), now)) {
        plan_undo_sent(step);
        runtime->step = step;
    }
    bytes_deinit(&message);
}

static void advance_undo(struct runtime *runtime, struct moment now)
{
    struct step *step;
    struct connection *connection;

    while ((step = plan_next_undo(&runtime->plan)) && !plan_can_undo(step, &runtime->target))
        step->undo_failed = true;
    if (!step) {
        fail_finally(runtime, outcome_of_failed(runtime), runtime->why, now);
        return;
    }
    if (is_overdue(runtime, now)) {
        apply_stop(runtime, "its deadline came", false, now);
        return;
    }
    runtime_set_next(runtime, idle_deadline(runtime));
    connection = runtime_free_connection(runtime);
    if (connection)
        send_undo(runtime, step, connection, now);
}

static void undo_answered(struct runtime *runtime, const struct reply *reply, struct moment now)
{
    struct step *step = util_take(&runtime->step);
    uint32_t hresult = reply_hresult(reply);

    bool is_done = (reply_is_ok(reply) && hresult == HRESULT_OK) ||
                   (step->old == STEP_OLD_ABSENT && hresult == HRESULT_VARIABLE_NOT_FOUND);

    plan_undo_answered(step, is_done, now);
    if (is_done || plan_doubt(step, now))
        runtime_tell_step(runtime, step, now);
    runtime_mark_progress(runtime, now);
}

static void undo_lost(struct runtime *runtime, struct moment now)
{
    struct step *step = util_take(&runtime->step);

    if (step->undo_attempts < BROKER_UNDO_ATTEMPTS)
        return;
    step->undo_failed = true;
    if (plan_doubt(step, now))
        runtime_tell_step(runtime, step, now);
}

/* Events. */

void apply_advance(struct runtime *runtime, struct moment now)
{
    struct connection *connection;

    /* A daemon that goes away starts nothing new. */
    if (runtime->broker->is_stopping)
        return;
    if (runtime->state == RUNTIME_ASKING) {
        /* An earlier daemon did some of it: what can be taken back depends on the answers. */
        if (is_out_of_time(runtime, now) && plan_next(&runtime->plan) &&
            plan_next_undo(&runtime->plan))
            runtime->has_failed = true;
        if (is_out_of_time(runtime, now)) {
            give_up(runtime, now);
            return;
        }
        runtime_set_next(runtime, idle_deadline(runtime));
        connection = runtime_free_connection(runtime);
        if (connection)
            ask_send(runtime, connection, now);
    } else if (runtime->state == RUNTIME_APPLYING) {
        advance_steps(runtime, now);
    } else {
        advance_undo(runtime, now);
    }
}

void apply_answered(struct runtime *runtime, struct connection *connection, struct moment now)
{
    bool leaves_open =
        command_row(connection->command)->set == command_row(COMMAND_ASK_KIND)->set &&
        !reply_is_ok(&connection->reply);

    switch (runtime->state) {
    case RUNTIME_ASKING:
        ask_answered(runtime, connection, now);
        break;
    case RUNTIME_DECIDING:
    case RUNTIME_APPLYING:
        step_answered(runtime, &connection->reply, now);
        break;
    case RUNTIME_WITHDRAWING:
        undo_answered(runtime, &connection->reply, now);
        break;
    default:
        break;
    }
    /* After an error in the profiler set the runtime waits for us to close (measured on 8 to 11).
     */
    if (leaves_open)
        connection_close(connection, now);
}

void apply_lost(struct runtime *runtime, struct moment now)
{
    switch (runtime->state) {
    case RUNTIME_ASKING:
        ask_lost(runtime, now);
        break;
    case RUNTIME_DECIDING:
    case RUNTIME_APPLYING:
        step_lost(runtime, now);
        break;
    case RUNTIME_WITHDRAWING:
        undo_lost(runtime, now);
        break;
    default:
        return;
    }
    runtime_advance(runtime, now);
}

/* Where an earlier daemon sent the last of it, only its facts were still to be looked at. */
static bool is_complete(struct runtime *runtime)
{
    bool has_begun = runtime->state == RUNTIME_APPLYING ||
                     (runtime->state < RUNTIME_APPLYING && plan_was_sent(&runtime->plan));

    return has_begun && runtime->flight != FLIGHT_STEP && !runtime->has_failed &&
           !plan_next(&runtime->plan) && !plan_has_failed(&runtime->plan);
}

/* Whatever is under way ends here; the connection in use is free for Resume or is closed. True when
 * the plan was complete. */
static bool settle(struct runtime *runtime, const char *why, struct moment now)
{
    struct step *step = runtime->flight == FLIGHT_STEP ? runtime->step : NULL;
    struct connection *busy = util_take(&runtime->busy);
    bool was_complete = is_complete(runtime);

    runtime->question = broker_forget_question(runtime->broker, runtime->question);
    runtime->step = NULL;
    runtime->retry_at = MOMENT_NEVER;
    if (step)
        answer_step(runtime, step, STEP_LOST, 0, now);
    tell_skipped(runtime, why, now);
    if (runtime->outcome == OUTCOME_NONE)
        runtime->outcome = was_complete ? outcome_of(&runtime->plan) : outcome_of_failed(runtime);
    runtime->flight = FLIGHT_NONE;
    if (busy)
        connection_close(busy, now);
    return was_complete;
}

void apply_stop(struct runtime *runtime, const char *why, bool is_forced, struct moment now)
{
    enum runtime_state state = runtime->state;
    bool was_complete;

    if (state >= RUNTIME_RESUMING)
        return;
    was_complete = settle(runtime, why, now);
    if (state == RUNTIME_HELD || is_forced)
        resume_begin(runtime, runtime->outcome, why, now);
    else if (was_complete)
        /* Only its session, or the end of a connection, was still waited for. */
        finish(runtime, runtime->outcome, why, now);
    else
        fail_finally(runtime, runtime->outcome, why, now);
}

void apply_abandon(struct runtime *runtime, const char *why, struct moment now)
{
    if (runtime->state < RUNTIME_RESUMING)
        (void)settle(runtime, why, now);
    kill_begin(runtime, why, now);
}

void apply_deadline(struct runtime *runtime, struct moment now)
{
    switch (runtime->state) {
    case RUNTIME_HELD:
        resume_begin(runtime, runtime->outcome, "its hold ended", now);
        return;
    case RUNTIME_KILLING:
        kill_failed(runtime, now);
        return;
    default:
        break;
    }
    if (runtime->flight != FLIGHT_NONE)
        runtime_lose_flight(runtime, now);
    else
        runtime_advance(runtime, now);
}
