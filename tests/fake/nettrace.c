/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/nettrace.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/text.h"

/* Tags of the serializer, and the flags of an event's header: everything is said, nothing taken
 * over from the event before. */
enum { TAG_NULL = 1, TAG_BEGIN = 5, TAG_END = 6 };
enum { FLAGS_EVENT = 0xCF, FLAGS_METADATA = 0xC6 };
enum { BLOCK_HEADER = 20, TICKS_PER_SECOND = 1000000000 };

static const struct {
    const char *provider;
    uint32_t id;
    const char *name;
    uint64_t keywords;
    uint32_t version;
    uint32_t level;
} events[NETTRACE_EVENT_COUNT] = {
    [NETTRACE_RUNTIME_START] = {"Microsoft-Windows-DotNETRuntime", 187, "", 0, 0, 4},
    [NETTRACE_PROFILER_MESSAGE] = {"Microsoft-Windows-DotNETRuntime", 299, "", 0x20000000000, 0, 4},
    [NETTRACE_MODULE_LOAD] = {"Microsoft-Windows-DotNETRuntime", 152, "", 0x2000000008, 2, 4},
    [NETTRACE_RUNDOWN_METHOD] = {"Microsoft-Windows-DotNETRuntimeRundown", 144, "", 0x30, 2, 4},
    [NETTRACE_PROCESS_INFO] = {"Microsoft-DotNETCore-EventPipe", 1, "ProcessInfo", 0, 1, 0},
};

static uint64_t ticks(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TICKS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void put_varint(struct bytes *out, uint64_t value)
{
    while (value >= 0x80) {
        bytes_put_u8(out, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    bytes_put_u8(out, (uint8_t)value);
}

void nettrace_put_text(struct bytes *payload, const char *text)
{
    if (!text_put_utf16(payload, text))
        bytes_put_u16(payload, '?');
    bytes_put_u16(payload, 0);
}

static void open_object(struct bytes *out, const char *name, uint32_t version)
{
    bytes_put_u8(out, TAG_BEGIN);
    bytes_put_u8(out, TAG_BEGIN);
    bytes_put_u8(out, TAG_NULL);
    bytes_put_u32(out, version);
    bytes_put_u32(out, version);
    bytes_put_u32(out, (uint32_t)strlen(name));
    bytes_put_string(out, name);
    bytes_put_u8(out, TAG_END);
}

/* What the stream is about; its calendar fields come first, the day of the week third. */
static void put_trace(struct bytes *out)
{
    time_t seconds = time(NULL);
    struct tm now;

    gmtime_r(&seconds, &now);
    open_object(out, "Trace", 4);
    bytes_put_u16(out, (uint16_t)(now.tm_year + 1900));
    bytes_put_u16(out, (uint16_t)(now.tm_mon + 1));
    bytes_put_u16(out, (uint16_t)now.tm_wday);
    bytes_put_u16(out, (uint16_t)now.tm_mday);
    bytes_put_u16(out, (uint16_t)now.tm_hour);
    bytes_put_u16(out, (uint16_t)now.tm_min);
    bytes_put_u16(out, (uint16_t)now.tm_sec);
    bytes_put_u16(out, 0);
    bytes_put_u64(out, ticks());
    bytes_put_u64(out, TICKS_PER_SECOND);
    bytes_put_u32(out, sizeof(void *));
    bytes_put_u32(out, (uint32_t)getpid());
    bytes_put_u32(out, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    bytes_put_u32(out, 1000000);
    bytes_put_u8(out, TAG_END);
}

void nettrace_init(struct nettrace *nettrace)
{
    static const char serializer[] = "!FastSerialization.1";

    *nettrace = (struct nettrace){.sequence = 0};
    bytes_init(&nettrace->out, SIZE_MAX - 1);
    bytes_put_string(&nettrace->out, "Nettrace");
    bytes_put_u32(&nettrace->out, sizeof serializer - 1);
    bytes_put_string(&nettrace->out, serializer);
    put_trace(&nettrace->out);
}

static void put_block(struct nettrace *nettrace, const char *name, const struct bytes *content)
{
    struct bytes *out = &nettrace->out;

    open_object(out, name, 2);
    bytes_put_u32(out, (uint32_t)content->length);
    while ((nettrace->taken + out->length) % 4 != 0)
        bytes_put_u8(out, 0);
    bytes_put_run(out, content->data, content->length);
    bytes_put_u8(out, TAG_END);
}

static void put_event_block(struct nettrace *nettrace, const char *name, uint64_t at,
                            const struct bytes *blob)
{
    struct bytes content;

    bytes_init(&content, SIZE_MAX - 1);
    bytes_put_u16(&content, BLOCK_HEADER);
    bytes_put_u16(&content, 1);
    bytes_put_u64(&content, at);
    bytes_put_u64(&content, at);
    bytes_put_run(&content, blob->data, blob->length);
    put_block(nettrace, name, &content);
    bytes_deinit(&content);
}

static void put_metadata(struct nettrace *nettrace, enum nettrace_event event, uint64_t at)
{
    struct bytes description, blob;

    bytes_init(&description, SIZE_MAX - 1);
    bytes_put_u32(&description, (uint32_t)event + 1);
    nettrace_put_text(&description, events[event].provider);
    bytes_put_u32(&description, events[event].id);
    nettrace_put_text(&description, events[event].name);
    bytes_put_u64(&description, events[event].keywords);
    bytes_put_u32(&description, events[event].version);
    bytes_put_u32(&description, events[event].level);
    bytes_put_u32(&description, 0);

    bytes_init(&blob, SIZE_MAX - 1);
    bytes_put_u8(&blob, FLAGS_METADATA);
    put_varint(&blob, UINT32_MAX); /* the sequence number becomes 0 */
    put_varint(&blob, 0);
    put_varint(&blob, UINT32_MAX);
    put_varint(&blob, (uint64_t)getpid());
    put_varint(&blob, at);
    put_varint(&blob, description.length);
    bytes_put_run(&blob, description.data, description.length);
    put_event_block(nettrace, "MetadataBlock", at, &blob);
    bytes_deinit(&blob);
    bytes_deinit(&description);
}

/* One stack of no frames, which every event then refers to. */
static void put_stack(struct nettrace *nettrace)
{
    struct bytes content;

    bytes_init(&content, SIZE_MAX - 1);
    bytes_put_u32(&content, 1);
    bytes_put_u32(&content, 1);
    bytes_put_u32(&content, 0);
    put_block(nettrace, "StackBlock", &content);
    bytes_deinit(&content);
}

void nettrace_put(struct nettrace *nettrace, enum nettrace_event event, const struct bytes *payload)
{
    uint64_t at = ticks();
    struct bytes blob;

    if (!nettrace->is_described[event])
        put_metadata(nettrace, event, at);
    nettrace->is_described[event] = true;
    if (nettrace->sequence == 0)
        put_stack(nettrace);

    bytes_init(&blob, SIZE_MAX - 1);
    bytes_put_u8(&blob, FLAGS_EVENT);
    put_varint(&blob, (uint64_t)event + 1);
    put_varint(&blob, nettrace->sequence++);
    put_varint(&blob, (uint64_t)getpid());
    put_varint(&blob, UINT32_MAX);
    put_varint(&blob, (uint64_t)getpid());
    put_varint(&blob, 1);
    put_varint(&blob, at);
    put_varint(&blob, payload->length);
    bytes_put_run(&blob, payload->data, payload->length);
    put_event_block(nettrace, "EventBlock", at, &blob);
    bytes_deinit(&blob);
}

void nettrace_end(struct nettrace *nettrace)
{
    struct bytes content;

    bytes_init(&content, SIZE_MAX - 1);
    bytes_put_u64(&content, ticks());
    bytes_put_u32(&content, 1);
    bytes_put_u64(&content, (uint64_t)getpid());
    bytes_put_u32(&content, nettrace->sequence);
    put_block(nettrace, "SPBlock", &content);
    bytes_deinit(&content);
    bytes_put_u8(&nettrace->out, TAG_NULL);
}

void nettrace_take(struct nettrace *nettrace, struct bytes *ret_bytes)
{
    *ret_bytes = nettrace->out;
    nettrace->taken += nettrace->out.length;
    bytes_init(&nettrace->out, SIZE_MAX - 1);
}
