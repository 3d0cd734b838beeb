/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/receipt.h"

#include <errno.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/command.h"
#include "lib/text.h"

#define PROVIDER "Microsoft-Windows-DotNETRuntime"

#define KEYWORD_LOADER    UINT64_C(0x8)
#define KEYWORD_PROFILERS UINT64_C(0x20000000000)

enum { LEVEL_INFORMATION = 4, BUFFER_MB = 1 };

/* Source: dotnet/runtime src/coreclr/vm/ClrEtwAll.man. */
enum { EVENT_MODULE_LOAD = 152, EVENT_PROFILER_MESSAGE = 299 };

/* Before the path of a module: its id, its assembly's, flags and a reserved number. */
enum { MODULE_PATH_AT = 24, UNIT_SIZE = 2, PATH_UNITS_MAX = 4096 };

/* Far more than such a session has, and little enough for a daemon with many of them: what a
 * runtime says of ten kinds of events is 0.5 kB. */
static const struct nettrace_limits limits = {
    .block_max = 1024 * 1024,
    .payload_max = MODULE_PATH_AT + UNIT_SIZE * (PATH_UNITS_MAX + 1),
    .metadata_max = 64,
    .metadata_text_max = 8192,
};

void receipt_init(struct receipt *receipt, struct receipt_hook *hooks, size_t n_hooks)
{
    *receipt = (struct receipt){.hooks = hooks, .n_hooks = n_hooks};
    for (size_t i = 0; i < n_hooks; i++)
        hooks[i].is_loaded = false;
    nettrace_init(&receipt->nettrace, &limits);
}

void receipt_deinit(struct receipt *receipt)
{
    for (size_t i = 0; i < receipt->n_messages; i++)
        profiler_message_deinit(&receipt->messages[i]);
    free(receipt->messages);
    nettrace_deinit(&receipt->nettrace);
    receipt_init(receipt, NULL, 0);
}

/* Nothing more is read, and what reading needed is not needed any more. */
static void end(struct receipt *receipt, enum receipt_stream stream)
{
    receipt->stream = stream;
    nettrace_deinit(&receipt->nettrace);
}

static void give_up(struct receipt *receipt, enum nettrace_result why)
{
    receipt->why = why;
    receipt->refused_version = receipt->nettrace.refused_version;
    end(receipt, RECEIPT_UNREADABLE);
}

static bool is_path(struct bytes_reader utf16, const char *path)
{
    const uint8_t *at = (const uint8_t *)path;
    size_t left = strlen(path) + 1;

    while (left > 0) {
        uint32_t wanted = 0;
        size_t size = text_decode(at, left, &wanted);
        uint16_t unit, low = 0;

        if (size == 0 || !bytes_get_u16(&utf16, &unit) ||
            (wanted > 0xFFFF && !bytes_get_u16(&utf16, &low)))
            return false;
        if (wanted > 0xFFFF
                ? unit != (0xD800 | (wanted - 0x10000) >> 10) || low != (0xDC00 | (wanted & 0x3FF))
                : unit != wanted)
            return false;
        at += size;
        left -= size;
    }
    return true;
}

static void take_module(struct receipt *receipt, const struct nettrace_event *event)
{
    struct bytes_reader payload = bytes_reader_over(event->payload, event->n_payload);
    const uint8_t *ignored;

    if (!bytes_get_run(&payload, MODULE_PATH_AT, &ignored))
        return;
    for (size_t i = 0; i < receipt->n_hooks; i++)
        receipt->hooks[i].is_loaded |= is_path(payload, receipt->hooks[i].path);
}

/* Grows by one: there are few. */
static bool keep_message(struct receipt *receipt, struct profiler_message *message)
{
    struct profiler_message *messages =
        realloc(receipt->messages, (receipt->n_messages + 1) * sizeof *messages);

    if (!messages)
        return false;
    receipt->messages = messages;
    if (message->text && receipt->n_texts == RECEIPT_TEXTS_MAX)
        profiler_message_deinit(message);
    receipt->n_texts += message->text != NULL;
    messages[receipt->n_messages++] = *message;
    return true;
}

static void take_message(struct receipt *receipt, const struct nettrace_event *event)
{
    struct profiler_message message;
    int error;

    if (receipt->n_messages == RECEIPT_MESSAGES_MAX) {
        receipt->has_gaps = true;
        return;
    }
    error = profiler_message_read(event->payload, event->n_payload, &message);
    if (error == PROFILER_MESSAGE_E_PAYLOAD) {
        receipt->has_gaps = true;
        return;
    }
    if (error == 0 && keep_message(receipt, &message))
        return;
    if (error == 0)
        profiler_message_deinit(&message);
    give_up(receipt, NETTRACE_E_MEMORY);
}

static void take_event(struct receipt *receipt, const struct nettrace_event *event)
{
    receipt->n_events++;
    if (strcmp(event->metadata->provider, PROVIDER) != 0)
        return;
    if (event->metadata->event_id == EVENT_PROFILER_MESSAGE)
        take_message(receipt, event);
    else if (event->metadata->event_id == EVENT_MODULE_LOAD)
        take_module(receipt, event);
}

/* Threads number their events, those among them that found no room in the buffer. A thread that is
 * gone is not listed, so that there may be more events than this, and never fewer. */
static void take_point_thread(struct receipt *receipt, const struct nettrace_point_thread *thread)
{
    receipt->n_assigned += thread->sequence;
    receipt->has_gaps |= receipt->n_assigned > receipt->n_events;
}

static void take_result(struct receipt *receipt, enum nettrace_result result)
{
    switch (result) {
    case NETTRACE_MORE:
    case NETTRACE_STACK:
        return;
    case NETTRACE_EVENT:
        take_event(receipt, &receipt->nettrace.event);
        return;
    case NETTRACE_POINT:
        receipt->n_assigned = 0;
        return;
    case NETTRACE_POINT_THREAD:
        take_point_thread(receipt, &receipt->nettrace.point_thread);
        return;
    case NETTRACE_END:
        end(receipt, RECEIPT_ENDED);
        return;
    case NETTRACE_E_MAGIC:
    case NETTRACE_E_VERSION:
    case NETTRACE_E_OBJECT:
    case NETTRACE_E_TRACE:
    case NETTRACE_E_BLOCK:
    case NETTRACE_E_EVENT:
    case NETTRACE_E_METADATA:
    case NETTRACE_E_LIMIT:
    case NETTRACE_E_MEMORY:
        give_up(receipt, result);
        return;
    }
}

void receipt_take(struct receipt *receipt, const uint8_t *bytes, size_t length)
{
    enum nettrace_result result = NETTRACE_END;

    while (receipt->stream == RECEIPT_READING && result != NETTRACE_MORE) {
        size_t taken;

        result = nettrace_feed(&receipt->nettrace, bytes, length, &taken);
        bytes += taken;
        length -= taken;
        take_result(receipt, result);
    }
}

void receipt_close(struct receipt *receipt)
{
    if (receipt->stream == RECEIPT_READING)
        end(receipt, RECEIPT_CUT);
}

bool receipt_has_ended(const struct receipt *receipt)
{
    return receipt->stream != RECEIPT_READING;
}

bool receipt_is_whole(const struct receipt *receipt)
{
    return receipt->stream == RECEIPT_ENDED && !receipt->has_gaps;
}

static unsigned weight(enum profiler_message_kind kind)
{
    switch (kind) {
    case PROFILER_MESSAGE_LOADED:
        return 4;
    case PROFILER_MESSAGE_FAILED_INSTANTIATION:
    case PROFILER_MESSAGE_FAILED_INITIALIZATION:
    case PROFILER_MESSAGE_FAILED:
    case PROFILER_MESSAGE_MISCONFIGURED:
    case PROFILER_MESSAGE_ALREADY_LOADED:
    case PROFILER_MESSAGE_CANCELLED:
    case PROFILER_MESSAGE_PREVENTED:
        return 3;
    case PROFILER_MESSAGE_OLDER_VERSION:
        return 2;
    case PROFILER_MESSAGE_ATTACH_REQUESTED:
        return 1;
    case PROFILER_MESSAGE_OTHER:
        break;
    }
    return 0;
}

const struct profiler_message *receipt_profiler(const struct receipt *receipt,
                                                const struct guid *clsid, bool *ret_is_older)
{
    const struct profiler_message *heaviest = NULL;
    bool is_older = false;

    for (size_t i = 0; i < receipt->n_messages; i++) {
        const struct profiler_message *message = &receipt->messages[i];

        if (!message->has_clsid || guid_compare(&message->clsid, clsid) != 0)
            continue;
        is_older |= message->kind == PROFILER_MESSAGE_OLDER_VERSION;
        if (!heaviest || weight(message->kind) >= weight(heaviest->kind))
            heaviest = message;
    }
    *ret_is_older = is_older;
    return heaviest;
}

size_t receipt_count(const struct receipt *receipt, enum profiler_message_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < receipt->n_messages; i++)
        n += receipt->messages[i].kind == kind;
    return n;
}

bool receipt_hook(const struct receipt *receipt, const char *path)
{
    for (size_t i = 0; i < receipt->n_hooks; i++) {
        if (strcmp(receipt->hooks[i].path, path) == 0)
            return receipt->hooks[i].is_loaded;
    }
    return false;
}

int receipt_write_session(struct bytes *message, bool with_hooks)
{
    const struct command_provider provider = {
        .keywords = KEYWORD_PROFILERS | (with_hooks ? KEYWORD_LOADER : 0),
        .level = LEVEL_INFORMATION,
        .name = PROVIDER,
    };
    const struct command_session session = {
        .buffer_mb = BUFFER_MB,
        .providers = &provider,
        .n_providers = 1,
    };

    return command_write_collect_tracing(message, COMMAND_COLLECT_TRACING_2, &session);
}
