/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One connection to a diagnostic port: its bytes up to the advertise, one
 * command, the reply, the end. Which command, and what an answer means, is its
 * runtime's business.
 */

#include "lib/broker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"

static void leave_silent(struct connection *connection)
{
    struct broker *broker = connection->broker;

    TAILQ_REMOVE(&broker->silent, connection, in_silent);
    TAILQ_REMOVE(&connection->user->silent, connection, in_silent_of_user);
    broker->n_silent--;
    broker->counters.n_silent--;
    connection->user->n_silent--;
}

static void join_silent(struct connection *connection)
{
    struct broker *broker = connection->broker;

    TAILQ_INSERT_TAIL(&broker->silent, connection, in_silent);
    TAILQ_INSERT_TAIL(&connection->user->silent, connection, in_silent_of_user);
    broker->n_silent++;
    broker->counters.n_silent++;
    connection->user->n_silent++;
}

static bool is_nameless(enum connection_state state)
{
    return state == CONNECTION_NAMELESS || state == CONNECTION_LEAVING;
}

static bool is_unanswered(enum connection_state state)
{
    return state == CONNECTION_BUSY || state == CONNECTION_ANSWERED;
}

void connection_set_state(struct connection *connection, enum connection_state state,
                          struct moment deadline)
{
    struct broker *broker = connection->broker;

    if (connection->state == CONNECTION_SILENT && state != CONNECTION_SILENT)
        leave_silent(connection);
    if (is_nameless(connection->state) && !is_nameless(state))
        TAILQ_REMOVE(&broker->nameless, connection, in_nameless);
    else if (!is_nameless(connection->state) && is_nameless(state))
        TAILQ_INSERT_TAIL(&broker->nameless, connection, in_nameless);
    broker->n_unanswered -= is_unanswered(connection->state);
    broker->n_unanswered += is_unanswered(state);
    connection->state = state;
    room_consider(connection);
    deadline_set(&broker->deadlines, &connection->deadline, deadline);
}

/* Of who came last or of who is there longest, whoever has more of them: many that come at once
 * have not been read yet, and do not go for one user's flood. */
void connection_evict_silent(struct broker *broker, const char *why, struct moment now)
{
    struct connection *last = TAILQ_LAST(&broker->silent, connection_list);
    struct connection *oldest = TAILQ_FIRST(&broker->silent);

    if (!last)
        return;
    if (last->user->n_silent > oldest->user->n_silent)
        oldest = TAILQ_FIRST(&last->user->silent);
    broker_peer_error(broker, PEER_EVICTED, &oldest->peer, NULL, why, now);
    connection_close(oldest, now);
}

static struct connection *allocate(struct broker *broker, const struct broker_peer *peer)
{
    struct connection *connection = calloc(1, sizeof *connection);
    struct action *close = calloc(1, sizeof *close);

    if (connection && close)
        connection->user = user_get(broker, peer->uid);
    if (!connection || !close || !connection->user) {
        free(connection);
        free(close);
        return NULL;
    }
    close->kind = ACTION_CLOSE;
    connection->close = close;
    return connection;
}

int broker_connection_new(struct broker *broker, uint32_t listener, void *handle,
                          const struct broker_peer *peer, struct moment now,
                          struct connection **ret_connection)
{
    struct connection *connection = allocate(broker, peer);

    if (!connection) {
        broker_out_of_memory(broker, now);
        return -ENOMEM;
    }
    connection->broker = broker;
    connection->serial = broker_serial(broker);
    connection->handle = handle;
    connection->close->connection = handle;
    connection->listener = listener;
    connection->peer = *peer;
    connection->state = CONNECTION_SILENT;
    reply_init(&connection->reply);
    deadline_init(&connection->deadline, DEADLINE_CONNECTION);
    deadline_set(&broker->deadlines, &connection->deadline,
                 moment_after(now, broker->policy->limits.hello));
    TAILQ_INSERT_TAIL(&broker->connections, connection, in_all);
    broker->n_connections++;
    broker->counters.n_connections++;
    connection->user->n_connections++;
    join_silent(connection);
    if (broker->n_silent > broker->policy->limits.silent)
        connection_evict_silent(broker, "more connections without an advertise than limits.silent",
                                now);
    room_make(broker, listener, now);
    *ret_connection = connection;
    return 0;
}

static void forget_reply(struct connection *connection)
{
    reply_deinit(&connection->reply);
    if (connection->environment) {
        environment_deinit(connection->environment);
        free(connection->environment);
        connection->environment = NULL;
    }
    if (connection->values) {
        environment_values_clear(connection->values, connection->n_values);
        free(connection->values);
        connection->values = NULL;
    }
}

void connection_close(struct connection *connection, struct moment now)
{
    struct broker *broker = connection->broker;
    struct runtime *runtime = connection->runtime;
    struct user *user = connection->user;
    bool was_answered = connection->state == CONNECTION_ANSWERED || connection->was_let_go;

    connection_set_state(connection, CONNECTION_LEAVING, MOMENT_NEVER);
    TAILQ_REMOVE(&broker->nameless, connection, in_nameless);
    broker_forget_question(broker, connection->question);
    broker_forget_reads(broker, connection);
    TAILQ_REMOVE(&broker->connections, connection, in_all);
    broker->n_connections--;
    broker->counters.n_connections--;
    user->n_connections--;
    keep_end(connection);
    STAILQ_INSERT_TAIL(&broker->actions, connection->close, link);
    connection->close = NULL;
    if (runtime) {
        connection->runtime = NULL;
        TAILQ_REMOVE(&runtime->connections, connection, in_runtime);
        runtime->n_connections--;
        runtime_detached(runtime, connection, was_answered, now);
    }
    identify_nameless_ended(connection, now);
    session_connection_closed(connection, now);
    forget_reply(connection);
    free(connection);
    user_settle(broker, user);
    room_judge(broker, now);
}

void broker_connection_ended(struct connection *connection, struct moment now)
{
    if (connection->state == CONNECTION_SILENT)
        broker_peer_error(connection->broker, PEER_SENT_NO_ADVERTISE, &connection->peer, NULL,
                          "closed before its advertise was whole", now);
    connection_close(connection, now);
}

bool connection_send(struct connection *connection, enum command_id command, struct bytes *message)
{
    struct action *action = action_add(&connection->broker->actions, ACTION_SEND);

    if (!action)
        return false;
    action->connection = connection->handle;
    action->length = message->length;
    action->bytes = bytes_take(message);
    connection->command = command;
    /* Resume is waited for as long as it takes, and so is what was kept of its answer. */
    if (command_row(command)->answer == COMMAND_ANSWERS_STATUS)
        reply_keep(&connection->reply, REPLY_STATUS_MAX);
    return true;
}

/* Something that no runtime sends. */
static void reject(struct connection *connection, enum notice_peer_error error, const char *why,
                   struct moment now)
{
    broker_peer_error(connection->broker, error, &connection->peer, connection->runtime, why, now);
    connection_close(connection, now);
}

static void take_advertise(struct connection *connection, const uint8_t *bytes, size_t length,
                           struct moment now)
{
    size_t room = ADVERTISE_SIZE - connection->n_advertise;
    size_t taken = length < room ? length : room;

    memcpy(connection->advertise_bytes + connection->n_advertise, bytes, taken);
    connection->n_advertise += taken;
    if (taken < length ||
        !advertise_is_possible(connection->advertise_bytes, connection->n_advertise)) {
        reject(connection, PEER_SENT_GARBAGE, "sent something else than an advertise", now);
        return;
    }
    if (connection->n_advertise < ADVERTISE_SIZE)
        return;
    if (!advertise_read(connection->advertise_bytes, &connection->advertise)) {
        reject(connection, PEER_SENT_GARBAGE, "sent something else than an advertise", now);
        return;
    }
    connection->advertised_at = now;
    connection_set_state(connection, CONNECTION_IDENTIFYING,
                         moment_after(now, connection->broker->policy->defaults.deadline));
    identify_connection(connection, now);
}

/* The end of file has to come now, within the time that a command has. */
static void be_answered(struct connection *connection, struct moment now)
{
    struct runtime *runtime = connection->runtime;

    connection_set_state(connection, CONNECTION_ANSWERED,
                         moment_after(now, runtime_keys(runtime)->command_timeout));
    runtime_answered(runtime, connection, now);
}

static void take_environment(struct connection *connection, const uint8_t *bytes, size_t length,
                             struct moment now)
{
    size_t taken;

    switch (environment_feed(connection->environment, bytes, length, &taken)) {
    case ENVIRONMENT_MORE:
        return;
    case ENVIRONMENT_WHOLE:
        /* What follows is the runtime's error message after a failed write, if anything. */
        be_answered(connection, now);
        return;
    case ENVIRONMENT_E_ENCODING:
        reject(connection, PEER_SENT_BAD_REPLY, "sent an environment that does not add up", now);
        return;
    case ENVIRONMENT_E_MEMORY:
        broker_out_of_memory(connection->broker, now);
        connection_close(connection, now);
        return;
    }
}

/* The reply to ProcessEnvironment only announces what follows it. */
static void begin_environment(struct connection *connection, const uint8_t *bytes, size_t length,
                              struct moment now)
{
    const struct reply *reply = &connection->reply;

    connection->environment = calloc(1, sizeof *connection->environment);
    if (!connection->environment) {
        broker_out_of_memory(connection->broker, now);
        connection_close(connection, now);
        return;
    }
    if (!environment_init(connection->environment, reply->payload, reply->n_payload,
                          connection->values, connection->n_values, PLAN_OLD_VALUES_MAX)) {
        reject(connection, PEER_SENT_BAD_REPLY, "announced an environment without its size", now);
        return;
    }
    if (length > 0)
        take_environment(connection, bytes, length, now);
}

/* The reply to CollectTracing is the beginning of what is said in the session. */
static void begin_session(struct connection *connection, const uint8_t *bytes, size_t length,
                          struct moment now)
{
    struct runtime *runtime = connection->runtime;

    switch (session_open(connection, now)) {
    case 0:
        break;
    case -EBADMSG:
        reject(connection, PEER_SENT_BAD_REPLY, "opened a session without naming it", now);
        return;
    default:
        broker_out_of_memory(connection->broker, now);
        connection_close(connection, now);
        return;
    }
    if (length > 0)
        session_bytes(connection, bytes, length, now);
    runtime_advance(runtime, now);
}

static void take_reply(struct connection *connection, const uint8_t *bytes, size_t length,
                       struct moment now)
{
    size_t taken;

    switch (reply_feed(&connection->reply, bytes, length, &taken)) {
    case REPLY_MORE:
        return;
    case REPLY_WHOLE:
        break;
    case REPLY_E_MEMORY:
        broker_out_of_memory(connection->broker, now);
        connection_close(connection, now);
        return;
    case REPLY_E_MAGIC:
    case REPLY_E_SIZE:
    case REPLY_E_SET:
        reject(connection, PEER_SENT_BAD_REPLY, "sent a reply that is none", now);
        return;
    }
    if (command_row(connection->command)->answer == COMMAND_ANSWERS_ENVIRONMENT &&
        reply_is_ok(&connection->reply)) {
        begin_environment(connection, bytes + taken, length - taken, now);
        return;
    }
    if (command_row(connection->command)->answer == COMMAND_ANSWERS_SESSION &&
        reply_is_ok(&connection->reply)) {
        begin_session(connection, bytes + taken, length - taken, now);
        return;
    }
    if (taken < length) {
        reject(connection, PEER_SENT_BAD_REPLY, "sent more than one reply", now);
        return;
    }
    be_answered(connection, now);
}

/* Nobody waits for it; but who sends without end would be read without end. */
static void take_noise(struct connection *connection, size_t length, struct moment now)
{
    connection->n_noise += length;
    if (connection->n_noise > BROKER_NOISE_MAX)
        reject(connection, PEER_SENT_GARBAGE, "goes on sending after its reply", now);
}

void broker_connection_bytes(struct connection *connection, const uint8_t *bytes, size_t length,
                             struct moment now)
{
    switch (connection->state) {
    case CONNECTION_SILENT:
        take_advertise(connection, bytes, length, now);
        return;
    case CONNECTION_BUSY:
        if (connection->environment)
            take_environment(connection, bytes, length, now);
        else
            take_reply(connection, bytes, length, now);
        return;
    case CONNECTION_IDENTIFYING:
    case CONNECTION_IDLE:
        reject(connection, PEER_SENT_GARBAGE, "sent something that nobody asked for", now);
        return;
    case CONNECTION_NAMELESS:
    case CONNECTION_LEAVING:
        /* The answer to Resume: what it says changes nothing. */
        if (connection->was_resumed)
            take_noise(connection, length, now);
        else
            reject(connection, PEER_SENT_GARBAGE, "sent something that nobody asked for", now);
        return;
    case CONNECTION_SESSION:
        session_bytes(connection, bytes, length, now);
        return;
    case CONNECTION_ANSWERED:
        /* An error message after a whole environment is the runtime's way; the rest is noise. */
        take_noise(connection, length, now);
        return;
    }
}

void connection_be_nameless(struct connection *connection, struct pace *pace,
                            enum connection_state state, struct moment now)
{
    struct moment at = pace_next(pace, now);

    assert(state == CONNECTION_NAMELESS || state == CONNECTION_LEAVING);
    connection_set_state(connection, state, at);
    if (moment_is_due(at, now)) {
        deadline_stop(&connection->broker->deadlines, &connection->deadline);
        connection_deadline(connection, now);
    }
}

static void resume_nameless(struct connection *connection, struct moment now)
{
    struct bytes message;
    struct moment next = MOMENT_NEVER;

    if (connection->is_unknown)
        identify_resume_unknown(connection);
    bytes_init(&message, WIRE_MESSAGE_MAX);
    if (command_write_plain(&message, COMMAND_RESUME) != 0 ||
        !connection_send(connection, COMMAND_RESUME, &message)) {
        bytes_deinit(&message);
        broker_out_of_memory(connection->broker, now);
        next = moment_after(now, BROKER_MEMORY_RETRY);
    } else {
        connection->was_resumed = true;
        connection->resumed_at = now;
        if (connection->is_unknown)
            identify_resumed_unknown(connection, now);
        if (connection->state == CONNECTION_LEAVING)
            next = moment_after(now, BROKER_LEAVING_TIME);
    }
    deadline_set(&connection->broker->deadlines, &connection->deadline, next);
}

void connection_deadline(struct connection *connection, struct moment now)
{
    switch (connection->state) {
    case CONNECTION_SILENT:
        reject(connection, PEER_SENT_NO_ADVERTISE, "sent no advertise within limits.hello", now);
        return;
    case CONNECTION_IDENTIFYING:
        identify_answered(connection, NULL, now);
        return;
    case CONNECTION_ANSWERED:
        connection_close(connection, now);
        return;
    case CONNECTION_NAMELESS:
    case CONNECTION_LEAVING:
        if (connection->was_resumed)
            connection_close(connection, now);
        else
            resume_nameless(connection, now);
        return;
    case CONNECTION_SESSION:
        session_deadline(connection, now);
        return;
    case CONNECTION_IDLE:
    case CONNECTION_BUSY:
        return;
    }
}
