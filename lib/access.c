/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/access.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "lib/attributes.h"
#include "lib/facts.h"

enum { MAY_SEARCH = 1, MAY_READ = 4 };

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
static bool is_allowed(const struct facts_node *node, const struct attributes *attributes,
                       unsigned right)
{
    unsigned bits = node->mode;

    if (attributes->uid == 0)
        return true;
    if (attributes->uid == node->owner)
        bits >>= 6;
    else if (is_in_group(attributes, node->group))
        bits >>= 3;
    return (bits & right) == right;
}

static const char *lookup_refusal(int error)
{
    switch (error) {
    case ENOENT:
        return "does not exist as the process sees it";
    case ENOTDIR:
        return "leads through something that is not a folder";
    case ELOOP:
        return "leads through too many links";
    case EACCES:
    case EPERM:
        return "may not be looked at";
    case ETIMEDOUT:
        return "took too long to look at";
    default:
        return "could not be looked at";
    }
}

const char *access_refusal(const struct facts_file *file, const struct attributes *attributes)
{
    if (file->error != 0)
        return lookup_refusal(file->error);
    if (file->n_nodes == 0)
        return lookup_refusal(ENODATA);
    for (size_t i = 0; i + 1 < file->n_nodes; i++) {
        if (!is_allowed(&file->nodes[i], attributes, MAY_SEARCH))
            return "is in a folder that the process may not enter";
    }
    if (S_ISDIR(file->nodes[file->n_nodes - 1].mode))
        return "is a folder";
    if (!S_ISREG(file->nodes[file->n_nodes - 1].mode))
        return "is not a regular file";
    if (!is_allowed(&file->nodes[file->n_nodes - 1], attributes, MAY_READ))
        return "may not be read by the process";
    return NULL;
}
