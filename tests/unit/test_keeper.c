/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/keeper.h"
#include "daemon/service.h"
#include "lib/broker.h"
#include "tests/unit/unit_manager.h"

static struct moment at_ms(int64_t ms)
{
    return moment_after((struct moment){1}, span_from_ms(ms));
}

/* Until it can be told no more. Returns how many it takes. */
static size_t fill(void)
{
    size_t n = 0;

    while (service_tell("STATUS=talking", -1) == SERVICE_TOLD)
        ck_assert_uint_lt(n++, 100000);
    return n;
}

START_TEST(it_is_told_what_to_keep_and_to_remove)
{
    struct unit_manager manager = unit_manager_new();
    struct keeper *keeper = keeper_new();

    ck_assert(keeper_put(keeper, manager.fd, 77));
    ck_assert_str_eq(unit_manager_heard(&manager), "FDSTORE=1\nFDPOLL=0\nFDNAME=r-77");
    ck_assert(manager.has_descriptor);
    keeper_remove(keeper, 78, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    for (int i = 0; i < 2; i++) {
        keeper_remove(keeper, 77, at_ms(0));
        ck_assert_str_eq(unit_manager_heard(&manager), i ? "" : "FDSTOREREMOVE=1\nFDNAME=r-77");
        ck_assert(!manager.has_descriptor);
    }
    ck_assert(moment_is_never(keeper_next(keeper)));
    keeper_free(keeper);
    close(manager.fd);
}
END_TEST

/* Under a name that no connection has, as long as they are needed, and once. */
START_TEST(records_are_kept_and_removed)
{
    struct unit_manager manager = unit_manager_new();
    struct keeper *keeper = keeper_new();
    struct service_sockets passed = {.n = 0};

    keeper_put_records(keeper, -1);
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    for (int i = 0; i < 2; i++) {
        keeper_put_records(keeper, manager.fd);
        ck_assert_str_eq(unit_manager_heard(&manager),
                         i ? "" : "FDSTORE=1\nFDPOLL=0\nFDNAME=r-records");
    }
    for (int i = 0; i < 2; i++) {
        keeper_remove_records(keeper);
        ck_assert_str_eq(unit_manager_heard(&manager),
                         i ? "" : "FDSTOREREMOVE=1\nFDNAME=r-records");
    }
    /* The next daemon has not put them there, and removes them all the same. */
    ck_assert_int_eq(keeper_take_records(keeper, &passed), -1);
    keeper_remove_records(keeper);
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    passed.list = calloc(1, sizeof *passed.list);
    passed.n = 1;
    *passed.list = (struct service_socket){.fd = dup(manager.fd), .name = strdup("r-records")};
    close(keeper_take_records(keeper, &passed));
    ck_assert_int_eq(passed.list->fd, -1);
    keeper_remove_records(keeper);
    ck_assert_str_eq(unit_manager_heard(&manager), "FDSTOREREMOVE=1\nFDNAME=r-records");
    service_sockets_deinit(&passed);
    keeper_free(keeper);
    close(manager.fd);
}
END_TEST

/* The manager was busy when the file before was not needed any more. */
START_TEST(other_records_take_the_place_of_those_before)
{
    struct unit_manager manager = unit_manager_new();
    struct keeper *keeper = keeper_new();

    keeper_put_records(keeper, manager.fd);
    (void)unit_manager_heard(&manager);
    fill();
    keeper_remove_records(keeper);
    while (*unit_manager_heard(&manager) != '\0')
        ck_assert_ptr_null(strstr(manager.text, "FDSTORE"));
    keeper_put_records(keeper, manager.fd);
    ck_assert_str_eq(unit_manager_heard(&manager), "FDSTOREREMOVE=1\nFDNAME=r-records");
    ck_assert_str_eq(unit_manager_heard(&manager), "FDSTORE=1\nFDPOLL=0\nFDNAME=r-records");
    keeper_put_records(keeper, manager.fd);
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    keeper_free(keeper);
    close(manager.fd);
}
END_TEST

START_TEST(without_a_manager_nothing_is_kept)
{
    struct keeper *keeper = keeper_new();

    unsetenv("NOTIFY_SOCKET");
    ck_assert(!service_has_manager());
    ck_assert(!keeper_put(keeper, STDERR_FILENO, 1));
    setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
    ck_assert(service_has_manager());
    ck_assert(!keeper_put(keeper, STDERR_FILENO, 1));
    keeper_remove(keeper, 1, at_ms(0));
    ck_assert(moment_is_never(keeper_next(keeper)));
    keeper_free(keeper);
}
END_TEST

/* It waits for nobody: what cannot be kept is not, and what cannot be removed is later. */
START_TEST(a_manager_that_is_busy_is_told_later)
{
    struct unit_manager manager = unit_manager_new();
    struct keeper *keeper = keeper_new();
    size_t n_removed = 0;

    for (uint64_t kept = 1; kept <= 3; kept++) {
        ck_assert(keeper_put(keeper, manager.fd, kept));
        (void)unit_manager_heard(&manager);
    }
    fill();
    ck_assert(!keeper_put(keeper, manager.fd, 4));
    for (uint64_t kept = 1; kept <= 4; kept++)
        keeper_remove(keeper, kept, at_ms(0));
    ck_assert_int_eq(keeper_next(keeper).us, at_ms(100).us);
    keeper_run(keeper, at_ms(100));
    ck_assert_int_eq(keeper_next(keeper).us, at_ms(200).us);
    while (*unit_manager_heard(&manager) != '\0')
        ;
    keeper_run(keeper, at_ms(199));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    keeper_run(keeper, at_ms(200));
    while (*unit_manager_heard(&manager) != '\0')
        n_removed += strstr(manager.text, "FDSTOREREMOVE=1") != NULL;
    ck_assert_uint_eq(n_removed, 3);
    ck_assert(moment_is_never(keeper_next(keeper)));
    keeper_free(keeper);
    close(manager.fd);
}
END_TEST

/* Those whose removal nobody has heard of take places, too. */
START_TEST(no_more_are_kept_than_the_unit_says)
{
    struct unit_manager manager = unit_manager_new();
    struct keeper *keeper = keeper_new();

    for (uint64_t kept = 1; kept <= BROKER_KEPT_MAX; kept++) {
        ck_assert(keeper_put(keeper, manager.fd, kept));
        (void)unit_manager_heard(&manager);
    }
    ck_assert(!keeper_put(keeper, manager.fd, BROKER_KEPT_MAX + 1));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    fill();
    keeper_remove(keeper, 1, at_ms(0));
    while (*unit_manager_heard(&manager) != '\0')
        ;
    ck_assert(!keeper_put(keeper, manager.fd, BROKER_KEPT_MAX + 1));
    keeper_run(keeper, at_ms(100));
    ck_assert(keeper_put(keeper, manager.fd, BROKER_KEPT_MAX + 1));
    keeper_free(keeper);
    close(manager.fd);
}
END_TEST

static bool take_odd(void *context, int fd, uint64_t kept)
{
    if (kept % 2 == 0)
        return false;
    *(uint64_t *)context += kept;
    close(fd);
    return true;
}

START_TEST(only_its_own_names_are_taken)
{
    static const char *const names[] = {"r-5",  "runtime", "r-6",  "r-",
                                        "r-05", "r-7 ",    "r--1", "r-18446744073709551615",
                                        "r-5",  "stored"};
    enum { N = sizeof names / sizeof names[0] };
    struct unit_manager manager = unit_manager_new();
    struct keeper *keeper = keeper_new();
    struct service_sockets passed = {.list = calloc(N, sizeof *passed.list), .n = N};
    uint64_t sum = 0;
    int ends[N], copies[N];
    char byte;

    for (size_t i = 0; i < N; i++) {
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
                         0);
        ends[i] = pair[0];
        /* As the manager has one until it has heard. */
        copies[i] = dup(pair[1]);
        passed.list[i] = (struct service_socket){.fd = pair[1], .name = strdup(names[i])};
    }
    keeper_adopt(keeper, &passed, take_odd, &sum);
    ck_assert_uint_eq(sum, 5);
    for (size_t i = 0; i < N; i++) {
        bool is_ours = strncmp(names[i], "r-", 2) == 0;

        ck_assert_int_eq(passed.list[i].fd >= 0, !is_ours);
        ck_assert_int_eq(recv(ends[i], &byte, 1, 0), is_ours && i > 0 ? 0 : -1);
        close(ends[i]);
        close(copies[i]);
        /* The first one was taken, and all others are to go. */
        if (is_ours && i > 0) {
            char text[64];

            snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", names[i]);
            ck_assert_str_eq(unit_manager_heard(&manager), text);
        }
    }
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    service_sockets_deinit(&passed);
    keeper_free(keeper);
    close(manager.fd);
}
END_TEST

/* The number after "KEY=" at the beginning of a line; 0 when there is none. */
static unsigned long number_in(const char *unit, const char *key)
{
    char path[4096], line[1024];
    unsigned long number = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", UNITS, unit);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == '=')
            number = strtoul(line + strlen(key) + 1, NULL, 10);
    }
    fclose(file);
    return number;
}

/* Measured with systemd 252: with fewer descriptors, or more of names, the daemon is not started.
 */
START_TEST(units_have_room_for_what_is_kept)
{
    static const char *const units[] = {"diagportd.service.in", "user/diagportd.service.in"};
    const size_t longest = strlen("r-9223372036854775807");

    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        unsigned long n = number_in(units[i], "FileDescriptorStoreMax");

        /* And the records. */
        ck_assert_uint_eq(n, BROKER_KEPT_MAX + 1);
        ck_assert_uint_ge(number_in(units[i], "LimitNOFILE"), 4 * n);
        ck_assert_uint_lt(n * (longest + 1), (size_t)120 * 1024);
    }
}
END_TEST

UNIT_TESTS(it_is_told_what_to_keep_and_to_remove, records_are_kept_and_removed,
           other_records_take_the_place_of_those_before, without_a_manager_nothing_is_kept,
           a_manager_that_is_busy_is_told_later, no_more_are_kept_than_the_unit_says,
           only_its_own_names_are_taken, units_have_room_for_what_is_kept);
