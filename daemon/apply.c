/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/handle.h"
#include "daemon/keeper.h"
#include "daemon/kills.h"
#include "daemon/looks.h"
#include "daemon/store.h"
#include "lib/broker.h"
#include "lib/facts.h"

/* A question of the core that waits for its answer. */
struct question {
    struct look look;
    struct apply *apply;
    struct action *action;
    int pidfd; /* of its own; -1 when the process's is held, or there is none */
};

struct apply {
    struct apply_options options;
    struct broker *broker;
    struct handle_table *handles;
    struct peer_owner peers;
    struct looks *looks;
    struct kills *kills; /* NULL when nobody may */
    bool is_paused;      /* as the listeners were told */
    int pidfd;           /* of the answer at hand, if it is its own; -1 when it was taken */
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

static void be_stuck(void *context, bool is_stuck)
{
    const struct apply *apply = context;

    broker_alarm(apply->broker, ALARM_PROBE, is_stuck,
                 "too many looks at processes hang in the kernel, so nothing is known of anybody",
                 clock_now());
}

static void on_kill_failed(void *context, uint64_t process)
{
    struct apply *apply = context;

    broker_kill_failed(apply->broker, process, clock_now());
    apply_settle(apply);
}

static bool make_rooms(struct apply *apply)
{
    const struct apply_options *options = &apply->options;
    const struct looks_options looks = {
        .workers = options->workers,
        .be_stuck = be_stuck,
        .context = apply,
    };
    struct kills_options kills = {
        .workers = options->workers,
        .failed = on_kill_failed,
        .context = apply,
    };

    apply->looks = looks_new(&looks);
    apply->handles = handle_table_new(options->loop, on_process_end, apply);
    kills.handles = apply->handles;
    if (options->may_kill)
        apply->kills = kills_new(&kills);
    return apply->looks && apply->handles && (apply->kills || !options->may_kill);
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
    return make_rooms(apply) ? apply : apply_free(apply);
}

struct apply *apply_free(struct apply *apply)
{
    if (!apply)
        return NULL;
    peer_owner_deinit(&apply->peers);
    looks_free(apply->looks);
    kills_free(apply->kills);
    handle_table_free(apply->handles);
    free(apply);
    return NULL;
}

struct peer_owner *apply_peers(struct apply *apply)
{
    return &apply->peers;
}

struct looks *apply_looks(struct apply *apply)
{
    return apply->looks;
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

static struct question *question_of(struct look *look)
{
    return container_of(look, struct question, look);
}

/* Whoever asked about a connection and is gone took the connection with him, so nothing of these
 * others may be touched. */
static bool begin_question(struct look *look)
{
    struct question *question = question_of(look);
    const struct apply *apply = question->apply;
    const struct action *action = question->action;

    if (!broker_awaits(apply->broker, action->question.id))
        return false;
    if (action->process == 0 || handle_get(apply->handles, action->process) < 0)
        question->pidfd = open_handle(action);
    return true;
}

static int handle_of(const struct question *question)
{
    uint64_t process = question->action->process;

    if (question->pidfd >= 0 || process == 0)
        return question->pidfd;
    return handle_get(question->apply->handles, process);
}

static void answer_question(struct look *look, struct facts *facts)
{
    struct question *question = question_of(look);
    struct apply *apply = question->apply;

    if (!facts) {
        lose_question(apply);
        return;
    }
    if (!broker_awaits(apply->broker, look->question->id)) {
        facts_free(facts);
        return;
    }
    looks_judge(facts, look->question, handle_of(question));
    apply->pidfd = question->pidfd;
    question->pidfd = -1;
    broker_answer(apply->broker, look->question->id, facts, clock_now());
    apply_settle(apply);
    if (apply->pidfd >= 0)
        close(apply->pidfd);
    apply->pidfd = -1;
}

static void end_question(struct look *look)
{
    struct question *question = question_of(look);

    if (question->pidfd >= 0)
        close(question->pidfd);
    action_free(question->action);
    free(question);
}

/* Takes the action. */
static void ask(struct apply *apply, struct action *action)
{
    static const struct look_owner owner = {begin_question, answer_question, end_question};
    struct question *question = malloc(sizeof *question);

    if (!question) {
        action_free(action);
        lose_question(apply);
        return;
    }
    *question = (struct question){
        .look = {.entry.uid = action->question.uid, .owner = &owner, .question = &action->question},
        .apply = apply,
        .action = action,
        .pidfd = -1,
    };
    if (!looks_put(apply->looks, &question->look)) {
        end_question(&question->look);
        lose_question(apply);
    }
}

/* Directly where the daemon may, as with processes of its own user. */
static void kill_process(struct apply *apply, uint64_t process)
{
    int error = handle_kill(apply->handles, process);

    if (error == 0 || (error == -EPERM && apply->kills && kills_put(apply->kills, process)))
        return;
    broker_kill_failed(apply->broker, process, clock_now());
}

static void hold_process(struct apply *apply, uint64_t process)
{
    int pidfd = apply->pidfd;

    apply->pidfd = -1;
    if (pidfd < 0 || !handle_put(apply->handles, process, pidfd))
        broker_handle_lost(apply->broker, process, clock_now());
}

static void keep(struct apply *apply, const struct action *action)
{
    if (keeper_put(apply->options.keeper, peer_descriptor(action->connection), action->kept))
        peer_be_kept(action->connection);
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
        /* Answered later: the core is not called while its actions are carried out. */
        ask(apply, action);
        return;
    case ACTION_HOLD_PROCESS:
        hold_process(apply, action->process);
        break;
    case ACTION_RELEASE_PROCESS:
        handle_drop(apply->handles, action->process);
        break;
    case ACTION_KILL:
        kill_process(apply, action->process);
        break;
    case ACTION_MARK:
        store_mark(apply->options.store, action->slot, action->mark);
        break;
    case ACTION_KEEP:
        keep(apply, action);
        break;
    case ACTION_UNKEEP:
        keeper_remove(apply->options.keeper, action->kept, clock_now());
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

struct moment apply_next(const struct apply *apply)
{
    struct moment next = looks_next(apply->looks);

    return apply->kills ? moment_earlier(next, kills_next(apply->kills)) : next;
}

void apply_run(struct apply *apply)
{
    looks_run(apply->looks);
    if (apply->kills)
        kills_run(apply->kills, clock_now());
}
