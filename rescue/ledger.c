/* SPDX-License-Identifier: Apache-2.0 */

#include "rescue/ledger.h"

#include <string.h>

/* So many are let go at a time. */
static const uint32_t leaving_max = 8;

/* Rounds of making room are at least this far apart, and each connection of a long one costs its
 * share: so those that come back never make more than a thousand connections in a second. */
static const struct span round_pause = {100000}, pause_each = {1000}, pause_max = {1000000};

static int compare_runtimes(const struct ledger_runtime *a, const struct ledger_runtime *b)
{
    if (a->who.pid != b->who.pid)
        return a->who.pid < b->who.pid ? -1 : 1;
    if (a->who.start_time != b->who.start_time)
        return a->who.start_time < b->who.start_time ? -1 : 1;
    if (a->who.uid != b->who.uid)
        return a->who.uid < b->who.uid ? -1 : 1;
    return guid_compare(&a->who.cookie, &b->who.cookie);
}

TREE_GENERATE(ledger_tree, ledger_runtime, link, compare_runtimes)

void ledger_init(struct ledger *ledger, uint32_t n_usable)
{
    ledger->n_usable = n_usable;
    for (size_t i = 0; i < LEDGER_CONNECTION_STATES; i++)
        TAILQ_INIT(&ledger->in_state[i]);
    for (size_t i = 0; i < LEDGER_RUNTIME_STATES; i++)
        TAILQ_INIT(&ledger->runtimes_in_state[i]);
    RB_INIT(&ledger->by_who);
    ledger->round = 1;
}

static uint16_t number_of(const struct ledger *ledger, const struct ledger_connection *connection)
{
    return (uint16_t)(connection - ledger->connections);
}

static bool is_busy(enum ledger_connection_state state)
{
    return state == LEDGER_DUE || state == LEDGER_FLYING;
}

static void set_state(struct ledger *ledger, struct ledger_connection *connection,
                      enum ledger_connection_state state, struct moment deadline)
{
    struct ledger_runtime *runtime = connection->runtime;

    if (connection->is_leaving) {
        ledger->n_leaving += is_busy(state);
        ledger->n_leaving -= is_busy(connection->state);
    }
    if (runtime) {
        runtime->n_busy += is_busy(state);
        runtime->n_busy -= is_busy(connection->state);
        runtime->n_overdue += state == LEDGER_OVERDUE;
        runtime->n_overdue -= connection->state == LEDGER_OVERDUE;
    }
    TAILQ_REMOVE(&ledger->in_state[connection->state], connection, in_state);
    connection->state = state;
    connection->deadline = deadline;
    TAILQ_INSERT_TAIL(&ledger->in_state[state], connection, in_state);
}

static void set_runtime_state(struct ledger *ledger, struct ledger_runtime *runtime,
                              enum ledger_runtime_state state)
{
    if (state == runtime->state)
        return;
    TAILQ_REMOVE(&ledger->runtimes_in_state[runtime->state], runtime, in_state);
    runtime->state = state;
    TAILQ_INSERT_TAIL(&ledger->runtimes_in_state[state], runtime, in_state);
}

/* The oldest one that the count asks for, or else one that gets one more. */
static struct ledger_connection *wanted(const struct ledger_runtime *runtime)
{
    struct ledger_connection *connection, *again = NULL;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->state != LEDGER_IDLE)
            continue;
        if (runtime->n_open[connection->listener] > runtime->n_answered[connection->listener])
            return connection;
        if (connection->is_again && !again)
            again = connection;
    }
    return again;
}

/* What a runtime is, and who of its is next, after anything has changed. */
static void decide(struct ledger *ledger, struct ledger_runtime *runtime)
{
    struct ledger_connection *next;

    /* One after the other, since an answer may change what is wanted; but who does not answer one
     * is not waited for with the others. */
    while ((runtime->n_busy == 0 || runtime->n_overdue > 0) && (next = wanted(runtime))) {
        next->is_counted = runtime->n_open[next->listener] > runtime->n_answered[next->listener];
        set_state(ledger, next, LEDGER_DUE, MOMENT_NEVER);
    }
    if (runtime->n_connections == 0)
        set_runtime_state(ledger, runtime, LEDGER_ABSENT);
    else if (runtime->n_busy > 0)
        set_runtime_state(ledger, runtime, LEDGER_BUSY);
    else if (!moment_is_never(runtime->settle_at))
        set_runtime_state(ledger, runtime, LEDGER_SETTLING);
    else if (runtime->n_overdue == runtime->n_connections)
        set_runtime_state(ledger, runtime, LEDGER_STUCK);
    else
        set_runtime_state(ledger, runtime, LEDGER_QUIET);
}

/* Takes it out of everything; what that means for its runtime is the caller's. */
static void drop(struct ledger *ledger, struct ledger_connection *connection)
{
    struct ledger_runtime *runtime = connection->runtime;

    set_state(ledger, connection, LEDGER_FREE, MOMENT_NEVER);
    ledger->n_open--;
    connection->runtime = NULL;
    if (!runtime)
        return;
    TAILQ_REMOVE(&runtime->connections, connection, in_runtime);
    runtime->n_connections--;
    runtime->n_open[connection->listener]--;
}

uint16_t ledger_accept(struct ledger *ledger, uint8_t listener, struct moment now)
{
    struct ledger_connection *connection = TAILQ_FIRST(&ledger->in_state[LEDGER_FREE]);

    if (!connection) {
        connection = &ledger->connections[ledger->n_connections_used++];
        TAILQ_INSERT_TAIL(&ledger->in_state[LEDGER_FREE], connection, in_state);
    }
    connection->listener = listener;
    connection->is_counted = false;
    connection->is_again = connection->is_leaving = false;
    set_state(ledger, connection, LEDGER_GREETING, moment_after(now, LEDGER_HELLO));
    ledger->n_open++;
    ledger->counters.n_connections++;
    return number_of(ledger, connection);
}

/* One that nobody uses, or the one that has been absent for longest: there is one, since there are
 * more runtimes than connections. */
static struct ledger_runtime *take_runtime(struct ledger *ledger)
{
    struct ledger_runtime *runtime;

    if (ledger->n_runtimes_used < LEDGER_RUNTIMES_MAX) {
        runtime = &ledger->runtimes[ledger->n_runtimes_used++];
    } else {
        runtime = TAILQ_FIRST(&ledger->runtimes_in_state[LEDGER_ABSENT]);
        TAILQ_REMOVE(&ledger->runtimes_in_state[runtime->state], runtime, in_state);
        RB_REMOVE(ledger_tree, &ledger->by_who, runtime);
    }
    return runtime;
}

static struct ledger_runtime *find_or_add(struct ledger *ledger, const struct ledger_who *who)
{
    struct ledger_runtime key = {.who = *who};
    struct ledger_runtime *runtime = RB_FIND(ledger_tree, &ledger->by_who, &key);

    if (runtime)
        return runtime;
    runtime = take_runtime(ledger);
    *runtime =
        (struct ledger_runtime){.who = *who, .state = LEDGER_UNKNOWN, .settle_at = MOMENT_NEVER};
    TAILQ_INIT(&runtime->connections);
    TAILQ_INSERT_TAIL(&ledger->runtimes_in_state[LEDGER_UNKNOWN], runtime, in_state);
    RB_INSERT(ledger_tree, &ledger->by_who, runtime);
    return runtime;
}

/* The first of those who had to make room is back: everybody behind whom it queued was let in. */
static void end_round(struct ledger *ledger, struct moment now)
{
    struct span pause = span_from_us(pause_each.us * ledger->n_evicted_in_round);

    if (pause.us < round_pause.us)
        pause = round_pause;
    else if (pause.us > pause_max.us)
        pause = pause_max;
    ledger->room_after = moment_after(now, pause);
    ledger->round++;
    ledger->n_evicted_in_round = 0;
}

/* A quarter of what there is, and no less than a few. */
static uint32_t per_runtime(const struct ledger *ledger)
{
    uint32_t quarter = ledger->n_usable / 4;

    if (quarter < LEDGER_PER_RUNTIME_MIN)
        return LEDGER_PER_RUNTIME_MIN;
    return quarter < LEDGER_PER_RUNTIME_MAX ? quarter : LEDGER_PER_RUNTIME_MAX;
}

uint16_t ledger_introduce(struct ledger *ledger, uint16_t number, const struct ledger_who *who,
                          struct moment now)
{
    struct ledger_connection *connection = &ledger->connections[number];
    struct ledger_runtime *runtime = find_or_add(ledger, who);

    if (runtime->evicted_in == ledger->round)
        end_round(ledger, now);
    if (runtime->n_connections >= per_runtime(ledger)) {
        drop(ledger, connection);
        return number;
    }
    connection->runtime = runtime;
    TAILQ_INSERT_TAIL(&runtime->connections, connection, in_runtime);
    runtime->n_connections++;
    runtime->n_open[connection->listener]++;
    set_state(ledger, connection, LEDGER_IDLE, MOMENT_NEVER);
    decide(ledger, runtime);
    return LEDGER_NOBODY;
}

bool ledger_next_resume(struct ledger *ledger, struct moment now, uint16_t *ret_connection,
                        struct ledger_who *ret_who, bool *ret_is_first)
{
    struct ledger_connection *connection = TAILQ_FIRST(&ledger->in_state[LEDGER_DUE]);
    struct ledger_runtime *runtime;

    if (!connection)
        return false;
    runtime = connection->runtime;
    connection->sent_at = now;
    set_state(ledger, connection, LEDGER_FLYING, moment_after(now, LEDGER_PATIENCE));
    *ret_connection = number_of(ledger, connection);
    *ret_who = runtime->who;
    *ret_is_first = !runtime->was_resumed;
    ledger->counters.n_runtimes += !runtime->was_resumed;
    ledger->counters.n_resumes++;
    runtime->was_resumed = true;
    return true;
}

bool ledger_is_greeting(const struct ledger *ledger, uint16_t number)
{
    return ledger->connections[number].state == LEDGER_GREETING;
}

bool ledger_awaits_answer(const struct ledger *ledger, uint16_t number)
{
    enum ledger_connection_state state = ledger->connections[number].state;

    return state == LEDGER_FLYING || state == LEDGER_OVERDUE;
}

void ledger_answered(struct ledger *ledger, uint16_t number, struct moment now)
{
    struct ledger_connection *connection = &ledger->connections[number];
    struct ledger_runtime *runtime = connection->runtime;
    uint8_t *n_answered = &runtime->n_answered[connection->listener];

    drop(ledger, connection);
    if (connection->is_counted && *n_answered < UINT8_MAX)
        (*n_answered)++;
    if (connection->is_counted && *n_answered > 1) {
        runtime->settle_at = moment_after(now, LEDGER_SETTLE);
        runtime->n_rounds = LEDGER_SETTLE_ROUNDS;
    }
    decide(ledger, runtime);
}

/* What was counted may have been for ports that are connected anew: the count begins again. */
static void end_uncounted(struct ledger *ledger, struct ledger_connection *connection)
{
    struct ledger_runtime *runtime = connection->runtime;

    drop(ledger, connection);
    if (!runtime) {
        ledger->counters.n_strangers++;
        return;
    }
    memset(runtime->n_answered, 0, sizeof runtime->n_answered);
    decide(ledger, runtime);
}

void ledger_ended(struct ledger *ledger, uint16_t number)
{
    end_uncounted(ledger, &ledger->connections[number]);
}

/* That of the runtime that has been quiet for longest; NULL when none is. */
static struct ledger_connection *oldest_quiet(const struct ledger *ledger)
{
    const struct ledger_runtime *runtime = TAILQ_FIRST(&ledger->runtimes_in_state[LEDGER_QUIET]);
    struct ledger_connection *connection;

    if (!runtime)
        return NULL;
    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->state == LEDGER_IDLE)
            return connection;
    }
    return NULL;
}

/* It gets Resume, whatever the count says: then its runtime ends it and comes back behind those
 * that wait, and no port of it can have been forgotten. */
static void let_go(struct ledger *ledger, struct ledger_connection *connection)
{
    connection->is_again = connection->is_leaving = true;
    connection->runtime->evicted_in = ledger->round;
    ledger->n_evicted_in_round++;
    ledger->counters.n_evicted++;
    decide(ledger, connection->runtime);
}

static uint16_t evict(struct ledger *ledger, struct ledger_connection *connection)
{
    if (connection->runtime) {
        connection->runtime->evicted_in = ledger->round;
        ledger->n_evicted_in_round++;
    }
    ledger->counters.n_evicted++;
    end_uncounted(ledger, connection);
    return number_of(ledger, connection);
}

bool ledger_make_room(struct ledger *ledger, struct moment now, uint16_t *ret_connection)
{
    struct ledger_connection *greeting = TAILQ_FIRST(&ledger->in_state[LEDGER_GREETING]);
    struct ledger_connection *flying = TAILQ_FIRST(&ledger->in_state[LEDGER_FLYING]);
    struct ledger_runtime *stuck = TAILQ_FIRST(&ledger->runtimes_in_state[LEDGER_STUCK]);
    struct ledger_connection *connection;

    *ret_connection = LEDGER_NOBODY;
    if (ledger->n_open < ledger->n_usable)
        return true;
    if (greeting) {
        *ret_connection = evict(ledger, greeting);
        return false;
    }
    if (ledger->room_after.us > now.us)
        return false;
    while (ledger->n_leaving < leaving_max && (connection = oldest_quiet(ledger)))
        let_go(ledger, connection);
    if (ledger->n_leaving == 0 && stuck)
        *ret_connection = evict(ledger, TAILQ_FIRST(&stuck->connections));
    else if (flying && moment_is_due(moment_after(flying->sent_at, LEDGER_HASTE), now))
        *ret_connection = evict(ledger, flying);
    return false;
}

static struct moment deadline_of(const struct ledger *ledger, enum ledger_connection_state state)
{
    const struct ledger_connection *first = TAILQ_FIRST(&ledger->in_state[state]);

    return first ? first->deadline : MOMENT_NEVER;
}

struct moment ledger_deadline(const struct ledger *ledger)
{
    const struct ledger_runtime *settling =
        TAILQ_FIRST(&ledger->runtimes_in_state[LEDGER_SETTLING]);
    struct moment deadline =
        moment_earlier(deadline_of(ledger, LEDGER_GREETING), deadline_of(ledger, LEDGER_FLYING));

    if (settling)
        deadline = moment_earlier(deadline, settling->settle_at);
    if (ledger->n_open >= ledger->n_usable && ledger->room_after.us > 0)
        deadline = moment_earlier(deadline, ledger->room_after);
    return deadline;
}

static void settle(struct ledger *ledger, struct ledger_runtime *runtime, struct moment now)
{
    struct ledger_connection *connection;

    runtime->settle_at = MOMENT_NEVER;
    TAILQ_FOREACH(connection, &runtime->connections, in_runtime)
        connection->is_again = connection->state == LEDGER_IDLE;
    decide(ledger, runtime);
    /* Not before, so that it goes to the end of those that settle. */
    if (--runtime->n_rounds > 0)
        runtime->settle_at = moment_after(now, LEDGER_SETTLE);
    decide(ledger, runtime);
}

uint16_t ledger_expire(struct ledger *ledger, struct moment now)
{
    struct ledger_connection *connection;
    struct ledger_runtime *runtime;

    if (ledger->room_after.us <= now.us)
        ledger->room_after = (struct moment){0};
    while ((connection = TAILQ_FIRST(&ledger->in_state[LEDGER_FLYING])) &&
           moment_is_due(connection->deadline, now)) {
        set_state(ledger, connection, LEDGER_OVERDUE, MOMENT_NEVER);
        decide(ledger, connection->runtime);
    }
    while ((runtime = TAILQ_FIRST(&ledger->runtimes_in_state[LEDGER_SETTLING])) &&
           moment_is_due(runtime->settle_at, now))
        settle(ledger, runtime, now);
    connection = TAILQ_FIRST(&ledger->in_state[LEDGER_GREETING]);
    if (!connection || !moment_is_due(connection->deadline, now))
        return LEDGER_NOBODY;
    end_uncounted(ledger, connection);
    return number_of(ledger, connection);
}

bool ledger_is_busy(const struct ledger *ledger)
{
    return !TAILQ_EMPTY(&ledger->in_state[LEDGER_DUE]) ||
           !TAILQ_EMPTY(&ledger->in_state[LEDGER_FLYING]);
}

uint32_t ledger_n_open(const struct ledger *ledger)
{
    return ledger->n_open;
}

uint32_t ledger_usable(const struct ledger *ledger)
{
    return ledger->n_usable;
}

void ledger_set_usable(struct ledger *ledger, uint32_t n_usable)
{
    ledger->n_usable = n_usable;
}

static const char *check_runtime(const struct ledger_runtime *runtime)
{
    uint32_t n = 0, n_busy = 0, n_overdue = 0, n_open[LEDGER_LISTENERS_MAX] = {0};
    const struct ledger_connection *connection;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        if (connection->runtime != runtime)
            return "a connection of another runtime";
        n++;
        n_busy += is_busy(connection->state);
        n_overdue += connection->state == LEDGER_OVERDUE;
        n_open[connection->listener]++;
    }
    if (n != runtime->n_connections || n > LEDGER_PER_RUNTIME_MAX)
        return "connections of a runtime";
    if (n_busy != runtime->n_busy || n_overdue != runtime->n_overdue)
        return "connections of a runtime that wait for an answer";
    if (n_busy == 0 && wanted(runtime))
        return "a connection that needs Resume and gets none";
    for (size_t i = 0; i < LEDGER_LISTENERS_MAX; i++) {
        if (n_open[i] != runtime->n_open[i])
            return "connections of a runtime on one listener";
    }
    if (runtime->state == LEDGER_UNKNOWN || (runtime->state == LEDGER_ABSENT) != (n == 0) ||
        (runtime->state == LEDGER_BUSY) != (n_busy > 0))
        return "the state of a runtime";
    if ((runtime->state == LEDGER_QUIET || runtime->state == LEDGER_SETTLING) && n_busy > 0)
        return "a quiet runtime that waits";
    return NULL;
}

const char *ledger_check(const struct ledger *ledger)
{
    uint32_t n_open = 0;

    for (uint32_t i = 0; i < ledger->n_connections_used; i++) {
        const struct ledger_connection *connection = &ledger->connections[i];

        n_open += connection->state != LEDGER_FREE;
        if ((connection->state > LEDGER_GREETING) != (connection->runtime != NULL))
            return "a connection without its runtime";
    }
    if (n_open != ledger->n_open)
        return "the number of connections";
    for (uint32_t i = 0; i < ledger->n_runtimes_used; i++) {
        const char *problem = check_runtime(&ledger->runtimes[i]);

        if (problem)
            return problem;
    }
    return NULL;
}
