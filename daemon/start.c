/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The start: a policy to start with, everything that lives by it, the records,
 * and then no right any more. Whatever fails, nothing stays of what was begun.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/apply.h"
#include "daemon/clock.h"
#include "daemon/daemon_core.h"
#include "daemon/keeper.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/notices.h"
#include "daemon/peer.h"
#include "daemon/ports.h"
#include "daemon/service.h"
#include "daemon/store.h"
#include "daemon/workers.h"
#include "host/rights.h"
#include "lib/broker.h"
#include "lib/policy.h"

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

/* A policy that is bad is no reason not to start, since apps wait. */
static bool load_first(const struct daemon *daemon, struct config_loaded *ret_loaded)
{
    int error = config_load(&daemon->config, ret_loaded);

    if (error != 0) {
        log_error("the policy could not be read: %s", strerror(-error));
        return false;
    }
    in_force_log_problems(&ret_loaded->problems);
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
        log_error("%s; nothing is applied to any runtime until they can be kept",
                  found->why ? found->why : "memory ran out");
        upkeep_alarm_records(daemon, found->why ? found->why : "memory ran out");
    } else if (found->trust == BROKER_DISTRUSTS_RECORDS) {
        log_warning("%s; runtimes older than that are resumed untouched",
                    found->why ? found->why : "records were lost");
    }
    broker_set_trust(daemon->broker, found->trust, found->distrusted_until);
}

/* The one in force is at hand, whatever has become of the folder. */
static struct policy *find_policy(void *context, const uint8_t id[static RECORD_POLICY_SIZE])
{
    const struct daemon *daemon = context;
    const struct policy *in_force = broker_policy(daemon->broker);
    uint8_t own[RECORD_POLICY_SIZE];

    policy_id(in_force, own);
    if (daemon->reloads.origin != CONFIG_SALVAGED && memcmp(own, id, sizeof own) == 0)
        return (struct policy *)(uintptr_t)in_force;
    return snapshots_find(daemon->snapshots, id);
}

static bool recall(struct daemon *daemon)
{
    struct store_policies policies = {
        .find = find_policy,
        .context = daemon,
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
static bool open_store(struct daemon *daemon, const char *folder, struct service_sockets *passed)
{
    struct store_found found;

    store_take_kept(daemon->store, keeper_take_records(daemon->keeper, passed));
    if (store_open(daemon->store, &found) != 0) {
        free(found.why);
        return refuse_folder(folder);
    }
    if (!found.is_kept)
        keeper_remove_records(daemon->keeper);
    take_trust(daemon, &found);
    free(found.why);
    return recall(daemon);
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
    in_force_warn_of_limits(daemon->broker);
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
        .reload = reload_daemon,
        .is_stopping = is_stopping,
        .context = daemon,
    };

    daemon->control = control_new(&options);
    return daemon->control;
}

bool start_workers(struct daemon *daemon, int channel)
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

/* Everything that lives by a policy from the start on. */
static bool start_with(struct daemon *daemon, struct policy *policy, enum config_origin origin,
                       struct service_sockets *passed)
{
    daemon->reloads.origin = origin;
    return start_broker(daemon, policy) && start_rooms(daemon) &&
           start_sockets(daemon, policy, passed);
}

/* Sockets first: nobody may come in any more. */
void start_undo(struct daemon *daemon)
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
    struct policy *policy = in_force_find_last_good(daemon);
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
        start_undo(daemon);
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

bool start_daemon(struct daemon *daemon, const struct daemon_options *options)
{
    struct service_sockets passed = {.n = 0};
    struct config_loaded loaded;
    bool is_started;

    if (!load_first(daemon, &loaded))
        return false;
    is_started = claim_store(daemon, options->state) && in_force_open(daemon) &&
                 start_with_any(daemon, &loaded, &passed) &&
                 open_store(daemon, options->state, &passed) &&
                 give_up_rights(daemon, options->user);
    /* By the records, and before anybody is accepted. */
    if (is_started)
        keeper_adopt(daemon->keeper, &passed, adopt, daemon);
    service_sockets_deinit(&passed);
    if (is_started)
        in_force_begin(daemon);
    config_loaded_deinit(&loaded);
    return is_started;
}
