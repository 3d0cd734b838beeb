/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * EventPipe sessions: each keeps the connection it was asked for on and has a
 * thread that writes into it. Before Resume nothing is written, on .NET 11
 * only the head of the stream; what the runtime tells about profilers and
 * hooks then goes to every session that wants it.
 *
 * All functions are called with the runtime's lock held.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runtime;
struct session;

/* What CollectTracing asked of the runtime's own provider, all its entries together. */
struct session_wish {
    uint64_t keywords;
    uint32_t level;
    bool rundown;
};

struct sessions {
    struct session **list;
    size_t n;
};

/* Takes the connection over and returns the session's number, or 0 when memory is out. */
uint64_t sessions_open(struct runtime *runtime, int fd, const struct session_wish *wish);

/* The reply with that number is written: on .NET 11, and in a runtime that runs, the stream begins.
 */
void sessions_begin(struct runtime *runtime, uint64_t number);

/* The runtime has started: streams that had to wait begin, and each is told what runs. */
void sessions_start(struct runtime *runtime);

void sessions_profiler_message(struct runtime *runtime, const char *text, unsigned message);
void sessions_module_loaded(struct runtime *runtime, const char *path);

/* StopTracing: ends one session, if there is one of that number, and waits until all of it is
 * written, which the tool has to read meanwhile. */
void sessions_stop(struct runtime *runtime, uint64_t number);

/* An orderly end of the program ends every session that streams. */
void sessions_finish(struct runtime *runtime);
