/* SPDX-License-Identifier: Apache-2.0 */

/* What a runtime says of itself, in all three forms. */

#include "lib/process_info.h"
#include "lib/text.h"
#include "tests/fuzz/fuzz.h"

static void check_version(const char *version)
{
    unsigned major = process_info_major(version);
    char beginning[16];

    FUZZ_HOLDS(major <= 999);
    snprintf(beginning, sizeof beginning, "%u.", major);
    FUZZ_HOLDS(major == 0 || strstr(version, beginning));
}

static void read_form(enum command_id form, const uint8_t *data, size_t size)
{
    struct process_info info;
    bool has_more = form != COMMAND_PROCESS_INFO;

    if (!process_info_read(form, data, size, &info))
        return;
    FUZZ_HOLDS(info.command_line && info.os && info.architecture);
    FUZZ_HOLDS(!info.entry_assembly == !has_more && !info.version == !has_more);
    FUZZ_HOLDS(!info.rid == (form != COMMAND_PROCESS_INFO_3));
    if (info.version)
        check_version(info.version);
    process_info_deinit(&info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *version = fuzz_text(data, size);

    read_form(COMMAND_PROCESS_INFO, data, size);
    read_form(COMMAND_PROCESS_INFO_2, data, size);
    read_form(COMMAND_PROCESS_INFO_3, data, size);
    check_version(version);
    free(version);
    return 0;
}
