/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/attributes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/facts.h"
#include "lib/names.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

#define ID "3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f"

static const char stat_text[] =
    "8301 (dot) net) S 8289 8301 8289 34816 8301 4194304 1093 0 0 0 3 2 0 0 20 0 3 0 2217046 2748 "
    "2012 184467 94030 94030 140 0 0 0 0 4096 17642 1 0 0 17 1 0 0 0 0 0\n";
static const char status_text[] = "Name:\tdotnet\n"
                                  "Uid:\t1000\t1001\t1000\t1000\n"
                                  "Gid:\t2000\t2001\t2000\t2000\n"
                                  "Groups:\t4 2001 24 \n"
                                  "NSpid:\t8301\n";
static const char cgroup_text[] = "0::/payments.slice/web.service\n";

/* What may be in an answer; NULL for what was not asked. */
struct answer {
    const char *stat, *status, *exe, *cwd, *cgroup, *parent;
    const char *arguments, *environ; /* a line each, with '|' for NUL */
};

static void put(struct facts *facts, uint32_t wanted, struct facts_text *text, const char *data)
{
    if (!data)
        return;
    facts->wanted |= wanted;
    facts_text_set(text, data, strlen(data));
}

static void put_list(struct facts *facts, uint32_t wanted, struct facts_text *text,
                     const char *data)
{
    put(facts, wanted, text, data);
    for (size_t i = 0; i < text->length; i++) {
        if (text->data[i] == '|')
            text->data[i] = '\0';
    }
}

static struct facts *facts_of(const struct answer *answer)
{
    struct facts *facts = facts_new(0, ENODATA);

    if (!facts)
        return NULL;
    facts->is_alive = true;
    put(facts, FACTS_STAT, &facts->stat, answer->stat);
    put(facts, FACTS_STATUS, &facts->status, answer->status);
    put(facts, FACTS_EXE, &facts->exe, answer->exe);
    put(facts, FACTS_CWD, &facts->cwd, answer->cwd);
    put(facts, FACTS_CGROUP, &facts->cgroup, answer->cgroup);
    put(facts, FACTS_PARENT, &facts->parent_exe, answer->parent);
    put_list(facts, FACTS_ARGUMENTS, &facts->arguments, answer->arguments);
    put_list(facts, FACTS_ENVIRON, &facts->environ, answer->environ);
    return facts;
}

static const struct answer whole = {
    .stat = stat_text,
    .status = status_text,
    .exe = "/usr/share/dotnet/dotnet",
    .cwd = "/srv/web",
    .cgroup = cgroup_text,
    .parent = "/usr/lib/systemd/systemd",
    .arguments = "dotnet|/srv/web/Web.dll|--tenant=a b||",
    .environ = "A=1|B=|PATH=/bin|",
};

static struct names *some_names(void)
{
    struct names *names = names_new();

    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(names_add_user(names, 1001, "web"), 0);
    ck_assert_int_eq(names_add_user(names, 1500, "alice"), 0);
    ck_assert_int_eq(names_add_group(names, 2001, "web"), 0);
    ck_assert_int_eq(names_add_group(names, 24, "cdrom"), 0);
    return names;
}

static void take(struct attributes *attributes, const struct answer *answer)
{
    struct facts *facts = facts_of(answer);
    struct names *names = some_names();

    ck_assert_ptr_nonnull(facts);
    ck_assert_int_eq(attributes_take_facts(attributes, 8301, facts, names), 0);
    facts_free(facts);
    names_free(names);
}

/* "a|b" for a present attribute, "-" for an absent, "?" for an unknown one, with "+" when it is
 * cut. */
static void describe(const struct attribute *attribute, char *ret_text, size_t size)
{
    size_t length = 0;

    snprintf(ret_text, size, "%s", attribute->state == ATTRIBUTE_ABSENT ? "-" : "?");
    if (attribute->state != ATTRIBUTE_PRESENT) {
        ck_assert_uint_eq(attribute->n_texts, 0);
        ck_assert_ptr_null(attribute->block);
        ck_assert_str_ne(attribute->why, "");
        return;
    }
    ck_assert_str_eq(attribute->why, "");
    ret_text[0] = '\0';
    for (size_t i = 0; i < attribute->n_texts; i++)
        length += (size_t)snprintf(ret_text + length, size - length, "%s%s", i > 0 ? "|" : "",
                                   attribute->texts[i]);
    if (attribute->is_cut)
        snprintf(ret_text + length, size - length, "+");
}

static void assert_attribute(const struct attributes *attributes, enum attribute_id id,
                             const char *expected)
{
    char found[1000];

    describe(&attributes->list[id], found, sizeof found);
    ck_assert_msg(strcmp(found, expected) == 0, "%s is %s, not %s", attribute_name(id), found,
                  expected);
}

static void assert_why(const struct attributes *attributes, enum attribute_id id,
                       const char *expected)
{
    ck_assert_str_eq(attributes->list[id].why, expected);
}

START_TEST(at_first_nothing_is_known)
{
    struct attributes attributes;

    attributes_init(&attributes);
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        assert_attribute(&attributes, (enum attribute_id)i, "?");
        assert_why(&attributes, (enum attribute_id)i, "not asked for");
        ck_assert_str_ne(attributes.list[i].source, "");
        ck_assert_ptr_null(attributes_text(&attributes, (enum attribute_id)i));
    }
    ck_assert_uint_eq(attributes.uid, UINT32_MAX);
    ck_assert_uint_eq(attributes.gid, UINT32_MAX);
    ck_assert_uint_eq(attributes.start_time, 0);
    ck_assert_uint_eq(attributes.n_ns_pids, 0);
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(answer_becomes_attributes)
{
    struct attributes attributes;

    attributes_init(&attributes);
    take(&attributes, &whole);
    ck_assert_int_eq(attributes.pid, 8301);
    ck_assert_uint_eq(attributes.start_time, 2217046);
    ck_assert_uint_eq(attributes.uid, 1001);
    ck_assert_uint_eq(attributes.gid, 2001);
    ck_assert_uint_eq(attributes.n_groups, 3);
    ck_assert_uint_eq(attributes.groups[2], 24);
    ck_assert_uint_eq(attributes.n_ns_pids, 1);
    ck_assert_uint_eq(attributes.ns_pid, 8301);
    assert_attribute(&attributes, ATTRIBUTE_EXE, "/usr/share/dotnet/dotnet");
    assert_attribute(&attributes, ATTRIBUTE_ARGUMENTS, "dotnet|/srv/web/Web.dll|--tenant=a b|");
    assert_attribute(&attributes, ATTRIBUTE_ASSEMBLY, "Web");
    assert_attribute(&attributes, ATTRIBUTE_CWD, "/srv/web");
    assert_attribute(&attributes, ATTRIBUTE_USER, "web|1001");
    assert_attribute(&attributes, ATTRIBUTE_GROUP, "web|2001|4|cdrom|24");
    assert_attribute(&attributes, ATTRIBUTE_UNIT, "web.service");
    assert_attribute(&attributes, ATTRIBUTE_USER_UNIT, "-");
    assert_attribute(&attributes, ATTRIBUTE_SLICE, "payments.slice");
    assert_attribute(&attributes, ATTRIBUTE_CGROUP, "/payments.slice/web.service");
    assert_attribute(&attributes, ATTRIBUTE_CONTAINER, "-");
    assert_attribute(&attributes, ATTRIBUTE_ENVIRON, "A=1|B=|PATH=/bin");
    assert_attribute(&attributes, ATTRIBUTE_PARENT, "/usr/lib/systemd/systemd");
    assert_attribute(&attributes, ATTRIBUTE_PORT, "?");
    ck_assert_str_eq(attributes.list[ATTRIBUTE_EXE].source, "/proc/PID/exe");
    attributes_deinit(&attributes);
    assert_attribute(&attributes, ATTRIBUTE_EXE, "?");
}
END_TEST

/* The same, one question after the other, in any order. */
START_TEST(answers_add_up)
{
    static const struct answer parts[] = {
        {.stat = stat_text},
        {.status = status_text},
        {.exe = "/usr/share/dotnet/dotnet"},
        {.cgroup = "0::/user.slice/user-1500.slice/user@1500.service/web.service\n"},
        {.arguments = "dotnet|Web.dll|"},
        {.environ = "A=1|"},
    };

    for (size_t first = 0; first < ARRAY_LENGTH(parts); first++) {
        for (size_t step = 1; step < ARRAY_LENGTH(parts); step += 4) {
            struct attributes attributes;

            attributes_init(&attributes);
            for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
                take(&attributes, &parts[(first + step * i) % ARRAY_LENGTH(parts)]);
            ck_assert_uint_eq(attributes.start_time, 2217046);
            assert_attribute(&attributes, ATTRIBUTE_USER, "web|1001|alice|1500");
            assert_attribute(&attributes, ATTRIBUTE_UNIT, "user@1500.service");
            assert_attribute(&attributes, ATTRIBUTE_USER_UNIT, "web.service");
            assert_attribute(&attributes, ATTRIBUTE_CONTAINER, "-");
            assert_attribute(&attributes, ATTRIBUTE_ASSEMBLY, "Web");
            assert_attribute(&attributes, ATTRIBUTE_ENVIRON, "A=1");
            assert_attribute(&attributes, ATTRIBUTE_CWD, "?");
            assert_why(&attributes, ATTRIBUTE_CWD, "not asked for");
            attributes_deinit(&attributes);
        }
    }
}
END_TEST

START_TEST(failures_say_why)
{
    static const struct {
        int error;
        const char *why;
    } cases[] = {
        {EACCES, "not permitted to read it"}, {EPERM, "not permitted to read it"},
        {ENOENT, "the process has ended"},    {ESRCH, "the process has ended"},
        {ENODATA, "not asked for"},           {ETIMEDOUT, "it took too long to read"},
        {EIO, "could not be read"},           {ENOMEM, "could not be read"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct facts *facts = facts_new(UINT32_MAX, cases[i].error);
        struct attributes attributes;

        ck_assert_ptr_nonnull(facts);
        facts->is_alive = true;
        attributes_init(&attributes);
        ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
        for (size_t id = 0; id < ATTRIBUTE_PORT; id++) {
            assert_attribute(&attributes, (enum attribute_id)id, "?");
            assert_why(&attributes, (enum attribute_id)id, cases[i].why);
        }
        /* what was not asked for stays as it was, whatever its error is */
        facts->wanted = 0;
        take(&attributes, &whole);
        ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
        assert_attribute(&attributes, ATTRIBUTE_EXE, "/usr/share/dotnet/dotnet");
        /* and a failure takes nothing away */
        facts->wanted = UINT32_MAX;
        ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
        assert_attribute(&attributes, ATTRIBUTE_EXE, "/usr/share/dotnet/dotnet");
        assert_attribute(&attributes, ATTRIBUTE_UNIT, "web.service");
        assert_attribute(&attributes, ATTRIBUTE_USER_UNIT, "-");
        assert_attribute(&attributes, ATTRIBUTE_USER, "web|1001");
        assert_attribute(&attributes, ATTRIBUTE_ASSEMBLY, "Web");
        attributes_deinit(&attributes);
        facts_free(facts);
    }
}
END_TEST

/* What was read may be another process's, which was given the same number. */
START_TEST(the_dead_are_not_believed)
{
    struct facts *facts = facts_of(&whole);
    struct attributes attributes;

    ck_assert_ptr_nonnull(facts);
    facts->is_alive = false;
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_take_facts(&attributes, 8301, facts, NULL), 0);
    for (size_t id = 0; id < ATTRIBUTE_PORT; id++) {
        assert_attribute(&attributes, (enum attribute_id)id, "?");
        assert_why(&attributes, (enum attribute_id)id, "the process has ended");
    }
    ck_assert_uint_eq(attributes.start_time, 0);
    ck_assert_uint_eq(attributes.uid, UINT32_MAX);
    attributes_deinit(&attributes);
    facts_free(facts);
}
END_TEST

START_TEST(deleted_is_stripped_once)
{
    static const char *const cases[][2] = {
        {"/opt/App (deleted)", "/opt/App"},
        {"/opt/App (deleted) (deleted)", "/opt/App (deleted)"},
        {"/opt/App(deleted)", "/opt/App(deleted)"},
        {"/opt/App (deleted) ", "/opt/App (deleted) "},
        {" (deleted)", " (deleted)"},
        {"/opt/a\nb", "/opt/a\nb"},
        {"", "?"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct answer answer = {.exe = cases[i][0], .parent = cases[i][0], .cwd = cases[i][0]};
        struct attributes attributes;

        attributes_init(&attributes);
        take(&attributes, &answer);
        assert_attribute(&attributes, ATTRIBUTE_EXE, cases[i][1]);
        assert_attribute(&attributes, ATTRIBUTE_PARENT, cases[i][1]);
        /* a folder may be called so */
        assert_attribute(&attributes, ATTRIBUTE_CWD, cases[i][0][0] == '\0' ? "?" : cases[i][0]);
        attributes_deinit(&attributes);
    }
}
END_TEST

START_TEST(links_are_whole_or_unknown)
{
    struct answer answer = {.exe = "/opt/App"};
    struct facts *facts = facts_of(&answer);
    struct attributes attributes;

    ck_assert_ptr_nonnull(facts);
    facts->exe.is_cut = true;
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
    assert_attribute(&attributes, ATTRIBUTE_EXE, "?");
    assert_why(&attributes, ATTRIBUTE_EXE, "it is longer than what is read of it");
    facts->exe.is_cut = false;
    facts->exe.data[4] = '\0';
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
    assert_attribute(&attributes, ATTRIBUTE_EXE, "?");
    attributes_deinit(&attributes);
    facts_free(facts);
}
END_TEST

/* A zombie's and a kernel thread's are empty. */
START_TEST(empty_lists_are_absent)
{
    struct answer answer = {.arguments = "", .environ = ""};
    struct attributes attributes;
    const char *value;

    attributes_init(&attributes);
    take(&attributes, &answer);
    assert_attribute(&attributes, ATTRIBUTE_ARGUMENTS, "-");
    assert_attribute(&attributes, ATTRIBUTE_ENVIRON, "-");
    assert_attribute(&attributes, ATTRIBUTE_ASSEMBLY, "?");
    ck_assert_int_eq(attributes_variable(&attributes, "A", &value), ATTRIBUTE_ABSENT);
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(lists_are_split_at_each_nul)
{
    static const char *const cases[][2] = {
        {"a|", "a"}, {"a", "a"}, {"a|b", "a|b"}, {"|", ""}, {"||", "|"}, {"a||b|", "a||b"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct answer answer = {.arguments = cases[i][0]};
        struct attributes attributes;

        attributes_init(&attributes);
        take(&attributes, &answer);
        assert_attribute(&attributes, ATTRIBUTE_ARGUMENTS, cases[i][1]);
        attributes_deinit(&attributes);
    }
}
END_TEST

/* Of a list that was cut, no text is shown that is not whole. */
START_TEST(cut_lists_lose_their_last)
{
    static const char *const cases[][2] = {
        {"a|b", "a+"}, {"a|b|", "a|b+"}, {"a||", "a|+"}, {"a", "?"}, {"", "?"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct answer answer = {.arguments = cases[i][0], .environ = cases[i][0]};
        struct facts *facts = facts_of(&answer);
        struct attributes attributes;

        ck_assert_ptr_nonnull(facts);
        facts->arguments.is_cut = true;
        facts->environ.is_cut = true;
        attributes_init(&attributes);
        ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
        assert_attribute(&attributes, ATTRIBUTE_ARGUMENTS, cases[i][1]);
        assert_attribute(&attributes, ATTRIBUTE_ENVIRON, cases[i][1]);
        attributes_deinit(&attributes);
        facts_free(facts);
    }
}
END_TEST

/* A process may have a million arguments without a byte in them. */
START_TEST(memory_is_bounded)
{
    struct facts *facts = facts_new(FACTS_ARGUMENTS | FACTS_ENVIRON, 0);
    char *nothing = calloc(1, FACTS_ENVIRON_MAX);
    struct attributes attributes;

    ck_assert_ptr_nonnull(facts);
    ck_assert_ptr_nonnull(nothing);
    facts->is_alive = true;
    facts_text_set(&facts->arguments, nothing, FACTS_ARGUMENTS_MAX);
    facts_text_set(&facts->environ, nothing, FACTS_ENVIRON_MAX);
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
    ck_assert(attributes.list[ATTRIBUTE_ARGUMENTS].is_cut);
    ck_assert(attributes.list[ATTRIBUTE_ENVIRON].is_cut);
    ck_assert_uint_eq(attributes.list[ATTRIBUTE_ARGUMENTS].n_texts, 4096);
    ck_assert_uint_eq(attributes.list[ATTRIBUTE_ENVIRON].n_texts, 16384);
    ck_assert_uint_le(attributes_size(&attributes),
                      sizeof attributes + 2 * FACTS_ARGUMENTS_MAX + 2 * FACTS_ENVIRON_MAX);
    memset(nothing, 'x', FACTS_ENVIRON_MAX);
    facts_text_set(&facts->arguments, nothing, FACTS_ARGUMENTS_MAX);
    facts_text_set(&facts->environ, nothing, FACTS_ENVIRON_MAX);
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
    ck_assert_uint_eq(attributes.list[ATTRIBUTE_ENVIRON].n_texts, 1);
    ck_assert_uint_ge(attributes_size(&attributes), FACTS_ARGUMENTS_MAX + FACTS_ENVIRON_MAX);
    attributes_deinit(&attributes);
    facts_free(facts);
    free(nothing);
}
END_TEST

START_TEST(many_groups_are_bounded)
{
    struct names *names = names_new();
    struct facts *facts = facts_new(FACTS_STATUS, 0);
    char *text = malloc(FACTS_TEXT_MAX), name[101] = {0};
    struct attributes attributes;
    int length = snprintf(text, FACTS_TEXT_MAX, "Uid:\t1 1 1 1\nGid:\t0 0 0 0\nGroups:\t");

    ck_assert_ptr_nonnull(names);
    ck_assert_ptr_nonnull(facts);
    memset(name, 'g', sizeof name - 1);
    for (uint32_t group = 1; group <= 5000; group++) {
        length += snprintf(text + length, (size_t)(FACTS_TEXT_MAX - length), "%u ", group);
        ck_assert_int_eq(names_add_group(names, group, name), 0);
    }
    length += snprintf(text + length, (size_t)(FACTS_TEXT_MAX - length), "\n");
    facts_text_set(&facts->status, text, (size_t)length);
    facts->is_alive = true;
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, names), 0);
    ck_assert_uint_eq(attributes.n_groups, 5000);
    ck_assert(attributes.list[ATTRIBUTE_GROUP].is_cut);
    ck_assert_str_eq(attributes_text(&attributes, ATTRIBUTE_GROUP), "0");
    ck_assert_uint_le(attributes_size(&attributes),
                      sizeof attributes + 5000 * sizeof(uint32_t) + 2 * FACTS_TEXT_MAX);
    attributes_deinit(&attributes);
    facts_free(facts);
    names_free(names);
    free(text);
}
END_TEST

START_TEST(user_has_names_where_there_are_any)
{
    static const struct {
        const char *status, *cgroup, *user;
    } cases[] = {
        {"Uid:\t1001\t1001\t0\t0\nGid:\t0\t0\t0\t0\n", NULL, "web|1001"},
        {"Uid:\t1001\t7\t0\t0\nGid:\t0\t0\t0\t0\n", NULL, "7"},
        {"Uid:\t7\t7\t0\t0\nGid:\t0\t0\t0\t0\n", "0::/user.slice/user-1500.slice/session-1.scope\n",
         "7|alice|1500"},
        {"Uid:\t7\t1500\t0\t0\nGid:\t0\t0\t0\t0\n",
         "0::/user.slice/user-1500.slice/session-1.scope\n", "alice|1500"},
        {"Uid:\t1\t101653\t0\t0\nGid:\t0\t0\t0\t0\n",
         "0::/user.slice/user-8.slice/user@8.service/user.slice/libpod-" ID ".scope\n", "101653|8"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct answer answer = {.status = cases[i].status, .cgroup = cases[i].cgroup};
        struct attributes attributes;

        attributes_init(&attributes);
        take(&attributes, &answer);
        assert_attribute(&attributes, ATTRIBUTE_USER, cases[i].user);
        attributes_deinit(&attributes);
    }
}
END_TEST

START_TEST(names_may_be_missing)
{
    struct facts *facts = facts_of(&whole);
    struct attributes attributes;

    ck_assert_ptr_nonnull(facts);
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
    assert_attribute(&attributes, ATTRIBUTE_USER, "1001");
    assert_attribute(&attributes, ATTRIBUTE_GROUP, "2001|4|24");
    attributes_deinit(&attributes);
    facts_free(facts);
}
END_TEST

START_TEST(groups_that_were_cut_are_said_to_be)
{
    struct answer answer = {.status = "Uid:\t1 1 1 1\nGid:\t24 24 24 24\nGroups:\t4 2001 2"};
    struct facts *facts = facts_of(&answer);
    struct names *names = some_names();
    struct attributes attributes;

    ck_assert_ptr_nonnull(facts);
    facts->status.is_cut = true;
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, names), 0);
    assert_attribute(&attributes, ATTRIBUTE_GROUP, "cdrom|24|4|web|2001+");
    ck_assert_uint_eq(attributes.n_ns_pids, 0);
    attributes_deinit(&attributes);
    facts_free(facts);
    names_free(names);
}
END_TEST

START_TEST(container_follows_cgroup_and_namespaces)
{
    static const struct {
        const char *ns_pids, *cgroup, *container;
    } cases[] = {
        {"NSpid:\t5\n", "0::/system.slice/a.service\n", "-"},
        {"NSpid:\t5\t1\n", "0::/system.slice/a.service\n", "?"},
        {"", "0::/system.slice/a.service\n", "?"},
        {"NSpid:\t5\t1\n", "0::/system.slice/docker-" ID ".scope\n", ID},
        {"NSpid:\t5\n", "0::/system.slice/docker-" ID ".scope\n", ID},
        {"NSpid:\t5\t1\n", "0::/system.slice/a.service/payload\n", "?"},
        {"NSpid:\t5\n", "0::/../a.service\n", "?"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct attributes attributes;
        struct answer answer = {.cgroup = cases[i].cgroup};
        char status[200];

        snprintf(status, sizeof status, "Uid:\t1 1 1 1\nGid:\t1 1 1 1\n%s", cases[i].ns_pids);
        answer.status = status;
        attributes_init(&attributes);
        take(&attributes, &answer);
        assert_attribute(&attributes, ATTRIBUTE_CONTAINER, cases[i].container);
        attributes_deinit(&attributes);
    }
}
END_TEST

START_TEST(foreign_or_cut_cgroups_tell_nothing)
{
    static const enum attribute_id places[] = {ATTRIBUTE_CGROUP, ATTRIBUTE_SLICE, ATTRIBUTE_UNIT,
                                               ATTRIBUTE_USER_UNIT, ATTRIBUTE_CONTAINER};
    static const struct {
        const char *cgroup, *why;
        bool is_cut;
    } cases[] = {
        {"0::/../a.service\n", "the daemon is in a cgroup namespace of its own", false},
        {"3:memory:/a.service\n", "it is in no cgroup of systemd or of version 2", false},
        {"", "it is in no cgroup of systemd or of version 2", false},
        {"1:name=systemd:/system.slice/a.service\n", "it is longer than what is read of it", true},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct answer answer = {.status = status_text, .cgroup = cases[i].cgroup};
        struct facts *facts = facts_of(&answer);
        struct attributes attributes;

        ck_assert_ptr_nonnull(facts);
        facts->cgroup.is_cut = cases[i].is_cut;
        attributes_init(&attributes);
        ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
        for (size_t k = 0; k < ARRAY_LENGTH(places); k++) {
            assert_attribute(&attributes, places[k], "?");
            assert_why(&attributes, places[k], cases[i].why);
        }
        assert_attribute(&attributes, ATTRIBUTE_USER, "1001");
        attributes_deinit(&attributes);
        facts_free(facts);
    }
}
END_TEST

START_TEST(malformed_texts_tell_nothing)
{
    struct answer answer = {.stat = "8301 (a) S", .status = "Uid:\t0\n"};
    struct attributes attributes;

    attributes_init(&attributes);
    take(&attributes, &answer);
    ck_assert_uint_eq(attributes.start_time, 0);
    ck_assert_uint_eq(attributes.uid, UINT32_MAX);
    assert_attribute(&attributes, ATTRIBUTE_USER, "?");
    assert_attribute(&attributes, ATTRIBUTE_GROUP, "?");
    assert_why(&attributes, ATTRIBUTE_USER, "it is not of the form that was expected");
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(assembly_needs_exe_or_arguments)
{
    static const struct {
        const char *exe, *arguments, *assembly, *why;
    } cases[] = {
        {"/opt/App", NULL, "App", ""},
        {"/opt/dotnet", NULL, "?", "not asked for"},
        {NULL, "dotnet|App.dll|", "App", ""},
        {NULL, "/opt/App|", "?", "not asked for"},
        {"/opt/dotnet", "dotnet|", "?", "the arguments do not tell"},
        {"/opt/dotnet (deleted)", "x|App.dll|", "App", ""},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct answer answer = {.exe = cases[i].exe, .arguments = cases[i].arguments};
        struct attributes attributes;

        attributes_init(&attributes);
        take(&attributes, &answer);
        assert_attribute(&attributes, ATTRIBUTE_ASSEMBLY, cases[i].assembly);
        assert_why(&attributes, ATTRIBUTE_ASSEMBLY, cases[i].why);
        attributes_deinit(&attributes);
    }
}
END_TEST

START_TEST(variables_are_looked_up)
{
    static const struct {
        const char *name, *value; /* NULL: absent */
    } cases[] = {
        {"A", "first"}, {"B", ""},      {"C", "x=y"},  {"", "odd"},   {"a", NULL},
        {"AA", NULL},   {"NONE", NULL}, {"C=x", NULL}, {"LAST", "z"},
    };
    struct answer answer = {.environ = "A=first|NONE|B=|A=second|C=x=y||=odd|LAST=z|"};
    struct attributes attributes;

    attributes_init(&attributes);
    take(&attributes, &answer);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *value = NULL;

        ck_assert_int_eq(attributes_variable(&attributes, cases[i].name, &value),
                         cases[i].value ? ATTRIBUTE_PRESENT : ATTRIBUTE_ABSENT);
        if (cases[i].value)
            ck_assert_str_eq(value, cases[i].value);
        else
            ck_assert_ptr_null(value);
    }
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(variables_behind_a_cut_are_unknown)
{
    struct answer answer = {.environ = "A=1|DOTNET_DiagnosticPorts=/run/x"};
    struct facts *facts = facts_of(&answer);
    struct attributes attributes;
    const char *value;

    ck_assert_ptr_nonnull(facts);
    attributes_init(&attributes);
    ck_assert_int_eq(attributes_variable(&attributes, "A", &value), ATTRIBUTE_UNKNOWN);
    facts->environ.is_cut = true;
    ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
    ck_assert_int_eq(attributes_variable(&attributes, "A", &value), ATTRIBUTE_PRESENT);
    ck_assert_str_eq(value, "1");
    ck_assert_int_eq(attributes_variable(&attributes, "DOTNET_DiagnosticPorts", &value),
                     ATTRIBUTE_UNKNOWN);
    ck_assert_int_eq(attributes_variable(&attributes, "B", &value), ATTRIBUTE_UNKNOWN);
    attributes_deinit(&attributes);
    facts_free(facts);
}
END_TEST

START_TEST(attribute_is_set_from_outside)
{
    struct attributes attributes;

    attributes_init(&attributes);
    ck_assert_int_eq(attributes_set(&attributes, ATTRIBUTE_PORT, "the listener", "local"), 0);
    assert_attribute(&attributes, ATTRIBUTE_PORT, "local");
    ck_assert_str_eq(attributes.list[ATTRIBUTE_PORT].source, "the listener");
    ck_assert_str_eq(attributes_text(&attributes, ATTRIBUTE_PORT), "local");
    ck_assert_int_eq(attributes_set(&attributes, ATTRIBUTE_PORT, "the listener", ""), 0);
    ck_assert_str_eq(attributes_text(&attributes, ATTRIBUTE_PORT), "");
    attributes_deinit(&attributes);
}
END_TEST

/* There are 38 bytes of arguments, NULs included. */
START_TEST(trimming_keeps_a_beginning)
{
    static const struct {
        size_t max;
        const char *arguments;
    } cases[] = {
        {1000, "dotnet|/srv/web/Web.dll|--tenant=a b|"},
        {38, "dotnet|/srv/web/Web.dll|--tenant=a b|"},
        {37, "dotnet|/srv/web/Web.dll|--tenant=a b+"},
        {36, "dotnet|/srv/web/Web.dll|--tenant=a b+"},
        {35, "dotnet|/srv/web/Web.dll|--tenant=a +"},
        {7, "dotnet+"},
        {1, "d+"},
        {0, "?"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct attributes attributes;
        const char *value;
        size_t before;

        attributes_init(&attributes);
        take(&attributes, &whole);
        before = attributes_size(&attributes);
        attributes_trim(&attributes, cases[i].max);
        assert_attribute(&attributes, ATTRIBUTE_ARGUMENTS, cases[i].arguments);
        assert_attribute(&attributes, ATTRIBUTE_ENVIRON, "?");
        assert_why(&attributes, ATTRIBUTE_ENVIRON, "not kept after the decision");
        ck_assert_int_eq(attributes_variable(&attributes, "A", &value), ATTRIBUTE_UNKNOWN);
        ck_assert_uint_lt(attributes_size(&attributes), before);
        assert_attribute(&attributes, ATTRIBUTE_ASSEMBLY, "Web");
        attributes_deinit(&attributes);
    }
}
END_TEST

/* Many and short ones cost more by the pointers to them. */
START_TEST(trimming_bounds_what_is_held)
{
    static char arguments[20000], status[20000];
    struct attributes attributes;
    size_t length = 0;

    memset(arguments, 0, sizeof arguments);
    length =
        (size_t)snprintf(status, sizeof status, "Uid:\t1\t1\t1\t1\nGid:\t5\t5\t5\t5\nGroups:\t");
    for (unsigned i = 0; i < 2000; i++)
        length += (size_t)snprintf(status + length, sizeof status - length, "%u ", 100000 + i);
    snprintf(status + length, sizeof status - length, "\nNSpid:\t1\n");
    attributes_init(&attributes);
    {
        struct facts *facts = facts_new(FACTS_STATUS | FACTS_ARGUMENTS, 0);

        ck_assert_ptr_nonnull(facts);
        facts->is_alive = true;
        facts_text_set(&facts->status, status, strlen(status));
        facts_text_set(&facts->arguments, arguments, sizeof arguments);
        ck_assert_int_eq(attributes_take_facts(&attributes, 1, facts, NULL), 0);
        facts_free(facts);
    }
    ck_assert_uint_gt(attributes_size(&attributes), 60000);
    attributes_trim(&attributes, 4096);
    ck_assert(attributes.list[ATTRIBUTE_ARGUMENTS].is_cut);
    ck_assert(attributes.list[ATTRIBUTE_GROUP].is_cut);
    ck_assert_str_eq(attributes_text(&attributes, ATTRIBUTE_GROUP), "5");
    ck_assert_uint_eq(attributes.n_groups, 2000);
    attributes_forget_groups(&attributes);
    ck_assert_uint_le(attributes_size(&attributes), sizeof attributes + 4 * 4096 + 100);
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(trimming_needs_no_memory)
{
    struct attributes attributes;
    size_t n_left;

    attributes_init(&attributes);
    take(&attributes, &whole);
    unit_memory_watch(1);
    attributes_trim(&attributes, 7);
    ck_assert_uint_eq(unit_memory_release(&n_left), 1);
    assert_attribute(&attributes, ATTRIBUTE_ARGUMENTS, "?");
    /* what was never there is not forgotten */
    attributes_deinit(&attributes);
    attributes_trim(&attributes, 7);
    assert_why(&attributes, ATTRIBUTE_ENVIRON, "not asked for");
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(size_grows_with_what_is_held)
{
    struct attributes attributes;
    size_t empty, one;

    attributes_init(&attributes);
    empty = attributes_size(&attributes);
    ck_assert_uint_ge(empty, sizeof attributes);
    ck_assert_int_eq(attributes_set(&attributes, ATTRIBUTE_PORT, "", "12345"), 0);
    one = attributes_size(&attributes);
    ck_assert_uint_eq(one - empty, sizeof(char *) + 6);
    take(&attributes, &(struct answer){.status = status_text});
    ck_assert_uint_eq(attributes_size(&attributes) - one, 3 * sizeof(uint32_t) +
                                                              7 * sizeof(char *) +
                                                              sizeof "web\0"
                                                                     "1001" +
                                                              sizeof "web\0"
                                                                     "2001\0"
                                                                     "4\0cdrom\0"
                                                                     "24");
    attributes_deinit(&attributes);
    ck_assert_uint_eq(attributes_size(&attributes), empty);
}
END_TEST

START_TEST(attributes_have_the_names_of_policies)
{
    static const char *const names[ATTRIBUTE_COUNT] = {
        "exe",       "args",  "assembly", "cwd",       "user", "group",  "unit",
        "user_unit", "slice", "cgroup",   "container", "env",  "parent", "port",
    };

    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        ck_assert_str_eq(attribute_name((enum attribute_id)i), names[i]);
}
END_TEST

struct exhausted {
    const struct facts *facts;
    const struct names *names;
};

/* A list of groups, or an assembly, that there is no memory for is unknown and no error. */
static int take_and_check(struct attributes *attributes, const struct exhausted *exhausted)
{
    int error = attributes_take_facts(attributes, 8301, exhausted->facts, exhausted->names);

    if (error == 0 && (attributes->list[ATTRIBUTE_USER].state == ATTRIBUTE_UNKNOWN ||
                       attributes->list[ATTRIBUTE_ASSEMBLY].state == ATTRIBUTE_UNKNOWN))
        error = -ENOMEM;
    return error;
}

static int take_once(void *context)
{
    struct attributes attributes;
    int error;

    attributes_init(&attributes);
    error = take_and_check(&attributes, context);
    if (error == 0)
        error = attributes_set(&attributes, ATTRIBUTE_PORT, "the socket", "runtime");
    attributes_deinit(&attributes);
    return error;
}

START_TEST(running_out_of_memory_is_said)
{
    struct facts *facts = facts_of(&whole);
    struct names *names = some_names();
    struct exhausted exhausted = {facts, names};

    ck_assert_ptr_nonnull(facts);
    ck_assert_uint_gt(unit_memory_exhaust(take_once, &exhausted, -ENOMEM), 15);
    facts_free(facts);
    names_free(names);
}
END_TEST

/* A second answer for which memory runs out, at any place, leaves everything in order. */
START_TEST(running_out_of_memory_later_breaks_nothing)
{
    struct facts *facts = facts_of(&whole);
    struct names *names = some_names();
    struct exhausted exhausted = {facts, names};
    size_t n_wanted = 1;

    ck_assert_ptr_nonnull(facts);
    for (size_t nth = 0; nth <= n_wanted; nth++) {
        struct attributes attributes;
        size_t n_left, n_allocations;
        int first, second;

        attributes_init(&attributes);
        first = take_and_check(&attributes, &exhausted);
        unit_memory_watch(nth);
        second = take_and_check(&attributes, &exhausted);
        n_allocations = unit_memory_release(&n_left);
        if (nth == 0)
            n_wanted = n_allocations;
        ck_assert_int_eq(first, 0);
        ck_assert(second == 0 || (second == -ENOMEM && nth > 0));
        assert_attribute(&attributes, ATTRIBUTE_EXE, "/usr/share/dotnet/dotnet");
        assert_attribute(&attributes, ATTRIBUTE_USER, "web|1001");
        assert_attribute(&attributes, ATTRIBUTE_ENVIRON, "A=1|B=|PATH=/bin");
        attributes_deinit(&attributes);
    }
    ck_assert_uint_gt(n_wanted, 15);
    facts_free(facts);
    names_free(names);
}
END_TEST

UNIT_TESTS(at_first_nothing_is_known, answer_becomes_attributes, answers_add_up, failures_say_why,
           the_dead_are_not_believed, deleted_is_stripped_once, links_are_whole_or_unknown,
           empty_lists_are_absent, lists_are_split_at_each_nul, cut_lists_lose_their_last,
           memory_is_bounded, many_groups_are_bounded, user_has_names_where_there_are_any,
           names_may_be_missing, groups_that_were_cut_are_said_to_be,
           container_follows_cgroup_and_namespaces, foreign_or_cut_cgroups_tell_nothing,
           malformed_texts_tell_nothing, assembly_needs_exe_or_arguments, variables_are_looked_up,
           variables_behind_a_cut_are_unknown, attribute_is_set_from_outside,
           trimming_keeps_a_beginning, trimming_bounds_what_is_held, trimming_needs_no_memory,
           size_grows_with_what_is_held, attributes_have_the_names_of_policies,
           running_out_of_memory_is_said, running_out_of_memory_later_breaks_nothing);
