/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/access.h"
#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/facts.h"

static uint32_t groups[] = {50, 51};

/* Whether uid 1000, groups 5, 50 and 51, may read a file behind one folder. */
static enum preflight refusal(uint32_t folder_mode, uint32_t file_mode, uint32_t owner,
                              uint32_t group)
{
    struct facts_node nodes[] = {
        {.mode = 040755},
        {.mode = 040000 | folder_mode, .owner = owner, .group = group},
        {.mode = file_mode, .owner = owner, .group = group},
    };
    struct facts_file file = {.nodes = nodes, .n_nodes = 3};
    struct attributes attributes = {.uid = 1000, .gid = 5, .groups = groups, .n_groups = 2};

    return access_judge(&file, &attributes);
}

START_TEST(the_one_class_that_applies_decides)
{
    ck_assert_int_eq(PREFLIGHT_GOOD, refusal(0755, 0100644, 0, 0));
    ck_assert_int_eq(PREFLIGHT_GOOD, refusal(0700, 0100400, 1000, 0));
    ck_assert_int_eq(PREFLIGHT_GOOD, refusal(0750, 0100640, 0, 5));
    ck_assert_int_eq(PREFLIGHT_GOOD, refusal(0750, 0100640, 0, 51));
    ck_assert_int_eq(refusal(0755, 0100640, 0, 0), PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(refusal(0755, 0100044, 1000, 0), PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(refusal(0755, 0100604, 0, 50), PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(refusal(0700, 0100644, 0, 0), PREFLIGHT_FOLDER_CLOSED);
    ck_assert_int_eq(refusal(0644, 0100644, 0, 0), PREFLIGHT_FOLDER_CLOSED);
}
END_TEST

START_TEST(root_is_held_to_no_bits)
{
    struct facts_node nodes[] = {{.mode = 040700, .owner = 7}, {.mode = 0100000, .owner = 7}};
    struct facts_file file = {.nodes = nodes, .n_nodes = 2};
    struct attributes attributes = {.uid = 0};

    ck_assert_int_eq(PREFLIGHT_GOOD, access_judge(&file, &attributes));
}
END_TEST

/* uid 1000, groups 5, 50 and 51, and a file of root's with a list of entries. */
struct list_entry {
    uint16_t kind, rights;
    uint32_t id;
};

static enum preflight judge_list(uint32_t mode, const struct list_entry *entries, size_t n)
{
    struct attributes attributes = {.uid = 1000, .gid = 5, .groups = groups, .n_groups = 2};
    struct facts_node nodes[] = {{.mode = 040755}, {.mode = 0100000 | mode}};
    struct facts_file file = {.nodes = nodes, .n_nodes = 2};
    enum preflight code;
    struct bytes acl;

    bytes_init(&acl, 1000);
    bytes_put_u32(&acl, 2);
    for (size_t i = 0; i < n; i++) {
        bytes_put_u16(&acl, entries[i].kind);
        bytes_put_u16(&acl, entries[i].rights);
        bytes_put_u32(&acl, entries[i].id);
    }
    nodes[1].acl = acl.data;
    nodes[1].acl_length = acl.length;
    code = access_judge(&file, &attributes);
    bytes_deinit(&acl);
    return code;
}

enum { OWNER = 1, USER = 2, OWNING_GROUP = 4, GROUP = 8, MASK = 16, OTHER = 32 };

#define JUDGE_LIST(mode, ...)                                  \
    judge_list(mode, (const struct list_entry[]){__VA_ARGS__}, \
               sizeof(struct list_entry[]){__VA_ARGS__} / sizeof(struct list_entry))

START_TEST(lists_give_and_take_rights)
{
    static const struct list_entry owner = {OWNER, 6, 0}, group = {OWNING_GROUP, 0, 0},
                                   mask = {MASK, 4, 0}, other = {OTHER, 4, 0};

    /* His own entry decides, within the mask, whatever others may. */
    ck_assert_int_eq(JUDGE_LIST(0640, owner, {USER, 4, 1000}, group, mask, other), PREFLIGHT_GOOD);
    ck_assert_int_eq(JUDGE_LIST(0644, owner, {USER, 0, 1000}, group, mask, other),
                     PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(JUDGE_LIST(0614, owner, {USER, 4, 1000}, group, mask, other),
                     PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(JUDGE_LIST(0640, owner, {USER, 4, 1001}, group, mask, other),
                     PREFLIGHT_FILE_CLOSED);
    /* One of his groups that has the right is enough; who is in one without it has none. */
    ck_assert_int_eq(JUDGE_LIST(0640, owner, group, {GROUP, 0, 50}, {GROUP, 4, 51}, mask, other),
                     PREFLIGHT_GOOD);
    ck_assert_int_eq(JUDGE_LIST(0644, owner, group, {GROUP, 0, 50}, mask, other),
                     PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(JUDGE_LIST(0644, owner, group, {GROUP, 0, 99}, mask, other), PREFLIGHT_GOOD);
    /* Without any bit of the group the kernel does not look at it. */
    ck_assert_int_eq(JUDGE_LIST(0604, owner, {USER, 0, 1000}, group, mask, other), PREFLIGHT_GOOD);
}
END_TEST

START_TEST(a_list_that_is_cut_gives_nothing)
{
    struct attributes attributes = {.uid = 1000, .gid = 5};
    uint8_t acl[] = {2, 0, 0, 0, 2, 0, 4, 0, 0xE8, 3, 0, 0};
    struct facts_node node = {.mode = 0100640, .acl = acl};
    struct facts_file file = {.nodes = &node, .n_nodes = 1};

    for (node.acl_length = 4; node.acl_length < sizeof acl; node.acl_length++)
        ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_FILE_CLOSED);
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_GOOD);
    /* Of another form, or one that could not be read, nobody knows what it says. */
    acl[0] = 3;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_GOOD);
    node.acl_length = 0;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_FILE_CLOSED);
    node.has_unknown_acl = true;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_GOOD);
}
END_TEST

/* Root without its rights is held to the bits, and root of a container has them over its own. */
START_TEST(rights_go_before_bits)
{
    struct facts_node node = {.mode = 0100600, .owner = 7, .override = FACTS_OVERRIDE_NO};
    struct facts_file file = {.nodes = &node, .n_nodes = 1};
    struct attributes attributes = {.uid = 0};

    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_FILE_CLOSED);
    attributes.uid = 100000;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_FILE_CLOSED);
    node.override = FACTS_OVERRIDE_YES;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_GOOD);
}
END_TEST

START_TEST(only_regular_files_will_do)
{
    ck_assert_int_eq(refusal(0755, 0040755, 0, 0), PREFLIGHT_IS_FOLDER);
    ck_assert_int_eq(refusal(0755, 0010644, 0, 0), PREFLIGHT_NOT_REGULAR);
    ck_assert_int_eq(refusal(0755, 0020644, 0, 0), PREFLIGHT_NOT_REGULAR);
    ck_assert_int_eq(refusal(0755, 0140644, 0, 0), PREFLIGHT_NOT_REGULAR);
}
END_TEST

START_TEST(a_look_that_failed_says_why)
{
    struct attributes attributes = {.uid = 1000};
    struct facts_file file = {.error = ENOENT};

    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_FILE_MISSING);
    file.error = ELOOP;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_LINK_LOOP);
    file.error = ENOTDIR;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_PATH_BLOCKED);
    file.error = EACCES;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_LOOK_REFUSED);
    file.error = ETIMEDOUT;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_LOOK_TIMEOUT);
    file.error = EIO;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_LOOK_FAILED);
    file.error = 0;
    ck_assert_int_eq(access_judge(&file, &attributes), PREFLIGHT_LOOK_FAILED);
}
END_TEST

UNIT_TESTS(the_one_class_that_applies_decides, root_is_held_to_no_bits, lists_give_and_take_rights,
           a_list_that_is_cut_gives_nothing, rights_go_before_bits, only_regular_files_will_do,
           a_look_that_failed_says_why);
