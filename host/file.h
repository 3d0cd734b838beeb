/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Small files that others find whole or not at all, and those that nobody but
 * their owner could have written. What is in them is not known here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/util.h"

struct file_place {
    int folder; /* AT_FDCWD: the names are paths */
    const char *name;
    const char *temporary; /* a name beside it that nobody else uses; what is there goes */
    mode_t mode;           /* whatever the umask is */
    uid_t owner;           /* given to them where they are somebody else */
    gid_t group;
};

/*
 * Writes a file, in the place of the one that was there: whoever opens the name
 * gets all of the old one or all of the new. `is_synced` says whether it has to
 * outlive the machine's end, too. 0 or a negative errno: then all is as before.
 */
int file_write(const struct file_place *place, const void *content, size_t length,
               bool is_synced) MUST_CHECK;

/* The same for a private file, not synced: one that is exactly so already is left alone. */
int file_ensure(const struct file_place *place, const void *content, size_t length) MUST_CHECK;

/*
 * Reads all of a file of at most `max` bytes: a regular one, of this process's
 * user or of `owner`, that nobody else may read or write, and no link. The bytes
 * are followed by a NUL; the caller frees them. 0, or a negative errno: -EPERM
 * when it is not such a file, -EFBIG.
 */
int file_read_own(int folder, const char *name, uid_t owner, size_t max, char **ret_bytes,
                  size_t *ret_length) MUST_CHECK;
