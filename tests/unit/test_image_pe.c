/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image.h"
#include "tests/unit/unit_folder.h"

enum { DAMAGES = 50000 };

START_TEST(what_a_hook_has_to_have)
{
    static const struct {
        const char *name;
        int error;
        struct image_pe image;
    } rows[] = {
        {"hook.dll", 0, {true, true, true}},
        {"hook-plus-wide.dll", 0, {true, true, true}},
        {"hook-nested.dll", 0, {true, false, false}},
        {"hook-in-namespace.dll", 0, {true, false, false}},
        {"hook-of-other-name.dll", 0, {true, false, false}},
        {"hook-not-static.dll", 0, {true, true, false}},
        {"hook-takes-arguments.dll", 0, {true, true, false}},
        {"hook-without-initialize.dll", 0, {true, true, false}},
        {"hook-forwards.dll", IMAGE_E_UNKNOWN, {0}},
        {"hook-uncompressed.dll", IMAGE_E_UNKNOWN, {0}},
        {"module.netmodule", 0, {false, false, false}},
        {"native.dll", 0, {false, false, false}},
        {"profiler-64.so", IMAGE_E_OTHER, {0}},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct image_pe image = {0};
        char path[1000];
        size_t length;
        uint8_t *data;

        snprintf(path, sizeof path, "%s/images/%s", FIXTURES, rows[i].name);
        data = unit_file_read(path, &length);
        ck_assert_msg(image_pe_read(data, length, &image) == rows[i].error, "%s", rows[i].name);
        ck_assert_msg(image.is_assembly == rows[i].image.is_assembly &&
                          image.has_hook == rows[i].image.has_hook &&
                          image.has_initialize == rows[i].image.has_initialize,
                      "%s", rows[i].name);
        free(data);
    }
}
END_TEST

/* It says that it is damaged, or before it says what it is, that it is something else. */
START_TEST(a_file_that_is_cut_is_damaged)
{
    size_t whole;
    uint8_t *data = unit_file_read(FIXTURES "/images/hook.dll", &whole);

    for (size_t length = 0; length < whole; length++) {
        uint8_t *cut = unit_copy(data, length);
        struct image_pe image;

        ck_assert_msg(image_pe_read(cut, length, &image) ==
                          (length < 2 ? IMAGE_E_OTHER : IMAGE_E_DAMAGED),
                      "at %zu", length);
        free(cut);
    }
    free(data);
}
END_TEST

/* Also where all that we read is there. */
START_TEST(a_section_behind_the_end_is_damage)
{
    enum { SIZE_OF_DATA = 16 };
    size_t length;
    uint8_t *data = unit_file_read(FIXTURES "/images/hook.dll", &length);
    uint8_t *section = memmem(data, length, ".text", 5);
    struct image_pe image;

    ck_assert_ptr_nonnull(section);
    section[SIZE_OF_DATA]++;
    ck_assert_int_eq(image_pe_read(data, length, &image), IMAGE_E_DAMAGED);
    free(data);
}
END_TEST

START_TEST(what_is_something_else)
{
    static const char dos[64] = "MZ";
    struct image_pe image;

    ck_assert_int_eq(image_pe_read((const uint8_t *)"fake-hook: ok\n", 14, &image), IMAGE_E_OTHER);
    ck_assert_int_eq(image_pe_read((const uint8_t *)dos, sizeof dos, &image), IMAGE_E_OTHER);
    ck_assert_int_eq(image_pe_read((const uint8_t *)"", 0, &image), IMAGE_E_OTHER);
}
END_TEST

START_TEST(damage_does_no_harm)
{
    uint64_t dice = 7;
    size_t length;
    uint8_t *data = unit_file_read(FIXTURES "/images/hook.dll", &length);

    for (size_t i = 0; i < DAMAGES; i++) {
        uint8_t *copy = unit_copy(data, length);
        struct image_pe image = {0};

        for (uint32_t n = unit_random(&dice) % 4 + 1; n > 0; n--)
            copy[unit_random(&dice) % length] = (uint8_t)unit_random(&dice);
        if (image_pe_read(copy, length, &image) == 0)
            ck_assert(image.is_assembly || !image.has_hook);
        ck_assert(image.has_hook || !image.has_initialize);
        free(copy);
    }
    free(data);
}
END_TEST

UNIT_TESTS(what_a_hook_has_to_have, a_file_that_is_cut_is_damaged,
           a_section_behind_the_end_is_damage, what_is_something_else, damage_does_no_harm);
