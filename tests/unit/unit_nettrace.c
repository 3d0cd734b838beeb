/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_nettrace.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"

enum { TAG_NULL = 1, TAG_BEGIN = 5, TAG_END = 6 };

void unit_nettrace_open(struct bytes *out, const char *name, uint32_t version, uint32_t reader)
{
    bytes_put_u8(out, TAG_BEGIN);
    bytes_put_u8(out, TAG_BEGIN);
    bytes_put_u8(out, TAG_NULL);
    bytes_put_u32(out, version);
    bytes_put_u32(out, reader);
    bytes_put_u32(out, (uint32_t)strlen(name));
    bytes_put_string(out, name);
    bytes_put_u8(out, TAG_END);
}

void unit_nettrace_begin(struct bytes *out)
{
    static const uint16_t calendar[] = {2026, 11, 1, 30, 14, 57, 25, 42};

    bytes_put_string(out, "Nettrace");
    bytes_put_u32(out, 20);
    bytes_put_string(out, "!FastSerialization.1");
    unit_nettrace_open(out, "Trace", 4, 4);
    for (size_t i = 0; i < ARRAY_LENGTH(calendar); i++)
        bytes_put_u16(out, calendar[i]);
    bytes_put_u64(out, 1000);
    bytes_put_u64(out, 3124099);
    bytes_put_u32(out, 8);
    bytes_put_u32(out, 4711);
    bytes_put_u32(out, 2);
    bytes_put_u32(out, 1000000);
    bytes_put_u8(out, TAG_END);
}

void unit_nettrace_block(struct bytes *out, const char *name, const struct bytes *content)
{
    unit_nettrace_open(out, name, 2, 2);
    bytes_put_u32(out, (uint32_t)content->length);
    while (out->length % 4 != 0)
        bytes_put_u8(out, 0);
    bytes_put_run(out, content->data, content->length);
    bytes_put_u8(out, TAG_END);
}

void unit_nettrace_events(struct bytes *content, uint16_t flags)
{
    bytes_put_u16(content, 20);
    bytes_put_u16(content, flags);
    bytes_put_u64(content, 1);
    bytes_put_u64(content, 2);
}

void unit_nettrace_varint(struct bytes *out, uint64_t value)
{
    while (value >= 0x80) {
        bytes_put_u8(out, (uint8_t)(value | 0x80));
        value >>= 7;
    }
    bytes_put_u8(out, (uint8_t)value);
}

void unit_nettrace_text(struct bytes *out, const char *text)
{
    ck_assert(text_put_utf16(out, text));
    bytes_put_u16(out, 0);
}

void unit_nettrace_event(struct bytes *content, uint32_t id, uint32_t sequence_step,
                         const struct bytes *payload)
{
    bytes_put_u8(content, 0xCF);
    unit_nettrace_varint(content, id);
    unit_nettrace_varint(content, sequence_step);
    unit_nettrace_varint(content, 7);
    unit_nettrace_varint(content, UINT32_MAX);
    unit_nettrace_varint(content, 7);
    unit_nettrace_varint(content, 1);
    unit_nettrace_varint(content, 5000);
    unit_nettrace_varint(content, payload->length);
    bytes_put_run(content, payload->data, payload->length);
}

void unit_nettrace_description(struct bytes *payload, uint32_t id, const char *provider,
                               uint32_t event_id, const char *name, uint64_t keywords)
{
    bytes_put_u32(payload, id);
    unit_nettrace_text(payload, provider);
    bytes_put_u32(payload, event_id);
    unit_nettrace_text(payload, name);
    bytes_put_u64(payload, keywords);
    bytes_put_u32(payload, 2);
    bytes_put_u32(payload, 4);
    bytes_put_u32(payload, 0);
}

static void put_one(struct bytes *out, const char *name, uint32_t id, uint32_t sequence_step,
                    const struct bytes *payload)
{
    struct bytes content;

    bytes_init(&content, SIZE_MAX - 1);
    unit_nettrace_events(&content, 1);
    unit_nettrace_event(&content, id, sequence_step, payload);
    unit_nettrace_block(out, name, &content);
    bytes_deinit(&content);
}

void unit_nettrace_describe(struct bytes *out, uint32_t id, const char *provider, uint32_t event_id)
{
    struct bytes payload;

    bytes_init(&payload, SIZE_MAX - 1);
    unit_nettrace_description(&payload, id, provider, event_id, "", 8);
    put_one(out, "MetadataBlock", 0, UINT32_MAX, &payload);
    bytes_deinit(&payload);
}

void unit_nettrace_tell(struct bytes *out, uint32_t id, uint32_t sequence_step,
                        const struct bytes *payload)
{
    put_one(out, "EventBlock", id, sequence_step, payload);
}

void unit_nettrace_point(struct bytes *out, uint32_t sequence)
{
    struct bytes content;

    bytes_init(&content, SIZE_MAX - 1);
    bytes_put_u64(&content, 9000);
    bytes_put_u32(&content, 1);
    bytes_put_u64(&content, 7);
    bytes_put_u32(&content, sequence);
    unit_nettrace_block(out, "SPBlock", &content);
    bytes_deinit(&content);
}

struct bytes unit_nettrace_recorded(const char *name, unsigned major)
{
    static uint8_t data[UNIT_NETTRACE_RECORDED_MAX];
    struct bytes recorded;
    char path[4096];
    FILE *file;
    size_t length;

    snprintf(path, sizeof path, "%s/nettrace/%s-%u.nettrace", FIXTURES, name, major);
    file = fopen(path, "r");
    ck_assert_msg(file, "%s cannot be read", path);
    length = fread(data, 1, sizeof data, file);
    fclose(file);
    ck_assert_uint_lt(length, sizeof data);
    bytes_init(&recorded, SIZE_MAX - 1);
    bytes_put_run(&recorded, data, length);
    return recorded;
}
