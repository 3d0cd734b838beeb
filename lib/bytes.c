/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/bytes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bytes_get_run(struct bytes_reader *reader, size_t length, const uint8_t **ret_run)
{
    if (reader->left < length)
        return false;
    *ret_run = reader->at;
    reader->at += length;
    reader->left -= length;
    return true;
}

static bool get_little_endian(struct bytes_reader *reader, size_t length, uint64_t *ret_value)
{
    const uint8_t *run;
    uint64_t value = 0;

    if (!bytes_get_run(reader, length, &run))
        return false;
    for (size_t i = length; i-- > 0;)
        value = value << 8 | run[i];
    *ret_value = value;
    return true;
}

bool bytes_get_u8(struct bytes_reader *reader, uint8_t *ret_value)
{
    uint64_t value;

    if (!get_little_endian(reader, 1, &value))
        return false;
    *ret_value = (uint8_t)value;
    return true;
}

bool bytes_get_u16(struct bytes_reader *reader, uint16_t *ret_value)
{
    uint64_t value;

    if (!get_little_endian(reader, 2, &value))
        return false;
    *ret_value = (uint16_t)value;
    return true;
}

bool bytes_get_u32(struct bytes_reader *reader, uint32_t *ret_value)
{
    uint64_t value;

    if (!get_little_endian(reader, 4, &value))
        return false;
    *ret_value = (uint32_t)value;
    return true;
}

bool bytes_get_u64(struct bytes_reader *reader, uint64_t *ret_value)
{
    return get_little_endian(reader, 8, ret_value);
}

void bytes_init(struct bytes *bytes, size_t limit)
{
    *bytes = (struct bytes){.limit = limit};
}

void bytes_deinit(struct bytes *bytes)
{
    free(bytes->data);
    bytes_init(bytes, bytes->limit);
}

/* Makes room for `extra` bytes and a closing NUL, or sets the sticky error. */
static bool reserve(struct bytes *bytes, size_t extra)
{
    size_t wanted, capacity;
    uint8_t *data;

    if (bytes->error != 0)
        return false;
    if (extra > bytes->limit - bytes->length) {
        bytes->error = -EMSGSIZE;
        return false;
    }
    wanted = bytes->length + extra + 1;
    if (wanted <= bytes->capacity)
        return true;
    capacity = bytes->capacity < 64 ? 64 : bytes->capacity;
    while (capacity < wanted)
        capacity *= 2;
    data = realloc(bytes->data, capacity);
    if (!data) {
        bytes->error = -ENOMEM;
        return false;
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void bytes_put_run(struct bytes *bytes, const void *run, size_t length)
{
    if (length == 0 || !reserve(bytes, length))
        return;
    memcpy(bytes->data + bytes->length, run, length);
    bytes->length += length;
}

static void put_little_endian(struct bytes *bytes, uint64_t value, size_t length)
{
    uint8_t run[8];

    for (size_t i = 0; i < length; i++)
        run[i] = (uint8_t)(value >> (8 * i));
    bytes_put_run(bytes, run, length);
}

void bytes_put_u8(struct bytes *bytes, uint8_t value)
{
    put_little_endian(bytes, value, 1);
}

void bytes_put_u16(struct bytes *bytes, uint16_t value)
{
    put_little_endian(bytes, value, 2);
}

void bytes_put_u32(struct bytes *bytes, uint32_t value)
{
    put_little_endian(bytes, value, 4);
}

void bytes_put_u64(struct bytes *bytes, uint64_t value)
{
    put_little_endian(bytes, value, 8);
}

void bytes_put_string(struct bytes *bytes, const char *string)
{
    bytes_put_run(bytes, string, strlen(string));
}

void bytes_put_format(struct bytes *bytes, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !reserve(bytes, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf((char *)bytes->data + bytes->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    bytes->length += (size_t)length;
}

int bytes_finish(struct bytes *bytes)
{
    if (!reserve(bytes, 0))
        return bytes->error;
    bytes->data[bytes->length] = '\0';
    return 0;
}

void bytes_drop(struct bytes *bytes, size_t length)
{
    if (length == 0)
        return;
    bytes->length -= length;
    memmove(bytes->data, bytes->data + length, bytes->length);
}

uint8_t *bytes_take(struct bytes *bytes)
{
    uint8_t *data = bytes->data;

    bytes_init(bytes, bytes->limit);
    return data;
}
