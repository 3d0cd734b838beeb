/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shell of a world: starts the broker and ends it, moves its clock, carries
 * out what it wants, and answers its questions when it is time. Connections and
 * their bytes are in world_network.c, what the kernel says in world_facts.c,
 * runtimes in world_runtime.c.
 */

#include "tests/sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/action.h"
#include "lib/policy_read.h"

enum { TURNS_MAX = 1000000 };

struct world_question {
    struct world_question *next;
    struct action_question question;
    struct world_process *process;
};

void world_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

void *world_need(void *memory)
{
    if (!memory)
        world_fail("memory ran out in the test itself");
    return memory;
}

enum { FIRST_START_TIME = 5000 };

/* Life. */

static struct policy *read_policy(const char *text)
{
    struct policy_source source = {.name = "test.yaml", .bytes = text, .length = strlen(text)};
    struct policy_host host = {.may_kill = true, .has_peer_pidfd = true};
    struct policy_problems problems;
    struct policy *policy;

    if (policy_read(&source, 1, &host, &policy, &problems) != 0)
        world_fail("memory ran out for the policy");
    if (!policy)
        world_fail("test policy: %u:%u: %s", problems.list[0].line, problems.list[0].column,
                   problems.list[0].text);
    policy_problems_deinit(&problems);
    /* One more command, and one more connection, only where it is about that. */
    if (!strstr(text, "verify:")) {
        policy->defaults.verify = POLICY_VERIFY_OFF;
        for (size_t i = 0; i < policy->n_rules; i++)
            policy->rules[i].keys.verify = POLICY_VERIFY_OFF;
    }
    return policy;
}

/* Where records are distrusted they are so from then on, as in the daemon: of whoever was started
 * by then, the next one to be started among them, which is so in the same tick. */
static void start_broker(struct world *world, enum broker_trust trust, size_t usable_descriptors)
{
    struct broker_options options = {.policy = world->policy,
                                     .trust = trust,
                                     .usable_descriptors = usable_descriptors,
                                     .n_keepable = world->n_keepable};
    static const char *const names[WORLD_LISTENERS] = {"runtime", "second", "third"};
    if (trust == BROKER_DISTRUSTS_RECORDS)
        world->distrusted_until = FIRST_START_TIME + world->n_processes;
    if (trust == BROKER_TRUSTS_RECORDS && world->distrusted_until > 0)
        options.trust = BROKER_DISTRUSTS_RECORDS;
    options.distrusted_until = world->distrusted_until;
    world->broker = world_need(broker_new(&options));
    for (uint32_t i = 0; i < WORLD_LISTENERS; i++) {
        char path[64];

        snprintf(path, sizeof path, "/run/diagport/%s.sock", names[i]);
        if (broker_listener_add(world->broker, i, names[i], path, 1, 100 + i) != 0)
            world_fail("memory ran out for a listener");
    }
}

/* In force from now on; those before are kept, as the daemon keeps them in files. */
static void put_policy(struct world *world, struct policy *policy)
{
    if (world->n_policies == WORLD_POLICIES_MAX) {
        policy_unref(world->policies[0]);
        memmove(world->policies, world->policies + 1,
                (WORLD_POLICIES_MAX - 1) * sizeof world->policies[0]);
        world->n_policies--;
    }
    world->policies[world->n_policies++] = policy;
    world->policy = policy;
}

static struct world *make(const char *policy, enum broker_trust trust, size_t usable_descriptors,
                          size_t n_keepable)
{
    struct world *world = world_need(calloc(1, sizeof *world));

    world->n_keepable = n_keepable;
    world->now = (struct moment){1000000000};
    put_policy(world, read_policy(policy));
    world->usable_descriptors = usable_descriptors;
    world->nobody.is_dead = true;
    start_broker(world, trust, usable_descriptors);
    return world;
}

struct world *world_new_with(const char *policy, enum broker_trust trust, size_t usable_descriptors)
{
    return make(policy, trust, usable_descriptors, 0);
}

struct world *world_new_keeping(const char *policy, size_t usable_descriptors, size_t n_keepable)
{
    return make(policy, BROKER_TRUSTS_RECORDS, usable_descriptors, n_keepable);
}

struct world *world_new(const char *policy)
{
    return world_new_with(policy, BROKER_TRUSTS_RECORDS, 100000);
}

static void free_question(struct world_question *question)
{
    for (size_t i = 0; i < question->question.n_files; i++)
        free(question->question.files[i]);
    free(question->question.files);
    free(question);
}

static void free_questions(struct world *world)
{
    while (world->questions) {
        struct world_question *question = world->questions;

        world->questions = question->next;
        free_question(question);
    }
}

void world_free(struct world *world)
{
    broker_free(world->broker);
    while (world->n_policies > 0)
        policy_unref(world->policies[--world->n_policies]);
    free_questions(world);
    world_free_connections(world);
    for (size_t i = 0; i < world->n_runtimes; i++)
        free(world->runtimes[i]);
    free(world);
}

/* What the broker wants done. */

static struct world_process *find_process(struct world *world, int32_t pid)
{
    for (size_t i = world->n_processes; i-- > 0;) {
        if (world->processes[i].pid == pid)
            return &world->processes[i];
    }
    return NULL;
}

static struct world_process *find_held(struct world *world, uint64_t number)
{
    for (size_t i = 0; i < world->n_processes; i++) {
        if (world->processes[i].held == number)
            return &world->processes[i];
    }
    return NULL;
}

/* The oldest first. */
static void leave_open(struct world *world, struct action *action, struct world_process *process)
{
    struct world_question *question = world_need(calloc(1, sizeof *question));
    struct world_question **end = &world->questions;

    question->question = action->question;
    action->question.files = NULL;
    action->question.n_files = 0;
    question->process = process;
    while (*end)
        end = &(*end)->next;
    *end = question;
}

static void note_slot(struct world *world, uint32_t slot)
{
    if (world->n_slots <= slot)
        world->n_slots = slot + 1;
}

/* Who was resumed is never to be gone on with, whatever is written about him later. */
static void put_mark(struct world *world, const struct action *action)
{
    struct record before, after;

    if (!record_read(world->marks[action->slot], &before))
        world_fail("a mark that cannot be read");
    record_put(world->marks[action->slot], action->mark);
    if (!record_read(world->marks[action->slot], &after))
        world_fail("a mark that cannot be read");
    if (before.phase == RECORD_RESUMED && after.phase != RECORD_RESUMED &&
        after.phase != RECORD_NONE && before.pid == after.pid &&
        before.start_time == after.start_time && guid_compare(&before.cookie, &after.cookie) == 0)
        world_fail("the mark of a Resume was taken back");
    world->n_marks++;
    note_slot(world, action->slot);
}

static void tear_mark(struct world *world, const struct action *action)
{
    uint8_t *slot = world->marks[action->slot], whole[RECORD_SLOT_SIZE];

    memcpy(whole, slot, sizeof whole);
    record_put(whole, action->mark);
    for (size_t i = 0; i < sizeof whole && world->n_torn > 0; i++) {
        world->n_torn -= slot[i] != whole[i];
        slot[i] = whole[i];
    }
    note_slot(world, action->slot);
}

void world_let_die(struct world *world, uint32_t at_action, uint32_t n_torn)
{
    world->n_actions_left = at_action;
    world->n_torn = n_torn;
}

/* Its end closes what it would have closed. */
static bool is_done_now(struct world *world, const struct action *action)
{
    if (!world->is_daemon_dead && (world->n_actions_left == 0 || --world->n_actions_left > 0))
        return true;
    if (!world->is_daemon_dead && action->kind == ACTION_MARK)
        tear_mark(world, action);
    world->is_daemon_dead = true;
    return action->kind == ACTION_CLOSE;
}

static void carry_out(struct world *world, struct action *action)
{
    struct world_process *process;

    if (!is_done_now(world, action))
        return;
    switch (action->kind) {
    case ACTION_SEND:
        world_take_message(action->connection, action);
        return;
    case ACTION_CLOSE:
        world_close(action->connection);
        return;
    case ACTION_READ:
        world_ask_read(action->connection);
        return;
    case ACTION_ASK:
        world->wanted = action->question.wanted;
        process = find_process(world, action->question.pid);
        if (!process)
            process = &world->nobody;
        leave_open(world, action, process);
        return;
    case ACTION_HOLD_PROCESS:
        if (!world->answering)
            world_fail("a handle was to be held of nothing");
        if (world->fails_to_hold)
            broker_handle_lost(world->broker, action->process, world->now);
        else
            world->answering->held = action->process;
        world->fails_to_hold = false;
        return;
    case ACTION_RELEASE_PROCESS:
        process = find_held(world, action->process);
        if (process)
            process->held = 0;
        return;
    case ACTION_KILL:
        process =
            find_held(world, action->process); /* The handle may have been lost just before. */
        if (world->fails_to_kill || !process)
            broker_kill_failed(world->broker, action->process, world->now);
        else {
            process->was_killed = true;
            process->killed_as = process->exe;
        }
        world->fails_to_kill = false;
        return;
    case ACTION_MARK:
        put_mark(world, action);
        return;
    case ACTION_KEEP:
        world_keep(action->connection, action->kept);
        return;
    case ACTION_UNKEEP:
        world_unkeep(world, action->kept);
        return;
    }
}

static struct world_question *take_question(struct world *world, size_t nth, bool with_silent)
{
    for (struct world_question **at = &world->questions; *at; at = &(*at)->next) {
        struct world_question *question = *at;

        if ((question->process->is_silent && !with_silent) || nth-- > 0)
            continue;
        *at = question->next;
        return question;
    }
    return NULL;
}

static void give_answer(struct world *world, struct world_question *question)
{
    struct facts *facts = world_look(question->process, &question->question, world->now);
    struct action *action;

    world->answering = question->process;
    world_before_call(world);
    broker_answer(world->broker, question->question.id, facts, world->now);
    world_after_call(world);
    while ((action = broker_take_action(world->broker))) {
        carry_out(world, action);
        action_free(action);
    }
    world->answering = NULL;
    free_question(question);
}

void world_settle_all_but_queues(struct world *world)
{
    struct world_question *question;
    struct action *action;
    struct notice *notice;

    for (;;) {
        while ((action = broker_take_action(world->broker))) {
            carry_out(world, action);
            action_free(action);
        }
        world->is_paused = broker_is_paused(world->broker);
        broker_check(world->broker);
        if (world_read_asked(world))
            continue;
        question = world->are_answers_slow ? NULL : take_question(world, 0, false);
        if (!question)
            break;
        give_answer(world, question);
    }
    while ((notice = broker_take_notice(world->broker))) {
        world->n_notices++;
        notice_free(notice);
    }
}

void world_settle(struct world *world)
{
    world_settle_all_but_queues(world);
    if (!world->is_network_slow)
        world_accept_next(world);
}

bool world_answer_one(struct world *world, size_t nth)
{
    struct world_question *question = take_question(world, nth, false);

    if (!question)
        return false;
    give_answer(world, question);
    world_settle(world);
    return true;
}

void world_answer_late(struct world *world)
{
    struct world_question *question;

    while ((question = take_question(world, 0, true))) {
        give_answer(world, question);
        world_settle(world);
    }
}

/* Processes. */

struct world_process *world_process(struct world *world, const char *exe, const char *environ)
{
    struct world_process *process = &world->processes[world->n_processes];

    if (world->n_processes == WORLD_PROCESSES_MAX)
        world_fail("too many processes in the world");
    *process = (struct world_process){
        .pid = 1000 + (int32_t)world->n_processes,
        .start_time = FIRST_START_TIME + world->n_processes,
        .uid = 1000,
        .age = span_from_ms(20),
        .made_at = world->now,
        .exe = exe,
        .arguments = "app\0--serve\0",
        .cgroup = "0::/system.slice/app.service\n",
        .environ = environ,
        .picture = WORLD_SUSPENDED,
    };
    world->n_processes++;
    return process;
}

struct guid world_cookie(const char *text)
{
    char whole[GUID_TEXT_SIZE];
    struct guid cookie;

    snprintf(whole, sizeof whole, "%.8s-0000-4000-8000-000000000000", text);
    if (!guid_parse(whole, &cookie))
        world_fail("%s is no beginning of a cookie", text);
    return cookie;
}

static void act_on_deadlines(struct world *world)
{
    world_before_call(world);
    broker_read_due(world->broker, world->now);
    world_after_call(world);
    world_settle(world);
    world->is_judging = true;
    world_before_call(world);
    broker_deadlines(world->broker, world->now);
    world_after_call(world);
    world_settle(world);
    world->is_judging = false;
}

void world_pass(struct world *world, struct span length, bool is_served)
{
    struct moment end = moment_after(world->now, length);

    if (is_served)
        world_serve(world);
    for (int turn = 0;; turn++) {
        struct moment next = broker_next_deadline(world->broker);

        if (turn == TURNS_MAX)
            world_fail("deadlines never end");
        if (moment_is_before(end, next))
            break;
        if (moment_is_before(world->now, next))
            world->now = next;
        act_on_deadlines(world);
        if (is_served)
            world_serve(world);
    }
    world->now = end;
}

void world_stall(struct world *world, struct span length)
{
    world->now = moment_after(world->now, length);
}

void world_wake(struct world *world)
{
    while (moment_is_due(broker_next_deadline(world->broker), world->now))
        act_on_deadlines(world);
}

void world_hear(struct world *world)
{
    world_deliver_all(world);
    world->is_network_slow = false;
}

bool world_set_policy(struct world *world, const char *text)
{
    struct policy *policy = read_policy(text);
    int error;

    world_before_call(world);
    error = broker_set_policy(world->broker, policy);
    world_after_call(world);
    if (error == 0)
        put_policy(world, policy);
    else
        policy_unref(policy);
    world_settle(world);
    return error == 0;
}

void world_stop(struct world *world, enum broker_stop stop)
{
    broker_stop(world->broker, stop, world->now);
    world_settle(world);
}

void world_kill(struct world *world, struct world_process *process)
{
    process->is_dead = true;
    for (size_t i = 0; i < world->n_connections; i++) {
        if (world->connections[i]->process == process)
            world_end(world->connections[i]);
    }
    if (process->held != 0) {
        uint64_t held = process->held;

        process->was_told_ended = true;
        broker_process_ended(world->broker, held, world->now);
        world_settle(world);
    }
}

static struct policy *find_policy(const struct world *world, const uint8_t *id)
{
    for (size_t i = 0; i < world->n_policies && !world->are_policies_lost; i++) {
        uint8_t other[RECORD_POLICY_SIZE];

        policy_id(world->policies[i], other);
        if (memcmp(id, other, sizeof other) == 0)
            return world->policies[i];
    }
    return NULL;
}

bool world_find_record(const struct world *world, const struct world_runtime *runtime,
                       struct record *ret_record)
{
    for (uint32_t slot = 0; slot < world->n_slots; slot++) {
        if (record_read(world->marks[slot], ret_record) && ret_record->phase != RECORD_NONE &&
            ret_record->pid == runtime->process->pid &&
            ret_record->start_time == runtime->process->start_time &&
            guid_compare(&ret_record->cookie, &runtime->cookie) == 0)
            return true;
    }
    return false;
}

/* What is written of one runtime is in one place. */
static void check_slots(const struct world *world)
{
    struct record records[64];
    size_t n = 0;

    for (uint32_t slot = 0; slot < world->n_slots && n < ARRAY_LENGTH(records); slot++) {
        struct record *record = &records[n];

        if (!record_read(world->marks[slot], record) || record->phase == RECORD_NONE)
            continue;
        for (size_t i = 0; i < n; i++) {
            if (records[i].pid == record->pid && records[i].start_time == record->start_time &&
                guid_compare(&records[i].cookie, &record->cookie) == 0)
                world_fail("a runtime has two records");
        }
        n++;
    }
}

void world_restart(struct world *world, enum broker_trust trust)
{
    check_slots(world);
    broker_free(world->broker);
    free_questions(world);
    world_cut_connections(world);
    world->is_paused = false;
    world->is_daemon_dead = false;
    world->n_actions_left = 0;
    for (size_t i = 0; i < world->n_runtimes; i++)
        world->runtimes[i]->has_told_version = false;
    for (size_t i = 0; i < world->n_processes; i++) {
        world->processes[i].held = 0;
        world->processes[i].was_told_ended = false;
    }
    start_broker(world, trust, world->usable_descriptors);
    for (uint32_t slot = 0; trust != BROKER_HAS_NO_RECORDS && slot < world->n_slots; slot++) {
        struct record record;

        if (!record_read(world->marks[slot], &record))
            world_fail("a mark that cannot be read");
        if (record.phase != RECORD_NONE &&
            broker_remember(world->broker, slot, &record, find_policy(world, record.policy)) != 0)
            world_fail("memory ran out for a record");
    }
    world_adopt_connections(world);
}

const struct runtime *world_find(struct world *world, const char *cookie)
{
    char id[16];
    struct runtime *runtime;

    snprintf(id, sizeof id, "%.8s", cookie);
    return broker_find(world->broker, id, &runtime) == BROKER_FOUND_NONE ? NULL : runtime;
}
