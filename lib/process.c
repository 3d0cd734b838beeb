/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes and users: who they are to the broker, and what is charged to them.
 * What a runtime or a connection is about is not known here.
 */

#include <assert.h>
#include <stdlib.h>

#include "lib/broker_core.h"

/* Keeps what stands in for an unknown start time apart from every real one. */
#define UNIDENTIFIED (UINT64_C(1) << 63)

static int compare_users(const struct user *a, const struct user *b)
{
    return a->uid < b->uid ? -1 : a->uid > b->uid;
}

TREE_GENERATE(user_tree, user, link, compare_users)

static int compare_processes(const struct process *a, const struct process *b)
{
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->start_time != b->start_time)
        return a->start_time < b->start_time ? -1 : 1;
    return 0;
}

TREE_GENERATE(process_tree, process, link, compare_processes)

static int compare_ids(const struct process *a, const struct process *b)
{
    return a->id < b->id ? -1 : a->id > b->id;
}

TREE_GENERATE(process_id_tree, process, by_id, compare_ids)

struct user *user_get(struct broker *broker, uint32_t uid)
{
    struct user key = {.uid = uid};
    struct user *user = RB_FIND(user_tree, &broker->users, &key);

    if (user)
        return user;
    user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->uid = uid;
    TAILQ_INIT(&user->silent);
    user->pace.window = (struct moment){INT64_MIN / 2};
    deadline_init(&user->unknown_end, DEADLINE_USER);
    RB_INSERT(user_tree, &broker->users, user);
    return user;
}

void user_settle(struct broker *broker, struct user *user)
{
    if (user->n_connections > 0 || user->n_pending > 0 || user->n_processes > 0 ||
        user->n_unknown > 0)
        return;
    RB_REMOVE(user_tree, &broker->users, user);
    deadline_stop(&broker->deadlines, &user->unknown_end);
    free(user);
}

void user_resumed_unknown(struct broker *broker, struct user *user, const struct guid *cookie,
                          int32_t pid, struct moment now)
{
    deadline_set(&broker->deadlines, &user->unknown_end, moment_after(now, BROKER_UNKNOWN_TIME));
    /* One that is resumed again and again is one. */
    if (user_may_have_resumed(user, cookie))
        return;
    if (user->n_unknown < USER_UNKNOWN_MAX) {
        user->unknown[user->n_unknown].cookie = *cookie;
        user->unknown[user->n_unknown].pid = pid;
    }
    user->n_unknown++;
}

bool user_may_have_resumed(const struct user *user, const struct guid *cookie)
{
    if (user->n_unknown > USER_UNKNOWN_MAX)
        return true;
    for (size_t i = 0; i < user->n_unknown; i++) {
        if (guid_compare(&user->unknown[i].cookie, cookie) == 0)
            return true;
    }
    return false;
}

bool user_may_have_resumed_beside(const struct user *user, const struct guid *cookie, int32_t pid)
{
    if (user->n_unknown > USER_UNKNOWN_MAX)
        return true;
    for (size_t i = 0; i < user->n_unknown; i++) {
        if (user->unknown[i].pid == pid && guid_compare(&user->unknown[i].cookie, cookie) != 0)
            return true;
    }
    return false;
}

void user_deadline(struct broker *broker, struct user *user)
{
    user->n_unknown = 0;
    user_settle(broker, user);
}

void users_free(struct broker *broker)
{
    struct user *user;

    while ((user = RB_MIN(user_tree, &broker->users)))
        user_deadline(broker, user);
}

struct process *process_find(struct broker *broker, int32_t pid, uint64_t start_time)
{
    struct process key = {.pid = pid, .start_time = start_time};

    return RB_FIND(process_tree, &broker->processes, &key);
}

struct process *process_first_of(struct broker *broker, int32_t pid)
{
    struct process key = {.pid = pid, .start_time = 0};
    struct process *process = RB_NFIND(process_tree, &broker->processes, &key);

    return process && process->pid == pid ? process : NULL;
}

bool process_has_namesake(struct broker *broker, const struct process *process)
{
    struct process *first = process_first_of(broker, process->pid), *second;

    second = first ? RB_NEXT(process_tree, &broker->processes, first) : NULL;
    return second && second->pid == process->pid;
}

struct process *process_new(struct broker *broker, int32_t pid, uint64_t start_time,
                            bool is_identified, uint32_t uid)
{
    struct process *process = calloc(1, sizeof *process);

    if (!process)
        return NULL;
    process->user = user_get(broker, uid);
    if (!process->user) {
        free(process);
        return NULL;
    }
    process->user->n_processes++;
    process->id = broker_serial(broker);
    process->pid = pid;
    process->start_time = is_identified ? start_time : (process->id | UNIDENTIFIED);
    process->is_identified = is_identified;
    process->pace.window = (struct moment){INT64_MIN / 2};
    process->over_limit_until = process->pace.window;
    TAILQ_INIT(&process->runtimes);
    RB_INSERT(process_tree, &broker->processes, process);
    RB_INSERT(process_id_tree, &broker->processes_by_id, process);
    return process;
}

static void drop_handle(struct broker *broker, struct process *process)
{
    if (!process->is_held)
        return;
    TAILQ_REMOVE(&broker->held, process, in_held);
    broker->n_held--;
    process->is_held = false;
}

void process_lose_handle(struct broker *broker, struct process *process, struct moment now)
{
    struct runtime *runtime;

    drop_handle(broker, process);
    TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
        runtime_watch_alive(runtime, now);
    }
}

static bool is_needed(const struct process *process)
{
    const struct runtime *runtime;

    TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
        if (runtime->state == RUNTIME_KILLING || runtime->state == RUNTIME_KILLED)
            return true;
    }
    return false;
}

bool process_give_up_handle(struct broker *broker, struct moment now)
{
    struct process *process = TAILQ_FIRST(&broker->held);
    struct action *action;

    while (process && is_needed(process))
        process = TAILQ_NEXT(process, in_held);
    action = process ? action_add(&broker->actions, ACTION_RELEASE_PROCESS) : NULL;
    if (!action)
        return false;
    action->process = process->id;
    process_lose_handle(broker, process, now);
    return true;
}

static void free_slots(struct broker *broker, struct process *process)
{
    static const struct record nothing = {.phase = RECORD_NONE};

    for (size_t i = 0; i < process->n_cookies; i++) {
        uint32_t *slot = &process->cookies[i].slot;

        /* One that cannot be freed now says something true about a dead process, and is freed by
         * the next daemon. */
        if (*slot != PROCESS_NO_SLOT && broker_mark(broker, *slot, &nothing) == 0)
            *slot = PROCESS_NO_SLOT;
    }
}

void process_settle(struct broker *broker, struct process *process)
{
    struct user *user = process->user;

    if (!TAILQ_EMPTY(&process->runtimes))
        return;
    drop_handle(broker, process);
    free_slots(broker, process);
    RB_REMOVE(process_tree, &broker->processes, process);
    RB_REMOVE(process_id_tree, &broker->processes_by_id, process);
    user->n_processes--;
    user_settle(broker, user);
    free(process->cookies);
    free(process);
}

static struct process_cookie *find_cookie(const struct process *process, const struct guid *cookie)
{
    for (size_t i = 0; i < process->n_cookies; i++) {
        if (guid_compare(&process->cookies[i].cookie, cookie) == 0)
            return &process->cookies[i];
    }
    return NULL;
}

bool process_knows_cookie(const struct process *process, const struct guid *cookie)
{
    return find_cookie(process, cookie);
}

struct process_cookie *process_cookie(struct process *process, const struct guid *cookie)
{
    struct process_cookie *known = find_cookie(process, cookie);

    assert(known);
    return known;
}

bool process_has_room(const struct process *process, const struct guid *cookie,
                      const struct policy_limits *limits)
{
    return process->n_cookies < limits->cookies_per_process ||
           process_knows_cookie(process, cookie);
}

bool process_remember_cookie(struct process *process, const struct guid *cookie)
{
    struct process_cookie *cookies;

    if (process_knows_cookie(process, cookie))
        return true;
    cookies = realloc(process->cookies, (process->n_cookies + 1) * sizeof *cookies);
    if (!cookies)
        return false;
    process->cookies = cookies;
    process->cookies[process->n_cookies++] =
        (struct process_cookie){.cookie = *cookie, .slot = PROCESS_NO_SLOT};
    return true;
}

struct process *process_by_id(struct broker *broker, uint64_t id)
{
    struct process key = {.id = id};

    return RB_FIND(process_id_tree, &broker->processes_by_id, &key);
}

void process_hold(struct broker *broker, struct process *process)
{
    struct action *action;

    process->n_holders++;
    if (process->is_held)
        return;
    action = action_add(&broker->actions, ACTION_HOLD_PROCESS);
    if (!action)
        return;
    action->process = process->id;
    process->is_held = true;
    TAILQ_INSERT_TAIL(&broker->held, process, in_held);
    broker->n_held++;
}

void process_release(struct broker *broker, struct process *process, struct moment now)
{
    struct action *action;

    if (--process->n_holders > 0 || !process->is_held)
        return;
    action = action_add(&broker->actions, ACTION_RELEASE_PROCESS);
    if (!action)
        return;
    action->process = process->id;
    process_lose_handle(broker, process, now);
}

struct moment pace_next(struct pace *pace, struct moment now)
{
    if (!moment_is_before(now, moment_after(pace->window, BROKER_PACE_WINDOW))) {
        pace->window = now;
        pace->n = 0;
    }
    if (pace->n < BROKER_PACE_BURST) {
        pace->n++;
        return now;
    }
    return moment_after(now, BROKER_PACE_WINDOW);
}

static void check_user(const struct broker *broker, const struct user *user)
{
    const struct connection *connection;
    const struct runtime *runtime;
    size_t n_connections = 0, n_silent = 0, n_pending = 0, n_kept = 0;

    TAILQ_FOREACH(connection, &broker->connections, in_all) {
        if (connection->user != user)
            continue;
        n_connections++;
        n_silent += connection->state == CONNECTION_SILENT;
        n_kept += connection->kept != 0;
    }
    TAILQ_FOREACH(runtime, &broker->runtimes, in_order) {
        if (runtime->process && runtime->process->user == user)
            n_pending += runtime_is_pending(runtime);
    }
    MUST(n_connections == user->n_connections && n_silent == user->n_silent);
    MUST(n_pending == user->n_pending && n_kept == user->n_kept);
    MUST(n_connections + n_pending + user->n_processes + user->n_unknown > 0);
}

void process_check(const struct broker *broker)
{
    struct user_tree users = {broker->users.rbh_root};
    struct process_tree processes = {broker->processes.rbh_root};
    struct process *process;
    struct user *user;
    size_t n_held = 0;

    RB_FOREACH(user, user_tree, &users) {
        check_user(broker, user);
    }
    RB_FOREACH(process, process_tree, &processes) {
        const struct runtime *runtime;
        unsigned n_holders = 0;

        n_held += process->is_held;

        MUST(!TAILQ_EMPTY(&process->runtimes));
        TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
            MUST(runtime->process == process);
            n_holders += runtime->holds_process;
        }
        MUST(n_holders == process->n_holders);
    }
    MUST(n_held == broker->n_held);
}
