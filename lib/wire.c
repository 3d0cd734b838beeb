/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"

enum { MAGIC_SIZE = 14, SIZE_OFFSET = 14 };

static const uint8_t magic[MAGIC_SIZE] = "DOTNET_IPC_V1";

int wire_header_read(const uint8_t bytes[static WIRE_HEADER_SIZE], struct wire_header *ret_header)
{
    uint16_t size = (uint16_t)(bytes[SIZE_OFFSET] | bytes[SIZE_OFFSET + 1] << 8);

    if (memcmp(bytes, magic, MAGIC_SIZE) != 0)
        return WIRE_E_MAGIC;
    if (size < WIRE_HEADER_SIZE)
        return WIRE_E_SIZE;
    *ret_header = (struct wire_header){.size = size, .set = bytes[16], .id = bytes[17]};
    return 0;
}

bool wire_magic_is_possible(const uint8_t *bytes, size_t length)
{
    return memcmp(bytes, magic, length < MAGIC_SIZE ? length : MAGIC_SIZE) == 0;
}

void wire_message_begin(struct bytes *message, uint8_t set, uint8_t id)
{
    bytes_put_run(message, magic, MAGIC_SIZE);
    bytes_put_u16(message, 0);
    bytes_put_u8(message, set);
    bytes_put_u8(message, id);
    bytes_put_u16(message, 0);
}

int wire_message_end(struct bytes *message)
{
    int error = bytes_finish(message);

    if (error == -EMSGSIZE || (error == 0 && message->length > WIRE_MESSAGE_MAX))
        return WIRE_E_TOO_LONG;
    if (error == -EILSEQ)
        return WIRE_E_TEXT;
    if (error != 0)
        return error;
    message->data[SIZE_OFFSET] = (uint8_t)message->length;
    message->data[SIZE_OFFSET + 1] = (uint8_t)(message->length >> 8);
    return 0;
}

void wire_put_string(struct bytes *message, const char *text)
{
    if (!text) {
        bytes_put_u32(message, 0);
        return;
    }
    bytes_put_u32(message, (uint32_t)text_utf16_units(text) + 1);
    if (!text_put_utf16(message, text) && message->error == 0)
        message->error = -EILSEQ;
    bytes_put_u16(message, 0);
}

void wire_put_guid(struct bytes *message, const struct guid *guid)
{
    bytes_put_run(message, guid->bytes, GUID_SIZE);
}

size_t wire_string_size(const char *text)
{
    return text ? WIRE_STRING_OVERHEAD + 2 * text_utf16_units(text) : 4;
}

bool wire_get_string(struct bytes_reader *reader, char **ret_text)
{
    struct bytes_reader at = *reader;
    struct bytes text;
    const uint8_t *run;
    uint32_t units;

    if (!bytes_get_u32(&at, &units))
        return false;
    if (units == 0) {
        *ret_text = NULL;
        *reader = at;
        return true;
    }
    /* Twice the count may not fit a size_t of 32 bits. */
    if (units > at.left / 2 || !bytes_get_run(&at, (size_t)units * 2, &run))
        return false;
    if (run[2 * (size_t)units - 2] != 0 || run[2 * (size_t)units - 1] != 0)
        return false;
    bytes_init(&text, (size_t)units * 3);
    text_put_utf8(&text, run, units);
    if (bytes_finish(&text) != 0) {
        bytes_deinit(&text);
        return false;
    }
    *ret_text = (char *)bytes_take(&text);
    *reader = at;
    return true;
}

bool wire_get_guid(struct bytes_reader *reader, struct guid *ret_guid)
{
    const uint8_t *run;

    if (!bytes_get_run(reader, GUID_SIZE, &run))
        return false;
    memcpy(ret_guid->bytes, run, GUID_SIZE);
    return true;
}
