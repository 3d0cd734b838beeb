/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files that others need: those of sockets, by which they come, and the records,
 * which the next daemon looks for. Somebody may remove them or put others in their
 * place while the daemon runs. So they are looked at every few seconds; what is
 * wrong is an alarm, and what can be put right is.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/daemon_core.h"
#include "daemon/keeper.h"
#include "daemon/log.h"
#include "daemon/ports.h"
#include "daemon/store.h"
#include "lib/broker.h"

#define LOOK_AGAIN span_from_s(5)

/* Sockets. */

static void look_at_sockets(struct daemon *daemon)
{
    char *ports_why, *control_why;
    bool are_ports_there = ports_look(daemon->ports, &ports_why);
    bool is_control_there = control_look(daemon->control, &control_why);
    const char *why = ports_why ? ports_why : control_why;

    snprintf(daemon->sockets_why, sizeof daemon->sockets_why, "%s", why ? why : "memory ran out");
    broker_alarm(daemon->broker, ALARM_SOCKETS, !are_ports_there || !is_control_there,
                 daemon->sockets_why, clock_now());
    free(ports_why);
    free(control_why);
}

/* Records. */

void upkeep_alarm_records(struct daemon *daemon, const char *why)
{
    const char *own = daemon->records_why;
    const struct broker_counters *counters = broker_counters(daemon->broker);
    bool is_on = counters->alarms[ALARM_RECORDS];

    /* The broker has reasons of its own. */
    if (is_on && counters->alarm_reasons[ALARM_RECORDS] != own)
        return;
    if (!why) {
        broker_alarm(daemon->broker, ALARM_RECORDS, false, NULL, clock_now());
        return;
    }
    if (is_on && strcmp(own, why) != 0)
        log_error("%s", why);
    snprintf(daemon->records_why, sizeof daemon->records_why, "%s", why);
    broker_alarm(daemon->broker, ALARM_RECORDS, true, own, clock_now());
}

/* What was beside the records went with them. */
static void keep_policies(struct daemon *daemon)
{
    struct snapshot_name name;
    bool is_kept;
    int error = snapshots_keep_again(daemon->snapshots);

    if (error != 0)
        log_warning("not all policies of plans that are under way can be kept in the state folder: "
                    "%s; those plans will end when the daemon is started anew",
                    strerror(-error));
    if (daemon->reloads.origin == CONFIG_SALVAGED)
        return;
    is_kept = in_force_keep(daemon, broker_policy(daemon->broker), &name);
    in_force_be_last_good(daemon, is_kept ? &name : NULL);
}

static void look_at_records(struct daemon *daemon)
{
    struct store_look look;

    store_look(daemon->store, &look);
    if (look.is_lost)
        broker_set_trust(daemon->broker, BROKER_HAS_NO_RECORDS, 0);
    if (look.is_first)
        broker_set_trust(daemon->broker, BROKER_DISTRUSTS_RECORDS, look.distrusted_until);
    if (look.is_anew)
        keep_policies(daemon);
    if (look.is_in_place || look.is_put_right)
        keeper_remove_records(daemon->keeper);
    else
        keeper_put_records(daemon->keeper, store_file(daemon->store));
    if (look.is_in_place)
        upkeep_alarm_records(daemon, NULL);
    else
        upkeep_alarm_records(daemon, look.why ? look.why : "memory ran out");
    free(look.why);
}

/* Looks. */

void upkeep_begin(struct daemon *daemon)
{
    daemon->look_again = moment_after(clock_now(), LOOK_AGAIN);
}

void upkeep_look(struct daemon *daemon)
{
    upkeep_begin(daemon);
    look_at_sockets(daemon);
    look_at_records(daemon);
}

void upkeep_end(struct daemon *daemon)
{
    look_at_records(daemon);
    daemon->look_again = MOMENT_NEVER;
}
