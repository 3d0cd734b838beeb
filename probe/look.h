/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks at a process: answers a question of the core with what the kernel says.
 * It parses little: start times, whose files are whose, and by probe/images what
 * is in files. Any of it may take for ever, for a process
 * whose memory or files are on a file system that does not answer: what cannot
 * is read first, and each thing is told as soon as it is known.
 */

#include <stdint.h>

#include "lib/action.h"
#include "lib/facts.h"
#include "lib/util.h"

struct look_listener {
    /* FACTS_* is there, of all that is wanted but the files; FACTS_STAT always. */
    void (*fact)(void *context, const struct facts *facts, uint32_t fact);
    /* The next of the files that were asked for. */
    void (*file)(void *context, const struct facts_file *file);
    void *context;
};

/*
 * Answers a question, and tells `listener` (or nobody, when it is NULL) of it on
 * the way. It has no handle of the process, so whether that lives is judged by
 * its start time. The caller frees the answer; NULL when memory is out.
 */
struct facts *look_at(const struct action_question *question,
                      const struct look_listener *listener) MUST_CHECK;
