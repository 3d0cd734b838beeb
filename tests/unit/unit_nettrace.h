/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Streams in nettrace format 4 for tests, as real runtimes send them and as they
 * never would; and those that were recorded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"

enum { UNIT_NETTRACE_RECORDED_MAX = 65536 };

/* Magic, serializer and the trace object: 102 bytes. */
void unit_nettrace_begin(struct bytes *out);

/* Tags, versions and name of an object. */
void unit_nettrace_open(struct bytes *out, const char *name, uint32_t version, uint32_t reader);

/* A whole object with that content, of version 2. */
void unit_nettrace_block(struct bytes *out, const char *name, const struct bytes *content);

/* The head of a block of events; `flags` 1 announces compressed headers. */
void unit_nettrace_events(struct bytes *content, uint16_t flags);

void unit_nettrace_varint(struct bytes *out, uint64_t value);
void unit_nettrace_text(struct bytes *out, const char *text);

/* A compressed header that says everything but activities, of thread 7, and the payload. */
void unit_nettrace_event(struct bytes *content, uint32_t id, uint32_t sequence_step,
                         const struct bytes *payload);

/* The payload that describes an event. */
void unit_nettrace_description(struct bytes *payload, uint32_t id, const char *provider,
                               uint32_t event_id, const char *name, uint64_t keywords);

/* A block that has just this description in it. */
void unit_nettrace_describe(struct bytes *out, uint32_t id, const char *provider,
                            uint32_t event_id);

/* A block with just this event. */
void unit_nettrace_tell(struct bytes *out, uint32_t id, uint32_t sequence_step,
                        const struct bytes *payload);

/* A block with a point that has one thread. */
void unit_nettrace_point(struct bytes *out, uint32_t sequence);

/* What was recorded under that name; the caller deinits it. */
struct bytes unit_nettrace_recorded(const char *name, unsigned major);
