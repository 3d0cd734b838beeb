/* SPDX-License-Identifier: Apache-2.0 */

#include "host/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum {
    LINKS_MAX = 40,
    REST_SIZE = 2 * PATH_MAX, /* a path, and the target of one link before it */
};

struct place {
    int fd; /* our own, or -1 */
    struct stat status;
};

/* What is still to be gone. */
struct rest {
    char buffer[REST_SIZE];
    char *at;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int look(int folder, const char *name, struct place *ret_place)
{
    struct place place = {.fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)};
    int error = 0;

    if (place.fd < 0)
        return -errno;
    if (fstat(place.fd, &place.status) != 0) {
        error = -errno;
        close(place.fd);
        return error;
    }
    *ret_place = place;
    return 0;
}

static void leave(struct place *place)
{
    if (place->fd >= 0)
        close(place->fd);
    place->fd = -1;
}

static int enter(const struct path_walk *walk, struct place *at, struct place next)
{
    leave(at);
    *at = next;
    return walk->step(walk->context, &at->status, at->fd) ? 0 : -ECANCELED;
}

/* At the first component, of the path itself or of what a link led to. */
static int begin(const struct path_walk *walk, struct place *at, const struct rest *rest)
{
    bool is_absolute = *rest->at == '/';
    struct place next;
    int error;

    if (is_absolute && walk->bound == PATH_BENEATH)
        return -EXDEV;
    if (!is_absolute && at->fd >= 0)
        return 0;
    error = look(is_absolute ? walk->root : walk->start, ".", &next);
    return error == 0 ? enter(walk, at, next) : error;
}

static int enter_parent(const struct path_walk *walk, struct place *at)
{
    struct stat root;
    struct place next;
    int error;

    if (fstat(walk->root, &root) != 0)
        return -errno;
    if (is_same(&root, &at->status))
        return walk->bound == PATH_BENEATH ? -EXDEV : 0;
    error = look(at->fd, "..", &next);
    return error == 0 ? enter(walk, at, next) : error;
}

/* Empty at the end of a path that ends in a slash. */
static void take_component(struct rest *rest, char name[static NAME_MAX + 2])
{
    char *start = rest->at + strspn(rest->at, "/");
    size_t length = strcspn(start, "/");
    size_t kept = length <= NAME_MAX ? length : NAME_MAX + 1; /* too long for the kernel, too */

    memcpy(name, start, kept);
    name[kept] = '\0';
    rest->at = start + length;
}

/* What a link says is gone before the rest. */
static int put_target(int link, struct rest *rest)
{
    size_t length = strlen(rest->at);
    char joined[REST_SIZE];
    ssize_t n = readlinkat(link, "", joined, PATH_MAX);

    if (n < 0)
        return -errno;
    if (n == 0)
        return -ENOENT;
    if (n == PATH_MAX || (size_t)n + length >= sizeof joined)
        return -ENAMETOOLONG;
    memcpy(joined + n, rest->at, length + 1);
    memcpy(rest->buffer, joined, (size_t)n + length + 1);
    rest->at = rest->buffer;
    return 0;
}

/* A link does not move us: what it says is gone from where it is. */
static int go_on(const struct path_walk *walk, struct place *at, struct rest *rest, int *n_links)
{
    char name[NAME_MAX + 2];
    struct place next;
    int error;

    take_component(rest, name);
    if (name[0] == '\0' || strcmp(name, ".") == 0)
        return S_ISDIR(at->status.st_mode) ? 0 : -ENOTDIR;
    if (strcmp(name, "..") == 0)
        return enter_parent(walk, at);
    error = look(at->fd, name, &next);
    if (error != 0)
        return error;
    if (!S_ISLNK(next.status.st_mode))
        return enter(walk, at, next);
    error = ++*n_links > LINKS_MAX ? -ELOOP : put_target(next.fd, rest);
    leave(&next);
    return error == 0 ? begin(walk, at, rest) : error;
}

int path_follow(const struct path_walk *walk, const char *path)
{
    struct rest rest = {.at = rest.buffer};
    struct place at = {.fd = -1};
    size_t length = strlen(path);
    int n_links = 0, error;

    if (length == 0 || length >= PATH_MAX)
        return length == 0 ? -ENOENT : -ENAMETOOLONG;
    memcpy(rest.buffer, path, length + 1);
    error = begin(walk, &at, &rest);
    while (error == 0 && *rest.at != '\0')
        error = go_on(walk, &at, &rest, &n_links);
    if (error == 0)
        return at.fd;
    leave(&at);
    return error;
}
