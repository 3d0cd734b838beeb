/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes the stream of an EventPipe session in nettrace format 4, as little of
 * it as a reader needs: every event in a block of its own, and whole.
 *
 * The layout was taken from streams of 8.0.34 and 11.0.0. Which events are
 * sent, and when, is up to sessions.c.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/bytes.h"

enum nettrace_event {
    NETTRACE_RUNTIME_START,    /* 187: the runtime tells what it is */
    NETTRACE_PROFILER_MESSAGE, /* 299 */
    NETTRACE_MODULE_LOAD,      /* 152 */
    NETTRACE_RUNDOWN_METHOD,   /* 144 of the rundown provider */
    NETTRACE_PROCESS_INFO,     /* 1 of the EventPipe provider, the last event */
    NETTRACE_EVENT_COUNT,
};

struct nettrace {
    struct bytes out; /* what was written and not yet taken */
    uint64_t taken;   /* bytes of the stream before that */
    uint32_t sequence;
    bool is_described[NETTRACE_EVENT_COUNT];
};

/* Starts with the 102 bytes that come before any event. */
void nettrace_init(struct nettrace *nettrace);

void nettrace_put(struct nettrace *nettrace, enum nettrace_event event,
                  const struct bytes *payload);

/* The last sequence point and the end of the stream. */
void nettrace_end(struct nettrace *nettrace);

/* UTF-16 with a closing NUL, as payloads have it. */
void nettrace_put_text(struct bytes *payload, const char *text);

/* Moves what was written into `ret_bytes`, which the caller deinits. */
void nettrace_take(struct nettrace *nettrace, struct bytes *ret_bytes);
