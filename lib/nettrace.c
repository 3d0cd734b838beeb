/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of the stream: what it begins with, and one object after the other.
 *
 * An object is its type (versions and a name) between tags and its content. The
 * trace, which comes first, has a fixed size; every other object is a block that
 * says how long it is and begins at a multiple of four bytes from the start of
 * the stream. So an unknown block is skipped.
 */

#include "lib/nettrace.h"

#include <string.h>

#include "lib/nettrace_parts.h"

enum { TAG_NULL = 1, TAG_BEGIN = 5, TAG_END = 6 };

enum {
    MAGIC_SIZE = 12, /* and the length of the serializer's name */
    SERIALIZER_SIZE = 20,
    CONTAINER_SIZE = 8, /* of later formats: their version */
    TYPE_SIZE = 14,     /* two tags, two versions and the length of a name */
    TRACE_SIZE = 48,
    ALIGNMENT = 4,
};

enum { TRACE_VERSION = 4, BLOCK_VERSION = 2 };

enum place {
    PLACE_MAGIC,
    PLACE_CONTAINER,
    PLACE_SERIALIZER,
    PLACE_TAG,
    PLACE_TYPE,
    PLACE_NAME,
    PLACE_TRACE,
    PLACE_SIZE,
    PLACE_PADDING,
    PLACE_CONTENT,
    PLACE_END,
};

void nettrace_init(struct nettrace *nettrace, const struct nettrace_limits *limits)
{
    *nettrace = (struct nettrace){.limits = *limits, .place = PLACE_MAGIC};
}

void nettrace_deinit(struct nettrace *nettrace)
{
    for (size_t i = 0; i < nettrace->n_metadata; i++)
        free(nettrace->metadata[i].provider);
    free(nettrace->metadata);
    free(nettrace->payload);
    nettrace_init(nettrace, &nettrace->limits);
}

bool nettrace_fill(struct nettrace *nettrace, size_t want, struct bytes_reader *in)
{
    size_t missing = want - nettrace->n_head;
    const uint8_t *run;

    if (missing > in->left)
        missing = in->left;
    if (bytes_get_run(in, missing, &run) && missing > 0)
        memcpy(nettrace->head + nettrace->n_head, run, missing);
    nettrace->n_head += missing;
    return nettrace->n_head == want;
}

struct bytes_reader nettrace_head(struct nettrace *nettrace)
{
    struct bytes_reader head = bytes_reader_over(nettrace->head, nettrace->n_head);

    nettrace->n_head = 0;
    return head;
}

static bool go_on(struct nettrace *nettrace, enum place place)
{
    nettrace->place = place;
    return true;
}

static bool refuse(enum nettrace_result *result, enum nettrace_result error)
{
    *result = error;
    return true;
}

static bool refuse_version(struct nettrace *nettrace, uint32_t version,
                           enum nettrace_result *result)
{
    nettrace->refused_version = version;
    return refuse(result, NETTRACE_E_VERSION);
}

/* As soon as the first wrong byte is there. */
static bool begins_like(const struct nettrace *nettrace, const char *text)
{
    size_t length = strlen(text);

    if (length > nettrace->n_head)
        length = nettrace->n_head;
    return memcmp(nettrace->head, text, length) == 0;
}

/* Formats from 6 on have a 0 where the length of the serializer's name was. */
static bool take_magic(struct nettrace *nettrace, struct bytes_reader *in,
                       enum nettrace_result *result)
{
    bool is_there = nettrace_fill(nettrace, MAGIC_SIZE, in);
    const uint8_t *magic;
    struct bytes_reader head;
    uint32_t length = 0;

    if (!begins_like(nettrace, "Nettrace"))
        return refuse(result, NETTRACE_E_MAGIC);
    if (!is_there)
        return false;
    head = nettrace_head(nettrace);
    if (bytes_get_run(&head, 8, &magic) && bytes_get_u32(&head, &length) && length == 0)
        return go_on(nettrace, PLACE_CONTAINER);
    if (length != SERIALIZER_SIZE)
        return refuse(result, NETTRACE_E_MAGIC);
    return go_on(nettrace, PLACE_SERIALIZER);
}

static bool take_container(struct nettrace *nettrace, struct bytes_reader *in,
                           enum nettrace_result *result)
{
    struct bytes_reader head;
    uint32_t major = 0;

    if (!nettrace_fill(nettrace, CONTAINER_SIZE, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u32(&head, &major))
        return refuse(result, NETTRACE_E_MAGIC);
    return refuse_version(nettrace, major, result);
}

static bool take_serializer(struct nettrace *nettrace, struct bytes_reader *in,
                            enum nettrace_result *result)
{
    bool is_there = nettrace_fill(nettrace, SERIALIZER_SIZE, in);

    if (!begins_like(nettrace, "!FastSerialization.1"))
        return refuse(result, NETTRACE_E_MAGIC);
    if (!is_there)
        return false;
    nettrace->n_head = 0;
    return go_on(nettrace, PLACE_TAG);
}

static bool take_tag(struct nettrace *nettrace, struct bytes_reader *in,
                     enum nettrace_result *result)
{
    uint8_t tag;

    if (!bytes_get_u8(in, &tag))
        return false;
    if (tag == TAG_NULL && nettrace->has_trace)
        return refuse(result, NETTRACE_END);
    if (tag != TAG_BEGIN)
        return refuse(result, NETTRACE_E_OBJECT);
    return go_on(nettrace, PLACE_TYPE);
}

/* The versions stay in the head until the name tells whose they are. */
static bool take_type(struct nettrace *nettrace, struct bytes_reader *in,
                      enum nettrace_result *result)
{
    struct bytes_reader head;
    uint8_t begin, null;
    uint32_t version, reader, length;

    if (!nettrace_fill(nettrace, TYPE_SIZE, in))
        return false;
    head = bytes_reader_over(nettrace->head, TYPE_SIZE);
    if (!bytes_get_u8(&head, &begin) || !bytes_get_u8(&head, &null) ||
        !bytes_get_u32(&head, &version) || !bytes_get_u32(&head, &reader) ||
        !bytes_get_u32(&head, &length) || begin != TAG_BEGIN || null != TAG_NULL || length == 0 ||
        length > NETTRACE_NAME_MAX)
        return refuse(result, NETTRACE_E_OBJECT);
    nettrace->name_length = length;
    return go_on(nettrace, PLACE_NAME);
}

static enum nettrace_object find_object(const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum nettrace_object object;
    } objects[] = {
        {"Trace", OBJECT_TRACE},       {"EventBlock", OBJECT_EVENTS},
        {"StackBlock", OBJECT_STACKS}, {"MetadataBlock", OBJECT_METADATA},
        {"SPBlock", OBJECT_POINT},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(objects); i++) {
        if (strlen(objects[i].name) == length && memcmp(objects[i].name, name, length) == 0)
            return objects[i].object;
    }
    return OBJECT_UNKNOWN;
}

/* `reader` is the version of the oldest reader that can still make sense of it. */
static bool is_known(struct nettrace *nettrace, uint32_t version, uint32_t reader)
{
    uint32_t known = nettrace->object == OBJECT_TRACE ? TRACE_VERSION : BLOCK_VERSION;

    nettrace->is_newer = version > known;
    return nettrace->object == OBJECT_UNKNOWN || (version >= known && reader <= known);
}

static bool take_name(struct nettrace *nettrace, struct bytes_reader *in,
                      enum nettrace_result *result)
{
    const uint8_t *tags = NULL, *name = NULL;
    uint32_t version = 0, reader = 0, length;
    uint8_t end;
    struct bytes_reader head;

    if (!nettrace_fill(nettrace, TYPE_SIZE + nettrace->name_length + 1, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_run(&head, 2, &tags) || !bytes_get_u32(&head, &version) ||
        !bytes_get_u32(&head, &reader) || !bytes_get_u32(&head, &length) ||
        !bytes_get_run(&head, length, &name) || !bytes_get_u8(&head, &end) || end != TAG_END)
        return refuse(result, NETTRACE_E_OBJECT);
    nettrace->object = find_object((const char *)name, length);
    if (nettrace->has_trace == (nettrace->object == OBJECT_TRACE))
        return refuse(result, NETTRACE_E_OBJECT);
    if (!is_known(nettrace, version, reader))
        return refuse_version(nettrace, version, result);
    return go_on(nettrace, nettrace->object == OBJECT_TRACE ? PLACE_TRACE : PLACE_SIZE);
}

static bool read_calendar(struct bytes_reader *head, struct nettrace_trace *trace)
{
    uint16_t weekday;

    return bytes_get_u16(head, &trace->year) && bytes_get_u16(head, &trace->month) &&
           bytes_get_u16(head, &weekday) && bytes_get_u16(head, &trace->day) &&
           bytes_get_u16(head, &trace->hour) && bytes_get_u16(head, &trace->minute) &&
           bytes_get_u16(head, &trace->second) && bytes_get_u16(head, &trace->millisecond) &&
           weekday <= 6 && trace->month >= 1 && trace->month <= 12 && trace->day >= 1 &&
           trace->day <= 31 && trace->hour <= 23 && trace->minute <= 59 && trace->second <= 60 &&
           trace->millisecond <= 999;
}

static bool take_trace(struct nettrace *nettrace, struct bytes_reader *in,
                       enum nettrace_result *result)
{
    struct nettrace_trace trace;
    struct bytes_reader head;

    if (!nettrace_fill(nettrace, TRACE_SIZE, in))
        return false;
    head = nettrace_head(nettrace);
    if (!read_calendar(&head, &trace) || !bytes_get_u64(&head, &trace.sync_ticks) ||
        !bytes_get_u64(&head, &trace.ticks_per_second) ||
        !bytes_get_u32(&head, &trace.pointer_size) || !bytes_get_u32(&head, &trace.pid) ||
        !bytes_get_u32(&head, &trace.n_processors) || !bytes_get_u32(&head, &trace.sampling_ns) ||
        trace.ticks_per_second == 0 || trace.ticks_per_second > INT64_MAX ||
        (trace.pointer_size != 4 && trace.pointer_size != 8))
        return refuse(result, NETTRACE_E_TRACE);
    nettrace->trace = trace;
    nettrace->has_trace = true;
    return go_on(nettrace, PLACE_END);
}

static bool take_size(struct nettrace *nettrace, struct bytes_reader *in,
                      enum nettrace_result *result)
{
    struct bytes_reader head;

    if (!nettrace_fill(nettrace, sizeof nettrace->block_left, in))
        return false;
    head = nettrace_head(nettrace);
    if (!bytes_get_u32(&head, &nettrace->block_left) || nettrace->block_left > INT32_MAX)
        return refuse(result, NETTRACE_E_BLOCK);
    if (nettrace->block_left > nettrace->limits.block_max)
        return refuse(result, NETTRACE_E_LIMIT);
    return go_on(nettrace, PLACE_PADDING);
}

static bool take_padding(struct nettrace *nettrace, struct bytes_reader *in)
{
    uint8_t ignored;

    if (nettrace->offset % ALIGNMENT != 0)
        return bytes_get_u8(in, &ignored);
    nettrace_block_begin(nettrace);
    return go_on(nettrace, PLACE_CONTENT);
}

static bool take_content(struct nettrace *nettrace, struct bytes_reader *in,
                         enum nettrace_result *result)
{
    size_t length = in->left < nettrace->block_left ? in->left : nettrace->block_left, taken;
    struct bytes_reader content = bytes_reader_over(in->at, length);
    uint32_t beyond = nettrace->block_left - (uint32_t)length;
    bool moved = nettrace_block_step(nettrace, &content, beyond, result);

    taken = length - content.left;
    in->at += taken;
    in->left -= taken;
    nettrace->block_left -= (uint32_t)taken;
    if (moved || nettrace->block_left > 0)
        return moved;
    if (!nettrace_block_is_whole(nettrace))
        return refuse(result, NETTRACE_E_BLOCK);
    return go_on(nettrace, PLACE_END);
}

static bool take_end(struct nettrace *nettrace, struct bytes_reader *in,
                     enum nettrace_result *result)
{
    uint8_t tag;

    if (!bytes_get_u8(in, &tag))
        return false;
    return tag == TAG_END ? go_on(nettrace, PLACE_TAG) : refuse(result, NETTRACE_E_OBJECT);
}

/* False when it needs bytes that are not there. */
static bool step(struct nettrace *nettrace, struct bytes_reader *in, enum nettrace_result *result)
{
    switch ((enum place)nettrace->place) {
    case PLACE_MAGIC:
        return take_magic(nettrace, in, result);
    case PLACE_CONTAINER:
        return take_container(nettrace, in, result);
    case PLACE_SERIALIZER:
        return take_serializer(nettrace, in, result);
    case PLACE_TAG:
        return take_tag(nettrace, in, result);
    case PLACE_TYPE:
        return take_type(nettrace, in, result);
    case PLACE_NAME:
        return take_name(nettrace, in, result);
    case PLACE_TRACE:
        return take_trace(nettrace, in, result);
    case PLACE_SIZE:
        return take_size(nettrace, in, result);
    case PLACE_PADDING:
        return take_padding(nettrace, in);
    case PLACE_CONTENT:
        return take_content(nettrace, in, result);
    case PLACE_END:
        return take_end(nettrace, in, result);
    }
    return false;
}

enum nettrace_result nettrace_feed(struct nettrace *nettrace, const uint8_t *bytes, size_t length,
                                   size_t *ret_taken)
{
    struct bytes_reader in = bytes_reader_over(bytes, length);
    enum nettrace_result result = nettrace->over;
    bool moved = true;

    while (result == NETTRACE_MORE && moved) {
        size_t left = in.left;

        moved = step(nettrace, &in, &result);
        nettrace->offset += left - in.left;
    }
    *ret_taken = length - in.left;
    if (result == NETTRACE_END || nettrace_is_error(result))
        nettrace->over = result;
    return result;
}

bool nettrace_is_error(enum nettrace_result result)
{
    return result > NETTRACE_END;
}

const char *nettrace_result_text(enum nettrace_result result)
{
    switch (result) {
    case NETTRACE_MORE:
    case NETTRACE_EVENT:
    case NETTRACE_STACK:
    case NETTRACE_POINT:
    case NETTRACE_POINT_THREAD:
    case NETTRACE_END:
        break;
    case NETTRACE_E_MAGIC:
        return "is not in nettrace format";
    case NETTRACE_E_VERSION:
        return "is of a version that is not supported";
    case NETTRACE_E_OBJECT:
        return "has an object where none can be";
    case NETTRACE_E_TRACE:
        return "begins with an impossible clock or calendar";
    case NETTRACE_E_BLOCK:
        return "has a block whose content does not add up to its size";
    case NETTRACE_E_EVENT:
        return "has an event that is broken or not described";
    case NETTRACE_E_METADATA:
        return "describes an event wrongly";
    case NETTRACE_E_LIMIT:
        return "has more in it than is read";
    case NETTRACE_E_MEMORY:
        return "could not be read for want of memory";
    }
    return "";
}
