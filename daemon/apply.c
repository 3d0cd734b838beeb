/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/apply.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/facts.h"
#include "daemon/handle.h"
#include "daemon/questions.h"
#include "daemon/store.h"
#include "lib/broker.h"
#include "lib/facts.h"

/* Deadlines and peers wait no longer than that for processes to be looked at. */
#define LOOK_TIME span_from_ms(5)

struct apply {
    struct apply_options options;
    struct broker *broker;
    struct handle_table *handles;
    struct peer_owner peers;
    struct questions *questions;
    bool is_paused; /* as the listeners were told */
    int pidfd;      /* of the answer at hand; -1 when there is none or it was taken */
};

static void on_process_end(void *context, uint64_t process)
{
    struct apply *apply = context;

    broker_process_ended(apply->broker, process, clock_now());
    apply_settle(apply);
}

static void settle(void *context)
{
    apply_settle(context);
}

struct apply *apply_new(const struct apply_options *options)
{
    struct apply *apply = calloc(1, sizeof *apply);

    if (!apply)
        return NULL;
    apply->options = *options;
    apply->broker = options->broker;
    apply->pidfd = -1;
    peer_owner_init(&apply->peers, options->broker, options->loop, settle, apply);
    apply->questions = questions_new();
    apply->handles = handle_table_new(options->loop, on_process_end, apply);
    return apply->handles && apply->questions ? apply : apply_free(apply);
}

struct apply *apply_free(struct apply *apply)
{
    if (!apply)
        return NULL;
    peer_owner_deinit(&apply->peers);
    handle_table_free(apply->handles);
    questions_free(apply->questions);
    free(apply);
    return NULL;
}

struct peer_owner *apply_peers(struct apply *apply)
{
    return &apply->peers;
}

/* A handle of its own for the question, unless one is held: first that of whoever made the
 * connection, which cannot be mistaken. */
static int open_handle(const struct action *action)
{
    int pidfd = -1;

    if (action->connection)
        pidfd = handle_of_peer(peer_descriptor(action->connection));
    if (pidfd < 0 && action->question.pid > 0)
        pidfd = handle_of_pid(action->question.pid);
    return pidfd;
}

/* A question that memory ran out for stays open, and the deadline of who asked ends it. */
static void lose_question(struct apply *apply)
{
    broker_alarm(apply->broker, ALARM_MEMORY, true, "memory ran out for looking at a process",
                 clock_now());
}

static void hold_process(struct apply *apply, uint64_t process)
{
    int pidfd = apply->pidfd;

    apply->pidfd = -1;
    if (pidfd < 0 || !handle_put(apply->handles, process, pidfd))
        broker_handle_lost(apply->broker, process, clock_now());
}

/* Takes the action, if only to free it. */
static void carry_out(struct apply *apply, struct action *action)
{
    switch (action->kind) {
    case ACTION_SEND:
        peer_send(action->connection, action->bytes, action->length);
        break;
    case ACTION_CLOSE:
        peer_close(action->connection);
        break;
    case ACTION_READ:
        peer_ask_read(action->connection);
        break;
    case ACTION_ASK:
        /* Later: the core is not called while its actions are carried out. */
        if (!questions_put(apply->questions, action))
            lose_question(apply);
        return;
    case ACTION_HOLD_PROCESS:
        hold_process(apply, action->process);
        break;
    case ACTION_RELEASE_PROCESS:
        handle_drop(apply->handles, action->process);
        break;
    case ACTION_KILL:
        if (handle_kill(apply->handles, action->process) != 0)
            broker_kill_failed(apply->broker, action->process, clock_now());
        break;
    case ACTION_MARK:
        store_mark(apply->options.store, action->slot, action->mark);
        break;
    }
    action_free(action);
}

void apply_settle(struct apply *apply)
{
    struct action *action;

    do {
        while ((action = broker_take_action(apply->broker)))
            carry_out(apply, action);
    } while (peer_read_asked(&apply->peers));
    if (apply->is_paused != broker_is_paused(apply->broker)) {
        apply->is_paused = !apply->is_paused;
        apply->options.pause(apply->options.context, apply->is_paused);
    }
}

/* The next one that somebody still waits for. Whoever asked about a connection and is gone took the
 * connection with him, so nothing of these others may be touched. */
static struct action *next_question(struct apply *apply)
{
    struct action *action;

    while ((action = questions_take(apply->questions)) &&
           !broker_awaits(apply->broker, action->question.id))
        action_free(action);
    return action;
}

static void answer(struct apply *apply, const struct action *action)
{
    int held = action->process != 0 ? handle_get(apply->handles, action->process) : -1;
    struct facts *facts;

    apply->pidfd = held < 0 ? open_handle(action) : -1;
    facts = facts_look(&action->question, held < 0 ? apply->pidfd : held);
    if (facts)
        broker_answer(apply->broker, action->question.id, facts, clock_now());
    else
        lose_question(apply);
    apply_settle(apply);
    if (apply->pidfd >= 0)
        close(apply->pidfd);
    apply->pidfd = -1;
}

void apply_look(struct apply *apply)
{
    struct moment end = moment_after(clock_now(), LOOK_TIME);
    struct action *action;

    do {
        action = next_question(apply);
        if (action)
            answer(apply, action);
        action_free(action);
    } while (action && !moment_is_due(end, clock_now()));
}

bool apply_has_questions(const struct apply *apply)
{
    return !questions_is_empty(apply->questions);
}
