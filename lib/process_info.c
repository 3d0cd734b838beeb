/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/process_info.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/bytes.h"
#include "lib/wire.h"

/* A runtime always sends a string, if only an empty one; a null one is read as empty. */
static bool get_text(struct bytes_reader *reader, char **ret_text)
{
    if (!wire_get_string(reader, ret_text))
        return false;
    if (!*ret_text)
        *ret_text = calloc(1, 1);
    return *ret_text != NULL;
}

static bool read_fields(enum command_id form, struct bytes_reader *reader,
                        struct process_info *info)
{
    uint32_t layout;

    if (form == COMMAND_PROCESS_INFO_3 && !bytes_get_u32(reader, &layout))
        return false;
    if (!bytes_get_u64(reader, &info->pid) || !wire_get_guid(reader, &info->cookie) ||
        !get_text(reader, &info->command_line) || !get_text(reader, &info->os) ||
        !get_text(reader, &info->architecture))
        return false;
    if (form == COMMAND_PROCESS_INFO)
        return true;
    if (!get_text(reader, &info->entry_assembly) || !get_text(reader, &info->version))
        return false;
    return form == COMMAND_PROCESS_INFO_2 || get_text(reader, &info->rid);
}

bool process_info_read(enum command_id form, const uint8_t *payload, size_t length,
                       struct process_info *ret_info)
{
    struct bytes_reader reader = bytes_reader_over(payload, length);
    struct process_info info = {0};

    assert(command_row(form)->answer == COMMAND_ANSWERS_PROCESS_INFO);
    if (!read_fields(form, &reader, &info)) {
        process_info_deinit(&info);
        return false;
    }
    *ret_info = info;
    return true;
}

void process_info_deinit(struct process_info *info)
{
    free(info->command_line);
    free(info->os);
    free(info->architecture);
    free(info->entry_assembly);
    free(info->version);
    free(info->rid);
    *info = (struct process_info){0};
}

unsigned process_info_major(const char *version)
{
    unsigned major = 0;

    for (const char *at = version; *at != '.'; at++) {
        if (*at < '0' || *at > '9' || major > 99)
            return 0;
        major = major * 10 + (unsigned)(*at - '0');
    }
    return major;
}
