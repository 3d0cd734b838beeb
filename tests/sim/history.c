/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The course of a history: the policy it is lived under, what is checked after
 * each event, memory that runs short in one, and its end. What the events are is
 * known in events.c, who is there in actors.c.
 */

#include "tests/sim/history.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/broker_core.h"
#include "lib/policy.h"
#include "tests/sim/dice.h"
#include "tests/unit/unit_memory.h"

/* The policy. */

static const char *one_of(struct dice *dice, const char *const *list, uint32_t n)
{
    return list[dice_throw(dice, n)];
}

#define ONE_OF(dice, ...)                              \
    one_of((dice), (const char *const[]){__VA_ARGS__}, \
           ARRAY_LENGTH(((const char *const[]){__VA_ARGS__})))

static void put_limits(const struct history *history, struct dice *dice, char *text, size_t size)
{
    if (!history->has_limits) {
        snprintf(text, size, "{ hello: 500ms, history: { records: 100 } }");
        return;
    }
    snprintf(text, size,
             "{ hello: %s, runtimes: %u, runtimes_per_user: %u, silent: %u, "
             "connections_per_user: %u, cookies_per_process: %u, history: { records: %u, age: 1m } "
             "}",
             ONE_OF(dice, "10ms", "200ms", "1s"), 1 + dice_throw(dice, 12), 1 + dice_throw(dice, 8),
             1 + dice_throw(dice, 8), 1 + dice_throw(dice, 16), 1 + dice_throw(dice, 4),
             1 + dice_throw(dice, 20));
}

/*
 * Rules by exe: /app/plan has everything, /app/few only variables, one of which it may do without,
 * /app/hold and /app/kill do that on failure, /app/watch is only watched, /app/left is to be left
 * alone. GEN tells which policy it was.
 */
void history_write_policy(const struct history *history, char *text, size_t size)
{
    struct dice dice = dice_new(history->salt + UINT64_C(7919) * history->generation);
    /* What came to the policy later: histories that were kept are to be what they were. */
    struct dice own = dice_new(history->salt ^ UINT64_C(0x636f6e66) * (history->generation + 1));
    struct dice others = dice_new(history->salt + UINT64_C(104729) * history->generation);
    struct dice proof = dice_new(history->salt + UINT64_C(15485863) * (history->generation + 1));
    struct dice paths = dice_new(history->salt ^ UINT64_C(0x706c6174) * (history->generation + 1));
    char limits[256];

    put_limits(history, &dice, limits, sizeof limits);
    snprintf(text, size,
             "version: 1\n"
             "listen:\n"
             "  - { name: runtime, path: /run/diagport/runtime.sock }\n"
             "  - { name: second, path: /run/diagport/second.sock }\n"
             "  - { name: third, path: /run/diagport/third.sock }\n"
             "control: { path: /run/diagport/control.sock }\n"
             "limits: %s\n"
             "defaults: { deadline: %s, command_timeout: %s, hold_limit: %s, primer_path: %s, "
             "verify: %s }\n"
             "rules:\n"
             "  - { name: left, match: { exe: /app/left }, ignore: true }\n"
             "  - name: plan\n"
             "    match: { exe: /app/plan }\n"
             "    match_unknown: %s\n"
             "    env: { GEN: \"%u\", OLD: new, GONE: { value: null, required: %s } }\n"
             "    profilers: [ { clsid: cf0d821e-299b-5307-a3d8-b283c03916dd, path: %s, "
             "required: %s, primer: %s } ]\n"
             "    on_conflict: %s\n"
             "    startup_hooks: [ { path: /opt/a.dll, required: %s } ]\n"
             "  - name: few\n"
             "    match: { exe: /app/few }\n"
             "    env: { GEN: \"%u\", OLD: \"new\", TOO: { value: \"1\", required: false } }\n"
             "  - name: hold\n"
             "    match: { exe: /app/hold }\n"
             "    env: { GEN: \"%u\" }\n"
             "    on_failure: hold\n"
             "  - name: kill\n"
             "    match: { exe: /app/kill }\n"
             "    env: { GEN: \"%u\" }\n"
             "    on_failure: kill\n"
             "  - name: watch\n"
             "    match: { exe: /app/watch }\n"
             "    mode: observe\n"
             "    env: { GEN: \"%u\" }\n",
             limits, ONE_OF(&dice, "100ms", "1s", "3s"), ONE_OF(&dice, "50ms", "300ms", "1s"),
             ONE_OF(&dice, "1s", "5s"), ONE_OF(&others, "/opt/primer.so", "/opt/absent.so"),
             ONE_OF(&proof, "off", "auto", "receipt"), ONE_OF(&dice, "stop", "next"),
             history->generation, ONE_OF(&dice, "true", "false"),
             ONE_OF(&paths, "/opt/p.so", "'/opt/{rid}/p.so'"), ONE_OF(&dice, "true", "false"),
             ONE_OF(&others, "auto", "always", "never"), ONE_OF(&own, "skip", "replace", "fail"),
             ONE_OF(&dice, "true", "false"), history->generation, history->generation,
             history->generation, history->generation);
}

void history_remember_limits(struct history *history)
{
    const struct policy *policy = history->world->policy;

    if (policy->defaults.deadline.us > history->deadline.us)
        history->deadline = policy->defaults.deadline;
    if (policy->limits.silent > history->silent)
        history->silent = policy->limits.silent;
}

/* Memory. */

static void before_call(void *context)
{
    struct history *history = context;

    if (history->failing_allocation > 0)
        unit_memory_watch(history->failing_allocation);
}

static void after_call(void *context)
{
    struct history *history = context;
    size_t n_left;

    if (history->failing_allocation == 0)
        return;
    if (unit_memory_release(&n_left) >= history->failing_allocation) {
        history->shortage = moment_after(history->world->now, span_from_s(2));
        history->has_run_short = true;
        history->has_ever_run_short = true;
    }
    history->failing_allocation = 0;
}

/* The whole. */

/* From dice of its own: what is drawn from the others stays as it was. */
static size_t n_keepable(uint32_t salt)
{
    static const size_t sizes[] = {0, 2, 5, 100, 100};
    struct dice dice = dice_new(salt ^ UINT64_C(0x6b657074));

    return sizes[dice_throw(&dice, ARRAY_LENGTH(sizes))];
}

/* What the daemon that ends has not read of it, and the next one will. */
static void remember_answer(struct actor *actor)
{
    const struct world_runtime *runtime = actor->runtime;
    const struct world_command *last =
        runtime->n_commands > 0 ? &runtime->commands[runtime->n_commands - 1] : NULL;

    actor->has_kept_answer = false;
    if (!last || !last->was_answered || command_row(last->id)->repeat != COMMAND_ONCE ||
        runtime->process->is_dead)
        return;
    /* The start-up race, after which it is sent again. */
    if (last->was_refused && last->id == COMMAND_STARTUP_PROFILER)
        return;
    actor->has_kept_answer = world_is_answer_kept(runtime);
    if (last->is_primer)
        actor->kept_step = STEP_PRIMER;
    else
        actor->kept_step = last->id == COMMAND_STARTUP_PROFILER ? STEP_PROFILER : STEP_HOOK;
}

void history_forget_answers(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].has_kept_answer = false;
}

/* Whoever dies in the act may not have come to write it down. */
static bool is_recorded_held(const struct world_connection *connection)
{
    struct record record;

    return !connection->world->is_daemon_dead ||
           (world_find_record(connection->world, connection->runtime, &record) &&
            record.phase == RECORD_HELD && record.kept == connection->kept);
}

/* Of those that are held, how many have a connection in the store that they have not ended. */
static size_t count_held(const struct history *history)
{
    size_t n = 0;

    for (size_t i = 0; i < history->world->n_open; i++) {
        const struct world_connection *connection = history->world->open[i];

        n += connection->kept != 0 && !connection->has_ended && connection->core &&
             connection->core->runtime->state == RUNTIME_HELD && is_recorded_held(connection);
    }
    return n;
}

struct history *history_new(uint32_t salt)
{
    struct history *history = world_need(calloc(1, sizeof *history));
    struct dice dice = dice_new(salt);
    size_t usable = dice_chance(&dice, 85) ? 100000 : 4 + dice_throw(&dice, 24);
    char text[4096];

    history->salt = salt;
    history->has_limits = usable < 100000 || dice_chance(&dice, 40);
    history_write_policy(history, text, sizeof text);
    history->world = world_new_keeping(text, usable, n_keepable(salt));
    history->world->is_network_slow = dice_chance(&dice, 60);
    history->world->are_answers_slow = dice_chance(&dice, 40);
    history->world->piece_state = dice_chance(&dice, 50) ? salt + UINT64_C(1) : 0;
    history->world->before_call = before_call;
    history->world->after_call = after_call;
    history->world->context = history;
    history->is_current = true;
    history->shortage = history->world->now;
    history_remember_limits(history);
    return history;
}

/* What the next daemon can know. */
static void note_record(struct history *history, struct actor *actor)
{
    struct record record;

    if (!world_find_record(history->world, actor->runtime, &record) ||
        record.phase == RECORD_RESUMED)
        return;
    if (record.connected_at < actor->planned_at.us)
        actor->planned_at.us = record.connected_at;
    actor->has_failed |= record.phase == RECORD_WITHDRAWING;
}

void history_begin_anew(struct history *history, enum broker_trust trust)
{
    size_t n_held;
    bool is_adopted;

    for (size_t i = 0; i < history->n_actors; i++) {
        struct actor *actor = &history->actors[i];
        const struct runtime *runtime = promises_find(history, actor);

        remember_answer(actor);
        actor->is_unchanged = false;
        note_record(history, actor);
        actor->may_be_touched |= actor->is_namesake;
        actor->was_restarted = true;
        /* Who could not be identified is not in the records. */
        actor->is_forgotten |= history->has_no_records || !runtime || !runtime->process ||
                               !runtime->process->is_identified;
    }
    history->has_no_records = trust == BROKER_HAS_NO_RECORDS;
    /* Without memory, too, it is hung up. */
    is_adopted = trust == BROKER_TRUSTS_RECORDS && history->failing_allocation == 0;
    n_held = is_adopted ? count_held(history) : 0;
    if (!is_adopted)
        history_forget_answers(history);
    world_restart(history->world, trust);
    if (count_held(history) < n_held)
        promises_broken(history, NULL, "who is held does not notice a restart (P10)");
    history->is_stopping = false;
    history->resumes_all = false;
    history->is_current = true;
}

/* Whoever could not be identified may be somebody else the next time; and who dies, or is
 * killed, leaves his cookie to whoever took it. */
static void note_changes(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        struct actor *actor = &history->actors[i];
        const struct runtime *seen = promises_find(history, actor);

        actor->has_kept_answer &= !moment_is_before(history->world->now, history->shortage);
        actor->is_forgotten |= seen && seen->process && !seen->process->is_identified;
        if (actor->is_namesake &&
            (actor->runtime->process->is_dead || actor->runtime->process->was_killed))
            actors_let_liars_go(history);
    }
}

void history_happen(struct history *history, const struct happening *happening)
{
    history_kind_happen(history, happening);
    /* As in the daemon, deadlines are looked at after everything else. */
    if (history->is_current)
        world_pass(history->world, span_from_us(0), false);
    if (history->is_told) {
        fprintf(stderr, "%s at %.6f\n", history_kind_name(happening->kind),
                (double)history->world->now.us / 1e6);
        for (size_t i = 0; i < history->n_actors; i++)
            promises_tell(history, &history->actors[i]);
    }
    /* Without memory nothing could be read. */
    if (history->has_run_short || moment_is_before(history->world->now, history->shortage))
        history->world->n_unread = 0;
    if (history->has_run_short)
        history_forget_answers(history);
    history->has_run_short = false;
    note_changes(history);
    promises_check(history);
}

static void come_to_rest(struct history *history)
{
    bool is_busy = true;

    for (int turn = 0; is_busy; turn++) {
        if (turn == 100000)
            promises_broken(history, NULL, "nobody comes to rest");
        world_deliver_all(history->world);
        is_busy = false;
        while (world_answer_one(history->world, 0))
            is_busy = true;
        for (size_t i = 0; i < history->n_actors; i++)
            is_busy |= world_serve_one(history->actors[i].runtime);
    }
}

void history_live_on(struct history *history, struct span length)
{
    struct world *world = history->world;
    struct moment end = moment_after(world->now, length);

    for (;;) {
        struct moment next;

        come_to_rest(history);
        next = broker_next_deadline(world->broker);
        if (moment_is_before(end, next))
            break;
        if (moment_is_before(world->now, next))
            world->now = next;
        world_wake(world);
        history->is_current = true;
        note_changes(history);
        promises_check(history);
    }
    world->now = end;
}

void history_end(struct history *history)
{
    history->failing_allocation = 0;
    for (size_t i = 0; i < history->n_actors; i++) {
        history->actors[i].runtime->is_stuck = false;
        history->actors[i].runtime->process->state = 'S';
    }
    history_live_on(history, span_from_s(30));
    /* Whoever stops is followed by another. */
    if (history->is_stopping)
        history_begin_anew(history, BROKER_TRUSTS_RECORDS);
    history_live_on(history, span_from_s(30));
    world_answer_late(history->world);
    actors_bury_killed(history);
    history_live_on(history, span_from_s(30));
    promises_check_rest(history);
    world_free(history->world);
    free(history);
}
