/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions to the runtime itself, before the first step of a plan and only
 * where the plan needs an answer: which kind it is, which version, and what its
 * environment holds. They change nothing, so an unanswered one is asked again,
 * once; after that the answer is "not known".
 */

#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/hresult.h"
#include "lib/process_info.h"

static enum command_id ask_command(enum runtime_ask ask)
{
    switch (ask) {
    case ASK_KIND:
        return COMMAND_ASK_KIND;
    case ASK_INFO_3:
        return COMMAND_PROCESS_INFO_3;
    case ASK_INFO_2:
        return COMMAND_PROCESS_INFO_2;
    case ASK_INFO:
        return COMMAND_PROCESS_INFO;
    case ASK_ENVIRONMENT:
        return COMMAND_PROCESS_ENVIRONMENT;
    case ASK_NOTHING:
        break;
    }
    return COMMAND_PROCESS_INFO;
}

/* Values that the kernel did not tell; where the question could do harm, they stay unknown. */
static enum runtime_ask environment_or_nothing(const struct runtime *runtime)
{
    if (!plan_needs_old_values(&runtime->plan) ||
        command_deadly(COMMAND_PROCESS_ENVIRONMENT, &runtime->target, false))
        return ASK_NOTHING;
    return ASK_ENVIRONMENT;
}

static void next(struct runtime *runtime, enum runtime_ask ask, struct moment now)
{
    runtime->ask = ask;
    runtime->n_asked = 0;
    if (ask == ASK_NOTHING)
        apply_steps(runtime, now);
}

/* The names whose old values only the runtime knows. */
static bool want_values(struct runtime *runtime, struct connection *connection)
{
    const struct plan *plan = &runtime->plan;
    struct environment_value *values = calloc(plan->n_steps, sizeof *values);
    size_t n_values = 0;

    if (!values)
        return false;
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == STEP_VARIABLE && plan->steps[i].old == STEP_OLD_UNKNOWN &&
            !plan->steps[i].was_sent)
            values[n_values++].name = plan->steps[i].name;
    }
    free(connection->values);
    connection->values = values;
    connection->n_values = n_values;
    return true;
}

void ask_send(struct runtime *runtime, struct connection *connection, struct moment now)
{
    struct bytes message;
    enum command_id command = ask_command(runtime->ask);

    bytes_init(&message, WIRE_MESSAGE_MAX);
    if ((runtime->ask == ASK_ENVIRONMENT && !want_values(runtime, connection)) ||
        command_write_plain(&message, command) != 0) {
        broker_out_of_memory(runtime->broker, now);
        runtime_set_next(runtime, moment_after(now, BROKER_MEMORY_RETRY));
    } else if (runtime_send(runtime, connection, FLIGHT_QUESTION, command, &message,
                            apply_answer_deadline(runtime, now), now)) {
        runtime->n_asked++;
    }
    bytes_deinit(&message);
}

/* Keeps a text that the runtime sent about itself, within bounds. */
static void keep_text(char **target, char **text)
{
    char *shorter;

    free(*target);
    *target = util_take(text);
    if (!*target || strlen(*target) <= BROKER_TEXT_MAX)
        return;
    (*target)[BROKER_TEXT_MAX] = '\0';
    shorter = realloc(*target, BROKER_TEXT_MAX + 1);
    if (shorter)
        *target = shorter;
}

static void take_info(struct runtime *runtime, enum runtime_ask ask,
                      const struct connection *connection, struct moment now)
{
    const struct reply *reply = &connection->reply;
    struct process_info info;

    if (!reply_is_ok(reply)) {
        bool is_older = reply_hresult(reply) == HRESULT_UNKNOWN_COMMAND && ask != ASK_INFO;

        /* That much is known then, should the older question stay without an answer. */
        if (is_older)
            runtime->target.major = command_row(ask_command(ask))->since - 1u;
        next(runtime, is_older ? (enum runtime_ask)(ask + 1) : environment_or_nothing(runtime),
             now);
        return;
    }
    if (!process_info_read(ask_command(ask), reply->payload, reply->n_payload, &info)) {
        next(runtime, environment_or_nothing(runtime), now);
        return;
    }
    /* Of an adopted one nobody may have seen how it is called where it lives. */
    if (guid_compare(&info.cookie, &runtime->cookie) != 0 ||
        (runtime->claimed_pid != 0 && info.pid != runtime->claimed_pid)) {
        process_info_deinit(&info);
        broker_peer_error(runtime->broker, PEER_CLAIMED_WRONG, &connection->peer, runtime,
                          "what it says of itself is not what its advertise said", now);
        plan_skip_rest(&runtime->plan, "the runtime contradicts its advertise", now);
        resume_begin(runtime, OUTCOME_UNKNOWN, "the runtime contradicts its advertise", now);
        return;
    }
    /* The first form is all that .NET 5 knows. */
    runtime->target.major = ask == ASK_INFO ? 5 : process_info_major(info.version);
    keep_text(&runtime->version, &info.version);
    keep_text(&runtime->rid, &info.rid);
    keep_text(&runtime->entry_assembly, &info.entry_assembly);
    process_info_deinit(&info);
    next(runtime, environment_or_nothing(runtime), now);
}

/* Measured: CoreCLR does not know the command, NativeAOT has no profiler set at all. */
void ask_take_kind(struct runtime *runtime, const struct reply *reply)
{
    switch (reply_hresult(reply)) {
    case HRESULT_NOT_SUPPORTED:
        runtime->target.kind = RUNTIME_KIND_NATIVEAOT;
        break;
    case HRESULT_UNKNOWN_COMMAND:
    case HRESULT_NOT_YET_AVAILABLE:
        runtime->target.kind = RUNTIME_KIND_CORECLR;
        break;
    default:
        break;
    }
}

static void take_environment(struct runtime *runtime, const struct connection *connection,
                             struct moment now)
{
    int error = 0;

    for (size_t i = 0; connection->environment && i < connection->n_values && error == 0; i++) {
        const struct environment_value *value = &connection->values[i];

        if (!value->is_too_long)
            error = plan_set_old_value(&runtime->plan, value->name, value->value);
    }
    if (error != 0)
        broker_out_of_memory(runtime->broker, now);
    next(runtime, ASK_NOTHING, now);
}

/* An unanswered question is asked once more; then the answer is "not known". */
void ask_lost(struct runtime *runtime, struct moment now)
{
    if (runtime->n_asked < BROKER_QUESTION_ATTEMPTS)
        return;
    switch (runtime->ask) {
    case ASK_KIND:
        next(runtime, ASK_INFO_3, now);
        return;
    case ASK_INFO_3:
    case ASK_INFO_2:
    case ASK_INFO:
        next(runtime, environment_or_nothing(runtime), now);
        return;
    case ASK_ENVIRONMENT:
        next(runtime, ASK_NOTHING, now);
        return;
    case ASK_NOTHING:
        return;
    }
}

void ask_answered(struct runtime *runtime, struct connection *connection, struct moment now)
{
    enum runtime_ask ask = runtime->ask;

    switch (ask) {
    case ASK_KIND:
        ask_take_kind(runtime, &connection->reply);
        next(runtime, ASK_INFO_3, now);
        return;
    case ASK_INFO_3:
    case ASK_INFO_2:
    case ASK_INFO:
        take_info(runtime, ask, connection, now);
        return;
    case ASK_ENVIRONMENT:
        take_environment(runtime, connection, now);
        return;
    case ASK_NOTHING:
        return;
    }
}

void ask_begin(struct runtime *runtime, struct moment now)
{
    next(runtime, plan_needs_target(&runtime->plan) ? ASK_KIND : environment_or_nothing(runtime),
         now);
}
