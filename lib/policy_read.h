/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the bytes of policy files to a policy, or to everything that is wrong
 * with them.
 *
 * All semantic errors are reported, and the first syntax error of each file;
 * nothing is ever skipped or guessed. No file is opened here: the caller brings
 * the bytes, and answers questions about the host through `struct policy_host`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/policy.h"
#include "lib/util.h"

enum {
    POLICY_SOURCE_MAX = 1024 * 1024, /* bytes of one file */
    POLICY_DEPTH_MAX = 16,
    POLICY_PROBLEMS_MAX = 200, /* more are counted, not kept */
};

struct policy_source {
    const char *name; /* as it appears in messages */
    const char *bytes;
    size_t length;
};

enum policy_severity { POLICY_ERROR, POLICY_WARNING };

struct policy_problem {
    enum policy_severity severity;
    char *file;
    unsigned line; /* 0 when it is about the file as a whole */
    unsigned column;
    char *text; /* what is wrong and what to do, one line, escaped */
};

struct policy_problems {
    struct policy_problem *list; /* by file in the order of reading, then by line and column */
    size_t n;
    size_t n_errors; /* all, also those not kept */
    size_t n_dropped;
};

/* What only the host can tell. Every function may be NULL: then nothing is looked up and nothing is
 * said about it. */
struct policy_host {
    void *context;
    /* The number of a user or group; false when there is none of that name. May block. */
    bool (*user_number)(void *context, const char *name, uint32_t *ret_number);
    bool (*group_number)(void *context, const char *name, uint32_t *ret_number);
    /* Where a path leads when it is a link; false when it is not. The caller frees the target. */
    bool (*link_target)(void *context, const char *path, char **ret_target);
    /* The folder with the sockets of a policy that names none; NULL: then it has none. */
    const char *sockets;
    bool are_sockets_private; /* only their own user may use them */
    bool may_kill;            /* SIGKILL to processes of other users is possible */
    bool has_peer_pidfd;      /* SO_PEERPIDFD, kernel 6.5 */
};

/*
 * Reads the main file, `sources[0]`, and the drop-ins after it. `*ret_policy`
 * is NULL when there is an error; `ret_problems` is filled in any case and is
 * to be freed with policy_problems_deinit. 0 or -ENOMEM.
 */
int policy_read(const struct policy_source *sources, size_t n_sources,
                const struct policy_host *host, struct policy **ret_policy,
                struct policy_problems *ret_problems) MUST_CHECK;

/*
 * What can be used of a main file that has errors elsewhere: its listeners, its
 * control socket and its limits where those sections are without error, no
 * rules. So a daemon with a broken policy still resumes everybody who comes.
 * NULL when memory is out.
 */
struct policy *policy_salvage(const struct policy_source *main,
                              const struct policy_host *host) MUST_CHECK;

/* SHA-256 of its bytes, as a policy has it of each of its files. */
void policy_source_hash(const struct policy_source *source, char ret_hash[static POLICY_HASH_SIZE]);

/* "file:line:column: message" or "file:line:column: warning: message", with a line feed. */
void policy_problem_print(const struct policy_problem *problem, struct bytes *out);

void policy_problems_deinit(struct policy_problems *problems);
