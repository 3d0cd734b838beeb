/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a process may read a file, worked out from the mode bits and access
 * control lists of every component of its path: asking the kernel would need the right to become
 * that process's user.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/preflight.h"
#include "lib/util.h"

struct attributes;
struct facts_file;

/*
 * PREFLIGHT_GOOD when the process of `attributes` may read the file, or nobody
 * can tell, else why not. Who has a right that goes before mode bits is held to
 * them no more than the kernel does it; where that is not known, uid 0 has it.
 */
enum preflight access_judge(const struct facts_file *file, const struct attributes *attributes);
