/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From an advertise to a process and a runtime: who is it really, have we seen
 * it, and does what it claims agree with the kernel. What is then done to it is
 * decided elsewhere.
 */

#include <string.h>

#include "lib/broker_core.h"
#include "lib/facts.h"

/* What is always looked at: who it is, and what people want to see in a list. */
enum {
    ALWAYS_WANTED = FACTS_STAT | FACTS_STATUS | FACTS_EXE | FACTS_ARGUMENTS | FACTS_CGROUP,
};

uint32_t broker_facts_wanted(const struct policy *policy)
{
    return ALWAYS_WANTED | policy->facts_wanted;
}

static struct runtime *find_in_process(const struct process *process, const struct guid *cookie)
{
    struct runtime *runtime;

    TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
        if (guid_compare(&runtime->cookie, cookie) == 0)
            return runtime;
    }
    return NULL;
}

/* The runtimes of one cookie are neighbours in the tree: those that live before those that have
 * ended, which may be thousands, and those of one pid together. */
static int compare_cookies(const struct runtime *a, const struct runtime *b)
{
    int order = guid_compare(&a->cookie, &b->cookie);

    if (order != 0)
        return order;
    if (runtime_has_ended(a) != runtime_has_ended(b))
        return runtime_has_ended(a) ? 1 : -1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

TREE_GENERATE(cookie_tree, runtime, by_cookie, compare_cookies)

void identify_register(struct runtime *runtime)
{
    RB_INSERT(cookie_tree, &runtime->broker->cookies, runtime);
}

void identify_unregister(struct runtime *runtime)
{
    RB_REMOVE(cookie_tree, &runtime->broker->cookies, runtime);
}

static struct runtime *if_living(struct runtime *runtime, const struct guid *cookie)
{
    return runtime && !runtime_has_ended(runtime) && guid_compare(&runtime->cookie, cookie) == 0
               ? runtime
               : NULL;
}

/* The first living runtime of the cookie. */
static struct runtime *first_living(struct broker *broker, const struct guid *cookie)
{
    struct runtime key = {.cookie = *cookie, .pid = INT32_MIN};

    return if_living(RB_NFIND(cookie_tree, &broker->cookies, &key), cookie);
}

static struct runtime *if_of_peer(struct runtime *runtime, const struct connection *connection)
{
    runtime = if_living(runtime, &connection->advertise.cookie);
    return runtime && runtime->pid == connection->peer.pid ? runtime : NULL;
}

/* Those that live and have the cookie and the pid of the connection: the first, and the next. */
static struct runtime *first_of_peer(const struct connection *connection)
{
    struct runtime key = {.cookie = connection->advertise.cookie, .pid = connection->peer.pid};

    return if_of_peer(RB_NFIND(cookie_tree, &connection->broker->cookies, &key), connection);
}

static struct runtime *next_of_peer(struct runtime *runtime, const struct connection *connection)
{
    return if_of_peer(RB_NEXT(cookie_tree, &connection->broker->cookies, runtime), connection);
}

/* A runtime whose process cannot be identified is known by its cookie, pid and user alone. */
static struct runtime *find_unidentified(const struct connection *connection)
{
    struct runtime *runtime = first_of_peer(connection);

    while (runtime &&
           (runtime->process->is_identified || runtime->process->user->uid != connection->peer.uid))
        runtime = next_of_peer(runtime, connection);
    return runtime;
}

/* With nothing known about its process, it is taken for the one that says the same of itself. */
static struct runtime *find_likely(const struct connection *connection)
{
    struct runtime *runtime = first_of_peer(connection);

    while (runtime && runtime->process->user->uid != connection->peer.uid)
        runtime = next_of_peer(runtime, connection);
    return runtime;
}

/* Whether a connection that nobody can be asked about may be its last one. Whom nobody could ever
 * look at may well live, and has no last one. */
static bool may_come_back_ended(const struct runtime *runtime, const struct connection *connection)
{
    return runtime->uid == connection->peer.uid && runtime->start_time != 0 &&
           runtime->state >= RUNTIME_RESUMING;
}

/* The one of the cookie and the pid that ended last; NULL when none did. */
static struct runtime *last_ended_of_peer(const struct connection *connection)
{
    struct cookie_tree *cookies = &connection->broker->cookies;
    struct runtime key = {.cookie = connection->advertise.cookie,
                          .pid = connection->peer.pid,
                          .state = RUNTIME_GONE,
                          .serial = UINT64_MAX};
    struct runtime *after = RB_NFIND(cookie_tree, cookies, &key);
    struct runtime *last =
        after ? RB_PREV(cookie_tree, cookies, after) : RB_MAX(cookie_tree, cookies);

    return last && runtime_has_ended(last) && last->pid == key.pid &&
                   guid_compare(&last->cookie, &key.cookie) == 0
               ? last
               : NULL;
}

/*
 * The connection of a process that cannot be looked at, most likely since it
 * has ended: after Resume a runtime comes back once more, and a short program
 * is over by then. It is that of the runtime it says, living or not, where that
 * has nothing but Resume to get. NULL when there is none.
 */
static struct runtime *find_last(const struct connection *connection)
{
    struct runtime *runtime = first_of_peer(connection);

    while (runtime && !may_come_back_ended(runtime, connection))
        runtime = next_of_peer(runtime, connection);
    if (!runtime)
        runtime = last_ended_of_peer(connection);
    return runtime && may_come_back_ended(runtime, connection) ? runtime : NULL;
}

/*
 * A runtime we know in a process whose handle we hold: its pid cannot have been
 * given to anybody else, so there is nothing to ask.
 */
static struct runtime *find_held(const struct connection *connection)
{
    struct runtime *runtime = first_of_peer(connection);

    while (runtime && (!runtime->process->is_held || runtime->process->has_ended ||
                       runtime->process->user->uid != connection->peer.uid))
        runtime = next_of_peer(runtime, connection);
    return runtime;
}

/* The cookie is known for that pid, so most likely its start time is all there is to learn. */
static bool is_probably_known(const struct connection *connection)
{
    return first_of_peer(connection) != NULL;
}

static void ask(struct connection *connection, uint32_t wanted, struct moment now)
{
    if (!broker_ask(connection->broker, QUESTION_IDENTITY, connection, NULL, wanted, NULL, 0)) {
        broker_out_of_memory(connection->broker, now);
        identify_answered(connection, NULL, now);
    }
}

/* Likewise: a process of that pid has shown all the cookies that it may. */
static bool is_probably_nameless(const struct connection *connection)
{
    const struct process *process = process_first_of(connection->broker, connection->peer.pid);

    return process && !process_has_room(process, &connection->advertise.cookie,
                                        &connection->broker->policy->limits);
}

/* What was read off the threads of a process may have been this one's. */
static void doubt_others(struct process *process, struct moment now)
{
    struct runtime *other;

    TAILQ_FOREACH(other, &process->runtimes, in_process) {
        resume_doubt(other, now);
    }
}

static void have_more_cookies(struct process *process, struct moment now)
{
    process->has_more_cookies = true;
    doubt_others(process, now);
}

/* It is resumed, and nothing of ours says so when it comes back but its user. */
static void be_unknown(struct connection *connection, enum connection_state state,
                       struct moment now)
{
    const struct guid *cookie = &connection->advertise.cookie;
    struct process *process = process_first_of(connection->broker, connection->peer.pid);

    if (process && !process_knows_cookie(process, cookie))
        have_more_cookies(process, now);
    connection->is_unknown = true;
    connection_be_nameless(connection, &connection->user->pace, state, now);
}

void identify_resume_unknown(const struct connection *connection)
{
    struct runtime *runtime = find_likely(connection);

    /* This may be all the Resume that it ever takes. */
    if (runtime)
        resume_mark(runtime);
}

void identify_resumed_unknown(const struct connection *connection, struct moment now)
{
    struct runtime *runtime = find_likely(connection);

    user_resumed_unknown(connection->broker, connection->user, &connection->advertise.cookie,
                         connection->peer.pid, now);
    if (runtime && runtime->state < RUNTIME_RESUMING)
        /* It may run now, or as soon as its next port is over the limit: no step may follow. */
        apply_stop(runtime, "one of its ports was resumed over a limit", true, now);
    else if (runtime)
        resume_uncounted(runtime, now);
}

void identify_nameless_ended(const struct connection *connection, struct moment now)
{
    struct process *process;

    if (!connection->was_resumed)
        return;
    if (connection->is_unknown)
        user_resumed_unknown(connection->broker, connection->user, &connection->advertise.cookie,
                             connection->peer.pid, now);
    process = process_find(connection->broker, connection->peer.pid, connection->over_limit_in);
    if (process && connection->over_limit_in != 0)
        process->over_limit_until = moment_after(now, BROKER_UNKNOWN_TIME);
}

/* In the middle of its plan a runtime comes back for the next step, maybe before the end of the
 * connection before it was read. */
static bool is_awaited(const struct connection *connection)
{
    const struct runtime *runtime = find_likely(connection);

    return runtime && runtime->state < RUNTIME_RESUMING && runtime->n_connections <= 1;
}

static bool is_over_connection_limit(const struct connection *connection)
{
    return connection->user->n_connections > broker_connections_per_user(connection->broker) &&
           !is_awaited(connection);
}

/* Sessions, which only tell, go before anybody is over the limit. */
static bool has_no_place(const struct connection *connection, struct moment now)
{
    while (is_over_connection_limit(connection)) {
        if (!session_let_go(connection->broker, connection->user, now))
            return true;
    }
    return false;
}

void identify_connection(struct connection *connection, struct moment now)
{
    struct broker *broker = connection->broker;
    struct runtime *runtime = find_held(connection);

    if (runtime) {
        runtime_attach(runtime, connection, now);
        return;
    }
    if (has_no_place(connection, now)) {
        broker_peer_error(broker, PEER_OVER_LIMIT, &connection->peer, NULL,
                          "its user has more connections than limits.connections_per_user", now);
        be_unknown(connection, CONNECTION_LEAVING, now);
        return;
    }
    if (connection->peer.pid <= 0) {
        identify_answered(connection, NULL, now);
        return;
    }
    ask(connection,
        is_probably_known(connection) || is_probably_nameless(connection)
            ? (uint32_t)(FACTS_STAT | FACTS_STATUS)
            : broker_facts_wanted(broker->policy),
        now);
}

/* True when an older runtime of the process has connections: either they have ended and we have not
 * looked yet, as after an exec, or there are two runtimes in the process. */
static bool has_other_open(const struct process *process)
{
    const struct runtime *runtime;

    TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
        if (runtime->n_connections > 0)
            return true;
    }
    return false;
}

static bool read_others(const struct process *process)
{
    const struct runtime *runtime;

    TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
        const struct connection *connection;

        TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
            if (!broker_read(runtime->broker, connection))
                return false;
        }
    }
    return true;
}

/* An exec: the older runtimes of the process have no connection left and will not come back. */
static void end_replaced(struct process *process, const struct runtime *by, struct moment now)
{
    struct runtime *runtime, *following;

    TAILQ_FOREACH_SAFE(runtime, &process->runtimes, in_process, following) {
        if (runtime != by && runtime->n_connections == 0 && !process->has_several)
            runtime_end(runtime, "its process started another program", now);
    }
}

/* Why what the peer claims cannot be so; NULL when it can. */
static const char *claim_problem(const struct connection *connection, const struct process *process,
                                 const struct attributes *attributes)
{
    const struct runtime *other;

    if (!process->is_identified)
        return "its process could not be identified";
    if (attributes->n_ns_pids == 0)
        return "the status of its process could not be read";
    if (attributes->ns_pid != connection->advertise.pid)
        return "the pid in its advertise is not that of its process";
    if (attributes->uid != connection->peer.uid)
        return "its process has another user than its connection";
    other = first_living(connection->broker, &connection->advertise.cookie);
    if (other && other->process != process)
        return "its cookie is that of a runtime in another process";
    if (has_other_open(process))
        return "its process has another runtime";
    if (process_knows_cookie(process, &connection->advertise.cookie))
        return "it was taken for replaced by another program of its process";
    return NULL;
}

/* It runs, or may: a daemon that stops leaves it to the next one, which has only the record. */
static bool may_have_been_resumed(struct runtime *runtime, struct moment now)
{
    if (!user_may_have_resumed(runtime->process->user, &runtime->cookie) &&
        !moment_is_before(now, runtime->process->over_limit_until))
        return false;
    resume_mark(runtime);
    return true;
}

static void be_new(struct connection *connection, const struct facts *facts,
                   struct process *process, struct attributes *attributes, struct moment now)
{
    struct broker *broker = connection->broker;
    const char *problem = claim_problem(connection, process, attributes);
    struct runtime *runtime = NULL;

    /* It was taken for one that an exec had ended, and was not. */
    if (process_knows_cookie(process, &connection->advertise.cookie))
        process->has_several = true;
    if (process_remember_cookie(process, &connection->advertise.cookie))
        runtime = runtime_new(broker, process, connection);
    if (!runtime) {
        broker_out_of_memory(broker, now);
        process_settle(broker, process);
        be_unknown(connection, CONNECTION_NAMELESS, now);
        return;
    }
    process->has_more_cookies |=
        user_may_have_resumed_beside(process->user, &runtime->cookie, process->pid);
    end_replaced(process, runtime, now);
    doubt_others(process, now);
    if (problem && process->is_identified)
        broker_peer_error(broker, PEER_CLAIMED_WRONG, &connection->peer, runtime, problem, now);
    if (may_have_been_resumed(runtime, now) && !problem)
        problem = "it may have been resumed before it could be known";
    attributes_deinit(&runtime->attributes);
    runtime->attributes = *attributes;
    attributes_init(attributes);
    decide_runtime(runtime, facts, problem, now);
}

/*
 * What nobody can be asked about any more is most likely the last connection of
 * a program that is over and was forgotten: then its end is there to be read,
 * and nothing is made of it. True when that is tried.
 */
static bool read_to_its_end(struct connection *connection, struct moment now)
{
    if (connection->has_read_itself || !broker_read(connection->broker, connection))
        return false;
    connection->has_read_itself = true;
    ask(connection, broker_facts_wanted(connection->broker->policy), now);
    return true;
}

/* The process is known now; the runtime may be. */
static void settle(struct connection *connection, const struct facts *facts,
                   struct process *process, struct attributes *attributes, struct moment now)
{
    struct broker *broker = connection->broker;

    if (!process) {
        bool is_identified = attributes->start_time != 0;

        if (!is_identified && facts && read_to_its_end(connection, now))
            return;
        process = process_new(broker, connection->peer.pid, attributes->start_time, is_identified,
                              connection->peer.uid);
        if (!process) {
            broker_out_of_memory(broker, now);
            be_unknown(connection, CONNECTION_NAMELESS, now);
            return;
        }
    } else {
        if (has_other_open(process) && !connection->has_read_others && read_others(process)) {
            connection->has_read_others = true;
            ask(connection, broker_facts_wanted(broker->policy), now);
            return;
        }
    }
    be_new(connection, facts, process, attributes, now);
}

static void be_over_cookie_limit(struct connection *connection, struct process *process,
                                 struct moment now)
{
    broker_peer_error(connection->broker, PEER_OVER_LIMIT, &connection->peer, NULL,
                      "its process has shown more cookies than limits.cookies_per_process", now);
    have_more_cookies(process, now);
    process->over_limit_until = moment_after(now, BROKER_UNKNOWN_TIME);
    connection->over_limit_in = process->start_time;
    connection_be_nameless(connection, &process->pace, CONNECTION_NAMELESS, now);
}

void identify_answered(struct connection *connection, const struct facts *facts, struct moment now)
{
    struct broker *broker = connection->broker;
    struct attributes attributes;
    struct process *process = NULL;
    struct runtime *runtime;

    connection->question = broker_forget_question(broker, connection->question);
    attributes_init(&attributes);
    if (facts && facts->is_alive &&
        attributes_take_facts(&attributes, connection->peer.pid, facts, broker->policy->names) !=
            0) {
        broker_out_of_memory(broker, now);
        attributes_deinit(&attributes);
        attributes_init(&attributes);
        facts = NULL;
    }
    if (attributes.start_time != 0)
        process = process_find(broker, connection->peer.pid, attributes.start_time);
    runtime = process ? find_in_process(process, &connection->advertise.cookie) : NULL;
    /* Facts about it may have come too late once: it is still the one it was taken for then. */
    if (!runtime)
        runtime = find_unidentified(connection);
    if (!runtime && !facts)
        runtime = find_likely(connection);
    if (!runtime && attributes.start_time == 0)
        runtime = find_last(connection);
    /* Whatever still hears us after its end is resumed, and nothing is made of it. */
    if (runtime && !runtime->process)
        connection_be_nameless(connection, &connection->user->pace, CONNECTION_NAMELESS, now);
    else if (runtime)
        runtime_attach(runtime, connection, now);
    else if (process &&
             !process_has_room(process, &connection->advertise.cookie, &broker->policy->limits))
        be_over_cookie_limit(connection, process, now);
    else if (facts && !(facts->wanted & FACTS_EXE))
        ask(connection, broker_facts_wanted(broker->policy), now);
    else
        settle(connection, facts, process, &attributes, now);
    attributes_deinit(&attributes);
}
