/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control interface of a daemon that holds some runtimes, without a socket.
 * Everything behind daemon/http.h is what ships; HTTP itself, the clock, the log
 * and the look at processes are replaced, so that an answer depends on the
 * request alone.
 *
 * Programs that use it link it instead of daemon/http.c and the like: there is
 * one in a program at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

/* Users besides root, by what they may do. */
enum { UNIT_CONTROL_READER = 1001, UNIT_CONTROL_ADMIN = 1002, UNIT_CONTROL_NOBODY = 1003 };

struct unit_request {
    uint32_t uid;
    const char *method;
    const char *target; /* path and query, nothing encoded */
    const void *body;
    size_t body_length;
    size_t fails_at; /* the allocation that fails, 1 being the first; 0: none. See unit_memory.h */
};

struct unit_answer {
    unsigned status; /* 0: there was none, which is for when memory is out */
    char *text;      /* the caller's */
    size_t length;
    size_t n_allocations; /* where unit_memory.h counts them */
};

/* One runtime is held, one applies, one runs, one is left alone and one is dead; their cookies
 * begin with aaaa0001, aaaa0002, bbbb0003, cccc0004 and dddd0005. */
void unit_control_begin(void);
void unit_control_end(void);

/* Asks, and lets the runtimes serve what comes of it. What HTTP would not stand for, a second
 * answer, a body that is not JSON, ends the program. */
struct unit_answer unit_control_ask(const struct unit_request *request);
