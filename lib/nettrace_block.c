/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is in a block: events, descriptions of events, stacks, or a point.
 *
 * Nothing here sees where the block ends but by what it is given; whoever feeds
 * it knows, and asks then whether everything was whole.
 */

#include <stdlib.h>
#include <string.h>

#include "lib/nettrace_parts.h"

enum {
    EVENTS_HEAD_SIZE = 20, /* its own size, flags, the oldest and the newest time */
    STACKS_HEAD_SIZE = 8,
    POINT_HEAD_SIZE = 12,
    POINT_THREAD_SIZE = 12,
};

enum { FLAG_COMPRESSED = 1 };

enum part {
    PART_EVENTS_HEAD,
    PART_EVENT_HEAD,
    PART_EVENT_PAYLOAD,
    PART_STACKS_HEAD,
    PART_STACK_SIZE,
    PART_STACK_BYTES,
    PART_POINT_HEAD,
    PART_POINT_THREAD,
    PART_REST, /* what newer versions have behind it, or all of an unknown block */
};

static bool go_on(struct nettrace *nettrace, enum part part)
{
    nettrace->part = part;
    return true;
}

static bool say(enum nettrace_result *result, enum nettrace_result what)
{
    *result = what;
    return true;
}

void nettrace_block_begin(struct nettrace *nettrace)
{
    static const enum part first[] = {
        [OBJECT_UNKNOWN] = PART_REST,         [OBJECT_EVENTS] = PART_EVENTS_HEAD,
        [OBJECT_METADATA] = PART_EVENTS_HEAD, [OBJECT_STACKS] = PART_STACKS_HEAD,
        [OBJECT_POINT] = PART_POINT_HEAD,
    };

    nettrace->part = first[nettrace->object];
    nettrace->skip = 0;
    nettrace->metadata_id = 0;
    nettrace->event = (struct nettrace_event){.metadata = NULL};
}

bool nettrace_block_is_whole(const struct nettrace *nettrace)
{
    return nettrace->n_head == 0 && nettrace->skip == 0 &&
           (nettrace->part == PART_EVENT_HEAD || nettrace->part == PART_REST);
}

static bool take_skipped(struct nettrace *nettrace, struct bytes_reader *in)
{
    uint32_t n = in->left < nettrace->skip ? (uint32_t)in->left : nettrace->skip;
    const uint8_t *ignored;

    nettrace->skip -= n;
    return bytes_get_run(in, n, &ignored) && n > 0;
}

/* The flags say what kind of headers the block's events have; the times are not needed. */
static bool take_events_head(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                             enum nettrace_result *result)
{
    struct bytes_reader head;
    uint16_t size, flags;

    if (!nettrace_fill(nettrace, EVENTS_HEAD_SIZE, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u16(&head, &size) || !bytes_get_u16(&head, &flags) || size < EVENTS_HEAD_SIZE ||
        (size_t)(size - EVENTS_HEAD_SIZE) > in->left + beyond)
        return say(result, NETTRACE_E_BLOCK);
    nettrace->is_compressed = (flags & FLAG_COMPRESSED) != 0;
    nettrace->skip = size - EVENTS_HEAD_SIZE;
    return go_on(nettrace, PART_EVENT_HEAD);
}

/* As much of what follows as the limits allow is going to be kept, and the rest is passed over. */
static bool begin_payload(struct nettrace *nettrace, uint32_t size)
{
    uint32_t kept = size < nettrace->limits.payload_max ? size : nettrace->limits.payload_max;

    nettrace->is_keeping = true;
    nettrace->n_payload = 0;
    nettrace->payload_size = kept;
    nettrace->skip = size - kept;
    if (kept > nettrace->payload_capacity) {
        uint8_t *payload = realloc(nettrace->payload, kept);

        if (!payload)
            return false;
        nettrace->payload = payload;
        nettrace->payload_capacity = kept;
    }
    return true;
}

static bool take_payload(struct nettrace *nettrace, struct bytes_reader *in)
{
    size_t missing = nettrace->payload_size - nettrace->n_payload;
    const uint8_t *run;

    if (missing > in->left)
        missing = in->left;
    if (bytes_get_run(in, missing, &run) && missing > 0)
        memcpy(nettrace->payload + nettrace->n_payload, run, missing);
    nettrace->n_payload += (uint32_t)missing;
    nettrace->is_keeping = nettrace->n_payload < nettrace->payload_size;
    return !nettrace->is_keeping;
}

/* A description is an event that nothing describes. */
static bool find_metadata(struct nettrace *nettrace)
{
    if (nettrace->object == OBJECT_METADATA)
        return nettrace->metadata_id == 0;
    nettrace->event.metadata = nettrace_metadata_find(nettrace, nettrace->metadata_id);
    return nettrace->event.metadata != NULL;
}

/* Where a header ends is only known when it has been read: the head takes what there is, and gives
 * back what it did not need, which came last. */
static bool take_event_head(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                            enum nettrace_result *result)
{
    size_t room = NETTRACE_HEAD_MAX - nettrace->n_head, size = 0, left;
    size_t taken = in->left < room ? in->left : room;
    uint32_t padding = 0;

    if (taken == 0)
        return false;
    nettrace_fill(nettrace, nettrace->n_head + taken, in);
    if (!nettrace_event_head(nettrace, &size, &padding))
        return say(result, NETTRACE_E_EVENT);
    if (size == 0)
        return false;
    in->at -= nettrace->n_head - size;
    in->left += nettrace->n_head - size;
    nettrace->n_head = 0;
    left = in->left + beyond;
    if (!find_metadata(nettrace))
        return say(result, NETTRACE_E_EVENT);
    if (nettrace->event.payload_size > left)
        return say(result, NETTRACE_E_BLOCK);
    if (!begin_payload(nettrace, nettrace->event.payload_size))
        return say(result, NETTRACE_E_MEMORY);
    left -= nettrace->event.payload_size;
    nettrace->skip += padding < left ? padding : (uint32_t)left;
    return go_on(nettrace, PART_EVENT_PAYLOAD);
}

static bool take_event_payload(struct nettrace *nettrace, struct bytes_reader *in,
                               enum nettrace_result *result)
{
    if (!take_payload(nettrace, in))
        return false;
    nettrace->event.payload = nettrace->payload;
    nettrace->event.n_payload = nettrace->n_payload;
    go_on(nettrace, PART_EVENT_HEAD);
    if (nettrace->object == OBJECT_EVENTS)
        return say(result, NETTRACE_EVENT);
    return say(result, nettrace_metadata_add(nettrace));
}

static bool take_stacks_head(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                             enum nettrace_result *result)
{
    struct bytes_reader head;
    uint32_t first, n;

    if (!nettrace_fill(nettrace, STACKS_HEAD_SIZE, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u32(&head, &first) || !bytes_get_u32(&head, &n) || first == 0 ||
        n > UINT32_MAX - first || n > (in->left + beyond) / sizeof nettrace->stack.bytes_size)
        return say(result, NETTRACE_E_BLOCK);
    nettrace->stack.id = first - 1;
    nettrace->n_left = n;
    return go_on(nettrace, n > 0 ? PART_STACK_SIZE : PART_REST);
}

static bool take_stack_size(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                            enum nettrace_result *result)
{
    struct bytes_reader head;
    uint32_t size;

    if (!nettrace_fill(nettrace, sizeof size, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u32(&head, &size) || size > in->left + beyond ||
        size % nettrace->trace.pointer_size != 0)
        return say(result, NETTRACE_E_BLOCK);
    if (!begin_payload(nettrace, size))
        return say(result, NETTRACE_E_MEMORY);
    nettrace->stack.bytes_size = size;
    return go_on(nettrace, PART_STACK_BYTES);
}

static bool take_stack_bytes(struct nettrace *nettrace, struct bytes_reader *in,
                             enum nettrace_result *result)
{
    if (!take_payload(nettrace, in))
        return false;
    nettrace->stack.id++;
    nettrace->stack.addresses = nettrace->payload;
    nettrace->stack.n_bytes = nettrace->n_payload;
    nettrace->n_left--;
    go_on(nettrace, nettrace->n_left > 0 ? PART_STACK_SIZE : PART_REST);
    return say(result, NETTRACE_STACK);
}

static bool take_point_head(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                            enum nettrace_result *result)
{
    struct bytes_reader head;
    struct nettrace_point point;

    if (!nettrace_fill(nettrace, POINT_HEAD_SIZE, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u64(&head, &point.timestamp) || !bytes_get_u32(&head, &point.n_threads) ||
        point.n_threads > (in->left + beyond) / POINT_THREAD_SIZE)
        return say(result, NETTRACE_E_BLOCK);
    nettrace->point = point;
    nettrace->n_left = point.n_threads;
    go_on(nettrace, point.n_threads > 0 ? PART_POINT_THREAD : PART_REST);
    return say(result, NETTRACE_POINT);
}

static bool take_point_thread(struct nettrace *nettrace, struct bytes_reader *in,
                              enum nettrace_result *result)
{
    struct nettrace_point_thread *thread = &nettrace->point_thread;
    struct bytes_reader head;

    if (!nettrace_fill(nettrace, POINT_THREAD_SIZE, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u64(&head, &thread->capture_thread) || !bytes_get_u32(&head, &thread->sequence))
        return say(result, NETTRACE_E_BLOCK);
    nettrace->n_left--;
    go_on(nettrace, nettrace->n_left > 0 ? PART_POINT_THREAD : PART_REST);
    return say(result, NETTRACE_POINT_THREAD);
}

static bool take_rest(struct nettrace *nettrace, struct bytes_reader *in,
                      enum nettrace_result *result)
{
    const uint8_t *ignored;

    if (in->left == 0)
        return false;
    if (nettrace->object != OBJECT_UNKNOWN && !nettrace->is_newer)
        return say(result, NETTRACE_E_BLOCK);
    return bytes_get_run(in, in->left, &ignored);
}

bool nettrace_block_step(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                         enum nettrace_result *result)
{
    if (nettrace->skip > 0 && !nettrace->is_keeping)
        return take_skipped(nettrace, in);
    switch ((enum part)nettrace->part) {
    case PART_EVENTS_HEAD:
        return take_events_head(nettrace, in, beyond, result);
    case PART_EVENT_HEAD:
        return take_event_head(nettrace, in, beyond, result);
    case PART_EVENT_PAYLOAD:
        return take_event_payload(nettrace, in, result);
    case PART_STACKS_HEAD:
        return take_stacks_head(nettrace, in, beyond, result);
    case PART_STACK_SIZE:
        return take_stack_size(nettrace, in, beyond, result);
    case PART_STACK_BYTES:
        return take_stack_bytes(nettrace, in, result);
    case PART_POINT_HEAD:
        return take_point_head(nettrace, in, beyond, result);
    case PART_POINT_THREAD:
        return take_point_thread(nettrace, in, result);
    case PART_REST:
        return take_rest(nettrace, in, result);
    }
    return false;
}
