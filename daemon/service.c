/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "daemon/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#define TELL_AGAIN   span_from_ms(100)
#define STATUS_EVERY span_from_s(1)
/* How long the manager is to wait from then on for the next sign of a start or stop that goes on.
 */
#define EXTEND_TIME  span_from_s(5)
#define EXTEND_EVERY span_from_s(1)

enum { STATUS_SIZE = 256 };

struct service {
    struct span watchdog;    /* between two signs of life; 0: nobody asks for them */
    struct moment sign_at;   /* the next one */
    struct moment ready_at;  /* readiness could not be told; MOMENT_NEVER: it was */
    struct moment extend_at; /* the next sign that it goes on; MOMENT_NEVER: nobody waits */
    struct moment status_at; /* not before that */
    bool status_waits;       /* it may have changed since it was told last */
    char status[STATUS_SIZE];
};

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

static bool listens(int fd)
{
    int is_listening = 0;
    socklen_t size = sizeof is_listening;

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 &&
           is_listening != 0;
}

int service_copy_sockets(const struct service_sockets *sockets, struct service_sockets *ret_copy)
{
    struct service_sockets copy = {.list = calloc(sockets->n + 1, sizeof *copy.list)};
    int error = copy.list ? 0 : -ENOMEM;

    for (size_t i = 0; i < sockets->n && error == 0; i++) {
        const struct service_socket *from = &sockets->list[i];
        struct service_socket *to = &copy.list[copy.n];

        if (!listens(from->fd))
            continue;
        to->name = strdup(from->name);
        to->fd = to->name ? fcntl(from->fd, F_DUPFD_CLOEXEC, 3) : -1;
        copy.n++;
        if (to->fd < 0)
            error = to->name ? -errno : -ENOMEM;
    }
    if (error != 0)
        service_sockets_deinit(&copy);
    else
        *ret_copy = copy;
    return error;
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

static const char *manager(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;

    return length > 0 &&
                   length < sizeof(struct sockaddr_un) - offsetof(struct sockaddr_un, sun_path) &&
                   (path[0] == '/' || path[0] == '@')
               ? path
               : NULL;
}

bool service_has_manager(void)
{
    return manager() != NULL;
}

static ssize_t send_descriptor(int to, const struct sockaddr_un *address, socklen_t size,
                               const char *text, int fd)
{
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof fd)];
    } rights = {.header = {.cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_RIGHTS,
                           .cmsg_len = CMSG_LEN(sizeof fd)}};
    const struct msghdr message = {
        .msg_name = (void *)(uintptr_t)address,
        .msg_namelen = size,
        .msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = &rights,
        .msg_controllen = sizeof rights.space,
    };

    memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
    return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* sd_notify() waits when the manager's queue is full, and with it every runtime that we hold would
 * wait. So the datagram is our own. */
enum service_told service_tell(const char *text, int fd)
{
    const char *path = manager();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum service_told told;
    socklen_t size;
    ssize_t sent;
    int to;

    if (!path)
        return SERVICE_HAS_NOBODY;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (to < 0)
        return passes(errno) ? SERVICE_IS_BUSY : SERVICE_HAS_NOBODY;
    sent = fd >= 0 ? send_descriptor(to, &address, size, text, fd)
                   : sendto(to, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                            (const struct sockaddr *)&address, size);
    if (sent >= 0)
        told = SERVICE_TOLD;
    else
        told = passes(errno) ? SERVICE_IS_BUSY : SERVICE_HAS_NOBODY;
    close(to);
    return told;
}

/* False when it has to be sent again later. */
static bool tell(const char *text)
{
    return service_tell(text, -1) != SERVICE_IS_BUSY;
}

/* Half of what the manager waits: one sign may be late. */
static struct span watchdog_time(void)
{
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    long long us = time ? atoll(time) : 0;

    if (us <= 0 || us > INT64_MAX / 2 || (pid && atoll(pid) != getpid()))
        return span_from_us(0);
    return span_from_us(us / 2);
}

struct service *service_new(void)
{
    struct service *service = calloc(1, sizeof *service);

    if (!service)
        return NULL;
    service->watchdog = watchdog_time();
    service->sign_at = service->watchdog.us > 0 ? (struct moment){0} : MOMENT_NEVER;
    service->ready_at = MOMENT_NEVER;
    return service;
}

struct service *service_free(struct service *service)
{
    free(service);
    return NULL;
}

/* Its own time for a start or stop counts as well, so it is told from the first moment on. */
void service_tell_progress(struct service *service, struct moment now)
{
    char text[64];

    if (!moment_is_due(service->extend_at, now))
        return;
    snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%" PRId64, EXTEND_TIME.us);
    service->extend_at = moment_after(now, tell(text) ? EXTEND_EVERY : TELL_AGAIN);
}

/* A manager that never hears of it takes us for one that hangs, and ends us. */
void service_tell_ready(struct service *service, struct moment now)
{
    service->extend_at = MOMENT_NEVER;
    service->ready_at = tell("READY=1") ? MOMENT_NEVER : moment_after(now, TELL_AGAIN);
}

void service_tell_reloading(struct service *service, struct moment now)
{
    char text[128];

    service->ready_at = MOMENT_NEVER;
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, now.us);
    (void)tell(text);
}

void service_tell_stopping(struct service *service, struct moment now)
{
    service->ready_at = MOMENT_NEVER;
    (void)tell("STOPPING=1");
    service->extend_at = now;
    service_tell_progress(service, now);
}

struct moment service_next(const struct service *service)
{
    struct moment next = moment_earlier(service->sign_at, service->ready_at);

    next = moment_earlier(next, service->extend_at);
    return service->status_waits ? moment_earlier(next, service->status_at) : next;
}

void service_run(struct service *service, struct moment now)
{
    if (moment_is_due(service->ready_at, now))
        service_tell_ready(service, now);
    service_tell_progress(service, now);
    if (moment_is_due(service->sign_at, now))
        service->sign_at = moment_after(now, tell("WATCHDOG=1") ? service->watchdog : TELL_AGAIN);
}

bool service_wants_status(const struct service *service, struct moment now)
{
    return manager() && moment_is_due(service->status_at, now);
}

void service_tell_status(struct service *service, const char *status, struct moment now)
{
    char text[STATUS_SIZE + 16];

    service->status_waits = strncmp(service->status, status, sizeof service->status - 1) != 0;
    if (!service->status_waits)
        return;
    service->status_at = moment_after(now, STATUS_EVERY);
    snprintf(text, sizeof text, "STATUS=%.*s", STATUS_SIZE - 1, status);
    if (tell(text))
        snprintf(service->status, sizeof service->status, "%s", status);
}
