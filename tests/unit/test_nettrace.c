/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/nettrace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"
#include "tests/unit/unit_nettrace.h"

static const struct nettrace_limits usual = {
    .block_max = 1024 * 1024,
    .payload_max = 65536,
    .metadata_max = 100,
    .metadata_text_max = 65536,
};

static const unsigned majors[] = {8, 9, 10, 11};

/* What was read, as lines of text, and how it ended. */
struct reading {
    struct bytes said;
    enum nettrace_result result;
    size_t taken;
    uint64_t offset;
    uint32_t refused_version;
    struct nettrace_trace trace;
    size_t n_events;
    size_t n_assigned;
};

static uint32_t sum(const uint8_t *bytes, size_t length)
{
    uint32_t value = 0;

    for (size_t i = 0; i < length; i++)
        value += (uint32_t)(i + 1) * bytes[i];
    return value;
}

static void say_event(struct bytes *said, const struct nettrace_event *event)
{
    const struct nettrace_metadata *metadata = event->metadata;

    bytes_put_format(said,
                     "event %s/%u/%s v%u l%u k%" PRIx64 " at %" PRIu64 " t%" PRIu64 " c%" PRIu64
                     " s%u p%x stack %u%s a%02x r%02x %u/%u:%u\n",
                     metadata->provider, metadata->event_id, metadata->name, metadata->version,
                     metadata->level, metadata->keywords, event->timestamp, event->thread,
                     event->capture_thread, event->sequence, event->processor, event->stack,
                     event->is_sorted ? " sorted" : "", event->activity.bytes[0],
                     event->related_activity.bytes[15], event->n_payload, event->payload_size,
                     sum(event->payload, event->n_payload));
}

static void say(struct reading *reading, const struct nettrace *nettrace)
{
    struct bytes *said = &reading->said;

    switch ((int)reading->result) {
    case NETTRACE_EVENT:
        reading->n_events++;
        say_event(said, &nettrace->event);
        break;
    case NETTRACE_STACK:
        bytes_put_format(said, "stack %u %u/%u:%u\n", nettrace->stack.id, nettrace->stack.n_bytes,
                         nettrace->stack.bytes_size,
                         sum(nettrace->stack.addresses, nettrace->stack.n_bytes));
        break;
    case NETTRACE_POINT:
        bytes_put_format(said, "point %" PRIu64 " %u\n", nettrace->point.timestamp,
                         nettrace->point.n_threads);
        break;
    case NETTRACE_POINT_THREAD:
        reading->n_assigned += nettrace->point_thread.sequence;
        bytes_put_format(said, "thread %" PRIu64 " %u\n", nettrace->point_thread.capture_thread,
                         nettrace->point_thread.sequence);
        break;
    }
}

/* Everything there is in one piece of the stream. */
static void feed_piece(struct reading *reading, struct nettrace *nettrace, const uint8_t *piece,
                       size_t length)
{
    size_t taken;

    do {
        reading->result = nettrace_feed(nettrace, piece, length, &taken);
        ck_assert_uint_le(taken, length);
        piece += taken;
        length -= taken;
        reading->taken += taken;
        say(reading, nettrace);
    } while (reading->result != NETTRACE_MORE && reading->result != NETTRACE_END &&
             !nettrace_is_error(reading->result));
    ck_assert(reading->result != NETTRACE_MORE || length == 0);
}

static struct reading read_with(const struct nettrace_limits *limits, const uint8_t *bytes,
                                size_t length, size_t step)
{
    struct reading reading = {.result = NETTRACE_MORE};
    struct nettrace nettrace;

    bytes_init(&reading.said, SIZE_MAX - 1);
    nettrace_init(&nettrace, limits);
    for (size_t at = 0; at < length && reading.result == NETTRACE_MORE;) {
        size_t n = length - at < step ? length - at : step;
        uint8_t *piece = unit_copy(bytes + at, n);

        feed_piece(&reading, &nettrace, piece, n);
        free(piece);
        at += n;
    }
    ck_assert_uint_eq(nettrace.offset, reading.taken);
    reading.offset = nettrace.offset;
    reading.refused_version = nettrace.refused_version;
    reading.trace = nettrace.trace;
    nettrace_deinit(&nettrace);
    ck_assert_int_eq(bytes_finish(&reading.said), 0);
    return reading;
}

static void assert_said(const struct bytes *stream, enum nettrace_result result, const char *said)
{
    static const size_t steps[] = {SIZE_MAX, 1, 2, 3, 7, 50, 1000};

    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        struct reading reading = read_with(&usual, stream->data, stream->length, steps[i]);

        ck_assert_str_eq((const char *)reading.said.data, said);
        ck_assert_int_eq(reading.result, result);
        bytes_deinit(&reading.said);
    }
}

/* Up to its last byte there is no end, and no other thing than before. */
static void assert_cuts(const struct bytes *stream)
{
    struct reading whole = read_with(&usual, stream->data, stream->length, SIZE_MAX);

    ck_assert_int_eq(whole.result, NETTRACE_END);
    for (size_t length = 0; length < stream->length; length++) {
        struct reading cut = read_with(&usual, stream->data, length, SIZE_MAX);

        ck_assert_int_eq(cut.result, NETTRACE_MORE);
        ck_assert_int_eq(memcmp(cut.said.data, whole.said.data, cut.said.length), 0);
        bytes_deinit(&cut.said);
    }
    bytes_deinit(&whole.said);
}

static struct bytes begin(void)
{
    struct bytes stream;

    bytes_init(&stream, SIZE_MAX - 1);
    unit_nettrace_begin(&stream);
    return stream;
}

static struct bytes empty(void)
{
    struct bytes bytes;

    bytes_init(&bytes, SIZE_MAX - 1);
    return bytes;
}

/* A payload of so many bytes. */
static struct bytes filled(size_t length)
{
    struct bytes bytes = empty();

    for (size_t i = 0; i < length; i++)
        bytes_put_u8(&bytes, (uint8_t)i);
    return bytes;
}

START_TEST(least_stream_is_read)
{
    struct bytes stream = begin();
    struct reading reading;

    ck_assert_uint_eq(stream.length, 102);
    assert_said(&stream, NETTRACE_MORE, "");
    bytes_put_u8(&stream, 1);
    assert_said(&stream, NETTRACE_END, "");
    assert_cuts(&stream);
    bytes_put_string(&stream, "behind");
    reading = read_with(&usual, stream.data, stream.length, SIZE_MAX);
    ck_assert_int_eq(reading.result, NETTRACE_END);
    ck_assert_uint_eq(reading.taken, 103);
    ck_assert_uint_eq(reading.trace.year, 2026);
    ck_assert_uint_eq(reading.trace.month, 11);
    ck_assert_uint_eq(reading.trace.day, 30);
    ck_assert_uint_eq(reading.trace.hour, 14);
    ck_assert_uint_eq(reading.trace.minute, 57);
    ck_assert_uint_eq(reading.trace.second, 25);
    ck_assert_uint_eq(reading.trace.millisecond, 42);
    ck_assert_uint_eq(reading.trace.sync_ticks, 1000);
    ck_assert_uint_eq(reading.trace.ticks_per_second, 3124099);
    ck_assert_uint_eq(reading.trace.pointer_size, 8);
    ck_assert_uint_eq(reading.trace.pid, 4711);
    ck_assert_uint_eq(reading.trace.n_processors, 2);
    ck_assert_uint_eq(reading.trace.sampling_ns, 1000000);
    bytes_deinit(&reading.said);
    bytes_deinit(&stream);
}
END_TEST

/* Three that take over from each other what the flags allow. */
static void put_compressed(struct bytes *content)
{
    struct bytes payload = filled(5);

    unit_nettrace_events(content, 1);
    unit_nettrace_event(content, 3, 0, &payload);
    bytes_put_u8(content, 0x00);
    unit_nettrace_varint(content, 172);
    bytes_put_run(content, payload.data, payload.length);
    bytes_put_u8(content, 0x30 | 0x80);
    unit_nettrace_varint(content, UINT64_MAX); /* one tick back */
    for (unsigned i = 0; i < 32; i++)
        bytes_put_u8(content, (uint8_t)(0x40 + i));
    unit_nettrace_varint(content, 0);
    bytes_put_u8(content, 0x02);
    unit_nettrace_varint(content, UINT32_MAX); /* the sequence stays where it is */
    unit_nettrace_varint(content, 8);
    unit_nettrace_varint(content, 1);
    unit_nettrace_varint(content, 0);
    bytes_deinit(&payload);
}

START_TEST(compressed_headers_are_read)
{
    struct bytes stream = begin(), content = empty();

    unit_nettrace_describe(&stream, 3, "Some-Provider", 299);
    put_compressed(&content);
    unit_nettrace_block(&stream, "EventBlock", &content);
    bytes_put_u8(&stream, 1);
    assert_said(&stream, NETTRACE_END,
                "event Some-Provider/299/ v2 l4 k8 at 5000 t7 c7 s1 pffffffff stack 1 sorted a00 "
                "r00 5/5:40\n"
                "event Some-Provider/299/ v2 l4 k8 at 5172 t7 c7 s2 pffffffff stack 1 a00 r00 "
                "5/5:40\n"
                "event Some-Provider/299/ v2 l4 k8 at 5171 t7 c7 s3 pffffffff stack 1 a40 r5f "
                "0/0:0\n"
                "event Some-Provider/299/ v2 l4 k8 at 5171 t7 c8 s3 p1 stack 1 a40 r5f 0/0:0\n");
    assert_cuts(&stream);
    bytes_deinit(&content);
    bytes_deinit(&stream);
}
END_TEST

/* Its size, with the padding or without it, as the format's description and the runtime have it. */
static void put_whole(struct bytes *content, uint32_t id, uint32_t size, size_t n_payload,
                      size_t padding)
{
    struct bytes payload = filled(n_payload);

    bytes_put_u32(content, size);
    bytes_put_u32(content, id);
    bytes_put_u32(content, 17);
    bytes_put_u64(content, 70);
    bytes_put_u64(content, 71);
    bytes_put_u32(content, 3);
    bytes_put_u32(content, 2);
    bytes_put_u64(content, 6000);
    for (unsigned i = 0; i < 32; i++)
        bytes_put_u8(content, (uint8_t)(0x40 + i));
    bytes_put_u32(content, (uint32_t)n_payload);
    bytes_put_run(content, payload.data, n_payload);
    for (size_t i = 0; i < padding; i++)
        bytes_put_u8(content, 0xEE);
    bytes_deinit(&payload);
}

START_TEST(whole_headers_are_read)
{
    struct bytes stream = begin(), content = empty();

    unit_nettrace_describe(&stream, 3, "P", 1);
    unit_nettrace_events(&content, 0);
    put_whole(&content, 3, 76 + 5, 5, 3);
    put_whole(&content, 0x80000003, 76 + 8, 5, 3);
    put_whole(&content, 3, 76 + 4, 4, 0);
    put_whole(&content, 3, 76 + 2, 2, 0);
    unit_nettrace_block(&stream, "EventBlock", &content);
    bytes_put_u8(&stream, 1);
    assert_said(&stream, NETTRACE_END,
                "event P/1/ v2 l4 k8 at 6000 t70 c71 s17 p3 stack 2 sorted a40 r5f 5/5:40\n"
                "event P/1/ v2 l4 k8 at 6000 t70 c71 s17 p3 stack 2 a40 r5f 5/5:40\n"
                "event P/1/ v2 l4 k8 at 6000 t70 c71 s17 p3 stack 2 sorted a40 r5f 4/4:20\n"
                "event P/1/ v2 l4 k8 at 6000 t70 c71 s17 p3 stack 2 sorted a40 r5f 2/2:2\n");
    assert_cuts(&stream);
    bytes_deinit(&content);
    bytes_deinit(&stream);
}
END_TEST

static void put_stacks(struct bytes *content)
{
    bytes_put_u32(content, 5);
    bytes_put_u32(content, 3);
    bytes_put_u32(content, 0);
    for (uint32_t size = 8; size <= 16; size += 8) {
        struct bytes addresses = filled(size);

        bytes_put_u32(content, size);
        bytes_put_run(content, addresses.data, size);
        bytes_deinit(&addresses);
    }
}

START_TEST(stacks_and_points_are_read)
{
    struct bytes stream = begin(), content = empty();

    put_stacks(&content);
    unit_nettrace_block(&stream, "StackBlock", &content);
    unit_nettrace_point(&stream, 48);
    bytes_deinit(&content);
    bytes_put_u32(&content, 9);
    bytes_put_u32(&content, 0);
    unit_nettrace_block(&stream, "StackBlock", &content);
    bytes_put_u32(&content, 0);
    unit_nettrace_block(&stream, "SPBlock", &content);
    bytes_put_u8(&stream, 1);
    assert_said(&stream, NETTRACE_END,
                "stack 5 0/0:0\nstack 6 8/8:168\nstack 7 16/16:1360\n"
                "point 9000 1\nthread 7 48\npoint 9 0\n");
    assert_cuts(&stream);
    bytes_deinit(&content);
    bytes_deinit(&stream);
}
END_TEST

/* Versions that old readers can still read have more in them; what is unknown is passed over. */
static void put_newer(struct bytes *stream, const char *name, uint32_t reader,
                      const struct bytes *content)
{
    unit_nettrace_open(stream, name, 3, reader);
    bytes_put_u32(stream, (uint32_t)content->length);
    while (stream->length % 4 != 0)
        bytes_put_u8(stream, 0);
    bytes_put_run(stream, content->data, content->length);
    bytes_put_u8(stream, 6);
}

START_TEST(what_is_newer_is_passed_over)
{
    struct bytes stream = begin(), content = empty(), payload = filled(3);

    unit_nettrace_describe(&stream, 3, "P", 1);
    bytes_put_u16(&content, 24);
    bytes_put_u16(&content, 1 | 0x8000);
    for (unsigned i = 0; i < 5; i++)
        bytes_put_u32(&content, 0x11111111);
    unit_nettrace_event(&content, 3, 0, &payload);
    put_newer(&stream, "EventBlock", 2, &content);
    bytes_deinit(&content);
    put_stacks(&content);
    bytes_put_string(&content, "more");
    put_newer(&stream, "StackBlock", 1, &content);
    put_newer(&stream, "NewBlock", 9, &content);
    bytes_deinit(&content);
    put_newer(&stream, "Empty", 9, &content);
    bytes_put_u8(&stream, 1);
    assert_said(&stream, NETTRACE_END,
                "event P/1/ v2 l4 k8 at 5000 t7 c7 s1 pffffffff stack 1 sorted a00 r00 3/3:8\n"
                "stack 5 0/0:0\nstack 6 8/8:168\nstack 7 16/16:1360\n");
    assert_cuts(&stream);
    bytes_deinit(&payload);
    bytes_deinit(&content);
    bytes_deinit(&stream);
}
END_TEST

static void assert_version(struct bytes *stream, uint32_t version)
{
    for (size_t step = 1; step <= stream->length; step++) {
        struct reading reading = read_with(&usual, stream->data, stream->length, step);

        ck_assert_int_eq(reading.result, NETTRACE_E_VERSION);
        ck_assert_uint_eq(reading.refused_version, version);
        bytes_deinit(&reading.said);
    }
    bytes_deinit(stream);
}

START_TEST(versions_that_are_not_known_are_named)
{
    struct bytes stream = begin(), content = empty();

    /* each is more than its reader has to know, or less than the format had */
    put_newer(&stream, "EventBlock", 3, &content);
    assert_version(&stream, 3);
    stream = begin();
    unit_nettrace_open(&stream, "EventBlock", 1, 0);
    assert_version(&stream, 1);

    bytes_put_run(&stream, "Nettrace\x14\0\0\0!FastSerialization.1", 32);
    unit_nettrace_open(&stream, "Trace", 5, 5);
    assert_version(&stream, 5);
    bytes_put_run(&stream, "Nettrace\x14\0\0\0!FastSerialization.1", 32);
    unit_nettrace_open(&stream, "Trace", 3, 0);
    assert_version(&stream, 3);

    /* the format that comes next has another container */
    bytes_put_run(&stream, "Nettrace\0\0\0\0\6\0\0\0\0\0\0\0", 20);
    assert_version(&stream, 6);
}
END_TEST

/* One byte of a stream that is otherwise right, and what is made of it. */
START_TEST(damage_is_found)
{
    static const struct {
        size_t at;
        uint8_t byte;
        enum nettrace_result result;
    } cases[] = {
        {0, 'n', NETTRACE_E_MAGIC},  {7, 'E', NETTRACE_E_MAGIC},   {8, 21, NETTRACE_E_MAGIC},
        {11, 1, NETTRACE_E_MAGIC},   {12, '?', NETTRACE_E_MAGIC},  {31, '2', NETTRACE_E_MAGIC},
        {32, 1, NETTRACE_E_OBJECT},  {32, 6, NETTRACE_E_OBJECT},   {33, 1, NETTRACE_E_OBJECT},
        {34, 5, NETTRACE_E_OBJECT},  {43, 0, NETTRACE_E_OBJECT},   {43, 65, NETTRACE_E_OBJECT},
        {43, 6, NETTRACE_E_OBJECT},  {46, 1, NETTRACE_E_OBJECT},   {47, 't', NETTRACE_E_OBJECT},
        {52, 5, NETTRACE_E_OBJECT},  {55, 0, NETTRACE_E_TRACE},    {55, 13, NETTRACE_E_TRACE},
        {57, 7, NETTRACE_E_TRACE},   {59, 0, NETTRACE_E_TRACE},    {59, 32, NETTRACE_E_TRACE},
        {61, 24, NETTRACE_E_TRACE},  {63, 60, NETTRACE_E_TRACE},   {65, 61, NETTRACE_E_TRACE},
        {68, 4, NETTRACE_E_TRACE},   {84, 0xFF, NETTRACE_E_TRACE}, {85, 2, NETTRACE_E_TRACE},
        {101, 1, NETTRACE_E_OBJECT}, {102, 6, NETTRACE_E_OBJECT},
    };
    struct bytes stream = begin();

    bytes_put_u8(&stream, 1);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        uint8_t was = stream.data[cases[i].at];

        stream.data[cases[i].at] = cases[i].byte;
        for (size_t step = 1; step <= stream.length; step += 50) {
            struct reading reading = read_with(&usual, stream.data, stream.length, step);

            ck_assert_msg(reading.result == cases[i].result, "byte %zu: %u", cases[i].at,
                          reading.result);
            bytes_deinit(&reading.said);
        }
        stream.data[cases[i].at] = was;
    }
    memset(stream.data + 77, 0, 8); /* no ticks in a second */
    assert_said(&stream, NETTRACE_E_TRACE, "");
    bytes_deinit(&stream);
}
END_TEST

static void assert_block(const char *name, struct bytes *content, enum nettrace_result result)
{
    struct bytes stream = begin();

    unit_nettrace_describe(&stream, 3, "P", 1);
    unit_nettrace_block(&stream, name, content);
    bytes_put_u8(&stream, 1);
    for (size_t step = 1; step <= stream.length; step++) {
        struct reading reading = read_with(&usual, stream.data, stream.length, step);

        ck_assert_msg(reading.result == result, "%s is %u, not %u", name, reading.result, result);
        bytes_deinit(&reading.said);
    }
    bytes_deinit(&stream);
    bytes_deinit(content);
}

static struct bytes events(uint16_t flags)
{
    struct bytes content = empty();

    unit_nettrace_events(&content, flags);
    return content;
}

START_TEST(blocks_have_to_add_up)
{
    struct bytes content = empty();

    /* too short for its head, and a head that is too short or longer than its block */
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);
    assert_block("StackBlock", &content, NETTRACE_E_BLOCK);
    assert_block("SPBlock", &content, NETTRACE_E_BLOCK);
    content = filled(19);
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);
    content = events(1);
    content.data[0] = 19;
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);
    content = events(1);
    content.data[0] = 21;
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);

    /* stacks: the id 0, ids that wrap, more than there is room for, halves of addresses, a rest */
    for (unsigned i = 0; i < 5; i++) {
        bytes_put_u32(&content, i == 0 ? 0 : i == 1 ? UINT32_MAX : 1);
        bytes_put_u32(&content, i == 2 ? 2 : 1);
        bytes_put_u32(&content, i == 3 ? 4 : 0);
        if (i >= 3)
            bytes_put_u32(&content, 0);
        assert_block("StackBlock", &content, NETTRACE_E_BLOCK);
    }
    bytes_put_u32(&content, 1);
    bytes_put_u32(&content, 1);
    bytes_put_u32(&content, 8);
    assert_block("StackBlock", &content, NETTRACE_E_BLOCK);

    /* points: more threads than there is room for, and a rest */
    bytes_put_u64(&content, 1);
    bytes_put_u32(&content, 1);
    assert_block("SPBlock", &content, NETTRACE_E_BLOCK);
    bytes_put_u64(&content, 1);
    bytes_put_u32(&content, 0);
    bytes_put_u8(&content, 0);
    assert_block("SPBlock", &content, NETTRACE_E_BLOCK);
}
END_TEST

START_TEST(events_have_to_be_whole_and_described)
{
    struct bytes content, payload = filled(4);

    /* nothing describes 0 or 4, and a description is nothing else */
    content = events(1);
    unit_nettrace_event(&content, 0, 0, &payload);
    assert_block("EventBlock", &content, NETTRACE_E_EVENT);
    content = events(1);
    unit_nettrace_event(&content, 4, 0, &payload);
    assert_block("EventBlock", &content, NETTRACE_E_EVENT);
    content = events(1);
    unit_nettrace_event(&content, 3, 0, &payload);
    assert_block("MetadataBlock", &content, NETTRACE_E_EVENT);

    /* the payload, or the header, goes beyond the block */
    content = events(1);
    unit_nettrace_event(&content, 3, 0, &payload);
    content.length--;
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);
    content = events(1);
    bytes_put_u8(&content, 0x03);
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);
    content = events(0);
    put_whole(&content, 3, 76, 0, 0);
    content.length--;
    assert_block("EventBlock", &content, NETTRACE_E_BLOCK);

    /* sizes that do not belong together */
    content = events(0);
    put_whole(&content, 3, 76 + 3, 4, 0);
    assert_block("EventBlock", &content, NETTRACE_E_EVENT);
    content = events(0);
    put_whole(&content, 3, 76 + 5, 4, 4);
    assert_block("EventBlock", &content, NETTRACE_E_EVENT);
    bytes_deinit(&payload);
}
END_TEST

/* Numbers in groups of seven bits: the largest, and one that is larger. */
START_TEST(numbers_end_where_their_type_does)
{
    static const struct {
        uint8_t flags;
        const char *bytes;
        bool is_read;
    } cases[] = {
        {0x01, "83 80 80 80 00", true},
        {0x01, "83 80 80 80 80 00", false},
        {0x01, "83 80 80 80 10", false},
        {0x05, "03 FF FF FF FF FF FF FF FF FF 01", true},
        {0x05, "03 FF FF FF FF FF FF FF FF FF 02", false},
        {0x05, "03 FF FF FF FF FF FF FF FF FF 81 00", false},
        {0x09, "03 FF FF FF FF 0F", true},
        {0x09, "03 FF FF FF FF 1F", false},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct unit_bytes bytes = unit_vector(cases[i].bytes);
        struct bytes content = events(1);

        bytes_put_u8(&content, cases[i].flags);
        bytes_put_run(&content, bytes.data, bytes.length);
        bytes_put_u8(&content, 0); /* the time */
        assert_block("EventBlock", &content, cases[i].is_read ? NETTRACE_END : NETTRACE_E_EVENT);
    }
}
END_TEST

START_TEST(descriptions_have_to_be_whole_and_once)
{
    struct bytes content, payload = empty();

    unit_nettrace_description(&payload, 4, "Provider", 7, "Name", 8);
    for (size_t length = 0; length <= payload.length; length++) {
        struct bytes cut = {payload.data, length, 0, 0, 0};

        content = events(1);
        unit_nettrace_event(&content, 0, UINT32_MAX, &cut);
        assert_block("MetadataBlock", &content,
                     length < payload.length ? NETTRACE_E_METADATA : NETTRACE_END);
    }
    /* more behind it is for others */
    bytes_put_string(&payload, "fields and more");
    content = events(1);
    unit_nettrace_event(&content, 0, UINT32_MAX, &payload);
    assert_block("MetadataBlock", &content, NETTRACE_END);
    /* the third is there already, and 0 is none */
    payload.data[0] = 3;
    content = events(1);
    unit_nettrace_event(&content, 0, UINT32_MAX, &payload);
    assert_block("MetadataBlock", &content, NETTRACE_E_METADATA);
    payload.data[0] = 0;
    content = events(1);
    unit_nettrace_event(&content, 0, UINT32_MAX, &payload);
    assert_block("MetadataBlock", &content, NETTRACE_E_METADATA);
    bytes_deinit(&payload);
}
END_TEST

/* In any order, and found by their ids. */
START_TEST(descriptions_are_found)
{
    struct bytes stream = begin(), payload = empty();
    struct reading reading;
    uint32_t id;

    for (id = 1; id < 100; id += 2)
        unit_nettrace_describe(&stream, id, "Odd", 1000 + id);
    for (id = 98; id > 0; id -= 2)
        unit_nettrace_describe(&stream, id, "Even", 1000 + id);
    for (id = 1; id < 100; id++)
        unit_nettrace_tell(&stream, id, 0, &payload);
    reading = read_with(&usual, stream.data, stream.length, SIZE_MAX);
    ck_assert_int_eq(reading.result, NETTRACE_MORE);
    ck_assert_uint_eq(reading.n_events, 99);
    for (id = 1; id < 100; id++) {
        char expected[64];

        snprintf(expected, sizeof expected, "event %s/%u/ ", id % 2 ? "Odd" : "Even", 1000 + id);
        ck_assert_ptr_nonnull(strstr((const char *)reading.said.data, expected));
    }
    bytes_deinit(&reading.said);
    bytes_deinit(&stream);
    bytes_deinit(&payload);
}
END_TEST

static void assert_limited(const struct bytes *stream, const struct nettrace_limits *limits,
                           enum nettrace_result result)
{
    struct reading reading = read_with(limits, stream->data, stream->length, 1);

    ck_assert_int_eq(reading.result, result);
    bytes_deinit(&reading.said);
}

START_TEST(limits_are_kept)
{
    struct bytes stream = begin(), payload = filled(100);
    struct nettrace_limits limits = usual;

    unit_nettrace_describe(&stream, 1, "Provider", 1);
    unit_nettrace_describe(&stream, 2, "Provider", 2);
    unit_nettrace_tell(&stream, 1, 0, &payload);
    bytes_put_u8(&stream, 1);

    limits.metadata_max = 2;
    assert_limited(&stream, &limits, NETTRACE_END);
    limits.metadata_max = 1;
    assert_limited(&stream, &limits, NETTRACE_E_LIMIT);

    limits = usual;
    limits.metadata_text_max = 20; /* the names and their ends, twice */
    assert_limited(&stream, &limits, NETTRACE_END);
    limits.metadata_text_max = 19;
    assert_limited(&stream, &limits, NETTRACE_E_LIMIT);

    limits = usual;
    limits.block_max = 20 + 14 + 100; /* the head of the block, of the event, and the payload */
    assert_limited(&stream, &limits, NETTRACE_END);
    limits.block_max--;
    assert_limited(&stream, &limits, NETTRACE_E_LIMIT);

    limits = usual;
    limits.payload_max = 10; /* too few for a description */
    assert_limited(&stream, &limits, NETTRACE_E_LIMIT);
    bytes_deinit(&stream);
    bytes_deinit(&payload);
}
END_TEST

START_TEST(long_payloads_are_cut)
{
    struct bytes stream = begin(), payload = filled(100), content = empty();
    struct nettrace_limits limits = usual;

    limits.payload_max = 64;
    unit_nettrace_describe(&stream, 1, "P", 1);
    unit_nettrace_tell(&stream, 1, 0, &payload);
    bytes_put_u32(&content, 1);
    bytes_put_u32(&content, 1);
    bytes_put_u32(&content, 72);
    bytes_put_run(&content, payload.data, 72);
    unit_nettrace_block(&stream, "StackBlock", &content);
    bytes_put_u8(&stream, 1);
    for (size_t step = 1; step <= stream.length; step++) {
        struct reading reading = read_with(&limits, stream.data, stream.length, step);

        ck_assert_int_eq(reading.result, NETTRACE_END);
        ck_assert_str_eq((const char *)reading.said.data,
                         "event P/1/ v2 l4 k8 at 5000 t7 c7 s1 pffffffff stack 1 sorted a00 r00 "
                         "64/100:87360\nstack 1 64/72:87360\n");
        bytes_deinit(&reading.said);
    }
    bytes_deinit(&content);
    bytes_deinit(&stream);
    bytes_deinit(&payload);
}
END_TEST

/* A block that is larger than a runtime's may be never gets there. */
START_TEST(impossible_sizes_are_refused)
{
    static const uint32_t sizes[] = {INT32_MAX, UINT32_C(0x80000000), UINT32_MAX};

    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        struct bytes stream = begin();

        unit_nettrace_open(&stream, "Whatever", 2, 2);
        bytes_put_u32(&stream, sizes[i]);
        assert_said(&stream, i == 0 ? NETTRACE_E_LIMIT : NETTRACE_E_BLOCK, "");
        bytes_deinit(&stream);
    }
}
END_TEST

START_TEST(end_and_errors_are_final)
{
    struct bytes stream = begin();
    struct nettrace nettrace;
    size_t taken;

    bytes_put_u8(&stream, 1);
    nettrace_init(&nettrace, &usual);
    ck_assert_int_eq(nettrace_feed(&nettrace, stream.data, stream.length, &taken), NETTRACE_END);
    ck_assert_int_eq(nettrace_feed(&nettrace, stream.data, stream.length, &taken), NETTRACE_END);
    ck_assert_uint_eq(taken, 0);
    nettrace_deinit(&nettrace);

    /* and it is as new */
    ck_assert_int_eq(nettrace_feed(&nettrace, (const uint8_t *)"n", 1, &taken), NETTRACE_E_MAGIC);
    ck_assert_int_eq(nettrace_feed(&nettrace, stream.data, stream.length, &taken),
                     NETTRACE_E_MAGIC);
    ck_assert_uint_eq(taken, 0);
    nettrace_deinit(&nettrace);
    bytes_deinit(&stream);
}
END_TEST

START_TEST(second_trace_and_early_blocks_are_refused)
{
    struct bytes stream = begin();

    unit_nettrace_open(&stream, "Trace", 4, 4);
    assert_said(&stream, NETTRACE_E_OBJECT, "");
    bytes_deinit(&stream);
    bytes_put_run(&stream, "Nettrace\x14\0\0\0!FastSerialization.1", 32);
    unit_nettrace_open(&stream, "EventBlock", 2, 2);
    assert_said(&stream, NETTRACE_E_OBJECT, "");
    stream.length = 32;
    bytes_put_u8(&stream, 1);
    assert_said(&stream, NETTRACE_E_OBJECT, "");
    bytes_deinit(&stream);
}
END_TEST

/* Each of the same events in pieces of every kind, as many as were numbered, and an end. */
static void assert_recorded(const char *name, unsigned major, bool has_end)
{
    static const size_t steps[] = {1, 5, 97, 4096};
    struct bytes stream = unit_nettrace_recorded(name, major);
    struct reading whole = read_with(&usual, stream.data, stream.length, SIZE_MAX);

    ck_assert_int_eq(whole.result, has_end ? NETTRACE_END : NETTRACE_MORE);
    ck_assert_uint_eq(whole.taken, stream.length);
    ck_assert_uint_eq(whole.trace.year, 2026);
    ck_assert_uint_eq(whole.trace.ticks_per_second, 1000000000);
    if (has_end)
        ck_assert_uint_eq(whole.n_assigned, whole.n_events);
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        struct reading other = read_with(&usual, stream.data, stream.length, steps[i]);

        ck_assert_int_eq(other.result, whole.result);
        ck_assert_str_eq((const char *)other.said.data, (const char *)whole.said.data);
        bytes_deinit(&other.said);
    }
    bytes_deinit(&whole.said);
    bytes_deinit(&stream);
}

START_TEST(recorded_streams_are_read)
{
    static const struct {
        const char *name;
        bool has_end;
    } names[] = {
        {"loaded", true}, {"older", true},          {"second", true},
        {"hook", true},   {"hooks-profiler", true}, {"hook-throws", false},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        for (size_t j = 0; j < ARRAY_LENGTH(majors); j += unit_share())
            assert_recorded(names[i].name, majors[j], names[i].has_end);
    }
    assert_recorded("profiler-aborts", 11, false);
}
END_TEST

START_TEST(cuts_of_recorded_streams_want_more)
{
    for (size_t i = 0; i < ARRAY_LENGTH(majors); i += unit_share()) {
        struct bytes stream = unit_nettrace_recorded("loaded", majors[i]);

        assert_cuts(&stream);
        bytes_deinit(&stream);
    }
}
END_TEST

/* Whatever is changed in it, the same is made of it in one piece and in many. */
START_TEST(changed_streams_do_no_harm)
{
    struct bytes stream = unit_nettrace_recorded("second", 9);
    uint64_t state = 20261130;

    for (size_t i = 0; i < 500; i += unit_share()) {
        uint8_t *copy = unit_copy(stream.data, stream.length);
        struct reading whole, pieces;

        for (unsigned n = unit_random(&state) % 4 + 1; n > 0; n--)
            copy[unit_random(&state) % stream.length] = (uint8_t)unit_random(&state);
        whole = read_with(&usual, copy, stream.length, SIZE_MAX);
        pieces = read_with(&usual, copy, stream.length, 1 + unit_random(&state) % 60);
        ck_assert_int_eq(whole.result, pieces.result);
        ck_assert_str_eq((const char *)whole.said.data, (const char *)pieces.said.data);
        bytes_deinit(&whole.said);
        bytes_deinit(&pieces.said);
        free(copy);
    }
    bytes_deinit(&stream);
}
END_TEST

static int read_all(void *context)
{
    const struct bytes *stream = context;
    enum nettrace_result result = NETTRACE_MORE;
    struct nettrace nettrace;
    size_t at = 0;

    nettrace_init(&nettrace, &usual);
    while (result != NETTRACE_END && !nettrace_is_error(result)) {
        size_t taken;

        result = nettrace_feed(&nettrace, stream->data + at, stream->length - at, &taken);
        at += taken;
    }
    nettrace_deinit(&nettrace);
    return result == NETTRACE_END ? 0 : result == NETTRACE_E_MEMORY ? -ENOMEM : -EINVAL;
}

START_TEST(running_out_of_memory_is_said)
{
    struct bytes stream = unit_nettrace_recorded("hook", 10), content = empty();

    ck_assert_uint_gt(unit_memory_exhaust(read_all, &stream, -ENOMEM), 10);
    bytes_deinit(&stream);

    /* stacks before anything else */
    stream = begin();
    put_stacks(&content);
    unit_nettrace_block(&stream, "StackBlock", &content);
    bytes_put_u8(&stream, 1);
    ck_assert_uint_gt(unit_memory_exhaust(read_all, &stream, -ENOMEM), 1);
    bytes_deinit(&content);
    bytes_deinit(&stream);
}
END_TEST

START_TEST(results_have_texts)
{
    ck_assert_str_eq(nettrace_result_text(NETTRACE_MORE), "");
    ck_assert_str_eq(nettrace_result_text(NETTRACE_END), "");
    for (int i = NETTRACE_E_MAGIC; i <= NETTRACE_E_MEMORY; i++) {
        ck_assert(nettrace_is_error((enum nettrace_result)i));
        ck_assert_str_ne(nettrace_result_text((enum nettrace_result)i), "");
    }
}
END_TEST

UNIT_TESTS(least_stream_is_read, compressed_headers_are_read, whole_headers_are_read,
           stacks_and_points_are_read, what_is_newer_is_passed_over,
           versions_that_are_not_known_are_named, damage_is_found, blocks_have_to_add_up,
           events_have_to_be_whole_and_described, numbers_end_where_their_type_does,
           descriptions_have_to_be_whole_and_once, descriptions_are_found, limits_are_kept,
           long_payloads_are_cut, impossible_sizes_are_refused, end_and_errors_are_final,
           second_trace_and_early_blocks_are_refused, recorded_streams_are_read,
           cuts_of_recorded_streams_want_more, changed_streams_do_no_harm,
           running_out_of_memory_is_said, results_have_texts);
