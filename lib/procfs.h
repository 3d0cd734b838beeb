/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads the texts of /proc/PID. They are half under the control of the process
 * they speak of: a name may hold blanks, newlines and parentheses.
 *
 * Source: Linux Documentation/filesystems/proc.rst.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct procfs_stat {
    int32_t pid;
    char state; /* R S D Z T t X ... */
    int32_t parent;
    uint64_t start_time; /* clock ticks after boot */
    /* All of it: where only the first thread has ended, the state is Z and the others go on. */
    bool has_ended;
};

struct procfs_status {
    uint32_t real_uid, uid; /* `uid`, `gid`: effective */
    uint32_t real_gid, gid;
    uint32_t *groups; /* the caller frees */
    size_t n_groups;
    size_t n_ns_pids;
    uint64_t ns_pid; /* the last one */
};

/* What changes while anything happens with a process: it waits for one thing while nothing does. */
struct procfs_motion {
    char state;
    uint64_t n_switches; /* to it or away from it */
};

/* False, and nothing returned, when the text is not of this form. */
bool procfs_read_stat(const char *text, size_t length, struct procfs_stat *ret_stat) MUST_CHECK;

/*
 * A text may be cut anywhere; a line without its newline is not whole. Of Groups
 * that much is read as is there. A kernel without NSpid, or a text that ends
 * before it, gives n_ns_pids 0. False, and nothing returned, when Uid or Gid is
 * missing, a line is malformed or there twice, or memory is out.
 */
bool procfs_read_status(const char *text, size_t length,
                        struct procfs_status *ret_status) MUST_CHECK;

/* The rights that a process has in its user namespace, out of its status: one bit each, as in
 * linux/capability.h. False when the line is not there, or malformed. */
bool procfs_read_capabilities(const char *text, size_t length, uint64_t *ret_rights) MUST_CHECK;

/* Whether a user or group, by our number, is one of those in a uid_map or gid_map. */
bool procfs_map_has(const char *text, size_t length, uint32_t id);

/* Of a text that is whole, of a process of our own. False, and nothing returned, when one of its
 * three lines is missing or malformed. */
bool procfs_read_motion(const char *text, size_t length,
                        struct procfs_motion *ret_motion) MUST_CHECK;
