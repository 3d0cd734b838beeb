/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/advertise.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wire.h"

enum { MAGIC_SIZE = 8 };

static const uint8_t magic[MAGIC_SIZE] = "ADVR_V1";

bool advertise_is_possible(const uint8_t *bytes, size_t length)
{
    return memcmp(bytes, magic, length < MAGIC_SIZE ? length : MAGIC_SIZE) == 0;
}

bool advertise_read(const uint8_t bytes[static ADVERTISE_SIZE], struct advertise *ret_advertise)
{
    struct bytes_reader reader = bytes_reader_over(bytes + MAGIC_SIZE, ADVERTISE_SIZE - MAGIC_SIZE);

    if (!advertise_is_possible(bytes, ADVERTISE_SIZE))
        return false;
    return wire_get_guid(&reader, &ret_advertise->cookie) &&
           bytes_get_u64(&reader, &ret_advertise->pid);
}

void advertise_write(const struct advertise *advertise, uint8_t ret_bytes[static ADVERTISE_SIZE])
{
    memset(ret_bytes, 0, ADVERTISE_SIZE);
    memcpy(ret_bytes, magic, MAGIC_SIZE);
    memcpy(ret_bytes + MAGIC_SIZE, advertise->cookie.bytes, GUID_SIZE);
    for (size_t i = 0; i < 8; i++)
        ret_bytes[MAGIC_SIZE + GUID_SIZE + i] = (uint8_t)(advertise->pid >> (8 * i));
}
