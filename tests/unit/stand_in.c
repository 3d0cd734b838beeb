/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the policy rooms ask of names.h and attributes.h, for tests that are
 * built before those are there.
 */

#include <errno.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/names.h"

enum { NAMES_MAX = 32 };

struct names {
    struct {
        bool is_group;
        uint32_t id;
        char *name;
    } list[NAMES_MAX];
    size_t n;
};

struct names *names_new(void)
{
    return calloc(1, sizeof(struct names));
}

struct names *names_free(struct names *names)
{
    for (size_t i = 0; names && i < names->n; i++)
        free(names->list[i].name);
    free(names);
    return NULL;
}

static const char *find(const struct names *names, bool is_group, uint32_t id)
{
    for (size_t i = 0; i < names->n; i++) {
        if (names->list[i].is_group == is_group && names->list[i].id == id)
            return names->list[i].name;
    }
    return NULL;
}

static int add(struct names *names, bool is_group, uint32_t id, const char *name)
{
    char *copy;

    if (find(names, is_group, id))
        return 0;
    copy = names->n < NAMES_MAX ? strdup(name) : NULL;
    if (!copy)
        return -ENOMEM;
    names->list[names->n].is_group = is_group;
    names->list[names->n].id = id;
    names->list[names->n++].name = copy;
    return 0;
}

int names_add_user(struct names *names, uint32_t id, const char *name)
{
    return add(names, false, id, name);
}

int names_add_group(struct names *names, uint32_t id, const char *name)
{
    return add(names, true, id, name);
}

const char *names_user(const struct names *names, uint32_t id)
{
    return find(names, false, id);
}

const char *names_group(const struct names *names, uint32_t id)
{
    return find(names, true, id);
}

enum attribute_state attributes_variable(const struct attributes *attributes, const char *name,
                                         const char **ret_value)
{
    const struct attribute *environment = &attributes->list[ATTRIBUTE_ENVIRON];
    const size_t length = strlen(name);

    if (environment->state != ATTRIBUTE_PRESENT)
        return environment->state;
    for (size_t i = 0; i < environment->n_texts; i++) {
        const char *text = environment->texts[i];

        if (strncmp(text, name, length) == 0 && text[length] == '=') {
            *ret_value = text + length + 1;
            return ATTRIBUTE_PRESENT;
        }
    }
    return environment->is_cut ? ATTRIBUTE_UNKNOWN : ATTRIBUTE_ABSENT;
}

const char *attribute_name(enum attribute_id id)
{
    static const char *const names[ATTRIBUTE_COUNT] = {
        "exe",       "args",  "assembly", "cwd",       "user", "group",  "unit",
        "user_unit", "slice", "cgroup",   "container", "env",  "parent", "port",
    };

    return names[id];
}
