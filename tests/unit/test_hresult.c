/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/hresult.h"

#include "tests/unit/unit.h"

/* The numbers are the runtime's, so a slip in the header must not go unseen. */
START_TEST(codes_are_the_runtimes)
{
    ck_assert_uint_eq(HRESULT_OK, 0x00000000);
    ck_assert_uint_eq(HRESULT_FAIL, 0x80004005);
    ck_assert_uint_eq(HRESULT_INVALID_ARGUMENT, 0x80070057);
    ck_assert_uint_eq(HRESULT_VARIABLE_NOT_FOUND, 0x800700CB);
    ck_assert_uint_eq(HRESULT_NOT_YET_AVAILABLE, 0x8013135B);
    ck_assert_uint_eq(HRESULT_BAD_ENCODING, 0x80131384);
    ck_assert_uint_eq(HRESULT_UNKNOWN_COMMAND, 0x80131385);
    ck_assert_uint_eq(HRESULT_UNKNOWN_MAGIC, 0x80131386);
    ck_assert_uint_eq(HRESULT_NOT_SUPPORTED, 0x80131515);
}
END_TEST

/* Each code that a runtime was seen to answer with is explained, and differently. */
START_TEST(codes_have_meanings)
{
    static const uint32_t seen[] = {
        0x00000000, 0x80004005, 0x80070057, 0x800700CB, 0x8013135B, 0x8013136A, 0x80131371,
        0x80131384, 0x80131385, 0x80131386, 0x80131515, 0x80070008, 0x8007007E, 0x8007007F,
    };

    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        ck_assert_str_ne(hresult_meaning(seen[i]), "");
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(hresult_meaning(seen[i]), hresult_meaning(seen[k]));
    }
    ck_assert_str_eq(hresult_meaning(HRESULT_VARIABLE_NOT_FOUND),
                     "the variable to unset was not set");
}
END_TEST

START_TEST(other_codes_have_none)
{
    ck_assert_str_eq(hresult_meaning(0x0000FFFF), "");
    ck_assert_str_eq(hresult_meaning(0xFFFFFFFF), "");
    ck_assert_str_eq(hresult_meaning(0x800000CB), "");
}
END_TEST

UNIT_TESTS(codes_are_the_runtimes, codes_have_meanings, other_codes_have_none);
