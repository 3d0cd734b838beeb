/* SPDX-License-Identifier: Apache-2.0 */

#include "rescue/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/tree.h"

static const char marker_name[] = "resumed-by-rescue";

static const struct span retry_pause = {1000000};

/* Of a record what tells whose it is, and where the next mark of it goes. */
struct entry {
    RB_ENTRY(entry) link;
    bool is_taken;
    uint32_t sequence;
    int32_t pid;
    uint64_t start_time;
    struct guid cookie;
};

RB_HEAD(entries, entry);

static struct {
    const char *path;
    enum records_state state;
    int folder;
    int file;
    bool is_owed;
    uint64_t n_unmarked;
    struct moment retry_at;
    uint8_t boot[RECORD_BOOT_SIZE];
    uint32_t free_hint;
    struct entries by_key;
} records = {.folder = -1, .file = -1};

static struct entry slots[RECORD_SLOTS]; /* the place of each is its slot */

static int compare_entries(const struct entry *a, const struct entry *b)
{
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->start_time != b->start_time)
        return a->start_time < b->start_time ? -1 : 1;
    return guid_compare(&a->cookie, &b->cookie);
}

TREE_GENERATE(entries, entry, link, compare_entries)

/* As start times of processes are given. */
static uint64_t ticks_after_boot(void)
{
    uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * per_second +
           (uint64_t)now.tv_nsec * per_second / UINT64_C(1000000000);
}

static bool read_boot_id(void)
{
    char text[64] = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    return length > 0 && record_read_boot(text, records.boot);
}

/* As the daemon wants it: anybody else who can write there could make it forget. Root may come to
 * the folder of the daemon's user. */
static bool is_ours(const struct stat *status)
{
    return (status->st_uid == geteuid() || geteuid() == 0) &&
           !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static enum records_state open_folder(void)
{
    struct stat status;

    /* As the daemon would; but not before there is something to say in it. */
    if (records.is_owed)
        (void)mkdir(records.path, 0700);
    records.folder = open(records.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (records.folder < 0 || fstat(records.folder, &status) != 0 || !is_ours(&status))
        return RECORDS_CLOSED;
    return flock(records.folder, LOCK_EX | LOCK_NB) == 0 ? RECORDS_UNTRIED : RECORDS_LOCKED;
}

static bool folder_is_empty(void)
{
    int copy = dup(records.folder);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    bool is_empty = true;

    if (!folder) {
        if (copy >= 0)
            close(copy);
        return true;
    }
    rewinddir(folder);
    while ((entry = readdir(folder))) {
        if (record_is_trace(entry->d_name))
            is_empty = false;
    }
    closedir(folder);
    return is_empty;
}

static off_t place_of(uint32_t slot)
{
    return RECORD_HEADER_SIZE + (off_t)slot * RECORD_SLOT_SIZE;
}

static void take_record(struct entry *entry, const struct record *record)
{
    entry->is_taken = record->phase != RECORD_NONE;
    entry->sequence = record->sequence;
    entry->pid = record->pid;
    entry->start_time = record->start_time;
    entry->cookie = record->cookie;
}

static bool read_slots(void)
{
    uint8_t bytes[64 * RECORD_SLOT_SIZE];

    RB_INIT(&records.by_key);
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
        struct entry *entry = &slots[slot];
        size_t at = slot % 64 * RECORD_SLOT_SIZE;
        struct record record;

        if (at == 0 && pread(records.file, bytes, sizeof bytes, place_of(slot)) != sizeof bytes)
            return false;
        if (!record_read(bytes + at, &record))
            return false;
        take_record(entry, &record);
        /* A second one of the same runtime stays where it is, and is looked at by nobody. */
        if (entry->is_taken)
            (void)RB_INSERT(entries, &records.by_key, entry);
    }
    return true;
}

static bool write_header(uint64_t distrusted_until)
{
    uint8_t header[RECORD_HEADER_SIZE];

    record_write_header(records.boot, distrusted_until, header);
    return pwrite(records.file, header, sizeof header, 0) == sizeof header;
}

/* The daemon would believe that nobody of this boot has a record. So its slots are emptied, and the
 * header comes last. */
static bool begin_this_boot(void)
{
    static const uint8_t zeroes[64 * RECORD_SLOT_SIZE];

    if (ftruncate(records.file, RECORD_FILE_SIZE) != 0)
        return false;
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot += 64) {
        if (pwrite(records.file, zeroes, sizeof zeroes, place_of(slot)) != sizeof zeroes)
            return false;
    }
    return write_header(0) && read_slots();
}

static enum records_state read_file(void)
{
    uint8_t bytes[RECORD_HEADER_SIZE];
    enum record_health health = RECORD_DAMAGED;
    struct record_header header;
    struct stat status;

    if (fstat(records.file, &status) != 0 || !read_boot_id())
        return RECORDS_CLOSED;
    if (S_ISREG(status.st_mode) && pread(records.file, bytes, sizeof bytes, 0) == sizeof bytes)
        health = record_read_header(bytes, (size_t)status.st_size, records.boot, &header);
    switch (health) {
    case RECORD_WHOLE:
        return read_slots() ? RECORDS_KEPT : RECORDS_DISTRUSTED;
    case RECORD_OTHER_BOOT:
        return begin_this_boot() ? RECORDS_KEPT : RECORDS_CLOSED;
    case RECORD_OLDER:
        return RECORDS_OLDER;
    case RECORD_NEWER:
        return RECORDS_NEWER;
    case RECORD_DAMAGED:
        break;
    }
    return RECORDS_DISTRUSTED;
}

static enum records_state open_file(void)
{
    records.file =
        openat(records.folder, RECORD_FILE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (records.file >= 0)
        return read_file();
    if (errno == ENOENT)
        return folder_is_empty() ? RECORDS_EMPTY : RECORDS_DISTRUSTED;
    return RECORDS_CLOSED;
}

static void try(void)
{
    if (records.file >= 0)
        close(records.file);
    if (records.folder >= 0)
        close(records.folder);
    records.file = records.folder = -1;
    records.state = open_folder();
    if (records.state == RECORDS_UNTRIED)
        records.state = open_file();
}

/* The next daemon may know that version, and would believe it; that the file is gone from a folder
 * that is not empty every version knows. */
static bool put_aside(const char *name)
{
    if (renameat(records.folder, RECORD_FILE, records.folder, name) != 0)
        return false;
    records.state = RECORDS_DISTRUSTED;
    return true;
}

/* The next daemon will not take those for new who were started until now. */
static bool distrust(void)
{
    int marker;

    switch (records.state) {
    case RECORDS_KEPT:
        return write_header(ticks_after_boot());
    case RECORDS_DISTRUSTED:
        return true;
    case RECORDS_OLDER:
        return put_aside(RECORD_OLDER_FILE);
    case RECORDS_NEWER:
        return put_aside(RECORD_NEWER_FILE);
    case RECORDS_EMPTY:
        marker =
            openat(records.folder, marker_name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (marker < 0)
            return false;
        close(marker);
        records.state = RECORDS_DISTRUSTED;
        return true;
    case RECORDS_UNTRIED:
    case RECORDS_LOCKED:
    case RECORDS_CLOSED:
        break;
    }
    return false;
}

static struct entry *free_entry(void)
{
    for (uint32_t i = records.free_hint; i < RECORD_SLOTS; i++) {
        if (!slots[i].is_taken) {
            records.free_hint = i;
            return &slots[i];
        }
    }
    records.free_hint = RECORD_SLOTS;
    return NULL;
}

static bool write_slot(const struct entry *entry, const struct record *record)
{
    off_t place = place_of((uint32_t)(entry - slots));
    uint8_t slot[RECORD_SLOT_SIZE], mark[RECORD_MARK_SIZE];

    if (pread(records.file, slot, sizeof slot, place) != sizeof slot)
        return false;
    record_write(record, mark);
    record_put(slot, mark);
    return pwrite(records.file, slot, sizeof slot, place) == sizeof slot;
}

static bool write_mark(const struct record *record)
{
    struct entry key = {.pid = record->pid,
                        .start_time = record->start_time,
                        .cookie = record->cookie};
    struct entry *entry = RB_FIND(entries, &records.by_key, &key);
    struct record numbered = *record;
    bool is_new = !entry;

    if (is_new)
        entry = free_entry();
    if (!entry)
        return false;
    numbered.sequence = entry->sequence + 1;
    if (!write_slot(entry, &numbered))
        return false;
    take_record(entry, &numbered);
    if (is_new)
        RB_INSERT(entries, &records.by_key, entry);
    return true;
}

void records_open(const char *folder, struct moment now)
{
    records.path = folder;
    records.retry_at = now;
    try();
}

void records_mark(const struct record *record, struct moment now)
{
    bool can_be_marked = record->pid > 0 && record->start_time > 0;

    if (records.state == RECORDS_KEPT && can_be_marked && write_mark(record))
        return;
    records.n_unmarked++;
    records.is_owed = !distrust();
    records_retry(now);
}

void records_retry(struct moment now)
{
    if (!records.is_owed || !moment_is_due(records.retry_at, now))
        return;
    records.retry_at = moment_after(now, retry_pause);
    if (records.state == RECORDS_LOCKED || records.state == RECORDS_CLOSED)
        try();
    if (distrust())
        records.is_owed = false;
}

struct moment records_deadline(void)
{
    return records.is_owed ? records.retry_at : MOMENT_NEVER;
}

enum records_state records_state(void)
{
    return records.state;
}

uint64_t records_n_unmarked(void)
{
    return records.n_unmarked;
}

bool records_are_owed(void)
{
    return records.is_owed;
}

const char *records_describe(void)
{
    switch (records.state) {
    case RECORDS_UNTRIED:
        return "were not looked at";
    case RECORDS_LOCKED:
        return "are not written: a daemon or another rescue that lives has locked them";
    case RECORDS_CLOSED:
        return "cannot be written";
    case RECORDS_EMPTY:
        return "are not there yet";
    case RECORDS_OLDER:
    case RECORDS_NEWER:
        return "are of another version: the next daemon distrusts them";
    case RECORDS_DISTRUSTED:
        return "are damaged or missing: the next daemon distrusts them";
    case RECORDS_KEPT:
        return "are kept";
    }
    return "are in a state that has no name";
}
