/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checked little-endian reading and bounded writing of bytes.
 *
 * A reader never runs past its end: a get that does not fit returns false and
 * reads nothing. A buffer never grows past its limit: the first put that does
 * not fit makes the buffer's error stick, and the one check at the end sees it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct bytes_reader {
    const uint8_t *at;
    size_t left;
};

static inline struct bytes_reader bytes_reader_over(const void *data, size_t length)
{
    return (struct bytes_reader){data, length};
}

bool bytes_get_u8(struct bytes_reader *reader, uint8_t *ret_value) MUST_CHECK;
bool bytes_get_u16(struct bytes_reader *reader, uint16_t *ret_value) MUST_CHECK;
bool bytes_get_u32(struct bytes_reader *reader, uint32_t *ret_value) MUST_CHECK;
bool bytes_get_u64(struct bytes_reader *reader, uint64_t *ret_value) MUST_CHECK;

/* `length` bytes in place; they live as long as what the reader reads from. */
bool bytes_get_run(struct bytes_reader *reader, size_t length, const uint8_t **ret_run) MUST_CHECK;

struct bytes {
    uint8_t *data;
    size_t length;
    size_t capacity;
    size_t limit;
    int error; /* 0, -ENOMEM, or -EMSGSIZE when the limit was hit */
};

/* An empty buffer that will never hold more than `limit` bytes. Allocates nothing. */
void bytes_init(struct bytes *bytes, size_t limit);

/* Frees the content; the buffer is as after bytes_init with the same limit. */
void bytes_deinit(struct bytes *bytes);

void bytes_put_u8(struct bytes *bytes, uint8_t value);
void bytes_put_u16(struct bytes *bytes, uint16_t value);
void bytes_put_u32(struct bytes *bytes, uint32_t value);
void bytes_put_u64(struct bytes *bytes, uint64_t value);
void bytes_put_run(struct bytes *bytes, const void *run, size_t length);
void bytes_put_string(struct bytes *bytes, const char *string);
void bytes_put_format(struct bytes *bytes, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Ends writing: NUL-terminates the content (the NUL is not counted in
 * `length`) and returns the sticky error: 0, -ENOMEM or -EMSGSIZE.
 */
int bytes_finish(struct bytes *bytes) MUST_CHECK;

/* Takes the first `length` bytes away. */
void bytes_drop(struct bytes *bytes, size_t length);

/* Hands the content to the caller, who frees it; the buffer is empty again. */
uint8_t *bytes_take(struct bytes *bytes);
