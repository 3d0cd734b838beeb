/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

/* As Linux 6.18 has it; the name in between is put in by the test. */
static const char stat_before[] = "8301 (";
static const char stat_after[] =
    ") S 8289 8301 8289 34816 8301 4194304 1093 0 0 0 3 2 0 0 20 0 3 0 2217046 274877906944 2012 "
    "18446744073709551615 94030184255488 94030184327229 140732546 0 0 0 0 4096 17642 1 0 0 17 1 0 "
    "0 0 0 0 94030184 94030184 94030185 140732546 140732546 140732546 140732546 0\n";

static bool read_stat(const char *text, size_t length, struct procfs_stat *ret_stat)
{
    char *copy = (char *)unit_copy(text, length);
    bool is_read = procfs_read_stat(copy, length, ret_stat);

    free(copy);
    return is_read;
}

START_TEST(stat_is_read_whatever_the_name_is)
{
    static const char *const names[] = {
        "dotnet",
        "",
        "(sd-pam)",
        ")",
        ")) R 1 2 3",
        "a b",
        "x) Z 1 (",
        "\n",
        "(",
        "((((",
        "\t",
        ") S 1 1 1 ",
        "\xFF\xC3)",
        "a\\012b",
        "R 1 1",
        "1 (a) S",
        "fifteen-letters",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct procfs_stat stat;
        char text[1000];
        int length = snprintf(text, sizeof text, "%s%s%s", stat_before, names[i], stat_after);

        ck_assert_msg(read_stat(text, (size_t)length, &stat), "%s", names[i]);
        ck_assert_int_eq(stat.pid, 8301);
        ck_assert_int_eq(stat.state, 'S');
        ck_assert_int_eq(stat.parent, 8289);
        ck_assert_uint_eq(stat.start_time, 2217046);
    }
}
END_TEST

/* The threads of a program may go on when its first one has ended: a zombie of more than one thread
 * lives. Linux 6.18 shows 1 for a process that waits for its parent, and 0 for one that is gone. */
START_TEST(a_process_has_ended_with_its_last_thread)
{
    static const struct {
        const char *state;
        int n_threads;
        bool has_ended;
    } rows[] = {{"S", 3, false}, {"S", 1, false}, {"T", 1, false}, {"R", 0, false}, {"Z", 2, false},
                {"Z", 1, true},  {"Z", 0, true},  {"X", 0, true},  {"X", 1, true},  {"x", 0, true}};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct procfs_stat stat;
        char text[200];
        int length = snprintf(text, sizeof text,
                              "7603 (a) %s 7588 7588 16471 0 -1 4227084 93 0 0 0 0 0 0 0 20 0 %d 0 "
                              "752283 0 0 18446744073709551615\n",
                              rows[i].state, rows[i].n_threads);

        ck_assert(read_stat(text, (size_t)length, &stat));
        ck_assert_uint_eq(stat.start_time, 752283);
        ck_assert_msg(stat.has_ended == rows[i].has_ended, "%s with %d threads", rows[i].state,
                      rows[i].n_threads);
    }
}
END_TEST

/* Before the start time is complete, which the blank behind it tells, nothing is read. */
START_TEST(cut_stat_is_refused)
{
    struct procfs_stat stat;
    char text[1000];
    size_t length = (size_t)snprintf(text, sizeof text, "%sdotnet%s", stat_before, stat_after);
    size_t enough = (size_t)(strstr(text, "2217046 ") - text) + strlen("2217046 ");

    for (size_t i = 0; i <= length; i++)
        ck_assert(read_stat(text, i, &stat) == (i >= enough));
    ck_assert(!procfs_read_stat(NULL, 0, &stat));
}
END_TEST

START_TEST(malformed_stat_is_refused)
{
    static const char *const texts[] = {
        "x (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "-1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "2147483648 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 a S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 )a( S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 (a) SS 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 (a) 5 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 (a) S x 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 (a) S -1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 5 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 x 1 1 1 5 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 - 1 1 1 5 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -1 1 5 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 x 1 5 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -5 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 18446744073709551616 1\n",
        "1 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
    };
    static const char good[] =
        "1 (a) S 0 1 1 -1 -1 1 1 1 1 1 1 1 1 1 1 1 1 1 18446744073709551615 1\n";
    struct procfs_stat stat = {.pid = 99};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        ck_assert_msg(!read_stat(texts[i], strlen(texts[i]), &stat), "%s", texts[i]);
    ck_assert_int_eq(stat.pid, 99);
    ck_assert(read_stat(good, strlen(good), &stat));
    ck_assert_uint_eq(stat.start_time, UINT64_MAX);
    ck_assert_int_eq(stat.parent, 0);
}
END_TEST

static bool read_status(const char *text, size_t length, struct procfs_status *ret_status)
{
    char *copy = (char *)unit_copy(text, length);
    bool is_read = procfs_read_status(copy, length, ret_status);

    free(copy);
    return is_read;
}

/* As Linux 6.18 has it: the name is escaped, Groups ends in a blank. */
static const char status_text[] = "Name:\tdot\\nUid:\\t0\n"
                                  "Umask:\t0022\n"
                                  "State:\tS (sleeping)\n"
                                  "Tgid:\t8301\n"
                                  "Pid:\t8301\n"
                                  "PPid:\t8289\n"
                                  "Uid:\t1000\t1001\t1002\t1003\n"
                                  "Gid:\t2000\t2001\t2002\t2003\n"
                                  "FDSize:\t64\n"
                                  "Groups:\t4 24 100000 \n"
                                  "NStgid:\t8301\t17\n"
                                  "NSpid:\t8301\t17\n"
                                  "NSpgid:\t8301\t17\n"
                                  "VmPeak:\t    3072 kB\n";

START_TEST(status_is_read)
{
    struct procfs_status status;

    ck_assert(read_status(status_text, strlen(status_text), &status));
    ck_assert_uint_eq(status.real_uid, 1000);
    ck_assert_uint_eq(status.uid, 1001);
    ck_assert_uint_eq(status.real_gid, 2000);
    ck_assert_uint_eq(status.gid, 2001);
    ck_assert_uint_eq(status.n_groups, 3);
    ck_assert_uint_eq(status.groups[0], 4);
    ck_assert_uint_eq(status.groups[1], 24);
    ck_assert_uint_eq(status.groups[2], 100000);
    ck_assert_uint_eq(status.n_ns_pids, 2);
    ck_assert_uint_eq(status.ns_pid, 17);
    free(status.groups);
}
END_TEST

START_TEST(groups_and_namespaces_may_be_missing)
{
    static const char *const texts[] = {
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\t \n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\n",
        "Gid: 2 2 2 2\nUid: 1 1 1 1\n",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct procfs_status status;

        ck_assert(read_status(texts[i], strlen(texts[i]), &status));
        ck_assert_uint_eq(status.uid, 1);
        ck_assert_uint_eq(status.gid, 2);
        ck_assert_uint_eq(status.n_groups, 0);
        ck_assert_uint_eq(status.n_ns_pids, 0);
        ck_assert_uint_eq(status.ns_pid, 0);
        free(status.groups);
    }
}
END_TEST

/* What is read of a cut text is never a part of a number. */
START_TEST(status_may_be_cut_anywhere)
{
    size_t length = strlen(status_text);
    size_t enough = (size_t)(strstr(status_text, "FDSize") - status_text);

    for (size_t i = 0; i <= length; i++) {
        struct procfs_status status;
        static const uint32_t groups[] = {4, 24, 100000};

        ck_assert(read_status(status_text, i, &status) == (i >= enough));
        if (i < enough)
            continue;
        ck_assert_uint_eq(status.uid, 1001);
        ck_assert_uint_eq(status.gid, 2001);
        for (size_t k = 0; k < status.n_groups; k++)
            ck_assert_uint_eq(status.groups[k], groups[k]);
        ck_assert(status.n_ns_pids == 0 || (status.n_ns_pids == 2 && status.ns_pid == 17));
        free(status.groups);
    }
    ck_assert(!procfs_read_status(NULL, 0, &(struct procfs_status){0}));
}
END_TEST

START_TEST(malformed_status_is_refused)
{
    static const char *const texts[] = {
        "Gid:\t2\t2\t2\t2\n",
        "Uid:\t1\t1\t1\t1\n",
        "Uid:\t1\t1\t1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t1\t1\t-1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t4294967296\t1\t1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t1x\t1\t1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t01\t1\t1\nGid:\t2\t2\t2\t2\n",
        "uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\n",
        " Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\t4 x \n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nNSpid:\t4\t?\n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nNSpid:\t\n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nUid:\t0\t0\t0\t0\n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\t1 \nGroups:\t0 \n",
        "Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nNSpid:\t1\nNSpid:\t2\n",
    };
    struct procfs_status status = {.uid = 99};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        ck_assert_msg(!read_status(texts[i], strlen(texts[i]), &status), "%s", texts[i]);
    ck_assert_uint_eq(status.uid, 99);
}
END_TEST

START_TEST(motion_is_read)
{
    static const char text[] = "Name:\tState: (x)\n"
                               "State:\tS (sleeping)\n"
                               "Tgid:\t12\n"
                               "voluntary_ctxt_switches:\t150\n"
                               "nonvoluntary_ctxt_switches:\t545\n";
    struct procfs_motion motion;

    ck_assert(procfs_read_motion(text, strlen(text), &motion));
    ck_assert_int_eq(motion.state, 'S');
    ck_assert_uint_eq(motion.n_switches, 695);
    /* Cut, it says nothing. */
    for (size_t length = 0; length < strlen(text); length++)
        ck_assert(!procfs_read_motion(text, length, &motion));
}
END_TEST

START_TEST(random_texts_do_no_harm)
{
    static const char bytes[] = "Uid:Gid:Groups:NSpid:\t \n0123456789()-RS\0\xFF";
    uint64_t state = 13;

    for (unsigned round = 0; round < 20000; round++) {
        struct procfs_status status;
        struct procfs_stat stat;
        char text[sizeof status_text];
        size_t length = strlen(status_text);

        memcpy(text, status_text, length);
        for (unsigned i = unit_random(&state) % 8; i > 0; i--)
            text[unit_random(&state) % length] = bytes[unit_random(&state) % (sizeof bytes - 1)];
        length -= unit_random(&state) % 2 * (unit_random(&state) % length);
        if (read_status(text, length, &status))
            free(status.groups);
        for (size_t i = 0; i < length; i++)
            text[i] = bytes[unit_random(&state) % (sizeof bytes - 1)];
        (void)!read_stat(text, length, &stat);
        if (read_status(text, length, &status))
            free(status.groups);
    }
}
END_TEST

static int read_text(void *context)
{
    struct procfs_status status;

    if (!procfs_read_status(context, strlen(context), &status))
        return -ENOMEM;
    free(status.groups);
    return 0;
}

START_TEST(running_out_of_memory_is_said)
{
    char text[] = "Groups:\t1 2 \nUid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\n";

    ck_assert_uint_eq(unit_memory_exhaust(read_text, text, -ENOMEM), 1);
}
END_TEST

START_TEST(rights_are_read)
{
    static const char text[] = "Name:\ta\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000000006\n";
    uint64_t rights = 0;

    ck_assert(procfs_read_capabilities(text, strlen(text), &rights));
    ck_assert_uint_eq(rights, 6);
    for (size_t length = 0; length < strlen(text); length++)
        ck_assert(!procfs_read_capabilities(text, length, &rights));
    ck_assert(!procfs_read_capabilities("CapEff:\t\n", 9, &rights));
    ck_assert(!procfs_read_capabilities("CapEff:\t1g\n", 11, &rights));
    ck_assert(!procfs_read_capabilities("CapEff:\t00000000000000001\n", 26, &rights));
}
END_TEST

START_TEST(maps_of_user_namespaces_are_read)
{
    static const char text[] =
        "         0     100000      65536\n     65536       1000          1\n";
    static const char everybody[] = "         0          0 4294967295\n";

    ck_assert(procfs_map_has(text, strlen(text), 100000));
    ck_assert(procfs_map_has(text, strlen(text), 165535));
    ck_assert(procfs_map_has(text, strlen(text), 1000));
    ck_assert(!procfs_map_has(text, strlen(text), 165536));
    ck_assert(!procfs_map_has(text, strlen(text), 0));
    ck_assert(!procfs_map_has(text, strlen(text) - 1, 1000));
    ck_assert(procfs_map_has(everybody, strlen(everybody), 0));
    ck_assert(!procfs_map_has("0 0\n", 4, 0));
    ck_assert(!procfs_map_has(NULL, 0, 0));
}
END_TEST

UNIT_TESTS(rights_are_read, maps_of_user_namespaces_are_read, stat_is_read_whatever_the_name_is,
           a_process_has_ended_with_its_last_thread, cut_stat_is_refused, malformed_stat_is_refused,
           status_is_read, groups_and_namespaces_may_be_missing, status_may_be_cut_anywhere,
           malformed_status_is_refused, motion_is_read, random_texts_do_no_harm,
           running_out_of_memory_is_said);
