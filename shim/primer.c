/* SPDX-License-Identifier: Apache-2.0 */

/*
 * No memory is taken: all is in tables of a fixed size, of which the process
 * gets to have only the pages that are used. They are static, since the stack
 * is not ours; runtimes load one profiler after the other.
 */

#include "shim/primer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/primer_names.h"
#include "shim/environment.h"
#include "shim/native.h"
#include "shim/result.h"
#include "shim/wide.h"

/* Of glibc and musl alike. */
enum { OPEN_NOW = 2 };

#define WIDE(text) u"" text

static const uint16_t names_name[] = WIDE(PRIMER_NAMES);
static const uint16_t libraries_name[] = WIDE(PRIMER_LIBRARIES);
static const uint16_t result_name[] = WIDE(PRIMER_RESULT);

static uint16_t list[ENVIRONMENT_MAX];
static uint16_t value[ENVIRONMENT_MAX];
static char name_text[ENVIRONMENT_MAX];
static char value_text[ENVIRONMENT_MAX];
static struct result result;

struct counts {
    size_t n_set;
    size_t n_unset;
    size_t n_failed;
    const char *why; /* the first one failed; its name is in `first` */
    char first[PRIMER_WORDS_MAX + 1];
};

/* The next entry of a list of `n` units, from `*at` on, with a NUL behind it. False at the end. */
static bool next_entry(uint16_t *entries, size_t n, size_t *at, uint16_t **ret_entry, size_t *ret_n)
{
    const size_t start = *at;
    size_t end = start;

    if (start >= n)
        return false;
    while (end < n && entries[end] != PRIMER_SEPARATOR)
        end++;
    entries[end] = 0;
    *ret_entry = entries + start;
    *ret_n = end - start;
    *at = end + 1;
    return true;
}

/* Reads a list of ours; a runtime that does not show it has none for us. */
static bool read_list(struct com_object *environment, const uint16_t *name, size_t *ret_n)
{
    return environment_get(environment, name, list, ret_n) == ENVIRONMENT_THERE;
}

static const char *set_native(const struct native *native, const char *text, struct counts *counts)
{
    if (!native->set || native->set(name_text, text, 1) != 0)
        return "libc";
    counts->n_set++;
    return NULL;
}

static const char *unset_native(const struct native *native, struct counts *counts)
{
    if (!native->unset || native->unset(name_text) != 0)
        return "libc";
    counts->n_unset++;
    return NULL;
}

/* Why it cannot be done, as one word; NULL when it was. What fails stays as it is. */
static const char *copy_variable(struct com_object *environment, const struct native *native,
                                 const uint16_t *name, size_t n_name, struct counts *counts)
{
    size_t n = 0;

    if (n_name == 0 || !wide_read(name, n_name, name_text, sizeof name_text))
        return "name";
    switch (environment_get(environment, name, value, &n)) {
    case ENVIRONMENT_THERE:
        if (!wide_read(value, n, value_text, sizeof value_text))
            return "text";
        return set_native(native, value_text, counts);
    case ENVIRONMENT_NOT_THERE:
        return unset_native(native, counts);
    case ENVIRONMENT_TOO_LONG:
        return "long";
    case ENVIRONMENT_FAILED:
        break;
    }
    return "runtime";
}

static void count_failure(struct counts *counts, const char *why)
{
    size_t i = 0;

    if (counts->n_failed++ > 0)
        return;
    counts->why = why;
    for (; i < PRIMER_WORDS_MAX && name_text[i] != '\0'; i++)
        counts->first[i] = name_text[i];
    counts->first[i] = '\0';
}

static void copy_variables(struct com_object *environment, const struct native *native, size_t n)
{
    static struct counts counts;
    uint16_t *name;
    size_t n_name;

    counts.n_set = counts.n_unset = counts.n_failed = 0;
    for (size_t at = 0; next_entry(list, n, &at, &name, &n_name);) {
        const char *why;

        name_text[0] = '\0';
        why = copy_variable(environment, native, name, n_name, &counts);
        if (why)
            count_failure(&counts, why);
    }
    result_put(&result, "set ");
    result_put_number(&result, counts.n_set);
    result_put(&result, "\nunset ");
    result_put_number(&result, counts.n_unset);
    result_put(&result, "\nfailed ");
    result_put_number(&result, counts.n_failed);
    if (counts.n_failed > 0) {
        result_put(&result, " ");
        result_put(&result, counts.why);
        result_put(&result, " ");
        result_put_words(&result, counts.first);
    }
    result_put(&result, "\n");
}

/*
 * A library that can be opened stays open. Closing it would run its constructors
 * once more when the runtime opens it a moment later, and pull its code away
 * from under threads that they may have started; so they run once, as without
 * us, and find the variables where they look for them. All its functions are
 * looked up at once: where one is missing the loader says so here, and not by
 * ending the program when it is called.
 */
static void open_library(const struct native *native, const uint16_t *path, size_t n)
{
    void *library;
    const char *words;

    result_put(&result, "library ");
    if (!native->open || !native->find) {
        result_put(&result, "untried\n");
        return;
    }
    if (n == 0 || !wide_read(path, n, value_text, sizeof value_text)) {
        result_put(&result, "failed no path\n");
        return;
    }
    library = native->open(value_text, OPEN_NOW);
    if (library) {
        result_put(&result, native->find(library, "DllGetClassObject") ? "ok\n" : "no-entry\n");
        return;
    }
    words = native->error ? native->error() : NULL;
    result_put(&result, "failed ");
    result_put_words(&result, words ? words : "");
    result_put(&result, "\n");
}

static void open_libraries(const struct native *native, size_t n)
{
    uint16_t *path;
    size_t n_path;
    size_t n_opened = 0;

    for (size_t at = 0; n_opened < PRIMER_LIBRARIES_MAX && next_entry(list, n, &at, &path, &n_path);
         n_opened++)
        open_library(native, path, n_path);
}

void primer_run(struct com_object *info, const struct native *native)
{
    struct com_object *environment = environment_open(info);
    bool has_names, has_libraries;
    size_t n = 0;

    if (!environment)
        return;
    result_begin(&result);
    has_names = read_list(environment, names_name, &n);
    copy_variables(environment, native, has_names ? n : 0);
    /* Before constructors of a library run, which may start programs. */
    if (has_names)
        (void)environment_set(environment, names_name, NULL);
    has_libraries = read_list(environment, libraries_name, &n);
    if (has_libraries) {
        (void)environment_set(environment, libraries_name, NULL);
        open_libraries(native, n);
    }
    result_end(&result);
    if (has_names || has_libraries)
        (void)environment_set(environment, result_name, result.text);
    environment_close(environment);
}
