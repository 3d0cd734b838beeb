/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

struct unit_manager unit_manager_new(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof address;
    struct unit_manager manager = {
        .fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
    };
    char name[64];

    /* The kernel chooses an abstract name. */
    ck_assert_int_eq(bind(manager.fd, (const struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(getsockname(manager.fd, (struct sockaddr *)&address, &length), 0);
    snprintf(name, sizeof name, "@%.*s", (int)(length - sizeof(sa_family_t) - 1),
             address.sun_path + 1);
    setenv("NOTIFY_SOCKET", name, 1);
    return manager;
}

const char *unit_manager_heard(struct unit_manager *manager)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    struct iovec bytes = {.iov_base = manager->text, .iov_len = sizeof manager->text - 1};
    struct msghdr message = {
        .msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = &rights,
        .msg_controllen = sizeof rights,
    };
    ssize_t length = recvmsg(manager->fd, &message, MSG_CMSG_CLOEXEC);
    int fd;

    manager->text[length > 0 ? length : 0] = '\0';
    manager->has_descriptor = length > 0 && message.msg_controllen > 0;
    if (manager->has_descriptor) {
        memcpy(&fd, CMSG_DATA(&rights.header), sizeof fd);
        close(fd);
    }
    return manager->text;
}
