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
#include "daemon/last_good.h"
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
    POLICY_TEXT_SIZE = 80,
};

#define STOP_TIME  span_from_s(2)    /* the manager hears meanwhile that it goes on */
#define DRAIN_TIME span_from_ms(100) /* of that, for seeing who has come */
#define TELL_TIME  span_from_ms(2)   /* in one turn */
#define LOOK_AGAIN span_from_s(5)    /* at the files of our sockets */

struct daemon {
    struct progress progress;
    struct config_options config;
    struct loop *loop;
    struct service *service;
    struct store *store;
    struct snapshots *snapshots;
    struct last_good *last_good;
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

/* What is in force, in few words. */
static void print_policy(const struct daemon *daemon, char ret_text[static POLICY_TEXT_SIZE])
{
    const struct policy *policy = broker_policy(daemon->broker);

    switch (daemon->reloads.origin) {
    case CONFIG_FILES:
    case CONFIG_BUILT_IN:
    case CONFIG_LAST_GOOD:
        snprintf(ret_text, POLICY_TEXT_SIZE, "%spolicy %.12s with %zu rules is in force",
                 daemon->reloads.origin == CONFIG_LAST_GOOD ? "the LAST GOOD " : "", policy->hash,
                 policy->n_rules);
        break;
    case CONFIG_SALVAGED:
        snprintf(ret_text, POLICY_TEXT_SIZE, "NO policy is in force");
        break;
    }
}

static void raise_policy_alarm(struct daemon *daemon, bool is_on)
{
    const char *why = NULL;

    switch (daemon->reloads.origin) {
    case CONFIG_FILES:
    case CONFIG_BUILT_IN:
        why = "the policy on disk could not be loaded; the one before stays in force";
        break;
    case CONFIG_LAST_GOOD:
        why = "the policy on disk could not be loaded; the last good one is in force";
        break;
    case CONFIG_SALVAGED:
        why = "the policy has errors; every runtime is resumed untouched";
        break;
    }
    broker_alarm(daemon->broker, ALARM_POLICY, is_on, why, clock_now());
}

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

/* Whoever waits for the end of a start that takes long, or of a stop. */
static void tell_progress(void *context)
{
    struct daemon *daemon = context;

    service_tell_progress(daemon->service, clock_now());
}

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

/* A policy that is bad is no reason not to start, since apps wait. */
static bool load_first(const struct daemon *daemon, struct config_loaded *ret_loaded)
{
    int error = config_load(&daemon->config, ret_loaded);

    if (error != 0) {
        log_error("the policy could not be read: %s", strerror(-error));
        return false;
    }
    log_problems(&ret_loaded->problems);
    return true;
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

/* So that plans that are under way by it can be gone on with. False when it cannot be kept. */
static bool keep_policy(struct daemon *daemon, const struct policy *policy,
                        struct snapshot_name *ret_name)
{
    int error = snapshots_keep(daemon->snapshots, policy, ret_name);

    /* Without a folder for it that was said already. */
    if (error != 0 && error != -ENOENT)
        log_warning("the policy cannot be kept in the state folder: %s; plans that are under way "
                    "when the daemon is started anew will end there, and it is not the last good "
                    "one then",
                    strerror(-error));
    return error == 0;
}

/* It is in force. `kept` NULL: but not kept, and then an older one is none to go back to. */
static void be_last_good(struct daemon *daemon, const struct snapshot_name *kept)
{
    int error = 0;

    if (kept)
        error = last_good_set(daemon->last_good, kept);
    else
        last_good_clear(daemon->last_good);
    if (error != 0)
        log_warning("it cannot be noted in the state folder which policy is the last good one: %s; "
                    "should the next daemon find no policy that it can load, it resumes everybody",
                    strerror(-error));
}

static bool is_policy_needed(void *context, const uint8_t id[static RECORD_POLICY_SIZE])
{
    const struct daemon *daemon = context;

    return broker_needs_policy(daemon->broker, id) || last_good_is(daemon->last_good, id);
}

static bool recall(struct daemon *daemon)
{
    struct store_policies policies = {
        .find = snapshots_find,
        .context = daemon->snapshots,
        .progress = &daemon->progress,
    };

    if (store_recall(daemon->store, daemon->broker, &policies) != 0) {
        log_error("memory ran out while the records were read");
        return false;
    }
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
    int error;

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

static void tell_start(const struct daemon *daemon)
{
    char policy[POLICY_TEXT_SIZE];

    print_policy(daemon, policy);
    log_entry(ENTRY_START, LOG_LEVEL_NOTICE, NULL, "started: %s", policy);
}

/* The policies that are kept, where there are some: before the start has decided what it will be.
 */
static bool find_kept(struct daemon *daemon)
{
    struct last_good_options options = {.store = daemon->store, .main_file = daemon->config.file};

    daemon->snapshots = snapshots_new(daemon->store);
    options.snapshots = daemon->snapshots;
    daemon->last_good = last_good_new(&options);
    if (daemon->snapshots && daemon->last_good)
        return true;
    log_error("memory ran out");
    return false;
}

static struct policy *find_last_good(struct daemon *daemon)
{
    struct policy *policy;
    char *why;

    if (last_good_load(daemon->last_good, &policy, &why) != 0)
        log_error("the last good policy is not used: memory ran out");
    else if (why)
        log_error("the last good policy is not used: %s", why);
    free(why);
    return policy;
}

/* Everything that lives by a policy from the start on. */
static bool start_with(struct daemon *daemon, struct policy *policy, enum config_origin origin,
                       struct service_sockets *passed)
{
    daemon->reloads.origin = origin;
    return start_broker(daemon, policy) && start_rooms(daemon) &&
           start_sockets(daemon, policy, passed);
}

/* Sockets first: nobody may come in any more. */
static void end_rooms(struct daemon *daemon)
{
    daemon->ports = ports_free(daemon->ports);
    daemon->control = control_free(daemon->control);
    daemon->broker = broker_free(daemon->broker);
    daemon->apply = apply_free(daemon->apply);
    daemon->notices = notices_free(daemon->notices);
    daemon->on_term = loop_signal_free(daemon->on_term);
    daemon->on_int = loop_signal_free(daemon->on_int);
    daemon->on_hup = loop_signal_free(daemon->on_hup);
}

/* With its own sockets: of what is passed in it gets copies, since they may be missed afterwards.
 */
static bool start_with_last_good(struct daemon *daemon, const struct service_sockets *passed)
{
    struct policy *policy = find_last_good(daemon);
    struct service_sockets copy;
    bool is_started = false;

    if (!policy)
        return false;
    if (service_copy_sockets(passed, &copy) == 0) {
        is_started = start_with(daemon, policy, CONFIG_LAST_GOOD, &copy);
        service_sockets_deinit(&copy);
    }
    if (!is_started) {
        log_error("the last good policy is not used: the daemon cannot be started with it");
        end_rooms(daemon);
    }
    policy_unref(policy);
    return is_started;
}

static bool start_with_salvage(struct daemon *daemon, const struct config_loaded *loaded,
                               struct service_sockets *passed)
{
    if (loaded->is_built_in)
        log_warning("nothing of the policy can be used, so the daemon listens in the usual place");
    return start_with(daemon, loaded->salvage, CONFIG_SALVAGED, passed);
}

static bool start_with_any(struct daemon *daemon, const struct config_loaded *loaded,
                           struct service_sockets *passed)
{
    enum config_origin origin = daemon->config.file ? CONFIG_FILES : CONFIG_BUILT_IN;
    int error = service_take_sockets(passed);

    if (error != 0) {
        log_error("the sockets that were passed in cannot be taken: %s", strerror(-error));
        return false;
    }
    if (loaded->policy)
        return start_with(daemon, loaded->policy, origin, passed);
    return start_with_last_good(daemon, passed) || start_with_salvage(daemon, loaded, passed);
}

/* What has errors is on disk still: until that is corrected somebody has to know. */
static void tell_bad_policy(struct daemon *daemon)
{
    const struct policy *policy = broker_policy(daemon->broker);

    if (daemon->reloads.origin == CONFIG_LAST_GOOD)
        log_entry(ENTRY_LAST_GOOD, LOG_LEVEL_ERROR, NULL,
                  "the policy has errors: the last good one, %.12s with %zu rules, stays in force "
                  "until it is corrected and the daemon reloaded",
                  policy->hash, policy->n_rules);
    else
        log_error("the policy has errors: every runtime is resumed untouched until it is corrected "
                  "and the daemon reloaded");
    raise_policy_alarm(daemon, true);
}

/* The policy that the start has succeeded with is kept, and those go that nobody needs. */
static void keep_first(struct daemon *daemon)
{
    struct snapshot_name name;

    if (daemon->reloads.origin == CONFIG_FILES || daemon->reloads.origin == CONFIG_BUILT_IN) {
        bool is_kept = keep_policy(daemon, broker_policy(daemon->broker), &name);

        be_last_good(daemon, is_kept ? &name : NULL);
    } else {
        tell_bad_policy(daemon);
    }
    snapshots_sweep(daemon->snapshots, is_policy_needed, daemon);
}

static bool start(struct daemon *daemon, const struct daemon_options *options)
{
    struct service_sockets passed = {.n = 0};
    struct config_loaded loaded;
    bool is_started;

    if (!load_first(daemon, &loaded))
        return false;
    is_started = claim_store(daemon, options->state) && find_kept(daemon) &&
                 start_with_any(daemon, &loaded, &passed) && open_store(daemon, options->state) &&
                 give_up_rights(daemon, options->user);
    service_sockets_deinit(&passed);
    if (is_started)
        keep_first(daemon);
    config_loaded_deinit(&loaded);
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
    daemon->progress = (struct progress){.goes_on = tell_progress, .context = daemon};
    daemon->config = (struct config_options){
        .file = options->config,
        .is_user = options->is_user,
        .progress = &daemon->progress,
    };
    daemon->stop_at = MOMENT_NEVER;
    daemon->look_again = moment_after(clock_now(), LOOK_AGAIN);
    daemon->reloads = (struct control_reloads){.loaded_at = clock_now(), .last_at = MOMENT_NEVER};
    daemon->descriptors = descriptors_share();
    daemon->service = service_new();
    daemon->loop = daemon->service ? loop_new() : NULL;
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
    tell_start(daemon);
    service_tell_ready(daemon->service, clock_now());
    return daemon;
}

/* Reload. */

/* Both halves of the sockets, or nothing. */
static int switch_policy(struct daemon *daemon, struct policy *policy, char **ret_why)
{
    int error = ports_stage(daemon->ports, policy, ret_why);
    struct snapshot_name name;
    bool is_kept;

    if (error != 0)
        return error;
    error = control_stage(daemon->control, policy, ret_why);
    if (error != 0) {
        ports_abandon(daemon->ports);
        return error;
    }
    is_kept = keep_policy(daemon, policy, &name);
    error = broker_set_policy(daemon->broker, policy);
    if (error != 0) {
        ports_abandon(daemon->ports);
        control_abandon(daemon->control);
        return error;
    }
    ports_commit(daemon->ports);
    control_commit(daemon->control);
    warn_of_limits(daemon->broker);
    be_last_good(daemon, is_kept ? &name : NULL);
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

static void count_reload(struct control_reloads *reloads, enum config_origin origin, bool is_done)
{
    reloads->last_at = clock_now();
    reloads->was_last_done = is_done;
    if (is_done) {
        reloads->n_done++;
        reloads->loaded_at = reloads->last_at;
        reloads->origin = origin;
    } else {
        reloads->n_failed++;
    }
}

static void reload(void *context, struct control_verdict *ret_verdict)
{
    struct daemon *daemon = context;
    char policy[POLICY_TEXT_SIZE];

    *ret_verdict = (struct control_verdict){.is_done = false};
    service_tell_reloading(daemon->service, clock_now());
    ports_repair(daemon->ports);
    control_repair(daemon->control);
    look_at_sockets(daemon);
    load_again(daemon, ret_verdict);
    count_reload(&daemon->reloads, daemon->config.file ? CONFIG_FILES : CONFIG_BUILT_IN,
                 ret_verdict->is_done);
    raise_policy_alarm(daemon, !ret_verdict->is_done);
    print_policy(daemon, policy);
    if (ret_verdict->is_done)
        log_entry(ENTRY_RELOAD, LOG_LEVEL_NOTICE, NULL, "reloaded: %s", policy);
    else
        log_entry(ENTRY_RELOAD_FAILED, LOG_LEVEL_ERROR, NULL, "not reloaded: %s as before", policy);
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
    char status[200], alarms[64] = "", policy[POLICY_TEXT_SIZE];

    service_run(daemon->service, now);
    if (!service_wants_status(daemon->service, now))
        return;
    if (n_alarms > 0)
        snprintf(alarms, sizeof alarms, "; %zu ALARM%s: diagportctl status", n_alarms,
                 n_alarms == 1 ? "" : "S");
    print_policy(daemon, policy);
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
            look_at_sockets(daemon);
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
    end_rooms(daemon);
    workers_free(daemon->workers);
    last_good_free(daemon->last_good);
    snapshots_free(daemon->snapshots);
    store_close(daemon->store);
    loop_free(daemon->loop);
    service_free(daemon->service);
    free(daemon);
    return NULL;
}
