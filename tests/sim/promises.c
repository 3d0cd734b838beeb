/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the broker promises, as it can be seen from outside: by runtimes, by
 * operators and by the clock. What holds inside it is checked by the broker's
 * own broker_check, which the world calls after every event.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/policy.h"
#include "lib/primer_names.h"
#include "tests/sim/history.h"

/* Telling. */

const struct runtime *promises_find(const struct history *history, const struct actor *actor)
{
    const struct runtime *runtime = NULL, *found = NULL;

    while ((runtime = broker_next_runtime(history->world->broker, runtime))) {
        if (runtime->pid == actor->runtime->process->pid &&
            guid_compare(&runtime->cookie, &actor->runtime->cookie) == 0)
            found = runtime;
    }
    return found;
}

static const char *connection_tells(const struct world_connection *connection)
{
    if (!connection || connection->has_ended)
        return "not connected";
    if (connection->is_closed)
        return "closed by the broker";
    return connection->is_accepted ? "heard" : "unheard";
}

void promises_tell(const struct history *history, const struct actor *actor)
{
    const struct world_runtime *runtime = actor->runtime;
    const struct runtime *seen = promises_find(history, actor);

    fprintf(stderr, "  %s, .NET %u, %s, pid %d; it got: %s\n", actor->exe ? actor->exe : "(hidden)",
            runtime->major, runtime_kind_name(runtime->kind), runtime->process->pid,
            world_story(runtime));
    for (size_t i = 0; i < runtime->n_ports; i++)
        fprintf(stderr, "  port %zu: listener %u, %s, %s\n", i, runtime->ports[i],
                runtime->is_resumed[i] ? "resumed" : "not resumed",
                connection_tells(runtime->connections[i]));
    if (seen)
        fprintf(stderr, "  the broker says: %s, %s, %s; %zu connections, %s\n",
                runtime_state_name(seen->state),
                seen->outcome ? runtime_outcome_name(seen->outcome) : "-", seen->why,
                seen->n_connections, seen->blocked ? runtime_blocked_name(seen->blocked) : "-");
    for (size_t i = 0; seen && i < seen->plan.n_steps; i++) {
        const struct step *step = &seen->plan.steps[i];

        fprintf(stderr, "  step %s %s: %s, %u times, undone %u times%s%s\n",
                step_kind_name(step->kind), step->name ? step->name : "",
                step_result_name(step->result), step->attempts, step->undo_attempts,
                step->why ? ": " : "", step->why ? step->why : "");
    }
}

void promises_broken(const struct history *history, const struct actor *actor, const char *promise)
{
    fprintf(stderr, "broken: %s\n", promise);
    if (actor)
        promises_tell(history, actor);
    abort();
}

/* What a runtime was told. */

static bool has_own_profiler(const struct world_process *process)
{
    for (const char *at = process->environ; at && *at != '\0'; at += strlen(at) + 1) {
        if (strncmp(at, PLAN_SWITCH "=1", strlen(PLAN_SWITCH "=1")) == 0)
            return true;
    }
    return false;
}

static bool was_told_names(const struct world_runtime *runtime, const struct world_command *before)
{
    for (const struct world_command *command = runtime->commands; command < before; command++) {
        if (command->id == COMMAND_SET_ENVIRONMENT && !command->is_unset &&
            strcmp(command->name, PRIMER_NAMES) == 0)
            return true;
    }
    return false;
}

/* It is told of the variables before it is sent, and loads before all profilers, so it is sent
 * after them. */
static void check_primer(const struct history *history, const struct actor *actor,
                         const struct world_command *command, bool was_sent)
{
    bool is_for_primer =
        strcmp(command->name, PRIMER_NAMES) == 0 || strcmp(command->name, PRIMER_LIBRARIES) == 0;

    if (command->is_primer && !was_told_names(actor->runtime, command))
        promises_broken(history, actor, "the primer knows what to do");
    if (was_sent && command->id == COMMAND_STARTUP_PROFILER && !command->is_primer)
        promises_broken(history, actor, "the primer loads before all profilers");
    if (was_sent && command->id == COMMAND_SET_ENVIRONMENT && is_for_primer && !command->is_unset)
        promises_broken(history, actor, "the primer is told of variables before it is sent");
}

/* The one thing that is sent to who runs, and only where a session is. */
static bool is_end_of_session(const struct history *history, const struct actor *actor,
                              const struct world_command *command, bool was_resumed)
{
    if (command->id != COMMAND_STOP_TRACING)
        return false;
    if (!was_resumed && !actor->was_restarted && !history->has_limits)
        promises_broken(history, actor, "nobody is asked to end a session before Resume");
    if (actor->runtime->n_sessions == 0)
        promises_broken(history, actor, "a session is ended where there is one");
    return true;
}

/* Only an operator has it sent, to who runs and can take it; true when the rest does not apply. */
static bool is_of_operator(const struct history *history, const struct actor *actor,
                           const struct world_command *command, bool was_resumed)
{
    /* Who shows nothing, and waits at a port that is not ours, may be taken for running; asking
     * what it is does no harm. */
    if (command->id != COMMAND_ATTACH_PROFILER)
        return command->id == COMMAND_ASK_KIND && was_resumed && actor->is_attached_to;
    if (!actor->is_attached_to)
        promises_broken(history, actor, "a profiler is attached where an operator wants it");
    /* One that shows nothing and still waits elsewhere answers that it is not ready (measured). */
    if (!was_resumed)
        promises_broken(history, actor, "who is suspended has no profiler attached");
    if (actor->runtime->kind == RUNTIME_KIND_NATIVEAOT)
        promises_broken(history, actor, "NativeAOT has no profiler attached (P13)");
    if (strcmp(command->name, "/opt/p.so") != 0)
        promises_broken(history, actor, "a file that is not there is not sent for");
    return true;
}

/* P3, P4, P6, P9, P12 and P13. */
static void check_commands(const struct history *history, const struct actor *actor)
{
    const struct world_runtime *runtime = actor->runtime;
    size_t n_hooks = 0, n_profilers = 0, n_primers = 0;
    bool was_told = false, was_resumed = false, was_stopped = false, is_switched_off = false;

    for (size_t i = 0; i < runtime->n_commands; i++) {
        const struct world_command *command = &runtime->commands[i];
        bool is_resume = command->id == COMMAND_RESUME;
        bool is_deadly = command->is_unset || command->id == COMMAND_APPLY_STARTUP_HOOK ||
                         command->id == COMMAND_STARTUP_PROFILER;

        if (is_end_of_session(history, actor, command, was_resumed) ||
            is_of_operator(history, actor, command, was_resumed))
            continue;
        if (!actor->is_matched && !is_resume)
            promises_broken(history, actor, "who no plan is for gets nothing but Resume (P4)");
        if (!actor->may_be_touched && !is_resume)
            promises_broken(history, actor, "who lies about himself gets no plan (P6)");
        /* Who is over a limit gets Resume before it is known who he is. */
        if (was_resumed && !is_resume && !actor->is_forgotten && !history->has_limits)
            promises_broken(history, actor, "Resume comes last (P2)");
        /* Over a limit a port may be resumed earlier than others, but nobody runs before his plan.
         */
        if (command->came_late && !is_resume && !actor->is_forgotten)
            promises_broken(history, actor, "who runs is told nothing more (P2)");
        /* But that is the end of what was begun. */
        if (was_stopped && !is_resume && !actor->is_forgotten && !actor->was_restarted)
            promises_broken(history, actor, "Resume ends a plan (P2)");
        was_told |= !is_resume;
        was_resumed |= is_resume;
        was_stopped |= was_told && is_resume;
        n_hooks += command->id == COMMAND_APPLY_STARTUP_HOOK;
        check_primer(history, actor, command, n_primers > 0);
        n_profilers +=
            command->id == COMMAND_STARTUP_PROFILER && !command->is_primer && !command->was_refused;
        n_primers += command->is_primer && !command->was_refused;
        is_switched_off |= command->id == COMMAND_SET_ENVIRONMENT && command->was_answered &&
                           !command->was_refused && strcmp(command->name, PLAN_SWITCH) == 0 &&
                           strcmp(command->value, "0") == 0;
        if (command->id == COMMAND_STARTUP_PROFILER && has_own_profiler(runtime->process) &&
            !is_switched_off)
            promises_broken(history, actor,
                            "no profiler is sent that another one would win over (P12)");
        if (is_deadly && runtime->kind == RUNTIME_KIND_NATIVEAOT)
            promises_broken(history, actor, "NativeAOT gets nothing that it cannot take (P13)");
        if (is_deadly && runtime->process->hides_environ)
            promises_broken(history, actor,
                            "what can do harm goes through ports that are known to suspend (P13)");
        if (command->id == COMMAND_PROCESS_ENVIRONMENT && runtime->kind == RUNTIME_KIND_NATIVEAOT)
            promises_broken(history, actor, "NativeAOT is not asked for its environment (P13)");
        if (command->is_version_told && !command_is_known_to(command->id, runtime->major) &&
            command_row(command->id)->answer == COMMAND_ANSWERS_STATUS &&
            command->id != COMMAND_ASK_KIND)
            promises_broken(history, actor, "nothing is sent that its version does not know");
    }
    if (n_hooks > 1)
        promises_broken(history, actor, "no hook is sent twice (P3)");
    if (n_profilers > 1)
        promises_broken(history, actor, "no profiler is sent twice (P3)");
    if (n_primers > 1)
        promises_broken(history, actor, "there is one primer (P3)");
}

/* P4 and P9: one command, where nothing but its rules decides about it. */
static void check_untouched(const struct history *history, const struct actor *actor)
{
    const struct world_runtime *runtime = actor->runtime;
    const struct world_process *process = runtime->process;
    const struct runtime *seen = promises_find(history, actor);

    if (history->world->are_answers_slow || history->has_limits || actor->is_matched ||
        !actor->is_unchanged || actor->fault_percent > 0 || runtime->n_ports > 1 ||
        runtime->has_foreign_port || process->hides_environ || !seen ||
        seen->outcome != OUTCOME_UNTOUCHED)
        return;
    if (runtime->n_taken > 1)
        promises_broken(history, actor, "who no rule matches gets one command (P4)");
}

/* P11: one policy, no older than when it came. */
static void check_generation(const struct history *history, const struct actor *actor)
{
    long seen = -1;

    for (size_t i = 0; i < actor->runtime->n_commands; i++) {
        const struct world_command *command = &actor->runtime->commands[i];
        long generation;

        if (command->id != COMMAND_SET_ENVIRONMENT || command->is_unset ||
            strcmp(command->name, "GEN") != 0)
            continue;
        generation = strtol(command->value, NULL, 10);
        if (seen >= 0 && generation != seen && !actor->is_forgotten)
            promises_broken(history, actor, "a reload changes nothing for who is there (P11)");
        if (generation < (long)actor->generation)
            promises_broken(history, actor, "a new policy is in force for who comes (P11)");
        seen = generation;
    }
}

/* Time. */

static bool is_short_of_memory(const struct history *history)
{
    return moment_is_before(history->world->now, history->shortage);
}

/* By us. Whoever was held is past his deadline. */
static bool is_kept(const struct runtime *runtime)
{
    bool was_held = strcmp(runtime->why, "its hold ended") == 0 ||
                    strcmp(runtime->why, "an operator resumed it") == 0;

    return runtime->state < RUNTIME_HELD || (compare_is_under_way(runtime) && !was_held);
}

/* P1: at the deadline nothing of ours keeps a runtime but its rule or an operator. */
static void check_deadline(const struct history *history, const struct runtime *runtime)
{
    struct moment deadline = moment_after(runtime->connected_at, runtime->deadline_length);

    if (runtime->deadline_length.us > history->deadline.us)
        promises_broken(history, NULL, "no deadline is longer than that of a rule (P1)");
    if (is_kept(runtime) && moment_is_due(deadline, history->world->now))
        promises_broken(history, NULL, "at the deadline nothing of ours keeps a runtime (P1)");
}

/* P1: a plan that is gone on with has no more time than it had. */
static void check_time_goes_on(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    if (seen && seen->is_recalled && !actor->is_namesake && !actor->is_forgotten &&
        moment_is_before(actor->planned_at, seen->connected_at))
        promises_broken(history, actor, "another daemon gives nobody more time (P1)");
}

/* A profiler that an operator wants is there, or it is known that it is not, or that nobody knows,
 * when its time and a second are over: once for being sent, and once for its answer. */
static void check_attaches(const struct history *history, const struct runtime *runtime)
{
    const struct attach *attach;
    size_t n_open = 0;

    TAILQ_FOREACH(attach, &runtime->attaches, link) {
        n_open += attach->step.result == STEP_PENDING;
        if (attach->step.result == STEP_PENDING &&
            moment_is_due(attach->until, history->world->now))
            promises_broken(history, NULL, "a profiler is attached in time, or not at all");
    }
    if (n_open > 1 || (runtime->flight == FLIGHT_ATTACH && runtime->state != RUNTIME_RUNNING))
        promises_broken(history, NULL, "one profiler is attached at a time, to who runs");
}

/* What is said to be there is. */
static void check_attached(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);
    const struct attach *attach;
    unsigned n_there = 0;

    if (!seen || actor->is_namesake)
        return;
    TAILQ_FOREACH(attach, &seen->attaches, link) {
        n_there += attach->step.result == STEP_OK;
    }
    if (n_there > actor->runtime->n_attached)
        promises_broken(history, actor, "a profiler that is said to be attached is");
}

/* P1: Resume is written the instant a connection is free. */
static void check_resume(const struct history *history, const struct actor *actor)
{
    const struct world_runtime *runtime = actor->runtime;
    const struct runtime *seen = promises_find(history, actor);
    bool is_free = false;

    if (!seen || seen->state != RUNTIME_RESUMING || seen->n_connections == 0 || seen->busy ||
        compare_is_under_way(seen) || is_short_of_memory(history))
        return;
    for (size_t i = 0; i < runtime->n_ports; i++) {
        const struct world_connection *connection = runtime->connections[i];

        is_free |= !runtime->is_resumed[i] && connection && connection->is_accepted &&
                   !connection->is_closed && !connection->has_ended &&
                   connection->inbox_length == 0;
    }
    if (is_free)
        promises_broken(history, actor, "Resume is written when a connection is free (P1)");
}

/* What came of it. */

static bool has_its_environment(const struct actor *actor)
{
    for (size_t i = 0; i < actor->n_variables; i++) {
        const char *value = world_variable(actor->runtime, actor->variables[i].name);

        if (!value || strcmp(value, actor->variables[i].value) != 0)
            return false;
    }
    return actor->runtime->n_variables == actor->n_variables;
}

/* P5: it is as if nothing had been. */
static void check_nothing_is_left(const struct history *history, const struct actor *actor,
                                  enum runtime_outcome outcome)
{
    if (!has_its_environment(actor))
        promises_broken(history, actor, "variables are put back, or it is said (P5)");
    if (actor->runtime->n_hooks > 0 || actor->runtime->n_profilers > 0 ||
        actor->runtime->n_primers > 0)
        promises_broken(history, actor, "hooks and profilers that stay are said to (P5)");
    for (size_t i = 0; i < actor->runtime->n_commands && outcome == OUTCOME_FAILED; i++) {
        if (actor->runtime->commands[i].id == COMMAND_SET_ENVIRONMENT)
            promises_broken(history, actor, "failed is said when nothing was sent (P5)");
    }
}

static void check_variable(const struct history *history, const struct actor *actor,
                           const char *name, const char *wanted)
{
    const char *value = world_variable(actor->runtime, name);

    if (!value || strcmp(value, wanted) != 0)
        promises_broken(history, actor, "applied is said when all is applied (P2)");
}

static void check_all_is_there(const struct history *history, const struct actor *actor,
                               const struct runtime *seen)
{
    for (size_t i = 0; i < seen->plan.n_steps; i++) {
        const struct step *step = &seen->plan.steps[i];

        if (step->kind == STEP_VARIABLE && step->is_left_out)
            continue;
        if (step->kind == STEP_VARIABLE && step->is_required && step->value)
            check_variable(history, actor, step->name, step->value);
        if (step->kind == STEP_VARIABLE && step->is_required && !step->value &&
            world_variable(actor->runtime, step->name))
            promises_broken(history, actor, "applied is said when all is applied (P2)");
        if ((step->kind == STEP_HOOK && step->is_required && actor->runtime->n_hooks != 1) ||
            (step->kind == STEP_PROFILER && step->is_required &&
             actor->runtime->n_profilers != 1) ||
            (step->kind == STEP_PRIMER && step->is_required && actor->runtime->n_primers != 1))
            promises_broken(history, actor, "applied is said when all is applied (P2)");
    }
}

/* A step that may have been taken back says so. */
static void check_what_is_said_to_stay(const struct history *history, const struct actor *actor,
                                       const struct runtime *seen)
{
    for (size_t i = 0; i < seen->plan.n_steps; i++) {
        const struct step *step = &seen->plan.steps[i];
        const char *value;

        if (step->kind != STEP_VARIABLE || step->result != STEP_OK)
            continue;
        value = world_variable(actor->runtime, step->name);
        /* Files that nobody looked at since a restart are called as they are written. */
        if (step->is_for_primer && value)
            continue;
        if (step->value ? !value || strcmp(value, step->value) != 0 : value != NULL)
            promises_broken(history, actor, "a variable that is said to be there is (P8)");
    }
}

/* What an earlier daemon did to it is known where its plan was gone on with. */
static bool is_known_from_the_beginning(const struct actor *actor, const struct runtime *seen)
{
    return !actor->was_restarted || (seen->is_recalled && !actor->is_forgotten);
}

/* A variable of its plan is there, and nothing was said to keep it there. */
static bool has_more_to_take_back(const struct runtime *seen)
{
    for (size_t i = 0; i < seen->plan.n_steps; i++) {
        const struct step *step = &seen->plan.steps[i];

        if (step->kind == STEP_VARIABLE && step->result == STEP_OK && !step->undo_failed)
            return true;
    }
    return false;
}

/* P10: records that are there, and the policies that they name, are enough to go on. */
static void check_goes_on(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    /* Laying it out takes memory. */
    if (seen && !history->has_ever_run_short &&
        strstr(seen->why, "what that was is not there any more"))
        promises_broken(history, actor, "a plan goes on after a restart (P10)");
    if (seen && seen->is_recalled && actor->has_failed && !actor->is_namesake &&
        strcmp(seen->why, "its deadline is near") == 0 && has_more_to_take_back(seen))
        promises_broken(history, actor, "what was being taken back is, while there is time (P5)");
}

/* P3, P10: what the daemon before it could not read is read. */
static void check_kept_answer(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    /* Whoever may run by now is not read first. */
    if (!seen || !actor->has_kept_answer || strstr(seen->why, "resumed over a limit"))
        return;
    for (size_t i = 0; i < seen->plan.n_steps; i++) {
        if (seen->plan.steps[i].kind == actor->kept_step && seen->plan.steps[i].result == STEP_LOST)
            promises_broken(history, actor, "an answer that was kept is not lost (P10)");
    }
}

/* P7, P9: no more than may be, and nothing of who has got all that it is to get. */
static void check_kept(const struct history *history)
{
    const struct world *world = history->world;
    size_t n = 0, n_of_user[2] = {0};

    for (size_t i = 0; i < world->n_open; i++) {
        const struct world_connection *connection = world->open[i];

        if (connection->kept == 0)
            continue;
        n++;
        n_of_user[connection->process->uid - 1000]++;
        if (!connection->core || connection->core->runtime->is_marked_resumed)
            promises_broken(history, NULL, "nothing is kept of who is done (P9)");
    }
    if (n > world->n_keepable)
        promises_broken(history, NULL, "no more connections are kept than may be (P7)");
    for (size_t i = 0; i < ARRAY_LENGTH(n_of_user); i++) {
        if (n_of_user[i] > (world->n_keepable + BROKER_KEPT_SHARES - 1) / BROKER_KEPT_SHARES)
            promises_broken(history, NULL, "one user leaves room for others (P7)");
    }
}

/* Whoever was asked about them answered at once, and there was time for it. */
static bool was_compared(const struct history *history, const struct actor *actor,
                         const struct runtime *seen)
{
    return !history->world->are_answers_slow && !history->has_ever_run_short &&
           !history->is_stopping && !actor->was_restarted && !actor->is_over &&
           !actor->is_namesake && !actor->runtime->process->is_silent &&
           moment_is_before(seen->resumed_at,
                            moment_after(seen->connected_at, seen->deadline_length));
}

/* P8: what it loads is what was checked, or it is said. */
static void check_files(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    if (!seen)
        return;
    for (size_t i = 0; i < seen->plan.n_steps; i++) {
        const struct step *step = &seen->plan.steps[i];

        if (step->code == PREFLIGHT_REPLACED && actor->runtime->process->n_replaced == 0)
            promises_broken(history, actor, "no file is said to be replaced that is not (P8)");
        if (step->code != PREFLIGHT_REPLACED && step->has_identity && step->result == STEP_OK &&
            actor->has_new_files && seen->state == RUNTIME_RUNNING &&
            was_compared(history, actor, seen))
            promises_broken(history, actor, "a file that was replaced is said to be (P8)");
    }
}

/* Only of who is known from the beginning, and who was not mistaken for another. */
static void check_outcome(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    /* A last connection that was heard after its death is of nobody that is known. */
    if (!seen || seen->start_time == 0 || !is_known_from_the_beginning(actor, seen) ||
        actor->is_namesake || actor->is_over || seen->state < RUNTIME_RUNNING ||
        seen->state > RUNTIME_GONE)
        return;
    switch (seen->outcome) {
    case OUTCOME_APPLIED:
        check_all_is_there(history, actor, seen);
        return;
    case OUTCOME_UNTOUCHED:
    case OUTCOME_ROLLED_BACK:
    case OUTCOME_FAILED:
    case OUTCOME_LATE:
        check_nothing_is_left(history, actor, seen->outcome);
        return;
    case OUTCOME_UNKNOWN:
        /* What came before it was taken for another one is said of that other one. */
        if (!actor->has_neighbour)
            check_nothing_is_left(history, actor, seen->outcome);
        return;
    case OUTCOME_PARTIAL:
        check_what_is_said_to_stay(history, actor, seen);
        return;
    case OUTCOME_NONE:
        return;
    }
}

/* P10: nobody is killed in another one's place. */
static void check_killed(const struct history *history, const struct runtime *runtime)
{
    const char *exe = attributes_text(&runtime->attributes, ATTRIBUTE_EXE);

    for (size_t i = 0; i < history->n_actors && runtime->state == RUNTIME_KILLED; i++) {
        const struct world_process *process = history->actors[i].runtime->process;

        if (process->pid == runtime->pid && process->was_killed && process->killed_as && exe &&
            strcmp(process->killed_as, exe) != 0)
            promises_broken(history, &history->actors[i],
                            "only the program that was to be killed is killed (P10)");
    }
}

/* P10: its end is known as soon as it is told. */
static void check_ended(const struct history *history, const struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    if (actor->runtime->process->was_told_ended && seen && seen->process &&
        seen->process->is_identified && !runtime_has_ended(seen))
        promises_broken(history, actor, "whose process was told to have ended is gone (P10)");
}

/* P7: what is kept is bounded. */
static void check_bounds(const struct history *history)
{
    const struct world *world = history->world;
    const struct policy_limits *limits = &broker_policy(world->broker)->limits;
    const struct broker_counters *counters = broker_counters(world->broker);
    size_t n_ended = 0;

    n_ended += broker_count(world->broker, RUNTIME_GONE);
    if (n_ended > limits->history_records)
        promises_broken(history, NULL, "no more ended runtimes are remembered than wished (P7)");
    if (counters->n_silent > history->silent)
        promises_broken(history, NULL, "no more silent connections are kept than wished (P7)");
    if (counters->n_connections > world->usable_descriptors)
        promises_broken(history, NULL, "no more connections are held than there is room for (P7)");
    if (world->n_unread > 0)
        promises_broken(history, NULL, "what is there is read before a deadline is judged (P1)");
}

void promises_check(const struct history *history)
{
    const struct runtime *runtime = NULL;

    for (size_t i = 0; i < history->n_actors; i++) {
        check_commands(history, &history->actors[i]);
        check_untouched(history, &history->actors[i]);
        check_generation(history, &history->actors[i]);
        check_outcome(history, &history->actors[i]);
        check_files(history, &history->actors[i]);
        check_goes_on(history, &history->actors[i]);
        check_kept_answer(history, &history->actors[i]);
        check_time_goes_on(history, &history->actors[i]);
        check_ended(history, &history->actors[i]);
        check_attached(history, &history->actors[i]);
        if (history->is_current && !history->is_stopping)
            check_resume(history, &history->actors[i]);
    }
    check_bounds(history);
    check_kept(history);
    while ((runtime = broker_next_runtime(history->world->broker, runtime))) {
        check_killed(history, runtime);
        if (history->resumes_all && runtime->state != RUNTIME_DECIDING &&
            runtime->state < RUNTIME_KILLING)
            promises_broken(history, NULL, "a daemon that goes leaves nobody waiting (P8)");
        if (history->is_current && !history->is_stopping)
            check_deadline(history, runtime);
        if (history->is_current)
            check_attaches(history, runtime);
    }
}

/* The end. */

static bool is_waiting(const struct actor *actor)
{
    if (actor->runtime->process->is_dead || actor->runtime->process->was_killed || actor->is_over)
        return false;
    for (size_t i = 0; i < actor->runtime->n_ports; i++) {
        if (!actor->runtime->is_resumed[i])
            return true;
    }
    return false;
}

static bool is_unheard(const struct actor *actor)
{
    bool is_unheard = false;

    for (size_t i = 0; i < actor->runtime->n_ports; i++) {
        const struct world_connection *connection = actor->runtime->connections[i];

        is_unheard |= connection && !connection->is_accepted && !connection->is_closed;
    }
    return is_unheard;
}

/* Where descriptors do not last for all, those who are served make room by and by. */
static bool make_room(struct history *history)
{
    for (size_t i = 0; i < history->n_strangers; i++)
        world_end(history->strangers[i]);
    for (size_t i = 0; i < history->n_actors; i++) {
        struct world_process *process = history->actors[i].runtime->process;

        if (!process->is_dead && !is_waiting(&history->actors[i])) {
            world_kill(history->world, process);
            return true;
        }
    }
    return false;
}

static bool somebody_is_idle(const struct history *history)
{
    const struct runtime *runtime = NULL;

    while ((runtime = broker_next_runtime(history->world->broker, runtime))) {
        if (runtime->state == RUNTIME_RUNNING && runtime->n_connections > 0)
            return true;
    }
    return false;
}

/* Who is known and has no connection, while another that runs keeps his. */
static const struct actor *find_missed(const struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        const struct actor *actor = &history->actors[i];
        const struct runtime *seen = promises_find(history, actor);

        if (is_waiting(actor) && is_unheard(actor) && seen && runtime_is_pending(seen) &&
            seen->n_connections == 0 && somebody_is_idle(history))
            return actor;
    }
    return NULL;
}

/* Before anybody dies for it. Whoever runs may have begun to just now, and rounds take a while. */
static void check_nobody_is_missed(struct history *history)
{
    const struct actor *actor = find_missed(history);

    if (actor) {
        history_live_on(history, span_from_s(30));
        actor = find_missed(history);
    }
    if (actor)
        promises_broken(history, actor, "who runs makes room for who is missed (P1)");
}

/* Nor is one open for long, whatever is said in it. */
static void check_sessions_end(const struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        const struct world_connection *session = history->actors[i].runtime->session;

        if (session && !session->is_closed && !session->has_ended)
            promises_broken(history, &history->actors[i], "a session ends in its time (P7)");
    }
}

static void check_all_run(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        while (is_waiting(&history->actors[i]) && is_unheard(&history->actors[i]) &&
               make_room(history))
            history_live_on(history, span_from_s(30));
        /* Too few descriptors for the ports of even one of each: nobody can help that. */
        if (is_unheard(&history->actors[i]) && history->world->is_paused)
            continue;
        if (is_waiting(&history->actors[i]))
            promises_broken(history, &history->actors[i], "everybody runs in the end (P1, P2)");
    }
}

/* Whoever looks for us answers in the end, if only that he cannot tell. */
static void check_nothing_is_kept(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        history->actors[i].runtime->process->is_silent = false;
        world_kill(history->world, history->actors[i].runtime->process);
    }
    for (size_t i = 0; i < history->n_strangers; i++)
        world_kill(history->world, history->strangers[i]->process);
    history_live_on(history, span_from_s(200));
    if (broker_counters(history->world->broker)->n_connections != 0)
        promises_broken(history, NULL, "no connection of the dead is kept (P7)");
    if (broker_counters(history->world->broker)->n_pending != 0)
        promises_broken(history, NULL, "nobody waits for the dead (P7)");
}

void promises_check_rest(struct history *history)
{
    check_sessions_end(history);
    check_nobody_is_missed(history);
    check_all_run(history);
    check_nothing_is_kept(history);
}
