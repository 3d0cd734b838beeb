/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The few language helpers every room may use. Nothing here knows what
 * diagport does.
 */

#include <stddef.h>
#include <stdlib.h>

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The result carries an error that the caller has to look at. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Runs `function` with a pointer to the variable when it leaves scope. */
#define CLEANUP(function) __attribute__((cleanup(function)))

#define PRINTF_LIKE(text, arguments) __attribute__((format(printf, text, arguments)))

/* The object of `type` whose member `member` is at `pointer`. */
#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(void *)(pointer)-offsetof(type, member)))

/* For CLEANUP on any pointer that came from malloc. */
static inline void util_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

/* Hands over what a CLEANUP variable holds: returns it and leaves NULL. */
#define util_take(pointer_to_pointer)                   \
    __extension__({                                     \
        __auto_type util_taken = *(pointer_to_pointer); \
        *(pointer_to_pointer) = NULL;                   \
        util_taken;                                     \
    })
