/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads what follows the reply to ProcessEnvironment, in pieces of any size,
 * and keeps the values of the wanted variables only: the environment of a
 * process can be megabytes, and nobody needs all of it.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-process-protocol.c. The reply
 * announces N bytes; they are a u32 count and that many strings "NAME=VALUE".
 * Never read past N: on a failed write the runtime appends an error message.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/util.h"

/* Nothing longer could be set again: a message holds less. */
enum { ENVIRONMENT_STRING_MAX = 65536 };

enum environment_result {
    ENVIRONMENT_MORE = 0,   /* everything was taken, N is not reached */
    ENVIRONMENT_WHOLE,      /* N bytes were read; what follows was not taken */
    ENVIRONMENT_E_ENCODING, /* the strings do not add up to N, or one of them is not terminated */
    ENVIRONMENT_E_MEMORY,
};

struct environment_value {
    const char *name; /* the caller's, has to outlive the reader */
    char *value;      /* NULL while not seen; UTF-8 */
    bool is_too_long; /* seen, but not kept: longer than the budget allowed */
};

struct environment {
    struct environment_value *values; /* the caller's */
    size_t n_values;
    size_t budget; /* bytes of values that may still be kept */
    uint64_t left; /* bytes of N still to come */
    uint32_t strings_left;
    uint64_t bytes_left; /* of the string at hand */
    bool has_count;
    uint8_t number[4]; /* a u32 that is still incomplete */
    size_t n_number;
    bool is_cut;       /* the string at hand is longer than what is kept of it */
    struct bytes text; /* its UTF-16 so far, at most ENVIRONMENT_STRING_MAX bytes */
    uint8_t tail[2];   /* its last two bytes so far */
};

/*
 * Reads N from the payload of the reply and starts. `values` names what is
 * wanted and takes what was found; together the values take at most `budget`
 * bytes. False when the payload is not that of a ProcessEnvironment reply.
 */
bool environment_init(struct environment *environment, const uint8_t *payload, size_t length,
                      struct environment_value *values, size_t n_values, size_t budget) MUST_CHECK;

/* Frees what the reader holds; the values found stay with the caller. */
void environment_deinit(struct environment *environment);

enum environment_result environment_feed(struct environment *environment, const uint8_t *bytes,
                                         size_t length, size_t *ret_taken) MUST_CHECK;

/* Frees the values found. */
void environment_values_clear(struct environment_value *values, size_t n_values);
