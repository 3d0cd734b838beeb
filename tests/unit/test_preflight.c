/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/preflight.h"
#include "tests/unit/unit_folder.h"

/* Programs go by them: what is not one word of small letters cannot be a code. */
START_TEST(codes_are_words_and_different)
{
    for (int i = PREFLIGHT_GOOD + 1; i < PREFLIGHT_COUNT; i++) {
        const char *name = preflight_name((enum preflight)i);

        ck_assert_ptr_nonnull(name);
        ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
        for (int k = PREFLIGHT_GOOD + 1; k < i; k++)
            ck_assert_str_ne(name, preflight_name((enum preflight)k));
    }
}
END_TEST

START_TEST(what_is_good_has_no_words)
{
    ck_assert_ptr_null(preflight_name(PREFLIGHT_GOOD));
    ck_assert_ptr_null(preflight_why(PREFLIGHT_GOOD));
    ck_assert_ptr_null(preflight_remedy(PREFLIGHT_GOOD));
}
END_TEST

START_TEST(the_manual_has_all_of_them)
{
    size_t length, n_rows = 0;
    char *manual = (char *)unit_file_read(MANUAL, &length);
    char *table = memmem(manual, length, "| Code | It ... | Remedy |\n", 27);
    char *row;

    ck_assert_ptr_nonnull(table);
    *(char *)memmem(table, length - (size_t)(table - manual), "\n\n", 2) = '\0';
    for (row = strstr(table, "\n| `"); row; row = strstr(row + 1, "\n| `"))
        n_rows++;
    ck_assert_uint_eq(n_rows, PREFLIGHT_COUNT - 1);
    for (int i = PREFLIGHT_GOOD + 1; i < PREFLIGHT_COUNT; i++) {
        enum preflight code = (enum preflight)i;
        char line[1000];

        snprintf(line, sizeof line, "\n| `%s` | %s | %s |", preflight_name(code),
                 preflight_why(code), preflight_remedy(code));
        ck_assert_msg(strstr(table, line) != NULL, "%s", line);
    }
    free(manual);
}
END_TEST

UNIT_TESTS(codes_are_words_and_different, what_is_good_has_no_words, the_manual_has_all_of_them);
