/* SPDX-License-Identifier: Apache-2.0 */

#include "host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const uint8_t *at, size_t left)
{
    while (left > 0) {
        ssize_t n = write(fd, at, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        at += n;
        left -= (size_t)n;
    }
    return 0;
}

/* Before it has the name: whoever finds it finds it as it stays. */
static int finish(int fd, const struct file_place *place, bool is_synced)
{
    if (place->owner != geteuid() && fchown(fd, place->owner, place->group) != 0)
        return -errno;
    if (fchmod(fd, place->mode) != 0)
        return -errno;
    return !is_synced || fsync(fd) == 0 ? 0 : -errno;
}

int file_write(const struct file_place *place, const void *content, size_t length, bool is_synced)
{
    int error, fd;

    unlinkat(place->folder, place->temporary, 0);
    fd = openat(place->folder, place->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    error = write_all(fd, content, length);
    if (error == 0)
        error = finish(fd, place, is_synced);
    if (close(fd) != 0 && error == 0)
        error = -errno;
    if (error == 0 && renameat(place->folder, place->temporary, place->folder, place->name) != 0)
        error = -errno;
    if (error != 0)
        unlinkat(place->folder, place->temporary, 0);
    return error;
}

/* Who could write to it could have us do anything. */
static int judge(const struct stat *status, uid_t owner, size_t max)
{
    if (!S_ISREG(status->st_mode) || (status->st_uid != geteuid() && status->st_uid != owner) ||
        (status->st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return -EPERM;
    return (uint64_t)status->st_size <= max ? 0 : -EFBIG;
}

/* What was there when it was looked at, and no more. */
static int read_all(int fd, char *bytes, size_t size, size_t *ret_length)
{
    size_t length = 0;

    while (length < size) {
        ssize_t n = read(fd, bytes + length, size - length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        length += (size_t)n;
    }
    bytes[length] = '\0';
    *ret_length = length;
    return 0;
}

int file_read_own(int folder, const char *name, uid_t owner, size_t max, char **ret_bytes,
                  size_t *ret_length)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    char *bytes = NULL;
    int error;

    if (fd < 0)
        return errno == ELOOP ? -EPERM : -errno;
    error = fstat(fd, &status) == 0 ? judge(&status, owner, max) : -errno;
    if (error == 0 && !(bytes = malloc((size_t)status.st_size + 1)))
        error = -ENOMEM;
    if (error == 0)
        error = read_all(fd, bytes, (size_t)status.st_size, ret_length);
    close(fd);
    if (error != 0) {
        free(bytes);
        return error;
    }
    *ret_bytes = bytes;
    return 0;
}

/* Those of this process's user that are to be somebody else's are not, though they can be read. */
static bool is_so(const struct file_place *place, const void *content, size_t length)
{
    struct stat status;
    char *bytes;
    size_t found;
    bool is_same;

    if (fstatat(place->folder, place->name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        (status.st_mode & ALLPERMS) != place->mode || status.st_uid != place->owner ||
        file_read_own(place->folder, place->name, place->owner, length, &bytes, &found) != 0)
        return false;
    is_same = found == length && memcmp(bytes, content, length) == 0;
    free(bytes);
    return is_same;
}

int file_ensure(const struct file_place *place, const void *content, size_t length)
{
    if (!is_so(place, content, length))
        return file_write(place, content, length, false);
    /* Of one who died while he wrote it. */
    unlinkat(place->folder, place->temporary, 0);
    return 0;
}
