/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/mapping.h"
#include "daemon/store_core.h"
#include "host/rights.h"
#include "lib/procfs.h"

static void explain(struct store_found *found, enum broker_trust trust, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void explain(struct store_found *found, enum broker_trust trust, const char *format, ...)
{
    va_list arguments;

    found->trust = trust;
    free(found->why);
    va_start(arguments, format);
    if (vasprintf(&found->why, format, arguments) < 0)
        found->why = NULL;
    va_end(arguments);
}

static int close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
    return -1;
}

uint64_t store_ticks_after_boot(void)
{
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);

    return (uint64_t)clock_since_boot().us * per_second / 1000000;
}

static bool read_boot_id(uint8_t boot[static RECORD_BOOT_SIZE])
{
    char text[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    return length > 0 && record_read_boot(text, boot);
}

/* Of the user that the daemon runs as, or will. */
static bool is_own(const struct stat *status)
{
    return status->st_uid == geteuid() || status->st_uid == rights_own_uid();
}

/* What a start as root made, or finds of an earlier one, is the daemon's to be. */
static int hand_over(int fd)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return -errno;
    if (status.st_uid == rights_own_uid())
        return 0;
    return fchown(fd, rights_own_uid(), rights_own_gid()) == 0 ? 0 : -errno;
}

/* The folder has to be ours alone: who can write there can make us forget. */
int store_open_folder(const struct store *store, int *ret_folder)
{
    int folder = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    int error = 0;

    if (folder < 0 || fstat(folder, &status) != 0)
        error = -errno;
    else if (!is_own(&status) || (status.st_mode & (S_IWGRP | S_IWOTH)))
        error = -EPERM;
    if (error == 0)
        *ret_folder = folder;
    else
        close_fd(folder);
    return error;
}

static bool open_folder(struct store *store, struct store_found *found)
{
    int error = store_open_folder(store, &store->folder);

    if (error == -EPERM)
        explain(found, BROKER_HAS_NO_RECORDS,
                "the state folder %s must belong to the daemon's user and be writable by nobody "
                "else",
                store->path);
    else if (error != 0)
        explain(found, BROKER_HAS_NO_RECORDS, "the state folder %s cannot be opened: %s",
                store->path, strerror(-error));
    return error == 0;
}

static bool make_folder(const struct store *store, struct store_found *found)
{
    if (mkdir(store->path, 0700) == 0 || errno == EEXIST)
        return true;
    explain(found, BROKER_HAS_NO_RECORDS, "the state folder %s cannot be made: %s", store->path,
            strerror(errno));
    return false;
}

/* The lock is on the folder itself: it holds whatever becomes of the files in it. */
int store_lock_folder(int folder)
{
    return flock(folder, LOCK_EX | LOCK_NB) == 0 ? 0 : -EBUSY;
}

/* True when nothing of an earlier daemon is there; one that died while it made its file left no
 * record. */
static bool is_first_start(const struct store *store)
{
    int copy = dup(store->folder);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    bool is_empty = true;

    if (!folder) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    rewinddir(folder);
    errno = 0;
    while ((entry = readdir(folder))) {
        if (record_is_trace(entry->d_name))
            is_empty = false;
    }
    /* What could not be read to its end may hold anything. */
    if (errno != 0)
        is_empty = false;
    closedir(folder);
    return is_empty;
}

static bool map_file(struct store *store)
{
    store->map = mapping_new(store->fd, RECORD_FILE_SIZE, true);
    return store->map;
}

/* All of the file is allocated now: a write to a hole of a full disk would kill us later. */
static int fill_file(const struct store *store, int fd, uint64_t distrusted_until)
{
    uint8_t header[RECORD_HEADER_SIZE];
    int error = posix_fallocate(fd, 0, RECORD_FILE_SIZE);

    if (error != 0)
        return -error;
    record_write_header(store->boot, distrusted_until, header);
    if (pwrite(fd, header, sizeof header, 0) != (ssize_t)sizeof header)
        return errno ? -errno : -ENOSPC;
    return 0;
}

/* The one that becomes the records when it is whole. `*ret_fd` is set whatever comes of it. */
static int begin_file(const struct store *store, int folder, uint64_t distrusted_until, int *ret_fd)
{
    unlinkat(folder, RECORD_NEW_FILE, 0);
    *ret_fd = openat(folder, RECORD_NEW_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return *ret_fd < 0 ? -errno : fill_file(store, *ret_fd, distrusted_until);
}

static int finish_file(int folder)
{
    return renameat(folder, RECORD_NEW_FILE, folder, RECORD_FILE) == 0 ? 0 : -errno;
}

/* The file of an earlier version: what of it is needed to make ours. */
struct older_file {
    uint32_t version;
    uint8_t *map;
};

static bool map_older(const struct store *store, uint32_t version, struct older_file *ret_older)
{
    size_t length = RECORD_HEADER_SIZE + RECORD_SLOTS * record_slot_size(version);

    *ret_older =
        (struct older_file){.version = version, .map = mapping_new(store->fd, length, false)};
    return ret_older->map;
}

static void unmap_older(struct older_file *older)
{
    older->map = mapping_free(older->map);
}

static bool read_older(const struct older_file *older, uint32_t slot, struct record *ret_record)
{
    const uint8_t *slots = older->map + RECORD_HEADER_SIZE;

    return record_read_older(older->version, slots + slot * record_slot_size(older->version),
                             ret_record);
}

static bool older_is_whole(const struct older_file *older)
{
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
        struct record record;

        if (!read_older(older, slot, &record))
            return false;
    }
    return !mapping_was_cut(older->map);
}

/* Into the file that is being made, which is all zero. */
static int copy_older(const struct store *store, const struct older_file *older)
{
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
        uint8_t bytes[RECORD_SLOT_SIZE];
        struct record record;

        if (!read_older(older, slot, &record) || record.phase == RECORD_NONE)
            continue;
        record_write_slot(&record, bytes);
        if (pwrite(store->fd, bytes, sizeof bytes,
                   RECORD_HEADER_SIZE + (off_t)slot * RECORD_SLOT_SIZE) != (ssize_t)sizeof bytes)
            return errno ? -errno : -ENOSPC;
    }
    return 0;
}

/* `older` NULL: with nothing in it. The one that was there stays until this one is whole. */
static bool make_file_of(struct store *store, const char *folder, const struct older_file *older,
                         struct store_found *found)
{
    int error = begin_file(store, store->folder, found->distrusted_until, &store->fd);

    if (error == 0 && older)
        error = copy_older(store, older);
    if (error == 0)
        error = finish_file(store->folder);
    if (error == 0 && !map_file(store))
        error = -errno;
    if (error == 0)
        return true;
    unlinkat(store->folder, RECORD_NEW_FILE, 0);
    explain(found, BROKER_HAS_NO_RECORDS, "the file of records %s/%s cannot be made: %s", folder,
            RECORD_FILE, strerror(-error));
    return false;
}

static bool make_file(struct store *store, const char *folder, struct store_found *found)
{
    return make_file_of(store, folder, NULL, found);
}

static bool slots_are_whole(const struct store *store)
{
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
        struct record record;

        if (!record_read(store->map + RECORD_HEADER_SIZE + slot * RECORD_SLOT_SIZE, &record))
            return false;
    }
    return !mapping_was_cut(store->map);
}

/* With RECORD_WHOLE it is mapped, with RECORD_OLDER `ret_older` is. */
static enum record_health judge_file(struct store *store, struct record_header *ret_header,
                                     struct older_file *ret_older)
{
    uint8_t bytes[RECORD_HEADER_SIZE];
    enum record_health health;
    struct stat status;

    if (fstat(store->fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        pread(store->fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return RECORD_DAMAGED;
    health = record_read_header(bytes, (size_t)status.st_size, store->boot, ret_header);
    if (health == RECORD_WHOLE && (!map_file(store) || !slots_are_whole(store)))
        return RECORD_DAMAGED;
    if (health == RECORD_OLDER &&
        (!map_older(store, ret_header->version, ret_older) || !older_is_whole(ret_older)))
        return RECORD_DAMAGED;
    return health;
}

void store_forget_file(struct store *store)
{
    store->map = mapping_free(store->map);
    store->fd = close_fd(store->fd);
}

/* It may have another name by now, or be in a store, and what it says is not so any more from the
 * next mark on: whoever finds it then is not to take it for the records. */
static void spend_file(const struct store *store)
{
    static const uint8_t nothing[RECORD_HEADER_SIZE];

    if (store->fd >= 0)
        (void)!pwrite(store->fd, nothing, sizeof nothing, 0);
}

/* A folder, say, or a place where something is mounted. To find that out again costs a whole file
 * of records each time, on a disk that may be slow. */
static void remember_obstacle(struct store *store, int folder, int error)
{
    struct stat named;

    if (error != 0 && fstatat(folder, RECORD_FILE, &named, AT_SYMLINK_NOFOLLOW) == 0)
        store->obstacle = (struct store_obstacle){error, named.st_dev, named.st_ino, named.st_ctim};
}

/* 0 when it is gone, or something about it has changed. */
static int find_obstacle(struct store *store, int folder)
{
    const struct store_obstacle *known = &store->obstacle;
    struct stat named;

    if (known->error != 0 && (fstatat(folder, RECORD_FILE, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
                              named.st_dev != known->device || named.st_ino != known->inode ||
                              named.st_ctim.tv_sec != known->changed_at.tv_sec ||
                              named.st_ctim.tv_nsec != known->changed_at.tv_nsec))
        store->obstacle = (struct store_obstacle){0};
    return known->error;
}

static int name_file(struct store *store, int folder)
{
    int error = finish_file(folder);

    remember_obstacle(store, folder, error);
    return error;
}

int store_renew(struct store *store, int folder, uint64_t distrusted_until)
{
    uint8_t *map = NULL;
    int fd, error = find_obstacle(store, folder);

    if (error != 0)
        return error;
    error = begin_file(store, folder, distrusted_until, &fd);
    if (error == 0 && !(map = mapping_new(fd, RECORD_FILE_SIZE, true)))
        error = -errno;
    if (error == 0 && store->map)
        memcpy(map, store->map, RECORD_FILE_SIZE);
    /* What was taken for records may not have been. */
    if (error == 0 && store->map && mapping_was_cut(store->map))
        error = -EBADMSG;
    if (error == 0)
        error = name_file(store, folder);
    if (error != 0) {
        mapping_free(map);
        close_fd(fd);
        unlinkat(folder, RECORD_NEW_FILE, 0);
        return error;
    }
    spend_file(store);
    store_forget_file(store);
    store->fd = fd;
    store->map = map;
    return 0;
}

/* Without records in a folder that is not empty somebody took them away. */
static bool begin_anew(struct store *store, const char *folder, struct store_found *found)
{
    if (store->had_kept || !is_first_start(store)) {
        explain(found, BROKER_DISTRUSTS_RECORDS,
                "the file of records is missing from the state folder %s, which is not empty",
                folder);
        found->distrusted_until = store_ticks_after_boot();
    }
    return make_file(store, folder, found);
}

static void take_header(const struct record_header *header, const char *folder,
                        struct store_found *found)
{
    found->distrusted_until = header->distrusted_until;
    if (header->distrusted_until > 0)
        explain(found, BROKER_DISTRUSTS_RECORDS,
                "the file of records in %s was made after an earlier one was damaged or lost, or "
                "diagport-rescue could not write to it",
                folder);
}

/* Kept for whoever wants to know why, and so that the folder does not look like a first start
 * should we die before the new file is there. It is never read again: whoever is in it is resumed.
 */
static bool put_aside(struct store *store, const char *folder, const char *name,
                      struct store_found *found)
{
    renameat(store->folder, RECORD_FILE, store->folder, name);
    found->distrusted_until = store_ticks_after_boot();
    return make_file(store, folder, found);
}

static bool use_judged(struct store *store, const char *folder, enum record_health health,
                       const struct record_header *header, const struct older_file *older,
                       struct store_found *found)
{
    switch (health) {
    case RECORD_WHOLE:
        take_header(header, folder, found);
        return true;
    case RECORD_OLDER:
        take_header(header, folder, found);
        store_forget_file(store);
        return make_file_of(store, folder, older, found);
    case RECORD_OTHER_BOOT:
        store_forget_file(store);
        return make_file(store, folder, found);
    case RECORD_NEWER:
        store_forget_file(store);
        explain(found, BROKER_DISTRUSTS_RECORDS,
                "the file of records in %s is of version %u, which a newer diagportd wrote, and "
                "this one knows none after %d; it was moved to " RECORD_NEWER_FILE,
                folder, header->version, RECORD_VERSION);
        return put_aside(store, folder, RECORD_NEWER_FILE, found);
    case RECORD_DAMAGED:
        break;
    }
    store_forget_file(store);
    explain(found, BROKER_DISTRUSTS_RECORDS,
            "the file of records in %s is damaged or of an unknown version; it was moved "
            "to " RECORD_DAMAGED_FILE,
            folder);
    return put_aside(store, folder, RECORD_DAMAGED_FILE, found);
}

static bool use_file(struct store *store, const char *folder, struct store_found *found)
{
    struct older_file older = {.map = NULL};
    struct record_header header;
    enum record_health health = judge_file(store, &header, &older);
    bool can_be_used = use_judged(store, folder, health, &header, &older, found);

    unmap_older(&older);
    return can_be_used;
}

static bool open_file(struct store *store, const char *folder, struct store_found *found)
{
    store->fd = openat(store->folder, RECORD_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (store->fd < 0 && errno == ENOENT)
        return begin_anew(store, folder, found);
    if (store->fd < 0) {
        explain(found, BROKER_HAS_NO_RECORDS, "the file of records %s/%s cannot be opened: %s",
                folder, RECORD_FILE, strerror(errno));
        return false;
    }
    return use_file(store, folder, found);
}

/* It goes on in the folder, or, where that cannot be, without a name. */
static bool use_kept(struct store *store, struct store_found *found)
{
    struct older_file older = {.map = NULL};
    struct record_header header;
    enum record_health health;

    if (store->kept < 0)
        return false;
    store->fd = store->kept;
    store->kept = -1;
    health = judge_file(store, &header, &older);
    unmap_older(&older);
    if (health != RECORD_WHOLE) {
        store_forget_file(store);
        return false;
    }
    free(found->why);
    *found = (struct store_found){.trust = BROKER_TRUSTS_RECORDS};
    take_header(&header, store->path, found);
    /* What is in the way there is told of as soon as it is looked at. */
    found->is_kept = store->folder < 0 || store_renew(store, store->folder, 0) != 0;
    return true;
}

/* The next daemon may not be started as root. */
static void hand_all_over(struct store *store, struct store_found *found)
{
    if (hand_over(store->fd) == 0 && (store->folder < 0 || hand_over(store->folder) == 0))
        return;
    explain(found, BROKER_HAS_NO_RECORDS,
            "the state folder %s cannot be given to the daemon's user: %s", store->path,
            strerror(errno));
    store_forget_file(store);
}

struct store *store_claim(const char *folder, int *ret_error)
{
    struct store *store = calloc(1, sizeof *store);
    struct store_found found = {.why = NULL};

    *ret_error = 0;
    if (store) {
        store->folder = -1;
        store->fd = -1;
        store->kept = -1;
        store->path = strdup(folder);
        store->has_boot = read_boot_id(store->boot);
    }
    if (!store || !store->path)
        *ret_error = -ENOMEM;
    else if (open_folder(store, &found))
        *ret_error = store_lock_folder(store->folder);
    /* What else is wrong with it is found again when it is opened. */
    free(found.why);
    return *ret_error == 0 ? store : store_close(store);
}

int store_open(struct store *store, struct store_found *ret_found)
{
    bool is_claimed = store->folder >= 0;

    *ret_found = (struct store_found){.trust = BROKER_TRUSTS_RECORDS};
    if (!store->has_boot) {
        explain(ret_found, BROKER_HAS_NO_RECORDS, "the id of this boot cannot be read from /proc");
        return 0;
    }
    if (!is_claimed && make_folder(store, ret_found) && open_folder(store, ret_found) &&
        store_lock_folder(store->folder) != 0)
        return -EBUSY;
    if (use_kept(store, ret_found) ||
        (store->folder >= 0 && open_file(store, store->path, ret_found)))
        hand_all_over(store, ret_found);
    else
        store_forget_file(store);
    return 0;
}

void store_take_kept(struct store *store, int fd)
{
    store->kept = fd;
    store->had_kept = fd >= 0;
}

static bool is_alive(const struct record *record)
{
    char name[64], text[1024];
    struct procfs_stat stat;
    ssize_t length;
    int fd;

    snprintf(name, sizeof name, "/proc/%d/stat", record->pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT;
    length = read(fd, text, sizeof text);
    close(fd);
    if (length <= 0 || !procfs_read_stat(text, (size_t)length, &stat))
        return length <= 0 ? errno != ESRCH : true;
    return stat.start_time == record->start_time && !stat.has_ended;
}

int store_recall(struct store *store, struct broker *broker, const struct store_policies *policies)
{
    for (uint32_t slot = 0; store->map && slot < RECORD_SLOTS; slot++) {
        uint8_t *bytes = store->map + RECORD_HEADER_SIZE + slot * RECORD_SLOT_SIZE;
        struct record record;

        if (!record_read(bytes, &record) || record.phase == RECORD_NONE)
            continue;
        progress_tell(policies->progress);
        if (!is_alive(&record))
            memset(bytes, 0, RECORD_SLOT_SIZE);
        else if (broker_remember(broker, slot, &record,
                                 policies->find(policies->context, record.policy)) != 0)
            return -ENOMEM;
    }
    return 0;
}

void store_mark(struct store *store, uint32_t slot, const uint8_t mark[static RECORD_MARK_SIZE])
{
    if (store->map)
        record_put(store->map + RECORD_HEADER_SIZE + (size_t)slot * RECORD_SLOT_SIZE, mark);
}

int store_file(const struct store *store)
{
    return store->fd;
}

int store_folder(const struct store *store)
{
    return store->folder;
}

const char *store_path(const struct store *store)
{
    return store->path;
}

const uint8_t *store_boot(const struct store *store)
{
    return store->has_boot ? store->boot : NULL;
}

struct store *store_close(struct store *store)
{
    if (!store)
        return NULL;
    store_forget_file(store);
    close_fd(store->folder);
    close_fd(store->kept);
    free(store->path);
    free(store);
    return NULL;
}
