/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include "lib/moment.h"

START_TEST(never_and_forever_stay_so)
{
    ck_assert(moment_is_never(moment_after(MOMENT_NEVER, span_from_s(1))));
    ck_assert(moment_is_never(moment_after(MOMENT_NEVER, span_from_s(-1))));
    ck_assert(moment_is_never(moment_after((struct moment){5}, SPAN_FOREVER)));
    ck_assert(span_is_forever(moment_between((struct moment){5}, MOMENT_NEVER)));
    ck_assert(!moment_is_due(MOMENT_NEVER, MOMENT_NEVER));
}
END_TEST

START_TEST(lengths_add_up)
{
    struct moment start = {1000};

    ck_assert_int_eq(moment_after(start, span_from_ms(2)).us, 3000);
    ck_assert_int_eq(moment_between(start, (struct moment){500}).us, -500);
    ck_assert_int_eq(span_from_s(3).us, 3000000);
    ck_assert(span_seconds(span_from_ms(1500)) > 1.4999 &&
              span_seconds(span_from_ms(1500)) < 1.5001);
    ck_assert(moment_is_due(start, start));
    ck_assert(!moment_is_due((struct moment){1001}, start));
    ck_assert_int_eq(moment_earlier(start, (struct moment){7}).us, 7);
}
END_TEST

UNIT_TESTS(never_and_forever_stay_so, lengths_add_up);
