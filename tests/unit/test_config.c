/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Policy files on disk: which are read, which may be trusted, and what is left
 * when they cannot be used. What may be in them is tested elsewhere.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "lib/names.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_memory.h"

static char folder[64], file[96];

static const char main_text[] = "version: 1\n"
                                "listen: [ { name: here, path: /run/here.sock } ]\n"
                                "control: { path: /run/here.control }\n"
                                "rules: [ { name: a, match: all, env: { A: b } } ]\n";

#define RULE(name) \
    "rules: [ { name: " name ", match: { unit: " name ".service }, ignore: true } ]\n"

static void set_up(void)
{
    char drop_ins[96];

    unit_folder_make(folder, sizeof folder);
    snprintf(file, sizeof file, "%s/main.yaml", folder);
    snprintf(drop_ins, sizeof drop_ins, "%s/policy.d", folder);
    ck_assert_int_eq(mkdir(drop_ins, 0755), 0);
    unit_folder_write("main.yaml", main_text, 0644);
}

static struct config_loaded load(void)
{
    struct config_options options = {.file = file};
    struct config_loaded loaded;

    ck_assert_int_eq(config_load(&options, &loaded), 0);
    ck_assert_int_eq(loaded.policy == NULL, loaded.problems.n_errors > 0);
    ck_assert_int_eq(loaded.salvage == NULL, loaded.policy != NULL);
    return loaded;
}

static bool says(const struct config_loaded *loaded, const char *part_of_file,
                 const char *part_of_text)
{
    for (size_t i = 0; i < loaded->problems.n; i++) {
        if (strstr(loaded->problems.list[i].file, part_of_file) &&
            strstr(loaded->problems.list[i].text, part_of_text))
            return true;
    }
    return false;
}

static void fails(const char *part_of_file, const char *part_of_text)
{
    struct config_loaded loaded = load();

    ck_assert_ptr_null(loaded.policy);
    ck_assert(says(&loaded, part_of_file, part_of_text));
    config_loaded_deinit(&loaded);
    unit_folder_remove();
}

START_TEST(drop_ins_come_in_the_order_of_their_names)
{
    struct config_loaded loaded;

    set_up();
    unit_folder_write("policy.d/20-c.yaml", RULE("c"), 0644);
    unit_folder_write("policy.d/10-b.yaml", RULE("b"), 0644);
    unit_folder_write("policy.d/.hidden.yaml", "rules: x\n", 0644);
    unit_folder_write("policy.d/d.yaml~", "rules: x\n", 0644);
    unit_folder_write("policy.d/e.yaml.rpmnew", "rules: x\n", 0644);
    loaded = load();
    ck_assert_ptr_nonnull(loaded.policy);
    ck_assert_uint_eq(loaded.policy->n_rules, 3);
    ck_assert_str_eq(loaded.policy->rules[0].name, "a");
    ck_assert_str_eq(loaded.policy->rules[1].name, "b");
    ck_assert_str_eq(loaded.policy->rules[2].name, "c");
    ck_assert_uint_eq(loaded.policy->n_files, 3);
    config_loaded_deinit(&loaded);
    unit_folder_remove();
}
END_TEST

START_TEST(a_socket_without_a_mode_is_for_everybody)
{
    struct config_loaded loaded;

    set_up();
    loaded = load();
    ck_assert_uint_eq(loaded.policy->listens[0].mode, 0666);
    ck_assert_uint_eq(loaded.policy->control.mode, 0666);
    config_loaded_deinit(&loaded);
    unit_folder_remove();
}
END_TEST

START_TEST(a_near_miss_is_told)
{
    struct config_loaded loaded;

    set_up();
    unit_folder_write("policy.d/b.yml", RULE("b"), 0644);
    loaded = load();
    ck_assert_ptr_nonnull(loaded.policy);
    ck_assert_uint_eq(loaded.policy->n_rules, 1);
    ck_assert(says(&loaded, "policy.d/b.yml", "only names that end in .yaml are"));
    config_loaded_deinit(&loaded);
    unit_folder_remove();
}
END_TEST

START_TEST(who_may_write_decides_who_is_trusted)
{
    char path[128];

    set_up();
    ck_assert_int_eq(chmod(file, 0646), 0);
    fails("main.yaml", "may be written by everybody");
    set_up();
    unit_folder_write("policy.d/b.yaml", RULE("b"), 0666);
    fails("policy.d/b.yaml", "may be written by everybody");
    set_up();
    snprintf(path, sizeof path, "%s/policy.d", folder);
    ck_assert_int_eq(chmod(path, 0777), 0);
    fails("policy.d", "may be written by everybody");
    if (geteuid() != 0)
        return;
    set_up();
    ck_assert_int_eq(chown(file, 4711, 4711), 0);
    fails("main.yaml", "must belong to root");
    set_up();
    ck_assert_int_eq(chown(file, 0, 4711), 0);
    ck_assert_int_eq(chmod(file, 0664), 0);
    fails("main.yaml", "may be written by a group");
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    char path[128];

    set_up();
    snprintf(path, sizeof path, "%s/policy.d/d.yaml", folder);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    fails("policy.d/d.yaml", "is not a regular file");
    set_up();
    snprintf(path, sizeof path, "%s/policy.d/d.yaml", folder);
    ck_assert_int_eq(mkfifo(path, 0644), 0);
    fails("policy.d/d.yaml", "is not a regular file");
    set_up();
    unlink(file);
    fails("main.yaml", "cannot be opened: No such file");
}
END_TEST

/* A mounted ConfigMap is all links: each name leads through a folder that is swapped as a whole. */
START_TEST(links_are_followed_inside_the_policy_folder_only)
{
    struct config_loaded loaded;
    char path[160], target[160];

    set_up();
    snprintf(path, sizeof path, "%s/policy.d/..one", folder);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    unit_folder_write("policy.d/..one/b.yaml", RULE("b"), 0644);
    snprintf(path, sizeof path, "%s/policy.d/..data", folder);
    ck_assert_int_eq(symlink("..one", path), 0);
    snprintf(path, sizeof path, "%s/policy.d/b.yaml", folder);
    ck_assert_int_eq(symlink("..data/b.yaml", path), 0);
    loaded = load();
    ck_assert_ptr_nonnull(loaded.policy);
    ck_assert_uint_eq(loaded.policy->n_rules, 2);
    config_loaded_deinit(&loaded);
    /* A folder of the way that others may write to. */
    snprintf(path, sizeof path, "%s/policy.d/..one", folder);
    ck_assert_int_eq(chmod(path, 0777), 0);
    fails("policy.d/b.yaml", "others may write to");
    /* Out of the folder. */
    set_up();
    unit_folder_write("outside.yaml", RULE("b"), 0644);
    snprintf(path, sizeof path, "%s/policy.d/b.yaml", folder);
    snprintf(target, sizeof target, "%s/outside.yaml", folder);
    ck_assert_int_eq(symlink(target, path), 0);
    fails("policy.d/b.yaml", "leads out of the policy folder");
    set_up();
    unit_folder_write("outside.yaml", RULE("b"), 0644);
    snprintf(path, sizeof path, "%s/policy.d/b.yaml", folder);
    ck_assert_int_eq(symlink("../outside.yaml", path), 0);
    fails("policy.d/b.yaml", "leads out of the policy folder");
}
END_TEST

START_TEST(one_byte_too_many_is_told)
{
    char *text = malloc(POLICY_SOURCE_MAX + 2);

    set_up();
    memset(text, '#', POLICY_SOURCE_MAX + 1);
    text[POLICY_SOURCE_MAX + 1] = '\0';
    unit_folder_write("main.yaml", text, 0644);
    free(text);
    fails("main.yaml", "");
}
END_TEST

START_TEST(a_broken_policy_still_says_where_to_listen)
{
    struct config_loaded loaded;

    set_up();
    unit_folder_write("main.yaml",
                      "version: 1\n"
                      "listen: [ { name: here, path: /run/here.sock } ]\n"
                      "control: { path: /run/here.control }\n"
                      "rules: [ { nme: a } ]\n",
                      0644);
    loaded = load();
    ck_assert_ptr_null(loaded.policy);
    ck_assert_uint_eq(loaded.salvage->n_rules, 0);
    ck_assert_uint_eq(loaded.salvage->n_listens, 1);
    ck_assert_str_eq(loaded.salvage->listens[0].path, "/run/here.sock");
    ck_assert_str_eq(loaded.salvage->control.path, "/run/here.control");
    config_loaded_deinit(&loaded);
    /* Without anything to be used, where everybody looks. */
    unlink(file);
    loaded = load();
    ck_assert_str_eq(loaded.salvage->listens[0].path, "/run/diagport/runtime.sock");
    ck_assert_str_eq(loaded.salvage->control.path, "/run/diagport/control.sock");
    config_loaded_deinit(&loaded);
    unit_folder_remove();
}
END_TEST

START_TEST(a_user_needs_no_file)
{
    struct config_options options = {.is_user = true};
    struct config_loaded loaded;
    char *own;

    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
    ck_assert_int_eq(config_load(&options, &loaded), 0);
    ck_assert_ptr_nonnull(loaded.policy);
    ck_assert_uint_eq(loaded.problems.n, 0);
    ck_assert_str_eq(loaded.policy->listens[0].path, "/run/user/7/diagport/runtime.sock");
    ck_assert_uint_eq(loaded.policy->listens[0].mode, 0600);
    config_loaded_deinit(&loaded);
    ck_assert_int_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
    own = config_user_folder();
    ck_assert(strncmp(own, "/tmp/diagport-", 14) == 0);
    free(own);
}
END_TEST

START_TEST(numbers_have_names)
{
    struct config_loaded loaded;

    set_up();
    loaded = load();
    ck_assert_str_eq(names_user(loaded.policy->names, 0), "root");
    ck_assert_str_eq(names_group(loaded.policy->names, 0), "root");
    config_loaded_deinit(&loaded);
    unit_folder_remove();
}
END_TEST

static int load_once(void *context)
{
    struct config_loaded loaded;
    int error = config_load(context, &loaded);

    if (error == 0)
        config_loaded_deinit(&loaded);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    struct config_options options = {.file = file};

    set_up();
    unit_folder_write("policy.d/10-b.yaml", RULE("b"), 0644);
    unit_folder_write("policy.d/20-c.yml", RULE("c"), 0644);
    ck_assert_uint_gt(unit_memory_exhaust(load_once, &options, -ENOMEM), 50);
    unit_folder_write("policy.d/30-d.yaml", "rules: x\n", 0644);
    unit_folder_write("policy.d/40-e.yaml", RULE("e"), 0666);
    ck_assert_uint_gt(unit_memory_exhaust(load_once, &options, -ENOMEM), 50);
    unit_folder_remove();
}
END_TEST

UNIT_TESTS(drop_ins_come_in_the_order_of_their_names, a_socket_without_a_mode_is_for_everybody,
           a_near_miss_is_told, who_may_write_decides_who_is_trusted, what_is_no_file_is_refused,
           links_are_followed_inside_the_policy_folder_only, one_byte_too_many_is_told,
           a_broken_policy_still_says_where_to_listen, a_user_needs_no_file, numbers_have_names,
           every_allocation_may_fail);
