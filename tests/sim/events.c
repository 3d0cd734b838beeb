/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What can happen in a history, one function each, and how often it does. Who it
 * happens to is made by actors.c.
 */

#include <stdio.h>
#include <string.h>

#include "lib/broker_core.h"
#include "tests/sim/dice.h"
#include "tests/sim/history.h"

/* Each takes the history and the dice that decide what it leaves open. */

static void runtime_comes(struct history *history, struct dice *dice)
{
    size_t n_ports = 1 + (dice_throw(dice, 3) == 0) + (dice_throw(dice, 8) == 0);
    uint32_t ports[3] = {dice_throw(dice, WORLD_LISTENERS), dice_throw(dice, WORLD_LISTENERS),
                         dice_throw(dice, WORLD_LISTENERS)};
    struct world_process *process;

    if (!actors_have_room(history))
        return;
    process = actors_add_process(history, dice, actors_draw_exe(dice),
                                 actors_environ(history, n_ports, ports));
    world_start(actors_add(history, dice, process, ports, n_ports)->runtime);
}

/*
 * A program with two ports on one path, so that counting does not say which of
 * them was resumed; and maybe a library with another runtime, whose threads say
 * nothing of it.
 */
static void twins_come(struct history *history, struct dice *dice)
{
    uint32_t listener = dice_throw(dice, WORLD_LISTENERS), ports[] = {listener, listener};
    struct world_process *process;
    struct actor *twin, *other;

    if (!actors_have_room(history))
        return;
    process =
        actors_add_process(history, dice, actors_draw_exe(dice), actors_environ(history, 2, ports));
    twin = actors_add(history, dice, process, ports, 2);
    world_start(twin->runtime);
    if (!dice_chance(dice, 70) || !actors_have_room(history))
        return;
    other = actors_add(history, dice, process, ports, 2);
    twin->is_unchanged = other->is_unchanged = false;
    twin->has_neighbour = other->has_neighbour = true;
    world_start(other->runtime);
}

/* It has a plan, a part of which it does. */
static void clumsy_runtime_comes(struct history *history, struct dice *dice)
{
    static const char *const planned[] = {"/app/plan", "/app/few", "/app/few"};
    static const enum world_fault habits[] = {WORLD_REFUSES, WORLD_READS_ONLY,
                                              WORLD_ANSWERS_GARBAGE, WORLD_CLOSES, WORLD_DROPS};
    uint32_t port[] = {dice_throw(dice, WORLD_LISTENERS)};
    struct world_process *process;
    struct actor *actor;

    if (!actors_have_room(history))
        return;
    process = actors_add_process(history, dice, planned[dice_throw(dice, ARRAY_LENGTH(planned))],
                                 actors_environ(history, 1, port));
    actor = actors_add(history, dice, process, port, 1);
    actor->is_clumsy = true;
    actor->n_right = 1 + dice_throw(dice, 6);
    actor->habit = habits[dice_throw(dice, ARRAY_LENGTH(habits))];
    actor->loses_first = dice_chance(dice, 40);
    world_start(actor->runtime);
}

/* A library with a runtime of its own in a program that has one. */
static void second_runtime_comes(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice), *second;

    if (!actor || !actors_have_room(history) || actor->runtime->process->is_dead ||
        actor->runtime->process->was_killed)
        return;
    actors_let_liars_go(history);
    actor->is_unchanged = false;
    second = actors_add(history, dice, actor->runtime->process, actor->runtime->ports,
                        actor->runtime->n_ports);
    second->is_unchanged = false;
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].has_neighbour |=
            history->actors[i].runtime->process == actor->runtime->process;
    world_start(second->runtime);
}

static void drop_connections(const struct actor *actor)
{
    for (size_t i = 0; i < actor->runtime->n_ports; i++) {
        if (actor->runtime->connections[i])
            world_end(actor->runtime->connections[i]);
        actor->runtime->connections[i] = NULL;
    }
}

/* The process becomes another program: its runtime is gone, and a new one comes. */
static void exec(struct history *history, struct dice *dice, const struct actor *actor)
{
    struct actor *next;

    if (!actor || !actors_have_room(history) || actor->runtime->process->is_dead ||
        actor->runtime->process->was_killed)
        return;
    actors_let_liars_go(history);
    for (size_t i = 0; i < history->n_actors; i++) {
        if (history->actors[i].runtime->process != actor->runtime->process)
            continue;
        drop_connections(&history->actors[i]);
        history->actors[i].is_unchanged = false;
        history->actors[i].is_over = true;
    }
    actor->runtime->process->picture = WORLD_SUSPENDED;
    if (dice_chance(dice, 50) && actor->runtime->process->exe)
        actor->runtime->process->exe = actors_draw_exe(dice);
    next = actors_add(history, dice, actor->runtime->process, actor->runtime->ports,
                      actor->runtime->n_ports);
    next->is_unchanged = false;
    world_start(next->runtime);
}

static void process_execs(struct history *history, struct dice *dice)
{
    exec(history, dice, actors_draw(history, dice));
}

/* Somebody claims to be another runtime, or another process. */
static void liar_comes(struct history *history, struct dice *dice)
{
    static const uint32_t port[] = {0};
    struct actor *victim = actors_draw(history, dice), *liar;
    struct world_process *process;

    if (!victim || !actors_have_room(history))
        return;
    process = actors_add_process(history, dice, "/app/plan", actors_environ(history, 1, port));
    liar = actors_add(history, dice, process, port, 1);
    liar->is_unchanged = false;
    if (dice_chance(dice, 50)) {
        const struct runtime *seen = promises_find(history, victim);

        liar->may_be_touched = !seen || !seen->process || !seen->process->is_identified ||
                               victim->runtime->process->is_dead || victim->is_namesake ||
                               victim->has_neighbour || runtime_has_ended(seen) || victim->is_over;
        liar->runtime->cookie = victim->runtime->cookie;
        victim->is_unchanged = false;
        liar->is_namesake = victim->is_namesake = true;
    } else {
        liar->runtime->claimed_pid = victim->runtime->process->pid;
        liar->may_be_touched = false;
    }
    world_start(liar->runtime);
}

static void stranger_comes(struct history *history, struct dice *dice)
{
    static const uint8_t half[] = "ADVR_V1\0abcdef";
    static const uint8_t garbage[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\nand more than that\r\n";
    struct world_process *process;
    struct world_connection *stranger;

    if (history->n_strangers == HISTORY_STRANGERS_MAX)
        return;
    process = actors_add_process(history, dice, "/bin/nc", NULL);
    stranger = world_connect(history->world, process, dice_throw(dice, WORLD_LISTENERS));
    history->strangers[history->n_strangers++] = stranger;
    if (dice_chance(dice, 30))
        world_send(stranger, half, 1 + dice_throw(dice, sizeof half - 1));
    else if (dice_chance(dice, 30))
        world_send(stranger, garbage, sizeof garbage - 1);
}

static void stranger_goes(struct history *history, struct dice *dice)
{
    if (history->n_strangers > 0)
        world_end(history->strangers[dice_throw(dice, (uint32_t)history->n_strangers)]);
}

static void runtime_serves(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);

    for (uint32_t n = 1 + dice_throw(dice, 4); actor && n > 0; n--)
        world_serve_one(actor->runtime);
}

static void all_serve(struct history *history, struct dice *dice)
{
    for (uint32_t n = 1 + dice_throw(dice, 4); n > 0; n--) {
        for (size_t i = 0; i < history->n_actors; i++)
            world_serve_one(history->actors[i].runtime);
    }
}

static void connection_is_accepted(struct history *history, struct dice *dice)
{
    world_accept(history->world, dice_throw(dice, WORLD_LISTENERS));
}

/* A few bytes, or all, of a runtime's connection, which may be an old one. */
static void bytes_come(struct history *history, struct dice *dice)
{
    struct world *world = history->world;
    uint32_t back;

    if (world->n_connections == 0)
        return;
    back = dice_throw(dice, world->n_connections < 40 ? (uint32_t)world->n_connections : 40);
    world_deliver(world->connections[world->n_connections - 1 - back],
                  dice_chance(dice, 70) ? SIZE_MAX : 1 + dice_throw(dice, 40));
}

static void all_bytes_come(struct history *history, struct dice *dice)
{
    (void)dice;
    world_deliver_all(history->world);
}

static void question_is_answered(struct history *history, struct dice *dice)
{
    world_answer_one(history->world, dice_chance(dice, 70) ? 0 : dice_throw(dice, 4));
}

static void silence_is_broken(struct history *history, struct dice *dice)
{
    (void)dice;
    world_answer_late(history->world);
}

/* After a stall everything that is there is read before a deadline is judged. */
static void pass(struct history *history, struct span length)
{
    if (!history->is_current)
        world_wake(history->world);
    world_pass(history->world, length, false);
    history->is_current = true;
}

static void time_passes(struct history *history, struct dice *dice)
{
    pass(history, span_from_us(dice_throw(dice, 20000)));
}

static void long_time_passes(struct history *history, struct dice *dice)
{
    pass(history, span_from_ms(dice_throw(dice, 2000)));
}

/* Longer than anybody is remembered only for what nothing else shows yet. */
static void much_time_passes(struct history *history, struct dice *dice)
{
    pass(history, span_from_ms(10000 + dice_throw(dice, 5000)));
}

/* What happens next is seen late, before any deadline is looked at. */
static void daemon_stalls(struct history *history, struct dice *dice)
{
    world_stall(history->world, span_from_ms(dice_throw(dice, 12000)));
    history->is_current = false;
}

static void daemon_wakes(struct history *history, struct dice *dice)
{
    (void)dice;
    world_wake(history->world);
    history->is_current = true;
}

static void process_dies(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);

    if (!actor)
        return;
    actors_let_liars_go(history);
    world_kill(history->world, actor->runtime->process);
}

static void process_stops(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);

    if (!actor)
        return;
    actor->is_unchanged = false;
    actor->runtime->is_stuck = true;
    if (dice_chance(dice, 50))
        actor->runtime->process->state = 'T';
}

static void process_continues(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);

    if (!actor)
        return;
    actor->runtime->is_stuck = false;
    actor->runtime->process->state = 'S';
}

static void connection_is_reset(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);
    size_t port = actor ? dice_throw(dice, (uint32_t)actor->runtime->n_ports) : 0;

    if (!actor || !actor->runtime->connections[port])
        return;
    actor->is_unchanged = false;
    world_end(actor->runtime->connections[port]);
}

static void policy_is_reloaded(struct history *history, struct dice *dice)
{
    char text[4096];

    (void)dice;
    history->generation++;
    history_write_policy(history, text, sizeof text);
    if (!world_set_policy(history->world, text))
        history->generation--;
    history_remember_limits(history);
}

static void daemon_crashes(struct history *history, struct dice *dice)
{
    (void)dice;
    history_begin_anew(history, BROKER_TRUSTS_RECORDS);
}

/* That command is on its way to it. */
static bool is_sent(const struct world_runtime *runtime, enum command_id id)
{
    for (size_t i = 0; i < runtime->n_ports; i++) {
        struct world_command command;

        if (runtime->connections[i] && world_peek_command(runtime->connections[i], &command) &&
            command.id == id)
            return true;
    }
    return false;
}

/* Best to where it cannot be taken back. */
static struct actor *serve_up_to_a_step(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);
    enum command_id id =
        dice_chance(dice, 50) ? COMMAND_APPLY_STARTUP_HOOK : COMMAND_STARTUP_PROFILER;

    for (int i = 0; actor && i < 16 && !is_sent(actor->runtime, id); i++) {
        world_serve_one(actor->runtime);
        world_deliver_all(history->world);
        while (world_answer_one(history->world, 0))
            ;
    }
    return actor;
}

/* Between what runtimes take and their answers. */
static void daemon_dies_unanswered(struct history *history, struct dice *dice)
{
    bool is_slow = history->world->is_network_slow;

    (void)serve_up_to_a_step(history, dice);
    history->world->is_network_slow = true;
    for (size_t i = 0; i < history->n_actors; i++)
        world_serve_one(history->actors[i].runtime);
    history->world->is_network_slow = is_slow;
    history_begin_anew(history, BROKER_TRUSTS_RECORDS);
}

/* Between two of the things that it does at once, or in the middle of a mark. */
static void daemon_dies_in_the_act(struct history *history, struct dice *dice)
{
    struct world *world = history->world;
    struct actor *actor = actors_draw(history, dice);

    world_let_die(world, 1 + dice_throw(dice, 16), dice_throw(dice, RECORD_MARK_SIZE));
    for (int i = 0; actor && i < 16 && !world->is_daemon_dead; i++) {
        world_serve_one(actor->runtime);
        world_deliver_all(world);
        while (!world->is_daemon_dead && world_answer_one(world, 0))
            ;
    }
    history_begin_anew(history, BROKER_TRUSTS_RECORDS);
}

/* Nothing of it is answered, up to when the broker begins to take back what it did. */
static void live_up_to_withdrawal(struct history *history, struct actor *actor)
{
    const struct runtime *seen = promises_find(history, actor);

    actor->is_unchanged = false;
    actor->runtime->is_stuck = true;
    for (int i = 0; i < 8 && seen && seen->state == RUNTIME_APPLYING; i++) {
        struct moment next = broker_next_deadline(history->world->broker);

        if (moment_is_before(history->world->now, next) && !moment_is_never(next))
            pass(history, moment_between(history->world->now, next));
        seen = promises_find(history, actor);
    }
    actor->runtime->is_stuck = false;
}

/* Somebody whose plan is under way; NULL when there is nobody. */
static struct actor *draw_planned(struct history *history, struct dice *dice)
{
    size_t first = dice_throw(dice, HISTORY_ACTORS_MAX);

    for (size_t i = 0; i < history->n_actors; i++) {
        struct actor *actor = &history->actors[(first + i) % history->n_actors];
        const struct runtime *seen = promises_find(history, actor);

        if (seen && seen->state == RUNTIME_APPLYING)
            return actor;
    }
    return NULL;
}

/* Time runs out in the middle of a plan, and the daemon dies while it takes back what was done. */
static void daemon_dies_withdrawing(struct history *history, struct dice *dice)
{
    struct actor *actor = draw_planned(history, dice);

    if (!actor)
        return;
    for (uint32_t n = dice_throw(dice, 4); n > 0; n--) {
        world_serve_one(actor->runtime);
        world_deliver_all(history->world);
    }
    live_up_to_withdrawal(history, actor);
    for (uint32_t n = dice_throw(dice, 3); n > 0; n--) {
        world_deliver_all(history->world);
        world_serve_one(actor->runtime);
    }
    history_begin_anew(history, BROKER_TRUSTS_RECORDS);
}

static void records_are_lost(struct history *history, struct dice *dice)
{
    /* Those that cannot be read now may be read later. */
    bool are_there = dice_chance(dice, 50);

    if (!are_there)
        memset(history->world->marks, 0, history->world->n_slots * sizeof history->world->marks[0]);
    history_begin_anew(history, are_there ? BROKER_HAS_NO_RECORDS : BROKER_DISTRUSTS_RECORDS);
}

static void daemon_stops(struct history *history, struct dice *dice)
{
    if (history->is_stopping)
        return;
    history->is_stopping = true;
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].is_unchanged = false;
    history->resumes_all = dice_chance(dice, 50);
    history_forget_answers(history);
    world_stop(history->world, history->resumes_all ? BROKER_STOP_RESUME : BROKER_STOP_KEEP);
}

static void operator_acts(struct history *history, struct dice *dice)
{
    struct world *world = history->world;
    struct actor *actor = actors_draw(history, dice);
    struct runtime *runtime;
    char id[16];

    if (!actor)
        return;
    snprintf(id, sizeof id, "pid:%d", actor->runtime->process->pid);
    if (broker_find(world->broker, id, &runtime) != BROKER_FOUND_ONE)
        return;
    actor->is_unchanged = false;
    history_forget_answers(history);
    switch (dice_throw(dice, 5)) {
    case 0:
    case 1:
        broker_resume(runtime, world->now);
        break;
    case 2:
        broker_kill(runtime, world->now);
        break;
    default:
        broker_hold(runtime, span_from_ms(dice_throw(dice, 3000)), world->now);
        break;
    }
    world_settle(world);
}

/* An operator has a profiler loaded, whether the file is there or not. */
static void operator_attaches(struct history *history, struct dice *dice)
{
    static const char *const paths[] = {"/opt/p.so", "/opt/p.so", "/opt/p.so", "/opt/missing.so"};
    struct world *world = history->world;
    struct actor *actor = actors_draw(history, dice);
    struct broker_attach wanted = {.data = "x", .n_data = 1};
    struct runtime *runtime;
    char id[16];

    if (!actor)
        return;
    snprintf(id, sizeof id, "pid:%d", actor->runtime->process->pid);
    if (broker_find(world->broker, id, &runtime) != BROKER_FOUND_ONE)
        return;
    wanted.path = paths[dice_throw(dice, ARRAY_LENGTH(paths))];
    wanted.timeout = span_from_ms(1 + dice_throw(dice, 3000));
    actors_be_attached_to(history, actor);
    history_forget_answers(history);
    broker_attach(runtime, &wanted, world->now);
    world_settle(world);
}

/* While we look whether it is still the one to be killed it becomes another one. */
static void who_is_killed_execs(struct history *history, struct dice *dice)
{
    struct actor *actor = actors_draw(history, dice);
    struct runtime *runtime;
    char id[16];

    if (!actor)
        return;
    snprintf(id, sizeof id, "pid:%d", actor->runtime->process->pid);
    if (broker_find(history->world->broker, id, &runtime) != BROKER_FOUND_ONE)
        return;
    actor->is_unchanged = false;
    history_forget_answers(history);
    broker_kill(runtime, history->world->now);
    world_settle(history->world);
    exec(history, dice, actor);
}

static void killed_die(struct history *history, struct dice *dice)
{
    (void)dice;
    actors_bury_killed(history);
}

static void shell_fails(struct history *history, struct dice *dice)
{
    struct world *world = history->world;

    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].is_unchanged = false;
    switch (dice_throw(dice, 3)) {
    case 0:
        world->fails_to_hold = true;
        return;
    case 1:
        world->fails_to_kill = true;
        return;
    default:
        world->fails_to_send = world->is_network_slow;
        return;
    }
}

static void memory_runs_short(struct history *history, struct dice *dice)
{
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].is_unchanged = false;
    history->failing_allocation = 1 + dice_throw(dice, 12);
}

/* From now on it takes a while until threads show that a runtime runs. */
static void machine_is_busy(struct history *history, struct dice *dice)
{
    static const uint32_t lags_ms[] = {0, 5, 50, 500, 5000};

    history->world->lag = span_from_ms(lags_ms[dice_throw(dice, ARRAY_LENGTH(lags_ms))]);
}

static enum world_fault be_speechless(struct world_runtime *runtime,
                                      const struct world_command *command, uint32_t *ret_hresult)
{
    (void)runtime;
    (void)ret_hresult;
    return command_row(command->id)->repeat == COMMAND_ONCE ? WORLD_CLOSES : WORLD_ANSWERS;
}

static void take_step(struct world_runtime *runtime, bool is_answered)
{
    enum world_fault (*fault)(struct world_runtime *, const struct world_command *, uint32_t *) =
        runtime->fault;

    if (!is_answered)
        runtime->fault = be_speechless;
    world_serve_one(runtime);
    runtime->fault = fault;
}

/* Its runtime takes it, and that may be all that it ever does about it. */
static void daemon_dies_in_flight(struct history *history, struct dice *dice)
{
    bool is_slow = history->world->is_network_slow;
    struct actor *actor;

    history->world->refuses_to_keep = false;
    actor = serve_up_to_a_step(history, dice);
    history->world->is_network_slow = true;
    if (actor)
        take_step(actor->runtime, dice_chance(dice, 50));
    history->world->is_network_slow = is_slow;
    history_begin_anew(history, BROKER_TRUSTS_RECORDS);
}

/* The service is stopped and started: the store is empty then. */
static void service_is_stopped(struct history *history, struct dice *dice)
{
    (void)dice;
    world_drop_store(history->world);
    history_begin_anew(history, BROKER_TRUSTS_RECORDS);
}

static void store_refuses(struct history *history, struct dice *dice)
{
    history->world->refuses_to_keep = dice_chance(dice, 50);
}

/* A file of it was looked into, and will be loaded or may be. */
static bool has_checked_files(const struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->plan.n_steps; i++) {
        const struct step *step = &runtime->plan.steps[i];

        if (step->has_identity && (step->result == STEP_PENDING || step->result == STEP_OK))
            return true;
    }
    return false;
}

/* An agent is installed anew, best when a plan that has it is all but done. */
static void files_are_replaced(struct history *history, struct dice *dice)
{
    struct actor *actor = serve_up_to_a_step(history, dice);

    if (!actor)
        return;
    actor->runtime->process->n_replaced++;
    for (size_t i = 0; i < history->n_actors; i++) {
        const struct runtime *seen = promises_find(history, &history->actors[i]);

        history->actors[i].has_new_files |=
            history->actors[i].runtime->process == actor->runtime->process && seen &&
            seen->state < RUNTIME_RESUMING && has_checked_files(seen);
    }
}

/* New ones go to the end: the corpus of tests/fuzz knows them by their places. */
static const struct event {
    const char *name;
    unsigned weight;
    void (*happen)(struct history *history, struct dice *dice);
} events[] = {
    {"runtime-comes", 10, runtime_comes},
    {"second-runtime-comes", 2, second_runtime_comes},
    {"process-execs", 1, process_execs},
    {"liar-comes", 1, liar_comes},
    {"stranger-comes", 2, stranger_comes},
    {"stranger-goes", 1, stranger_goes},
    {"runtime-serves", 24, runtime_serves},
    {"all-serve", 4, all_serve},
    {"connection-is-accepted", 12, connection_is_accepted},
    {"bytes-come", 40, bytes_come},
    {"all-bytes-come", 3, all_bytes_come},
    {"question-is-answered", 16, question_is_answered},
    {"silence-is-broken", 1, silence_is_broken},
    {"time-passes", 12, time_passes},
    {"long-time-passes", 4, long_time_passes},
    {"daemon-stalls", 1, daemon_stalls},
    {"daemon-wakes", 2, daemon_wakes},
    {"process-dies", 1, process_dies},
    {"process-stops", 1, process_stops},
    {"process-continues", 2, process_continues},
    {"connection-is-reset", 1, connection_is_reset},
    {"policy-is-reloaded", 1, policy_is_reloaded},
    {"daemon-crashes", 2, daemon_crashes},
    {"records-are-lost", 2, records_are_lost},
    {"daemon-stops", 1, daemon_stops},
    {"operator-acts", 2, operator_acts},
    {"killed-die", 2, killed_die},
    {"shell-fails", 1, shell_fails},
    {"memory-runs-short", 1, memory_runs_short},
    {"clumsy-runtime-comes", 3, clumsy_runtime_comes},
    {"machine-is-busy", 3, machine_is_busy},
    {"twins-come", 4, twins_come},
    {"much-time-passes", 1, much_time_passes},
    {"who-is-killed-execs", 1, who_is_killed_execs},
    {"daemon-dies-unanswered", 2, daemon_dies_unanswered},
    {"daemon-dies-withdrawing", 2, daemon_dies_withdrawing},
    {"daemon-dies-in-the-act", 2, daemon_dies_in_the_act},
    {"service-is-stopped", 1, service_is_stopped},
    {"store-refuses", 1, store_refuses},
    {"daemon-dies-in-flight", 3, daemon_dies_in_flight},
    {"operator-attaches", 2, operator_attaches},
    {"files-are-replaced", 4, files_are_replaced},
};

size_t history_n_kinds(void)
{
    return ARRAY_LENGTH(events);
}

const char *history_kind_name(uint32_t kind)
{
    return events[kind].name;
}

bool history_find_kind(const char *name, uint32_t *ret_kind)
{
    for (uint32_t kind = 0; kind < ARRAY_LENGTH(events); kind++) {
        if (strcmp(events[kind].name, name) == 0) {
            *ret_kind = kind;
            return true;
        }
    }
    return false;
}

uint32_t history_draw_kind(uint32_t number)
{
    unsigned sum = 0;
    uint32_t kind = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(events); i++)
        sum += events[i].weight;
    number %= sum;
    while (number >= events[kind].weight)
        number -= events[kind++].weight;
    return kind;
}

void history_kind_happen(struct history *history, const struct happening *happening)
{
    struct dice dice = dice_new(happening->salt);

    events[happening->kind].happen(history, &dice);
}
