/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The entry points of the core, and what all its rooms share: serial numbers,
 * questions, record slots, notices, alarms.
 */

#include "lib/broker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/facts.h"

const int64_t broker_hold_bounds[BROKER_HOLD_BUCKETS - 1] = {
    1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000, 2500000, 5000000,
};

static int compare_questions(const struct question *a, const struct question *b)
{
    return a->id < b->id ? -1 : a->id > b->id;
}

TREE_GENERATE(question_tree, question, link, compare_questions)

/* Life. */

struct broker *broker_new(const struct broker_options *options)
{
    struct broker *broker = calloc(1, sizeof *broker);

    if (!broker)
        return NULL;
    broker->taken_slots = calloc(RECORD_SLOTS, 1);
    if (!broker->taken_slots || broker_set_policy(broker, options->policy) != 0) {
        free(broker->taken_slots);
        free(broker);
        return NULL;
    }
    broker->trust = options->trust;
    broker->usable_descriptors = options->usable_descriptors;
    broker->n_keepable = options->n_keepable;
    broker->distrusted_until = options->distrusted_until;
    action_queue_init(&broker->actions);
    STAILQ_INIT(&broker->notices);
    deadline_queue_init(&broker->ends);
    deadline_queue_init(&broker->deadlines);
    TAILQ_INIT(&broker->connections);
    TAILQ_INIT(&broker->silent);
    TAILQ_INIT(&broker->nameless);
    TAILQ_INIT(&broker->spare);
    TAILQ_INIT(&broker->sessions);
    TAILQ_INIT(&broker->held);
    deadline_init(&broker->room, DEADLINE_ROOM);
    TAILQ_INIT(&broker->waiting);
    broker->n_given = SIZE_MAX;
    RB_INIT(&broker->users);
    RB_INIT(&broker->processes);
    RB_INIT(&broker->processes_by_id);
    RB_INIT(&broker->questions);
    RB_INIT(&broker->memories);
    RB_INIT(&broker->cookies);
    RB_INIT(&broker->serials);
    SLIST_INIT(&broker->listeners);
    TAILQ_INIT(&broker->runtimes);
    for (size_t state = 0; state < RUNTIME_STATES; state++)
        TAILQ_INIT(&broker->by_state[state]);
    return broker;
}

static void free_rule_uses(struct broker_rule_use *uses, size_t n_uses)
{
    for (size_t i = 0; i < n_uses; i++)
        free(uses[i].name);
    free(uses);
}

static void free_listeners(struct broker *broker)
{
    struct listener *listener;

    while ((listener = SLIST_FIRST(&broker->listeners))) {
        SLIST_REMOVE_HEAD(&broker->listeners, link);
        free(listener->name);
        free(listener->path);
        free(listener);
    }
}

struct broker *broker_free(struct broker *broker)
{
    static const struct moment end = {0};
    struct notice *notice;

    if (!broker)
        return NULL;
    /* Nobody carries out the actions of this, so what the records say stays for the next daemon. */
    while (!TAILQ_EMPTY(&broker->runtimes)) {
        struct runtime *runtime = TAILQ_FIRST(&broker->runtimes);

        runtime_end(runtime, "the daemon ended", end);
        if (TAILQ_FIRST(&broker->runtimes) == runtime)
            runtime_free(runtime);
    }
    while (!TAILQ_EMPTY(&broker->connections))
        connection_close(TAILQ_FIRST(&broker->connections), end);
    users_free(broker);
    while (memory_drop_any(broker))
        ;
    free_listeners(broker);
    free_rule_uses(broker->counters.rules, broker->counters.n_rules);
    action_queue_deinit(&broker->actions);
    while ((notice = broker_take_notice(broker)))
        notice_free(notice);
    policy_unref(broker->policy);
    free(broker->taken_slots);
    free(broker);
    return NULL;
}

uint64_t broker_serial(struct broker *broker)
{
    return ++broker->n_serials;
}

/* Listeners. */

void broker_set_trust(struct broker *broker, enum broker_trust trust, uint64_t distrusted_until)
{
    broker->trust = trust;
    broker->distrusted_until = distrusted_until;
}

enum broker_trust broker_trust(const struct broker *broker)
{
    return broker->trust;
}

int broker_listener_add(struct broker *broker, uint32_t number, const char *name, const char *path,
                        uint64_t device, uint64_t inode)
{
    struct listener *listener = calloc(1, sizeof *listener);

    if (!listener)
        return -ENOMEM;
    listener->number = number;
    listener->name = strdup(name);
    listener->path = strdup(path);
    listener->device = device;
    listener->inode = inode;
    if (!listener->name || !listener->path) {
        free(listener->name);
        free(listener->path);
        free(listener);
        return -ENOMEM;
    }
    SLIST_INSERT_HEAD(&broker->listeners, listener, link);
    return 0;
}

const struct listener *broker_listener(const struct broker *broker, uint32_t number)
{
    const struct listener *listener;

    SLIST_FOREACH(listener, &broker->listeners, link) {
        if (listener->number == number)
            return listener;
    }
    return NULL;
}

const char *broker_listener_name(const struct broker *broker, uint32_t number)
{
    const struct listener *listener = broker_listener(broker, number);

    return listener ? listener->name : NULL;
}

/* Notices and alarms. */

void broker_notice(struct broker *broker, const struct notice *content, const char *rule,
                   const char *name)
{
    struct notice *notice = notice_new(content, rule, name);

    if (!notice) {
        broker->counters.n_lost_notices++;
        return;
    }
    STAILQ_INSERT_TAIL(&broker->notices, notice, link);
    broker->n_notices++;
}

void broker_peer_error(struct broker *broker, enum notice_peer_error error,
                       const struct broker_peer *peer, const struct runtime *runtime,
                       const char *why, struct moment now)
{
    struct notice notice = {
        .kind = NOTICE_PEER_ERROR,
        .at = now,
        .pid = peer->pid,
        .uid = peer->uid,
        .peer_error = error,
        .why = why,
    };

    if (runtime) {
        notice.has_runtime = true;
        notice.cookie = runtime->cookie;
        notice.start_time = runtime->start_time;
        notice.state = runtime_state_name(runtime->state);
    }
    broker->counters.peer_errors[error]++;
    broker_notice(broker, &notice, NULL, NULL);
}

void broker_alarm(struct broker *broker, enum alarm alarm, bool is_on, const char *why,
                  struct moment now)
{
    struct notice notice = {.kind = NOTICE_ALARM,
                            .at = now,
                            .alarm = alarm,
                            .is_on = is_on,
                            .why = is_on ? why : NULL};

    if (broker->counters.alarms[alarm] == is_on)
        return;
    broker->counters.alarms[alarm] = is_on;
    broker->counters.alarm_reasons[alarm] = notice.why;
    /* It may be put in other words as long as it is on; what was told stays. */
    broker_notice(broker, &notice, NULL, notice.why);
}

void broker_out_of_memory(struct broker *broker, struct moment now)
{
    broker_alarm(broker, ALARM_MEMORY, true,
                 "memory ran out; what was under way was given up or is tried again", now);
}

/* Questions. */

static bool copy_files(struct action *action, const char *const *files, size_t n_files)
{
    if (n_files == 0)
        return true;
    action->question.files = calloc(n_files, sizeof *action->question.files);
    if (!action->question.files)
        return false;
    for (; action->question.n_files < n_files; action->question.n_files++) {
        char *copy = strdup(files[action->question.n_files]);

        if (!copy)
            return false;
        action->question.files[action->question.n_files] = copy;
    }
    return true;
}

static void fill_question(struct action *action, const struct connection *connection,
                          const struct runtime *runtime)
{
    if (connection) {
        action->connection = connection->handle;
        action->question.pid = connection->peer.pid;
        action->question.uid = connection->peer.uid;
        return;
    }
    action->question.pid = runtime->pid;
    action->question.uid = runtime->uid;
    action->question.start_time = runtime->start_time;
    if (runtime->process->is_held)
        action->process = runtime->process->id;
}

bool broker_ask(struct broker *broker, enum question_purpose purpose, struct connection *connection,
                struct runtime *runtime, uint32_t wanted, const char *const *files, size_t n_files)
{
    struct question **place = connection ? &connection->question : &runtime->question;
    struct question *question = calloc(1, sizeof *question);
    struct action *action = calloc(1, sizeof *action);

    if (!question || !action || !copy_files(action, files, n_files)) {
        free(question);
        action_free(action);
        return false;
    }
    *place = broker_forget_question(broker, *place);
    question->id = broker_serial(broker);
    question->purpose = purpose;
    question->connection = connection;
    question->runtime = runtime;
    RB_INSERT(question_tree, &broker->questions, question);
    *place = question;
    action->kind = ACTION_ASK;
    action->question.id = question->id;
    action->question.wanted = wanted;
    fill_question(action, connection, runtime);
    STAILQ_INSERT_TAIL(&broker->actions, action, link);
    return true;
}

struct question *broker_forget_question(struct broker *broker, struct question *question)
{
    if (!question)
        return NULL;
    RB_REMOVE(question_tree, &broker->questions, question);
    free(question);
    return NULL;
}

static struct question *find_question(const struct broker *broker, uint64_t id)
{
    struct question_tree questions = {broker->questions.rbh_root};
    struct question key = {.id = id};

    return RB_FIND(question_tree, &questions, &key);
}

bool broker_awaits(const struct broker *broker, uint64_t id)
{
    return find_question(broker, id) != NULL;
}

void broker_answer(struct broker *broker, uint64_t id, struct facts *facts, struct moment now)
{
    struct question *question = find_question(broker, id);

    if (question) {
        struct connection *connection = question->connection;
        struct runtime *runtime = question->runtime;
        enum question_purpose purpose = question->purpose;

        if (connection) {
            connection->question = broker_forget_question(broker, question);
            identify_answered(connection, facts, now);
        } else {
            runtime->question = broker_forget_question(broker, question);
            runtime_facts(runtime, purpose, facts, now);
        }
    }
    facts_free(facts);
}

static bool has_id(const struct policy *policy, const uint8_t *id)
{
    uint8_t own[RECORD_POLICY_SIZE];

    policy_id(policy, own);
    return memcmp(own, id, sizeof own) == 0;
}

bool broker_needs_policy(const struct broker *broker, const uint8_t id[static RECORD_POLICY_SIZE])
{
    const struct runtime *runtime;

    if (has_id(broker->policy, id) || memory_names_policy(broker, id))
        return true;
    TAILQ_FOREACH(runtime, &broker->runtimes, in_order) {
        if (runtime_is_pending(runtime) && has_id(runtime->policy, id))
            return true;
    }
    return false;
}

/* Records. */

uint32_t broker_take_slot(struct broker *broker)
{
    for (uint32_t i = 0; i < RECORD_SLOTS; i++) {
        uint32_t slot = (broker->slot_hint + i) % RECORD_SLOTS;

        if (broker->taken_slots[slot])
            continue;
        broker->taken_slots[slot] = 1;
        broker->slot_hint = slot + 1;
        return slot;
    }
    return PROCESS_NO_SLOT;
}

int broker_mark(struct broker *broker, uint32_t slot, const struct record *record)
{
    struct action *action;

    if (broker->trust == BROKER_HAS_NO_RECORDS)
        return -ENOSPC;
    action = action_add(&broker->actions, ACTION_MARK);
    if (!action)
        return -ENOMEM;
    action->slot = slot;
    record_write(record, action->mark);
    if (record->phase == RECORD_NONE)
        broker->taken_slots[slot] = 0;
    return 0;
}

int broker_remember(struct broker *broker, uint32_t slot, const struct record *record,
                    struct policy *policy)
{
    struct memory *memory;

    if (slot >= RECORD_SLOTS)
        return -EINVAL;
    memory = calloc(1, sizeof *memory);
    if (!memory)
        return -ENOMEM;
    memory->slot = slot;
    memory->record = *record;
    memory->policy = policy ? policy_ref(policy) : NULL;
    broker->taken_slots[slot] = 1;
    if (record->kept > broker->last_kept)
        broker->last_kept = record->kept;
    memory_add(broker, memory);
    return 0;
}

/* Events. */

void broker_process_ended(struct broker *broker, uint64_t id, struct moment now)
{
    struct process *process = process_by_id(broker, id);
    struct runtime *runtime, *following;

    if (!process)
        return;
    process->has_ended = true;
    /* The last runtime of a process takes the process with it. */
    TAILQ_FOREACH_SAFE(runtime, &process->runtimes, in_process, following) {
        runtime_end(runtime, "its process ended", now);
    }
}

void broker_handle_lost(struct broker *broker, uint64_t id, struct moment now)
{
    struct process *process = process_by_id(broker, id);

    if (process)
        process_lose_handle(broker, process, now);
}

void broker_kill_failed(struct broker *broker, uint64_t id, struct moment now)
{
    struct process *process = process_by_id(broker, id);
    struct runtime *runtime;

    if (!process)
        return;
    TAILQ_FOREACH(runtime, &process->runtimes, in_process) {
        kill_failed(runtime, now);
    }
}

struct action *broker_take_action(struct broker *broker)
{
    struct action *action = action_take(&broker->actions);

    if (action && action->kind == ACTION_READ)
        broker->n_reads--;
    return action;
}

bool broker_read(struct broker *broker, const struct connection *connection)
{
    struct action *action = action_add(&broker->actions, ACTION_READ);

    if (!action)
        return false;
    action->connection = connection->handle;
    broker->n_reads++;
    return true;
}

void broker_forget_reads(struct broker *broker, const struct connection *connection)
{
    struct action *action, *following;

    if (broker->n_reads == 0)
        return;
    STAILQ_FOREACH_SAFE(action, &broker->actions, link, following)
    {
        if (action->kind != ACTION_READ || action->connection != connection->handle)
            continue;
        STAILQ_REMOVE(&broker->actions, action, action, link);
        action_free(action);
        broker->n_reads--;
    }
}

struct notice *broker_take_notice(struct broker *broker)
{
    struct notice *notice = STAILQ_FIRST(&broker->notices);

    if (notice) {
        STAILQ_REMOVE_HEAD(&broker->notices, link);
        broker->n_notices--;
    }
    return notice;
}

size_t broker_notices(const struct broker *broker)
{
    return broker->n_notices;
}

/* Policy. */

static const struct broker_rule_use *find_use(const struct broker_counters *counters,
                                              const char *name)
{
    for (size_t i = 0; i < counters->n_rules; i++) {
        if (strcmp(counters->rules[i].name, name) == 0)
            return &counters->rules[i];
    }
    return NULL;
}

/* A rule keeps its count over a reload by its name. */
static struct broker_rule_use *new_uses(const struct policy *policy,
                                        const struct broker_counters *old)
{
    struct broker_rule_use *uses = calloc(policy->n_rules + 1, sizeof *uses);

    for (size_t i = 0; uses && i < policy->n_rules; i++) {
        const struct broker_rule_use *before = find_use(old, policy->rules[i].name);

        if (before)
            uses[i] = *before;
        uses[i].name = strdup(policy->rules[i].name);
        if (!uses[i].name) {
            free_rule_uses(uses, i);
            return NULL;
        }
    }
    return uses;
}

int broker_set_policy(struct broker *broker, struct policy *policy)
{
    struct broker_counters *counters = &broker->counters;
    struct broker_rule_use *uses = new_uses(policy, counters);

    if (!uses)
        return -ENOMEM;
    free_rule_uses(counters->rules, counters->n_rules);
    counters->rules = uses;
    counters->n_rules = policy->n_rules;
    /* Somebody has looked: what ran out of memory before is history. */
    counters->alarms[ALARM_MEMORY] = false;
    counters->alarm_reasons[ALARM_MEMORY] = NULL;
    policy_ref(policy);
    policy_unref(broker->policy);
    broker->policy = policy;
    runtime_forget_history(broker);
    return 0;
}

const struct policy *broker_policy(const struct broker *broker)
{
    return broker->policy;
}

void broker_count_match(struct broker *broker, const struct policy *policy,
                        const struct policy_rule *rule, struct moment now)
{
    size_t place = (size_t)(rule - policy->rules);

    if (policy != broker->policy || place >= broker->counters.n_rules)
        return;
    broker->counters.rules[place].n_matches++;
    broker->counters.rules[place].last = now;
}

const struct broker_counters *broker_counters(const struct broker *broker)
{
    return &broker->counters;
}

/* Stopping. */

void broker_stop(struct broker *broker, enum broker_stop stop, struct moment now)
{
    struct runtime *runtime, *following;

    broker->is_stopping = true;
    broker->stop = stop;
    if (stop == BROKER_STOP_KEEP)
        return;
    TAILQ_FOREACH_SAFE(runtime, &broker->runtimes, in_order, following) {
        apply_stop(runtime, "the daemon is stopping", true, now);
    }
}

/* Nobody else's port is waited for, but it takes some looks to tell that it is one. */
static bool settles(const struct broker *broker)
{
    const struct runtime *runtime;

    TAILQ_FOREACH(runtime, &broker->by_state[RUNTIME_SETTLING], in_state) {
        if (runtime->blocked == BLOCKED_NOT)
            return true;
    }
    return false;
}

bool broker_is_quiet(const struct broker *broker)
{
    if (broker->n_unanswered > 0)
        return false;
    if (broker->stop == BROKER_STOP_KEEP)
        return true;
    /* Whoever has no connection at the moment comes back for its Resume. */
    return broker->n_by_state[RUNTIME_RESUMING] == 0 && !settles(broker);
}
