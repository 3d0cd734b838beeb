/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/names.h"

#include <errno.h>
#include <stdio.h>

#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

START_TEST(numbers_have_names)
{
    struct names *names = names_new();

    ck_assert_ptr_nonnull(names);
    ck_assert_ptr_null(names_user(names, 0));
    ck_assert_int_eq(names_add_user(names, 0, "root"), 0);
    ck_assert_int_eq(names_add_user(names, 4294967294, "last"), 0);
    ck_assert_int_eq(names_add_group(names, 0, "wheel"), 0);
    ck_assert_str_eq(names_user(names, 0), "root");
    ck_assert_str_eq(names_user(names, 4294967294), "last");
    ck_assert_str_eq(names_group(names, 0), "wheel");
    ck_assert_ptr_null(names_user(names, 1));
    ck_assert_ptr_null(names_group(names, 4294967294));
    ck_assert_ptr_null(names_free(names));
    ck_assert_ptr_null(names_free(NULL));
}
END_TEST

START_TEST(first_name_stays)
{
    struct names *names = names_new();
    char name[] = "root";

    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(names_add_user(names, 0, name), 0);
    ck_assert_int_eq(names_add_user(names, 0, "toor"), 0);
    name[0] = 'X'; /* the table has a copy */
    ck_assert_str_eq(names_user(names, 0), "root");
    names_free(names);
}
END_TEST

enum { MANY = 50000 };

/* As many as a large directory has, in an order that is neither up nor down. */
START_TEST(table_may_be_large)
{
    struct names *names = names_new();
    char name[16];

    ck_assert_ptr_nonnull(names);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t id = i * 7919 % MANY;

        snprintf(name, sizeof name, "u%u", id);
        ck_assert_int_eq(names_add_user(names, 2 * id, name), 0);
    }
    for (uint32_t id = 0; id < MANY; id++) {
        snprintf(name, sizeof name, "u%u", id);
        ck_assert_str_eq(names_user(names, 2 * id), name);
        ck_assert_ptr_null(names_user(names, 2 * id + 1));
    }
    names_free(names);
}
END_TEST

static int make_table(void *context)
{
    struct names *names = names_new();
    int error;

    (void)context;
    if (!names)
        return -ENOMEM;
    error = names_add_user(names, 1, "one");
    if (error == 0)
        error = names_add_user(names, 1, "uno");
    if (error == 0)
        error = names_add_group(names, 1, "one");
    if (error != 0 && names_group(names, 1))
        error = 1;
    names_free(names);
    return error;
}

START_TEST(running_out_of_memory_is_said)
{
    ck_assert_uint_eq(unit_memory_exhaust(make_table, NULL, -ENOMEM), 3);
}
END_TEST

UNIT_TESTS(numbers_have_names, first_name_stays, table_may_be_large, running_out_of_memory_is_said);
