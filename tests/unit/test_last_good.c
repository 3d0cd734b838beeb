/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The last good policy on disk: it is what was set last, and whatever is not
 * exactly as it was written is none.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/last_good.h"
#include "daemon/snapshots.h"
#include "daemon/store.h"
#include "lib/policy_read.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_memory.h"

/* A path is any bytes but NUL. */
static const char main_file[] = "/etc/di\nsum agport/diagport.yaml";

static char folder[256], name_file[300], text_file[400];
static struct store *store;
static struct snapshots *snapshots;
static struct last_good *last_good;

static struct policy *policy_of(const char *text)
{
    struct policy_source source = {.name = "a.yaml", .bytes = text, .length = strlen(text)};
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(&source, 1, config_host(), &policy, &problems), 0);
    ck_assert_ptr_nonnull(policy);
    policy_problems_deinit(&problems);
    return policy;
}

static void open_rooms(const char *file)
{
    struct last_good_options options = {.main_file = file};
    struct store_found found;
    int error;

    store = store_claim(folder, &error);
    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(store_open(store, &found), 0);
    free(found.why);
    options.store = store;
    options.snapshots = snapshots = snapshots_new(store);
    last_good = last_good_new(&options);
    ck_assert(snapshots && last_good);
}

static void close_rooms(void)
{
    last_good = last_good_free(last_good);
    snapshots = snapshots_free(snapshots);
    store = store_close(store);
}

static void set(const char *text)
{
    struct policy *policy = policy_of(text);
    struct snapshot_name name;

    ck_assert_int_eq(snapshots_keep(snapshots, policy, &name), 0);
    ck_assert_int_eq(last_good_set(last_good, &name), 0);
    snprintf(text_file, sizeof text_file, "%s/policy-%s.yaml", folder, policy->hash);
    policy_unref(policy);
}

static const char one_rule[] = "version: 1\nrules: [ { name: a, match: all, env: { A: b } } ]\n";

static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    strcat(folder, "/state");
    snprintf(name_file, sizeof name_file, "%s/last-good", folder);
    open_rooms(main_file);
    set(one_rule);
}

static void tear_down(void)
{
    close_rooms();
    unit_folder_remove();
}

/* The daemon after this one. */
static void start_anew(const char *file)
{
    close_rooms();
    open_rooms(file);
}

static struct policy *load(void)
{
    struct policy *policy;
    char *why;

    ck_assert_int_eq(last_good_load(last_good, &policy, &why), 0);
    ck_assert_msg(!policy || !why, "%s", why);
    free(why);
    return policy;
}

static void is_none(const char *reason)
{
    struct policy *policy;
    char *why;

    ck_assert_int_eq(last_good_load(last_good, &policy, &why), 0);
    ck_assert_ptr_null(policy);
    ck_assert_int_eq(why != NULL, reason != NULL);
    ck_assert_msg(!reason || strstr(why, reason), "%s instead of %s", why, reason);
    free(why);
}

START_TEST(what_was_set_last_is_loaded)
{
    struct policy *policy, *first = policy_of(one_rule);
    uint8_t id[RECORD_POLICY_SIZE];

    set_up();
    start_anew(main_file);
    policy = load();
    ck_assert_ptr_nonnull(policy);
    ck_assert_str_eq(policy->hash, first->hash);
    ck_assert_str_eq(policy->rules[0].name, "a");
    ck_assert_str_eq(policy->files[0].name, text_file);
    policy_id(first, id);
    ck_assert(last_good_is(last_good, id));
    policy_unref(policy);
    policy_unref(first);
    set("version: 1\nrules: [ { name: b, match: all, env: { A: b } } ]\n");
    ck_assert(!last_good_is(last_good, id));
    start_anew(main_file);
    policy = load();
    ck_assert_str_eq(policy->rules[0].name, "b");
    policy_unref(policy);
    last_good_clear(last_good);
    is_none(NULL);
    tear_down();
}
END_TEST

START_TEST(one_of_another_file_stays_its_own)
{
    uint8_t id[RECORD_POLICY_SIZE];
    struct policy *first = policy_of(one_rule), *policy;

    set_up();
    policy_id(first, id);
    start_anew("/etc/other.yaml");
    is_none("it was loaded from /etc/di");
    ck_assert(last_good_is(last_good, id));
    start_anew(NULL);
    is_none("it was loaded from");
    start_anew(main_file);
    policy = load();
    ck_assert_ptr_nonnull(policy);
    policy_unref(policy);
    policy_unref(first);
    tear_down();
}
END_TEST

static char *read_file(const char *path, size_t *ret_length)
{
    static char bytes[16384];
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, bytes, sizeof bytes);

    close(fd);
    ck_assert_int_gt(length, 0);
    *ret_length = (size_t)length;
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
    close(fd);
}

/* Cut at every length, and with each byte another one. */
static void takes_nothing_else(const char *path, const char *reason)
{
    size_t length;
    char *bytes = read_file(path, &length);
    struct policy *policy;

    for (size_t n = 0; n < length; n++) {
        write_file(path, bytes, n);
        is_none(reason);
    }
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 1;
        write_file(path, bytes, length);
        is_none(reason);
        bytes[i] ^= 1;
    }
    bytes[length] = '\n';
    write_file(path, bytes, length + 1);
    is_none(reason);
    write_file(path, bytes, length);
    policy = load();
    ck_assert_ptr_nonnull(policy);
    policy_unref(policy);
}

START_TEST(what_is_not_as_it_was_written_is_none)
{
    set_up();
    takes_nothing_else(name_file, "is not as it was written");
    takes_nothing_else(text_file, "is not as it was written");
    tear_down();
}
END_TEST

/* With a sum that is right: what it says counts then, and no path can be made of it. */
static void forge(const char *from, const char *to)
{
    size_t length;
    char *bytes = read_file(name_file, &length), sum[POLICY_HASH_SIZE], *at;
    struct policy_source source = {.bytes = bytes, .length = length - 70};

    ck_assert_uint_eq(strlen(from), strlen(to));
    bytes[length] = '\0';
    at = strstr(bytes, from);
    ck_assert_ptr_nonnull(at);
    memcpy(at, to, strlen(to));
    policy_source_hash(&source, sum);
    memcpy(bytes + length - 65, sum, 64);
    write_file(name_file, bytes, length);
}

START_TEST(what_it_says_counts)
{
    set_up();
    forge("diagport.yaml", "diagport.yamm");
    is_none("it was loaded from");
    forge("diagport.yamm", "diagport.yaml");
    forge("policy 1", "policy 2");
    is_none("is not as it was written");
    tear_down();
}
END_TEST

START_TEST(of_another_boot_it_is_none)
{
    uint8_t id[RECORD_POLICY_SIZE];
    struct policy *first = policy_of(one_rule);
    size_t length;
    char digit[8] = "boot ?";

    set_up();
    policy_id(first, id);
    policy_unref(first);
    start_anew(main_file);
    digit[5] = strstr(read_file(name_file, &length), "boot ")[5];
    forge(digit, digit[5] == '0' ? "boot 1" : "boot 0");
    is_none("not of this boot");
    ck_assert(!last_good_is(last_good, id));
    tear_down();
}
END_TEST

static void rewrite(const char *path, mode_t mode)
{
    ck_assert_int_eq(chmod(path, mode), 0);
    is_none("Operation not permitted");
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void link_away(const char *path)
{
    char other[420];

    snprintf(other, sizeof other, "%s.other", path);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
    is_none("Operation not permitted");
    ck_assert_int_eq(rename(other, path), 0);
}

START_TEST(what_others_could_have_written_is_none)
{
    struct policy *policy;

    set_up();
    rewrite(name_file, 0602);
    rewrite(name_file, 0620);
    rewrite(text_file, 0604);
    link_away(name_file);
    link_away(text_file);
    policy = load();
    ck_assert_ptr_nonnull(policy);
    policy_unref(policy);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(text_file, 4711, 4711), 0);
        is_none("Operation not permitted");
    }
    tear_down();
}
END_TEST

START_TEST(what_this_version_cannot_read_is_told)
{
    static const char newer[] = "version: 1\nrules: [ { name: a, match: all, wish: 1 } ]\n";
    struct policy_source source = {.bytes = newer, .length = strlen(newer)};
    char hash[POLICY_HASH_SIZE], old_line[80], new_line[80], *at;
    size_t length;

    set_up();
    write_file(text_file, newer, strlen(newer));
    policy_source_hash(&source, hash);
    at = strstr(read_file(name_file, &length), "text ");
    snprintf(old_line, sizeof old_line, "%.69s", at);
    snprintf(new_line, sizeof new_line, "text %s", hash);
    forge(old_line, new_line);
    is_none("cannot be read by this version: ");
    tear_down();
}
END_TEST

/* Whoever dies before the file has its name leaves the one before. */
START_TEST(a_death_on_the_way_changes_nothing)
{
    struct policy *policy;
    char other[320];
    int fd;

    set_up();
    snprintf(other, sizeof other, "%s/last-good.new", folder);
    fd = open(other, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "diagport last", 13), 13);
    close(fd);
    start_anew(main_file);
    policy = load();
    ck_assert_ptr_nonnull(policy);
    policy_unref(policy);
    set(one_rule);
    ck_assert_int_eq(access(other, F_OK), -1);
    tear_down();
}
END_TEST

static ino_t inode_of(const char *path)
{
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & ALLPERMS, 0600);
    return status.st_ino;
}

/* A reload of the same policy writes nothing; what somebody has touched is written again. */
START_TEST(what_is_so_already_is_left_alone)
{
    const char *const files[] = {name_file, text_file};

    set_up();
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        ino_t before = inode_of(files[i]);

        set(one_rule);
        ck_assert_uint_eq(inode_of(files[i]), before);
        ck_assert_int_eq(chmod(files[i], 0640), 0);
        set(one_rule);
        ck_assert_uint_ne(inode_of(files[i]), before);
    }
    tear_down();
}
END_TEST

/* What cannot be noted leaves no older one. */
START_TEST(a_failure_leaves_none)
{
    struct policy *policy;
    struct snapshot_name name;
    char other[320];

    set_up();
    policy = policy_of("version: 1\n");
    ck_assert_int_eq(snapshots_keep(snapshots, policy, &name), 0);
    policy_unref(policy);
    snprintf(other, sizeof other, "%s/last-good.new", folder);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert_int_ne(last_good_set(last_good, &name), 0);
    is_none(NULL);
    tear_down();
}
END_TEST

static int load_once(void *context)
{
    struct policy *policy;
    char *why;
    int error = last_good_load(last_good, &policy, &why);
    bool is_loaded = policy != NULL;

    (void)context;
    policy_unref(policy);
    free(why);
    return error == 0 && !is_loaded ? -ENOMEM : error;
}

START_TEST(memory_runs_out)
{
    set_up();
    ck_assert_uint_gt(unit_memory_exhaust(load_once, NULL, -ENOMEM), 5);
    tear_down();
}
END_TEST

UNIT_TESTS(what_was_set_last_is_loaded, one_of_another_file_stays_its_own,
           what_is_not_as_it_was_written_is_none, what_it_says_counts, of_another_boot_it_is_none,
           what_others_could_have_written_is_none, what_this_version_cannot_read_is_told,
           a_death_on_the_way_changes_nothing, what_is_so_already_is_left_alone,
           a_failure_leaves_none, memory_runs_out);
