/* SPDX-License-Identifier: Apache-2.0 */

/* A runtime's reply as it comes: whole, byte by byte, and in two pieces. */

#include "lib/reply.h"
#include "tests/fuzz/fuzz.h"

struct reading {
    struct reply reply;
    enum reply_result result;
    size_t taken;
};

/* Feeds pieces of `piece` bytes. */
static struct reading read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
    struct reading reading = {.result = REPLY_MORE};

    reply_init(&reading.reply);
    while (reading.result == REPLY_MORE && reading.taken < size) {
        size_t length = size - reading.taken < piece ? size - reading.taken : piece, taken;
        uint8_t *part = fuzz_copy(data + reading.taken, length);

        reading.result = reply_feed(&reading.reply, part, length, &taken);
        free(part);
        FUZZ_HOLDS(taken <= length);
        FUZZ_HOLDS(reading.result != REPLY_MORE || taken == length);
        reading.taken += taken;
    }
    return reading;
}

static void check_same(const struct reading *a, const struct reading *b)
{
    FUZZ_HOLDS(a->result == b->result);
    if (a->result != REPLY_WHOLE)
        return;
    FUZZ_HOLDS(a->taken == b->taken);
    FUZZ_HOLDS(a->taken == a->reply.header.size);
    FUZZ_HOLDS(a->reply.n_payload == b->reply.n_payload);
    FUZZ_HOLDS(a->reply.n_payload == 0 ||
               memcmp(a->reply.payload, b->reply.payload, a->reply.n_payload) == 0);
    FUZZ_HOLDS(reply_is_ok(&a->reply) == reply_is_ok(&b->reply));
    FUZZ_HOLDS(reply_hresult(&a->reply) == reply_hresult(&b->reply));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole = read_in_pieces(data, size, SIZE_MAX);
    const size_t pieces[] = {1, size / 2 + 1};

    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        struct reading other = read_in_pieces(data, size, pieces[i]);

        check_same(&whole, &other);
        reply_deinit(&other.reply);
    }
    reply_deinit(&whole.reply);
    return 0;
}
