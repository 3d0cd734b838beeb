/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether the files that a runtime is about to load are still those that were
 * looked into: asked right before Resume, since packages are installed at any
 * time. By then nothing of a hook or profiler can be taken back, and who
 * installs a new version of one has done nothing wrong: so what is found is said
 * and decides nothing. Resume waits for it as long as for the answer to a
 * command, and never past the deadline.
 */

#include <stdlib.h>

#include "lib/broker_core.h"
#include "lib/facts.h"

bool compare_is_under_way(const struct runtime *runtime)
{
    return runtime->question && runtime->question->purpose == QUESTION_FILES;
}

/* Whoever was held is past his deadline by the will of somebody. */
static struct moment end_of(const struct runtime *runtime, bool was_held, struct moment now)
{
    struct moment time_out = moment_after(now, runtime_keys(runtime)->command_timeout);
    struct moment deadline = moment_after(runtime->connected_at, runtime->deadline_length);

    return was_held ? time_out : moment_earlier(time_out, deadline);
}

/* Of what was sent by now; 0 files ask for nothing. False when memory is out. */
static bool ask(struct runtime *runtime, struct moment end)
{
    const char **files = calloc(runtime->plan.n_steps + 1, sizeof *files);
    size_t n_files;
    bool is_asked = true;

    if (!files)
        return false;
    n_files = plan_loaded_files(&runtime->plan, files);
    if (n_files > 0)
        is_asked = broker_ask(runtime->broker, QUESTION_FILES, NULL, runtime,
                              FACTS_STAT | FACTS_FILES, files, n_files);
    if (n_files > 0 && is_asked)
        runtime_set_next(runtime, end);
    free(files);
    return is_asked;
}

void compare_begin(struct runtime *runtime, bool was_held, struct moment now)
{
    struct moment end = end_of(runtime, was_held, now);

    if (runtime->broker->is_stopping || runtime->is_marked_resumed ||
        runtime_flies_resume(runtime) || moment_is_due(end, now))
        return;
    if (!ask(runtime, end))
        broker_out_of_memory(runtime->broker, now);
}

void compare_give_up(struct runtime *runtime)
{
    runtime->question = broker_forget_question(runtime->broker, runtime->question);
}

void compare_facts(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    /* Another connection of it got a Resume meanwhile: it may run, and change its files itself. */
    if (runtime->is_marked_resumed)
        return;
    for (size_t i = 0; facts->is_alive && i < runtime->plan.n_steps; i++) {
        struct step *step = &runtime->plan.steps[i];

        if (plan_compare_file(step, facts))
            runtime_tell_file(runtime, step, now);
    }
}
