/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Descriptions of events: which provider, which event, which version. The list
 * of the event's fields, and what newer runtimes say after it, is not read.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/nettrace_parts.h"
#include "lib/text.h"

enum { UNIT_SIZE = 2 };

/* Appends a text that ends in a NUL, with that NUL. */
static bool get_text(struct bytes_reader *reader, struct bytes *texts)
{
    const uint8_t *begin = reader->at;
    size_t units = 0;
    uint16_t unit;

    do {
        if (!bytes_get_u16(reader, &unit))
            return false;
        units++;
    } while (unit != 0);
    text_put_utf8(texts, begin, units);
    bytes_put_u8(texts, 0);
    return true;
}

/* Both names go to `texts`, one after the other. */
static bool read_metadata(struct bytes_reader *reader, struct nettrace_metadata *metadata,
                          struct bytes *texts)
{
    uint32_t n_fields;

    return bytes_get_u32(reader, &metadata->id) && metadata->id != 0 && get_text(reader, texts) &&
           bytes_get_u32(reader, &metadata->event_id) && get_text(reader, texts) &&
           bytes_get_u64(reader, &metadata->keywords) &&
           bytes_get_u32(reader, &metadata->version) && bytes_get_u32(reader, &metadata->level) &&
           bytes_get_u32(reader, &n_fields);
}

/* Where one of that id is, or would be. */
static size_t find_place(const struct nettrace *nettrace, uint32_t id)
{
    size_t low = 0, high = nettrace->n_metadata;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (nettrace->metadata[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct nettrace *nettrace, size_t place, uint32_t id)
{
    return place < nettrace->n_metadata && nettrace->metadata[place].id == id;
}

const struct nettrace_metadata *nettrace_metadata_find(const struct nettrace *nettrace, uint32_t id)
{
    size_t place = find_place(nettrace, id);

    return is_at(nettrace, place, id) ? &nettrace->metadata[place] : NULL;
}

static bool make_room(struct nettrace *nettrace)
{
    size_t capacity = nettrace->metadata_capacity == 0 ? 8 : 2 * nettrace->metadata_capacity;
    struct nettrace_metadata *metadata;

    if (nettrace->n_metadata < nettrace->metadata_capacity)
        return true;
    metadata = realloc(nettrace->metadata, capacity * sizeof *metadata);
    if (!metadata)
        return false;
    nettrace->metadata = metadata;
    nettrace->metadata_capacity = capacity;
    return true;
}

static enum nettrace_result insert(struct nettrace *nettrace, struct nettrace_metadata *metadata,
                                   struct bytes *texts)
{
    size_t place = find_place(nettrace, metadata->id);
    struct nettrace_metadata *at;

    if (is_at(nettrace, place, metadata->id))
        return NETTRACE_E_METADATA;
    if (nettrace->n_metadata >= nettrace->limits.metadata_max)
        return NETTRACE_E_LIMIT;
    if (!make_room(nettrace))
        return NETTRACE_E_MEMORY;
    nettrace->metadata_text += texts->length;
    metadata->provider = (char *)bytes_take(texts);
    metadata->name = metadata->provider + strlen(metadata->provider) + 1;
    at = &nettrace->metadata[place];
    memmove(at + 1, at, (nettrace->n_metadata - place) * sizeof *at);
    *at = *metadata;
    nettrace->n_metadata++;
    return NETTRACE_MORE;
}

enum nettrace_result nettrace_metadata_add(struct nettrace *nettrace)
{
    const struct nettrace_event *event = &nettrace->event;
    struct bytes_reader reader = bytes_reader_over(event->payload, event->n_payload);
    bool is_cut = event->n_payload < event->payload_size;
    struct nettrace_metadata metadata;
    enum nettrace_result result;
    struct bytes texts;

    bytes_init(&texts, nettrace->limits.metadata_text_max - nettrace->metadata_text);
    if (!read_metadata(&reader, &metadata, &texts))
        result = is_cut ? NETTRACE_E_LIMIT : NETTRACE_E_METADATA;
    else if (bytes_finish(&texts) != 0)
        result = texts.error == -ENOMEM ? NETTRACE_E_MEMORY : NETTRACE_E_LIMIT;
    else
        result = insert(nettrace, &metadata, &texts);
    bytes_deinit(&texts);
    return result;
}
