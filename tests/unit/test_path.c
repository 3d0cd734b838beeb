/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/path.h"
#include "tests/unit/unit_folder.h"

/* The inodes of a walk, by the names under which the tests know them. */
static char folder[64];
static int root;
static ino_t seen[64];
static size_t n_seen, seen_max;

static bool remember(void *context, const struct stat *status, int place)
{
    struct stat again;

    (void)context;
    ck_assert_int_eq(fstat(place, &again), 0);
    ck_assert_uint_eq(again.st_ino, status->st_ino);
    if (n_seen == seen_max)
        return false;
    seen[n_seen++] = status->st_ino;
    return true;
}

static int follow(const char *path, enum path_bound bound)
{
    struct path_walk walk = {.root = root, .start = root, .bound = bound, .step = remember};
    int fd;

    n_seen = 0;
    fd = path_follow(&walk, path);
    if (fd >= 0) {
        struct stat status;

        ck_assert_int_eq(fstat(fd, &status), 0);
        ck_assert_uint_eq(status.st_ino, seen[n_seen - 1]);
        close(fd);
        return 0;
    }
    return fd;
}

static ino_t inode_of(const char *name)
{
    struct stat status;

    ck_assert_int_eq(fstatat(root, name, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_ino;
}

/* `path` is found, by way of the `places`, a list of names with spaces between. */
static void goes(const char *path, enum path_bound bound, const char *places)
{
    char copy[256], *name, *rest = NULL;
    size_t n = 0;

    ck_assert_int_eq(follow(path, bound), 0);
    snprintf(copy, sizeof copy, "%s", places);
    for (name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        ck_assert_uint_lt(n, n_seen);
        ck_assert_msg(seen[n] == inode_of(name), "%s: step %zu is not %s", path, n, name);
        n++;
    }
    ck_assert_uint_eq(n, n_seen);
}

static void link_to(const char *target, const char *name)
{
    ck_assert_int_eq(symlinkat(target, root, name), 0);
}

/* a/b/file and c/file, and what leads to them. */
static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    seen_max = 64;
    ck_assert_int_eq(mkdirat(root, "a", 0755), 0);
    ck_assert_int_eq(mkdirat(root, "a/b", 0755), 0);
    ck_assert_int_eq(mkdirat(root, "c", 0755), 0);
    unit_folder_write("a/b/file", "x", 0644);
    unit_folder_write("c/file", "x", 0644);
}

static void tear_down(void)
{
    close(root);
    unit_folder_remove();
}

START_TEST(everything_on_the_way_is_shown)
{
    set_up();
    goes("a/b/file", PATH_BENEATH, ". a a/b a/b/file");
    goes("/a//b///file", PATH_IN_ROOT, ". a a/b a/b/file");
    goes("./a/./b/.", PATH_BENEATH, ". a a/b");
    goes("a/b/", PATH_BENEATH, ". a a/b");
    goes("a/../c/file", PATH_BENEATH, ". a . c c/file");
    goes("/", PATH_IN_ROOT, ".");
    goes(".", PATH_BENEATH, ".");
    tear_down();
}
END_TEST

/* Also what only a link leads through: who cannot enter there cannot get there. */
START_TEST(links_are_taken_apart)
{
    set_up();
    link_to("b/file", "a/near");
    goes("a/near", PATH_BENEATH, ". a a/b a/b/file");
    link_to("../c/file", "a/other");
    goes("a/other", PATH_BENEATH, ". a . c c/file");
    link_to("/c", "a/far");
    goes("a/far/file", PATH_IN_ROOT, ". a . c c/file");
    link_to("a/far", "again");
    goes("again/file", PATH_IN_ROOT, ". a . c c/file");
    link_to("a/b/", "slash");
    goes("slash/file", PATH_BENEATH, ". a a/b a/b/file");
    tear_down();
}
END_TEST

START_TEST(the_root_is_not_left)
{
    set_up();
    goes("/../../a/b", PATH_IN_ROOT, ". a a/b");
    goes("../a", PATH_IN_ROOT, ". a");
    link_to("../../../c/file", "a/up");
    goes("a/up", PATH_IN_ROOT, ". a . c c/file");
    ck_assert_int_eq(follow("a/up", PATH_BENEATH), -EXDEV);
    ck_assert_int_eq(follow("..", PATH_BENEATH), -EXDEV);
    ck_assert_int_eq(follow("a/../..", PATH_BENEATH), -EXDEV);
    ck_assert_int_eq(follow("/a", PATH_BENEATH), -EXDEV);
    link_to("/a", "absolute");
    ck_assert_int_eq(follow("absolute", PATH_BENEATH), -EXDEV);
    tear_down();
}
END_TEST

START_TEST(a_relative_path_begins_elsewhere)
{
    struct path_walk walk = {.bound = PATH_IN_ROOT, .step = remember};
    int fd;

    set_up();
    walk.root = root;
    walk.start = openat(root, "a/b", O_PATH | O_CLOEXEC);
    n_seen = 0;
    fd = path_follow(&walk, "../../../c/file");
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_uint_eq(n_seen, 5);
    ck_assert_uint_eq(seen[0], inode_of("a/b"));
    ck_assert_uint_eq(seen[1], inode_of("a"));
    ck_assert_uint_eq(seen[2], inode_of("."));
    ck_assert_uint_eq(seen[4], inode_of("c/file"));
    close(walk.start);
    /* Of no matter for an absolute one. */
    walk.start = -1;
    fd = path_follow(&walk, "/c/file");
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(path_follow(&walk, "c/file"), -EBADF);
    tear_down();
}
END_TEST

START_TEST(what_cannot_be_followed)
{
    char name[NAME_MAX + 20], path[PATH_MAX + 1];

    set_up();
    ck_assert_int_eq(follow("", PATH_IN_ROOT), -ENOENT);
    ck_assert_int_eq(follow("nowhere/file", PATH_IN_ROOT), -ENOENT);
    ck_assert_int_eq(follow("c/file/more", PATH_IN_ROOT), -ENOTDIR);
    ck_assert_int_eq(follow("c/file/", PATH_IN_ROOT), -ENOTDIR);
    ck_assert_int_eq(follow("c/file/.", PATH_IN_ROOT), -ENOTDIR);
    ck_assert_int_eq(follow("c/file/..", PATH_IN_ROOT), -ENOTDIR);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(follow(name, PATH_IN_ROOT), -ENAMETOOLONG);
    memset(path, '/', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    ck_assert_int_eq(follow(path, PATH_IN_ROOT), -ENAMETOOLONG);
    path[sizeof path - 2] = '\0';
    ck_assert_int_eq(follow(path, PATH_IN_ROOT), 0);
    link_to("loop", "loop");
    ck_assert_int_eq(follow("loop", PATH_IN_ROOT), -ELOOP);
    seen_max = 2;
    ck_assert_int_eq(follow("a/b/file", PATH_IN_ROOT), -ECANCELED);
    seen_max = 0;
    ck_assert_int_eq(follow("a", PATH_IN_ROOT), -ECANCELED);
    tear_down();
}
END_TEST

START_TEST(forty_links_and_no_more)
{
    char target[16] = "c", name[16];

    set_up();
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof name, "l%d", i);
        link_to(target, name);
        memcpy(target, name, sizeof name);
    }
    goes("l40/file", PATH_BENEATH, ". c c/file");
    ck_assert_int_eq(follow("l41/file", PATH_BENEATH), -ELOOP);
    tear_down();
}
END_TEST

/* A link to itself with ever more behind it. */
START_TEST(what_grows_too_long)
{
    char target[PATH_MAX];

    set_up();
    memset(target, '/', sizeof target);
    memcpy(target, "grows", 5);
    target[sizeof target - 1] = '\0';
    link_to(target, "grows");
    ck_assert_int_eq(follow("grows/file", PATH_BENEATH), -ENAMETOOLONG);
    tear_down();
}
END_TEST

UNIT_TESTS(everything_on_the_way_is_shown, links_are_taken_apart, the_root_is_not_left,
           a_relative_path_begins_elsewhere, what_cannot_be_followed, forty_links_and_no_more,
           what_grows_too_long);
