/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/kills.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/clock.h"
#include "daemon/handle.h"
#include "daemon/workers.h"
#include "lib/tree.h"

/* A worker has to be forked for it; what it then does takes no time. */
#define KILL_TIME span_from_s(1)

struct victim {
    STAILQ_ENTRY(victim) link;
    uint64_t process;
};

struct kills {
    struct kills_options options;
    STAILQ_HEAD(, victim) queue; /* the first one is being killed while there is a worker */
    struct worker *worker;
    struct moment end;
};

struct kills *kills_new(const struct kills_options *options)
{
    struct kills *kills = calloc(1, sizeof *kills);

    if (!kills)
        return NULL;
    kills->options = *options;
    STAILQ_INIT(&kills->queue);
    return kills;
}

static uint64_t take(struct kills *kills)
{
    struct victim *victim = STAILQ_FIRST(&kills->queue);
    uint64_t process = victim->process;

    STAILQ_REMOVE_HEAD(&kills->queue, link);
    free(victim);
    return process;
}

struct kills *kills_free(struct kills *kills)
{
    if (!kills)
        return NULL;
    worker_free(kills->worker);
    while (!STAILQ_EMPTY(&kills->queue))
        take(kills);
    free(kills);
    return NULL;
}

bool kills_put(struct kills *kills, uint64_t process)
{
    struct victim *victim = malloc(sizeof *victim);

    if (!victim)
        return false;
    *victim = (struct victim){.process = process};
    STAILQ_INSERT_TAIL(&kills->queue, victim, link);
    return true;
}

/* No answer is none that says that it was done. */
static void on_answer(void *context)
{
    struct kills *kills = context;
    int error = -1;
    bool is_done = recv(worker_socket(kills->worker), &error, sizeof error, MSG_DONTWAIT) ==
                       (ssize_t)sizeof error &&
                   error == 0;
    uint64_t process = take(kills);

    kills->worker = worker_free(kills->worker);
    if (!is_done)
        kills->options.failed(kills->options.context, process);
}

struct moment kills_next(const struct kills *kills)
{
    if (kills->worker)
        return kills->end;
    return STAILQ_EMPTY(&kills->queue) ? MOMENT_NEVER : (struct moment){0};
}

void kills_run(struct kills *kills, struct moment now)
{
    if (kills->worker && moment_is_due(kills->end, now)) {
        kills->worker = worker_abandon(kills->worker);
        kills->options.failed(kills->options.context, take(kills));
    }
    while (!kills->worker && !STAILQ_EMPTY(&kills->queue)) {
        int pidfd = handle_get(kills->options.handles, STAILQ_FIRST(&kills->queue)->process);

        kills->end = moment_after(now, KILL_TIME);
        if (pidfd >= 0)
            kills->worker =
                worker_new(kills->options.workers, WORKER_KILLS, pidfd, on_answer, kills);
        if (!kills->worker)
            kills->options.failed(kills->options.context, take(kills));
    }
}
