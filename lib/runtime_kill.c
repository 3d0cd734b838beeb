/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kills a runtime, by a rule or by an operator: only after a last look that it
 * is still the same program in the same process, and only by its handle.
 */

#include <string.h>

#include "lib/broker_core.h"
#include "lib/facts.h"

void kill_begin(struct runtime *runtime, const char *why, struct moment now)
{
    struct moment time_out = moment_after(now, runtime_keys(runtime)->command_timeout);

    runtime->why = why;
    runtime_set_state(runtime, RUNTIME_KILLING, time_out, why, now);
    attach_stop(runtime, "it is being killed", now);
    if (runtime->flight == FLIGHT_ATTACH)
        runtime_lose_flight(runtime, now);
    if (!runtime->process->is_identified ||
        !broker_ask(runtime->broker, QUESTION_KILL, NULL, runtime, FACTS_STAT | FACTS_EXE, NULL, 0))
        kill_failed(runtime, now);
}

void kill_facts(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    const char *exe = attributes_text(&runtime->attributes, ATTRIBUTE_EXE);
    struct attributes attributes;
    struct action *action;
    bool is_same;

    if (runtime->state != RUNTIME_KILLING)
        return;
    attributes_init(&attributes);
    is_same = facts->is_alive && (facts->has_handle || runtime->process->is_held) &&
              attributes_take_facts(&attributes, runtime->pid, facts, NULL) == 0 &&
              attributes.start_time == runtime->start_time;
    /* Nobody who took the pid over, or became another program, is killed in its place. */
    if (is_same && exe) {
        const char *exe_now = attributes_text(&attributes, ATTRIBUTE_EXE);

        is_same = exe_now && strcmp(exe_now, exe) == 0;
    }
    attributes_deinit(&attributes);
    if (is_same && facts->has_handle)
        runtime_hold_process(runtime);
    action = is_same && runtime->process->is_held
                 ? action_add(&runtime->broker->actions, ACTION_KILL)
                 : NULL;
    if (!action) {
        kill_failed(runtime, now);
        return;
    }
    action->process = runtime->process->id;
    runtime_set_state(runtime, RUNTIME_KILLED, MOMENT_NEVER, runtime->why, now);
}

void kill_failed(struct runtime *runtime, struct moment now)
{
    if (runtime->state != RUNTIME_KILLING && runtime->state != RUNTIME_KILLED)
        return;
    resume_begin(runtime, runtime->outcome, "it could not be killed", now);
}
