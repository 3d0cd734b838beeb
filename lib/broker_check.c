/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What must hold of the broker between any two events. Tests and the simulator
 * call it after every one; the daemon never does.
 */

#include <stdio.h>
#include <stdlib.h>

#include "lib/broker_core.h"

void broker_check_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: this must hold and does not: %s\n", file, line, condition);
    abort();
}

static void check_connections_of(const struct runtime *runtime)
{
    const struct connection *connection;
    size_t n = 0, n_busy = 0;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        n++;
        MUST(connection->runtime == runtime);
        MUST(connection->state == CONNECTION_IDLE || connection->state == CONNECTION_BUSY ||
             connection->state == CONNECTION_ANSWERED);
        if (connection->state == CONNECTION_IDLE)
            continue;
        n_busy++;
        MUST(runtime->busy == connection);
    }
    MUST(n == runtime->n_connections);
    MUST(n_busy == (runtime->busy ? 1 : 0));
    MUST(n <= RUNTIME_CONNECTIONS_MAX);
    MUST(!runtime->kept || (runtime->kept->runtime == runtime && runtime->kept->kept != 0));
    MUST(!runtime->kept || runtime_is_pending(runtime));
}

static void check_flight_of(const struct runtime *runtime)
{
    bool is_plan = runtime->state <= RUNTIME_WITHDRAWING || runtime->state == RUNTIME_KILLING;

    MUST((runtime->flight != FLIGHT_NONE) ==
         (runtime->busy && runtime->busy->state == CONNECTION_BUSY));
    /* A runtime that runs may be killed meanwhile. */
    if (runtime->flight == FLIGHT_STOP || runtime->flight == FLIGHT_ATTACH) {
        MUST(runtime->state == RUNTIME_RUNNING || runtime->state == RUNTIME_KILLING ||
             runtime->state == RUNTIME_KILLED);
        MUST(runtime->flight != FLIGHT_ATTACH || (runtime->attach && runtime->attach->is_checked));
    } else if (runtime->flight != FLIGHT_NONE && !runtime_flies_resume(runtime)) {
        MUST(is_plan);
        MUST(moment_is_before(runtime->sent_at,
                              moment_after(runtime->connected_at, runtime->deadline_length)));
    }
    if (runtime->flight == FLIGHT_STEP)
        MUST(runtime->step && runtime->step->was_sent);
    if (runtime_flies_resume(runtime))
        MUST(runtime->state >= RUNTIME_KILLING);
}

/* One at a time, with an end; the others have come to theirs. */
static void check_attaches_of(const struct runtime *runtime)
{
    const struct attach *attach;
    size_t n = 0;

    TAILQ_FOREACH(attach, &runtime->attaches, link) {
        bool is_open = attach == runtime->attach;

        n++;
        MUST(attach->runtime == runtime);
        MUST(is_open == (attach->step.result == STEP_PENDING));
        MUST(is_open == !moment_is_never(attach->deadline.at));
        MUST(!is_open || !TAILQ_NEXT(attach, link));
        MUST(attach->step.result != STEP_LOST || attach->step.was_sent);
    }
    MUST(n <= RUNTIME_ATTACHES_MAX);
    MUST(!runtime->attach || runtime->attach == TAILQ_LAST(&runtime->attaches, attach_list));
}

/* Nobody is kept without a deadline but by an operator without limit. */
static void check_deadlines_of(const struct runtime *runtime)
{
    bool has_end = !moment_is_never(runtime->end.at);
    bool has_next = !moment_is_never(runtime->next.at);

    if (runtime->state <= RUNTIME_WITHDRAWING)
        MUST(has_end);
    else
        MUST(!has_end);
    if (runtime->state == RUNTIME_KILLING || runtime->state == RUNTIME_GONE)
        MUST(has_next);
    if (runtime->state == RUNTIME_RUNNING)
        MUST(has_next == (runtime->flight == FLIGHT_STOP) && moment_is_never(runtime->retry_at));
    if (compare_is_under_way(runtime))
        MUST(runtime->state == RUNTIME_RESUMING && has_next && !runtime_flies_resume(runtime));
    if (!runtime_has_ended(runtime) && runtime->n_connections == 0 && !runtime->process->is_held)
        MUST(!moment_is_never(runtime->alive.at));
}

static void check_runtimes(const struct broker *broker)
{
    const struct runtime *runtime;
    size_t n_by_state[RUNTIME_STATES] = {0}, n_pending = 0, n_waiting = 0;
    uint64_t serial = 0;

    TAILQ_FOREACH(runtime, &broker->runtimes, in_order) {
        n_by_state[runtime->state]++;
        MUST(broker_runtime_after(broker, serial) == runtime);
        serial = runtime->serial;
        n_pending += runtime_is_pending(runtime);
        n_waiting += runtime->is_waiting;
        MUST(!runtime->is_waiting || runtime_is_pending(runtime));
        MUST(runtime->broker == broker && runtime->policy);
        MUST((runtime->process == NULL) == !moment_is_never(runtime->ended_at));
        MUST(runtime->state == RUNTIME_KILLED ||
             runtime_has_ended(runtime) == (runtime->process == NULL));
        MUST(runtime->outcome != OUTCOME_NONE || runtime->state <= RUNTIME_KILLING);
        MUST(!runtime->question || runtime->question->runtime == runtime);
        check_connections_of(runtime);
        check_flight_of(runtime);
        check_attaches_of(runtime);
        check_deadlines_of(runtime);
    }
    MUST(!broker_runtime_after(broker, serial));
    for (size_t state = 0; state < RUNTIME_STATES; state++)
        MUST(n_by_state[state] == broker->n_by_state[state]);
    MUST(n_pending == broker->counters.n_pending && n_waiting == broker->n_waiting);
    MUST(broker->is_short == !moment_is_never(broker->room.at));
    MUST(!broker->is_paused || broker->is_short);
}

static void check_connections(const struct broker *broker)
{
    const struct connection *connection;
    size_t n = 0, n_silent = 0, n_unanswered = 0, n_spare = 0, n_kept = 0, n_sessions = 0;

    TAILQ_FOREACH(connection, &broker->connections, in_all) {
        n++;
        n_silent += connection->state == CONNECTION_SILENT;
        n_unanswered +=
            connection->state == CONNECTION_BUSY || connection->state == CONNECTION_ANSWERED;
        MUST(connection->close);
        MUST((connection->state == CONNECTION_SESSION) == (connection->session != NULL));
        MUST(!connection->session || !connection->runtime);
        MUST(!connection->session || connection->is_for_session);
        n_sessions += connection->is_for_session;
        MUST((connection->kept != 0) ==
             (connection->runtime && connection->runtime->kept == connection));
        n_kept += connection->kept != 0;
        MUST(connection->is_spare == (connection->state == CONNECTION_IDLE && connection->runtime &&
                                      connection->runtime->state == RUNTIME_RUNNING));
        n_spare += connection->is_spare;
        if (connection->state == CONNECTION_SILENT || connection->state == CONNECTION_IDENTIFYING ||
            connection->state == CONNECTION_ANSWERED || connection->state == CONNECTION_LEAVING ||
            connection->state == CONNECTION_SESSION)
            MUST(!moment_is_never(connection->deadline.at));
    }
    MUST(n == broker->n_connections && n == broker->counters.n_connections);
    MUST(n_silent == broker->n_silent && n_silent == broker->counters.n_silent);
    MUST(n_unanswered == broker->n_unanswered);
    MUST(n_kept == broker->n_kept && n_sessions == broker->n_sessions);
    TAILQ_FOREACH(connection, &broker->spare, in_spare) {
        n_spare--;
    }
    MUST(n_spare == 0);
}

void broker_check(const struct broker *broker)
{
    check_runtimes(broker);
    check_connections(broker);
    process_check(broker);
}
