/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/picture.h"

#include <string.h>

#include "lib/facts.h"

/* The kernel cuts names at 15 bytes. */
static bool is_sign_of_running(const char *name)
{
    return strcmp(name, ".NET Finalizer") == 0 || strncmp(name, ".NET Debug", 10) == 0 ||
           strcmp(name, ".NET SigHandler") == 0 || strncmp(name, ".NET Tiered", 11) == 0;
}

enum picture picture_of(const struct facts *facts, int32_t pid)
{
    size_t n_main = 0, n_event_pipe = 0, n_synch_manager = 0, n_other = 0;

    if (facts->threads_error != 0)
        return PICTURE_UNKNOWN;
    for (size_t i = 0; i < facts->n_threads && i < FACTS_THREADS_MAX; i++) {
        const struct facts_thread *thread = &facts->threads[i];

        if (is_sign_of_running(thread->name))
            return PICTURE_RUNNING;
        if (thread->id == pid)
            n_main++;
        else if (strcmp(thread->name, ".NET EventPipe") == 0)
            n_event_pipe++;
        else if (strcmp(thread->name, ".NET SynchManag") == 0)
            n_synch_manager++;
        else
            n_other++;
    }
    /* A session of a suspended 11.0.0 has a second ".NET EventPipe" (measured). */
    if (facts->n_threads <= FACTS_THREADS_MAX && n_main == 1 && n_event_pipe >= 1 &&
        n_synch_manager <= 1 && n_other == 0)
        return PICTURE_SUSPENDED;
    return PICTURE_UNKNOWN;
}
