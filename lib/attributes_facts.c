/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From what the kernel said of a process to its attributes. An answer may come
 * in parts; what depends on two of them is worked out when the second is there.
 */

#include "lib/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attribute.h"
#include "lib/bytes.h"
#include "lib/cgroup.h"
#include "lib/facts.h"
#include "lib/names.h"
#include "lib/procfs.h"

/* More than any program has, and so few that going through them again and again is nothing; of
 * names, so many that the pointers to them take no more than the names may. */
enum {
    ARGUMENTS_COUNT_MAX = 4096,
    ENVIRON_COUNT_MAX = 16384,
    COUNT_MAX = FACTS_TEXT_MAX / sizeof(char *),
};

static const char why_not_permitted[] = "not permitted to read it";
static const char why_ended[] = "the process has ended";
static const char why_slow[] = "it took too long to read";
static const char why_unreadable[] = "could not be read";
static const char why_malformed[] = "it is not of the form that was expected";
static const char why_too_long[] = "it is longer than what is read of it";
static const char why_none[] = "the process has none";
static const char why_no_assembly[] = "the arguments do not tell";
static const char why_in_no_unit[] = "its cgroup is in none";
static const char why_in_no_container[] =
    "neither its cgroup nor its pid namespace is a container's";
static const char why_cgroup_namespace[] = "the daemon is in a cgroup namespace of its own";
static const char why_no_hierarchy[] = "it is in no cgroup of systemd or of version 2";
static const char why_container_hidden[] = "its pid namespaces tell of a container, or are not "
                                           "known, and its cgroup names none";

/* Why an answer has not got what was asked for; NULL when it has it. */
static const char *why_missing(const struct facts *facts, const struct facts_text *text)
{
    switch (text->error) {
    case 0:
        /* It may be that of another process by then. */
        return facts->is_alive ? NULL : why_ended;
    case EACCES:
    case EPERM:
        return why_not_permitted;
    case ENOENT:
    case ESRCH:
        return why_ended;
    case ETIMEDOUT:
        return why_slow;
    default:
        return why_unreadable;
    }
}

/* True when the answer says something, if only that it could not be read. */
static bool has_answer(const struct facts *facts, uint32_t wanted, const struct facts_text *text)
{
    return (facts->wanted & wanted) != 0 && text->error != ENODATA;
}

/* Where a link of /proc points to. The kernel marks what is gone, once. */
static int take_link(struct attribute *attribute, const struct facts *facts, uint32_t wanted,
                     const struct facts_text *text, const char *mark)
{
    size_t length = text->length, mark_length = strlen(mark);
    const char *why;

    if (!has_answer(facts, wanted, text))
        return 0;
    why = why_missing(facts, text);
    if (!why && text->is_cut)
        why = why_too_long;
    if (!why && (length == 0 || memchr(text->data, '\0', length)))
        why = why_malformed;
    if (why) {
        attribute_set_unknown(attribute, why);
        return 0;
    }
    if (length > mark_length && memcmp(text->data + length - mark_length, mark, mark_length) == 0)
        length -= mark_length;
    return attribute_set_texts(attribute, text->data, length, 1, false);
}

/* A list of texts, as in cmdline and environ. What was cut is left out, not shown as if whole. */
static int take_list(struct attribute *attribute, const struct facts *facts, uint32_t wanted,
                     const struct facts_text *text, size_t count_max)
{
    size_t length = text->length;
    const char *why;

    if (!has_answer(facts, wanted, text))
        return 0;
    why = why_missing(facts, text);
    while (!why && text->is_cut && length > 0 && text->data[length - 1] != '\0')
        length--;
    if (!why && text->is_cut && length == 0)
        why = why_too_long;
    if (why) {
        attribute_set_unknown(attribute, why);
        return 0;
    }
    if (length == 0) {
        attribute_set_none(attribute, ATTRIBUTE_ABSENT, why_none);
        return 0;
    }
    return attribute_set_texts(attribute, text->data, length, count_max, text->is_cut);
}

static int take_assembly(struct attributes *attributes, const struct facts *facts)
{
    const struct attribute *exe = &attributes->list[ATTRIBUTE_EXE],
                           *arguments = &attributes->list[ATTRIBUTE_ARGUMENTS];
    struct attribute *assembly = &attributes->list[ATTRIBUTE_ASSEMBLY];
    char *name;
    int error;

    if (!has_answer(facts, FACTS_EXE, &facts->exe) &&
        !has_answer(facts, FACTS_ARGUMENTS, &facts->arguments))
        return 0;
    if (!attributes_assembly(attributes_text(attributes, ATTRIBUTE_EXE), arguments->texts,
                             arguments->n_texts, &name)) {
        attribute_set_none(assembly, ATTRIBUTE_UNKNOWN,
                           exe->state == ATTRIBUTE_UNKNOWN         ? exe->why
                           : arguments->state == ATTRIBUTE_UNKNOWN ? arguments->why
                                                                   : why_no_assembly);
        return 0;
    }
    error = attribute_set_texts(assembly, name, strlen(name), 1, false);
    free(name);
    return error;
}

static void take_stat(struct attributes *attributes, const struct facts *facts)
{
    struct procfs_stat stat;

    if (has_answer(facts, FACTS_STAT, &facts->stat) && !why_missing(facts, &facts->stat) &&
        procfs_read_stat(facts->stat.data, facts->stat.length, &stat))
        attributes->start_time = stat.start_time;
}

/* Appends a name, if there is one, and the number; false when there is no room for both. */
static bool put_identity(struct bytes *out, const char *name, uint32_t id)
{
    size_t name_size = name ? strlen(name) + 1 : 0;

    if (name_size + sizeof "4294967295" > out->limit - out->length)
        return false;
    bytes_put_run(out, name, name_size);
    bytes_put_format(out, "%u", id);
    bytes_put_u8(out, 0);
    return true;
}

/* Hands what was put together over to the attribute. */
static int set_identities(struct attribute *attribute, struct bytes *out, bool is_cut)
{
    int error = bytes_finish(out);

    if (error == 0)
        error =
            attribute_set_texts(attribute, (const char *)out->data, out->length, COUNT_MAX, is_cut);
    bytes_deinit(out);
    return error;
}

static int set_user(struct attributes *attributes, const struct cgroup *cgroup,
                    const struct names *names)
{
    uint32_t uid = attributes->uid, owner = cgroup->has_owner ? cgroup->owner : uid;
    struct bytes out;
    bool is_whole;

    bytes_init(&out, FACTS_TEXT_MAX);
    is_whole = put_identity(&out, names ? names_user(names, uid) : NULL, uid);
    /* In a user's containers uids are shifted; what he owns is his all the same. */
    if (owner != uid && !put_identity(&out, names ? names_user(names, owner) : NULL, owner))
        is_whole = false;
    return set_identities(&attributes->list[ATTRIBUTE_USER], &out, !is_whole);
}

static int set_group(struct attributes *attributes, bool is_cut, const struct names *names)
{
    uint32_t gid = attributes->gid;
    struct bytes out;

    bytes_init(&out, FACTS_TEXT_MAX);
    put_identity(&out, names ? names_group(names, gid) : NULL, gid);
    for (size_t i = 0; i < attributes->n_groups; i++) {
        uint32_t group = attributes->groups[i];

        if (group == gid)
            continue;
        if (!put_identity(&out, names ? names_group(names, group) : NULL, group)) {
            is_cut = true;
            break;
        }
    }
    return set_identities(&attributes->list[ATTRIBUTE_GROUP], &out, is_cut);
}

static int take_status(struct attributes *attributes, const struct facts *facts,
                       const struct names *names)
{
    const struct facts_text *text = &facts->status;
    struct procfs_status status;
    const char *why;

    if (!has_answer(facts, FACTS_STATUS, text))
        return 0;
    why = why_missing(facts, text);
    if (!why && !procfs_read_status(text->data, text->length, &status))
        why = why_malformed;
    if (why) {
        attribute_set_unknown(&attributes->list[ATTRIBUTE_USER], why);
        attribute_set_unknown(&attributes->list[ATTRIBUTE_GROUP], why);
        return 0;
    }
    free(attributes->groups);
    attributes->uid = status.uid;
    attributes->gid = status.gid;
    attributes->groups = status.groups;
    attributes->n_groups = status.n_groups;
    attributes->ns_pid = status.ns_pid;
    attributes->n_ns_pids = status.n_ns_pids;
    return set_group(attributes, text->is_cut, names);
}

static int set_part(struct attributes *attributes, enum attribute_id id, const char *text,
                    const char *why_absent)
{
    if (text)
        return attribute_set_texts(&attributes->list[id], text, strlen(text), 1, false);
    attribute_set_none(&attributes->list[id], ATTRIBUTE_ABSENT, why_absent);
    return 0;
}

static void set_place_unknown(struct attributes *attributes, const char *why)
{
    attribute_set_unknown(&attributes->list[ATTRIBUTE_CGROUP], why);
    attribute_set_unknown(&attributes->list[ATTRIBUTE_SLICE], why);
    attribute_set_unknown(&attributes->list[ATTRIBUTE_UNIT], why);
    attribute_set_unknown(&attributes->list[ATTRIBUTE_USER_UNIT], why);
    attribute_set_unknown(&attributes->list[ATTRIBUTE_CONTAINER], why);
}

static int set_place(struct attributes *attributes, const struct cgroup *cgroup)
{
    int error;

    if (!cgroup->is_known) {
        set_place_unknown(attributes, cgroup->path ? why_cgroup_namespace : why_no_hierarchy);
        return 0;
    }
    error = set_part(attributes, ATTRIBUTE_CGROUP, cgroup->path, NULL);
    if (error == 0)
        error = set_part(attributes, ATTRIBUTE_SLICE, cgroup->slice, why_in_no_unit);
    if (error == 0)
        error = set_part(attributes, ATTRIBUTE_UNIT, cgroup->unit, why_in_no_unit);
    if (error == 0)
        error = set_part(attributes, ATTRIBUTE_USER_UNIT, cgroup->user_unit, why_in_no_unit);
    if (error == 0)
        error = set_part(attributes, ATTRIBUTE_CONTAINER, cgroup->container, why_in_no_container);
    if (error == 0 && cgroup->container_state == ATTRIBUTE_UNKNOWN)
        attribute_set_none(&attributes->list[ATTRIBUTE_CONTAINER], ATTRIBUTE_UNKNOWN,
                           why_container_hidden);
    return error;
}

/* Reads the cgroup of an earlier answer again; without a path when there is none. */
static int read_earlier(const struct attributes *attributes, struct cgroup *ret_cgroup)
{
    const char *path = attributes_text(attributes, ATTRIBUTE_CGROUP);
    struct bytes line;
    int error;

    if (!path) {
        *ret_cgroup = (struct cgroup){.path = NULL};
        return 0;
    }
    bytes_init(&line, FACTS_TEXT_MAX + sizeof "0::\n");
    bytes_put_format(&line, "0::%s\n", path);
    error = bytes_finish(&line);
    if (error == 0)
        error =
            cgroup_read((const char *)line.data, line.length, attributes->n_ns_pids, ret_cgroup);
    bytes_deinit(&line);
    return error;
}

/* What depends on the cgroup and on the ids and pid namespaces together. */
static int take_place(struct attributes *attributes, const struct facts *facts,
                      const struct names *names)
{
    const struct facts_text *text = &facts->cgroup;
    bool has_status =
        has_answer(facts, FACTS_STATUS, &facts->status) && !why_missing(facts, &facts->status);
    bool has_cgroup = has_answer(facts, FACTS_CGROUP, text);
    CLEANUP(cgroup_deinit) struct cgroup cgroup = {.path = NULL};
    const char *why = has_cgroup ? why_missing(facts, text) : NULL;
    int error;

    if (has_cgroup && !why && text->is_cut)
        why = why_too_long;
    if (why) {
        set_place_unknown(attributes, why);
        has_cgroup = false;
    }
    if (!has_cgroup && !has_status)
        return 0;
    error = has_cgroup ? cgroup_read(text->data, text->length, attributes->n_ns_pids, &cgroup)
                       : read_earlier(attributes, &cgroup);
    if (error == 0 && (has_cgroup || cgroup.path))
        error = set_place(attributes, &cgroup);
    if (error == 0 && attributes->list[ATTRIBUTE_GROUP].state == ATTRIBUTE_PRESENT)
        error = set_user(attributes, &cgroup, names);
    return error;
}

int attributes_take_facts(struct attributes *attributes, int32_t pid, const struct facts *facts,
                          const struct names *names)
{
    struct attribute *list = attributes->list;
    int error;

    attributes->pid = pid;
    take_stat(attributes, facts);
    error = take_status(attributes, facts, names);
    if (error == 0)
        error = take_place(attributes, facts, names);
    if (error == 0)
        error = take_link(&list[ATTRIBUTE_EXE], facts, FACTS_EXE, &facts->exe, " (deleted)");
    if (error == 0)
        error = take_list(&list[ATTRIBUTE_ARGUMENTS], facts, FACTS_ARGUMENTS, &facts->arguments,
                          ARGUMENTS_COUNT_MAX);
    if (error == 0)
        error = take_assembly(attributes, facts);
    if (error == 0)
        error = take_link(&list[ATTRIBUTE_CWD], facts, FACTS_CWD, &facts->cwd, "");
    if (error == 0)
        error = take_list(&list[ATTRIBUTE_ENVIRON], facts, FACTS_ENVIRON, &facts->environ,
                          ENVIRON_COUNT_MAX);
    if (error == 0)
        error = take_link(&list[ATTRIBUTE_PARENT], facts, FACTS_PARENT, &facts->parent_exe,
                          " (deleted)");
    return error;
}
