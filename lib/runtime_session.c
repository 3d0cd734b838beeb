/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The session in which a runtime says itself what it loaded: opened when all
 * steps of a plan are done, read after Resume, stopped when everything is known
 * or its time is over. What is said in it is lib/proof's to judge.
 *
 * | phase     | begins with                        | ends at the latest                  |
 * |-----------|------------------------------------|-------------------------------------|
 * | opening   | a plan whose steps are done        | the command time-out, the deadline  |
 * | listening | the reply                          | SESSION_TIME after Resume           |
 * | stopping  | everything known, or no more time  | SESSION_STOP_TIME                   |
 *
 * It is there to tell, so nothing waits for it and everybody goes before it: when
 * there is no place, no descriptor, no time or no answer, there is none, and what
 * was loaded is unknown. Its connection is none of the runtime's ports, which
 * connects again as after any answer; it may outlive the runtime by a moment, in
 * which what was said at the end is read.
 */

#include <errno.h>
#include <stdlib.h>

#include "lib/broker_core.h"
#include "lib/proof.h"

struct session {
    struct runtime *runtime; /* NULL when that was forgotten */
    TAILQ_ENTRY(session) link;
    struct connection *connection;
    uint64_t id;
    size_t n_bytes;
    bool is_stopping; /* StopTracing is to be sent, or was */
    bool was_stopped; /* it was sent */
    struct receipt receipt;
    struct receipt_hook hooks[SESSION_HOOKS_MAX];
};

/* Whether there may be one. */

/* Why there is none for this runtime; NULL when there may be one. */
static const char *obstacle(const struct runtime *runtime)
{
    const struct broker *broker = runtime->broker;
    const struct policy_defaults *keys = runtime_keys(runtime);
    const struct user *user = runtime->process->user;

    if (keys->verify == POLICY_VERIFY_OFF)
        return "was not asked about: its rule says \"verify: off\"";
    if (runtime->is_hold_wished || broker->is_stopping)
        return "was not asked about: it was held";
    if (runtime->target.kind != RUNTIME_KIND_CORECLR || runtime->target.major == 0)
        return "was not asked about: its kind or version is not known";
    /* Measured: a known agent and a session wait for each other there for ever. */
    if (keys->verify == POLICY_VERIFY_AUTO && runtime->target.major <= 8 &&
        runtime->rule->n_profilers > 0)
        return "was not asked about: on .NET 8 a profiler and a trace session may block each other";
    if (command_deadly(COMMAND_COLLECT_TRACING_2, &runtime->target, false) ||
        !command_is_known_to(COMMAND_COLLECT_TRACING_2, runtime->target.major))
        return "was not asked about: this version has no such session";
    if (broker->n_sessions >= SESSION_MAX || user->n_sessions >= SESSION_MAX / SESSION_SHARES)
        return "was not asked about: too many were at that time";
    if (broker->is_short || user->n_connections >= broker_connections_per_user(broker))
        return "was not asked about: connections had run short";
    return NULL;
}

bool session_is_wanted(struct runtime *runtime)
{
    if (runtime->was_session_tried || !proof_is_wanted(&runtime->plan))
        return false;
    runtime->no_session = obstacle(runtime);
    runtime->was_session_tried = runtime->no_session != NULL;
    return !runtime->was_session_tried;
}

/* Opening. */

static void count(struct connection *connection)
{
    connection->is_for_session = true;
    connection->broker->n_sessions++;
    connection->user->n_sessions++;
}

void session_send(struct runtime *runtime, struct connection *connection, struct moment now)
{
    struct bytes message;

    runtime->was_session_tried = true;
    bytes_init(&message, WIRE_MESSAGE_MAX);
    if (receipt_write_session(&message, proof_needs_modules(&runtime->plan)) != 0) {
        broker_out_of_memory(runtime->broker, now);
        runtime->no_session = "was not asked about: memory had run out";
        runtime_set_next(runtime, now);
    } else {
        runtime->no_session = "was not asked about: the runtime did not open a session in time";
        runtime->was_session_tried =
            runtime_send(runtime, connection, FLIGHT_SESSION, COMMAND_COLLECT_TRACING_2, &message,
                         apply_answer_deadline(runtime, now), now);
        if (runtime->was_session_tried)
            count(connection);
    }
    bytes_deinit(&message);
}

static struct session *new_session(struct runtime *runtime, struct connection *connection,
                                   uint64_t id)
{
    struct session *session = calloc(1, sizeof *session);
    size_t n_hooks;

    if (!session)
        return NULL;
    session->runtime = runtime;
    session->connection = connection;
    session->id = id;
    n_hooks = proof_hooks(&runtime->plan, session->hooks, SESSION_HOOKS_MAX);
    receipt_init(&session->receipt, session->hooks,
                 n_hooks < SESSION_HOOKS_MAX ? n_hooks : SESSION_HOOKS_MAX);
    return session;
}

int session_open(struct connection *connection, struct moment now)
{
    struct broker *broker = connection->broker;
    struct runtime *runtime = connection->runtime;
    const struct reply *reply = &connection->reply;
    struct session *session;
    uint64_t id;

    if (!command_read_session(reply->payload, reply->n_payload, &id)) {
        runtime->no_session = "was not asked about: the runtime opened none that it names";
        return -EBADMSG;
    }
    session = new_session(runtime, connection, id);
    if (!session) {
        runtime->no_session = "was not asked about: memory had run out";
        return -ENOMEM;
    }
    connection->session = session;
    runtime->session = session;
    runtime->no_session = NULL;
    TAILQ_INSERT_TAIL(&broker->sessions, session, link);
    /* Resume comes within the deadline of the rule, unless something holds it up. */
    connection_set_state(connection, CONNECTION_SESSION,
                         moment_after(now,
                                      span_from_us(runtime->deadline_length.us + SESSION_TIME.us)));
    runtime_give_away(runtime, connection, now);
    return 0;
}

void session_refused(struct connection *connection, struct moment now)
{
    connection->runtime->no_session = "was not asked about: the runtime refused a session";
    connection_close(connection, now);
}

/* Telling. */

struct told {
    struct runtime *runtime;
    struct moment now;
};

static void tell(void *context, const struct step *step)
{
    const struct told *told = context;

    runtime_tell_proof(told->runtime, step, told->now);
}

/* Takes over what was said; true when nothing is open any more. */
static bool take(const struct session *session, struct moment now)
{
    struct told told = {session->runtime, now};

    return proof_take(&session->runtime->plan, &session->receipt, tell, &told);
}

static void close_proof(struct runtime *runtime, const char *why, struct moment now)
{
    struct told told = {runtime, now};

    proof_close(&runtime->plan, why, tell, &told);
}

void session_missed(struct runtime *runtime, struct moment now)
{
    if (!runtime->session)
        close_proof(runtime,
                    runtime->no_session ? runtime->no_session
                                        : "was not asked about: its plan was not completed",
                    now);
}

/* Stopping. */

/* Says that no more is wanted. It is asked for when the runtime can be asked. */
static void stop(struct session *session, struct moment now)
{
    if (session->is_stopping)
        return;
    session->is_stopping = true;
    deadline_set(&session->connection->broker->deadlines, &session->connection->deadline,
                 moment_after(now, SESSION_STOP_TIME));
    if (session->runtime)
        runtime_advance(session->runtime, now);
}

void session_advance(struct runtime *runtime, struct moment now)
{
    struct session *session = runtime->session;
    struct connection *connection;
    struct bytes message;

    /* A daemon that goes away starts nothing new; the session ends with its connection. */
    if (!session || !session->is_stopping || session->was_stopped || runtime->busy ||
        runtime->state != RUNTIME_RUNNING || runtime->broker->is_stopping)
        return;
    connection = runtime_free_connection(runtime);
    if (!connection)
        return;
    session->was_stopped = true;
    bytes_init(&message, WIRE_MESSAGE_MAX);
    /* Without memory for it, or an answer, the session ends with its connection. */
    if (command_write_stop_tracing(&message, session->id) != 0)
        broker_out_of_memory(runtime->broker, now);
    else if (!runtime_send(runtime, connection, FLIGHT_STOP, COMMAND_STOP_TRACING, &message,
                           moment_after(now, SESSION_STOP_TIME), now))
        runtime_set_next(runtime, MOMENT_NEVER);
    bytes_deinit(&message);
}

/* Events. */

void session_bytes(struct connection *connection, const uint8_t *bytes, size_t length,
                   struct moment now)
{
    struct session *session = connection->session;

    /* The names that are looked out for went with it. */
    if (!session->runtime) {
        connection_close(connection, now);
        return;
    }
    session->n_bytes += length;
    receipt_take(&session->receipt, bytes, length);
    if (session->receipt.why == NETTRACE_E_MEMORY)
        broker_out_of_memory(connection->broker, now);
    if (take(session, now))
        stop(session, now);
    /* The rest of one that is stopped is only read away. */
    if (receipt_has_ended(&session->receipt) || session->n_bytes > SESSION_BYTES_MAX)
        connection_close(connection, now);
}

void session_resumed(struct runtime *runtime, struct moment now)
{
    if (runtime->session && !runtime->session->is_stopping)
        deadline_set(&runtime->broker->deadlines, &runtime->session->connection->deadline,
                     moment_after(now, SESSION_TIME));
}

void session_deadline(struct connection *connection, struct moment now)
{
    struct session *session = connection->session;
    const struct runtime *runtime = session->runtime;

    if (!session->is_stopping && runtime && runtime->state == RUNTIME_RUNNING)
        stop(session, now);
    else
        connection_close(connection, now);
}

/* What it said before it ended is still to be read; then the kernel ends the stream. */
void session_runtime_ended(struct runtime *runtime, struct moment now)
{
    if (runtime->session)
        deadline_set(&runtime->broker->deadlines, &runtime->session->connection->deadline,
                     moment_after(now, SESSION_STOP_TIME));
    else
        session_missed(runtime, now);
}

void session_forget_runtime(struct runtime *runtime)
{
    struct session *session = runtime->session;

    if (!session)
        return;
    runtime->session = NULL;
    session->runtime = NULL;
    deadline_set(&runtime->broker->deadlines, &session->connection->deadline,
                 (struct moment){INT64_MIN / 2});
}

bool session_let_go(struct broker *broker, const struct user *user, struct moment now)
{
    const struct session *session;

    TAILQ_FOREACH(session, &broker->sessions, link) {
        if (!user || session->connection->user == user) {
            connection_close(session->connection, now);
            return true;
        }
    }
    return false;
}

static void end(struct session *session, struct moment now)
{
    struct runtime *runtime = session->runtime;

    receipt_close(&session->receipt);
    if (runtime) {
        (void)take(session, now);
        close_proof(runtime, proof_silence(&session->receipt), now);
        runtime->session = NULL;
    }
    TAILQ_REMOVE(&session->connection->broker->sessions, session, link);
    receipt_deinit(&session->receipt);
    free(session);
}

void session_connection_closed(struct connection *connection, struct moment now)
{
    struct session *session = util_take(&connection->session);

    if (session)
        end(session, now);
    if (!connection->is_for_session)
        return;
    connection->broker->n_sessions--;
    connection->user->n_sessions--;
}
