/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_memory.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE_MAX = 65536 };

/* The linker gives the functions these names. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *string);
char *__wrap_strndup(const char *string, size_t length);
void __wrap_free(void *block);

static bool is_watching;
static size_t n_allocations;
static size_t fails_at;
static void *live[LIVE_MAX];
static size_t n_live;

static bool is_charging;
static struct {
    void *block;
    size_t size;
} charged[LIVE_MAX];
static size_t n_charged;

static bool fails_now(void)
{
    if (!is_watching || ++n_allocations != fails_at)
        return false;
    errno = ENOMEM;
    return true;
}

static void charge(void *block, size_t size)
{
    if (!is_charging || !block)
        return;
    if (n_charged == LIVE_MAX)
        abort();
    charged[n_charged].block = block;
    charged[n_charged++].size = size;
}

static void *born(void *block, size_t size)
{
    charge(block, size);
    if (is_watching && block) {
        if (n_live == LIVE_MAX)
            abort();
        live[n_live++] = block;
    }
    return block;
}

/* Most of what is freed was allocated last. The size that was charged for it. */
static size_t dead(const void *block)
{
    for (size_t i = is_watching ? n_live : 0; i-- > 0;) {
        if (live[i] == block) {
            live[i] = live[--n_live];
            break;
        }
    }
    for (size_t i = n_charged; block && i-- > 0;) {
        if (charged[i].block == block) {
            size_t size = charged[i].size;

            charged[i] = charged[--n_charged];
            return size;
        }
    }
    return 0;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : born(__real_malloc(size), size);
}

void *__wrap_calloc(size_t number, size_t size)
{
    return fails_now() ? NULL : born(__real_calloc(number, size), number * size);
}

void *__wrap_realloc(void *old, size_t size)
{
    size_t old_size;
    void *block;

    if (fails_now())
        return NULL;
    old_size = dead(old);
    block = __real_realloc(old, size);
    if (!block && size > 0)
        born(old, old_size);
    return born(block, size);
}

char *__wrap_strndup(const char *string, size_t length)
{
    size_t size = strnlen(string, length);
    char *copy = __wrap_malloc(size + 1);

    if (!copy)
        return NULL;
    memcpy(copy, string, size);
    copy[size] = '\0';
    return copy;
}

char *__wrap_strdup(const char *string)
{
    return __wrap_strndup(string, strlen(string));
}

void __wrap_free(void *block)
{
    dead(block);
    __real_free(block);
}

void unit_memory_watch(size_t nth)
{
    is_watching = true;
    n_allocations = 0;
    fails_at = nth;
    n_live = 0;
}

size_t unit_memory_release(size_t *ret_n_left)
{
    is_watching = false;
    *ret_n_left = n_live;
    return n_allocations;
}

void unit_memory_charge_begin(void)
{
    is_charging = true;
}

void unit_memory_charge_end(void)
{
    is_charging = false;
}

size_t unit_memory_charged(void)
{
    size_t sum = 0;

    for (size_t i = 0; i < n_charged; i++)
        sum += charged[i].size;
    return sum;
}

size_t unit_memory_exhaust(int (*function)(void *context), void *context, int failure)
{
    size_t n_left, n_wanted;
    int result;

    unit_memory_watch(0);
    result = function(context);
    n_wanted = unit_memory_release(&n_left);
    ck_assert_msg(result == 0, "with enough memory: result %d", result);
    ck_assert_msg(n_left == 0, "with enough memory: %zu blocks were not freed", n_left);
    for (size_t nth = 1; nth <= n_wanted; nth++) {
        unit_memory_watch(nth);
        result = function(context);
        unit_memory_release(&n_left);
        ck_assert_msg(result == failure, "allocation %zu of %zu failed: result %d", nth, n_wanted,
                      result);
        ck_assert_msg(n_left == 0, "allocation %zu of %zu failed: %zu blocks were not freed", nth,
                      n_wanted, n_left);
    }
    return n_wanted;
}

void unit_shortage_begin(void *context)
{
    const struct unit_shortage *shortage = context;

    unit_memory_watch(shortage->fails_at > shortage->n_allocations
                          ? shortage->fails_at - shortage->n_allocations
                          : 0);
}

void unit_shortage_end(void *context)
{
    struct unit_shortage *shortage = context;
    size_t n_left;

    shortage->n_allocations += unit_memory_release(&n_left);
}
