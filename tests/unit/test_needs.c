/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a process could load, from files that are only here: kept ones under
 * names of their own, and the loader's list.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/needs.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_memory.h"

enum { FILES_MAX = 16 };

static struct {
    const char *path;
    const char *kept; /* NULL: nobody can tell what is there */
    struct needs_bytes content;
} files[FILES_MAX];
static size_t n_files;
static const char *loaded; /* the name of a library that the process has */
static struct needs_view view;

static struct needs_bytes read_kept(const char *name)
{
    struct needs_bytes content;
    char path[1000];

    snprintf(path, sizeof path, "%s/images/%s", FIXTURES, name);
    content.data = unit_file_read(path, &content.length);
    return content;
}

static enum needs_found open_file(void *context, const char *path, struct needs_bytes *ret_content)
{
    (void)context;
    for (size_t i = 0; i < n_files; i++) {
        if (strcmp(files[i].path, path) != 0)
            continue;
        *ret_content = files[i].content;
        return files[i].kept ? NEEDS_FOUND : NEEDS_UNKNOWN;
    }
    return NEEDS_ABSENT;
}

static bool is_loaded(void *context, const char *name)
{
    (void)context;
    return loaded && strcmp(loaded, name) == 0;
}

static void have(const char *path, const char *kept)
{
    ck_assert_uint_lt(n_files, FILES_MAX);
    files[n_files].path = path;
    files[n_files].kept = kept;
    if (kept)
        files[n_files].content = read_kept(kept);
    n_files++;
}

/* A process of one program, with a C library where Debian has it. */
static void begin(const char *program)
{
    n_files = 0;
    loaded = NULL;
    view = (struct needs_view){
        .open = open_file,
        .is_loaded = is_loaded,
        .program = read_kept(program),
        .program_path = "/opt/app/program",
    };
    have("/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6");
    have("/lib/ld-musl-x86_64.so.1", "libc.so.6");
}

static void end(void)
{
    for (size_t i = 0; i < n_files; i++)
        free((void *)(uintptr_t)files[i].content.data);
    free((void *)(uintptr_t)view.program.data);
    memset(files, 0, sizeof files);
}

static enum preflight judge(const char *kept, char detail[static NEEDS_DETAIL_MAX])
{
    struct needs_bytes content = read_kept(kept);
    struct needs_verdict verdict;
    struct needs needs;

    ck_assert_int_eq(needs_init(&needs, &view), 0);
    ck_assert_int_eq(needs_check(&needs, "/opt/agent/profiler.so", content, &verdict), 0);
    /* The one before leaves nothing. */
    ck_assert_int_eq(needs_check(&needs, "/opt/agent/profiler.so", content, &verdict), 0);
    needs_deinit(&needs);
    free((void *)(uintptr_t)content.data);
    snprintf(detail, NEEDS_DETAIL_MAX, "%s", verdict.detail);
    return verdict.problem;
}

static void comes_to(const char *kept, enum preflight problem, const char *wanted)
{
    char detail[NEEDS_DETAIL_MAX];

    ck_assert_msg(judge(kept, detail) == problem, "%s", kept);
    ck_assert_str_eq(detail, wanted);
}

START_TEST(what_is_all_there_is_good)
{
    begin("program-64");
    have("/opt/agent/lib/libstdc++.so.6", "libstdc++.so.6");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    comes_to("profiler-64-sysv.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

START_TEST(what_is_for_another_machine)
{
    begin("program-64");
    comes_to("profiler-32.so", PREFLIGHT_WRONG_CLASS, "");
    comes_to("profiler-64-big.so", PREFLIGHT_WRONG_BYTE_ORDER, "");
    comes_to("profiler-aarch64.so", PREFLIGHT_WRONG_MACHINE, "");
    comes_to("program-64", PREFLIGHT_NOT_A_LIBRARY, "");
    comes_to("library-64.so", PREFLIGHT_NO_ENTRY_POINT, "");
    comes_to("hook.dll", PREFLIGHT_NOT_ELF, "");
    end();
}
END_TEST

START_TEST(each_place_is_looked_into)
{
    static const char *const places[] = {
        "/opt/agent/lib/libstdc++.so.6", /* its own list, $ORIGIN/lib */
        "/opt/one/libstdc++.so.6",       /* LD_LIBRARY_PATH */
        "/opt/app/more/libstdc++.so.6",  /* with $ORIGIN, which is that of the program */
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/lib64/libstdc++.so.6", /* beside the loader, too */
        "/usr/lib/libstdc++.so.6",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        begin("program-64");
        view.library_path = "/opt/none:/opt/one:${ORIGIN}/more";
        comes_to("profiler-64.so", PREFLIGHT_NEEDS_LIBRARY, "libstdc++.so.6");
        have(places[i], "libstdc++.so.6");
        comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
        end();
    }
}
END_TEST

/* What is for another machine, or no library at all, is passed over. */
START_TEST(only_libraries_of_the_same_kind_count)
{
    begin("program-64");
    have("/opt/agent/lib/libstdc++.so.6", "profiler-32.so");
    have("/lib/x86_64-linux-gnu/libstdc++.so.6", "hook.dll");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_LIBRARY, "libstdc++.so.6");
    have("/usr/lib/libstdc++.so.6", "libstdc++.so.6");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

START_TEST(what_cannot_be_told_is_no_problem)
{
    begin("program-64");
    loaded = "libstdc++.so.6";
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    loaded = NULL;
    view.has_unknown_environment = true;
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    view.has_unknown_environment = false;
    view.library_path = "relative";
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    view.library_path = "/opt/$LIB";
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    view.library_path = "";
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_LIBRARY, "libstdc++.so.6");
    have("/usr/lib/libstdc++.so.6", NULL);
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    end();
    begin("hook.dll");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

START_TEST(the_list_of_the_loader_is_read)
{
    begin("program-64");
    have("/etc/ld.so.cache", "ld.so.cache");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_LIBRARY, "libstdc++.so.6");
    /* The one that it leads to, before the one in a usual place. */
    have("/usr/lib/libstdc++.so.6", "libstdc++-old.so.6");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_VERSION, "GLIBCXX_3.4 of libstdc++.so.6");
    have("/srv/libs/libstdc++.so.6", "libstdc++.so.6");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    end();
    begin("program-64");
    have("/etc/ld.so.cache", "hook.dll");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

START_TEST(a_list_that_is_cut_does_no_harm)
{
    begin("program-64");
    have("/etc/ld.so.cache", "ld.so.cache");
    have("/srv/libs/libstdc++.so.6", "libstdc++.so.6");
    for (size_t whole = files[2].content.length, length = 0; length < whole; length++) {
        struct needs_bytes kept = files[2].content;

        files[2].content = (struct needs_bytes){unit_copy(kept.data, length), length};
        comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
        free((void *)(uintptr_t)files[2].content.data);
        files[2].content = kept;
    }
    end();
}
END_TEST

START_TEST(versions_and_symbols_are_looked_for)
{
    begin("program-64");
    have("/usr/lib/libstdc++.so.6", "libstdc++-old.so.6");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_VERSION, "GLIBCXX_3.4 of libstdc++.so.6");
    comes_to("profiler-of-strange.so", PREFLIGHT_NEEDS_SYMBOL, "strange_function");
    view.has_preload = true;
    comes_to("profiler-of-strange.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

/* A library that the program found for itself counts for what is loaded into it later. */
START_TEST(what_the_program_has_comes_first)
{
    begin("program-64-lists");
    have("/opt/app/own/libstdc++.so.6", "libstdc++-old.so.6");
    have("/usr/lib/libstdc++.so.6", "libstdc++.so.6");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_VERSION, "GLIBCXX_3.4 of libstdc++.so.6");
    comes_to("profiler-of-strange.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

/* Under glibc, libraries of musl are wrong wherever they are. musl takes itself for the C library.
 */
START_TEST(builds_for_the_other_libc)
{
    begin("program-64");
    comes_to("profiler-musl.so", PREFLIGHT_WRONG_LIBC, "libc.musl-x86_64.so.1");
    end();
    begin("program-64-musl");
    comes_to("profiler-of-loader.so", PREFLIGHT_WRONG_LIBC, "ld-linux-x86-64.so.2");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_LIBRARY, "libstdc++.so.6");
    have("/usr/local/lib/libstdc++.so.6", "libstdc++-old.so.6");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    have("/etc/ld-musl-x86_64.path", "ld-musl-x86_64.path");
    comes_to("profiler-64.so", PREFLIGHT_NEEDS_LIBRARY, "libstdc++.so.6");
    have("/srv/libs/libstdc++.so.6", "libstdc++-old.so.6");
    comes_to("profiler-64.so", PREFLIGHT_GOOD, "");
    end();
}
END_TEST

static int check_all(void *context)
{
    struct needs_bytes content = *(struct needs_bytes *)context;
    struct needs_verdict verdict;
    struct needs needs;
    int error = needs_init(&needs, &view);

    if (error == 0)
        error = needs_check(&needs, "/opt/agent/profiler.so", content, &verdict);
    needs_deinit(&needs);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    struct needs_bytes content = read_kept("profiler-64.so");

    begin("program-64");
    have("/opt/agent/lib/libstdc++.so.6", "libstdc++.so.6");
    ck_assert_uint_ge(unit_memory_exhaust(check_all, &content, -ENOMEM), 10);
    free((void *)(uintptr_t)content.data);
    end();
}
END_TEST

UNIT_TESTS(what_is_all_there_is_good, what_is_for_another_machine, each_place_is_looked_into,
           only_libraries_of_the_same_kind_count, what_cannot_be_told_is_no_problem,
           the_list_of_the_loader_is_read, a_list_that_is_cut_does_no_harm,
           versions_and_symbols_are_looked_for, what_the_program_has_comes_first,
           builds_for_the_other_libc, every_allocation_may_fail);
