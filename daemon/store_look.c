/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records that stay where the next daemon finds them. Somebody may remove the
 * folder or the file, put others in their place, or make them read-only; what the
 * daemon knows is in its mapping all the same, and is written anew where it can be.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/mapping.h"
#include "daemon/store.h"
#include "daemon/store_core.h"

enum fault {
    FAULT_NONE,
    FAULT_FOLDER_GONE,
    FAULT_FOLDER_OTHER,
    FAULT_NO_FILE, /* there never was one that could be used */
    FAULT_FILE_GONE,
    FAULT_FILE_OTHER,
    FAULT_FILE_CUT,
    FAULT_READ_ONLY, /* by its mode, or its file system */
};

static bool are_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* As whoever opens them by their names from now on. */
static bool is_writable(const struct store *store, const struct stat *folder,
                        const struct stat *file)
{
    int at = open(store->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_so = at >= 0 && (folder->st_mode & (S_IRWXU | S_IWGRP | S_IWOTH)) == S_IRWXU &&
                 (file->st_mode & (S_IRUSR | S_IWUSR)) == (S_IRUSR | S_IWUSR) &&
                 faccessat(at, ".", W_OK, AT_EACCESS) == 0 &&
                 faccessat(at, RECORD_FILE, W_OK, AT_EACCESS) == 0;

    if (at >= 0)
        close(at);
    return is_so;
}

/* Somebody made it shorter, and what was there is lost. */
static bool is_cut(const struct store *store)
{
    struct stat file;

    return store->map && (fstat(store->fd, &file) != 0 || file.st_size < RECORD_FILE_SIZE ||
                          mapping_was_cut(store->map));
}

static enum fault find_fault(const struct store *store)
{
    struct stat at_path, folder, named, file;

    if (lstat(store->path, &at_path) != 0)
        return errno == ENOENT ? FAULT_FOLDER_GONE : FAULT_FOLDER_OTHER;
    if (store->folder < 0 || fstat(store->folder, &folder) != 0 || !are_same(&at_path, &folder))
        return FAULT_FOLDER_OTHER;
    if (!store->map || fstat(store->fd, &file) != 0)
        return FAULT_NO_FILE;
    if (is_cut(store))
        return FAULT_FILE_CUT;
    if (fstatat(store->folder, RECORD_FILE, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return FAULT_FILE_GONE;
    if (!are_same(&named, &file))
        return FAULT_FILE_OTHER;
    return is_writable(store, &folder, &file) ? FAULT_NONE : FAULT_READ_ONLY;
}

/* Putting right. */

static int renew_in(struct store *store, int folder, struct store_look *look)
{
    uint64_t distrusted_until = store->map ? 0 : store_ticks_after_boot();
    bool is_first = !store->map;
    int error = store->has_boot ? store_renew(store, folder, distrusted_until) : -ENOTSUP;

    if (error != 0)
        return error;
    look->is_anew = true;
    look->is_first = is_first;
    look->distrusted_until = distrusted_until;
    return 0;
}

static int move_to_new_folder(struct store *store, struct store_look *look)
{
    int folder, error = store_open_folder(store, &folder);

    if (error != 0)
        return error;
    error = store_lock_folder(folder);
    if (error == 0)
        error = renew_in(store, folder, look);
    if (error != 0) {
        close(folder);
        return error;
    }
    if (store->folder >= 0)
        close(store->folder);
    store->folder = folder;
    return 0;
}

/* They are the daemon's own, and nobody needs them like that. */
static int make_writable(const struct store *store)
{
    if (fchmod(store->folder, 0700) != 0 || fchmod(store->fd, 0600) != 0)
        return -errno;
    return find_fault(store) == FAULT_NONE ? 0 : -EROFS;
}

static int put_right(struct store *store, enum fault fault, struct store_look *look)
{
    switch (fault) {
    case FAULT_NONE:
        break;
    case FAULT_FOLDER_GONE:
        if (mkdir(store->path, 0700) != 0 && errno != EEXIST)
            return -errno;
        return move_to_new_folder(store, look);
    case FAULT_FOLDER_OTHER:
        return move_to_new_folder(store, look);
    case FAULT_NO_FILE:
    case FAULT_FILE_GONE:
    case FAULT_FILE_OTHER:
    case FAULT_FILE_CUT:
        return renew_in(store, store->folder, look);
    case FAULT_READ_ONLY:
        return make_writable(store);
    }
    return 0;
}

/* Telling. */

static const char *fault_text(enum fault fault)
{
    switch (fault) {
    case FAULT_NONE:
    case FAULT_NO_FILE:
        break;
    case FAULT_FOLDER_GONE:
        return "the folder was removed";
    case FAULT_FOLDER_OTHER:
        return "the folder is another one than before";
    case FAULT_FILE_GONE:
        return "the file of records was removed";
    case FAULT_FILE_OTHER:
        return "the file of records was replaced";
    case FAULT_FILE_CUT:
        return "the file of records was cut, and who is older than this gets only Resume from "
               "the next daemon";
    case FAULT_READ_ONLY:
        return "the folder or the file of records was made read-only";
    }
    return "there is no file of records, so nothing is applied to any runtime";
}

static const char *advice(const struct store *store, enum fault fault, int error)
{
    if (store->obstacle.error != 0)
        return "remove what is there by the name of " RECORD_FILE;
    if (fault == FAULT_FOLDER_GONE)
        return "make it (systemd-tmpfiles --create diagport.conf), and then restart the daemon "
               "(systemctl restart diagportd.service)";
    switch (-error) {
    case EROFS:
        return fault == FAULT_FOLDER_OTHER
                   ? "the daemon's sandbox has the one before; restart the daemon (systemctl "
                     "restart diagportd.service)"
                   : "make its file system writable";
    case EPERM:
    case EACCES:
        return "it has to belong to the daemon's user, and be writable by nobody else";
    case EBUSY:
        return "another diagportd uses it; stop that one";
    case ENOSPC:
    case EDQUOT:
        return "make room there";
    case EEXIST:
        return "remove what is there by the name of " RECORD_NEW_FILE;
    default:
        return "see to it, or restart the daemon";
    }
}

static char *explain(const char *format, ...) PRINTF_LIKE(1, 2);

static char *explain(const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return text;
}

void store_look(struct store *store, struct store_look *ret_look)
{
    enum fault fault = find_fault(store);
    int error;

    *ret_look = (struct store_look){.is_in_place = fault == FAULT_NONE};
    if (fault == FAULT_NONE)
        return;
    if (is_cut(store)) {
        store_forget_file(store);
        ret_look->is_lost = true;
    }
    error = put_right(store, fault, ret_look);
    ret_look->is_put_right = error == 0;
    ret_look->why = error == 0
                        ? explain("of the state folder %s: %s; it was put right", store->path,
                                  fault_text(fault))
                        : explain("of the state folder %s: %s, and it cannot be put right (%s): %s",
                                  store->path, fault_text(fault), strerror(-error),
                                  advice(store, fault, error));
}
