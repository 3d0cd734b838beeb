/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/apply.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/facts.h"
#include "daemon/handle.h"
#include "daemon/store.h"
#include "lib/broker.h"
#include "lib/facts.h"
#include "lib/tree.h"

struct answer {
    STAILQ_ENTRY(answer) link;
    uint64_t question;
    struct facts *facts;
    int pidfd;
};

struct apply {
    struct apply_options options;
    struct broker *broker;
    struct handle_table *handles;
    struct peer_owner peers;
    STAILQ_HEAD(, answer) answers;
    int pidfd; /* of the answer at hand; -1 when there is none or it was taken */
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
    STAILQ_INIT(&apply->answers);
    peer_owner_init(&apply->peers, options->broker, options->loop, settle, apply);
    apply->handles = handle_table_new(options->loop, on_process_end, apply);
    return apply->handles ? apply : apply_free(apply);
}

struct apply *apply_free(struct apply *apply)
{
    if (!apply)
        return NULL;
    peer_owner_deinit(&apply->peers);
    handle_table_free(apply->handles);
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

    if (action->process != 0)
        return -1;
    if (action->connection)
        pidfd = handle_of_peer(peer_descriptor(action->connection));
    if (pidfd < 0 && action->question.pid > 0)
        pidfd = handle_of_pid(action->question.pid);
    return pidfd;
}

/* Looks at once and answers later: the core is not called while its actions are carried out. A
 * question that memory ran out for stays open, and the deadline of who asked ends it. */
static void ask(struct apply *apply, const struct action *action)
{
    struct answer *answer = calloc(1, sizeof *answer);
    int pidfd = open_handle(action);
    int held = action->process != 0 ? handle_get(apply->handles, action->process) : -1;

    if (answer)
        answer->facts = facts_look(&action->question, held >= 0 ? held : pidfd);
    if (!answer || !answer->facts) {
        free(answer);
        if (pidfd >= 0)
            close(pidfd);
        broker_alarm(apply->broker, ALARM_MEMORY, true, "memory ran out for looking at a process",
                     clock_now());
        return;
    }
    answer->question = action->question.id;
    answer->pidfd = pidfd;
    STAILQ_INSERT_TAIL(&apply->answers, answer, link);
}

static void hold_process(struct apply *apply, uint64_t process)
{
    int pidfd = apply->pidfd;

    apply->pidfd = -1;
    if (pidfd < 0 || !handle_put(apply->handles, process, pidfd))
        broker_handle_lost(apply->broker, process, clock_now());
}

static void carry_out(struct apply *apply, const struct action *action)
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
        ask(apply, action);
        break;
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
        if (apply->options.store)
            store_mark(apply->options.store, action->slot, action->mark);
        break;
    case ACTION_PAUSE:
    case ACTION_UNPAUSE:
        apply->options.pause(apply->options.context, action->kind == ACTION_PAUSE);
        break;
    }
}

static void carry_out_all(struct apply *apply)
{
    struct action *action;

    while ((action = broker_take_action(apply->broker))) {
        carry_out(apply, action);
        action_free(action);
    }
}

static void give_answer(struct apply *apply, struct answer *answer)
{
    apply->pidfd = answer->pidfd;
    broker_answer(apply->broker, answer->question, answer->facts, clock_now());
    carry_out_all(apply);
    if (apply->pidfd >= 0)
        close(apply->pidfd);
    apply->pidfd = -1;
    free(answer);
}

void apply_settle(struct apply *apply)
{
    struct answer *answer;

    for (;;) {
        carry_out_all(apply);
        if (peer_read_asked(&apply->peers))
            continue;
        answer = STAILQ_FIRST(&apply->answers);
        if (!answer)
            return;
        STAILQ_REMOVE_HEAD(&apply->answers, link);
        give_answer(apply, answer);
    }
}
