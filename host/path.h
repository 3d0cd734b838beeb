/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Follows a path by hand, one component and one link after the other, and shows
 * everything on the way. The kernel can do it in one call (openat2), but shows
 * only where it ends; what is on the way decides who may get there, and who may
 * change where it leads.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/util.h"

enum path_bound {
    PATH_IN_ROOT, /* a leading slash and the parent of the root are the root, as for a process */
    PATH_BENEATH, /* neither is followed: EXDEV */
};

struct path_walk {
    int root;  /* an open folder, O_PATH is enough; the caller's, as is the next */
    int start; /* where a relative path begins; not looked at for an absolute one */
    enum path_bound bound;
    /* Called for the first folder and for everything after it but the links, and so for what the
     * path leads to as the last, with an O_PATH descriptor of it. False ends the walk with
     * -ECANCELED. */
    bool (*step)(void *context, const struct stat *status, int place);
    void *context;
};

/*
 * Returns an O_PATH descriptor of what the path leads to, for the caller to
 * close, or -errno: what openat says of a component, -ELOOP after 40 links as
 * in the kernel, -ENAMETOOLONG, -EXDEV, -ECANCELED.
 */
int path_follow(const struct path_walk *walk, const char *path) MUST_CHECK;
