/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records stay where the next daemon finds them, whatever is done to their files
 * meanwhile; and one that was kept counts.
 */

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_record.h"

static char folder[256], records[300], away[300];

static void set_up(void)
{
    unit_folder_make(folder, sizeof folder);
    snprintf(away, sizeof away, "%s/away", folder);
    strcat(folder, "/state");
    snprintf(records, sizeof records, "%s/records", folder);
}

static struct store *opens_with(int kept, enum broker_trust trust, uint64_t *ret_distrusted_until)
{
    struct store_found found;
    struct store *store;
    int error;

    store = store_claim(folder, &error);
    ck_assert_ptr_nonnull(store);
    store_take_kept(store, kept);
    ck_assert_int_eq(store_open(store, &found), 0);
    ck_assert_int_eq(found.trust, trust);
    ck_assert_int_eq(found.why != NULL, trust != BROKER_TRUSTS_RECORDS);
    *ret_distrusted_until = found.distrusted_until;
    free(found.why);
    return store;
}

static struct store *opens(enum broker_trust trust)
{
    uint64_t distrusted_until;

    return opens_with(-1, trust, &distrusted_until);
}

/* Of nobody; it says by its pid which one it is. */
static void mark(struct store *store, uint32_t slot, int32_t pid)
{
    struct record record = {.phase = RECORD_HELD, .sequence = 1, .pid = pid, .cookie = {{1}}};
    uint8_t bytes[RECORD_MARK_SIZE];

    record_write(&record, bytes);
    store_mark(store, slot, bytes);
}

static void is_in_place(struct store *store)
{
    struct store_look look;

    store_look(store, &look);
    ck_assert_ptr_null(look.why);
    ck_assert(look.is_in_place && !look.is_anew);
}

static void is_put_right(struct store *store, const char *what, bool is_anew)
{
    struct store_look look;

    store_look(store, &look);
    ck_assert(!look.is_in_place && look.is_put_right && !look.is_first);
    ck_assert_int_eq(look.is_anew, is_anew);
    ck_assert_msg(strstr(look.why, what) && strstr(look.why, folder), "%s", look.why);
    free(look.why);
    is_in_place(store);
}

static void stays_wrong(struct store *store, const char *what)
{
    struct store_look look;

    store_look(store, &look);
    ck_assert(!look.is_in_place && !look.is_put_right && !look.is_anew);
    ck_assert_msg(strstr(look.why, what), "%s", look.why);
    free(look.why);
}

/* All of what was marked goes on in the new one, and so do marks; and the next daemon takes it. */
static void goes_on(struct store *store)
{
    ck_assert_int_eq(unit_record_at(records, 7).pid, 71);
    mark(store, 8, 81);
    ck_assert_int_eq(unit_record_at(records, 8).pid, 81);
    store_close(store);
    store_close(opens(BROKER_TRUSTS_RECORDS));
    unit_folder_remove();
}

static struct store *marked(void)
{
    struct store *store;

    set_up();
    store = opens(BROKER_TRUSTS_RECORDS);
    mark(store, 7, 71);
    is_in_place(store);
    return store;
}

START_TEST(a_file_that_was_removed_is_made_anew)
{
    struct store *store = marked();
    struct stat status;

    ck_assert_int_eq(unlink(records), 0);
    is_put_right(store, "the file of records was removed; it was put right", true);
    ck_assert_int_eq(stat(records, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    ck_assert_int_eq(status.st_size, RECORD_FILE_SIZE);
    goes_on(store);
}
END_TEST

START_TEST(one_that_was_replaced_is_too)
{
    struct store *store = marked();

    ck_assert_int_eq(unlink(records), 0);
    unit_folder_write("state/records", "nonsense", 0600);
    is_put_right(store, "replaced", true);
    ck_assert_int_eq(unlink(records), 0);
    ck_assert_int_eq(symlink("/etc/hostname", records), 0);
    is_put_right(store, "replaced", true);
    /* What cannot be replaced is left to people. */
    ck_assert_int_eq(unlink(records), 0);
    ck_assert_int_eq(mkdir(records, 0700), 0);
    stays_wrong(store, "remove what is there by the name of records");
    ck_assert_int_eq(rmdir(records), 0);
    is_put_right(store, "removed", true);
    goes_on(store);
}
END_TEST

/* Until it shows: the clock of files has steps. */
static void change(const char *path)
{
    struct stat before, now;

    ck_assert_int_eq(stat(path, &before), 0);
    do {
        ck_assert_int_eq(chmod(path, 0700), 0);
        ck_assert_int_eq(stat(path, &now), 0);
    } while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* It takes ten megabytes to find that out, and a look is every few seconds. */
START_TEST(nothing_is_written_while_something_is_in_the_way)
{
    static const char in_the_way[] =
        "(Is a directory): remove what is there by the name of records";
    struct store *store = marked();
    char other[310];

    ck_assert_int_eq(unlink(records), 0);
    ck_assert_int_eq(mkdir(records, 0700), 0);
    stays_wrong(store, in_the_way);
    /* Whoever began to write would be told of this one. */
    snprintf(other, sizeof other, "%s.new", records);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    stays_wrong(store, in_the_way);
    /* Tried again when it has changed. */
    change(records);
    stays_wrong(store, "remove what is there by the name of records.new");
    ck_assert_int_eq(rmdir(records), 0);
    ck_assert_int_eq(rmdir(other), 0);
    is_put_right(store, "removed", true);
    goes_on(store);
}
END_TEST

START_TEST(a_folder_that_was_removed_is_made_anew)
{
    struct store *store = marked();
    struct stat status;

    ck_assert_int_eq(unlink(records), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    is_put_right(store, "the folder was removed", true);
    ck_assert_int_eq(stat(folder, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0700);
    goes_on(store);
}
END_TEST

START_TEST(one_that_was_replaced_is_moved_to)
{
    struct store *store = marked(), *other;

    ck_assert_int_eq(rename(folder, away), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    is_put_right(store, "another one than before", true);
    /* But not to what is not its own, or somebody else's by now. */
    ck_assert_int_eq(unlink(records), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    stays_wrong(store, "be writable by nobody else");
    ck_assert_int_eq(chmod(folder, 0700), 0);
    other = opens(BROKER_TRUSTS_RECORDS);
    stays_wrong(store, "another diagportd uses it");
    store_close(other);
    is_put_right(store, "another one than before", true);
    goes_on(store);
}
END_TEST

START_TEST(what_was_made_read_only_is_made_writable)
{
    struct store *store = marked();

    ck_assert_int_eq(chmod(records, 0400), 0);
    is_put_right(store, "read-only", false);
    ck_assert_int_eq(chmod(folder, 0500), 0);
    is_put_right(store, "read-only", false);
    /* Nor may others write there: the next daemon would not have it. */
    ck_assert_int_eq(chmod(folder, 0770), 0);
    is_put_right(store, "read-only", false);
    goes_on(store);
}
END_TEST

/* Whoever was there before the first file may have been set up by somebody. */
/* By whoever may: neither a mark nor a look ends the daemon. What was there is lost, and so nobody
 * that was there before is gone on with. */
static void is_cut_to(off_t length, bool is_marked_first)
{
    struct store *store;
    struct store_look look;
    uint64_t distrusted_until;

    set_up();
    store = opens(BROKER_TRUSTS_RECORDS);
    mark(store, 500, 7);
    ck_assert_int_eq(truncate(records, length), 0);
    if (is_marked_first) {
        mark(store, 500, 8);
        /* It may even get its size back. */
        ck_assert_int_eq(truncate(records, RECORD_FILE_SIZE), 0);
    }
    store_look(store, &look);
    ck_assert(look.is_put_right && look.is_lost && look.is_first);
    ck_assert_uint_gt(look.distrusted_until, 0);
    ck_assert_ptr_nonnull(strstr(look.why, "was cut"));
    free(look.why);
    is_in_place(store);
    mark(store, 501, 9);
    ck_assert_int_eq(unit_record_at(records, 500).pid, 0);
    ck_assert_int_eq(unit_record_at(records, 501).pid, 9);
    store_close(store);
    store = opens_with(-1, BROKER_DISTRUSTS_RECORDS, &distrusted_until);
    ck_assert_uint_eq(distrusted_until, look.distrusted_until);
    store_close(store);
    unit_folder_remove();
}

START_TEST(a_file_that_was_cut_is_made_anew)
{
    is_cut_to(0, false);
    is_cut_to(0, true);
    is_cut_to(RECORD_HEADER_SIZE + 100 * RECORD_SLOT_SIZE, false);
    is_cut_to(RECORD_HEADER_SIZE + 100 * RECORD_SLOT_SIZE, true);
}
END_TEST

START_TEST(without_records_they_begin_when_they_can)
{
    struct store_look look;
    struct store *store;
    uint64_t distrusted_until;

    set_up();
    unit_folder_write("state", "", 0600);
    store = opens(BROKER_HAS_NO_RECORDS);
    stays_wrong(store, "cannot be put right");
    ck_assert_int_eq(unlink(folder), 0);
    store_look(store, &look);
    ck_assert(look.is_put_right && look.is_anew && look.is_first);
    ck_assert_uint_gt(look.distrusted_until, 0);
    free(look.why);
    is_in_place(store);
    mark(store, 7, 71);
    ck_assert_int_eq(unit_record_at(records, 7).pid, 71);
    store_close(store);
    store_close(opens_with(-1, BROKER_DISTRUSTS_RECORDS, &distrusted_until));
    ck_assert_uint_eq(distrusted_until, look.distrusted_until);
    unit_folder_remove();
}
END_TEST

/* The daemon before had it kept, since it had lost its name. */
START_TEST(one_that_was_kept_counts)
{
    struct store *store = marked();
    uint64_t distrusted_until;
    int kept = dup(store_file(store));

    ck_assert_int_eq(unlink(records), 0);
    store_close(store);
    /* Made by somebody meanwhile. */
    store = opens(BROKER_TRUSTS_RECORDS);
    mark(store, 7, 999);
    store_close(store);
    store = opens_with(kept, BROKER_TRUSTS_RECORDS, &distrusted_until);
    is_in_place(store);
    goes_on(store);
}
END_TEST

/* This daemon has written them anew in the folder, and is killed before the manager has heard that
 * what it kept is not needed any more: marks that were made since do not get lost. */
START_TEST(one_that_was_kept_counts_until_there_is_a_newer_one)
{
    struct store *store = marked();
    uint64_t distrusted_until;
    int kept = dup(store_file(store)), again = dup(kept);

    ck_assert_int_eq(unlink(records), 0);
    store_close(store);
    store = opens_with(kept, BROKER_TRUSTS_RECORDS, &distrusted_until);
    mark(store, 8, 81);
    store_close(store);
    store = opens_with(again, BROKER_TRUSTS_RECORDS, &distrusted_until);
    ck_assert_int_eq(unit_record_at(records, 8).pid, 81);
    is_in_place(store);
    goes_on(store);
}
END_TEST

/* Likewise where the daemon that had it kept could put it right after all. */
START_TEST(until_it_was_put_right)
{
    struct store *store = marked();
    uint64_t distrusted_until;
    int kept = dup(store_file(store));

    ck_assert_int_eq(rename(records, away), 0);
    is_put_right(store, "removed", true);
    mark(store, 8, 81);
    store_close(store);
    store = opens_with(kept, BROKER_TRUSTS_RECORDS, &distrusted_until);
    ck_assert_int_eq(unit_record_at(records, 8).pid, 81);
    goes_on(store);
}
END_TEST

START_TEST(it_needs_no_folder)
{
    struct store *store = marked();
    uint64_t distrusted_until;
    int kept = dup(store_file(store));

    store_close(store);
    ck_assert_int_eq(unlink(records), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    unit_folder_write("state", "", 0600);
    store = opens_with(kept, BROKER_TRUSTS_RECORDS, &distrusted_until);
    ck_assert_int_ge(store_file(store), 0);
    mark(store, 8, 81);
    stays_wrong(store, "another one than before");
    ck_assert_int_eq(unlink(folder), 0);
    is_put_right(store, "the folder was removed", true);
    ck_assert_int_eq(unit_record_at(records, 8).pid, 81);
    goes_on(store);
}
END_TEST

/* Whoever was in it may have been set up. */
START_TEST(one_that_was_kept_and_is_damaged_is_not_forgotten)
{
    struct store *store = marked();
    uint64_t distrusted_until;
    int kept = dup(store_file(store));

    ck_assert_int_eq(unlink(records), 0);
    store_close(store);
    ck_assert_int_eq(pwrite(kept, "x", 1, 3), 1);
    store = opens_with(kept, BROKER_DISTRUSTS_RECORDS, &distrusted_until);
    ck_assert_uint_gt(distrusted_until, 0);
    is_in_place(store);
    store_close(store);
    unit_folder_remove();
}
END_TEST

UNIT_TESTS(a_file_that_was_removed_is_made_anew, one_that_was_replaced_is_too,
           nothing_is_written_while_something_is_in_the_way, a_folder_that_was_removed_is_made_anew,
           one_that_was_replaced_is_moved_to, what_was_made_read_only_is_made_writable,
           a_file_that_was_cut_is_made_anew, without_records_they_begin_when_they_can,
           one_that_was_kept_counts, one_that_was_kept_counts_until_there_is_a_newer_one,
           until_it_was_put_right, it_needs_no_folder,
           one_that_was_kept_and_is_damaged_is_not_forgotten);
