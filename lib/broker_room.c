/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Descriptors: who goes when they run short, and when nobody more may come in.
 * What a connection or a runtime is for is not known here.
 *
 * For one more connection there goes, in this order:
 *
 * 1. the oldest one that has not said who it is;
 * 2. the oldest one in which a runtime only says what it loaded;
 * 3. the oldest one that was resumed without being a runtime to us;
 * 4. while a runtime that is not resumed has no connection, a silent one of a
 *    runtime that runs, in turn. Who waits may do so in the queue of a listener,
 *    behind others; who is let go comes back at once, and queues behind both;
 * 5. likewise, the handle of a process, which only tells of its end.
 *
 * Whoever goes comes back. So the third stay a moment, and the fourth go in rounds:
 * when the first one that went comes back by the listener of who is missed,
 * everybody who was in its queue at the beginning of the round has been let in;
 * and when many come back by others and nobody by that one, its queue is empty.
 * Then he does not wait there yet, and the next round can wait a little.
 */

#include "lib/broker.h"

#include "lib/broker_core.h"

enum {
    LOOKS = 64,         /* at connections that might go */
    ELSEWHERE_MAX = 64, /* more than there are listeners, which are accepted from in turn */
};

#define RETRY_TIME     span_from_ms(100)
#define RESUME_TIME    span_from_ms(100) /* a runtime needs far less for reading it */
#define ROUND_WAIT     span_from_ms(100) /* before the second one; twice as long each time */
#define ROUND_WAIT_MAX span_from_s(1)

static bool is_full(const struct broker *broker)
{
    size_t n = broker->n_connections + broker->n_held;

    return n >= broker->usable_descriptors || n >= broker->n_given;
}

bool broker_is_paused(const struct broker *broker)
{
    return broker->is_paused;
}

static void tell(struct broker *broker, bool is_short, struct moment now)
{
    broker->is_short = is_short;
    deadline_set(&broker->deadlines, &broker->room,
                 is_short ? moment_after(now, RETRY_TIME) : MOMENT_NEVER);
    broker_alarm(broker, ALARM_DESCRIPTORS, is_short,
                 "descriptors have run short: who comes waits until a connection ends", now);
}

void room_judge(struct broker *broker, struct moment now)
{
    broker->is_paused = is_full(broker);
    /* A place that is free while somebody waits is only the one that he just left. */
    if (broker->is_paused && !broker->is_short)
        tell(broker, true, now);
    else if (!broker->is_paused && broker->is_short && broker->n_waiting == 0)
        tell(broker, false, now);
}

/*
 * The oldest one of those that have had time to read their Resume: one that is
 * closed before that is lost. Who still waits for his pace gets it sooner, but
 * not at once: who answers comes back at once.
 */
static struct connection *oldest_nameless(const struct broker *broker, struct moment now)
{
    struct connection *connection;
    size_t n = 0;

    TAILQ_FOREACH(connection, &broker->nameless, in_nameless) {
        struct moment since =
            connection->was_resumed ? connection->resumed_at : connection->advertised_at;
        bool has_waited = moment_is_due(moment_after(since, RESUME_TIME), now);

        if (has_waited && connection->was_resumed)
            return connection;
        if (has_waited)
            connection_deadline(connection, now);
        if (++n == LOOKS)
            break;
    }
    return NULL;
}

/* Who comes back is last, so each has its turn; and most of those that run may be in the queue. */
void room_consider(struct connection *connection)
{
    const struct runtime *runtime = connection->runtime;
    struct connection_list *spare = &connection->broker->spare;
    bool is_now =
        runtime && runtime->state == RUNTIME_RUNNING && connection->state == CONNECTION_IDLE;

    if (is_now && !connection->is_spare)
        TAILQ_INSERT_TAIL(spare, connection, in_spare);
    else if (!is_now && connection->is_spare)
        TAILQ_REMOVE(spare, connection, in_spare);
    connection->is_spare = is_now;
}

static void begin_round(struct broker *broker)
{
    broker->round++;
    broker->n_elsewhere = 0;
    broker->is_in_round = true;
}

static void end_round(struct broker *broker, struct moment now)
{
    struct span twice = {2 * broker->round_wait.us};

    broker->is_in_round = false;
    broker->round_wait = twice.us < ROUND_WAIT.us       ? ROUND_WAIT
                         : twice.us > ROUND_WAIT_MAX.us ? ROUND_WAIT_MAX
                                                        : twice;
    broker->next_round = moment_after(now, broker->round_wait);
}

void room_wanted(struct broker *broker)
{
    /* Behind those that were let go up to now. */
    broker->is_in_round = false;
    broker->round_wait = (struct span){0};
    broker->next_round = (struct moment){INT64_MIN / 2};
}

void room_came_back(struct runtime *runtime, const struct connection *connection, struct moment now)
{
    struct broker *broker = runtime->broker;
    const struct runtime *missed = TAILQ_FIRST(&broker->waiting);

    if (missed && broker->is_in_round && runtime->let_go_round == broker->round &&
        (missed->listener == connection->listener || ++broker->n_elsewhere == ELSEWHERE_MAX))
        end_round(broker, now);
}

/* For the sake of those that wait. */
static bool let_go_known(struct broker *broker, struct moment now)
{
    struct connection *connection;

    if (!broker->is_in_round && moment_is_due(broker->next_round, now))
        begin_round(broker);
    if (!broker->is_in_round)
        return false;
    connection = TAILQ_FIRST(&broker->spare);
    if (connection) {
        tell(broker, true, now);
        connection->runtime->let_go_round = broker->round;
        connection->was_let_go = true;
        connection_close(connection, now);
        return true;
    }
    if (process_give_up_handle(broker, now))
        return true;
    end_round(broker, now);
    return false;
}

static bool let_go(struct broker *broker, struct moment now)
{
    struct connection *connection = oldest_nameless(broker, now);

    if (!connection)
        return broker->n_waiting > 0 && let_go_known(broker, now);
    connection_close(connection, now);
    return true;
}

/* `n_kept` of those that say nothing have only just come. */
static void make(struct broker *broker, size_t n_kept, struct moment now)
{
    while (is_full(broker)) {
        if (broker->n_silent > n_kept)
            connection_evict_silent(broker, "descriptors ran short", now);
        else if (!session_let_go(broker, NULL, now) && !let_go(broker, now))
            break;
    }
    room_judge(broker, now);
}

void room_make(struct broker *broker, uint32_t listener, struct moment now)
{
    const struct runtime *missed = TAILQ_FIRST(&broker->waiting);

    if (missed && missed->listener == listener)
        broker->n_elsewhere = 0;
    make(broker, 1, now);
}

static void read_connection(const struct connection *connection, struct moment now)
{
    if (!broker_read(connection->broker, connection))
        broker_out_of_memory(connection->broker, now);
}

void room_read_due(struct broker *broker, struct moment now)
{
    const struct connection *connection;
    size_t n = 0;

    TAILQ_FOREACH(connection, &broker->silent, in_silent) {
        if (n++ == LOOKS)
            break;
        read_connection(connection, now);
    }
    n = 0;
    TAILQ_FOREACH(connection, &broker->nameless, in_nameless) {
        if (n++ == LOOKS)
            break;
        read_connection(connection, now);
    }
    n = 0;
    TAILQ_FOREACH(connection, &broker->spare, in_spare) {
        if (n++ == LOOKS)
            break;
        read_connection(connection, now);
    }
}

void room_deadline(struct broker *broker, struct moment now)
{
    broker->n_given = SIZE_MAX;
    make(broker, 0, now);
    if (broker->is_short)
        deadline_set(&broker->deadlines, &broker->room, moment_after(now, RETRY_TIME));
}

void broker_descriptors_ran_out(struct broker *broker, struct moment now)
{
    broker->n_given = broker->n_connections + broker->n_held;
    make(broker, 0, now);
    if (!broker->is_short)
        tell(broker, true, now);
}
