/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks into files that a process is to load, and at what else is there for
 * them as the process sees it. Files are mapped, and what they say is read by
 * lib/image and lib/needs: whoever calls this has to be expendable, since a file
 * may be on a file system that does not answer, or be cut short meanwhile.
 *
 * Nothing but regular files of a sane size is ever opened, and no path leads
 * out of the process's root.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/facts.h"
#include "lib/util.h"

struct images;

/* For the process whose root is open; `variables` is what is known of its variables. NULL when
 * memory is out. */
struct images *images_new(int32_t pid, int root, const struct facts_text *variables) MUST_CHECK;
struct images *images_free(struct images *images);

/* What the process was built for, as far as it is known. */
struct platform images_platform(struct images *images);

/* Looks into what an O_PATH descriptor leads to, which the process finds at `path`. */
void images_look(struct images *images, int place, const char *path, struct facts_image *image);
