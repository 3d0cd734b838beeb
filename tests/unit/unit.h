/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What unit tests share: one suite per program, and bytes written as the
 * protocol's test vectors are written.
 */

#include <check.h>
#include <stddef.h>
#include <stdint.h>

/* Adds the tests of one program; each defines it with UNIT_TESTS. */
void unit_add_tests(TCase *tests);

#define UNIT_TESTS(...)                                           \
    void unit_add_tests(TCase *tests)                             \
    {                                                             \
        const TTest *const list[] = {__VA_ARGS__};                \
                                                                  \
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) \
            tcase_add_test(tests, list[i]);                       \
    }                                                             \
    _Static_assert(1, "a semicolon follows")

struct unit_bytes {
    uint8_t data[512];
    size_t length;
};

/*
 * Bytes from a vector: pairs of hexadecimal digits with blanks between them.
 * M stands for the message magic, C for the cookie and G for the profiler of
 * the vectors, P for their one provider.
 */
struct unit_bytes unit_vector(const char *text);

/* Fails the test, showing both, unless the bytes are those of the vector. */
void unit_assert_bytes(const void *data, size_t length, const char *vector);

/* A copy of exactly `length` bytes on the heap, which the test frees: the sanitizers see one byte
 * read too many. */
uint8_t *unit_copy(const void *data, size_t length);

/* A test of very many cases takes one of so many of them where everything is slow, which
 * $DIAGPORT_SLOW says; else 1. */
size_t unit_share(void);

/* The next of a fixed sequence of numbers that looks random. `*state` is any number but 0. */
uint32_t unit_random(uint64_t *state);
