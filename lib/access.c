/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/access.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/facts.h"

enum {
    MAY_SEARCH = 1,
    MAY_READ = 4,
    LIST_VERSION = 2,
    ENTRY_USER = 0x02,
    ENTRY_OWNING_GROUP = 0x04,
    ENTRY_GROUP = 0x08,
};

static bool is_in_group(const struct attributes *attributes, uint32_t group)
{
    if (attributes->gid == group)
        return true;
    for (size_t i = 0; i < attributes->n_groups; i++) {
        if (attributes->groups[i] == group)
            return true;
    }
    return false;
}

/* The one class of bits that applies decides, as in the kernel: an owner without the bit is refused
 * even where everybody else has it. */
static bool bits_allow(const struct facts_node *node, const struct attributes *attributes,
                       unsigned right)
{
    unsigned bits = node->mode;

    if (attributes->uid == node->owner)
        bits >>= 6;
    else if (is_in_group(attributes, node->group))
        bits >>= 3;
    return (bits & right) == right;
}

/* Access control lists: a version, then entries of a kind, rights and an id each, ordered by kind
 * (linux/posix_acl_xattr.h). The mode's bits of the group are the list's mask. */

struct entry {
    uint16_t kind;
    uint16_t rights;
    uint32_t id;
};

static bool next_entry(struct bytes_reader *reader, struct entry *ret_entry)
{
    return bytes_get_u16(reader, &ret_entry->kind) && bytes_get_u16(reader, &ret_entry->rights) &&
           bytes_get_u32(reader, &ret_entry->id);
}

/* The rights that count for somebody who is not the owner: of his own entry, or of one of his
 * groups that has them; who is in none is everybody else. */
static bool list_allows(const struct facts_node *node, const struct attributes *attributes,
                        unsigned right, struct bytes_reader reader)
{
    unsigned mask = node->mode >> 3;
    bool is_in_some = false;
    struct entry entry;

    while (next_entry(&reader, &entry)) {
        bool is_allowed = (entry.rights & mask & right) == right;

        if (entry.kind == ENTRY_USER && entry.id == attributes->uid)
            return is_allowed;
        if (entry.kind != ENTRY_OWNING_GROUP && entry.kind != ENTRY_GROUP)
            continue;
        if (!is_in_group(attributes, entry.kind == ENTRY_GROUP ? entry.id : node->group))
            continue;
        if (is_allowed)
            return true;
        is_in_some = true;
    }
    return !is_in_some && (node->mode & right) == right;
}

static bool is_allowed(const struct facts_node *node, const struct attributes *attributes,
                       unsigned right)
{
    struct bytes_reader reader = bytes_reader_over(node->acl, node->acl_length);
    uint32_t version;

    if (node->override == FACTS_OVERRIDE_YES ||
        (node->override == FACTS_OVERRIDE_UNKNOWN && attributes->uid == 0))
        return true;
    /* Where nobody of a group may do anything, the kernel does not look at the list. */
    if (attributes->uid == node->owner || (node->mode & 070) == 0)
        return bits_allow(node, attributes, right);
    if (node->has_unknown_acl)
        return true;
    if (!bytes_get_u32(&reader, &version) || version != LIST_VERSION)
        return node->acl_length > 0 || bits_allow(node, attributes, right);
    return list_allows(node, attributes, right, reader);
}

static enum preflight judge_lookup(int error)
{
    switch (error) {
    case ENOENT:
        return PREFLIGHT_FILE_MISSING;
    case ENOTDIR:
        return PREFLIGHT_PATH_BLOCKED;
    case ELOOP:
        return PREFLIGHT_LINK_LOOP;
    case EACCES:
    case EPERM:
        return PREFLIGHT_LOOK_REFUSED;
    case ETIMEDOUT:
        return PREFLIGHT_LOOK_TIMEOUT;
    default:
        return PREFLIGHT_LOOK_FAILED;
    }
}

enum preflight access_judge(const struct facts_file *file, const struct attributes *attributes)
{
    const struct facts_node *last;

    if (file->error != 0)
        return judge_lookup(file->error);
    if (file->n_nodes == 0)
        return PREFLIGHT_LOOK_FAILED;
    for (size_t i = 0; i + 1 < file->n_nodes; i++) {
        if (!is_allowed(&file->nodes[i], attributes, MAY_SEARCH))
            return PREFLIGHT_FOLDER_CLOSED;
    }
    last = &file->nodes[file->n_nodes - 1];
    if (S_ISDIR(last->mode))
        return PREFLIGHT_IS_FOLDER;
    if (!S_ISREG(last->mode))
        return PREFLIGHT_NOT_REGULAR;
    return is_allowed(last, attributes, MAY_READ) ? PREFLIGHT_GOOD : PREFLIGHT_FILE_CLOSED;
}
