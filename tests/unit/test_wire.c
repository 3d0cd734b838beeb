/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdlib.h>

#include "lib/bytes.h"
#include "lib/wire.h"

START_TEST(header_is_read)
{
    struct unit_bytes bytes = unit_vector("M 24 00 04 03 00 00");
    struct wire_header header;

    ck_assert_int_eq(wire_header_read(bytes.data, &header), 0);
    ck_assert_uint_eq(header.size, 36);
    ck_assert_uint_eq(header.set, 4);
    ck_assert_uint_eq(header.id, 3);
}
END_TEST

UNIT_TESTS(header_is_read);
