/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/snapshots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/store.h"
#include "host/file.h"
#include "host/rights.h"
#include "lib/bytes.h"
#include "lib/policy_read.h"
#include "lib/tree.h"

/* "policy-", the hash and ".yaml". */
#define PREFIX    "policy-"
#define SUFFIX    ".yaml"
#define TEMPORARY "policy.new"

enum {
    HASH_LENGTH = POLICY_HASH_SIZE - 1,
    NAME_LENGTH = sizeof PREFIX - 1 + HASH_LENGTH + sizeof SUFFIX - 1,
    SNAPSHOT_MAX = POLICY_SOURCE_MAX, /* of more nothing could be read again */
};

/* One that was kept or asked for; `policy` NULL: it cannot be had. */
struct known {
    SLIST_ENTRY(known) link;
    uint8_t id[RECORD_POLICY_SIZE];
    struct policy *policy;
};

struct snapshots {
    const struct store *store;
    SLIST_HEAD(, known) known;
};

struct snapshots *snapshots_new(const struct store *store)
{
    struct snapshots *snapshots = calloc(1, sizeof *snapshots);

    if (snapshots)
        snapshots->store = store;
    return snapshots;
}

static void forget(struct snapshots *snapshots, struct known *known)
{
    SLIST_REMOVE(&snapshots->known, known, known, link);
    policy_unref(known->policy);
    free(known);
}

struct snapshots *snapshots_free(struct snapshots *snapshots)
{
    if (!snapshots)
        return NULL;
    while (!SLIST_EMPTY(&snapshots->known))
        forget(snapshots, SLIST_FIRST(&snapshots->known));
    free(snapshots);
    return NULL;
}

static struct known *find_known(const struct snapshots *snapshots, const uint8_t *id)
{
    struct known *known;

    SLIST_FOREACH(known, &snapshots->known, link) {
        if (memcmp(known->id, id, sizeof known->id) == 0)
            break;
    }
    return known;
}

/* NULL when memory is out. */
static struct known *know(struct snapshots *snapshots, const uint8_t *id)
{
    struct known *known = calloc(1, sizeof *known);

    if (!known)
        return NULL;
    memcpy(known->id, id, sizeof known->id);
    SLIST_INSERT_HEAD(&snapshots->known, known, link);
    return known;
}

/* So that it can be written again should its file go. */
static void remember(struct snapshots *snapshots, const struct policy *policy)
{
    uint8_t id[RECORD_POLICY_SIZE];
    struct known *known;

    policy_id(policy, id);
    known = find_known(snapshots, id);
    if (!known)
        known = know(snapshots, id);
    if (known && !known->policy)
        known->policy = policy_ref((struct policy *)(uintptr_t)policy);
}

/* Writing. */

static void name_file(char ret_name[static NAME_LENGTH + 1], const char *hash)
{
    snprintf(ret_name, NAME_LENGTH + 1, PREFIX "%.*s" SUFFIX, HASH_LENGTH, hash);
}

static void hash_text(const char *text, size_t length, char ret_hash[static POLICY_HASH_SIZE])
{
    struct policy_source source = {.bytes = text, .length = length};

    policy_source_hash(&source, ret_hash);
}

static int write_text(const struct snapshots *snapshots, const struct bytes *text,
                      const struct snapshot_name *name)
{
    char file[NAME_LENGTH + 1];
    struct file_place place = {
        .folder = store_folder(snapshots->store),
        .name = file,
        .temporary = TEMPORARY,
        .mode = 0600,
        .owner = rights_own_uid(),
        .group = rights_own_gid(),
    };

    name_file(file, name->policy);
    return file_ensure(&place, text->data, text->length);
}

int snapshots_keep(struct snapshots *snapshots, const struct policy *policy,
                   struct snapshot_name *ret_name)
{
    struct snapshot_name name;
    struct bytes text;
    int error;

    remember(snapshots, policy);
    if (store_folder(snapshots->store) < 0)
        return -ENOENT;
    bytes_init(&text, SNAPSHOT_MAX);
    policy_print(policy, &text);
    error = bytes_finish(&text);
    if (error == 0) {
        memcpy(name.policy, policy->hash, sizeof name.policy);
        hash_text((const char *)text.data, text.length, name.text);
        error = write_text(snapshots, &text, &name);
    }
    if (error == 0)
        *ret_name = name;
    bytes_deinit(&text);
    return error;
}

int snapshots_keep_again(struct snapshots *snapshots)
{
    struct snapshot_name name;
    const struct known *known;
    int error = 0;

    SLIST_FOREACH(known, &snapshots->known, link) {
        int failed = known->policy ? snapshots_keep(snapshots, known->policy, &name) : 0;

        if (error == 0)
            error = failed;
    }
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
    int own = store_folder(snapshots->store);
    int copy = own < 0 ? -1 : openat(own, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);

    if (!folder && copy >= 0)
        close(copy);
    return folder;
}

/* A policy goes by the hash of the files it was made of, and not by that of its canonical form. */
static int take_identity(struct policy *policy, const char *hash)
{
    memcpy(policy->hash, hash, HASH_LENGTH);
    return config_add_names(policy);
}

/* Where it is said, it is said with the whole path. */
static int parse(const struct snapshots *snapshots, const char *file, const char *text,
                 size_t length, struct policy **ret_policy, struct policy_problems *ret_problems)
{
    struct policy_source source = {.bytes = text, .length = length};
    struct policy *policy = NULL;
    char *name = NULL;
    int error;

    if (asprintf(&name, "%s/%s", store_path(snapshots->store), file) < 0)
        return -ENOMEM;
    source.name = name;
    error = policy_read(&source, 1, config_host(), &policy, ret_problems);
    if (error == 0 && policy)
        error = take_identity(policy, file + sizeof PREFIX - 1);
    free(name);
    if (error != 0)
        policy = policy_unref(policy);
    *ret_policy = policy;
    return error;
}

/* `hash` NULL: whatever it holds. */
static int read_policy(const struct snapshots *snapshots, const char *file, const char *hash,
                       struct policy **ret_policy, struct policy_problems *ret_problems)
{
    char found[POLICY_HASH_SIZE], *text;
    size_t length;
    int error = file_read_own(store_folder(snapshots->store), file, rights_own_uid(), SNAPSHOT_MAX,
                              &text, &length);

    if (error != 0)
        return error;
    hash_text(text, length, found);
    if (hash && memcmp(hash, found, HASH_LENGTH) != 0)
        error = -EBADMSG;
    else
        error = parse(snapshots, file, text, length, ret_policy, ret_problems);
    free(text);
    return error;
}

int snapshots_load(const struct snapshots *snapshots, const struct snapshot_name *name,
                   struct policy **ret_policy, struct policy_problems *ret_problems)
{
    char file[NAME_LENGTH + 1];

    *ret_policy = NULL;
    *ret_problems = (struct policy_problems){0};
    name_file(file, name->policy);
    return read_policy(snapshots, file, name->text, ret_policy, ret_problems);
}

static struct policy *read_any(const struct snapshots *snapshots, const char *file)
{
    struct policy_problems problems = {0};
    struct policy *policy = NULL;

    /* Why it cannot be had is the same to a plan. */
    (void)read_policy(snapshots, file, NULL, &policy, &problems);
    policy_problems_deinit(&problems);
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
            policy = read_any(snapshots, entry->d_name);
    }
    if (folder)
        closedir(folder);
    return policy;
}

struct policy *snapshots_find(void *context, const uint8_t id[static RECORD_POLICY_SIZE])
{
    struct snapshots *snapshots = context;
    struct known *known = find_known(snapshots, id);

    if (known)
        return known->policy;
    known = know(snapshots, id);
    if (!known)
        return NULL;
    known->policy = look_for(snapshots, id);
    return known->policy;
}

void snapshots_sweep(struct snapshots *snapshots,
                     bool (*is_needed)(void *context, const uint8_t id[static RECORD_POLICY_SIZE]),
                     void *context)
{
    DIR *folder = open_folder(snapshots);
    const struct dirent *entry;
    uint8_t id[RECORD_POLICY_SIZE];
    struct known *known, *following;

    SLIST_FOREACH_SAFE(known, &snapshots->known, link, following)
    {
        if (!is_needed(context, known->id))
            forget(snapshots, known);
    }
    while (folder && (entry = readdir(folder))) {
        if (read_name(entry->d_name, id) && !is_needed(context, id))
            unlinkat(store_folder(snapshots->store), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
}
