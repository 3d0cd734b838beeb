/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "lib/procfs.h"
#include "lib/tree.h"
#include "probe/channel.h"

#define RETRY_TIME span_from_ms(100)

/* Enough for all of a process of ours. */
enum { STATUS_SIZE = 4096 };

/* One that is there, or is given up. */
struct worker {
    TAILQ_ENTRY(worker) link;
    struct workers *workers;
    uint64_t serial;
    int status;          /* its /proc/PID/status; -1 when it is not there */
    uint64_t n_switches; /* as it was seen last */
    int socket;
    struct loop_watch *watch;
    bool has_ended; /* as the parent says; what its socket says may come later */
    bool is_told;   /* given up: the parent knows */
    bool was_lost;  /* it was not we who ended it */
};

TAILQ_HEAD(worker_list, worker);

struct workers {
    struct loop *loop;
    int channel; /* -1 when the parent is gone */
    struct loop_watch *watch;
    void (*lost)(void *context);
    void *context;
    uint64_t n_serials;
    struct worker_list used, abandoned;
    size_t n_abandoned;
    struct moment retry; /* MOMENT_NEVER when the parent knows all that it has to */
};

static void forget_abandoned(struct workers *workers, struct worker *worker)
{
    TAILQ_REMOVE(&workers->abandoned, worker, link);
    workers->n_abandoned--;
    free(worker);
}

static struct worker *find(const struct worker_list *list, uint64_t serial)
{
    struct worker *worker;

    TAILQ_FOREACH(worker, list, link) {
        if (worker->serial == serial)
            break;
    }
    return worker;
}

static void log_end(int status)
{
    if (status > 0 && WIFSIGNALED(status))
        log_error("a worker of diagport-probe was ended by signal %d; another one takes its place",
                  WTERMSIG(status));
    else if (status > 0)
        log_error("a worker of diagport-probe ended with status %d; another one takes its place",
                  WEXITSTATUS(status));
    else if (status < 0)
        log_error("a worker of diagport-probe could not be started");
}

static void take_report(struct workers *workers, const struct channel_report *report, int status)
{
    struct worker *worker = find(&workers->used, report->serial);

    if (report->status == CHANNEL_FORKED) {
        if (worker)
            worker->status = status;
        else if (status >= 0)
            close(status);
        return;
    }
    if (worker)
        worker->has_ended = true;
    worker = find(&workers->abandoned, report->serial);
    if (worker) {
        if (worker->was_lost)
            log_end(report->status);
        forget_abandoned(workers, worker);
        return;
    }
    log_end(report->status);
}

static void be_lost(struct workers *workers)
{
    workers->watch = loop_watch_free(workers->watch);
    close(workers->channel);
    workers->channel = -1;
    while (!TAILQ_EMPTY(&workers->abandoned))
        forget_abandoned(workers, TAILQ_FIRST(&workers->abandoned));
    workers->lost(workers->context);
}

static void on_report(void *context)
{
    struct workers *workers = context;
    struct channel_report report;
    int error, status;

    while ((error = channel_take_report(workers->channel, &report, &status)) == 0)
        take_report(workers, &report, status);
    if (error == -EPIPE)
        be_lost(workers);
}

struct workers *workers_new(const struct workers_options *options)
{
    struct workers *workers = calloc(1, sizeof *workers);

    if (!workers) {
        close(options->channel);
        return NULL;
    }
    workers->loop = options->loop;
    workers->channel = options->channel;
    workers->lost = options->lost;
    workers->context = options->context;
    workers->retry = MOMENT_NEVER;
    TAILQ_INIT(&workers->used);
    TAILQ_INIT(&workers->abandoned);
    workers->watch = loop_watch_new(options->loop, options->channel, on_report, workers);
    return workers->watch ? workers : workers_free(workers);
}

struct workers *workers_free(struct workers *workers)
{
    if (!workers)
        return NULL;
    loop_watch_free(workers->watch);
    while (!TAILQ_EMPTY(&workers->abandoned))
        forget_abandoned(workers, TAILQ_FIRST(&workers->abandoned));
    if (workers->channel >= 0)
        close(workers->channel);
    free(workers);
    return NULL;
}

/* Who gets the other end, and closes it when nobody can be forked. */
static bool send_away(struct worker *worker, enum worker_kind kind, int end, int pidfd)
{
    const struct channel_order order = {
        .kind = kind == WORKER_KILLS ? CHANNEL_KILL : CHANNEL_LOOK,
        .serial = worker->serial,
    };
    const int descriptors[CHANNEL_DESCRIPTORS] = {end, kind == WORKER_KILLS ? pidfd : -1};

    return channel_order(worker->workers->channel, &order, descriptors) == 0;
}

static bool start(struct worker *worker, enum worker_kind kind, int pidfd,
                  void (*ready)(void *context), void *context)
{
    int pair[2];
    bool is_started;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    worker->socket = pair[0];
    /* The worker's own end waits. */
    is_started = fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0;
    if (is_started)
        worker->watch = loop_watch_new(worker->workers->loop, pair[0], ready, context);
    is_started = worker->watch && send_away(worker, kind, pair[1], pidfd);
    close(pair[1]);
    return is_started;
}

struct worker *worker_new(struct workers *workers, enum worker_kind kind, int pidfd,
                          void (*ready)(void *context), void *context)
{
    struct worker *worker = workers->channel >= 0 ? calloc(1, sizeof *worker) : NULL;

    if (!worker)
        return NULL;
    *worker = (struct worker){.workers = workers,
                              .serial = ++workers->n_serials,
                              .status = -1,
                              .socket = -1};
    TAILQ_INSERT_TAIL(&workers->used, worker, link);
    return start(worker, kind, pidfd, ready, context) ? worker : worker_free(worker);
}

int worker_socket(const struct worker *worker)
{
    return worker->socket;
}

bool worker_moves(struct worker *worker)
{
    char text[STATUS_SIZE];
    struct procfs_motion motion;
    uint64_t before = worker->n_switches;
    ssize_t length = worker->status >= 0 ? pread(worker->status, text, sizeof text, 0) : -1;

    if (length <= 0 || !procfs_read_motion(text, (size_t)length, &motion))
        return false;
    worker->n_switches = motion.n_switches;
    return motion.state == 'R' || motion.n_switches != before;
}

static void hang_up(struct worker *worker)
{
    TAILQ_REMOVE(&worker->workers->used, worker, link);
    worker->watch = loop_watch_free(worker->watch);
    if (worker->socket >= 0)
        close(worker->socket);
    worker->socket = -1;
    if (worker->status >= 0)
        close(worker->status);
    worker->status = -1;
}

struct worker *worker_free(struct worker *worker)
{
    if (!worker)
        return NULL;
    hang_up(worker);
    free(worker);
    return NULL;
}

static void tell(struct worker *worker)
{
    static const int none[CHANNEL_DESCRIPTORS] = {-1, -1};
    struct workers *workers = worker->workers;
    const struct channel_order order = {.kind = CHANNEL_ABANDON, .serial = worker->serial};

    worker->is_told = channel_order(workers->channel, &order, none) == 0;
    if (!worker->is_told)
        workers->retry = moment_after(clock_now(), RETRY_TIME);
}

struct worker *worker_abandon(struct worker *worker)
{
    struct workers *workers = worker->workers;

    hang_up(worker);
    if (workers->channel < 0 || worker->has_ended) {
        free(worker);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&workers->abandoned, worker, link);
    workers->n_abandoned++;
    tell(worker);
    return NULL;
}

struct worker *worker_lose(struct worker *worker)
{
    worker->was_lost = true;
    return worker_abandon(worker);
}

size_t workers_abandoned(const struct workers *workers)
{
    return workers->n_abandoned;
}

struct moment workers_next(const struct workers *workers)
{
    return workers->channel >= 0 ? workers->retry : MOMENT_NEVER;
}

void workers_run(struct workers *workers, struct moment now)
{
    struct worker *worker;

    if (!moment_is_due(workers_next(workers), now))
        return;
    workers->retry = MOMENT_NEVER;
    TAILQ_FOREACH(worker, &workers->abandoned, link) {
        if (!worker->is_told)
            tell(worker);
    }
}
