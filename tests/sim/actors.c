/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who takes part in a history: processes, the runtimes in them, what these do
 * instead of what real ones do, and what is known of each. What happens to them
 * is not known here.
 */

#include <stdio.h>
#include <string.h>

#include "lib/hresult.h"
#include "tests/sim/dice.h"
#include "tests/sim/history.h"

static const struct world_file files[] = {
    {.path = "/opt/p.so", .mode = 0100644},
    {.path = "/opt/linux-x64/p.so", .mode = 0100644},
    {.path = "/opt/primer.so", .mode = 0100644},
    {.path = "/opt/a.dll", .mode = 0100644},
    {.path = "/run/diagport/runtime.sock", .mode = 0140666, .inode = 100},
    {.path = "/run/diagport/second.sock", .mode = 0140666, .inode = 101},
};

/* What runtimes say in a session of what they loaded: nothing, the beginning of it, or something
 * else. */
static const char *const said[] = {NULL, "Nettrace\x14", "HTTP/1.1 400 Bad Request\r\n"};

/* What processes run. */
static const char *const exes[] = {"/app/plan", "/app/plan",  "/app/plan", "/app/few",
                                   "/app/hold", "/app/kill",  "/app/none", "/app/none",
                                   "/app/left", "/app/watch", NULL};

const char *actors_draw_exe(struct dice *dice)
{
    return exes[dice_throw(dice, ARRAY_LENGTH(exes))];
}

/* What goes wrong once goes wrong again: a plan fails, and taking it back does, too. */
static enum world_fault be_clumsy(const struct actor *actor, const struct world_command *command,
                                  uint32_t *ret_hresult)
{
    unsigned n_taken = actor->runtime->n_taken;

    *ret_hresult = HRESULT_FAIL;
    if (n_taken < actor->n_right || command->id == COMMAND_RESUME)
        return WORLD_ANSWERS;
    return (n_taken == actor->n_right) != actor->loses_first ? WORLD_REFUSES : actor->habit;
}

static enum world_fault misbehave(struct world_runtime *runtime,
                                  const struct world_command *command, uint32_t *ret_hresult)
{
    static const enum world_fault faults[] = {
        WORLD_REFUSES, WORLD_REFUSES, WORLD_READS_ONLY, WORLD_ANSWERS_HALF, WORLD_ANSWERS_GARBAGE,
        WORLD_CLOSES,  WORLD_DROPS,   WORLD_DROPS,      WORLD_DIES,         WORLD_DIES_AFTER,
    };
    static const uint32_t codes[] = {HRESULT_FAIL, HRESULT_INVALID_ARGUMENT,
                                     HRESULT_UNKNOWN_COMMAND, HRESULT_NOT_SUPPORTED, 0};
    const struct actor *actor = runtime->context;
    struct dice dice = dice_new(actor->salt + UINT64_C(31) * runtime->n_taken);
    enum world_fault fault;

    if (actor->is_clumsy)
        return be_clumsy(actor, command, ret_hresult);
    if (!dice_chance(&dice, actor->fault_percent))
        return WORLD_ANSWERS;
    fault = faults[dice_throw(&dice, ARRAY_LENGTH(faults))];
    *ret_hresult = codes[dice_throw(&dice, ARRAY_LENGTH(codes))];
    /* A kind that lies about itself deserves what it gets. */
    if (command->id == COMMAND_ASK_KIND)
        *ret_hresult = HRESULT_FAIL;
    /* Real runtimes answer Resume, or are gone. */
    if (command->id == COMMAND_RESUME && fault != WORLD_CLOSES && fault != WORLD_DROPS &&
        fault != WORLD_DIES && fault != WORLD_DIES_AFTER)
        return WORLD_ANSWERS;
    return fault;
}

/* Kept until the end of the program: processes point to it. */
static const char *environ_with(size_t n_ports, const uint32_t *ports, bool has_profiler)
{
    static const char *const names[WORLD_LISTENERS] = {"runtime", "second", "third"};
    static const char plain[] = "OLD=old\0GONE=here\0";
    static const char with_profiler[] = "OLD=old\0GONE=here\0CORECLR_ENABLE_PROFILING=1\0"
                                        "CORECLR_PROFILER={1}\0";
    static struct environ_block {
        uint32_t ports[3];
        size_t n_ports;
        bool has_profiler;
        char text[256];
    } blocks[128];
    static size_t n_blocks;
    struct environ_block *block = blocks;
    size_t length;

    for (; block < blocks + n_blocks; block++) {
        if (block->n_ports == n_ports && block->has_profiler == has_profiler &&
            memcmp(block->ports, ports, n_ports * sizeof *ports) == 0)
            return block->text;
    }
    n_blocks++;
    block->n_ports = n_ports;
    block->has_profiler = has_profiler;
    memcpy(block->ports, ports, n_ports * sizeof *ports);
    length = (size_t)snprintf(block->text, sizeof block->text, "DOTNET_DiagnosticPorts=");
    for (size_t i = 0; i < n_ports; i++)
        length += (size_t)snprintf(block->text + length, sizeof block->text - length,
                                   "%s/run/diagport/%s.sock", i ? ";" : "", names[ports[i]]);
    if (has_profiler)
        memcpy(block->text + length + 1, with_profiler, sizeof with_profiler);
    else
        memcpy(block->text + length + 1, plain, sizeof plain);
    return block->text;
}

/* By dice of its own, so that histories that were kept are what they were. */
const char *actors_environ(const struct history *history, size_t n_ports, const uint32_t *ports)
{
    struct dice dice =
        dice_new(history->salt ^ UINT64_C(0x70726f66) * (history->world->n_processes + 1));

    return environ_with(n_ports, ports, dice_chance(&dice, 15));
}

struct world_process *actors_add_process(struct history *history, struct dice *dice,
                                         const char *exe, const char *environ)
{
    struct world_process *process = world_process(history->world, exe, environ);

    process->files = files;
    process->n_files = ARRAY_LENGTH(files);
    process->uid = 1000 + dice_throw(dice, 2);
    process->has_no_handle = dice_chance(dice, 20);
    process->is_silent = dice_chance(dice, 3);
    process->hides_pid = dice_chance(dice, 3);
    process->hides_environ = dice_chance(dice, 15);
    process->ns_pid = dice_chance(dice, 10) ? 7 : 0;
    return process;
}

struct actor *actors_add(struct history *history, struct dice *dice, struct world_process *process,
                         const uint32_t *ports, size_t n_ports)
{
    struct actor *actor = &history->actors[history->n_actors++];
    struct world_runtime *runtime;
    const char *exe = process->exe;
    char cookie[16];

    snprintf(cookie, sizeof cookie, "%08zx", 0xa0000000 + history->n_actors);
    runtime = world_runtime(history->world, process, cookie, ports, n_ports);
    runtime->said = said[process->pid % (int32_t)ARRAY_LENGTH(said)];
    runtime->said_length = runtime->said ? strlen(runtime->said) : 0;
    runtime->major = 6 + dice_throw(dice, 6);
    runtime->kind = runtime->major >= 8 && dice_chance(dice, 25) ? RUNTIME_KIND_NATIVEAOT
                                                                 : RUNTIME_KIND_CORECLR;
    /* Threads of one that runs beside it stay. */
    if (process->picture != WORLD_RUNNING)
        process->picture =
            runtime->kind == RUNTIME_KIND_NATIVEAOT ? WORLD_STRANGE : WORLD_SUSPENDED;
    runtime->n_refusals_left = dice_chance(dice, 30) ? dice_throw(dice, 8) : 0;
    runtime->has_foreign_port = dice_chance(dice, 5);
    runtime->fault = misbehave;
    runtime->context = actor;
    *actor = (struct actor){
        .runtime = runtime,
        .exe = exe,
        .salt = dice_throw(dice, UINT32_MAX),
        .fault_percent = dice_chance(dice, 50) ? 0 : dice_throw(dice, 40),
        .generation = history->generation,
        .is_matched = exe && strcmp(exe, "/app/none") != 0 && strcmp(exe, "/app/watch") != 0 &&
                      strcmp(exe, "/app/left") != 0,
        .is_unchanged = !process->is_silent,
        .may_be_touched = true,
        .planned_at = MOMENT_NEVER,
        .n_variables = runtime->n_variables,
    };
    memcpy(actor->variables, runtime->variables, sizeof actor->variables);
    return actor;
}

struct actor *actors_draw(struct history *history, struct dice *dice)
{
    return history->n_actors == 0 ? NULL
                                  : &history->actors[dice_throw(dice, (uint32_t)history->n_actors)];
}

bool actors_have_room(const struct history *history)
{
    return history->n_actors < HISTORY_ACTORS_MAX;
}

void actors_let_liars_go(struct history *history)
{
    for (size_t i = 0; i < history->n_actors; i++)
        history->actors[i].may_be_touched |= history->actors[i].is_namesake;
}

void actors_be_attached_to(struct history *history, struct actor *actor)
{
    for (size_t i = 0; i < history->n_actors; i++) {
        struct actor *other = &history->actors[i];

        if (other->runtime->process != actor->runtime->process)
            continue;
        other->is_unchanged = false;
        other->is_attached_to = true;
    }
}

void actors_bury_killed(struct history *history)
{
    actors_let_liars_go(history);
    for (size_t i = 0; i < history->n_actors; i++) {
        struct world_process *process = history->actors[i].runtime->process;

        if (process->was_killed && !process->is_dead)
            world_kill(history->world, process);
    }
}
