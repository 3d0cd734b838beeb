/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/apply.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/notices.h"
#include "daemon/ports.h"
#include "daemon/service.h"
#include "daemon/store.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/policy.h"

enum {
    /* For our own files and sockets, and what is read of /proc and of the policy. */
    DESCRIPTORS_OWN = 64,
    DESCRIPTORS_MIN = 16,
    CONTROL_CONNECTIONS_MIN = 4,
    /* More are not kept for later, however long it takes to tell them. */
    NOTICES_MAX = 10000,
};

#define STOP_TIME  span_from_s(2)
#define DRAIN_TIME span_from_ms(100) /* of that, for seeing who has come */
#define TELL_TIME  span_from_ms(2)   /* in one turn */
#define TELL_AGAIN span_from_ms(100)

struct daemon {
    struct config_options config;
    struct loop *loop;
    struct store *store;
    struct broker *broker;
    struct apply *apply;
    struct ports *ports;
    struct notices *notices;
    struct control *control;
    struct control_reloads reloads;
    enum broker_trust trust;
    uint64_t distrusted_until;
    size_t usable_descriptors;
    unsigned n_control_connections;
    struct loop_signal *on_term, *on_int, *on_hup;
    const char *untold; /* the status of a readiness that could not be told; NULL: none */
    struct moment tell_again;
    bool wants_reload;
    bool wants_stop;
    bool is_stopping;
    struct moment stop_at; /* MOMENT_NEVER while it runs */
};

static void reload(void *context, struct control_verdict *ret_verdict);

/* A service manager that never hears of it takes us for one that hangs, and ends us. */
static void tell_ready(struct daemon *daemon, const char *status)
{
    bool is_told = service_tell_ready(status);

    daemon->untold = is_told ? NULL : status;
    daemon->tell_again = is_told ? MOMENT_NEVER : moment_after(clock_now(), TELL_AGAIN);
}

/* Start. */

static void be_asked_to_stop(void *context)
{
    struct daemon *daemon = context;

    daemon->wants_stop = true;
    loop_wake(daemon->loop);
}

static void be_asked_to_reload(void *context)
{
    struct daemon *daemon = context;

    daemon->wants_reload = true;
    loop_wake(daemon->loop);
}

static void be_paused(void *context, bool is_paused)
{
    struct daemon *daemon = context;

    ports_pause(daemon->ports, is_paused);
}

/* As many as we may have, since every runtime costs one for its life. */
static size_t raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX / 2 : (size_t)limit.rlim_cur;
}

/* Where there are few, nobody gets all of them: half for us, an eighth for people. */
static void share_descriptors(struct daemon *daemon)
{
    size_t n = raise_descriptors();
    size_t own = n / 2 < DESCRIPTORS_OWN ? n / 2 : DESCRIPTORS_OWN;
    size_t control = n / 8 < CONTROL_CONNECTIONS_MAX ? n / 8 : CONTROL_CONNECTIONS_MAX;

    if (control < CONTROL_CONNECTIONS_MIN)
        control = CONTROL_CONNECTIONS_MIN;
    daemon->n_control_connections = (unsigned)control;
    daemon->usable_descriptors =
        n > own + control + DESCRIPTORS_MIN ? n - own - control : DESCRIPTORS_MIN;
}

static void log_problems(const struct policy_problems *problems)
{
    for (size_t i = 0; i < problems->n; i++) {
        enum log_level level =
            problems->list[i].severity == POLICY_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING;
        struct bytes line;

        bytes_init(&line, 8192);
        policy_problem_print(&problems->list[i], &line);
        while (line.length > 0 && line.data[line.length - 1] == '\n')
            line.length--;
        if (bytes_finish(&line) == 0)
            log_write(level, "%s", (const char *)line.data);
        bytes_deinit(&line);
    }
    if (problems->n_dropped > 0)
        log_error("%zu more problems are not shown", problems->n_dropped);
}

/* The policy to start with: a bad one is no reason not to start, since apps wait. */
static struct policy *load_first(const struct daemon *daemon, bool *ret_is_bad)
{
    struct config_loaded loaded;
    struct policy *policy;
    int error = config_load(&daemon->config, &loaded);

    if (error != 0) {
        log_error("the policy could not be read: %s", strerror(-error));
        return NULL;
    }
    log_problems(&loaded.problems);
    *ret_is_bad = !loaded.policy;
    if (loaded.is_built_in)
        log_warning("nothing of the policy can be used, so the daemon listens in the usual place");
    policy = policy_ref(loaded.policy ? loaded.policy : loaded.salvage);
    config_loaded_deinit(&loaded);
    return policy;
}

static bool open_store(struct daemon *daemon, const char *folder)
{
    struct store_found found;
    int error;

    daemon->store = store_open(folder, &found, &error);
    if (error == -EBUSY) {
        log_error("another diagportd uses the state folder %s; stop it, or give this one another "
                  "folder with --state",
                  folder);
        free(found.why);
        return false;
    }
    if (found.trust == BROKER_HAS_NO_RECORDS)
        log_error("%s; nothing is applied to any runtime until the daemon is started with a state "
                  "folder that works",
                  found.why ? found.why : "memory ran out");
    else if (found.trust == BROKER_DISTRUSTS_RECORDS)
        log_warning("%s; runtimes older than that are resumed untouched",
                    found.why ? found.why : "records were lost");
    free(found.why);
    daemon->trust = found.trust;
    daemon->distrusted_until = found.distrusted_until;
    return true;
}

static void warn_of_limits(const struct policy *policy, size_t usable)
{
    /* One for the connection, one for the handle of the process. */
    if (policy->limits.runtimes > usable / 2)
        log_warning("limits.runtimes is %u, but descriptors last for %zu that wait; raise "
                    "LimitNOFILE= (ulimit -n)",
                    policy->limits.runtimes, usable / 2);
}

static bool start_broker(struct daemon *daemon, struct policy *policy)
{
    struct broker_options options = {
        .policy = policy,
        .trust = daemon->trust,
        .distrusted_until = daemon->distrusted_until,
    };

    share_descriptors(daemon);
    options.usable_descriptors = daemon->usable_descriptors;
    warn_of_limits(policy, options.usable_descriptors);
    daemon->broker = broker_new(&options);
    if (!daemon->broker) {
        log_error("memory ran out");
        return false;
    }
    if (daemon->trust == BROKER_HAS_NO_RECORDS)
        broker_alarm(daemon->broker, ALARM_RECORDS, true,
                     "no records can be kept, so nothing is applied", clock_now());
    if (!daemon->store || store_recall(daemon->store, daemon->broker) == 0)
        return true;
    log_error("memory ran out while the records were read");
    return false;
}

static void settle(void *context)
{
    struct daemon *daemon = context;

    apply_settle(daemon->apply);
}

static void tell(void *context, struct notice *notice)
{
    struct daemon *daemon = context;

    notices_take(daemon->notices, notice);
}

static bool is_stopping(void *context)
{
    const struct daemon *daemon = context;

    return daemon->is_stopping;
}

static bool start_control(struct daemon *daemon)
{
    struct control_options options = {
        .loop = daemon->loop,
        .broker = daemon->broker,
        .ports = daemon->ports,
        .notices = daemon->notices,
        .reloads = &daemon->reloads,
        .trust = daemon->trust,
        .usable_descriptors = daemon->usable_descriptors,
        .n_connections_max = daemon->n_control_connections,
        .is_user = daemon->config.is_user,
        .may_kill = config_host()->may_kill,
        .settle = settle,
        .tell = tell,
        .reload = reload,
        .is_stopping = is_stopping,
        .context = daemon,
    };

    daemon->control = control_new(&options);
    return daemon->control;
}

static bool make_rooms(struct daemon *daemon)
{
    struct apply_options options = {
        .broker = daemon->broker,
        .loop = daemon->loop,
        .store = daemon->store,
        .pause = be_paused,
        .context = daemon,
    };

    daemon->notices = notices_new();
    daemon->apply = apply_new(&options);
    if (!daemon->apply || !daemon->notices)
        return false;
    daemon->ports = ports_new(daemon->loop, daemon->broker, apply_peers(daemon->apply));
    daemon->on_term = loop_signal_new(daemon->loop, SIGTERM, be_asked_to_stop, daemon);
    daemon->on_int = loop_signal_new(daemon->loop, SIGINT, be_asked_to_stop, daemon);
    daemon->on_hup = loop_signal_new(daemon->loop, SIGHUP, be_asked_to_reload, daemon);
    return daemon->ports && daemon->on_term && daemon->on_int && daemon->on_hup &&
           start_control(daemon);
}

static bool start_rooms(struct daemon *daemon)
{
    if (make_rooms(daemon))
        return true;
    log_error("memory or descriptors ran out: %s", strerror(errno));
    return false;
}

static bool start_sockets(struct daemon *daemon, struct policy *policy)
{
    struct service_sockets passed;
    char *why = NULL;
    int error = service_take_sockets(&passed);

    if (error != 0) {
        log_error("the sockets that were passed in cannot be taken: %s", strerror(-error));
        return false;
    }
    if (policy->n_listens == 0) {
        log_error("there is no socket to listen on");
        return false;
    }
    error = ports_open(daemon->ports, policy, &passed, &why);
    if (error == 0)
        error =
            control_open(daemon->control, policy, service_take_socket(&passed, "control"), &why);
    if (error != 0)
        log_error("%s", why ? why : "memory ran out");
    free(why);
    service_sockets_deinit(&passed);
    return error == 0;
}

/* What was blocked since main() is let through now that somebody listens to it. */
static void unblock_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
}

static bool start(struct daemon *daemon, const struct daemon_options *options)
{
    bool policy_is_bad = false;
    struct policy *policy = load_first(daemon, &policy_is_bad);
    bool is_started;

    if (!policy)
        return false;
    is_started = open_store(daemon, options->state) && start_broker(daemon, policy) &&
                 start_rooms(daemon) && start_sockets(daemon, policy);
    if (is_started && policy_is_bad) {
        log_error("the policy has errors: every runtime is resumed untouched until it is corrected "
                  "and the daemon reloaded");
        broker_alarm(daemon->broker, ALARM_POLICY, true,
                     "the policy has errors; every runtime is resumed untouched", clock_now());
    }
    policy_unref(policy);
    return is_started;
}

struct daemon *daemon_new(const struct daemon_options *options)
{
    struct daemon *daemon = calloc(1, sizeof *daemon);

    if (!daemon) {
        log_error("memory ran out");
        return NULL;
    }
    daemon->config = (struct config_options){.file = options->config, .is_user = options->is_user};
    daemon->stop_at = MOMENT_NEVER;
    daemon->tell_again = MOMENT_NEVER;
    daemon->reloads = (struct control_reloads){.loaded_at = clock_now(), .last_at = MOMENT_NEVER};
    daemon->loop = loop_new();
    if (!daemon->loop) {
        log_error("the event loop cannot be made: %s", strerror(errno));
        return daemon_free(daemon);
    }
    if (!start(daemon, options))
        return daemon_free(daemon);
    unblock_signals();
    tell_ready(daemon, "running");
    return daemon;
}

/* Reload. */

/* Both halves of the sockets, or nothing. */
static int switch_policy(struct daemon *daemon, struct policy *policy, char **ret_why)
{
    int error = ports_stage(daemon->ports, policy, ret_why);

    if (error != 0)
        return error;
    error = control_stage(daemon->control, policy, ret_why);
    if (error != 0) {
        ports_abandon(daemon->ports);
        return error;
    }
    error = broker_set_policy(daemon->broker, policy);
    if (error != 0) {
        ports_abandon(daemon->ports);
        control_abandon(daemon->control);
        return error;
    }
    ports_commit(daemon->ports);
    control_commit(daemon->control);
    return 0;
}

static void load_again(struct daemon *daemon, struct control_verdict *verdict)
{
    struct config_loaded loaded;
    int error = config_load(&daemon->config, &loaded);

    if (error != 0) {
        if (asprintf(&verdict->why, "the policy could not be read: %s", strerror(-error)) < 0)
            verdict->why = NULL;
    } else {
        log_problems(&loaded.problems);
        if (loaded.policy)
            error = switch_policy(daemon, loaded.policy, &verdict->why);
        verdict->is_done = loaded.policy && error == 0;
        verdict->problems = loaded.problems;
        loaded.problems = (struct policy_problems){0};
        config_loaded_deinit(&loaded);
    }
    if (error != 0 && !verdict->why)
        verdict->why = strdup("memory ran out");
    if (error != 0)
        log_error("%s", verdict->why ? verdict->why : "memory ran out");
}

static void count_reload(struct control_reloads *reloads, bool is_done)
{
    reloads->last_at = clock_now();
    reloads->was_last_done = is_done;
    if (is_done) {
        reloads->n_done++;
        reloads->loaded_at = reloads->last_at;
    } else {
        reloads->n_failed++;
    }
}

static void reload(void *context, struct control_verdict *ret_verdict)
{
    struct daemon *daemon = context;
    const struct policy *policy;

    *ret_verdict = (struct control_verdict){.is_done = false};
    service_tell_reloading(clock_now());
    load_again(daemon, ret_verdict);
    count_reload(&daemon->reloads, ret_verdict->is_done);
    broker_alarm(daemon->broker, ALARM_POLICY, !ret_verdict->is_done,
                 "the policy on disk could not be loaded; the one before stays in force",
                 clock_now());
    policy = broker_policy(daemon->broker);
    if (ret_verdict->is_done)
        log_notice("reloaded: policy %.12s with %zu rules is in force", policy->hash,
                   policy->n_rules);
    else
        log_error("not reloaded: the policy before stays in force");
    apply_settle(daemon->apply);
    tell_ready(daemon, ret_verdict->is_done ? "running" : "running; the last reload failed");
}

static void reload_by_signal(struct daemon *daemon)
{
    struct control_verdict verdict;

    daemon->wants_reload = false;
    reload(daemon, &verdict);
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

    daemon->tell_again = MOMENT_NEVER;
    service_tell_stopping();
    /* Whoever has come is known before we decide about everybody. */
    read_all(daemon);
    daemon->is_stopping = true;
    daemon->stop_at = moment_after(clock_now(), STOP_TIME);
    broker_stop(daemon->broker, stop, clock_now());
    apply_settle(daemon->apply);
    /* Not before it is so: whoever reads it may act on it. */
    log_notice(stop == BROKER_STOP_KEEP ? "stopping; runtimes that wait stay suspended"
                                        : "stopping; runtimes that wait are resumed");
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

    if (apply_has_questions(daemon->apply) || broker_notices(daemon->broker) > 0)
        return (struct moment){0};
    next = moment_earlier(next, ports_retry(daemon->ports));
    next = moment_earlier(next, daemon->tell_again);
    next = moment_earlier(next, control_next(daemon->control, clock_now()));
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
}

void daemon_run(struct daemon *daemon)
{
    while (!has_stopped(daemon)) {
        /* Whoever comes does not wait behind all those who are there. */
        if (loop_wait(daemon->loop, next_deadline(daemon)))
            ports_accept(daemon->ports);
        act_on_deadlines(daemon);
        apply_look(daemon->apply);
        ports_try_again(daemon->ports, clock_now());
        if (moment_is_due(daemon->tell_again, clock_now()))
            tell_ready(daemon, daemon->untold);
        if (daemon->wants_reload && !daemon->is_stopping)
            reload_by_signal(daemon);
        if (daemon->wants_stop && !daemon->is_stopping)
            begin_stop(daemon);
        control_run(daemon->control, clock_now());
        tell_people(daemon);
    }
    while (broker_notices(daemon->broker) > 0)
        tell_people(daemon);
    if (!broker_is_quiet(daemon->broker))
        log_warning("stopped without waiting any longer for runtimes that have not answered, or "
                    "not come back for their Resume");
}

/* Sockets first: nobody may come in any more. The records stay for whoever comes after us. */
struct daemon *daemon_free(struct daemon *daemon)
{
    if (!daemon)
        return NULL;
    ports_free(daemon->ports);
    control_free(daemon->control);
    broker_free(daemon->broker);
    apply_free(daemon->apply);
    notices_free(daemon->notices);
    store_close(daemon->store);
    loop_signal_free(daemon->on_term);
    loop_signal_free(daemon->on_int);
    loop_signal_free(daemon->on_hup);
    loop_free(daemon->loop);
    free(daemon);
    return NULL;
}
