/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/attributes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/attribute.h"

static const char why_not_asked[] = "not asked for";
static const char why_forgotten[] = "not kept after the decision";

static const char *source_of(enum attribute_id id)
{
    switch (id) {
    case ATTRIBUTE_EXE:
        return "/proc/PID/exe";
    case ATTRIBUTE_ARGUMENTS:
        return "/proc/PID/cmdline";
    case ATTRIBUTE_ASSEMBLY:
        return "/proc/PID/exe and cmdline";
    case ATTRIBUTE_CWD:
        return "/proc/PID/cwd";
    case ATTRIBUTE_USER:
    case ATTRIBUTE_GROUP:
        return "/proc/PID/status";
    case ATTRIBUTE_UNIT:
    case ATTRIBUTE_USER_UNIT:
    case ATTRIBUTE_SLICE:
    case ATTRIBUTE_CGROUP:
    case ATTRIBUTE_CONTAINER:
        return "/proc/PID/cgroup";
    case ATTRIBUTE_ENVIRON:
        return "/proc/PID/environ";
    case ATTRIBUTE_PARENT:
        return "/proc/PPID/exe";
    case ATTRIBUTE_PORT:
        return "the socket";
    }
    return "";
}

void attributes_init(struct attributes *attributes)
{
    *attributes = (struct attributes){.uid = UINT32_MAX, .gid = UINT32_MAX};
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        attributes->list[i].source = source_of((enum attribute_id)i);
        attributes->list[i].why = why_not_asked;
    }
}

void attributes_deinit(struct attributes *attributes)
{
    free(attributes->groups);
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        free(attributes->list[i].block);
    attributes_init(attributes);
}

int attributes_set(struct attributes *attributes, enum attribute_id id, const char *source,
                   const char *text)
{
    struct attribute *attribute = &attributes->list[id];
    int error = attribute_set_texts(attribute, text, strlen(text) + 1, 1, false);

    if (error == 0)
        attribute->source = source;
    return error;
}

static void trim(struct attribute *attribute, size_t size_max)
{
    size_t size = attribute_size(attribute), count_max = 1 + size_max / sizeof *attribute->texts;

    if (size <= size_max && attribute->n_texts <= count_max)
        return;
    /* Where there is no memory for the shorter copy, nothing is left to show. */
    if (size_max == 0 ||
        attribute_set_texts(attribute, attribute->texts[0], size < size_max ? size : size_max,
                            count_max, true) != 0)
        attribute_set_none(attribute, ATTRIBUTE_UNKNOWN, why_forgotten);
}

void attributes_trim(struct attributes *attributes, size_t arguments_max)
{
    struct attribute *environment = &attributes->list[ATTRIBUTE_ENVIRON];

    if (environment->state == ATTRIBUTE_PRESENT)
        attribute_set_none(environment, ATTRIBUTE_UNKNOWN, why_forgotten);
    trim(&attributes->list[ATTRIBUTE_ARGUMENTS], arguments_max);
    trim(&attributes->list[ATTRIBUTE_GROUP], ATTRIBUTES_GROUPS_MAX);
}

void attributes_forget_groups(struct attributes *attributes)
{
    free(attributes->groups);
    attributes->groups = NULL;
    attributes->n_groups = 0;
}

size_t attributes_size(const struct attributes *attributes)
{
    size_t size = sizeof *attributes + attributes->n_groups * sizeof *attributes->groups;

    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct attribute *attribute = &attributes->list[i];

        size += attribute->n_texts * sizeof *attribute->texts + attribute_size(attribute);
    }
    return size;
}

const char *attributes_text(const struct attributes *attributes, enum attribute_id id)
{
    const struct attribute *attribute = &attributes->list[id];

    return attribute->n_texts > 0 ? attribute->texts[0] : NULL;
}

enum attribute_state attributes_variable(const struct attributes *attributes, const char *name,
                                         const char **ret_value)
{
    const struct attribute *environment = &attributes->list[ATTRIBUTE_ENVIRON];
    size_t length = strlen(name);
    bool is_possible = !strchr(name, '=');

    if (environment->state != ATTRIBUTE_PRESENT)
        return environment->state;
    for (size_t i = 0; is_possible && i < environment->n_texts; i++) {
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
    switch (id) {
    case ATTRIBUTE_EXE:
        return "exe";
    case ATTRIBUTE_ARGUMENTS:
        return "args";
    case ATTRIBUTE_ASSEMBLY:
        return "assembly";
    case ATTRIBUTE_CWD:
        return "cwd";
    case ATTRIBUTE_USER:
        return "user";
    case ATTRIBUTE_GROUP:
        return "group";
    case ATTRIBUTE_UNIT:
        return "unit";
    case ATTRIBUTE_USER_UNIT:
        return "user_unit";
    case ATTRIBUTE_SLICE:
        return "slice";
    case ATTRIBUTE_CGROUP:
        return "cgroup";
    case ATTRIBUTE_CONTAINER:
        return "container";
    case ATTRIBUTE_ENVIRON:
        return "env";
    case ATTRIBUTE_PARENT:
        return "parent";
    case ATTRIBUTE_PORT:
        return "port";
    }
    return "";
}
