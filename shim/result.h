/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The primer's result, as the text that it leaves in the runtime's environment:
 *
 *   diagport-primer 1
 *   set 3
 *   unset 1
 *   failed 1 text DIAGPORT_TEST_ONE
 *   library ok
 *   library no-entry
 *   library failed /opt/x.so: cannot open shared object file: No such file or directory
 *   end
 *
 * The three numbers are of variables; of those that failed the first one is
 * named, with the reason. Then one line for each library that was to be opened,
 * in that order. Foreign texts are cut where they are too long, and have no
 * control character left, so a line is a line.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/primer_names.h"

struct result {
    uint16_t text[PRIMER_RESULT_MAX];
    size_t n;
};

void result_begin(struct result *result);
void result_put(struct result *result, const char *text);
void result_put_number(struct result *result, size_t number);

/* Text that others wrote. */
void result_put_words(struct result *result, const char *words);

/* Ends the text with a NUL. */
void result_end(struct result *result);
