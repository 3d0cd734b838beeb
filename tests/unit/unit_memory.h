/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory that runs out on demand.
 *
 * A program that uses this sets its LDFLAGS to $(unit_memory_ldflags): the linker then sends
 * malloc, calloc, realloc, strdup, strndup and free of everything it links, the core and the test
 * alike, through here. What shared libraries allocate for themselves is not seen.
 *
 * Check allocates too. So nothing may be asserted while the counting is on:
 * say what went wrong with the result, and assert afterwards.
 */

#include <stddef.h>

/*
 * Calls `function` with all the memory it wants, where it has to return 0, and
 * then once for each allocation it made, with that one failing, where it has to
 * return `failure`. Each call has to free whatever it allocated. Returns the
 * number of allocations; a test that expects some fails when there were none.
 */
size_t unit_memory_exhaust(int (*function)(void *context), void *context, int failure);

/*
 * The same step by step, for what unit_memory_exhaust is too strict for: counts
 * allocations from now on and fails the `nth` of them, 1 being the first and 0
 * none.
 */
void unit_memory_watch(size_t nth);

/*
 * What a part of the program holds: bytes that were allocated between a begin and
 * its end, and not freed since, by whomever. Not together with the above.
 */
void unit_memory_charge_begin(void);
void unit_memory_charge_end(void);
size_t unit_memory_charged(void);

/* Ends a watch. Returns the number of allocations, the failed one included; `*ret_n_left` is how
 * many of them were not freed. */
size_t unit_memory_release(size_t *ret_n_left);

/* A part of the program that is called again and again: how often it has allocated in all calls,
 * and which of these allocations fails. */
struct unit_shortage {
    size_t n_allocations;
    size_t fails_at; /* 0: none */
};

/* Before and after each call of it; `context` is a struct unit_shortage. */
void unit_shortage_begin(void *context);
void unit_shortage_end(void *context);
