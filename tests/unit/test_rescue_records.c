/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the rescue leaves for the next daemon, as that daemon reads it: who was
 * resumed has a record, or is older than what is believed.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store.h"
#include "lib/procfs.h"
#include "rescue/records.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_record.h"

static char folder[256], path[300];

static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    strcat(folder, "/state");
    snprintf(path, sizeof path, "%s/records", folder);
}

/* What a daemon finds; it goes again at once. */
static enum broker_trust daemon_finds(uint64_t *ret_until)
{
    struct store_found found;
    struct store *store;
    int error;

    store = store_claim(folder, &error);
    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(store_open(store, &found), 0);
    *ret_until = found.distrusted_until;
    free(found.why);
    store_close(store);
    return found.trust;
}

static enum broker_trust daemon_was_here(void)
{
    uint64_t ignored;

    return daemon_finds(&ignored);
}

/* A record of this very process, which lives. */
static struct record own_record(uint8_t cookie)
{
    struct record record = {.phase = RECORD_RESUMED, .pid = getpid(), .cookie = {{cookie}}};
    struct procfs_stat stat;
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY);
    ssize_t length = read(fd, text, sizeof text);

    close(fd);
    ck_assert(procfs_read_stat(text, (size_t)length, &stat));
    record.start_time = stat.start_time;
    return record;
}

static void put_slot(uint32_t slot, const struct record *record)
{
    struct record numbered = *record;
    uint8_t bytes[RECORD_SLOT_SIZE] = {0}, mark[RECORD_MARK_SIZE];
    int fd = open(path, O_WRONLY);

    numbered.sequence = 1;
    record_write(&numbered, mark);
    record_put(bytes, mark);
    ck_assert_int_eq(pwrite(fd, bytes, sizeof bytes,
                            RECORD_HEADER_SIZE + (off_t)slot * RECORD_SLOT_SIZE),
                     sizeof bytes);
    close(fd);
}

/* What a rescue does, in a process of its own: its lock ends with it. */
static void in_a_rescue(void (*what)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        what();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static struct moment at(int64_t seconds)
{
    return (struct moment){seconds * 1000000};
}

/* In the child a failed assertion is its exit status. */
#define HOLDS(condition)                                       \
    do {                                                       \
        if (!(condition)) {                                    \
            fprintf(stderr, "%s does not hold\n", #condition); \
            _exit(1);                                          \
        }                                                      \
    } while (0)

static struct record marked;
static enum records_state expected;

static void mark(void)
{
    records_open(folder, at(1));
    HOLDS(records_state() == expected);
    records_mark(&marked, at(1));
    HOLDS(!records_are_owed());
    HOLDS(moment_is_never(records_deadline()));
}

START_TEST(who_is_resumed_has_a_record)
{
    uint64_t until;

    set_up();
    ck_assert_int_eq(daemon_was_here(), BROKER_TRUSTS_RECORDS);
    marked = own_record(1);
    expected = RECORDS_KEPT;
    in_a_rescue(mark);
    ck_assert_int_eq(unit_record_at(path, 0).phase, RECORD_RESUMED);
    ck_assert_int_eq(unit_record_at(path, 0).pid, marked.pid);
    ck_assert_int_eq(daemon_finds(&until), BROKER_TRUSTS_RECORDS);
    /* A second rescue finds the place of the first. */
    in_a_rescue(mark);
    ck_assert_int_eq(unit_record_at(path, 1).phase, RECORD_NONE);
    unit_folder_remove();
}
END_TEST

static void mark_three(void)
{
    records_open(folder, at(1));
    for (uint8_t i = 0; i < 6; i++) {
        marked.cookie.bytes[0] = 1 + i % 3;
        records_mark(&marked, at(1));
    }
    HOLDS(records_n_unmarked() == 0);
}

START_TEST(each_has_a_record_of_its_own)
{
    set_up();
    (void)daemon_was_here();
    marked = own_record(0);
    in_a_rescue(mark_three);
    for (uint8_t i = 0; i < 3; i++)
        ck_assert_int_eq(unit_record_at(path, i).cookie.bytes[0], 1 + i);
    ck_assert_int_eq(unit_record_at(path, 3).phase, RECORD_NONE);
    unit_folder_remove();
}
END_TEST

START_TEST(a_plan_that_was_begun_is_over)
{
    struct record begun = own_record(1);

    set_up();
    (void)daemon_was_here();
    begun.phase = RECORD_BEGUN;
    put_slot(70, &begun);
    marked = own_record(1);
    expected = RECORDS_KEPT;
    in_a_rescue(mark);
    ck_assert_int_eq(unit_record_at(path, 70).phase, RECORD_RESUMED);
    ck_assert_int_eq(unit_record_at(path, 0).phase, RECORD_NONE);
    /* Another one gets another place. */
    marked = own_record(2);
    in_a_rescue(mark);
    ck_assert_int_eq(unit_record_at(path, 0).phase, RECORD_RESUMED);
    ck_assert_int_eq(unit_record_at(path, 0).cookie.bytes[0], 2);
    unit_folder_remove();
}
END_TEST

static void must_be_distrusted(void)
{
    uint64_t until;

    in_a_rescue(mark);
    ck_assert_int_eq(daemon_finds(&until), BROKER_DISTRUSTS_RECORDS);
    ck_assert_uint_ge(until, own_record(1).start_time);
    unit_folder_remove();
}

START_TEST(who_cannot_be_marked_is_not_taken_for_new)
{
    /* Nothing says when it was started, or who it is. */
    for (int i = 0; i < 2; i++) {
        set_up();
        (void)daemon_was_here();
        marked = own_record(1);
        if (i == 0)
            marked.start_time = 0;
        else
            marked.pid = 0;
        expected = RECORDS_KEPT;
        must_be_distrusted();
    }
}
END_TEST

START_TEST(a_full_file)
{
    struct record other = own_record(0);
    uint8_t *bytes = calloc(RECORD_SLOTS, RECORD_SLOT_SIZE);
    int fd;

    set_up();
    (void)daemon_was_here();
    for (uint32_t i = 0; i < RECORD_SLOTS; i++) {
        other.cookie.bytes[14] = (uint8_t)(i >> 8);
        other.cookie.bytes[15] = (uint8_t)i;
        other.sequence = 2;
        record_write(&other, bytes + (size_t)i * RECORD_SLOT_SIZE);
    }
    fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, bytes, (size_t)RECORD_SLOTS * RECORD_SLOT_SIZE, RECORD_HEADER_SIZE),
                     RECORD_SLOTS * RECORD_SLOT_SIZE);
    close(fd);
    free(bytes);
    marked = own_record(1);
    expected = RECORDS_KEPT;
    must_be_distrusted();
}
END_TEST

static void damage(const char *content, size_t length)
{
    int fd = open(path, O_WRONLY);

    ck_assert_int_eq(pwrite(fd, content, length, 8), (ssize_t)length);
    close(fd);
}

START_TEST(a_file_that_is_not_whole)
{
    for (int i = 0; i < 4; i++) {
        set_up();
        (void)daemon_was_here();
        marked = own_record(1);
        expected = RECORDS_DISTRUSTED;
        if (i == 0)
            ck_assert_int_eq(truncate(path, RECORD_FILE_SIZE - 1), 0);
        else if (i == 1)
            ck_assert_int_eq(truncate(path, 0), 0);
        else if (i == 2)
            damage("\x7f", 1); /* another version */
        else
            damage("\x55", 1);
        must_be_distrusted();
    }
    /* A slot is enough: both halves, which is more than one death in the middle of a mark does. */
    set_up();
    (void)daemon_was_here();
    {
        int fd = open(path, O_WRONLY);

        ck_assert_int_eq(pwrite(fd, "\x55", 1, RECORD_FILE_SIZE - 10), 1);
        ck_assert_int_eq(pwrite(fd, "\x55", 1, RECORD_FILE_SIZE - RECORD_MARK_SIZE - 10), 1);
        close(fd);
    }
    must_be_distrusted();
}
END_TEST

static void only_look(void)
{
    records_open(folder, at(1));
    HOLDS(records_state() == expected);
    records_retry(at(100));
}

/* Whatever version the next daemon has: the file is out of its way. */
START_TEST(a_file_of_another_version)
{
    char aside[320];
    uint64_t until;

    for (int i = 0; i < 2; i++) {
        set_up();
        (void)daemon_was_here();
        marked = own_record(1);
        expected = i == 0 ? RECORDS_OLDER : RECORDS_NEWER;
        if (i == 0)
            unit_record_make_older(path);
        else
            unit_record_make_newer(path);
        in_a_rescue(only_look);
        ck_assert_int_eq(access(path, F_OK), 0);
        in_a_rescue(mark);
        snprintf(aside, sizeof aside, "%s/%s", folder,
                 i == 0 ? RECORD_OLDER_FILE : RECORD_NEWER_FILE);
        ck_assert_int_eq(access(aside, F_OK), 0);
        ck_assert_int_eq(daemon_finds(&until), BROKER_DISTRUSTS_RECORDS);
        ck_assert_uint_ge(until, marked.start_time);
        unit_folder_remove();
    }
}
END_TEST

START_TEST(a_file_that_is_missing)
{
    char other[320];

    set_up();
    (void)daemon_was_here();
    snprintf(other, sizeof other, "%s/other", folder);
    ck_assert_int_eq(rename(path, other), 0);
    marked = own_record(1);
    expected = RECORDS_DISTRUSTED;
    must_be_distrusted();
    /* From an empty folder: to a daemon, that of a first start. */
    set_up();
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    expected = RECORDS_EMPTY;
    must_be_distrusted();
    /* The same with what a daemon left that died at its first start. */
    set_up();
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(other, sizeof other, "%s/records.new", folder);
    close(open(other, O_WRONLY | O_CREAT, 0600));
    must_be_distrusted();
    /* The folder itself. */
    set_up();
    expected = RECORDS_CLOSED;
    must_be_distrusted();
}
END_TEST

START_TEST(who_resumed_nobody_leaves_nothing)
{
    uint64_t until;

    set_up();
    expected = RECORDS_CLOSED;
    in_a_rescue(only_look);
    ck_assert_int_ne(access(folder, F_OK), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    expected = RECORDS_EMPTY;
    in_a_rescue(only_look);
    ck_assert_int_eq(daemon_finds(&until), BROKER_TRUSTS_RECORDS);
    expected = RECORDS_KEPT;
    in_a_rescue(only_look);
    ck_assert_int_eq(daemon_finds(&until), BROKER_TRUSTS_RECORDS);
    unit_folder_remove();
}
END_TEST

START_TEST(records_of_another_boot_are_begun_anew)
{
    static const uint8_t other_boot[RECORD_BOOT_SIZE] = {1};
    struct record old = own_record(9);
    uint8_t header[RECORD_HEADER_SIZE];
    uint64_t until;
    int fd;

    set_up();
    (void)daemon_was_here();
    put_slot(3, &old);
    record_write_header(other_boot, 4711, header);
    fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, header, sizeof header, 0), sizeof header);
    close(fd);
    marked = own_record(1);
    expected = RECORDS_KEPT;
    in_a_rescue(mark);
    ck_assert_int_eq(unit_record_at(path, 0).cookie.bytes[0], 1);
    ck_assert_int_eq(unit_record_at(path, 3).phase, RECORD_NONE);
    ck_assert_int_eq(daemon_finds(&until), BROKER_TRUSTS_RECORDS);
    ck_assert_int_eq(unit_record_at(path, 0).cookie.bytes[0], 1);
    unit_folder_remove();
}
END_TEST

static void mark_beside_a_daemon(void)
{
    int lock = open(folder, O_RDONLY | O_DIRECTORY);

    HOLDS(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0);
    records_open(folder, at(1));
    HOLDS(records_state() == RECORDS_LOCKED);
    records_mark(&marked, at(1));
    HOLDS(records_are_owed());
    records_retry(at(1));
    HOLDS(records_state() == RECORDS_LOCKED);
    HOLDS(records_deadline().us == at(2).us);
    HOLDS(unit_record_at(path, 0).phase == RECORD_NONE);
    close(lock);
    records_retry(moment_after(at(2), span_from_us(-1)));
    HOLDS(records_are_owed());
    records_retry(at(2));
    HOLDS(!records_are_owed() && records_state() == RECORDS_KEPT);
    /* From then on there are marks. */
    marked.cookie.bytes[0] = 2;
    records_mark(&marked, at(3));
    HOLDS(records_n_unmarked() == 1);
    HOLDS(unit_record_at(path, 0).cookie.bytes[0] == 2);
}

START_TEST(a_living_daemon_is_not_written_to)
{
    uint64_t until;

    set_up();
    (void)daemon_was_here();
    marked = own_record(1);
    in_a_rescue(mark_beside_a_daemon);
    ck_assert_int_eq(daemon_finds(&until), BROKER_DISTRUSTS_RECORDS);
    ck_assert_uint_ge(until, own_record(1).start_time);
    unit_folder_remove();
}
END_TEST

static void keep_a_daemon_out(void)
{
    int error;

    records_open(folder, at(1));
    HOLDS(!store_claim(folder, &error));
    HOLDS(error == -EBUSY);
}

START_TEST(the_folder_is_locked_while_it_runs)
{
    set_up();
    (void)daemon_was_here();
    in_a_rescue(keep_a_daemon_out);
    ck_assert_int_eq(daemon_was_here(), BROKER_TRUSTS_RECORDS);
    unit_folder_remove();
}
END_TEST

static void mark_where_nothing_can_be(void)
{
    records_open(folder, at(1));
    HOLDS(records_state() == RECORDS_CLOSED);
    records_mark(&marked, at(1));
    HOLDS(records_are_owed());
    HOLDS(records_n_unmarked() == 1);
}

START_TEST(a_folder_that_will_not_do)
{
    marked = own_record(1);
    set_up();
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(folder, 0770), 0);
    in_a_rescue(mark_where_nothing_can_be);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(symlink("/tmp", folder), 0);
    in_a_rescue(mark_where_nothing_can_be);
    ck_assert_int_eq(unlink(folder), 0);
    /* A link in the place of the file. */
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    in_a_rescue(mark_where_nothing_can_be);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
    strcat(folder, "/nowhere/state");
    in_a_rescue(mark_where_nothing_can_be);
    unit_folder_remove();
}
END_TEST

UNIT_TESTS(who_is_resumed_has_a_record, each_has_a_record_of_its_own, a_plan_that_was_begun_is_over,
           who_cannot_be_marked_is_not_taken_for_new, a_full_file, a_file_that_is_not_whole,
           a_file_of_another_version, a_file_that_is_missing, who_resumed_nobody_leaves_nothing,
           records_of_another_boot_are_begun_anew, a_living_daemon_is_not_written_to,
           the_folder_is_locked_while_it_runs, a_folder_that_will_not_do);
