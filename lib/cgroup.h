/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the text of /proc/PID/cgroup to the systemd unit, slice and container
 * that a process is in, for cgroup v2, v1 and hybrid hosts.
 *
 * The first component from the root that is not a slice decides; whatever is
 * below it belongs to whoever lives there and may carry any name. Below
 * user@UID.service every name is at that user's will.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/attributes.h"
#include "lib/util.h"

struct cgroup {
    char *path;  /* the line that was used; NULL when there is none */
    char *slice; /* NULL when absent, as all below */
    char *unit;
    char *user_unit;
    /* "docker", "podman", "containerd", "cri-o", "nerdctl", "lxc", "nspawn"; "oci" for one that
     * cannot be told. */
    char *engine;
    char *container; /* its id, or its name where the engine has names only */
    char *pod;
    bool has_owner; /* the user in user@UID.service or user-UID.slice */
    uint32_t owner;
    enum attribute_state container_state;
    /* False when nothing can be said of unit and container: no line can be used, or the daemon is
     * in a cgroup namespace of its own and sees a path outside of it. */
    bool is_known;
};

/*
 * `n_ns_pids` is the number of pid namespaces of the process (0: not known):
 * without a container in the path, anything but 1 makes the container unknown.
 * Malformed lines are skipped. A text that was cut must not be read: the line
 * that counts may be the one that is missing. 0 or -ENOMEM.
 */
int cgroup_read(const char *text, size_t length, size_t n_ns_pids,
                struct cgroup *ret_cgroup) MUST_CHECK;

void cgroup_deinit(struct cgroup *cgroup);
