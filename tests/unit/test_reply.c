/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/hresult.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

/* Feeds in pieces of `step` bytes, each in a block of its own. */
static enum reply_result feed(struct reply *reply, const uint8_t *bytes, size_t length, size_t step,
                              size_t *ret_taken)
{
    enum reply_result result = REPLY_MORE;
    size_t total = 0;

    while (result == REPLY_MORE && total < length) {
        size_t piece = length - total < step ? length - total : step, taken;
        uint8_t *copy = unit_copy(bytes + total, piece);

        result = reply_feed(reply, copy, piece, &taken);
        free(copy);
        ck_assert_uint_le(taken, piece);
        ck_assert(result != REPLY_MORE || taken == piece);
        total += taken;
    }
    *ret_taken = total;
    return result;
}

/* A whole reply, with three more bytes behind it that are not its own, in pieces of every size. */
static void assert_reply(const char *vector, bool is_ok, uint32_t hresult, const char *payload)
{
    struct unit_bytes bytes = unit_vector(vector);

    for (size_t step = 1; step <= bytes.length + 3; step++) {
        struct reply reply;
        size_t taken;

        reply_init(&reply);
        memcpy(bytes.data + bytes.length, "\1\2\3", 3);
        ck_assert_int_eq(feed(&reply, bytes.data, bytes.length + 3, step, &taken), REPLY_WHOLE);
        ck_assert_uint_eq(taken, bytes.length);
        ck_assert(reply_is_ok(&reply) == is_ok);
        ck_assert_uint_eq(reply_hresult(&reply), hresult);
        unit_assert_bytes(reply.payload, reply.n_payload, payload);
        reply_deinit(&reply);
    }
    for (size_t length = 0; length < bytes.length; length++) {
        struct reply reply;
        size_t taken;

        reply_init(&reply);
        ck_assert_int_eq(feed(&reply, bytes.data, length, bytes.length, &taken), REPLY_MORE);
        ck_assert_uint_eq(taken, length);
        reply_deinit(&reply);
    }
}

/* Vectors 13 to 18 and 20 of the protocol. */
START_TEST(replies_are_read)
{
    assert_reply("M 18 00 FF 00 00 00 00 00 00 00", true, HRESULT_OK, "00 00 00 00");
    assert_reply("M 1C 00 FF 00 00 00 78 56 34 12 00 7F 00 00", true, 0x12345678,
                 "78 56 34 12 00 7F 00 00");
    assert_reply("M 18 00 FF FF 00 00 85 13 13 80", false, HRESULT_UNKNOWN_COMMAND, "85 13 13 80");
    assert_reply("M 18 00 FF FF 00 00 57 00 07 80", false, HRESULT_INVALID_ARGUMENT, "57 00 07 80");
    assert_reply("M 18 00 FF FF 00 00 84 13 13 80", false, HRESULT_BAD_ENCODING, "84 13 13 80");
    assert_reply("M 18 00 FF FF 00 00 5B 13 13 80", false, HRESULT_NOT_YET_AVAILABLE,
                 "5B 13 13 80");
    assert_reply("M 1A 00 FF 00 00 00 1A 00 00 00 00 00", true, 26, "1A 00 00 00 00 00");
}
END_TEST

/* Vector 19: the one error with a text behind its code. */
START_TEST(dump_error_carries_a_text)
{
    static const char vector[] = "M 22 00 FF FF 00 00 05 40 00 80 03 00 00 00 6E 00 6F 00 00 00";
    struct unit_bytes bytes = unit_vector(vector);
    struct bytes_reader reader;
    struct reply reply;
    uint32_t hresult;
    size_t taken;
    char *text;

    assert_reply(vector, false, HRESULT_FAIL, "05 40 00 80 03 00 00 00 6E 00 6F 00 00 00");
    reply_init(&reply);
    ck_assert_int_eq(feed(&reply, bytes.data, bytes.length, 5, &taken), REPLY_WHOLE);
    reader = bytes_reader_over(reply.payload, reply.n_payload);
    ck_assert(bytes_get_u32(&reader, &hresult));
    ck_assert_uint_eq(hresult, HRESULT_FAIL);
    ck_assert(wire_get_string(&reader, &text));
    ck_assert_str_eq(text, "no");
    ck_assert_uint_eq(reader.left, 0);
    free(text);
    reply_deinit(&reply);
}
END_TEST

/* NativeAOT has answered an error with a code that looks like success; only the id counts. */
START_TEST(id_decides_whether_it_is_ok)
{
    assert_reply("M 18 00 FF FF 00 00 FF FF 00 00", false, 0x0000FFFF, "FF FF 00 00");
    assert_reply("M 18 00 FF FF 00 00 00 00 00 00", false, HRESULT_OK, "00 00 00 00");
    assert_reply("M 18 00 FF 00 00 00 05 40 00 80", true, HRESULT_FAIL, "05 40 00 80");
}
END_TEST

/* The runtime does not send these, but they would be understood. */
START_TEST(short_payloads_are_read)
{
    assert_reply("M 14 00 FF 00 00 00", true, 0, "");
    assert_reply("M 14 00 FF FF 00 00", false, 0, "");
    assert_reply("M 17 00 FF FF 00 00 01 02 03", false, 0, "01 02 03");
}
END_TEST

static void assert_refused(const char *vector, enum reply_result expected)
{
    struct unit_bytes bytes = unit_vector(vector);

    for (size_t step = 1; step <= bytes.length; step++) {
        struct reply reply;
        size_t taken;

        reply_init(&reply);
        ck_assert_int_eq(feed(&reply, bytes.data, bytes.length, step, &taken), expected);
        ck_assert_ptr_null(reply.payload);
        reply_deinit(&reply);
    }
}

START_TEST(what_is_no_reply_is_refused)
{
    assert_refused("M 13 00 FF 00 00 00", REPLY_E_SIZE);
    assert_refused("M 00 00 FF 00 00 00", REPLY_E_SIZE);
    /* a request, and an id that no reply has */
    assert_refused("M 14 00 04 00 00 00", REPLY_E_SET);
    assert_refused("M 18 00 FF 01 00 00 00 00 00 00", REPLY_E_SET);
    /* as soon as the first wrong byte is there */
    assert_refused("45", REPLY_E_MAGIC);
    assert_refused("44 4F 54 4E 45 54 5F 49 50 43 5F 56 32", REPLY_E_MAGIC);
    /* an advertise where a reply is due */
    assert_refused("41 44 56 52 5F 56 31 00 C", REPLY_E_MAGIC);
}
END_TEST

START_TEST(largest_reply_is_read)
{
    struct unit_bytes header = unit_vector("M FF FF FF 00 00 00");
    uint8_t *whole = calloc(1, WIRE_MESSAGE_MAX + 1);
    struct reply reply;
    size_t taken;

    ck_assert_ptr_nonnull(whole);
    memcpy(whole, header.data, header.length);
    whole[WIRE_MESSAGE_MAX - 1] = 0x55;
    reply_init(&reply);
    ck_assert_int_eq(feed(&reply, whole, WIRE_MESSAGE_MAX + 1, 1000, &taken), REPLY_WHOLE);
    ck_assert_uint_eq(taken, WIRE_MESSAGE_MAX);
    ck_assert_uint_eq(reply.n_payload, WIRE_PAYLOAD_MAX);
    ck_assert_uint_eq(reply.payload[WIRE_PAYLOAD_MAX - 1], 0x55);
    reply_deinit(&reply);
    free(whole);
}
END_TEST

START_TEST(random_bytes_do_no_harm)
{
    struct unit_bytes magic = unit_vector("M");
    uint64_t state = 5;
    unsigned n_whole = 0;

    for (unsigned round = 0; round < 5000; round++) {
        uint8_t bytes[80];
        struct reply reply;
        size_t taken;

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)unit_random(&state);
        memcpy(bytes, magic.data, unit_random(&state) % 4 == 0 ? 13 : magic.length);
        if (round % 2 == 0) {
            bytes[15] = 0;
            bytes[16] = 0xFF;
            bytes[17] = (uint8_t) - (bytes[17] & 1);
        }
        reply_init(&reply);
        if (feed(&reply, bytes, sizeof bytes, 1 + unit_random(&state) % 30, &taken) == REPLY_WHOLE)
            n_whole++;
        reply_deinit(&reply);
    }
    ck_assert_uint_gt(n_whole, 100);
}
END_TEST

static int read_reply(void *context)
{
    const struct unit_bytes *bytes = context;
    struct reply reply;
    enum reply_result result;
    size_t taken;

    reply_init(&reply);
    result = reply_feed(&reply, bytes->data, bytes->length, &taken);
    reply_deinit(&reply);
    return result == REPLY_E_MEMORY ? -ENOMEM : result == REPLY_WHOLE ? 0 : 1;
}

START_TEST(running_out_of_memory_is_said)
{
    struct unit_bytes bytes = unit_vector("M 18 00 FF 00 00 00 00 00 00 00");

    ck_assert_uint_gt(unit_memory_exhaust(read_reply, &bytes, -ENOMEM), 0);
}
END_TEST

/* Of what only says how it went not more than that is kept, however long it is. */
START_TEST(a_beginning_is_kept)
{
    enum { LENGTH = 1000 };
    uint8_t bytes[WIRE_HEADER_SIZE + LENGTH + 1] = {0};
    struct bytes message;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    wire_message_begin(&message, WIRE_SET_SERVER, 0xFF);
    bytes_put_u32(&message, 0x80131384);
    bytes_put_run(&message, bytes, LENGTH - 4);
    ck_assert_int_eq(wire_message_end(&message), 0);
    memcpy(bytes, message.data, message.length);
    bytes_deinit(&message);
    for (size_t kept = 0; kept <= 2 * LENGTH; kept += kept < 8 ? 4 : LENGTH - 8) {
        for (size_t length = 0; length <= sizeof bytes; length++) {
            size_t step = length % 7 + 1, taken;
            struct reply reply;

            reply_init(&reply);
            reply_keep(&reply, kept);
            ck_assert_int_eq(feed(&reply, bytes, length, length % 2 ? step : sizeof bytes, &taken),
                             length < sizeof bytes - 1 ? REPLY_MORE : REPLY_WHOLE);
            ck_assert_uint_le(reply.n_payload, kept);
            if (length >= sizeof bytes - 1) {
                ck_assert_uint_eq(taken, sizeof bytes - 1);
                ck_assert_uint_eq(reply_hresult(&reply), kept < 4 ? 0 : 0x80131384);
                ck_assert(!reply_is_ok(&reply));
            }
            reply_deinit(&reply);
        }
    }
}
END_TEST

UNIT_TESTS(a_beginning_is_kept, replies_are_read, dump_error_carries_a_text,
           id_decides_whether_it_is_ok, short_payloads_are_read, what_is_no_reply_is_refused,
           largest_reply_is_read, random_bytes_do_no_harm, running_out_of_memory_is_said);
