/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/platform.h"
#include "tests/unit/unit_memory.h"

static const struct platform alpine = {PLATFORM_ARM64, PLATFORM_MUSL};

static void expands_to(const char *pattern, struct platform platform, const char *wanted)
{
    char *path = NULL;

    ck_assert_int_eq(platform_expand(pattern, &platform, &path), 0);
    ck_assert_str_eq(path, wanted);
    free(path);
}

START_TEST(words_become_what_dotnet_calls_them)
{
    expands_to("/opt/\x01/a.so", (struct platform){PLATFORM_X64, PLATFORM_GLIBC},
               "/opt/linux-x64/a.so");
    expands_to("/opt/\x01/a.so", alpine, "/opt/linux-musl-arm64/a.so");
    expands_to("/opt/\x03-\x02/\x02.so", alpine, "/opt/musl-arm64/arm64.so");
    expands_to("/opt/\x03", (struct platform){PLATFORM_ARCH_UNKNOWN, PLATFORM_GLIBC}, "/opt/glibc");
    expands_to("/opt/\x02", (struct platform){PLATFORM_S390X, PLATFORM_LIBC_UNKNOWN}, "/opt/s390x");
    expands_to("/opt/{rid}", alpine, "/opt/{rid}");
    expands_to("", alpine, "");
}
END_TEST

START_TEST(what_is_not_known_names_no_file)
{
    static const struct platform unknown[] = {
        {PLATFORM_ARCH_UNKNOWN, PLATFORM_GLIBC},
        {PLATFORM_X64, PLATFORM_LIBC_UNKNOWN},
    };
    char *path = NULL;

    ck_assert_int_eq(platform_expand("/\x01", &unknown[0], &path), -ENODATA);
    ck_assert_int_eq(platform_expand("/\x02", &unknown[0], &path), -ENODATA);
    ck_assert_int_eq(platform_expand("/\x01", &unknown[1], &path), -ENODATA);
    ck_assert_int_eq(platform_expand("/\x03", &unknown[1], &path), -ENODATA);
    ck_assert_ptr_null(path);
}
END_TEST

START_TEST(words_are_found_by_their_names)
{
    enum platform_word word;

    ck_assert(platform_find("rid}/", 3, &word) && word == PLATFORM_RID);
    ck_assert(platform_find("arch", 4, &word) && word == PLATFORM_ARCH);
    ck_assert(platform_find("libc", 4, &word) && word == PLATFORM_LIBC);
    ck_assert(!platform_find("RID", 3, &word) && !platform_find("ri", 2, &word));
    ck_assert(!platform_find("", 0, &word) && !platform_find("user", 4, &word));
    ck_assert(platform_is_pattern("/opt/\x02"));
    ck_assert(!platform_is_pattern("/opt/{rid}") && !platform_is_pattern(""));
}
END_TEST

START_TEST(machines_have_their_names)
{
    ck_assert_int_eq(platform_arch_of(EM_X86_64, true, false), PLATFORM_X64);
    ck_assert_int_eq(platform_arch_of(EM_386, false, false), PLATFORM_X86);
    ck_assert_int_eq(platform_arch_of(EM_AARCH64, true, false), PLATFORM_ARM64);
    ck_assert_int_eq(platform_arch_of(EM_ARM, false, false), PLATFORM_ARM);
    ck_assert_int_eq(platform_arch_of(EM_S390, true, true), PLATFORM_S390X);
    ck_assert_int_eq(platform_arch_of(EM_PPC64, true, false), PLATFORM_PPC64LE);
    /* .NET has no name for these. */
    ck_assert_int_eq(platform_arch_of(EM_X86_64, false, false), PLATFORM_ARCH_UNKNOWN);
    ck_assert_int_eq(platform_arch_of(EM_PPC64, true, true), PLATFORM_ARCH_UNKNOWN);
    ck_assert_int_eq(platform_arch_of(EM_NONE, true, false), PLATFORM_ARCH_UNKNOWN);
}
END_TEST

static int expand(void *context)
{
    char *path = NULL;
    int error = platform_expand(context, &alpine, &path);

    free(path);
    return error;
}

START_TEST(memory_may_run_out)
{
    char pattern[] = "/opt/\x01/a.so";

    ck_assert_uint_ge(unit_memory_exhaust(expand, pattern, -ENOMEM), 1);
}
END_TEST

UNIT_TESTS(words_become_what_dotnet_calls_them, what_is_not_known_names_no_file,
           words_are_found_by_their_names, machines_have_their_names, memory_may_run_out);
