/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads the stream of an EventPipe session in nettrace format 4 as its bytes
 * arrive, in pieces of any size, and hands out what is in it one by one: events
 * with their descriptions, stacks, and points up to which the stream is whole.
 *
 * No block is ever held: of an event or a stack, as much is kept as the limits
 * allow, and of the descriptions of events, their beginning. What the events
 * mean is not known here, nor are the fields that they are described to have.
 *
 * Source: dotnet/runtime src/native/eventpipe/ep-file.c, ep-block.c and
 * microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat_v5.md. 8.0.34,
 * 9.0.23, 10.0.15 and 11.0.0 all send version 4 of the trace object and
 * version 2 of every block, with compressed headers of events (measured).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

enum nettrace_result {
    NETTRACE_MORE = 0, /* everything was taken */
    /* One thing was read, and is found in the field of its name; bytes after it were not taken. */
    NETTRACE_EVENT,
    NETTRACE_STACK,
    NETTRACE_POINT,        /* every event before it in the stream is as old or older */
    NETTRACE_POINT_THREAD, /* one of its threads; they follow it */
    NETTRACE_END,          /* the stream says that it is over; bytes after that are not taken */
    NETTRACE_E_MAGIC,      /* these are not the bytes of such a stream */
    NETTRACE_E_VERSION,    /* it, or an object in it, is of a version that is not known here */
    NETTRACE_E_OBJECT,     /* the frame of an object is broken, or its place is wrong */
    NETTRACE_E_TRACE,      /* the trace object has an impossible value */
    NETTRACE_E_BLOCK,      /* what is in a block does not add up to its size */
    NETTRACE_E_EVENT,      /* an event's header is broken, or nothing describes the event */
    NETTRACE_E_METADATA,   /* the description of an event is broken, or is there twice */
    NETTRACE_E_LIMIT,      /* more than the limits allow */
    NETTRACE_E_MEMORY,
};

/* How much of a stream may be held, whatever it says. */
struct nettrace_limits {
    uint32_t block_max;    /* bytes of a block; a runtime's have up to 100 KiB and their header */
    uint32_t payload_max;  /* bytes that are kept of one event, description or stack */
    uint32_t metadata_max; /* descriptions of events */
    uint32_t metadata_text_max; /* bytes of all their names together */
};

/* What the stream begins with. The time of an event is that of the trace and
 * (timestamp - sync_ticks) / ticks_per_second; the calendar is UTC. */
struct nettrace_trace {
    uint16_t year, month, day, hour, minute, second, millisecond;
    uint64_t sync_ticks;
    uint64_t ticks_per_second;
    uint32_t pointer_size; /* 4 or 8 */
    uint32_t pid;          /* in the runtime's own pid namespace */
    uint32_t n_processors;
    uint32_t sampling_ns;
};

/* The description of a kind of event. Native providers leave the name empty. */
struct nettrace_metadata {
    uint32_t id; /* in this stream */
    uint32_t event_id;
    uint32_t version;
    uint32_t level;
    uint64_t keywords;
    char *provider; /* UTF-8; "" for none, like the name */
    const char *name;
};

/* It lives until more is fed. */
struct nettrace_event {
    const struct nettrace_metadata *metadata;
    uint64_t timestamp; /* ticks */
    uint64_t thread;
    uint64_t capture_thread; /* whose sequence it is */
    uint32_t sequence;       /* a gap says that events of that thread were lost */
    uint32_t processor;
    uint32_t stack; /* 0 for none */
    bool is_sorted; /* nothing that follows is older */
    struct guid activity;
    struct guid related_activity;
    const uint8_t *payload;
    uint32_t n_payload;    /* kept of it */
    uint32_t payload_size; /* and what it has */
};

/* Return addresses, leaf first, each of the trace's pointer size. The ids begin anew after every
 * point. It lives until more is fed. */
struct nettrace_stack {
    uint32_t id;
    const uint8_t *addresses;
    uint32_t n_bytes;    /* kept of it */
    uint32_t bytes_size; /* and what it has */
};

struct nettrace_point {
    uint64_t timestamp;
    uint32_t n_threads;
};

/* The last sequence number that a thread was given before the point, lost events among them. */
struct nettrace_point_thread {
    uint64_t capture_thread;
    uint32_t sequence;
};

enum { NETTRACE_HEAD_MAX = 96, NETTRACE_NAME_MAX = 64 };

struct nettrace {
    struct nettrace_limits limits;
    enum nettrace_result over; /* MORE while the stream goes on */
    uint64_t offset;           /* bytes of it so far */
    uint32_t refused_version;  /* after NETTRACE_E_VERSION */
    bool has_trace;
    struct nettrace_trace trace;
    struct nettrace_event event;
    struct nettrace_stack stack;
    struct nettrace_point point;
    struct nettrace_point_thread point_thread;

    /* Where in the stream the reader is; nobody else's. */
    unsigned place;
    uint8_t head[NETTRACE_HEAD_MAX]; /* a number of fields that is still incomplete */
    size_t n_head;
    size_t name_length;
    unsigned object;
    bool is_newer; /* the object is of a version that may have more in it */
    uint32_t block_left;
    unsigned part; /* of the block */
    bool is_compressed;
    uint32_t skip;        /* bytes of the block that nobody looks at */
    uint32_t n_left;      /* stacks or threads */
    uint32_t metadata_id; /* of the event at hand */
    bool is_keeping;      /* the payload, */
    uint8_t *payload;
    uint32_t n_payload;    /* so far, */
    uint32_t payload_size; /* and when all that is kept of it is there */
    uint32_t payload_capacity;
    struct nettrace_metadata *metadata;
    size_t n_metadata;
    size_t metadata_capacity;
    size_t metadata_text;
};

/* Allocates nothing. */
void nettrace_init(struct nettrace *nettrace, const struct nettrace_limits *limits);
void nettrace_deinit(struct nettrace *nettrace);

/*
 * Takes bytes of the stream; `*ret_taken` says how many. To be called again
 * with those that were not taken until it answers NETTRACE_MORE. An end and an
 * error are final: whatever is fed then is not taken, and answered the same.
 */
enum nettrace_result nettrace_feed(struct nettrace *nettrace, const uint8_t *bytes, size_t length,
                                   size_t *ret_taken) MUST_CHECK;

/* True for the errors among them. */
bool nettrace_is_error(enum nettrace_result result);

/* What went wrong, as the end of a sentence that begins with "the stream"; "" when nothing did. */
const char *nettrace_result_text(enum nettrace_result result);
