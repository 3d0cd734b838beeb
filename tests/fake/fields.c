/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/fields.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/hresult.h"
#include "lib/wire.h"
#include "tests/fake/commands.h"
#include "tests/fake/runtime.h"

static bool fail(struct call *call)
{
    call->result = HRESULT_BAD_ENCODING;
    return false;
}

/* Copies `size` bytes of the payload, or what is there of them and zeros. */
static bool take(struct call *call, void *data, size_t size)
{
    size_t there = call->payload.left < size ? call->payload.left : size;
    const uint8_t *run;

    if (there < size && !call->runtime->version->short_payload_is_read)
        return fail(call);
    if (call->is_empty)
        runtime_die(SIGSEGV, "an empty payload");
    memset(data, 0, size);
    if (bytes_get_run(&call->payload, there, &run) && there > 0)
        memcpy(data, run, there);
    return true;
}

static bool take_number(struct call *call, const char *name, size_t size, uint64_t *ret_number)
{
    uint8_t bytes[8];

    if (!take(call, bytes, size))
        return false;
    *ret_number = 0;
    for (size_t i = size; i-- > 0;)
        *ret_number = *ret_number << 8 | bytes[i];
    report_number(call->record, name, *ret_number);
    return true;
}

bool fields_get_u8(struct call *call, const char *name, uint8_t *ret_value)
{
    uint64_t number;

    if (!take_number(call, name, 1, &number))
        return false;
    *ret_value = (uint8_t)number;
    return true;
}

bool fields_get_u32(struct call *call, const char *name, uint32_t *ret_value)
{
    uint64_t number;

    if (!take_number(call, name, 4, &number))
        return false;
    *ret_value = (uint32_t)number;
    return true;
}

bool fields_get_u64(struct call *call, const char *name, uint64_t *ret_value)
{
    return take_number(call, name, 8, ret_value);
}

bool fields_get_guid(struct call *call, const char *name, struct guid *ret_guid)
{
    char text[GUID_TEXT_SIZE];

    if (!take(call, ret_guid->bytes, GUID_SIZE))
        return false;
    guid_format(ret_guid, text);
    report_text(call->record, name, text);
    return true;
}

bool fields_get_string(struct call *call, const char *name, char **ret_text)
{
    bool is_careless = call->runtime->version->short_payload_is_read;

    if (call->is_empty && is_careless)
        runtime_die(SIGSEGV, "an empty payload");
    if (call->payload.left > 0 && call->payload.left < 4 && is_careless)
        runtime_die(SIGSEGV, "a string whose length is cut");
    if (call->payload.left == 0 && is_careless)
        *ret_text = NULL;
    else if (!wire_get_string(&call->payload, ret_text))
        return fail(call);
    report_text(call->record, name, *ret_text);
    return true;
}

void fields_note_rest(const struct call *call, const char *name)
{
    struct bytes_reader rest = call->payload;
    struct bytes text;
    uint8_t byte;

    bytes_init(&text, SIZE_MAX - 1);
    while (bytes_get_u8(&rest, &byte))
        bytes_put_format(&text, "%02x", byte);
    if (bytes_finish(&text) == 0)
        report_text(call->record, name, (const char *)text.data);
    bytes_deinit(&text);
}

void fields_set_subject(struct call *call, const char *text, const char *between, const char *more)
{
    struct bytes subject;

    if (!call->record || call->record->subject)
        return;
    bytes_init(&subject, SIZE_MAX - 1);
    bytes_put_format(&subject, "%s%s%s", text ? text : "", between, more ? more : "");
    if (bytes_finish(&subject) == 0)
        call->record->subject = (char *)bytes_take(&subject);
}
