/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct facts *facts_new(uint32_t wanted, int error)
{
    struct facts *facts = calloc(1, sizeof *facts);

    if (!facts)
        return NULL;
    facts->wanted = wanted;
    facts->age = span_from_us(-1);
    facts->stat.error = error;
    facts->status.error = error;
    facts->exe.error = error;
    facts->arguments.error = error;
    facts->cwd.error = error;
    facts->cgroup.error = error;
    facts->environ.error = error;
    facts->parent_exe.error = error;
    facts->threads_error = error;
    return facts;
}

struct facts *facts_free(struct facts *facts)
{
    if (!facts)
        return NULL;
    free(facts->stat.data);
    free(facts->status.data);
    free(facts->exe.data);
    free(facts->arguments.data);
    free(facts->cwd.data);
    free(facts->cgroup.data);
    free(facts->environ.data);
    free(facts->parent_exe.data);
    for (size_t i = 0; i < facts->n_files; i++) {
        struct facts_file *file = &facts->files[i];

        for (size_t k = 0; k < file->n_nodes; k++)
            free(file->nodes[k].acl);
        free(file->nodes);
        free(file->image.detail);
        free(file->path);
    }
    free(facts->files);
    free(facts);
    return NULL;
}

bool facts_identity_equal(const struct facts_identity *a, const struct facts_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

void facts_text_set(struct facts_text *text, const void *data, size_t length)
{
    char *copy = malloc(length + 1);

    free(text->data);
    if (!copy) {
        *text = (struct facts_text){.error = ENOMEM};
        return;
    }
    if (length > 0)
        memcpy(copy, data, length);
    copy[length] = '\0';
    *text = (struct facts_text){.length = length, .data = copy};
}
