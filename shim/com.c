/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/com.h"

#include <stddef.h>

const struct com_guid com_unknown = {0x00000000, 0x0000, 0x0000, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
const struct com_guid com_class_factory = {0x00000001,
                                           0x0000,
                                           0x0000,
                                           {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};

bool com_is_same(const struct com_guid *left, const struct com_guid *right)
{
    bool same =
        left->first == right->first && left->second == right->second && left->third == right->third;

    for (size_t i = 0; i < sizeof left->rest; i++)
        same = same && left->rest[i] == right->rest[i];
    return same;
}
