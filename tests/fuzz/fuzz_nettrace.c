/* SPDX-License-Identifier: Apache-2.0 */

/* The stream of a session as it comes: whole, byte by byte, and in two pieces. */

#include "lib/nettrace.h"
#include "tests/fuzz/fuzz.h"

static const struct nettrace_limits limits = {
    .block_max = 65536,
    .payload_max = 1024,
    .metadata_max = 16,
    .metadata_text_max = 1024,
};

struct reading {
    enum nettrace_result result;
    size_t taken;
    size_t n_events;
    size_t n_others;
    uint64_t sum;
};

static void add(struct reading *reading, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        reading->sum = reading->sum * 31 + bytes[i];
}

static void take_event(struct reading *reading, const struct nettrace_event *event)
{
    FUZZ_HOLDS(event->metadata && event->metadata->id != 0);
    FUZZ_HOLDS(event->n_payload <= event->payload_size);
    FUZZ_HOLDS(event->n_payload <= limits.payload_max);
    FUZZ_HOLDS(event->payload_size <= limits.block_max);
    add(reading, (const uint8_t *)event->metadata->provider, strlen(event->metadata->provider));
    add(reading, (const uint8_t *)event->metadata->name, strlen(event->metadata->name));
    add(reading, event->payload, event->n_payload);
    reading->sum += event->timestamp ^ event->thread ^ event->sequence;
    reading->n_events++;
}

static void take_result(struct reading *reading, const struct nettrace *nettrace)
{
    if (reading->result == NETTRACE_EVENT) {
        take_event(reading, &nettrace->event);
    } else if (reading->result == NETTRACE_STACK) {
        FUZZ_HOLDS(nettrace->stack.id != 0);
        FUZZ_HOLDS(nettrace->stack.n_bytes <= limits.payload_max);
        add(reading, nettrace->stack.addresses, nettrace->stack.n_bytes);
        reading->n_others++;
    } else if (reading->result == NETTRACE_POINT || reading->result == NETTRACE_POINT_THREAD) {
        reading->n_others++;
    }
}

static void read_piece(struct reading *reading, struct nettrace *nettrace, const uint8_t *piece,
                       size_t length)
{
    size_t taken;

    do {
        reading->result = nettrace_feed(nettrace, piece, length, &taken);
        FUZZ_HOLDS(taken <= length);
        piece += taken;
        length -= taken;
        reading->taken += taken;
        take_result(reading, nettrace);
    } while (reading->result != NETTRACE_MORE && reading->result != NETTRACE_END &&
             !nettrace_is_error(reading->result));
    FUZZ_HOLDS(reading->result != NETTRACE_MORE || length == 0);
}

static struct reading read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
    struct reading reading = {.result = NETTRACE_MORE};
    struct nettrace nettrace;
    size_t at = 0;

    nettrace_init(&nettrace, &limits);
    while (reading.result == NETTRACE_MORE && at < size) {
        size_t length = size - at < piece ? size - at : piece;
        uint8_t *part = fuzz_copy(data + at, length);

        read_piece(&reading, &nettrace, part, length);
        free(part);
        at += length;
    }
    FUZZ_HOLDS(nettrace.offset == reading.taken);
    FUZZ_HOLDS(nettrace.n_metadata <= limits.metadata_max);
    nettrace_deinit(&nettrace);
    return reading;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole = read_in_pieces(data, size, SIZE_MAX);
    const size_t pieces[] = {1, size / 2 + 1};

    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        struct reading other = read_in_pieces(data, size, pieces[i]);

        FUZZ_HOLDS(whole.result == other.result);
        FUZZ_HOLDS(whole.n_events == other.n_events);
        FUZZ_HOLDS(whole.n_others == other.n_others);
        FUZZ_HOLDS(whole.sum == other.sum);
    }
    return 0;
}
