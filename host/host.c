/* SPDX-License-Identifier: Apache-2.0 */

#include "host/host.h"

#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/policy_read.h"

/* Newer than the headers of some systems we build on. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool user_number(void *context, const char *name, uint32_t *ret_number)
{
    const struct passwd *entry = getpwnam(name);

    (void)context;
    if (entry)
        *ret_number = entry->pw_uid;
    return entry;
}

static bool group_number(void *context, const char *name, uint32_t *ret_number)
{
    const struct group *entry = getgrnam(name);

    (void)context;
    if (entry)
        *ret_number = entry->gr_gid;
    return entry;
}

static bool link_target(void *context, const char *path, char **ret_target)
{
    char *target = realpath(path, NULL);

    (void)context;
    if (!target || strcmp(target, path) == 0) {
        free(target);
        return false;
    }
    *ret_target = target;
    return true;
}

/* Our own end of a socket pair has a peer like any other. */
static bool has_peer_pidfd(void)
{
    int pair[2], pidfd = -1;
    socklen_t size = sizeof pidfd;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    if (getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0)
        pidfd = -1;
    if (pidfd >= 0)
        close(pidfd);
    close(pair[0]);
    close(pair[1]);
    return pidfd >= 0;
}

void host_init(struct policy_host *ret_host)
{
    *ret_host = (struct policy_host){
        .user_number = user_number,
        .group_number = group_number,
        .link_target = link_target,
        .has_peer_pidfd = has_peer_pidfd(),
        .sockets = "/run/diagport",
    };
}
