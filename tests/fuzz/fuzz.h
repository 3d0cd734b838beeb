/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What fuzz targets share: the function that each of them is, and how it says
 * that something does not hold. Who calls it is not known here: a fuzzer, or
 * replay.c with the corpus.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Named by libFuzzer; has to return 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What has to be so whatever the input is. */
#define FUZZ_HOLDS(condition)                                                             \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* A copy of exactly `size` bytes, so that one byte read too many is seen; free it. */
static inline uint8_t *fuzz_copy(const void *data, size_t size)
{
    uint8_t *copy = malloc(size);

    FUZZ_HOLDS(copy || size == 0);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* The same as a text: what is before the first NUL, and a NUL. */
static inline char *fuzz_text(const void *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    size_t length = end ? (size_t)(end - (const uint8_t *)data) : size;
    char *text = calloc(1, length + 1);

    FUZZ_HOLDS(text);
    if (length > 0)
        memcpy(text, data, length);
    return text;
}

/* The input as parts that are read one after the other. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline const uint8_t *fuzz_take(struct fuzz_input *input, size_t size)
{
    const uint8_t *at = input->at;

    FUZZ_HOLDS(size <= input->left);
    input->at += size;
    input->left -= size;
    return at;
}

/* 0 when there is nothing left. */
static inline uint8_t fuzz_take_u8(struct fuzz_input *input)
{
    return input->left > 0 ? *fuzz_take(input, 1) : 0;
}

/* Everything up to the next byte `end`, which is taken too, or all that is left. */
static inline struct fuzz_input fuzz_take_until(struct fuzz_input *input, uint8_t end)
{
    const uint8_t *found = input->left > 0 ? memchr(input->at, end, input->left) : NULL;
    struct fuzz_input part = {input->at, found ? (size_t)(found - input->at) : input->left};

    fuzz_take(input, found ? part.left + 1 : part.left);
    return part;
}
