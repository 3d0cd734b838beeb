/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many descriptors this process may have, and what they are for. Nobody
 * else reads or raises the limit.
 */

#include <stddef.h>

#include "lib/util.h"

struct descriptors {
    size_t n_usable;    /* for connections of runtimes and handles of their processes */
    unsigned n_control; /* for connections of people */
};

/* Raises the limit as far as it goes and shares out what there is. */
struct descriptors descriptors_share(void) MUST_CHECK;
