/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

/*
 * What the rooms of the daemon share, and nobody else: everything that lives as
 * long as the process. How it is started is start.c's business, the policy in
 * force in_force.c's, how that changes reload.c's, and the files that others need
 * upkeep.c's.
 */

#include <stdbool.h>

#include "daemon/config.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/descriptors.h"
#include "daemon/progress.h"
#include "daemon/snapshots.h"
#include "lib/moment.h"
#include "lib/util.h"

enum { IN_FORCE_TEXT_SIZE = 80, ALARM_WHY_SIZE = 400 };

struct daemon {
    struct progress progress;
    struct config_options config;
    struct loop *loop;
    struct service *service;
    struct keeper *keeper;
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
    char sockets_why[ALARM_WHY_SIZE]; /* while their alarm is on */
    char records_why[ALARM_WHY_SIZE];
    bool wants_reload;
    bool wants_stop;
    bool is_lost; /* it stops since the probe is gone */
    bool is_stopping;
    struct moment stop_at; /* MOMENT_NEVER while it runs */
};

/* Upkeep. */

/* Files that others need are looked at from now on, every few seconds. */
void upkeep_begin(struct daemon *daemon);
void upkeep_look(struct daemon *daemon);
/* The last look, so that the next daemon has its records; nothing is looked at any more. */
void upkeep_end(struct daemon *daemon);
/* The alarm about the records, which ends by itself when they are as they should be. */
void upkeep_alarm_records(struct daemon *daemon, const char *why);

/* Start. */

/* Everything but the event loop, up to giving up every right. False when it cannot, which was
 * logged. */
bool start_daemon(struct daemon *daemon, const struct daemon_options *options) MUST_CHECK;
bool start_workers(struct daemon *daemon, int channel) MUST_CHECK;
/* Ends what lives by a policy from the start on, as far as it is there. */
void start_undo(struct daemon *daemon);

/* Reload. */

/* As struct control_options has it. */
void reload_daemon(void *context, struct control_verdict *ret_verdict);

/* The policy in force. */

/* Opens what is kept of policies in the state folder. */
bool in_force_open(struct daemon *daemon) MUST_CHECK;
/* The last good policy, for the caller to give back; NULL when there is none that can be used. */
struct policy *in_force_find_last_good(struct daemon *daemon) MUST_CHECK;
/* The start has succeeded with it. */
void in_force_begin(struct daemon *daemon);
bool in_force_keep(struct daemon *daemon, const struct policy *policy,
                   struct snapshot_name *ret_name) MUST_CHECK;
void in_force_be_last_good(struct daemon *daemon, const struct snapshot_name *kept);
/* Removes what is kept and not needed any more. */
void in_force_sweep(struct daemon *daemon);
/* What it is, in few words. */
void in_force_print(const struct daemon *daemon, char ret_text[static IN_FORCE_TEXT_SIZE]);
/* Raises the alarm that the files are bad, or ends it. */
void in_force_alarm(struct daemon *daemon, bool is_on);
void in_force_log_problems(const struct policy_problems *problems);
void in_force_warn_of_limits(const struct broker *broker);
