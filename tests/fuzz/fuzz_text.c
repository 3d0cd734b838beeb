/* SPDX-License-Identifier: Apache-2.0 */

/* Foreign bytes as they are shown, as UTF-16, and as numbers and GUIDs. */

#include "lib/bytes.h"
#include "lib/guid.h"
#include "lib/text.h"
#include "tests/fuzz/fuzz.h"

static unsigned digit_of(char digit)
{
    return digit <= '9' ? (unsigned)(digit - '0') : (unsigned)(digit - 'a' + 10);
}

/* What is shown can be turned back, is one line, and is UTF-8. */
static void check_escaped(const uint8_t *data, size_t size)
{
    char *escaped = text_escape(data, size);
    size_t length = 0;

    FUZZ_HOLDS(escaped);
    FUZZ_HOLDS(text_is_utf8(escaped, strlen(escaped)));
    for (const char *at = escaped; *at != '\0'; length++) {
        unsigned byte = (unsigned char)*at;

        FUZZ_HOLDS(byte >= ' ' && byte != 0x7F);
        if (*at == '\\') {
            FUZZ_HOLDS(at[1] == 'x');
            byte = digit_of(at[2]) << 4 | digit_of(at[3]);
            at += 4;
        } else {
            at++;
        }
        FUZZ_HOLDS(length < size && data[length] == byte);
    }
    FUZZ_HOLDS(length == size);
    free(escaped);
}

static void check_utf16(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct bytes utf16, utf8;

    bytes_init(&utf16, SIZE_MAX - 1);
    bytes_init(&utf8, SIZE_MAX - 1);
    if (text_put_utf16(&utf16, text)) {
        FUZZ_HOLDS(text_is_utf8(text, strlen(text)));
        FUZZ_HOLDS(utf16.length == 2 * text_utf16_units(text));
        text_put_utf8(&utf8, utf16.data, utf16.length / 2);
        FUZZ_HOLDS(bytes_finish(&utf8) == 0);
        FUZZ_HOLDS(strcmp((const char *)utf8.data, text) == 0);
    } else {
        FUZZ_HOLDS(!text_is_utf8(text, strlen(text)));
        FUZZ_HOLDS(utf16.length == 0);
    }
    bytes_deinit(&utf16);
    bytes_deinit(&utf8);
    /* The other way round nothing has to hold but that it ends. */
    text_put_utf8(&utf8, data, size / 2);
    bytes_deinit(&utf8);
    free(text);
}

static void check_number(const uint8_t *data, size_t size)
{
    char *text = (char *)fuzz_copy(data, size), again[32];
    uint64_t number;

    if (text_number(text, size, UINT64_MAX, &number)) {
        FUZZ_HOLDS((size_t)snprintf(again, sizeof again, "%llu", (unsigned long long)number) ==
                   size);
        FUZZ_HOLDS(memcmp(again, text, size) == 0);
        FUZZ_HOLDS(text_number(text, size, number, &number));
        FUZZ_HOLDS(number == 0 || !text_number(text, size, number - 1, &number));
    }
    free(text);
}

static void check_guid(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), written[GUID_TEXT_SIZE];
    struct guid guid, again;

    if (guid_parse(text, &guid)) {
        guid_format(&guid, written);
        FUZZ_HOLDS(guid_parse(written, &again) && guid_compare(&guid, &again) == 0);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_escaped(data, size);
    check_utf16(data, size);
    check_number(data, size);
    check_guid(data, size);
    return 0;
}
