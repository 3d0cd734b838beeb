/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/process_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

/* Vectors 28, 29 and 30 of the protocol, whole replies. */
static const char vector_1[] =
    "M 50 00 FF 00 00 00 01 00 00 00 00 00 00 00 C 02 00 00 00 61 00 00 00 06 00 00 00 4C 00 69 "
    "00 6E 00 75 00 78 00 00 00 04 00 00 00 78 00 36 00 34 00 00 00";
static const char vector_2[] =
    "M 82 00 FF 00 00 00 39 30 00 00 00 00 00 00 C 10 00 00 00 2F 00 75 00 73 00 72 00 2F 00 62 "
    "00 69 00 6E 00 2F 00 64 00 6F 00 74 00 6E 00 65 00 74 00 00 00 06 00 00 00 4C 00 69 00 6E 00 "
    "75 00 78 00 00 00 04 00 00 00 78 00 36 00 34 00 00 00 01 00 00 00 00 00 06 00 00 00 36 00 2E "
    "00 30 00 2E 00 30 00 00 00";
static const char vector_3[] =
    "M 88 00 FF 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 C 02 00 00 00 61 00 00 00 06 00 00 "
    "00 4C 00 69 00 6E 00 75 00 78 00 00 00 04 00 00 00 78 00 36 00 34 00 00 00 04 00 00 00 41 00 "
    "70 00 70 00 00 00 06 00 00 00 38 00 2E 00 30 00 2E 00 30 00 00 00 0A 00 00 00 6C 00 69 00 6E "
    "00 75 00 78 00 2D 00 78 00 36 00 34 00 00 00";

/* The payload of a vector, which has to be as long as its header says. */
static struct unit_bytes payload_of(const char *vector)
{
    struct unit_bytes bytes = unit_vector(vector), payload = {.length = 0};
    struct wire_header header;

    ck_assert_int_eq(wire_header_read(bytes.data, &header), 0);
    ck_assert_uint_eq(header.size, bytes.length);
    payload.length = bytes.length - WIRE_HEADER_SIZE;
    memcpy(payload.data, bytes.data + WIRE_HEADER_SIZE, payload.length);
    return payload;
}

static struct process_info read_vector(enum command_id form, const char *vector)
{
    struct unit_bytes payload = payload_of(vector), cookie = unit_vector("C");
    uint8_t *copy = unit_copy(payload.data, payload.length);
    struct process_info info;

    ck_assert(process_info_read(form, copy, payload.length, &info));
    free(copy);
    ck_assert_mem_eq(info.cookie.bytes, cookie.data, GUID_SIZE);
    ck_assert_str_eq(info.os, "Linux");
    ck_assert_str_eq(info.architecture, "x64");
    return info;
}

START_TEST(first_form_is_read)
{
    struct process_info info = read_vector(COMMAND_PROCESS_INFO, vector_1);

    ck_assert_uint_eq(info.pid, 1);
    ck_assert_str_eq(info.command_line, "a");
    ck_assert_ptr_null(info.entry_assembly);
    ck_assert_ptr_null(info.version);
    ck_assert_ptr_null(info.rid);
    process_info_deinit(&info);
}
END_TEST

START_TEST(second_form_is_read)
{
    struct process_info info = read_vector(COMMAND_PROCESS_INFO_2, vector_2);

    ck_assert_uint_eq(info.pid, 12345);
    ck_assert_str_eq(info.command_line, "/usr/bin/dotnet");
    ck_assert_str_eq(info.entry_assembly, "");
    ck_assert_str_eq(info.version, "6.0.0");
    ck_assert_ptr_null(info.rid);
    process_info_deinit(&info);
}
END_TEST

START_TEST(third_form_is_read)
{
    struct process_info info = read_vector(COMMAND_PROCESS_INFO_3, vector_3);

    ck_assert_uint_eq(info.pid, 1);
    ck_assert_str_eq(info.command_line, "a");
    ck_assert_str_eq(info.entry_assembly, "App");
    ck_assert_str_eq(info.version, "8.0.0");
    ck_assert_str_eq(info.rid, "linux-x64");
    process_info_deinit(&info);
    ck_assert_ptr_null(info.rid);
}
END_TEST

static const struct {
    enum command_id form;
    const char *vector;
} forms[] = {
    {COMMAND_PROCESS_INFO, vector_1},
    {COMMAND_PROCESS_INFO_2, vector_2},
    {COMMAND_PROCESS_INFO_3, vector_3},
};

START_TEST(every_cut_is_refused)
{
    for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
        struct unit_bytes payload = payload_of(forms[i].vector);

        for (size_t length = 0; length < payload.length; length++) {
            uint8_t *copy = unit_copy(payload.data, length);
            struct process_info info = {.pid = 77};

            ck_assert(!process_info_read(forms[i].form, copy, length, &info));
            ck_assert_uint_eq(info.pid, 77);
            free(copy);
        }
    }
}
END_TEST

/* Newer runtimes may append fields. */
START_TEST(bytes_behind_the_last_field_are_ignored)
{
    for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
        struct unit_bytes payload = payload_of(forms[i].vector);
        struct process_info info;

        memcpy(payload.data + payload.length, "\7\0\0", 3);
        ck_assert(process_info_read(forms[i].form, payload.data, payload.length + 3, &info));
        process_info_deinit(&info);
    }
}
END_TEST

START_TEST(null_string_is_read_as_empty)
{
    struct unit_bytes payload = unit_vector("01 00 00 00 00 00 00 00 C 00 00 00 00 00 00 00 00 "
                                            "00 00 00 00");
    struct process_info info;

    ck_assert(process_info_read(COMMAND_PROCESS_INFO, payload.data, payload.length, &info));
    ck_assert_str_eq(info.command_line, "");
    ck_assert_str_eq(info.os, "");
    ck_assert_str_eq(info.architecture, "");
    process_info_deinit(&info);
}
END_TEST

START_TEST(random_payloads_do_no_harm)
{
    struct unit_bytes payloads[] = {payload_of(vector_1), payload_of(vector_2),
                                    payload_of(vector_3)};
    uint64_t state = 9;
    unsigned n_read = 0;

    for (unsigned round = 0; round < 9000; round++) {
        struct unit_bytes payload = payloads[round % 3];
        struct process_info info;
        uint8_t *copy;

        for (unsigned i = unit_random(&state) % 4; i > 0; i--)
            payload.data[unit_random(&state) % payload.length] = (uint8_t)unit_random(&state);
        copy = unit_copy(payload.data, payload.length);
        if (process_info_read(forms[unit_random(&state) % 3].form, copy, payload.length, &info)) {
            n_read++;
            process_info_deinit(&info);
        }
        free(copy);
    }
    ck_assert_uint_gt(n_read, 500);
}
END_TEST

static int read_third(void *context)
{
    const struct unit_bytes *payload = context;
    struct process_info info;

    if (!process_info_read(COMMAND_PROCESS_INFO_3, payload->data, payload->length, &info))
        return -ENOMEM;
    process_info_deinit(&info);
    return 0;
}

static int read_nulls(void *context)
{
    const struct unit_bytes *payload = context;
    struct process_info info;

    if (!process_info_read(COMMAND_PROCESS_INFO, payload->data, payload->length, &info))
        return -ENOMEM;
    process_info_deinit(&info);
    return 0;
}

START_TEST(running_out_of_memory_is_said)
{
    struct unit_bytes payload = payload_of(vector_3);

    ck_assert_uint_eq(unit_memory_exhaust(read_third, &payload, -ENOMEM), 6);
    payload = unit_vector("01 00 00 00 00 00 00 00 C 00 00 00 00 00 00 00 00 00 00 00 00");
    ck_assert_uint_eq(unit_memory_exhaust(read_nulls, &payload, -ENOMEM), 3);
}
END_TEST

START_TEST(major_version_is_read)
{
    static const struct {
        const char *version;
        unsigned major;
    } cases[] = {
        {"8.0.0", 8},
        {"8.0.34", 8},
        {"10.0.0-rc.1.25451.107", 10},
        {"11.0.0-preview.7+abc", 11},
        {"999.1", 999},
        {"8.", 8},
        {"1000.0", 0},
        {"4294967304.0", 0},
        {"", 0},
        {"8", 0},
        {".8", 0},
        {"v8.0", 0},
        {"-8.0", 0},
        {"8a.0", 0},
        {" 8.0", 0},
        {"0.0", 0},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        ck_assert_uint_eq(process_info_major(cases[i].version), cases[i].major);
}
END_TEST

UNIT_TESTS(first_form_is_read, second_form_is_read, third_form_is_read, every_cut_is_refused,
           bytes_behind_the_last_field_are_ignored, null_string_is_read_as_empty,
           random_payloads_do_no_harm, running_out_of_memory_is_said, major_version_is_read);
