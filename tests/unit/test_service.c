/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/service.h"
#include "tests/unit/unit_manager.h"

#define EXTENDED "EXTEND_TIMEOUT_USEC=5000000"

static struct moment at_ms(int64_t ms)
{
    return moment_after((struct moment){1}, span_from_ms(ms));
}

/* One whose start is over. */
static struct service *started(struct unit_manager *manager)
{
    struct service *service = service_new();

    service_tell_ready(service, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(manager), "READY=1");
    return service;
}

START_TEST(without_a_manager_nothing_is_due)
{
    struct service *service;

    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    service = service_new();
    service_tell_ready(service, at_ms(0));
    service_run(service, at_ms(0));
    ck_assert(moment_is_never(service_next(service)));
    ck_assert(!service_wants_status(service, at_ms(5000)));
    service_free(service);
}
END_TEST

START_TEST(states_are_told)
{
    struct unit_manager manager = unit_manager_new();
    struct service *service = service_new();

    service_tell_ready(service, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), "READY=1");
    service_tell_reloading(service, (struct moment){77});
    ck_assert_str_eq(unit_manager_heard(&manager), "RELOADING=1\nMONOTONIC_USEC=77");
    service_tell_ready(service, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), "READY=1");
    service_tell_stopping(service, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), "STOPPING=1");
    ck_assert_str_eq(unit_manager_heard(&manager), EXTENDED);
    service_free(service);
    close(manager.fd);
}
END_TEST

/* Of a start where it makes progress, of a stop in each turn, once a second at most. */
START_TEST(it_is_told_that_it_goes_on)
{
    struct unit_manager manager = unit_manager_new();
    struct service *service = service_new();

    service_tell_progress(service, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), EXTENDED);
    service_tell_progress(service, at_ms(999));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    service_tell_progress(service, at_ms(1000));
    ck_assert_str_eq(unit_manager_heard(&manager), EXTENDED);
    service_tell_ready(service, at_ms(1100));
    ck_assert_str_eq(unit_manager_heard(&manager), "READY=1");
    /* Now it may run for as long as it likes. */
    service_tell_progress(service, at_ms(9000));
    service_run(service, at_ms(9000));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    ck_assert(moment_is_never(service_next(service)));
    service_tell_stopping(service, at_ms(9500));
    ck_assert_str_eq(unit_manager_heard(&manager), "STOPPING=1");
    ck_assert_str_eq(unit_manager_heard(&manager), EXTENDED);
    ck_assert_int_eq(service_next(service).us, at_ms(10500).us);
    service_run(service, at_ms(10499));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    service_run(service, at_ms(10500));
    ck_assert_str_eq(unit_manager_heard(&manager), EXTENDED);
    service_free(service);
    close(manager.fd);
}
END_TEST

/* Only a turn of the loop is a sign of life. */
START_TEST(the_watchdog_is_fed_by_turns)
{
    struct unit_manager manager = unit_manager_new();
    struct service *service;

    setenv("WATCHDOG_USEC", "2000000", 1);
    unsetenv("WATCHDOG_PID");
    service = started(&manager);
    ck_assert(moment_is_due(service_next(service), at_ms(0)));
    service_run(service, at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), "WATCHDOG=1");
    service_run(service, at_ms(999));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    ck_assert_int_eq(service_next(service).us, at_ms(1000).us);
    service_run(service, at_ms(1000));
    ck_assert_str_eq(unit_manager_heard(&manager), "WATCHDOG=1");
    service_free(service);
    setenv("WATCHDOG_PID", "1", 1);
    service = started(&manager);
    ck_assert(moment_is_never(service_next(service)));
    service_free(service);
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    close(manager.fd);
}
END_TEST

/* A manager that does not read keeps nobody waiting, and hears it later. */
START_TEST(what_cannot_be_told_is_told_again)
{
    struct unit_manager manager = unit_manager_new();
    struct service *service = started(&manager);
    size_t n = 0;

    while (moment_is_never(service_next(service))) {
        service_tell_ready(service, at_ms(0));
        ck_assert_uint_lt(n++, 100000);
    }
    ck_assert_int_eq(service_next(service).us, at_ms(100).us);
    while (*unit_manager_heard(&manager) != '\0')
        ;
    service_run(service, at_ms(100));
    ck_assert_str_eq(unit_manager_heard(&manager), "READY=1");
    ck_assert(moment_is_never(service_next(service)));
    service_free(service);
    close(manager.fd);
}
END_TEST

START_TEST(a_status_is_told_once_a_second)
{
    struct unit_manager manager = unit_manager_new();
    struct service *service = started(&manager);

    ck_assert(service_wants_status(service, at_ms(0)));
    service_tell_status(service, "one", at_ms(0));
    ck_assert_str_eq(unit_manager_heard(&manager), "STATUS=one");
    /* It may change meanwhile, and nothing else may wake us. */
    ck_assert(!service_wants_status(service, at_ms(999)));
    ck_assert_int_eq(service_next(service).us, at_ms(1000).us);
    ck_assert(service_wants_status(service, at_ms(1000)));
    service_tell_status(service, "one", at_ms(1000));
    ck_assert_str_eq(unit_manager_heard(&manager), "");
    /* It has not: then only what happens wakes us. */
    ck_assert(moment_is_never(service_next(service)));
    service_tell_status(service, "two", at_ms(1001));
    ck_assert_str_eq(unit_manager_heard(&manager), "STATUS=two");
    service_free(service);
    close(manager.fd);
}
END_TEST

UNIT_TESTS(it_is_told_that_it_goes_on, without_a_manager_nothing_is_due, states_are_told,
           the_watchdog_is_fed_by_turns, what_cannot_be_told_is_told_again,
           a_status_is_told_once_a_second);
