/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "lib/facts.h"
#include "lib/picture.h"

enum { MAIN_THREAD = 100 };

/* Threads by name, the main thread first; what a program called "app" has. */
static enum picture picture_with(const char *const *names)
{
    struct facts facts = {.threads_error = 0};

    for (; names[facts.n_threads]; facts.n_threads++) {
        facts.threads[facts.n_threads].id = MAIN_THREAD + (int32_t)facts.n_threads;
        snprintf(facts.threads[facts.n_threads].name, sizeof facts.threads[0].name, "%s",
                 names[facts.n_threads]);
    }
    return picture_of(&facts, MAIN_THREAD);
}

#define PICTURE(...) picture_with((const char *const[]){__VA_ARGS__, NULL})

START_TEST(suspended_runtimes_show_it)
{
    ck_assert_int_eq(PICTURE("dotnet", ".NET SynchManag", ".NET EventPipe"), PICTURE_SUSPENDED);
    ck_assert_int_eq(PICTURE("dotnet", ".NET EventPipe"), PICTURE_SUSPENDED);
    /* 11 with a session. */
    ck_assert_int_eq(PICTURE("dotnet", ".NET SynchManag", ".NET EventPipe", ".NET EventPipe"),
                     PICTURE_SUSPENDED);
}
END_TEST

START_TEST(running_runtimes_show_it)
{
    ck_assert_int_eq(PICTURE("dotnet", ".NET SynchManag", ".NET EventPipe", ".NET DebugPipe"),
                     PICTURE_RUNNING);
    ck_assert_int_eq(PICTURE("dotnet", ".NET EventPipe", ".NET Debugger"), PICTURE_RUNNING);
    ck_assert_int_eq(PICTURE("dotnet", ".NET EventPipe", ".NET Finalizer", "worker"),
                     PICTURE_RUNNING);
    ck_assert_int_eq(PICTURE("aotapp", "aotapp", "aotapp", ".NET SigHandler"), PICTURE_RUNNING);
    ck_assert_int_eq(PICTURE("dotnet", ".NET EventPipe", ".NET Tiered Com"), PICTURE_RUNNING);
}
END_TEST

START_TEST(anything_else_says_nothing)
{
    ck_assert_int_eq(PICTURE("aotapp", "aotapp"), PICTURE_UNKNOWN);
    ck_assert_int_eq(PICTURE("dotnet"), PICTURE_UNKNOWN);
    ck_assert_int_eq(PICTURE("dotnet", ".NET EventPipe", "worker"), PICTURE_UNKNOWN);
    ck_assert_int_eq(PICTURE("dotnet", ".NET SynchManag"), PICTURE_UNKNOWN);
}
END_TEST

START_TEST(what_cannot_be_read_says_nothing)
{
    struct facts facts = {.threads_error = 13};

    ck_assert_int_eq(picture_of(&facts, MAIN_THREAD), PICTURE_UNKNOWN);
}
END_TEST

START_TEST(more_threads_than_are_listed_are_not_suspended)
{
    struct facts facts = {.n_threads = FACTS_THREADS_MAX + 1};

    for (size_t i = 0; i < FACTS_THREADS_MAX; i++)
        facts.threads[i].id = MAIN_THREAD + (int32_t)i;
    strcpy(facts.threads[1].name, ".NET EventPipe");
    ck_assert_int_eq(picture_of(&facts, MAIN_THREAD), PICTURE_UNKNOWN);
}
END_TEST

UNIT_TESTS(suspended_runtimes_show_it, running_runtimes_show_it, anything_else_says_nothing,
           what_cannot_be_read_says_nothing, more_threads_than_are_listed_are_not_suspended);
