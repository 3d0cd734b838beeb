/* SPDX-License-Identifier: Apache-2.0 */

/* The header of a message, and the strings in it. */

#include "lib/bytes.h"
#include "lib/text.h"
#include "lib/wire.h"
#include "tests/fuzz/fuzz.h"

static void check_header(const uint8_t *data)
{
    struct wire_header header = {.size = 0};
    struct bytes message;

    if (wire_header_read(data, &header) != 0)
        return;
    FUZZ_HOLDS(header.size >= WIRE_HEADER_SIZE);
    FUZZ_HOLDS(wire_magic_is_possible(data, WIRE_HEADER_SIZE));
    bytes_init(&message, WIRE_MESSAGE_MAX);
    wire_message_begin(&message, header.set, header.id);
    FUZZ_HOLDS(wire_message_end(&message) == 0);
    /* All but the size and the reserved bytes. */
    FUZZ_HOLDS(memcmp(message.data, data, 14) == 0);
    FUZZ_HOLDS(memcmp(message.data + 16, data + 16, 2) == 0);
    bytes_deinit(&message);
}

/* Written and read again it is the same, where it is UTF-8; else it is refused. */
static void check_text(const char *text)
{
    struct bytes_reader reader;
    struct bytes message;
    char *again = NULL;
    bool is_utf8 = !text || text_is_utf8(text, strlen(text));
    int error;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    wire_message_begin(&message, 1, 1);
    wire_put_string(&message, text);
    error = wire_message_end(&message);
    FUZZ_HOLDS(is_utf8 ? error == 0 || error == WIRE_E_TOO_LONG : error == WIRE_E_TEXT);
    if (error == 0) {
        FUZZ_HOLDS(message.length == WIRE_HEADER_SIZE + wire_string_size(text));
        reader =
            bytes_reader_over(message.data + WIRE_HEADER_SIZE, message.length - WIRE_HEADER_SIZE);
        FUZZ_HOLDS(wire_get_string(&reader, &again));
        FUZZ_HOLDS(reader.left == 0);
        FUZZ_HOLDS(text ? again && strcmp(again, text) == 0 : !again);
        free(again);
    }
    bytes_deinit(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes_reader reader = bytes_reader_over(data, size);
    const uint8_t *header;
    struct guid guid;
    char *text;

    if (bytes_get_run(&reader, WIRE_HEADER_SIZE, &header))
        check_header(header);
    while (reader.left > 0 && wire_get_string(&reader, &text)) {
        check_text(text);
        free(text);
    }
    if (wire_get_guid(&reader, &guid))
        FUZZ_HOLDS(guid_compare(&guid, &guid) == 0);
    text = fuzz_text(data, size);
    check_text(text);
    free(text);
    return 0;
}
