/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/ration.h"
#include "lib/bytes.h"

static unsigned take(struct ration *ration, uint32_t uid, unsigned times)
{
    unsigned n = 0;

    while (times-- > 0)
        n += ration_take(ration, &ration_few, uid);
    return n;
}

static void assert_left_out(const struct ration *ration, const char *expected)
{
    struct bytes out;

    bytes_init(&out, 1000);
    ration_put_left_out(ration, &out);
    ck_assert_int_eq(bytes_finish(&out), 0);
    ck_assert_str_eq((const char *)out.data, expected);
    ck_assert_int_eq(ration_has_left_out(ration), *expected != '\0');
    bytes_deinit(&out);
}

START_TEST(one_user_has_a_few)
{
    struct ration ration = {0};

    assert_left_out(&ration, "");
    ck_assert_uint_eq(take(&ration, 1000, 5), 5);
    assert_left_out(&ration, "");
    ck_assert_uint_eq(take(&ration, 1000, 7), 0);
    assert_left_out(&ration, "7 of uid=1000");
}
END_TEST

/* However much one has done, and before whom. */
START_TEST(nobody_hides_another_one)
{
    struct ration ration = {0};

    ck_assert_uint_eq(take(&ration, 1000, 100000), 5);
    ck_assert_uint_eq(take(&ration, 33, 2), 2);
    ck_assert_uint_eq(take(&ration, 0, 6), 5);
    assert_left_out(&ration, "99995 of uid=1000, 1 of uid=0");
}
END_TEST

/* Not with a few more users of his own either: of each user one line is told. */
START_TEST(a_few_users_hide_nobody)
{
    struct ration ration = {0};

    for (uint32_t uid = 1; uid <= 8; uid++)
        take(&ration, uid, 1000);
    ck_assert_uint_eq(ration.n, ration_few.of_all / 2 + 4);
    ck_assert_uint_eq(take(&ration, 1000, 10), 1);
}
END_TEST

/* One that may have half of all has not all but the first line of everybody. */
START_TEST(what_is_sure_is_told_of_everybody)
{
    static const struct ration_bounds much = {.sure = 10, .of_user = 50, .of_all = 100};
    struct ration ration = {0};
    unsigned n = 0;

    for (unsigned i = 0; i < 1000; i++)
        n += ration_take(&ration, &much, 1000);
    ck_assert_uint_eq(n, 50);
    for (uint32_t uid = 1; uid <= 5; uid++) {
        n = 0;
        for (unsigned i = 0; i < 10; i++)
            n += ration_take(&ration, &much, uid);
        ck_assert_uint_eq(n, 10);
        ck_assert(!ration_take(&ration, &much, uid));
    }
    ck_assert_uint_eq(ration.n, 100);
}
END_TEST

START_TEST(all_together_have_a_bound)
{
    struct ration ration = {0};
    unsigned n = 0;

    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t uid = 1; uid <= 10000; uid++)
            n += ration_take(&ration, &ration_few, uid);
    }
    ck_assert_uint_eq(n, ration_few.of_all);
    ck_assert_uint_eq(ration.n_users, RATION_USERS);
}
END_TEST

/* Who finds no room has what one has, with all others of whom that is so. */
START_TEST(the_last_ones_share)
{
    static const struct ration_bounds many = {.sure = 1, .of_user = 3, .of_all = 1000};
    struct ration ration = {0};
    unsigned n = 0;

    for (uint32_t uid = 1; uid <= RATION_USERS + 100; uid++)
        n += ration_take(&ration, &many, uid);
    ck_assert_uint_eq(n, RATION_USERS + 3);
    assert_left_out(&ration, "97 of others");
}
END_TEST

/* Nobody is forgotten in the count, and it is one short line. */
START_TEST(all_that_is_left_out_is_counted)
{
    struct ration ration = {0};
    unsigned n = 0;

    for (uint32_t uid = 1; uid <= 1000; uid++)
        n += take(&ration, uid, 10);
    ck_assert_uint_eq(n, ration_few.of_all);
    /* Of the first four users five were told each, of the next twenty one. */
    assert_left_out(&ration, "5 of uid=1, 5 of uid=2, 5 of uid=3, 5 of uid=4, 9 of uid=5, "
                             "9 of uid=6, 9 of uid=7, 9 of uid=8, 9904 of others");
}
END_TEST

UNIT_TESTS(one_user_has_a_few, nobody_hides_another_one, a_few_users_hide_nobody,
           what_is_sure_is_told_of_everybody, all_together_have_a_bound, the_last_ones_share,
           all_that_is_left_out_is_counted);
