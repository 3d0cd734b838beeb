/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Policy files on disk: which ones there are, whether they may be trusted, and
 * the policy that they make. What is in them is lib/policy_read.h's business.
 */

#include <stdbool.h>

#include "daemon/progress.h"
#include "lib/policy_read.h"
#include "lib/util.h"

struct config_options {
    const char *file; /* the main file; NULL: the usual sockets, and no rule */
    bool is_user;     /* the usual sockets are private ones, and files have to be our own user's */
    const struct progress *progress; /* told of each file and each name that is looked up; NULL */
};

/* Where the policy in force comes from. */
enum config_origin {
    CONFIG_FILES,
    CONFIG_BUILT_IN,  /* there is no file, and none is asked for */
    CONFIG_LAST_GOOD, /* the files cannot be loaded; it was in force when they could */
    CONFIG_SALVAGED,  /* they cannot, and nothing else is there: their sockets, and no rule */
};

const char *config_origin_name(enum config_origin origin);

struct config_loaded {
    struct policy *policy;  /* NULL when there was an error */
    struct policy *salvage; /* then: what could be used of it, never NULL unless memory ran out */
    bool is_built_in;       /* and nothing could: these are the usual sockets */
    struct policy_problems problems;
};

/* Reads the main file and, beside it, policy.d. 0, -ENOMEM, or what kept us from reading and will
 * pass: -EMFILE, -ENFILE, -EINTR. */
int config_load(const struct config_options *options, struct config_loaded *ret_loaded) MUST_CHECK;

void config_loaded_deinit(struct config_loaded *loaded);

/* The folder for sockets and state of a `--user` instance: $XDG_RUNTIME_DIR/diagport, or a private
 * folder in /tmp. The caller frees it; NULL when memory is out. */
char *config_user_folder(void) MUST_CHECK;

/* What XDG_RUNTIME_DIR says; NULL when it says nothing, or no absolute path. */
const char *config_runtime_folder(void) MUST_CHECK;

/* The same answers about this host that loading gives the reader. */
const struct policy_host *config_host(void);

/* Adds the names of this host's own user and group files to a policy, for showing numbers as names.
 * 0 or -ENOMEM. */
int config_add_names(struct policy *policy) MUST_CHECK;
