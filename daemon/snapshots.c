/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/snapshots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_read.h"
#include "lib/tree.h"

/* "policy-", the hash and ".yaml". */
#define PREFIX    "policy-"
#define SUFFIX    ".yaml"
#define TEMPORARY "policy.new"

enum {
    HASH_LENGTH = 64,
    NAME_LENGTH = sizeof PREFIX - 1 + HASH_LENGTH + sizeof SUFFIX - 1,
    /* The canonical form may be longer than what was written by hand. */
    SNAPSHOT_MAX = 16 * POLICY_SOURCE_MAX,
};

/* One that was asked for; `policy` NULL: it cannot be had. */
struct found {
    SLIST_ENTRY(found) link;
    uint8_t id[RECORD_POLICY_SIZE];
    struct policy *policy;
};

struct snapshots {
    int folder;
    SLIST_HEAD(, found) found;
};

struct snapshots *snapshots_new(int folder)
{
    struct snapshots *snapshots = calloc(1, sizeof *snapshots);

    if (snapshots)
        snapshots->folder = folder;
    return snapshots;
}

struct snapshots *snapshots_free(struct snapshots *snapshots)
{
    struct found *found;

    if (!snapshots)
        return NULL;
    while ((found = SLIST_FIRST(&snapshots->found))) {
        SLIST_REMOVE_HEAD(&snapshots->found, link);
        policy_unref(found->policy);
        free(found);
    }
    free(snapshots);
    return NULL;
}

/* Writing. */

static int write_all(int fd, const uint8_t *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        data += n;
        length -= (size_t)n;
    }
    return 0;
}

/* Whole or not at all: what has the name has all of the policy. */
static int write_file(int folder, const char *name, const struct bytes *text)
{
    int error, fd;

    unlinkat(folder, TEMPORARY, 0);
    fd = openat(folder, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    error = write_all(fd, text->data, text->length);
    if (close(fd) != 0 && error == 0)
        error = -errno;
    if (error == 0 && renameat(folder, TEMPORARY, folder, name) != 0)
        error = -errno;
    if (error != 0)
        unlinkat(folder, TEMPORARY, 0);
    return error;
}

int snapshots_keep(struct snapshots *snapshots, const struct policy *policy)
{
    char name[NAME_LENGTH + 1];
    struct bytes text;
    struct stat status;
    int error;

    if (snapshots->folder < 0)
        return 0;
    snprintf(name, sizeof name, PREFIX "%.*s" SUFFIX, HASH_LENGTH, policy->hash);
    if (fstatat(snapshots->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    bytes_init(&text, SNAPSHOT_MAX);
    policy_print(policy, &text);
    error = bytes_finish(&text);
    if (error == 0)
        error = write_file(snapshots->folder, name, &text);
    bytes_deinit(&text);
    return error;
}

/* Reading. */

/* True, and the id, when it is the name of a snapshot. */
static bool read_name(const char *name, uint8_t ret_id[static RECORD_POLICY_SIZE])
{
    const char *hash = name + sizeof PREFIX - 1;
    struct policy named = {.n_references = 1};

    if (strlen(name) != NAME_LENGTH || strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 ||
        strcmp(hash + HASH_LENGTH, SUFFIX) != 0 || strspn(hash, "0123456789abcdef") != HASH_LENGTH)
        return false;
    memcpy(named.hash, hash, HASH_LENGTH);
    policy_id(&named, ret_id);
    return true;
}

static DIR *open_folder(const struct snapshots *snapshots)
{
    int copy = snapshots->folder < 0
                   ? -1
                   : openat(snapshots->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);

    if (!folder && copy >= 0)
        close(copy);
    return folder;
}

/* Who could write into it could have us apply anything. */
static bool is_ours(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_uid == geteuid() &&
           (status->st_mode & (S_IRWXG | S_IRWXO)) == 0 && status->st_size <= SNAPSHOT_MAX;
}

static char *read_file(int folder, const char *name, size_t *ret_length)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    char *text = NULL;
    size_t length = 0;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &status) == 0 && is_ours(&status))
        text = malloc((size_t)status.st_size + 1);
    while (text && length < (size_t)status.st_size &&
           ((n = read(fd, text + length, (size_t)status.st_size - length)) > 0 ||
            (n < 0 && errno == EINTR)))
        length += n > 0 ? (size_t)n : 0;
    if (fd >= 0)
        close(fd);
    *ret_length = length;
    return text;
}

/* A policy goes by the hash of the files it was made of, and not by that of its canonical form. */
static struct policy *read_policy(int folder, const char *name)
{
    struct policy_source source = {.name = name};
    struct policy_problems problems = {0};
    struct policy *policy = NULL;
    char *text = read_file(folder, name, &source.length);

    source.bytes = text;
    if (text && policy_read(&source, 1, config_host(), &policy, &problems) == 0 && policy) {
        memcpy(policy->hash, name + sizeof PREFIX - 1, HASH_LENGTH);
        if (config_add_names(policy) != 0)
            policy = policy_unref(policy);
    }
    policy_problems_deinit(&problems);
    free(text);
    return policy;
}

static struct policy *look_for(const struct snapshots *snapshots, const uint8_t *id)
{
    DIR *folder = open_folder(snapshots);
    const struct dirent *entry;
    struct policy *policy = NULL;
    uint8_t found[RECORD_POLICY_SIZE];

    while (folder && !policy && (entry = readdir(folder))) {
        if (read_name(entry->d_name, found) && memcmp(found, id, sizeof found) == 0)
            policy = read_policy(snapshots->folder, entry->d_name);
    }
    if (folder)
        closedir(folder);
    return policy;
}

struct policy *snapshots_find(void *context, const uint8_t id[static RECORD_POLICY_SIZE])
{
    struct snapshots *snapshots = context;
    struct found *found;

    SLIST_FOREACH(found, &snapshots->found, link) {
        if (memcmp(found->id, id, sizeof found->id) == 0)
            return found->policy;
    }
    found = calloc(1, sizeof *found);
    if (!found)
        return NULL;
    memcpy(found->id, id, sizeof found->id);
    found->policy = look_for(snapshots, id);
    SLIST_INSERT_HEAD(&snapshots->found, found, link);
    return found->policy;
}

void snapshots_sweep(struct snapshots *snapshots,
                     bool (*is_needed)(void *context, const uint8_t id[static RECORD_POLICY_SIZE]),
                     void *context)
{
    DIR *folder = open_folder(snapshots);
    const struct dirent *entry;
    uint8_t id[RECORD_POLICY_SIZE];

    while (folder && (entry = readdir(folder))) {
        if (read_name(entry->d_name, id) && !is_needed(context, id))
            unlinkat(snapshots->folder, entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
}
