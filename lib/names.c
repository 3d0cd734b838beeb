/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/names.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <string.h>

struct entry {
    RB_ENTRY(entry) node;
    uint32_t id;
    char name[];
};

RB_HEAD(entries, entry);

struct names {
    struct entries users;
    struct entries groups;
};

static int compare(const struct entry *a, const struct entry *b)
{
    return a->id < b->id ? -1 : a->id > b->id;
}

/* As RB_GENERATE_STATIC, which on Linux lacks its __unused. */
RB_GENERATE_INTERNAL(entries, entry, node, compare, __attribute__((unused)) static)

struct names *names_new(void)
{
    struct names *names = malloc(sizeof *names);

    if (!names)
        return NULL;
    RB_INIT(&names->users);
    RB_INIT(&names->groups);
    return names;
}

static void clear(struct entries *entries)
{
    struct entry *entry;

    while ((entry = RB_ROOT(entries))) {
        RB_REMOVE(entries, entries, entry);
        free(entry);
    }
}

struct names *names_free(struct names *names)
{
    if (!names)
        return NULL;
    clear(&names->users);
    clear(&names->groups);
    free(names);
    return NULL;
}

static const struct entry *find(const struct entries *entries, uint32_t id)
{
    const struct entry *entry = RB_ROOT(entries);

    while (entry && entry->id != id)
        entry = id < entry->id ? RB_LEFT(entry, node) : RB_RIGHT(entry, node);
    return entry;
}

static int add(struct entries *entries, uint32_t id, const char *name)
{
    size_t size = strlen(name) + 1;
    struct entry *entry;

    if (find(entries, id))
        return 0;
    entry = malloc(sizeof *entry + size);
    if (!entry)
        return -ENOMEM;
    entry->id = id;
    memcpy(entry->name, name, size);
    RB_INSERT(entries, entries, entry);
    return 0;
}

int names_add_user(struct names *names, uint32_t id, const char *name)
{
    return add(&names->users, id, name);
}

int names_add_group(struct names *names, uint32_t id, const char *name)
{
    return add(&names->groups, id, name);
}

const char *names_user(const struct names *names, uint32_t id)
{
    const struct entry *entry = find(&names->users, id);

    return entry ? entry->name : NULL;
}

const char *names_group(const struct names *names, uint32_t id)
{
    const struct entry *entry = find(&names->groups, id);

    return entry ? entry->name : NULL;
}
