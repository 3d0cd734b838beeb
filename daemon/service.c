/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "daemon/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#ifdef HAVE_SYSTEMD

static void free_names(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

int service_take_sockets(struct service_sockets *ret_sockets)
{
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names);
    struct service_socket *list;

    *ret_sockets = (struct service_sockets){0};
    if (n <= 0) {
        free(names);
        return n;
    }
    list = calloc((size_t)n, sizeof *list);
    if (!list) {
        free_names(names, n);
        return -ENOMEM;
    }
    for (int i = 0; i < n; i++)
        list[i] = (struct service_socket){.fd = SD_LISTEN_FDS_START + i, .name = names[i]};
    free(names);
    *ret_sockets = (struct service_sockets){.list = list, .n = (size_t)n};
    return 0;
}

#else

int service_take_sockets(struct service_sockets *ret_sockets)
{
    *ret_sockets = (struct service_sockets){0};
    return 0;
}

#endif

int service_take_socket(struct service_sockets *sockets, const char *name)
{
    for (size_t i = 0; i < sockets->n; i++) {
        struct service_socket *socket = &sockets->list[i];

        if (socket->fd >= 0 && strcmp(socket->name, name) == 0) {
            int fd = socket->fd;

            socket->fd = -1;
            return fd;
        }
    }
    return -1;
}

void service_sockets_deinit(struct service_sockets *sockets)
{
    for (size_t i = 0; i < sockets->n; i++) {
        if (sockets->list[i].fd >= 0)
            close(sockets->list[i].fd);
        free(sockets->list[i].name);
    }
    free(sockets->list);
    *sockets = (struct service_sockets){0};
}

/* An error that says to try again, not that nobody is there. */
static bool passes(int error)
{
    return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM ||
           error == EMFILE || error == ENFILE;
}

/*
 * sd_notify() waits when the manager's queue is full, and with it every runtime
 * that we hold would wait. So the datagram is our own, and never waits. False
 * when it has to be sent again later.
 */
static bool tell(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = path ? strlen(path) : 0;
    ssize_t sent;
    bool is_told;
    int fd;

    if (length == 0 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return true;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return !passes(errno);
    sent = sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    is_told = sent >= 0 || !passes(errno);
    close(fd);
    return is_told;
}

bool service_tell_ready(const char *status)
{
    char text[512];

    snprintf(text, sizeof text, "READY=1\nSTATUS=%s", status);
    return tell(text);
}

void service_tell_reloading(struct moment now)
{
    char text[128];

    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, now.us);
    (void)tell(text);
}

void service_tell_stopping(void)
{
    (void)tell("STOPPING=1");
}
