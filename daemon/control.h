/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control interface: who may connect to the control socket, how many, and
 * which of the answers of docs/CONTROL.md they get. It looks at the core and
 * asks it for things; what has to be done by others is done by calls that it was
 * given.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"
#include "lib/broker.h"
#include "lib/moment.h"
#include "lib/policy_read.h"
#include "lib/util.h"

struct control;
struct looks;
struct loop;
struct notices;
struct ports;

enum { CONTROL_CONNECTIONS_MAX = 64 };

/* What became of reloads; whoever reloads keeps it. */
struct control_reloads {
    uint64_t n_done;
    uint64_t n_failed;
    enum config_origin origin; /* of the policy in force, */
    struct moment loaded_at;   /* and since when it is */
    struct moment last_at;     /* the last try; MOMENT_NEVER before the first */
    bool was_last_done;
};

/* The verdict of one; to be freed with control_verdict_deinit. */
struct control_verdict {
    bool is_done;
    char *why; /* what else than the files was in the way; NULL */
    struct policy_problems problems;
};

void control_verdict_deinit(struct control_verdict *verdict);

struct control_options {
    struct loop *loop;
    struct broker *broker;
    struct ports *ports;
    struct looks *looks;
    const struct notices *notices;
    const struct control_reloads *reloads;
    size_t usable_descriptors;
    unsigned n_connections_max; /* at most CONTROL_CONNECTIONS_MAX */
    bool is_user;               /* an instance of a user of his own, for showing */
    bool may_kill;              /* processes of other users */
    /* Carries out what the core wants done; after every call into it that changes anything. */
    void (*settle)(void *context);
    void (*tell)(void *context, struct notice *notice); /* takes it */
    void (*reload)(void *context, struct control_verdict *ret_verdict);
    bool (*is_stopping)(void *context);
    void *context;
};

/* NULL when memory or descriptors are out. */
struct control *control_new(const struct control_options *options) MUST_CHECK;

/* Ends everything. Returns NULL. */
struct control *control_free(struct control *control);

/*
 * Opens the socket of a policy, or takes the one that was passed in (-1: none
 * was). Without a path and a passed one there is none, and that is fine. 0, or a
 * negative errno and `*ret_why`, one line, which the caller frees.
 */
int control_open(struct control *control, struct policy *policy, int passed,
                 char **ret_why) MUST_CHECK;

/* As those of ports.h. */
void control_keep_folder(struct control *control);
bool control_look(struct control *control, char **ret_why);
void control_repair(struct control *control);

/*
 * The halves of a reload, as those of ports.h. Who may do what needs nothing: it
 * is always that of the policy in force.
 */
int control_stage(struct control *control, struct policy *policy, char **ret_why) MUST_CHECK;
void control_commit(struct control *control);
void control_abandon(struct control *control);

/* When to call control_run at the latest. */
struct moment control_next(const struct control *control, struct moment now);

/* Serves whoever has come and asked, at most one request a call; runtimes come first. */
void control_run(struct control *control, struct moment now);
