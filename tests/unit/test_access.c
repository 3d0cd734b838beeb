/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/access.h"
#include "lib/attributes.h"
#include "lib/facts.h"

static uint32_t groups[] = {50, 51};

/* Whether uid 1000, groups 5, 50 and 51, may read a file behind one folder. */
static const char *refusal(uint32_t folder_mode, uint32_t file_mode, uint32_t owner, uint32_t group)
{
    struct facts_node nodes[] = {
        {.mode = 040755},
        {.mode = 040000 | folder_mode, .owner = owner, .group = group},
        {.mode = file_mode, .owner = owner, .group = group},
    };
    struct facts_file file = {.nodes = nodes, .n_nodes = 3};
    struct attributes attributes = {.uid = 1000, .gid = 5, .groups = groups, .n_groups = 2};

    return access_refusal(&file, &attributes);
}

START_TEST(the_one_class_that_applies_decides)
{
    ck_assert_ptr_null(refusal(0755, 0100644, 0, 0));
    ck_assert_ptr_null(refusal(0700, 0100400, 1000, 0));
    ck_assert_ptr_null(refusal(0750, 0100640, 0, 5));
    ck_assert_ptr_null(refusal(0750, 0100640, 0, 51));
    ck_assert_str_eq(refusal(0755, 0100640, 0, 0), "may not be read by the process");
    ck_assert_str_eq(refusal(0755, 0100044, 1000, 0), "may not be read by the process");
    ck_assert_str_eq(refusal(0755, 0100604, 0, 50), "may not be read by the process");
    ck_assert_str_eq(refusal(0700, 0100644, 0, 0), "is in a folder that the process may not enter");
    ck_assert_str_eq(refusal(0644, 0100644, 0, 0), "is in a folder that the process may not enter");
}
END_TEST

START_TEST(root_is_held_to_no_bits)
{
    struct facts_node nodes[] = {{.mode = 040700, .owner = 7}, {.mode = 0100000, .owner = 7}};
    struct facts_file file = {.nodes = nodes, .n_nodes = 2};
    struct attributes attributes = {.uid = 0};

    ck_assert_ptr_null(access_refusal(&file, &attributes));
}
END_TEST

START_TEST(only_regular_files_will_do)
{
    ck_assert_str_eq(refusal(0755, 0040755, 0, 0), "is a folder");
    ck_assert_str_eq(refusal(0755, 0010644, 0, 0), "is not a regular file");
    ck_assert_str_eq(refusal(0755, 0020644, 0, 0), "is not a regular file");
    ck_assert_str_eq(refusal(0755, 0140644, 0, 0), "is not a regular file");
}
END_TEST

START_TEST(a_look_that_failed_says_why)
{
    struct attributes attributes = {.uid = 1000};
    struct facts_file file = {.error = ENOENT};

    ck_assert_str_eq(access_refusal(&file, &attributes), "does not exist as the process sees it");
    file.error = ELOOP;
    ck_assert_str_eq(access_refusal(&file, &attributes), "leads through too many links");
    file.error = ENOTDIR;
    ck_assert_str_eq(access_refusal(&file, &attributes),
                     "leads through something that is not a folder");
    file.error = EACCES;
    ck_assert_str_eq(access_refusal(&file, &attributes), "may not be looked at");
    file.error = ETIMEDOUT;
    ck_assert_str_eq(access_refusal(&file, &attributes), "took too long to look at");
    file.error = EIO;
    ck_assert_str_eq(access_refusal(&file, &attributes), "could not be looked at");
    file.error = 0;
    ck_assert_str_eq(access_refusal(&file, &attributes), "could not be looked at");
}
END_TEST

UNIT_TESTS(the_one_class_that_applies_decides, root_is_held_to_no_bits, only_regular_files_will_do,
           a_look_that_failed_says_why);
