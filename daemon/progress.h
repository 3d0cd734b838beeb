/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Long work that goes on, as whoever waits for it wants to know: otherwise it
 * looks like work that hangs. Who waits, and how often he is told, is not known
 * here.
 */

#include "lib/util.h"

struct progress {
    void (*goes_on)(void *context);
    void *context;
};

/* Cheap enough for every step of a long work. `progress` may be NULL. */
static inline void progress_tell(const struct progress *progress)
{
    if (progress)
        progress->goes_on(progress->context);
}
