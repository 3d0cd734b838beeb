/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From what libyaml says about a document that is not YAML to what its author
 * can do about it, and the place where that has to be done.
 *
 * It knows the words of libyaml and the usual traps, not libyaml itself, and
 * not what the document is about.
 */

#include <stddef.h>

struct bytes;

struct yaml_advice_place {
    unsigned line; /* from 1 */
    unsigned column;
};

/* An error as libyaml reports it. */
struct yaml_advice_fault {
    const char *context; /* what it was reading, or NULL */
    const char *problem;
    struct yaml_advice_place context_place;
    struct yaml_advice_place problem_place;
};

/* Appends what is wrong and what to do, one line, and tells where. `source` is the document, of
 * which nothing is shown but what stands before a colon where a key is expected: values may be
 * secrets. */
void yaml_advice_put(struct bytes *out, const struct yaml_advice_fault *fault, const char *source,
                     size_t length, struct yaml_advice_place *ret_place);

/*
 * Looks for characters that are not UTF-8, that YAML does not allow, or that
 * programs disagree about: control characters, line breaks of other worlds, a
 * byte order mark inside. Returns what is wrong with the first one, a constant,
 * and its place; NULL when all are fine.
 */
const char *yaml_advice_character(const char *source, size_t length,
                                  struct yaml_advice_place *ret_place);
