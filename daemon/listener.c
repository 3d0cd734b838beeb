/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host/rights.h"

enum { LOCK_TRIES = 5 }; /* each of them is one that somebody else has just given up */

static int explain(int error, char **ret_why, const char *format, ...) PRINTF_LIKE(3, 4);

static int explain(int error, char **ret_why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(ret_why, format, arguments) < 0)
        *ret_why = NULL;
    va_end(arguments);
    return error;
}

static bool fill_address(const char *path, struct sockaddr_un *ret_address)
{
    size_t length = strlen(path);

    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length >= sizeof ret_address->sun_path)
        return false;
    memcpy(ret_address->sun_path, path, length);
    return true;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* A missing folder is made, for everybody to enter and us to write. */
static int open_folder(const char *path, bool *has_made_it, char **ret_why)
{
    char *folder = folder_of(path);
    struct stat status;
    int fd = -1, error = 0;

    if (!folder)
        return explain(-ENOMEM, ret_why, "memory ran out");
    *has_made_it = mkdir(folder, 0755) == 0;
    if (!*has_made_it && errno != EEXIST) {
        error =
            explain(-errno, ret_why, "the folder %s cannot be made: %s", folder, strerror(errno));
    } else {
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) != 0)
            error = explain(-errno, ret_why, "the folder %s cannot be opened: %s", folder,
                            strerror(errno));
        else if ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX))
            error = explain(-EPERM, ret_why,
                            "everybody may write to the folder %s, so anybody could replace the "
                            "socket; choose another one or take that right away",
                            folder);
        else if (faccessat(fd, ".", W_OK, AT_EACCESS) != 0)
            error = explain(-EACCES, ret_why,
                            "the daemon may not write to the folder %s; let a socket unit with "
                            "FileDescriptorName= pass the socket in, or choose another folder",
                            folder);
    }
    free(folder);
    if (error != 0 && fd >= 0)
        close(fd);
    return error != 0 ? error : fd;
}

static bool name_lock(const char *path, char name[static NAME_MAX + 1])
{
    return snprintf(name, NAME_MAX + 1, ".%s.lock", strrchr(path, '/') + 1) <= NAME_MAX;
}

/* True while the file of that name is the one that is open. */
static bool is_file_of(int folder, const char *name, int fd)
{
    struct stat named, opened;

    return fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/*
 * The lock says that a daemon of ours owns the path, even in the moment between its start and its
 * first listen. Whoever has it may remove it; so one that was removed before it was locked is none,
 * and the next try is for the one that is there now.
 */
static int take_lock(int folder, const char *path, int *ret_lock, char **ret_why)
{
    char name[NAME_MAX + 1];

    if (!name_lock(path, name))
        return explain(-ENAMETOOLONG, ret_why, "the name of the socket %s is too long", path);
    for (int i = 0; i < LOCK_TRIES; i++) {
        int lock = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (lock < 0)
            return explain(-errno, ret_why,
                           "the lock file %s beside the socket %s cannot be opened: %s", name, path,
                           strerror(errno));
        if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
            close(lock);
            break;
        }
        if (is_file_of(folder, name, lock)) {
            *ret_lock = lock;
            return 0;
        }
        close(lock);
    }
    return explain(-EADDRINUSE, ret_why, "another diagportd owns the socket %s", path);
}

/* Removed first: a successor finds it gone, or makes its own. */
static void drop_lock(int folder, const char *path, int lock)
{
    char name[NAME_MAX + 1];

    if (lock < 0)
        return;
    if (folder >= 0 && name_lock(path, name) && is_file_of(folder, name, lock))
        unlinkat(folder, name, 0);
    close(lock);
}

static void remove_folder(const char *path)
{
    char *folder = folder_of(path);

    if (folder)
        rmdir(folder);
    free(folder);
}

static pid_t peer_of(int fd)
{
    struct ucred credentials = {0};
    socklen_t size = sizeof credentials;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 ? credentials.pid : 0;
}

/* What is at the path: nothing or a left-over, 0; somebody alive or something else, an error. */
static int probe(int folder, const char *path, char **ret_why)
{
    struct sockaddr_un address;
    struct stat status;
    int fd, error;

    if (fstatat(folder, strrchr(path, '/') + 1, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT
                   ? 0
                   : explain(-errno, ret_why, "%s cannot be looked at: %s", path, strerror(errno));
    if (!S_ISSOCK(status.st_mode))
        return explain(-EEXIST, ret_why,
                       "%s exists and is not a socket; remove it or choose another path", path);
    fd = open_socket();
    if (fd < 0 || !fill_address(path, &address))
        return explain(fd < 0 ? -errno : -ENAMETOOLONG, ret_why, "%s cannot be probed", path);
    error = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    if (error == 0)
        error =
            explain(-EADDRINUSE, ret_why, "process %d listens on %s already", peer_of(fd), path);
    else if (error == EAGAIN)
        error = explain(-EADDRINUSE, ret_why,
                        "somebody listens on %s already, and its queue is full", path);
    else if (error == ECONNREFUSED || error == ENOENT)
        error = 0;
    else
        error = explain(-error, ret_why, "%s cannot be probed: %s", path, strerror(error));
    close(fd);
    return error;
}

static bool find_user(const char *name, uid_t *ret_uid)
{
    const struct passwd *entry = getpwnam(name);
    char *end;
    unsigned long number = strtoul(name, &end, 10);

    if (entry)
        *ret_uid = entry->pw_uid;
    else if (*name >= '0' && *name <= '9' && *end == '\0' && number < UINT32_MAX)
        *ret_uid = (uid_t)number;
    else
        return false;
    return true;
}

static bool find_group(const char *name, gid_t *ret_gid)
{
    const struct group *entry = getgrnam(name);
    char *end;
    unsigned long number = strtoul(name, &end, 10);

    if (entry)
        *ret_gid = entry->gr_gid;
    else if (*name >= '0' && *name <= '9' && *end == '\0' && number < UINT32_MAX)
        *ret_gid = (gid_t)number;
    else
        return false;
    return true;
}

/* A start as root may do what a reload may not any more. */
static const char needs_restart[] =
    "; the daemon has no right to do that once it runs, so restart it";

static int set_rights(const char *path, const struct listener_rights *rights, char **ret_why)
{
    uid_t uid = rights_own_uid();
    gid_t gid = rights_own_gid();

    if (rights->owner && !find_user(rights->owner, &uid))
        return explain(-EINVAL, ret_why, "there is no user %s to own the socket %s", rights->owner,
                       path);
    if (rights->group && !find_group(rights->group, &gid))
        return explain(-EINVAL, ret_why, "there is no group %s for the socket %s", rights->group,
                       path);
    if (lchown(path, uid, gid) != 0)
        return explain(-errno, ret_why, "the owner of the socket %s cannot be set: %s%s", path,
                       strerror(errno), errno == EPERM ? needs_restart : "");
    if (chmod(path, rights->mode) != 0)
        return explain(-errno, ret_why, "the mode of the socket %s cannot be set: %s", path,
                       strerror(errno));
    return 0;
}

/* It listens only when its rights are right: until then a connect is refused, and a runtime tries
 * again within milliseconds. */
static int bind_socket(int folder, const char *path, const struct listener_rights *rights,
                       struct listener_socket *socket, char **ret_why)
{
    const char *name = strrchr(path, '/') + 1;
    struct sockaddr_un address;
    struct stat status;
    mode_t mask;
    int error;

    socket->fd = open_socket();
    if (socket->fd < 0 || !fill_address(path, &address))
        return explain(socket->fd < 0 ? -errno : -ENAMETOOLONG, ret_why,
                       "a socket for %s cannot be made", path);
    unlinkat(folder, name, 0);
    mask = umask(0177);
    error = bind(socket->fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : -errno;
    umask(mask);
    if (error != 0)
        return explain(error, ret_why, "the socket %s cannot be made: %s", path, strerror(-error));
    error = set_rights(path, rights, ret_why);
    /* As long a queue as the kernel gives: a runtime that finds it full blocks whole. */
    if (error == 0 && listen(socket->fd, INT_MAX) != 0)
        error =
            explain(-errno, ret_why, "nobody can be listened to on %s: %s", path, strerror(errno));
    if (error == 0 && fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        error = explain(-errno, ret_why, "the socket %s is gone: %s", path, strerror(errno));
    if (error != 0) {
        unlinkat(folder, name, 0);
        return error;
    }
    socket->device = status.st_dev;
    socket->inode = status.st_ino;
    return 0;
}

/* Nothing of it is left but what was there before. */
static void give_up(struct listener_socket *socket, int folder)
{
    if (socket->fd >= 0)
        close(socket->fd);
    drop_lock(folder, socket->path, socket->lock);
    if (socket->has_made_folder)
        remove_folder(socket->path);
    free(socket->path);
}

int listener_make(const char *path, const struct listener_rights *rights,
                  struct listener_socket *ret_socket, char **ret_why)
{
    struct listener_socket socket = {.fd = -1, .lock = -1, .path = strdup(path)};
    int folder, error;

    *ret_why = NULL;
    if (!socket.path)
        return explain(-ENOMEM, ret_why, "memory ran out");
    folder = open_folder(path, &socket.has_made_folder, ret_why);
    error = folder < 0 ? folder : take_lock(folder, path, &socket.lock, ret_why);
    if (error == 0)
        error = probe(folder, path, ret_why);
    if (error == 0)
        error = bind_socket(folder, path, rights, &socket, ret_why);
    if (error == 0)
        *ret_socket = socket;
    else
        give_up(&socket, folder);
    if (folder >= 0)
        close(folder);
    return error;
}

int listener_make_anew(struct listener_socket *socket, const struct listener_rights *rights,
                       int *ret_old, char **ret_why)
{
    const char *path = socket->path;
    struct listener_socket made = {.fd = -1, .lock = -1};
    char name[NAME_MAX + 1];
    bool has_lock, has_made_folder;
    int folder, error;

    *ret_why = NULL;
    folder = open_folder(path, &has_made_folder, ret_why);
    if (folder < 0)
        return folder;
    /* Whoever removed the socket may have removed the lock, and then another daemon may have one.
     */
    has_lock = name_lock(path, name) && is_file_of(folder, name, socket->lock);
    error = has_lock ? 0 : take_lock(folder, path, &made.lock, ret_why);
    if (error == 0)
        error = probe(folder, path, ret_why);
    if (error == 0)
        error = bind_socket(folder, path, rights, &made, ret_why);
    if (error != 0) {
        if (made.fd >= 0)
            close(made.fd);
        drop_lock(folder, path, made.lock);
        if (has_made_folder)
            remove_folder(path);
    } else {
        *ret_old = socket->fd;
        socket->fd = made.fd;
        socket->device = made.device;
        socket->inode = made.inode;
        if (!has_lock) {
            close(socket->lock);
            socket->lock = made.lock;
        }
    }
    close(folder);
    return error;
}

int listener_set_rights(const struct listener_socket *socket, const struct listener_rights *rights,
                        char **ret_why)
{
    *ret_why = NULL;
    if (socket->is_adopted)
        return explain(-EINVAL, ret_why, "the socket was passed in, so its rights are its unit's");
    if (!listener_is_in_place(socket))
        return explain(-ENOENT, ret_why, "the socket file %s was removed or replaced",
                       socket->path);
    return set_rights(socket->path, rights, ret_why);
}

static bool has_option(int fd, int option, int wanted)
{
    int value = 0;
    socklen_t size = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

static bool has_address(int fd, const char *path)
{
    struct sockaddr_un wanted, own = {.sun_family = AF_UNIX};
    socklen_t size = sizeof own;

    return fill_address(path, &wanted) && getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
           strncmp(wanted.sun_path, own.sun_path, sizeof own.sun_path) == 0;
}

int listener_adopt(int fd, const char *path, struct listener_socket *ret_socket, char **ret_why)
{
    struct stat status;
    char *known = NULL;
    bool is_there;

    *ret_why = NULL;
    if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_STREAM) ||
        !has_option(fd, SO_ACCEPTCONN, 1))
        return explain(-EINVAL, ret_why,
                       "the descriptor that was passed in is not a listening Unix stream socket");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    is_there = path && lstat(path, &status) == 0 && S_ISSOCK(status.st_mode);
    /* One that is elsewhere in our sight, if at all, cannot be looked for. */
    if ((is_there || (path && has_address(fd, path))) && !(known = strdup(path)))
        return explain(-ENOMEM, ret_why, "memory ran out");
    *ret_socket = (struct listener_socket){
        .fd = fd,
        .lock = -1,
        .path = known,
        .device = is_there ? status.st_dev : 0,
        .inode = is_there ? status.st_ino : 0,
        .is_adopted = true,
    };
    return 0;
}

bool listener_is_in_place(const struct listener_socket *socket)
{
    struct stat status;

    return !socket->path || (lstat(socket->path, &status) == 0 && status.st_dev == socket->device &&
                             status.st_ino == socket->inode);
}

char *listener_explain(const struct listener_socket *socket, const char *what, const char *units)
{
    struct stat status;
    bool is_gone = lstat(socket->path, &status) != 0;
    char *text;
    int length;

    if (socket->is_adopted)
        length = asprintf(&text,
                          "the socket file %s of %s was %s, so nobody new comes by it; it was "
                          "passed in, so restart its unit (systemctl restart %s)",
                          socket->path, what, is_gone ? "removed" : "replaced", units);
    else
        length = asprintf(&text,
                          "the socket file %s of %s was %s, so nobody new comes by it; a reload "
                          "makes it anew%s",
                          socket->path, what, is_gone ? "removed" : "replaced",
                          is_gone ? "" : ", unless somebody listens there");
    return length < 0 ? NULL : text;
}

void listener_close(struct listener_socket *socket)
{
    if (socket->is_adopted) {
        close(socket->fd);
        free(socket->path);
    } else if (socket->path) {
        char *name = folder_of(socket->path);
        int folder = name ? open(name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

        if (listener_is_in_place(socket))
            unlink(socket->path);
        give_up(socket, folder);
        if (folder >= 0)
            close(folder);
        free(name);
    }
    *socket = (struct listener_socket){.fd = -1, .lock = -1};
}
