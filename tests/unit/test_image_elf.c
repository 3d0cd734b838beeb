/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image.h"
#include "tests/unit/unit_folder.h"
#include "tests/unit/unit_memory.h"

enum { DAMAGES = 20000 };

static const char *const profilers[] = {
    "profiler-64.so",     "profiler-64-sysv.so", "profiler-32.so",
    "profiler-64-big.so", "profiler-32-big.so",
};

struct content {
    uint8_t *data;
    size_t length;
};

/* One of tests/fixtures/images, in a block of exactly its size. */
static struct content read_kept(const char *name)
{
    struct content content = {0};
    char path[1000];

    snprintf(path, sizeof path, "%s/images/%s", FIXTURES, name);
    content.data = unit_file_read(path, &content.length);
    return content;
}

static void check_profiler(const char *name)
{
    struct content content = read_kept(name);
    struct image_elf image;

    ck_assert_msg(image_elf_init(&image, content.data, content.length) == 0, "%s", name);
    ck_assert(image.is_library);
    ck_assert_ptr_null(image.interpreter);
    ck_assert_ptr_null(image.rpath);
    ck_assert_str_eq(image.soname, "profiler.so");
    ck_assert_str_eq(image.runpath, "$ORIGIN/lib");
    ck_assert_uint_eq(image.n_needed, 2);
    ck_assert_str_eq(image.needed[0], "libstdc++.so.6");
    ck_assert_str_eq(image.needed[1], "libc.so.6");
    ck_assert_uint_eq(image.n_versions, 3);
    ck_assert_str_eq(image.versions[0].library, "libstdc++.so.6");
    ck_assert_str_eq(image.versions[0].name, "GLIBCXX_3.4");
    ck_assert(!image.versions[0].is_weak);
    ck_assert_str_eq(image.versions[2].library, "libc.so.6");
    ck_assert_str_eq(image.versions[2].name, "GLIBC_2.34");
    ck_assert(image.versions[2].is_weak);
    ck_assert(image.defines_versions);
    ck_assert(image_elf_defines_version(&image, "PROFILER_1"));
    ck_assert(!image_elf_defines_version(&image, "PROFILER_2"));
    ck_assert(image_elf_exports(&image, "DllGetClassObject"));
    ck_assert(!image_elf_exports(&image, "DllGetClassObjec"));
    ck_assert(!image_elf_exports(&image, "getenv"));
    ck_assert(image_elf_reads_environment(&image));
    image_elf_deinit(&image);
    free(content.data);
}

START_TEST(a_profiler_is_read_in_every_class_and_byte_order)
{
    for (size_t i = 0; i < ARRAY_LENGTH(profilers); i++)
        check_profiler(profilers[i]);
}
END_TEST

START_TEST(what_it_was_built_for)
{
    static const struct {
        const char *name;
        bool is_64, is_big_endian, binds_now;
        uint16_t machine;
    } rows[] = {
        {"profiler-64.so", true, false, false, EM_X86_64},
        {"profiler-64-sysv.so", true, false, true, EM_X86_64},
        {"profiler-32.so", false, false, false, EM_386},
        {"profiler-64-big.so", true, true, false, EM_S390},
        {"profiler-32-big.so", false, true, false, EM_PPC},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct content content = read_kept(rows[i].name);
        struct image_elf image;

        ck_assert_int_eq(image_elf_init(&image, content.data, content.length), 0);
        ck_assert_int_eq(image.is_64, rows[i].is_64);
        ck_assert_int_eq(image.is_big_endian, rows[i].is_big_endian);
        ck_assert_int_eq(image.binds_now, rows[i].binds_now);
        ck_assert_uint_eq(image.machine, rows[i].machine);
        image_elf_deinit(&image);
        free(content.data);
    }
}
END_TEST

START_TEST(undefined_symbols_are_told_one_by_one)
{
    struct content content = read_kept("profiler-64.so");
    struct image_elf image;
    bool is_weak;
    size_t at = 0;

    ck_assert_int_eq(image_elf_init(&image, content.data, content.length), 0);
    ck_assert_str_eq(image_elf_next_undefined(&image, &at, &is_weak), "malloc");
    ck_assert(!is_weak);
    ck_assert_str_eq(image_elf_next_undefined(&image, &at, &is_weak), "getenv");
    ck_assert_str_eq(image_elf_next_undefined(&image, &at, &is_weak), "__gmon_start__");
    ck_assert(is_weak);
    ck_assert_ptr_null(image_elf_next_undefined(&image, &at, &is_weak));
    image_elf_deinit(&image);
    free(content.data);
}
END_TEST

START_TEST(a_program_is_no_library)
{
    struct content content = read_kept("program-64");
    struct image_elf image;

    ck_assert_int_eq(image_elf_init(&image, content.data, content.length), 0);
    ck_assert(!image.is_library);
    ck_assert_str_eq(image.interpreter, "/lib64/ld-linux-x86-64.so.2");
    ck_assert(!image_elf_reads_environment(&image));
    ck_assert(!image_elf_exports(&image, "DllGetClassObject"));
    image_elf_deinit(&image);
    free(content.data);
}
END_TEST

/* This program, as linkers write it: with sections, and libraries that are there. */
START_TEST(what_a_linker_wrote_is_read)
{
    struct content content = {0};
    struct image_elf image;
    bool needs_libc = false;

    content.data = unit_file_read("/proc/self/exe", &content.length);
    ck_assert_int_eq(image_elf_init(&image, content.data, content.length), 0);
    ck_assert_ptr_nonnull(image.interpreter);
    for (size_t i = 0; i < image.n_needed; i++)
        needs_libc |= strncmp(image.needed[i], "libc.", 5) == 0;
    ck_assert(needs_libc);
    image_elf_deinit(&image);
    free(content.data);
}
END_TEST

static int init_cut(const struct content *content, size_t length)
{
    uint8_t *cut = unit_copy(content->data, length);
    struct image_elf image;
    int error = image_elf_init(&image, cut, length);

    if (error == 0)
        image_elf_deinit(&image);
    free(cut);
    return error;
}

START_TEST(a_file_that_is_cut_is_damaged)
{
    for (size_t i = 0; i < ARRAY_LENGTH(profilers); i++) {
        struct content content = read_kept(profilers[i]);

        for (size_t length = 0; length < content.length; length++)
            ck_assert_msg(init_cut(&content, length) ==
                              (length < SELFMAG ? IMAGE_E_OTHER : IMAGE_E_DAMAGED),
                          "%s at %zu", profilers[i], length);
        free(content.data);
    }
}
END_TEST

/* Also where all that we read is there: the program would die of what is not. */
START_TEST(a_segment_behind_the_end_is_damage)
{
    struct content content = read_kept("profiler-64.so");
    struct image_elf image;

    content.data[sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz)]++;
    ck_assert_int_eq(image_elf_init(&image, content.data, content.length), IMAGE_E_DAMAGED);
    free(content.data);
}
END_TEST

START_TEST(what_is_something_else)
{
    static const char *const texts[] = {"", "\177EL", "MZ", "#!/bin/sh\n", "fake-profiler: main\n"};
    struct image_elf image;

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        ck_assert_int_eq(image_elf_init(&image, (const uint8_t *)texts[i], strlen(texts[i])),
                         IMAGE_E_OTHER);
}
END_TEST

/* Everything that can be asked of what could be read, with nothing to be said of the answers. */
static void ask_everything(const struct image_elf *image)
{
    bool is_weak;
    size_t at = 0, n = 0;

    image_elf_exports(image, "DllGetClassObject");
    image_elf_defines_version(image, "PROFILER_1");
    while (image_elf_next_undefined(image, &at, &is_weak))
        n++;
    ck_assert_uint_le(n, at);
    image_elf_reads_environment(image);
    for (size_t i = 0; i < image->n_needed; i++)
        ck_assert_uint_lt(strlen(image->needed[i]), 1000);
}

START_TEST(damage_does_no_harm)
{
    uint64_t dice = 7;

    for (size_t i = 0; i < DAMAGES; i++) {
        struct content content = read_kept(profilers[i % ARRAY_LENGTH(profilers)]);
        struct image_elf image;

        for (uint32_t n = unit_random(&dice) % 4 + 1; n > 0; n--)
            content.data[unit_random(&dice) % content.length] = (uint8_t)unit_random(&dice);
        if (image_elf_init(&image, content.data, content.length) == 0) {
            ask_everything(&image);
            image_elf_deinit(&image);
        }
        free(content.data);
    }
}
END_TEST

START_TEST(the_id_of_the_interface_is_found)
{
    struct content with = read_kept("profiler-64.so"), without = read_kept("profiler-64-sysv.so");

    ck_assert(image_names_info11(with.data, with.length));
    ck_assert(!image_names_info11(without.data, without.length));
    ck_assert(!image_names_info11(NULL, 0));
    for (size_t length = 0; length < 16; length++)
        ck_assert(!image_names_info11(with.data, length));
    free(with.data);
    free(without.data);
}
END_TEST

static int init(void *context)
{
    const struct content *content = context;
    struct image_elf image;
    int error = image_elf_init(&image, content->data, content->length);

    if (error == 0)
        image_elf_deinit(&image);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    struct content content = read_kept("profiler-64.so");

    ck_assert_uint_ge(unit_memory_exhaust(init, &content, -ENOMEM), 1);
    free(content.data);
}
END_TEST

UNIT_TESTS(a_profiler_is_read_in_every_class_and_byte_order, what_it_was_built_for,
           undefined_symbols_are_told_one_by_one, a_program_is_no_library,
           what_a_linker_wrote_is_read, a_file_that_is_cut_is_damaged,
           a_segment_behind_the_end_is_damage, what_is_something_else, damage_does_no_harm,
           the_id_of_the_interface_is_found, every_allocation_may_fail);
