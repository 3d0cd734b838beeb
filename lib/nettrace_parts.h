/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rooms of the nettrace reader share, and nobody else: frames of
 * objects (nettrace.c), what is in a block (nettrace_block.c), headers of events
 * (nettrace_event.c) and descriptions of events (nettrace_metadata.c).
 */

#include "lib/bytes.h"
#include "lib/nettrace.h"

enum nettrace_object {
    OBJECT_UNKNOWN,
    OBJECT_TRACE,
    OBJECT_EVENTS,
    OBJECT_METADATA,
    OBJECT_STACKS,
    OBJECT_POINT,
};

/* Moves bytes to the head until it has `want` of them; true when it has. */
bool nettrace_fill(struct nettrace *nettrace, size_t want, struct bytes_reader *in);

/* Over the head, which counts as read. */
struct bytes_reader nettrace_head(struct nettrace *nettrace);

/* Begins with the content of a block. */
void nettrace_block_begin(struct nettrace *nettrace);

/*
 * One step through the bytes of `in`, which are the block's and no others;
 * `beyond` is how many of them are still to come. False when it needs more.
 */
bool nettrace_block_step(struct nettrace *nettrace, struct bytes_reader *in, uint32_t beyond,
                         enum nettrace_result *result);

/* True when the block may end here. */
bool nettrace_block_is_whole(const struct nettrace *nettrace);

/*
 * The header of the next event, which the head begins with: `*ret_size` is its
 * size, 0 when the head has too little of it, and `*ret_padding` what follows
 * the payload. False when it is broken.
 */
bool nettrace_event_head(struct nettrace *nettrace, size_t *ret_size,
                         uint32_t *ret_padding) MUST_CHECK;

/* Adds the description that is the payload of the event at hand. */
enum nettrace_result nettrace_metadata_add(struct nettrace *nettrace) MUST_CHECK;

/* NULL when there is none. */
const struct nettrace_metadata *nettrace_metadata_find(const struct nettrace *nettrace,
                                                       uint32_t id);
