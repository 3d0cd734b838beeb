/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a runtime itself said about the profilers and hooks that were asked of
 * it, out of the stream of one small session that is opened before Resume.
 *
 * The session has one provider, Microsoft-Windows-DotNETRuntime, at level 4 (a
 * lower one says nothing), and no rundown. Measured on 8.0.34, 9.0.23, 10.0.15
 * and 11.0.0: the reply comes at once; the stream behind it begins after Resume,
 * on 11 with its first 102 bytes before; a message about a profiler follows 4 to
 * 25 ms after Resume, on 11 about 100 ms, later on a busy machine. The stream has
 * 1.5 to 2.8 kB with messages alone, 8 to 21 kB with loaded modules, and ends by
 * itself when the program exits; a program that aborts cuts it, before any
 * message when it was the profiler that aborted.
 *
 * What the answers are good for, and when to stop waiting, is not known here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/nettrace.h"
#include "lib/profiler_message.h"
#include "lib/util.h"

struct bytes;

enum {
    RECEIPT_MESSAGES_MAX = 32,
    RECEIPT_TEXTS_MAX = 8,
};

enum receipt_stream {
    RECEIPT_READING,
    RECEIPT_ENDED,      /* the runtime said that this was all */
    RECEIPT_CUT,        /* the connection ended before that */
    RECEIPT_UNREADABLE, /* see `why` */
};

/* A path whose loading is looked out for. */
struct receipt_hook {
    const char *path; /* the caller's, has to outlive the receipt; as it was sent */
    bool is_loaded;
};

struct receipt {
    struct receipt_hook *hooks; /* the caller's */
    size_t n_hooks;
    enum receipt_stream stream;
    enum nettrace_result why;          /* an error, after RECEIPT_UNREADABLE */
    uint32_t refused_version;          /* with NETTRACE_E_VERSION */
    struct profiler_message *messages; /* in the order in which they were said */
    size_t n_messages;
    size_t n_texts;
    bool has_gaps; /* something that was said is not here */
    uint64_t n_events;
    uint64_t n_assigned; /* events that there were, by the last point */
    struct nettrace nettrace;
};

/* Looks out for these hooks, none where the session is without loaded modules. Allocates nothing.
 */
void receipt_init(struct receipt *receipt, struct receipt_hook *hooks, size_t n_hooks);
void receipt_deinit(struct receipt *receipt);

/* Takes bytes of the stream, in pieces of any size: all that follow the reply. Once `stream` is no
 * longer RECEIPT_READING, they are ignored. */
void receipt_take(struct receipt *receipt, const uint8_t *bytes, size_t length);

/* The connection has ended. */
void receipt_close(struct receipt *receipt);

/* True when nothing more will be said. */
bool receipt_has_ended(const struct receipt *receipt);

/* True when everything that was said is here, so that what is missing was not said. */
bool receipt_is_whole(const struct receipt *receipt);

/*
 * What was said about the profiler of that class that counts most: that it was
 * loaded, then the last reason why not, then that it was asked for; NULL when
 * nothing was. `*ret_is_older` says that it was called one for older runtimes.
 */
const struct profiler_message *receipt_profiler(const struct receipt *receipt,
                                                const struct guid *clsid, bool *ret_is_older);

/* How many messages of a kind there are. The runtime does not say which profiler it refused because
 * another was there: when as many say so as there are profilers of which nothing was said, it was
 * those. */
size_t receipt_count(const struct receipt *receipt, enum profiler_message_kind kind);

/* True when a module was loaded from exactly that path, which has to be one of those given at
 * init. The runtime says it as it was sent, with its dots and double slashes (measured). */
bool receipt_hook(const struct receipt *receipt, const char *path);

/* Writes the command that opens the session, with loaded modules or without. As
 * command_write_collect_tracing. */
int receipt_write_session(struct bytes *message, bool with_hooks) MUST_CHECK;
