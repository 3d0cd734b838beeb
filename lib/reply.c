/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/reply.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"

enum { ID_OK = 0x00, ID_ERROR = 0xFF };

void reply_init(struct reply *reply)
{
    *reply = (struct reply){.kept_max = WIRE_PAYLOAD_MAX};
}

void reply_keep(struct reply *reply, size_t kept_max)
{
    reply->kept_max = kept_max;
}

void reply_deinit(struct reply *reply)
{
    free(reply->payload);
    reply_init(reply);
}

static size_t fill(uint8_t *target, size_t *have, size_t want, const uint8_t *bytes, size_t length)
{
    size_t taken = want - *have < length ? want - *have : length;

    if (taken > 0)
        memcpy(target + *have, bytes, taken);
    *have += taken;
    return taken;
}

static enum reply_result read_header(struct reply *reply)
{
    switch (wire_header_read(reply->header_bytes, &reply->header)) {
    case WIRE_E_MAGIC:
        return REPLY_E_MAGIC;
    case WIRE_E_SIZE:
        return REPLY_E_SIZE;
    default:
        break;
    }
    if (reply->header.set != WIRE_SET_SERVER ||
        (reply->header.id != ID_OK && reply->header.id != ID_ERROR))
        return REPLY_E_SET;
    reply->left = (size_t)reply->header.size - WIRE_HEADER_SIZE;
    reply->kept_size = reply->left < reply->kept_max ? reply->left : reply->kept_max;
    reply->left -= reply->kept_size;
    if (reply->kept_size == 0)
        return reply->left == 0 ? REPLY_WHOLE : REPLY_MORE;
    reply->payload = malloc(reply->kept_size);
    return reply->payload ? REPLY_MORE : REPLY_E_MEMORY;
}

enum reply_result reply_feed(struct reply *reply, const uint8_t *bytes, size_t length,
                             size_t *ret_taken)
{
    size_t taken = 0, passed;

    *ret_taken = 0;
    if (reply->n_header < WIRE_HEADER_SIZE) {
        enum reply_result result;

        taken = fill(reply->header_bytes, &reply->n_header, WIRE_HEADER_SIZE, bytes, length);
        if (!wire_magic_is_possible(reply->header_bytes, reply->n_header))
            return REPLY_E_MAGIC;
        *ret_taken = taken;
        if (reply->n_header < WIRE_HEADER_SIZE)
            return REPLY_MORE;
        result = read_header(reply);
        if (result != REPLY_MORE)
            return result;
    }
    taken +=
        fill(reply->payload, &reply->n_payload, reply->kept_size, bytes + taken, length - taken);
    passed = reply->left < length - taken ? reply->left : length - taken;
    reply->left -= passed;
    *ret_taken = taken + passed;
    return reply->n_payload == reply->kept_size && reply->left == 0 ? REPLY_WHOLE : REPLY_MORE;
}

bool reply_is_ok(const struct reply *reply)
{
    return reply->header.id == ID_OK;
}

uint32_t reply_hresult(const struct reply *reply)
{
    struct bytes_reader reader = bytes_reader_over(reply->payload, reply->n_payload);
    uint32_t hresult;

    return bytes_get_u32(&reader, &hresult) ? hresult : 0;
}
