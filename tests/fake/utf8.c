/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/utf8.h"

#include <stdint.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"

char *utf8_repair(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t left = strlen(text);
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    while (left > 0) {
        uint32_t code_point;
        size_t size = text_decode(at, left, &code_point);

        if (size > 0)
            bytes_put_run(&out, at, size);
        else
            bytes_put_string(&out, "\xEF\xBF\xBD");
        at += size > 0 ? size : 1;
        left -= size > 0 ? size : 1;
    }
    if (bytes_finish(&out) != 0)
        bytes_deinit(&out);
    return (char *)bytes_take(&out);
}

void utf8_put_json(struct bytes *out, const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t left;

    if (!text) {
        bytes_put_string(out, "null");
        return;
    }
    bytes_put_u8(out, '"');
    for (left = strlen(text); left > 0;) {
        uint32_t code_point;
        size_t size = text_decode(at, left, &code_point);

        if (size == 0)
            bytes_put_format(out, "\\udc%02x", at[0]);
        else if (at[0] < 0x20 || at[0] == 0x7F)
            bytes_put_format(out, "\\u%04x", at[0]);
        else if (at[0] == '"' || at[0] == '\\')
            bytes_put_format(out, "\\%c", at[0]);
        else
            bytes_put_run(out, at, size);
        at += size > 0 ? size : 1;
        left -= size > 0 ? size : 1;
    }
    bytes_put_u8(out, '"');
}
