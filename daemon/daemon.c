/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/apply.h"
#include "daemon/clock.h"
#include "daemon/daemon_core.h"
#include "daemon/keeper.h"
#include "daemon/last_good.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/notices.h"
#include "daemon/ports.h"
#include "daemon/service.h"
#include "daemon/store.h"
#include "daemon/workers.h"
#include "lib/broker.h"
#include "lib/policy.h"

enum {
    /* More are not kept for later, however long it takes to tell them. */
    NOTICES_MAX = 10000,
};

#define STOP_TIME  span_from_s(2)    /* the manager hears meanwhile that it goes on */
#define DRAIN_TIME span_from_ms(100) /* of that, for seeing who has come */
#define TELL_TIME  span_from_ms(2)   /* in one turn */

/* Whoever waits for the end of a start that takes long, or of a stop. */
static void tell_progress(void *context)
{
    struct daemon *daemon = context;

    service_tell_progress(daemon->service, clock_now());
}

/* What was blocked since main() is let through now that somebody listens to it. */
static void unblock_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
}

static void tell_start(const struct daemon *daemon)
{
    char policy[IN_FORCE_TEXT_SIZE];

    in_force_print(daemon, policy);
    log_entry(ENTRY_START, LOG_LEVEL_NOTICE, NULL, "started: %s", policy);
}

struct daemon *daemon_new(const struct daemon_options *options)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);

    if (!daemon) {
        log_error("memory ran out");
        close(options->probe);
        return NULL;
    }
    daemon->progress = (struct progress){.goes_on = tell_progress, .context = daemon};
    daemon->config = (struct config_options){
        .file = options->config,
        .is_user = options->is_user,
        .progress = &daemon->progress,
    };
    daemon->stop_at = MOMENT_NEVER;
    upkeep_begin(daemon);
    daemon->reloads = (struct control_reloads){.loaded_at = clock_now(), .last_at = MOMENT_NEVER};
    daemon->descriptors = descriptors_share();
    daemon->service = service_new();
    daemon->keeper = keeper_new();
    daemon->loop = daemon->service && daemon->keeper ? loop_new() : NULL;
    if (!daemon->loop) {
        log_error("the event loop cannot be made: %s", strerror(errno));
        close(options->probe);
        return daemon_free(daemon);
    }
    if (!start_workers(daemon, options->probe) || !start_daemon(daemon, options))
        return daemon_free(daemon);
    ports_keep_folders(daemon->ports);
    control_keep_folder(daemon->control);
    unblock_signals();
    tell_start(daemon);
    service_tell_ready(daemon->service, clock_now());
    return daemon;
}

static void reload_by_signal(struct daemon *daemon)
{
    struct control_verdict verdict;

    daemon->wants_reload = false;
    reload_daemon(daemon, &verdict);
    control_verdict_deinit(&verdict);
}

static void read_all(struct daemon *daemon)
{
    struct moment end = moment_after(clock_now(), DRAIN_TIME);

    while (loop_poll(daemon->loop) && !moment_is_due(end, clock_now()))
        ;
}

/* Stop. */

static enum broker_stop how_to_stop(const struct daemon *daemon)
{
    switch (broker_policy(daemon->broker)->on_stop) {
    case POLICY_STOP_KEEP:
        return BROKER_STOP_KEEP;
    case POLICY_STOP_RESUME:
        return BROKER_STOP_RESUME;
    case POLICY_STOP_AUTO:
        break;
    }
    /* With sockets that outlive us, this may be a restart: who waits is the next daemon's. */
    return ports_has_passed_in(daemon->ports) ? BROKER_STOP_KEEP : BROKER_STOP_RESUME;
}

static void begin_stop(struct daemon *daemon)
{
    enum broker_stop stop = how_to_stop(daemon);

    upkeep_end(daemon);
    service_tell_stopping(daemon->service, clock_now());
    /* Whoever has come is known before we decide about everybody. */
    read_all(daemon);
    daemon->is_stopping = true;
    daemon->stop_at = moment_after(clock_now(), STOP_TIME);
    broker_stop(daemon->broker, stop, clock_now());
    apply_settle(daemon->apply);
    /* Not before it is so: whoever reads it may act on it. */
    log_entry(ENTRY_STOP, LOG_LEVEL_NOTICE, NULL, "stopping; runtimes that wait %s",
              stop == BROKER_STOP_KEEP ? "stay suspended" : "are resumed");
}

static bool has_stopped(const struct daemon *daemon)
{
    return daemon->is_stopping &&
           (broker_is_quiet(daemon->broker) || moment_is_due(daemon->stop_at, clock_now()));
}

/* Run. */

static struct moment next_deadline(const struct daemon *daemon)
{
    struct moment next = broker_next_deadline(daemon->broker);

    if (broker_notices(daemon->broker) > 0)
        return (struct moment){0};
    next = moment_earlier(next, apply_next(daemon->apply));
    next = moment_earlier(next, workers_next(daemon->workers));
    next = moment_earlier(next, ports_retry(daemon->ports));
    next = moment_earlier(next, daemon->look_again);
    next = moment_earlier(next, service_next(daemon->service));
    next = moment_earlier(next, keeper_next(daemon->keeper));
    next = moment_earlier(next, control_next(daemon->control, clock_now()));
    next = moment_earlier(next, notices_deadline(daemon->notices));
    return moment_earlier(next, daemon->stop_at);
}

static void act_on_deadlines(struct daemon *daemon)
{
    struct moment now = clock_now();

    if (!moment_is_due(broker_next_deadline(daemon->broker), now))
        return;
    broker_read_due(daemon->broker, now);
    apply_settle(daemon->apply);
    broker_deadlines(daemon->broker, clock_now());
    apply_settle(daemon->apply);
}

/* Thousands of runtimes that change together must not keep the next one waiting. */
static void tell_people(struct daemon *daemon)
{
    struct moment end = moment_after(clock_now(), TELL_TIME);
    struct notice *notice;

    while ((!moment_is_due(end, clock_now()) || broker_notices(daemon->broker) > NOTICES_MAX) &&
           (notice = broker_take_notice(daemon->broker)))
        notices_take(daemon->notices, notice);
    notices_run(daemon->notices, clock_now());
}

static size_t count_alarms(const struct broker_counters *counters)
{
    size_t n = 0;

    for (size_t i = 0; i < ALARM_COUNT; i++)
        n += counters->alarms[i];
    return n;
}

static void tell_manager(struct daemon *daemon)
{
    const struct broker_counters *counters = broker_counters(daemon->broker);
    struct moment now = clock_now();
    size_t n_alarms = count_alarms(counters);
    char status[200], alarms[64] = "", policy[IN_FORCE_TEXT_SIZE];

    service_run(daemon->service, now);
    keeper_run(daemon->keeper, now);
    if (!service_wants_status(daemon->service, now))
        return;
    if (n_alarms > 0)
        snprintf(alarms, sizeof alarms, "; %zu ALARM%s: diagportctl status", n_alarms,
                 n_alarms == 1 ? "" : "S");
    in_force_print(daemon, policy);
    snprintf(status, sizeof status, "%zu runtimes wait, %zu run; %s%s", counters->n_pending,
             broker_count(daemon->broker, RUNTIME_RUNNING), policy, alarms);
    service_tell_status(daemon->service, status, now);
}

bool daemon_run(struct daemon *daemon)
{
    while (!has_stopped(daemon)) {
        /* Whoever comes does not wait behind all those who are there. */
        if (loop_wait(daemon->loop, next_deadline(daemon)))
            ports_accept(daemon->ports);
        act_on_deadlines(daemon);
        apply_run(daemon->apply);
        workers_run(daemon->workers, clock_now());
        ports_try_again(daemon->ports, clock_now());
        if (moment_is_due(daemon->look_again, clock_now()))
            upkeep_look(daemon);
        if (daemon->wants_reload && !daemon->is_stopping)
            reload_by_signal(daemon);
        if (daemon->wants_stop && !daemon->is_stopping)
            begin_stop(daemon);
        control_run(daemon->control, clock_now());
        tell_people(daemon);
        tell_manager(daemon);
    }
    while (broker_notices(daemon->broker) > 0) {
        tell_people(daemon);
        tell_progress(daemon);
    }
    if (!broker_is_quiet(daemon->broker))
        log_warning("stopped without waiting any longer for runtimes that have not answered, or "
                    "not come back for their Resume");
    return !daemon->is_lost;
}

/* The records stay for whoever comes after us. */
struct daemon *daemon_free(struct daemon *daemon)
{
    if (!daemon)
        return NULL;
    start_undo(daemon);
    workers_free(daemon->workers);
    last_good_free(daemon->last_good);
    snapshots_free(daemon->snapshots);
    store_close(daemon->store);
    loop_free(daemon->loop);
    service_free(daemon->service);
    keeper_free(daemon->keeper);
    free(daemon);
    return NULL;
}
