/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records on disk: kept over restarts, and believed exactly as far as they can
 * be.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store.h"
#include "lib/policy.h"
#include "lib/procfs.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_record.h"

static char folder[256], records[300];

static uint64_t distrusted_until; /* found when it was opened last */

static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    strcat(folder, "/state");
    snprintf(records, sizeof records, "%s/records", folder);
}

static void opens(enum broker_trust trust, struct store **ret_store)
{
    struct store_found found;
    int error;

    *ret_store = store_claim(folder, &error);
    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(store_open(*ret_store, &found), 0);
    ck_assert_int_eq(found.trust, trust);
    distrusted_until = found.distrusted_until;
    ck_assert_int_eq(found.why != NULL, trust != BROKER_TRUSTS_RECORDS);
    free(found.why);
}

static void opens_once(enum broker_trust trust)
{
    struct store *store;

    opens(trust, &store);
    store_close(store);
}

/* A record of this very process, which lives. */
static struct record own_record(void)
{
    struct record record = {.phase = RECORD_BEGUN, .pid = getpid(), .cookie = {{1, 2, 3}}};
    struct procfs_stat stat;
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY);
    ssize_t length = read(fd, text, sizeof text);

    close(fd);
    ck_assert(procfs_read_stat(text, (size_t)length, &stat));
    record.start_time = stat.start_time;
    return record;
}

static void mark(struct store *store, uint32_t slot, const struct record *record)
{
    struct record numbered = *record;
    uint8_t bytes[RECORD_MARK_SIZE];

    numbered.sequence = 1;
    record_write(&numbered, bytes);
    store_mark(store, slot, bytes);
}

static struct policy *find_none(void *context, const uint8_t *id)
{
    (void)context;
    (void)id;
    return NULL;
}

static const struct store_policies no_policies = {.find = find_none};

static struct broker *new_broker(void)
{
    struct policy *policy = policy_new();
    struct broker_options options = {.policy = policy, .usable_descriptors = 100};
    struct broker *broker = broker_new(&options);

    policy_unref(policy);
    return broker;
}

START_TEST(a_first_start_is_trusted)
{
    struct stat status;

    set_up();
    opens_once(BROKER_TRUSTS_RECORDS);
    ck_assert_int_eq(stat(folder, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0700);
    ck_assert_int_eq(stat(records, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    ck_assert_int_eq(status.st_size, RECORD_FILE_SIZE);
    /* None of it has to be found when a disk is full. */
    ck_assert_int_ge(512 * status.st_blocks, RECORD_FILE_SIZE);
    opens_once(BROKER_TRUSTS_RECORDS);
    unit_folder_remove();
}
END_TEST

START_TEST(the_living_are_remembered_and_the_dead_are_not)
{
    struct record record = own_record(), other_start = record, dead = record;
    struct broker *broker;
    struct store *store;
    uint8_t bytes[RECORD_SLOT_SIZE];
    int fd;

    set_up();
    opens(BROKER_TRUSTS_RECORDS, &store);
    other_start.start_time++;
    dead.pid = INT32_MAX;
    mark(store, 7, &record);
    mark(store, 8, &other_start);
    mark(store, RECORD_SLOTS - 1, &dead);
    store_close(store);
    opens(BROKER_TRUSTS_RECORDS, &store);
    broker = new_broker();
    ck_assert_int_eq(store_recall(store, broker, &no_policies), 0);
    broker_free(broker);
    store_close(store);
    fd = open(records, O_RDONLY);
    for (uint32_t slot = 0; slot < RECORD_SLOTS; slot++) {
        struct record found;

        ck_assert_int_eq(pread(fd, bytes, sizeof bytes,
                               RECORD_HEADER_SIZE + (off_t)slot * RECORD_SLOT_SIZE),
                         sizeof bytes);
        ck_assert(record_read(bytes, &found));
        ck_assert_int_eq(found.phase, slot == 7 ? RECORD_BEGUN : RECORD_NONE);
    }
    close(fd);
    unit_folder_remove();
}
END_TEST

static void damage(void (*how)(void))
{
    struct record record = own_record();
    struct store *store;
    char damaged[320];
    uint64_t until;

    set_up();
    opens(BROKER_TRUSTS_RECORDS, &store);
    mark(store, 0, &record);
    store_close(store);
    how();
    opens_once(BROKER_DISTRUSTS_RECORDS);
    snprintf(damaged, sizeof damaged, "%s/records.damaged", folder);
    ck_assert_int_eq(access(damaged, F_OK), 0);
    /* The new file is whole, and says of whom the old one may have said more. */
    until = distrusted_until;
    ck_assert_uint_ge(until, record.start_time);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    ck_assert_uint_eq(distrusted_until, until);
    unit_folder_remove();
}

static void cut(void)
{
    ck_assert_int_eq(truncate(records, RECORD_FILE_SIZE - 1), 0);
}

static void cut_off(void)
{
    ck_assert_int_eq(truncate(records, 0), 0);
}

static void lengthen(void)
{
    ck_assert_int_eq(truncate(records, RECORD_FILE_SIZE + 1), 0);
}

static void overwrite(off_t offset)
{
    int fd = open(records, O_WRONLY);

    ck_assert_int_eq(pwrite(fd, "\x55", 1, offset), 1);
    close(fd);
}

static void change_version(void)
{
    overwrite(8);
}

static void damage_older(void)
{
    unit_record_make_older(records);
    overwrite(RECORD_HEADER_SIZE + 5);
    overwrite(RECORD_HEADER_SIZE + UNIT_RECORD_OLD_MARK + 5);
}

static void cut_older(void)
{
    unit_record_make_older(records);
    ck_assert_int_eq(truncate(records, 1000000), 0);
}

/* More than one death in the middle of a mark can do: both halves. */
static void change_slot(void)
{
    overwrite(RECORD_HEADER_SIZE + 5);
    overwrite(RECORD_HEADER_SIZE + RECORD_MARK_SIZE + 5);
}

static void change_free_slot(void)
{
    overwrite(RECORD_FILE_SIZE - 10);
    overwrite(RECORD_FILE_SIZE - RECORD_MARK_SIZE - 10);
}

START_TEST(damage_is_seen)
{
    damage(cut);
    damage(cut_off);
    damage(lengthen);
    damage(change_version);
    damage(change_slot);
    damage(change_free_slot);
    damage(damage_older);
    damage(cut_older);
}
END_TEST

START_TEST(a_missing_file_in_a_used_folder_is_not_trusted)
{
    char other[320];
    int fd;

    set_up();
    opens_once(BROKER_TRUSTS_RECORDS);
    snprintf(other, sizeof other, "%s/records.damaged", folder);
    ck_assert_int_eq(rename(records, other), 0);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    /* One that died while it made its file left no record. */
    unlink(records);
    unlink(other);
    snprintf(other, sizeof other, "%s/records.new", folder);
    fd = open(other, O_WRONLY | O_CREAT, 0600);
    close(fd);
    opens_once(BROKER_TRUSTS_RECORDS);
    unit_folder_remove();
}
END_TEST

START_TEST(records_of_another_boot_say_nothing)
{
    static const uint8_t other_boot[RECORD_BOOT_SIZE] = {1};
    uint8_t header[RECORD_HEADER_SIZE];
    struct record record = own_record();
    struct store *store;
    int fd;

    set_up();
    opens(BROKER_TRUSTS_RECORDS, &store);
    mark(store, 7, &record);
    store_close(store);
    opens_once(BROKER_TRUSTS_RECORDS);
    ck_assert_int_eq(unit_record_at(records, 7).phase, RECORD_BEGUN);
    record_write_header(other_boot, 4711, header);
    fd = open(records, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, header, sizeof header, 0), sizeof header);
    close(fd);
    opens_once(BROKER_TRUSTS_RECORDS);
    ck_assert_uint_eq(distrusted_until, 0);
    ck_assert_int_eq(unit_record_at(records, 7).phase, RECORD_NONE);
    unit_folder_remove();
}
END_TEST

/* The daemon was upgraded: all is as it was, torn ones too, in the form of today. */
START_TEST(the_file_of_the_version_before_is_gone_on_with)
{
    struct record record = own_record(), torn = record, found;
    struct store *store;
    char aside[320];

    set_up();
    opens(BROKER_TRUSTS_RECORDS, &store);
    record_add_step(&record, RECORD_STEP_OK);
    record_add_step(&record, RECORD_STEP_SENT);
    mark(store, 7, &record);
    mark(store, RECORD_SLOTS - 1, &torn);
    store_close(store);
    unit_record_make_older(records);
    /* The half that is not the newest whole one. */
    overwrite(RECORD_HEADER_SIZE + (off_t)(RECORD_SLOTS - 1) * 2 * UNIT_RECORD_OLD_MARK + 3);
    opens_once(BROKER_TRUSTS_RECORDS);
    found = unit_record_at(records, 7);
    record.sequence = 1;
    ck_assert_mem_eq(&found, &record, sizeof record);
    ck_assert(unit_record_at(records, RECORD_SLOTS - 1).is_torn);
    ck_assert_int_eq(unit_record_at(records, 8).phase, RECORD_NONE);
    snprintf(aside, sizeof aside, "%s/" RECORD_DAMAGED_FILE, folder);
    ck_assert_int_eq(access(aside, F_OK), -1);
    /* And the next one is of this version already. */
    opens_once(BROKER_TRUSTS_RECORDS);
    found = unit_record_at(records, 7);
    ck_assert_mem_eq(&found, &record, sizeof record);
    unit_folder_remove();
}
END_TEST

/* Whom not to believe is gone on with, too. */
START_TEST(the_version_before_may_have_been_distrusted)
{
    uint64_t until;

    set_up();
    opens_once(BROKER_TRUSTS_RECORDS);
    cut();
    opens_once(BROKER_DISTRUSTS_RECORDS);
    until = distrusted_until;
    unit_record_make_older(records);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    ck_assert_uint_eq(distrusted_until, until);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    ck_assert_uint_eq(distrusted_until, until);
    unit_folder_remove();
}
END_TEST

/* Until the new file is whole the old one has the name. */
START_TEST(an_upgrade_that_fails_loses_nothing)
{
    struct record record = own_record(), found;
    struct store *store;
    char in_the_way[320];

    set_up();
    opens(BROKER_TRUSTS_RECORDS, &store);
    mark(store, 7, &record);
    store_close(store);
    unit_record_make_older(records);
    snprintf(in_the_way, sizeof in_the_way, "%s/" RECORD_NEW_FILE, folder);
    ck_assert_int_eq(mkdir(in_the_way, 0700), 0);
    opens_once(BROKER_HAS_NO_RECORDS);
    ck_assert_int_eq(rmdir(in_the_way), 0);
    opens_once(BROKER_TRUSTS_RECORDS);
    found = unit_record_at(records, 7);
    record.sequence = 1;
    ck_assert_mem_eq(&found, &record, sizeof record);
    unit_folder_remove();
}
END_TEST

/* The daemon was put back to an older version: it knows nothing of anybody, and says so; what the
 * newer one wrote is still there. */
START_TEST(the_file_of_a_newer_version_is_put_aside)
{
    struct record record = own_record();
    struct store_found found;
    struct store *store;
    char aside[320];
    uint64_t until;
    int error;

    set_up();
    opens(BROKER_TRUSTS_RECORDS, &store);
    mark(store, 7, &record);
    store_close(store);
    unit_record_make_newer(records);
    store = store_claim(folder, &error);
    ck_assert_int_eq(store_open(store, &found), 0);
    ck_assert_int_eq(found.trust, BROKER_DISTRUSTS_RECORDS);
    ck_assert_ptr_nonnull(strstr(found.why, "which a newer diagportd wrote"));
    until = found.distrusted_until;
    ck_assert_uint_ge(until, record.start_time);
    free(found.why);
    store_close(store);
    ck_assert_int_eq(unit_record_at(records, 7).phase, RECORD_NONE);
    snprintf(aside, sizeof aside, "%s/" RECORD_NEWER_FILE, folder);
    ck_assert_int_eq(access(aside, F_OK), 0);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    ck_assert_uint_eq(distrusted_until, until);
    unit_folder_remove();
}
END_TEST

START_TEST(a_folder_has_one_daemon)
{
    struct store_found found;
    struct store *store, *late;
    int error;

    set_up();
    late = store_claim(folder, &error);
    ck_assert_ptr_nonnull(late);
    opens(BROKER_TRUSTS_RECORDS, &store);
    ck_assert_ptr_null(store_claim(folder, &error));
    ck_assert_int_eq(error, -EBUSY);
    /* There was no folder yet when it was claimed. */
    ck_assert_int_eq(store_open(late, &found), -EBUSY);
    free(found.why);
    store_close(late);
    store_close(store);
    opens_once(BROKER_TRUSTS_RECORDS);
    unit_folder_remove();
}
END_TEST

/* Who claims the folder and does not start was never there. */
START_TEST(a_claim_makes_and_changes_nothing)
{
    struct store *store;
    struct stat before, after;
    int error;

    set_up();
    store = store_claim(folder, &error);
    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(access(folder, F_OK), -1);
    store_close(store);
    opens_once(BROKER_TRUSTS_RECORDS);
    ck_assert_int_eq(truncate(records, 100), 0);
    ck_assert_int_eq(stat(folder, &before), 0);
    store = store_claim(folder, &error);
    ck_assert_ptr_nonnull(store);
    store_close(store);
    ck_assert_int_eq(stat(folder, &after), 0);
    ck_assert_mem_eq(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
    opens_once(BROKER_DISTRUSTS_RECORDS);
    unit_folder_remove();
}
END_TEST

START_TEST(a_folder_that_will_not_do)
{
    set_up();
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(folder, 0770), 0);
    opens_once(BROKER_HAS_NO_RECORDS);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(symlink("/tmp", folder), 0);
    opens_once(BROKER_HAS_NO_RECORDS);
    strcat(folder, "/nowhere/state");
    unlink(folder);
    opens_once(BROKER_HAS_NO_RECORDS);
    unit_folder_remove();
}
END_TEST

UNIT_TESTS(the_file_of_the_version_before_is_gone_on_with,
           the_version_before_may_have_been_distrusted, an_upgrade_that_fails_loses_nothing,
           the_file_of_a_newer_version_is_put_aside, a_first_start_is_trusted,
           the_living_are_remembered_and_the_dead_are_not, damage_is_seen,
           a_missing_file_in_a_used_folder_is_not_trusted, records_of_another_boot_say_nothing,
           a_folder_has_one_daemon, a_claim_makes_and_changes_nothing, a_folder_that_will_not_do);
