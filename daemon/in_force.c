/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The policy in force: what it is, in words; that it is kept for plans that are
 * under way and as the last good one; and what is wrong with the one on disk.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/daemon_core.h"
#include "daemon/last_good.h"
#include "daemon/log.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/policy.h"

/* What is in force, in few words. */
void in_force_print(const struct daemon *daemon, char ret_text[static IN_FORCE_TEXT_SIZE])
{
    const struct policy *policy = broker_policy(daemon->broker);

    switch (daemon->reloads.origin) {
    case CONFIG_FILES:
    case CONFIG_BUILT_IN:
    case CONFIG_LAST_GOOD:
        snprintf(ret_text, IN_FORCE_TEXT_SIZE, "%spolicy %.12s with %zu rules is in force",
                 daemon->reloads.origin == CONFIG_LAST_GOOD ? "the LAST GOOD " : "", policy->hash,
                 policy->n_rules);
        break;
    case CONFIG_SALVAGED:
        snprintf(ret_text, IN_FORCE_TEXT_SIZE, "NO policy is in force");
        break;
    }
}

void in_force_alarm(struct daemon *daemon, bool is_on)
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

void in_force_log_problems(const struct policy_problems *problems)
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

/* So that plans that are under way by it can be gone on with. False when it cannot be kept. */
bool in_force_keep(struct daemon *daemon, const struct policy *policy,
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
void in_force_be_last_good(struct daemon *daemon, const struct snapshot_name *kept)
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

void in_force_sweep(struct daemon *daemon)
{
    snapshots_sweep(daemon->snapshots, is_policy_needed, daemon);
}

/* The default is for who has many: where there are fewer, the status says how many may wait. */
void in_force_warn_of_limits(const struct broker *broker)
{
    const struct policy_limits *limits = &broker_policy(broker)->limits;

    if (limits->has_runtimes && limits->runtimes > broker_runtimes(broker))
        log_warning("limits.runtimes is %u, but descriptors last for %zu that wait; raise "
                    "LimitNOFILE= (ulimit -n)",
                    limits->runtimes, broker_runtimes(broker));
}

/* The policies that are kept, where there are some: before the start has decided what it will be.
 */
bool in_force_open(struct daemon *daemon)
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

struct policy *in_force_find_last_good(struct daemon *daemon)
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
    in_force_alarm(daemon, true);
}

/* The policy that the start has succeeded with is kept, and those go that nobody needs. */
void in_force_begin(struct daemon *daemon)
{
    struct snapshot_name name;

    if (daemon->reloads.origin == CONFIG_FILES || daemon->reloads.origin == CONFIG_BUILT_IN) {
        bool is_kept = in_force_keep(daemon, broker_policy(daemon->broker), &name);

        in_force_be_last_good(daemon, is_kept ? &name : NULL);
    } else {
        tell_bad_policy(daemon);
    }
    in_force_sweep(daemon);
}
