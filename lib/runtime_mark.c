/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the next daemon has to know of a runtime, written down before each message
 * and after each answer. Where that goes, and whether it lasts, is not known here.
 */

#include <errno.h>

#include "lib/broker_core.h"

/* What can be gone on with, besides that there is a runtime. */
static void record_plan(const struct runtime *runtime, const struct step *sending,
                        struct record *record)
{
    if (runtime->rule) {
        policy_id(runtime->policy, record->policy);
        record->rule = (uint32_t)(runtime->rule - runtime->policy->rules);
    }
    record->connected_at = runtime->connected_at.us;
    record->hold_until =
        record->phase == RECORD_HELD ? runtime->next.at.us : runtime->hold_until.us;
    record->is_hold_wished = runtime->is_hold_wished;
    record->outcome = (uint8_t)runtime->outcome;
    /* Not one that was answered: nothing more is to be read there. */
    if (runtime->kept &&
        (runtime->kept->state == CONNECTION_IDLE || runtime->flight == FLIGHT_STEP))
        record->kept = runtime->kept->kept;
    plan_record(&runtime->plan, sending, record);
}

/* A daemon that goes leaves it to the next one as the one before wrote it down, but for what an
 * operator wants of it meanwhile. */
static void record_left(const struct runtime *runtime, struct record *left)
{
    if (runtime->is_hold_wished) {
        left->is_hold_wished = true;
        left->hold_until = runtime->hold_until.us;
    }
}

static int write_down(struct runtime *runtime, struct record *record)
{
    struct process_cookie *place = process_cookie(runtime->process, &runtime->cookie);

    if (place->slot == PROCESS_NO_SLOT)
        place->slot = broker_take_slot(runtime->broker);
    if (place->slot == PROCESS_NO_SLOT)
        return -ENOSPC;
    record->sequence = ++place->sequence;
    return broker_mark(runtime->broker, place->slot, record);
}

int runtime_mark(struct runtime *runtime, enum record_phase phase, const struct step *sending)
{
    struct record record = {
        .phase = phase,
        .pid = runtime->pid,
        .start_time = runtime->start_time,
        .cookie = runtime->cookie,
    };
    struct memory *left = memory_of(runtime);

    /* Nothing is applied to whom nobody could know again, so there is nothing to record. */
    if (!runtime->process->is_identified)
        return -ENOSPC;
    /* Once one of its ports may be resumed, nothing that came before it is to be gone on with. */
    if (runtime->is_marked_resumed)
        return 0;
    if (left && phase != RECORD_RESUMED) {
        record_left(runtime, &left->record);
        /* Written anew it would not say any more that it is. */
        return left->record.is_torn ? 0 : write_down(runtime, &left->record);
    }
    if (phase != RECORD_RESUMED)
        record_plan(runtime, sending, &record);
    return write_down(runtime, &record);
}

static enum record_phase phase_of(const struct runtime *runtime)
{
    switch (runtime->state) {
    case RUNTIME_DECIDING:
    case RUNTIME_ASKING:
    case RUNTIME_APPLYING:
        return runtime->has_failed ? RECORD_WITHDRAWING : RECORD_BEGUN;
    case RUNTIME_WITHDRAWING:
        return RECORD_WITHDRAWING;
    case RUNTIME_HELD:
        return RECORD_HELD;
    case RUNTIME_KILLING:
        return RECORD_KILLING;
    case RUNTIME_RESUMING:
    case RUNTIME_SETTLING:
    case RUNTIME_RUNNING:
    case RUNTIME_GONE:
    case RUNTIME_KILLED:
        break;
    }
    return RECORD_NONE;
}

void runtime_mark_progress(struct runtime *runtime, struct moment now)
{
    enum record_phase phase = phase_of(runtime);

    /* Without a rule there is only a hold to go on with. */
    if (phase == RECORD_NONE ||
        (!runtime->rule && phase != RECORD_HELD && !runtime->is_hold_wished))
        return;
    if (runtime_mark(runtime, phase, NULL) == -ENOMEM)
        broker_out_of_memory(runtime->broker, now);
}
