/* SPDX-License-Identifier: Apache-2.0 */

#include "rescue/port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rescue/line.h"

/* A service manager starts us before it closes its own socket (systemd does so with ExecStopPost=).
 */
enum { PROBE_TRIES = 20 };
static const struct timespec probe_wait = {.tv_nsec = 50000000};

/* Said, and false: for a return. */
static bool fails(const char *path, const char *what, int error)
{
    line_write(LINE_ERROR, "nobody is resumed on %s: %s%s%s", path, what, error ? ": " : "",
               error ? strerror(error) : "");
    return false;
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A missing one is made, for everybody to enter. */
static int open_folder(const char *path)
{
    char folder[PATH_MAX];
    int length = (int)(name_of(path) - path);

    /* That of a file in the root folder keeps its slash. */
    snprintf(folder, sizeof folder, "%.*s", length > 1 ? length - 1 : 1, path);
    (void)mkdir(folder, 0755);
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The daemon's lock on the path. It is left behind, and has to be one that the daemon can open: the
 * folder is its user's, if it makes sockets there. */
static bool take_lock(int folder, const char *path, int *ret_lock)
{
    char name[NAME_MAX + 1];
    struct stat status;
    int lock;

    if (snprintf(name, sizeof name, ".%s.lock", name_of(path)) >= (int)sizeof name)
        return fails(path, "its name is too long", 0);
    lock = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return fails(path, "its lock file cannot be opened", errno);
    if (geteuid() == 0 && fstat(folder, &status) == 0)
        (void)!fchown(lock, status.st_uid, status.st_gid);
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        return fails(path, "a diagportd, or another rescue, owns it", 0);
    }
    *ret_lock = lock;
    return true;
}

/* 0 when somebody listens there, also one whose queue is full; else why not. */
static int connect_to(const struct sockaddr_un *address)
{
    int fd = open_socket();
    int error = fd < 0 ? errno : 0;

    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    return error == EAGAIN ? 0 : error;
}

/* True when nothing is there, or a left-over: in a moment at the latest. */
static bool is_free(int folder, const char *path, const struct sockaddr_un *address)
{
    struct stat status;
    int error;

    if (fstatat(folder, name_of(path), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || fails(path, "it cannot be looked at", errno);
    if (!S_ISSOCK(status.st_mode))
        return fails(path, "something is there that is no socket", 0);
    for (unsigned tries = 1; (error = connect_to(address)) == 0 && tries < PROBE_TRIES; tries++)
        nanosleep(&probe_wait, NULL);
    if (error == 0)
        return fails(path, "somebody listens there", 0);
    return error == ECONNREFUSED || error == ENOENT || fails(path, "it cannot be probed", error);
}

/* It listens only when its rights are right: until then a connect is refused, and a runtime tries
 * again within milliseconds. */
static bool bind_socket(int folder, const char *path, const struct sockaddr_un *address,
                        struct port *port)
{
    struct stat status;
    bool is_bound;

    port->fd = open_socket();
    if (port->fd < 0)
        return fails(path, "no socket can be made", errno);
    unlinkat(folder, name_of(path), 0);
    (void)umask(0177);
    is_bound = bind(port->fd, (const struct sockaddr *)address, sizeof *address) == 0;
    if (!is_bound)
        return fails(path, "it cannot be bound", errno);
    /* As long a queue as the kernel gives: a runtime that finds it full blocks whole. */
    if (chmod(path, 0666) != 0 || listen(port->fd, INT_MAX) != 0 ||
        fstatat(folder, name_of(path), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        fails(path, "nobody can be listened to", errno);
        unlinkat(folder, name_of(path), 0);
        return false;
    }
    port->device = status.st_dev;
    port->inode = status.st_ino;
    return true;
}

bool port_make(const char *path, struct port *ret_port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct port port = {.fd = -1, .lock = -1, .path = path};
    bool is_made;
    int folder;

    if (path[0] != '/' || *name_of(path) == '\0')
        return fails(path, "it is no absolute path of a file", 0);
    if (strlen(path) >= sizeof address.sun_path)
        return fails(path, "it is too long", 0);
    memcpy(address.sun_path, path, strlen(path));
    folder = open_folder(path);
    if (folder < 0)
        return fails(path, "its folder cannot be opened", errno);
    is_made = take_lock(folder, path, &port.lock) && is_free(folder, path, &address) &&
              bind_socket(folder, path, &address, &port);
    close(folder);
    if (is_made) {
        *ret_port = port;
        return true;
    }
    if (port.fd >= 0)
        close(port.fd);
    if (port.lock >= 0)
        close(port.lock);
    return false;
}

/* A small number of the environment; 0 when it is not there or none. */
static long number_in(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long number = text ? strtol(text, &end, 10) : 0;

    return text && end != text && *end == '\0' && number > 0 ? number : 0;
}

int port_n_passed(void)
{
    long n = number_in("LISTEN_FDS");

    /* No manager passes more; each is looked at. */
    return number_in("LISTEN_PID") == getpid() && n <= 4096 ? (int)n : 0;
}

static bool has_option(int fd, int option, int wanted)
{
    int value = 0;
    socklen_t size = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

bool port_adopt(int fd, struct port *ret_port)
{
    if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_STREAM) ||
        !has_option(fd, SO_ACCEPTCONN, 1)) {
        close(fd);
        return false;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    *ret_port = (struct port){.fd = fd, .lock = -1};
    return true;
}

void port_close(struct port *port)
{
    struct stat status;

    if (port->path && lstat(port->path, &status) == 0 && status.st_dev == port->device &&
        status.st_ino == port->inode)
        unlink(port->path);
    close(port->fd);
    if (port->lock >= 0)
        close(port->lock);
}
