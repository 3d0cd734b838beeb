/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/apply.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/descriptors.h"
#include "daemon/keeper.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/notices.h"
#include "daemon/ports.h"
#include "daemon/service.h"
#include "daemon/snapshots.h"
#include "daemon/store.h"
#include "daemon/workers.h"
#include "host/rights.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/policy.h"

enum {
    /* More are not kept for later, however long it takes to tell them. */
    NOTICES_MAX = 10000,
};

#define STOP_TIME  span_from_s(2)
#define DRAIN_TIME span_from_ms(100) /* of that, for seeing who has come */
#define TELL_TIME  span_from_ms(2)   /* in one turn */
#define LOOK_AGAIN span_from_s(5)    /* at the files of our sockets */

struct daemon {
    struct config_options config;
    struct loop *loop;
    struct service *service;
    struct keeper *keeper;
    struct store *store;
    struct snapshots *snapshots;
    struct workers *workers;
    struct broker *broker;
    struct apply *apply;
    struct ports *ports;
    struct notices *notices;
    struct control *control;
    struct control_reloads reloads;
    struct descriptors descriptors;
    struct loop_signal *on_term, *on_int, *on_hup;
    struct moment look_again;
    bool wants_reload;
    bool wants_stop;
    bool is_lost; /* it stops since the probe is gone */
    bool is_stopping;
    struct moment stop_at; /* MOMENT_NEVER while it runs */
};

static void reload(void *context, struct control_verdict *ret_verdict);

/* Somebody may remove them, or put others in their place: then nobody comes any more. */
static void look_at_sockets(struct daemon *daemon)
{
    bool are_ports_there = ports_look(daemon->ports);
    bool is_control_there = control_look(daemon->control);

    daemon->look_again = moment_after(clock_now(), LOOK_AGAIN);
    broker_alarm(daemon->broker, ALARM_SOCKETS, !are_ports_there || !is_control_there,
                 "the file of a socket was removed or replaced; a reload makes it anew",
                 clock_now());
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

/* Nobody could be looked at any more: the next daemon has a new one. */
static void be_lost(void *context)
{
    struct daemon *daemon = context;

    log_error("diagport-probe has ended, and the daemon with it");
    daemon->is_lost = true;
    be_asked_to_stop(daemon);
}

static void be_paused(void *context, bool is_paused)
{
    struct daemon *daemon = context;

    ports_pause(daemon->ports, is_paused);
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

static bool refuse_folder(const char *folder)
{
    log_error("another diagportd uses the state folder %s, or diagport-rescue does; stop it, or "
              "give this one another folder with --state",
              folder);
    return false;
}

static bool claim_store(struct daemon *daemon, const char *folder)
{
    int error;

    daemon->store = store_claim(folder, &error);
    if (error == -EBUSY)
        return refuse_folder(folder);
    if (!daemon->store)
        log_error("memory ran out");
    return daemon->store;
}

static void take_trust(struct daemon *daemon, const struct store_found *found)
{
    if (found->trust == BROKER_HAS_NO_RECORDS) {
        log_error("%s; nothing is applied to any runtime until the daemon is started with a state "
                  "folder that works",
                  found->why ? found->why : "memory ran out");
        broker_alarm(daemon->broker, ALARM_RECORDS, true,
                     "no records can be kept, so nothing is applied", clock_now());
    } else if (found->trust == BROKER_DISTRUSTS_RECORDS) {
        log_warning("%s; runtimes older than that are resumed untouched",
                    found->why ? found->why : "records were lost");
    }
    broker_set_trust(daemon->broker, found->trust, found->distrusted_until);
}

/* So that plans that are under way by it can be gone on with. */
static void keep_policy(struct daemon *daemon, const struct policy *policy)
{
    int error = snapshots_keep(daemon->snapshots, policy);

    if (error != 0)
        log_warning("the policy cannot be kept in the state folder: %s; plans that are under way "
                    "when the daemon is started anew will end there",
                    strerror(-error));
}

static bool is_policy_needed(void *context, const uint8_t id[static RECORD_POLICY_SIZE])
{
    const struct daemon *daemon = context;

    return broker_needs_policy(daemon->broker, id);
}

static bool recall(struct daemon *daemon)
{
    struct store_policies policies = {.find = snapshots_find};

    daemon->snapshots = snapshots_new(store_folder(daemon->store));
    policies.context = daemon->snapshots;
    if (!daemon->snapshots || store_recall(daemon->store, daemon->broker, &policies) != 0) {
        log_error("memory ran out while the records were read");
        return false;
    }
    keep_policy(daemon, broker_policy(daemon->broker));
    snapshots_sweep(daemon->snapshots, is_policy_needed, daemon);
    return true;
}

/* The last thing of a start that can fail by what is there already: before it nothing was made that
 * does not go again with us. */
static bool open_store(struct daemon *daemon, const char *folder)
{
    struct store_found found;

    if (store_open(daemon->store, &found) != 0) {
        free(found.why);
        return refuse_folder(folder);
    }
    take_trust(daemon, &found);
    free(found.why);
    return recall(daemon);
}

/* The default is for who has many: where there are fewer, the status says how many may wait. */
static void warn_of_limits(const struct broker *broker)
{
    const struct policy_limits *limits = &broker_policy(broker)->limits;

    if (limits->has_runtimes && limits->runtimes > broker_runtimes(broker))
        log_warning("limits.runtimes is %u, but descriptors last for %zu that wait; raise "
                    "LimitNOFILE= (ulimit -n)",
                    limits->runtimes, broker_runtimes(broker));
}

static bool start_broker(struct daemon *daemon, struct policy *policy)
{
    struct broker_options options = {
        .policy = policy,
        .trust = BROKER_HAS_NO_RECORDS, /* until they are opened */
        .usable_descriptors = daemon->descriptors.n_usable,
        .n_keepable = service_has_manager() ? BROKER_KEPT_MAX : 0,
    };

    daemon->broker = broker_new(&options);
    if (!daemon->broker) {
        log_error("memory ran out");
        return false;
    }
    warn_of_limits(daemon->broker);
    return true;
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
        .looks = apply_looks(daemon->apply),
        .notices = daemon->notices,
        .reloads = &daemon->reloads,
        .usable_descriptors = daemon->descriptors.n_usable,
        .n_connections_max = daemon->descriptors.n_control,
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

static bool start_workers(struct daemon *daemon, int channel)
{
    const struct workers_options options = {
        .loop = daemon->loop,
        .channel = channel,
        .lost = be_lost,
        .context = daemon,
    };

    daemon->workers = workers_new(&options);
    if (!daemon->workers)
        log_error("memory or descriptors ran out: %s", strerror(errno));
    return daemon->workers;
}

static bool make_rooms(struct daemon *daemon)
{
    struct apply_options options = {
        .broker = daemon->broker,
        .loop = daemon->loop,
        .workers = daemon->workers,
        .store = daemon->store,
        .keeper = daemon->keeper,
        .may_kill = config_host()->may_kill,
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

static bool start_sockets(struct daemon *daemon, struct policy *policy,
                          struct service_sockets *passed)
{
    char *why = NULL;
    int error = service_take_sockets(passed);

    if (error != 0) {
        log_error("the sockets that were passed in cannot be taken: %s", strerror(-error));
        return false;
    }
    if (policy->n_listens == 0) {
        log_error("there is no socket to listen on");
        return false;
    }
    error = ports_open(daemon->ports, policy, passed, &why);
    if (error == 0)
        error = control_open(daemon->control, policy, service_take_socket(passed, "control"), &why);
    if (error != 0)
        log_error("%s", why ? why : "memory ran out");
    free(why);
    return error == 0;
}

static bool adopt(void *context, int fd, uint64_t kept)
{
    const struct daemon *daemon = context;

    return peer_adopt(apply_peers(daemon->apply), fd, ports_number_of(daemon->ports, fd), kept);
}

/* What is read again at a reload has to be readable without a right, too. */
static void warn_of_policy(const struct daemon *daemon)
{
    const char *file = daemon->config.file;

    if (file && faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) != 0)
        log_warning("the daemon's user cannot read the policy %s any more (%s), so reloads will be "
                    "refused; let that user read it",
                    file, strerror(errno));
}

/* All that needed a right is done, and what is left that does is the probe's. */
static bool give_up_rights(const struct daemon *daemon, const struct rights_user *user)
{
    int error = rights_give_up(user, 0);

    if (error != 0) {
        log_error("the daemon cannot give up its rights: %s", strerror(-error));
        return false;
    }
    if (!user && geteuid() == 0 && !daemon->config.is_user)
        log_warning("the daemon stays root, without any capability, since it cannot become the "
                    "user diagport: make that user, and restart");
    warn_of_policy(daemon);
    return true;
}

/* What was blocked since main() is let through now that somebody listens to it. */
static void unblock_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
}

static void tell_start(const struct policy *policy)
{
    log_entry(ENTRY_START, LOG_LEVEL_NOTICE, NULL,
              "started: policy %.12s with %zu rules is in force", policy->hash, policy->n_rules);
}

static bool start(struct daemon *daemon, const struct daemon_options *options)
{
    struct service_sockets passed = {.n = 0};
    bool policy_is_bad = false;
    struct policy *policy = load_first(daemon, &policy_is_bad);
    bool is_started;

    if (!policy)
        return false;
    is_started = claim_store(daemon, options->state) && start_broker(daemon, policy) &&
                 start_rooms(daemon) && start_sockets(daemon, policy, &passed) &&
                 open_store(daemon, options->state) && give_up_rights(daemon, options->user);
    /* By the records, and before anybody is accepted. */
    if (is_started)
        keeper_adopt(daemon->keeper, &passed, adopt, daemon);
    service_sockets_deinit(&passed);
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
        close(options->probe);
        return NULL;
    }
    daemon->config = (struct config_options){.file = options->config, .is_user = options->is_user};
    daemon->stop_at = MOMENT_NEVER;
    daemon->look_again = moment_after(clock_now(), LOOK_AGAIN);
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
    if (!start_workers(daemon, options->probe) || !start(daemon, options))
        return daemon_free(daemon);
    ports_keep_folders(daemon->ports);
    control_keep_folder(daemon->control);
    unblock_signals();
    tell_start(broker_policy(daemon->broker));
    service_tell_ready(daemon->service, clock_now());
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
    keep_policy(daemon, policy);
    error = broker_set_policy(daemon->broker, policy);
    if (error != 0) {
        ports_abandon(daemon->ports);
        control_abandon(daemon->control);
        return error;
    }
    ports_commit(daemon->ports);
    control_commit(daemon->control);
    warn_of_limits(daemon->broker);
    snapshots_sweep(daemon->snapshots, is_policy_needed, daemon);
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
    service_tell_reloading(daemon->service, clock_now());
    ports_repair(daemon->ports);
    control_repair(daemon->control);
    look_at_sockets(daemon);
    load_again(daemon, ret_verdict);
    count_reload(&daemon->reloads, ret_verdict->is_done);
    broker_alarm(daemon->broker, ALARM_POLICY, !ret_verdict->is_done,
                 "the policy on disk could not be loaded; the one before stays in force",
                 clock_now());
    policy = broker_policy(daemon->broker);
    if (ret_verdict->is_done)
        log_entry(ENTRY_RELOAD, LOG_LEVEL_NOTICE, NULL,
                  "reloaded: policy %.12s with %zu rules is in force", policy->hash,
                  policy->n_rules);
    else
        log_entry(ENTRY_RELOAD_FAILED, LOG_LEVEL_ERROR, NULL,
                  "not reloaded: the policy before stays in force");
    apply_settle(daemon->apply);
    service_tell_ready(daemon->service, clock_now());
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

    daemon->look_again = MOMENT_NEVER;
    service_tell_stopping(daemon->service, STOP_TIME);
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
    const struct policy *policy = broker_policy(daemon->broker);
    struct moment now = clock_now();
    size_t n_alarms = count_alarms(counters);
    char status[200], alarms[64] = "";

    service_run(daemon->service, now);
    keeper_run(daemon->keeper, now);
    if (!service_wants_status(daemon->service, now))
        return;
    if (n_alarms > 0)
        snprintf(alarms, sizeof alarms, "; %zu ALARM%s: diagportctl status", n_alarms,
                 n_alarms == 1 ? "" : "S");
    snprintf(status, sizeof status, "%zu runtimes wait, %zu run; policy %.12s, %zu rules%s",
             counters->n_pending, broker_count(daemon->broker, RUNTIME_RUNNING), policy->hash,
             policy->n_rules, alarms);
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
            look_at_sockets(daemon);
        if (daemon->wants_reload && !daemon->is_stopping)
            reload_by_signal(daemon);
        if (daemon->wants_stop && !daemon->is_stopping)
            begin_stop(daemon);
        control_run(daemon->control, clock_now());
        tell_people(daemon);
        tell_manager(daemon);
    }
    while (broker_notices(daemon->broker) > 0)
        tell_people(daemon);
    if (!broker_is_quiet(daemon->broker))
        log_warning("stopped without waiting any longer for runtimes that have not answered, or "
                    "not come back for their Resume");
    return !daemon->is_lost;
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
    workers_free(daemon->workers);
    notices_free(daemon->notices);
    snapshots_free(daemon->snapshots);
    store_close(daemon->store);
    loop_signal_free(daemon->on_term);
    loop_signal_free(daemon->on_int);
    loop_signal_free(daemon->on_hup);
    loop_free(daemon->loop);
    service_free(daemon->service);
    keeper_free(daemon->keeper);
    free(daemon);
    return NULL;
}
