/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What earlier daemons wrote down, until the runtime that it is about comes back.
 * What becomes of that is not known here.
 */

#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"

static int compare_memories(const struct memory *a, const struct memory *b)
{
    if (a->record.pid != b->record.pid)
        return a->record.pid < b->record.pid ? -1 : 1;
    if (a->record.start_time != b->record.start_time)
        return a->record.start_time < b->record.start_time ? -1 : 1;
    return guid_compare(&a->record.cookie, &b->record.cookie);
}

TREE_GENERATE(memory_tree, memory, link, compare_memories)

void memory_free(struct memory *memory)
{
    policy_unref(memory->policy);
    free(memory);
}

void memory_add(struct broker *broker, struct memory *memory)
{
    struct memory *other = RB_INSERT(memory_tree, &broker->memories, memory);

    if (!other)
        return;
    /* Of two that speak of one runtime the one that is safe to believe counts, and it is written on
     * where that is. */
    if (memory->record.phase == RECORD_RESUMED && other->record.phase != RECORD_RESUMED) {
        other->record = memory->record;
        other->slot = memory->slot;
    }
    memory_free(memory);
}

bool memory_names_policy(const struct broker *broker, const uint8_t *id)
{
    struct memory_tree memories = {broker->memories.rbh_root};
    struct memory *memory;

    RB_FOREACH(memory, memory_tree, &memories) {
        if (memcmp(memory->record.policy, id, RECORD_POLICY_SIZE) == 0)
            return true;
    }
    return false;
}

bool memory_drop_any(struct broker *broker)
{
    struct memory *memory = RB_ROOT(&broker->memories);

    if (!memory)
        return false;
    RB_REMOVE(memory_tree, &broker->memories, memory);
    memory_free(memory);
    return true;
}

/* Memories of the dead are harmless: nobody else has their pid, start time and cookie. */
struct memory *memory_of(const struct runtime *runtime)
{
    struct memory key = {.record = {.pid = runtime->pid,
                                    .start_time = runtime->start_time,
                                    .cookie = runtime->cookie}};

    return RB_FIND(memory_tree, &runtime->broker->memories, &key);
}

bool memory_has_neighbour(struct runtime *runtime)
{
    struct memory key = {.record = {.pid = runtime->pid, .start_time = runtime->start_time}};
    const struct memory *memory = RB_NFIND(memory_tree, &runtime->broker->memories, &key);

    return memory && memory->record.pid == runtime->pid &&
           memory->record.start_time == runtime->start_time;
}

void memory_take_slot(struct runtime *runtime)
{
    const struct memory *memory = memory_of(runtime);
    struct process_cookie *place;

    if (!memory)
        return;
    place = process_cookie(runtime->process, &runtime->cookie);
    place->slot = memory->slot;
    place->sequence = memory->record.sequence;
    runtime->is_marked_resumed = memory->record.phase == RECORD_RESUMED;
}

struct memory *memory_take(struct runtime *runtime)
{
    struct memory *memory = memory_of(runtime);

    if (memory)
        RB_REMOVE(memory_tree, &runtime->broker->memories, memory);
    return memory;
}

static bool was_step_sent(const struct record *record)
{
    for (size_t i = 0; i < record->n_runs; i++) {
        if (record->runs[i].step == RECORD_STEP_SENT)
            return true;
    }
    return false;
}

const struct record *memory_find_kept(struct broker *broker, int32_t pid, uint64_t kept)
{
    struct memory key = {.record = {.pid = pid}};
    struct memory *memory = RB_NFIND(memory_tree, &broker->memories, &key);
    const struct record *record;

    while (memory && memory->record.pid == pid && memory->record.kept != kept)
        memory = RB_NEXT(memory_tree, &broker->memories, memory);
    if (!memory || memory->record.pid != pid)
        return NULL;
    record = &memory->record;
    return record->phase == RECORD_HELD || (record->phase == RECORD_BEGUN && was_step_sent(record))
               ? record
               : NULL;
}
