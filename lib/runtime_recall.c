/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plan that an earlier daemon began goes on where the record of it says: by the
 * policy it was begun by, and in the time that it had.
 */

#include <assert.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/facts.h"

/* Its rule and plan as they were; false when the record does not fit to the policy it names. */
static bool take_plan(struct runtime *runtime, const struct memory *memory, struct moment now)
{
    const struct record *record = &memory->record;

    if (record->rule >= memory->policy->n_rules)
        return false;
    policy_unref(runtime->policy);
    runtime->policy = policy_ref(memory->policy);
    if (!runtime->is_unseen)
        decide_show_match(runtime, now);
    runtime->rule = &runtime->policy->rules[record->rule];
    return plan_build(&runtime->plan, runtime->rule, record->knows_primer) == 0 &&
           plan_recall(&runtime->plan, record, runtime->flight == FLIGHT_STEP,
                       runtime->rule->keys.on_lost == POLICY_LOST_SKIP, now);
}

/* Its time goes on too: neither a restart nor a crash gives it more. */
static void take_times(struct runtime *runtime, const struct record *record, struct moment now)
{
    struct moment connected_at = {record->connected_at};

    if (moment_is_before(connected_at, now))
        runtime->connected_at = connected_at;
    runtime->is_hold_wished = record->is_hold_wished;
    runtime->hold_until = (struct moment){record->hold_until};
    if (runtime->rule)
        runtime->deadline_length = runtime->rule->keys.deadline;
    deadline_set(&runtime->broker->ends, &runtime->end,
                 moment_after(runtime->connected_at, runtime->deadline_length));
}

/* A step of it is in flight on the connection that was kept: as if it had been sent now. */
static void await_answer(struct runtime *runtime, struct moment now)
{
    runtime->is_awaiting = true;
    runtime->step = plan_awaited(&runtime->plan);
    runtime->busy->command = plan_command(runtime->step);
    runtime_set_next(runtime, apply_answer_deadline(runtime, now));
}

void recall_advance(struct runtime *runtime, struct moment now)
{
    if (!runtime->is_awaiting)
        return;
    runtime->is_awaiting = false;
    /* What is sent again was refused long ago by the time that all is known. */
    runtime->retry_at = MOMENT_NEVER;
    runtime_set_next(runtime, MOMENT_NEVER);
    decide_begin_plan(runtime, NULL, now);
}

static void ask_identity(struct runtime *runtime, struct moment now)
{
    if (!broker_ask(runtime->broker, QUESTION_IDENTITY, NULL, runtime,
                    broker_facts_wanted(runtime->policy), NULL, 0))
        broker_out_of_memory(runtime->broker, now);
}

static void go_on_with_plan(struct runtime *runtime, const struct memory *memory,
                            const struct facts *facts, struct moment now)
{
    const struct record *record = &memory->record;
    static const char why[] = "the daemon before this one had it so";

    runtime->is_recalled = true;
    switch (record->phase) {
    case RECORD_HELD:
        runtime->outcome = (enum runtime_outcome)record->outcome;
        if (facts && facts->has_handle)
            runtime_hold_process(runtime);
        runtime_set_state(runtime, RUNTIME_HELD, runtime->hold_until, why, now);
        if (runtime->is_unseen)
            ask_identity(runtime, now);
        return;
    case RECORD_KILLING:
        runtime->outcome = (enum runtime_outcome)record->outcome;
        kill_begin(runtime, why, now);
        return;
    case RECORD_WITHDRAWING:
        runtime->has_failed = true;
        break;
    case RECORD_NONE:
    case RECORD_BEGUN:
    case RECORD_RESUMED:
        break;
    }
    if (runtime->flight != FLIGHT_NONE)
        await_answer(runtime, now);
    else
        decide_begin_plan(runtime, facts, now);
}

static bool names_a_policy(const struct record *record)
{
    static const uint8_t none[RECORD_POLICY_SIZE];

    return memcmp(record->policy, none, sizeof none) != 0;
}

/* No rule was found yet, or nothing of its plan can have reached the runtime. */
static bool was_only_known(const struct record *record)
{
    for (size_t i = 0; i < record->n_runs; i++) {
        if (record->runs[i].step != RECORD_STEP_PENDING)
            return false;
    }
    return record->phase == RECORD_BEGUN;
}

void recall_decide(struct runtime *runtime, struct memory *memory, const struct facts *facts,
                   struct moment now)
{
    const struct record *record = &memory->record;

    if (record->phase == RECORD_RESUMED) {
        resume_begin(runtime, OUTCOME_LATE, "it was resumed before the daemon was started anew",
                     now);
    } else if (record->is_torn || record->outcome > OUTCOME_UNKNOWN) {
        resume_begin(runtime, OUTCOME_UNKNOWN,
                     "the daemon ended while it wrote down what was applied", now);
    } else if (was_only_known(record) && !(names_a_policy(record) && memory->policy)) {
        take_times(runtime, record, now);
        decide_by_policy(runtime, facts, now);
    } else if (names_a_policy(record) && (!memory->policy || !take_plan(runtime, memory, now))) {
        plan_skip_rest(&runtime->plan, "its plan cannot be gone on with", now);
        resume_begin(runtime, OUTCOME_UNKNOWN,
                     "the daemon ended in the middle of its plan, and what that was is not there "
                     "any more",
                     now);
    } else {
        take_times(runtime, record, now);
        go_on_with_plan(runtime, memory, facts, now);
    }
}

void recall_adopted(struct runtime *runtime, struct moment now)
{
    struct memory *memory = memory_take(runtime);
    struct connection *connection = runtime->kept;

    assert(memory && connection);
    runtime->is_unseen = true;
    runtime->process->has_more_cookies |= memory_has_neighbour(runtime);
    if (memory->record.phase != RECORD_HELD) {
        connection_set_state(connection, CONNECTION_BUSY, MOMENT_NEVER);
        reply_keep(&connection->reply, REPLY_STATUS_MAX);
        runtime->busy = connection;
        runtime->flight = FLIGHT_STEP;
        runtime->sent_at = (struct moment){memory->record.connected_at};
    }
    recall_decide(runtime, memory, NULL, now);
    memory_free(memory);
}
