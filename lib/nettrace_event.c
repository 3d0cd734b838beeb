/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Headers of events, of both kinds: all of its fields, or only those that differ
 * from the event before it in the same block, with numbers in groups of seven
 * bits, the lowest first.
 */

#include <string.h>

#include "lib/nettrace_parts.h"
#include "lib/wire.h"

enum {
    FLAG_METADATA = 0x01,
    FLAG_CAPTURE = 0x02, /* sequence, capture thread and processor */
    FLAG_THREAD = 0x04,
    FLAG_STACK = 0x08,
    FLAG_ACTIVITY = 0x10,
    FLAG_RELATED = 0x20,
    FLAG_SORTED = 0x40,
    FLAG_SIZE = 0x80,
};

enum { WHOLE_SIZE = 80, SIZE_OF_SIZE = 4, ALIGNMENT = 4 };

/* The top bit of the id, in headers that have all fields. */
#define NOT_SORTED UINT32_C(0x80000000)

enum varint { VARINT_WHOLE, VARINT_CUT, VARINT_TOO_LARGE };

static enum varint get_varint(struct bytes_reader *reader, unsigned bits, uint64_t *ret_value)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < bits; shift += 7) {
        if (!bytes_get_u8(reader, &byte))
            return VARINT_CUT;
        if (bits - shift < 7 && (byte & 0x7F) >> (bits - shift) != 0)
            return VARINT_TOO_LARGE;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return VARINT_WHOLE;
        }
    }
    return VARINT_TOO_LARGE;
}

/* A header as it is read; the first number that is cut or too large ends the reading. */
struct reading {
    struct bytes_reader in;
    enum varint state;
};

static uint64_t number(struct reading *reading, unsigned bits, uint64_t otherwise)
{
    uint64_t value = otherwise;

    if (reading->state == VARINT_WHOLE)
        reading->state = get_varint(&reading->in, bits, &value);
    return value;
}

static void read_guid(struct reading *reading, struct guid *guid)
{
    if (reading->state == VARINT_WHOLE && !wire_get_guid(&reading->in, guid))
        reading->state = VARINT_CUT;
}

static void read_capture(struct reading *reading, struct nettrace_event *event)
{
    uint32_t step = (uint32_t)number(reading, 32, 0);

    event->sequence += step + 1;
    event->capture_thread = number(reading, 64, 0);
    event->processor = (uint32_t)number(reading, 32, 0);
}

/* `id` is that of the event before, and becomes this one's. */
static enum varint read_compressed(struct reading *reading, struct nettrace_event *event,
                                   uint32_t *id)
{
    uint8_t flags;

    if (!bytes_get_u8(&reading->in, &flags))
        return VARINT_CUT;
    if (flags & FLAG_METADATA)
        *id = (uint32_t)number(reading, 32, 0);
    if (flags & FLAG_CAPTURE)
        read_capture(reading, event);
    else
        event->sequence++;
    if (flags & FLAG_THREAD)
        event->thread = number(reading, 64, 0);
    if (flags & FLAG_STACK)
        event->stack = (uint32_t)number(reading, 32, 0);
    event->timestamp += number(reading, 64, 0);
    if (flags & FLAG_ACTIVITY)
        read_guid(reading, &event->activity);
    if (flags & FLAG_RELATED)
        read_guid(reading, &event->related_activity);
    event->is_sorted = (flags & FLAG_SORTED) != 0;
    if (flags & FLAG_SIZE)
        event->payload_size = (uint32_t)number(reading, 32, 0);
    return reading->state;
}

/* What follows the header has to be the payload and nothing but padding. */
static enum varint read_whole(struct reading *reading, struct nettrace_event *event, uint32_t *id,
                              uint32_t *ret_padding)
{
    struct bytes_reader *in = &reading->in;
    uint64_t size, filled;
    uint32_t told;

    if (!bytes_get_u32(in, &told) || !bytes_get_u32(in, id) ||
        !bytes_get_u32(in, &event->sequence) || !bytes_get_u64(in, &event->thread) ||
        !bytes_get_u64(in, &event->capture_thread) || !bytes_get_u32(in, &event->processor) ||
        !bytes_get_u32(in, &event->stack) || !bytes_get_u64(in, &event->timestamp) ||
        !wire_get_guid(in, &event->activity) || !wire_get_guid(in, &event->related_activity) ||
        !bytes_get_u32(in, &event->payload_size))
        return VARINT_CUT;
    event->is_sorted = (*id & NOT_SORTED) == 0;
    *id &= ~NOT_SORTED;
    size = (uint64_t)WHOLE_SIZE + event->payload_size;
    filled = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if ((uint64_t)told + SIZE_OF_SIZE < size || (uint64_t)told + SIZE_OF_SIZE > filled)
        return VARINT_TOO_LARGE;
    *ret_padding = (uint32_t)(filled - size);
    return VARINT_WHOLE;
}

bool nettrace_event_head(struct nettrace *nettrace, size_t *ret_size, uint32_t *ret_padding)
{
    struct reading reading = {bytes_reader_over(nettrace->head, nettrace->n_head), VARINT_WHOLE};
    struct nettrace_event event = nettrace->event;
    uint32_t id = nettrace->metadata_id, padding = 0;
    enum varint state = nettrace->is_compressed ? read_compressed(&reading, &event, &id)
                                                : read_whole(&reading, &event, &id, &padding);

    if (state == VARINT_TOO_LARGE)
        return false;
    *ret_size = 0;
    if (state == VARINT_CUT)
        return true;
    *ret_size = nettrace->n_head - reading.in.left;
    *ret_padding = padding;
    nettrace->metadata_id = id;
    nettrace->event = event;
    return true;
}
