/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reload: all of a new policy or nothing, with its sockets, and the verdict.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/apply.h"
#include "daemon/clock.h"
#include "daemon/daemon_core.h"
#include "daemon/log.h"
#include "daemon/ports.h"
#include "daemon/service.h"
#include "lib/broker.h"
#include "lib/policy.h"

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
    is_kept = in_force_keep(daemon, policy, &name);
    error = broker_set_policy(daemon->broker, policy);
    if (error != 0) {
        ports_abandon(daemon->ports);
        control_abandon(daemon->control);
        return error;
    }
    ports_commit(daemon->ports);
    control_commit(daemon->control);
    in_force_warn_of_limits(daemon->broker);
    in_force_be_last_good(daemon, is_kept ? &name : NULL);
    in_force_sweep(daemon);
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
        in_force_log_problems(&loaded.problems);
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

void reload_daemon(void *context, struct control_verdict *ret_verdict)
{
    struct daemon *daemon = context;
    char policy[IN_FORCE_TEXT_SIZE];

    *ret_verdict = (struct control_verdict){.is_done = false};
    service_tell_reloading(daemon->service, clock_now());
    ports_repair(daemon->ports);
    control_repair(daemon->control);
    upkeep_look(daemon);
    load_again(daemon, ret_verdict);
    count_reload(&daemon->reloads, daemon->config.file ? CONFIG_FILES : CONFIG_BUILT_IN,
                 ret_verdict->is_done);
    in_force_alarm(daemon, !ret_verdict->is_done);
    in_force_print(daemon, policy);
    if (ret_verdict->is_done)
        log_entry(ENTRY_RELOAD, LOG_LEVEL_NOTICE, NULL, "reloaded: %s", policy);
    else
        log_entry(ENTRY_RELOAD_FAILED, LOG_LEVEL_ERROR, NULL, "not reloaded: %s as before", policy);
    apply_settle(daemon->apply);
    service_tell_ready(daemon->service, clock_now());
}
