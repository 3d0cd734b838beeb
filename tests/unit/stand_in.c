/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the policy rooms ask of names.h and attributes.h, for tests that are
 * built before those are there.
 */

#include <errno.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/names.h"

struct names {
    int nothing;
};

struct names *names_new(void)
{
    return calloc(1, sizeof(struct names));
}

struct names *names_free(struct names *names)
{
    free(names);
    return NULL;
}

int names_add_user(struct names *names, uint32_t id, const char *name)
{
    (void)names, (void)id, (void)name;
    return 0;
}

int names_add_group(struct names *names, uint32_t id, const char *name)
{
    (void)names, (void)id, (void)name;
    return 0;
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
