/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a process may read a file, worked out from the mode bits of every
 * component of its path: asking the kernel would need the right to become that
 * process's user.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct attributes;
struct facts_file;

/*
 * NULL when the process of `attributes` may read the file, else a constant that
 * says why not, as the end of a sentence that starts with the path. A process
 * of uid 0 is held to the mode bits no more than the kernel does it.
 */
const char *access_refusal(const struct facts_file *file, const struct attributes *attributes);
