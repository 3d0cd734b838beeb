/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a primer left behind: the text that it wrote into the environment of its
 * runtime, and that comes out of a process, so nothing in it is to be believed
 * before it was read here. How the text gets here is not known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/primer_names.h"
#include "lib/util.h"

/* A part of the text that was read; not NUL-terminated, and shown escaped like all that is foreign.
 */
struct primer_words {
    const char *text;
    size_t length;
};

enum primer_failure {
    PRIMER_NO_FAILURE,
    PRIMER_NAME,    /* it is no name, or no valid UTF-16 */
    PRIMER_TEXT,    /* its value is no valid UTF-16 */
    PRIMER_LONG,    /* its value is longer than a message could have made it */
    PRIMER_RUNTIME, /* the runtime did not show it */
    PRIMER_LIBC,    /* the C library refused it */
};

enum primer_library_state {
    PRIMER_OPENED,
    PRIMER_NO_ENTRY, /* opened, and it has no DllGetClassObject */
    PRIMER_UNTRIED,  /* the process has no function for it */
    PRIMER_REFUSED,  /* by the loader, in its own words */
};

struct primer_library {
    enum primer_library_state state;
    struct primer_words words; /* PRIMER_REFUSED */
};

struct primer_result {
    /* Variables of the process. */
    uint32_t n_set;
    uint32_t n_unset;
    uint32_t n_failed;           /* these are as they were */
    enum primer_failure failure; /* of the first one that failed */
    struct primer_words failed;  /* its name, cut after PRIMER_WORDS_MAX bytes */
    /* In the order in which they were to be opened. */
    struct primer_library libraries[PRIMER_LIBRARIES_MAX];
    size_t n_libraries;
};

/* Reads the value of PRIMER_RESULT, `length` bytes of it. The result points into the text. False
 * for a text that no primer of this version has written whole. */
bool primer_read_result(const char *text, size_t length,
                        struct primer_result *ret_result) MUST_CHECK;

const char *primer_failure_name(enum primer_failure failure);
const char *primer_library_state_name(enum primer_library_state state);
