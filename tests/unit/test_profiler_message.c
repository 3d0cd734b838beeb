/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/profiler_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

#define CLSID "{d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e61}"

/* As the runtime ends every text. */
#define BEHIND "\n  Process ID (decimal): 4659.  Message ID: [0x2507].\n"

static struct bytes payload_of(const char *text)
{
    struct bytes payload;

    bytes_init(&payload, SIZE_MAX - 1);
    bytes_put_u16(&payload, 0);
    ck_assert(text_put_utf16(&payload, text));
    bytes_put_u16(&payload, 0);
    return payload;
}

static struct profiler_message read_text(const char *text)
{
    struct bytes payload = payload_of(text);
    uint8_t *copy = unit_copy(payload.data, payload.length);
    struct profiler_message message;

    ck_assert_int_eq(profiler_message_read(copy, payload.length, &message), 0);
    free(copy);
    bytes_deinit(&payload);
    return message;
}

/* `hresult` 0 is none; `shown` NULL is no text. */
static void assert_read(const char *text, enum profiler_message_kind kind, bool has_clsid,
                        uint32_t hresult, const char *shown)
{
    struct profiler_message message = read_text(text);
    struct guid clsid;

    ck_assert(guid_parse(CLSID, &clsid));
    ck_assert_msg(message.kind == kind, "%s: %s", text, profiler_message_kind_name(message.kind));
    ck_assert_msg(message.has_clsid == has_clsid, "%s", text);
    if (has_clsid)
        ck_assert_int_eq(guid_compare(&message.clsid, &clsid), 0);
    ck_assert_msg(message.has_hresult == (hresult != 0), "%s", text);
    ck_assert_uint_eq(message.hresult, hresult);
    ck_assert_msg((message.text != NULL) == (shown != NULL), "%s", text);
    if (shown)
        ck_assert_str_eq(message.text, shown);
    profiler_message_deinit(&message);
    ck_assert_ptr_null(message.text);
}

/* Those that were seen on 8.0.34, 9.0.23, 10.0.15 and 11.0.0. */
START_TEST(seen_texts_are_known)
{
    assert_read("The profiler was loaded successfully.  Profiler CLSID: '" CLSID "'." BEHIND,
                PROFILER_MESSAGE_LOADED, true, 0, NULL);
    assert_read("Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID
                "'.  HRESULT: 0x8007007e." BEHIND,
                PROFILER_MESSAGE_FAILED_INSTANTIATION, true, 0x8007007E, NULL);
    assert_read("Loading profiler failed.  The profiler was instantiated, but the profiler failed "
                "during its initialization callback.  Profiler CLSID: '" CLSID
                "'.  HRESULT: 0x80004005." BEHIND,
                PROFILER_MESSAGE_FAILED_INITIALIZATION, true, 0x80004005, NULL);
    assert_read("A request was made to load a profiler when a profiler was already loaded." BEHIND,
                PROFILER_MESSAGE_ALREADY_LOADED, false, 0, NULL);
    assert_read("The profiler has requested that the CLR instance not load the profiler into this "
                "process.  Profiler CLSID: '" CLSID "'." BEHIND,
                PROFILER_MESSAGE_CANCELLED, true, 0, NULL);
    assert_read("Loading profiler failed.   The profiler that was configured to load was designed "
                "for an older version of the CLR.  You can use the "
                "DOTNET_ProfAPI_ProfilerCompatibilitySetting environment variable.  Profiler "
                "CLSID: '" CLSID "'." BEHIND,
                PROFILER_MESSAGE_OLDER_VERSION, true, 0, NULL);
    assert_read("A profiler designed for an older version of the CLR was loaded because of the "
                "environment variable setting below.  Environment variable setting: "
                "ProfAPI_ProfilerCompatibilitySetting=EnableV2Profiler.  Profiler CLSID: '" CLSID
                "'." BEHIND,
                PROFILER_MESSAGE_OLDER_VERSION, true, 0, NULL);
    assert_read("Notification profiler was prevented from loading because it was explicitly "
                "disabled by app settings." BEHIND,
                PROFILER_MESSAGE_PREVENTED, false, 0, NULL);
    assert_read("The CLR received a request to attach a profiler. Profiler CLSID: '" CLSID
                "'." BEHIND,
                PROFILER_MESSAGE_ATTACH_REQUESTED, true, 0, NULL);
    assert_read("Loading profiler failed.  CORECLR_PROFILER is set to an invalid CLSID: 'secret'.  "
                "HRESULT: 0x80070057." BEHIND,
                PROFILER_MESSAGE_MISCONFIGURED, false, 0, NULL);
    assert_read("Loading profiler failed.  CORECLR_ENABLE_PROFILING was set properly, but "
                "CORECLR_PROFILER was not." BEHIND,
                PROFILER_MESSAGE_MISCONFIGURED, false, 0,
                "Loading profiler failed.  CORECLR_ENABLE_PROFILING was set properly, but "
                "CORECLR_PROFILER was not.");
}
END_TEST

/* Those that are only in the runtime's files. */
START_TEST(other_texts_of_the_runtime_are_known)
{
    assert_read("Profilers will not be loaded by the current version of the CLR because of the "
                "environment variable setting below.  Environment variable setting: A=B. Profiler "
                "CLSID: '" CLSID "'.",
                PROFILER_MESSAGE_PREVENTED, true, 0, NULL);
    assert_read("Loading profiler failed.  CORECLR_PROFILER is set to a CLSID of a COM object that "
                "does not implement the interface GUID (IID) requested by the CLR.  Profiler "
                "CLSID: '" CLSID "'.  Requested IID: '" CLSID "'.",
                PROFILER_MESSAGE_FAILED, true, 0,
                "Loading profiler failed.  CORECLR_PROFILER is set to a CLSID of a COM object that "
                "does not implement the interface GUID (IID) requested by the CLR.  Profiler "
                "CLSID: '" CLSID "'.  Requested IID: '{d1a60d3b-7e57-4c0d-9a3e-5b1f0c2");
    assert_read("Loading profiler failed due to an internal profiling services initialization "
                "failure.  Profiler CLSID: '" CLSID "'.  HRESULT: 0x5.",
                PROFILER_MESSAGE_FAILED, true, 5,
                "Loading profiler failed due to an internal profiling services initialization "
                "failure.  Profiler CLSID: '" CLSID "'.  HRESULT: 0x5.");
    assert_read("Profiler timed out on waiting for concurrent GC to finish after '5' milliseconds. "
                "Profiler CLSID: '" CLSID "'.",
                PROFILER_MESSAGE_FAILED, true, 0,
                "Profiler timed out on waiting for concurrent GC to finish after '5' milliseconds. "
                "Profiler CLSID: '" CLSID "'.");
}
END_TEST

/* They are shown as they are, on one line. */
START_TEST(unknown_texts_are_handed_on)
{
    assert_read("", PROFILER_MESSAGE_OTHER, false, 0, "");
    assert_read("The CLR has fully detached and unloaded the profiler." BEHIND,
                PROFILER_MESSAGE_OTHER, false, 0,
                "The CLR has fully detached and unloaded the profiler.");
    assert_read("\x1b[31m \\ \xc3\xa4", PROFILER_MESSAGE_OTHER, false, 0,
                "\\x1b[31m \\x5c \xc3\xa4");
    assert_read("New.  Environment variable setting: A=secret.", PROFILER_MESSAGE_OTHER, false, 0,
                NULL);
}
END_TEST

/* What is known has all that belongs to it, or is not known. */
START_TEST(half_a_text_is_unknown)
{
    static const char *const texts[] = {
        "The profiler was loaded successfully.  ",
        "The profiler was loaded successfully.  Profiler CLSID: '{d1a60d3b-7e57-4c0d'.",
        "The profiler was loaded successfully.  Profiler CLSID: '" CLSID,
        "The profiler was loaded successfully.  Profiler CLSID: '" CLSID "}.",
        "The profiler was loaded successfully.  Profiler CLSID: '[d1a60d3b-7e57-4c0d-9a3e-"
        "5b1f0c2d4e61]'.",
        "Profiler CLSID: '" CLSID "'.  The profiler was loaded successfully.",
        "the profiler was loaded successfully.  Profiler CLSID: '" CLSID "'.",
        "Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID "'.",
        "Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID "'.  HRESULT: 0x.",
        "Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID
        "'.  HRESULT: 0x123456789.",
        "Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID
        "'.  HRESULT: 0x8007007e",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct profiler_message message = read_text(texts[i]);

        ck_assert_msg(message.kind == PROFILER_MESSAGE_OTHER, "%s", texts[i]);
        ck_assert_msg(!message.has_hresult, "%s", texts[i]);
        ck_assert_ptr_nonnull(message.text);
        profiler_message_deinit(&message);
    }
}
END_TEST

/* The value of a variable, which is before it, could look like a class. */
START_TEST(last_class_counts)
{
    assert_read("Profilers will not be loaded by the current version of the CLR because of X.  "
                "Environment variable setting: A=Profiler CLSID: "
                "'{00000000-0000-0000-0000-000000000000}'. Profiler CLSID: '" CLSID "'.",
                PROFILER_MESSAGE_PREVENTED, true, 0, NULL);
}
END_TEST

START_TEST(hresults_are_read_in_any_case)
{
    assert_read("Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID
                "'.  HRESULT: 0xABCDEF09.",
                PROFILER_MESSAGE_FAILED_INSTANTIATION, true, 0xABCDEF09, NULL);
    assert_read("Loading profiler failed during instantiation.  Profiler CLSID: '" CLSID
                "'.  HRESULT: 0xabcdef.",
                PROFILER_MESSAGE_FAILED_INSTANTIATION, true, 0x00ABCDEF, NULL);
}
END_TEST

START_TEST(payload_has_to_be_whole)
{
    struct bytes payload = payload_of("The profiler was loaded successfully.");
    struct profiler_message message;

    for (size_t length = 0; length < payload.length; length++) {
        uint8_t *copy = unit_copy(payload.data, length);

        ck_assert_int_eq(profiler_message_read(copy, length, &message), PROFILER_MESSAGE_E_PAYLOAD);
        free(copy);
    }
    bytes_deinit(&payload);
}
END_TEST

START_TEST(long_texts_are_cut)
{
    char text[40001];
    struct profiler_message message;
    struct bytes payload;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    payload = payload_of(text);
    ck_assert_int_eq(profiler_message_read(payload.data, payload.length, &message),
                     PROFILER_MESSAGE_E_PAYLOAD);
    bytes_deinit(&payload);

    text[32000] = '\0';
    message = read_text(text);
    ck_assert_uint_eq(strlen(message.text), PROFILER_MESSAGE_TEXT_MAX);
    profiler_message_deinit(&message);
    /* whole characters only */
    memcpy(text + PROFILER_MESSAGE_TEXT_MAX - 1, "\xc3\xa4", 2);
    message = read_text(text);
    ck_assert_uint_eq(strlen(message.text), PROFILER_MESSAGE_TEXT_MAX - 1);
    profiler_message_deinit(&message);
}
END_TEST

static int read_payload(void *context)
{
    const struct bytes *payload = context;
    struct profiler_message message;
    int error = profiler_message_read(payload->data, payload->length, &message);

    if (error == 0)
        profiler_message_deinit(&message);
    return error;
}

START_TEST(running_out_of_memory_is_said)
{
    struct bytes payload = payload_of("Loading profiler failed for a new reason.");

    ck_assert_uint_gt(unit_memory_exhaust(read_payload, &payload, -ENOMEM), 1);
    bytes_deinit(&payload);
}
END_TEST

START_TEST(kinds_have_names)
{
    ck_assert_str_eq(profiler_message_kind_name(PROFILER_MESSAGE_OTHER), "other");
    ck_assert_str_eq(profiler_message_kind_name(PROFILER_MESSAGE_LOADED), "loaded");
    for (int i = PROFILER_MESSAGE_LOADED; i <= PROFILER_MESSAGE_ATTACH_REQUESTED; i++)
        ck_assert_str_ne(profiler_message_kind_name((enum profiler_message_kind)i), "other");
}
END_TEST

UNIT_TESTS(seen_texts_are_known, other_texts_of_the_runtime_are_known, unknown_texts_are_handed_on,
           half_a_text_is_unknown, last_class_counts, hresults_are_read_in_any_case,
           payload_has_to_be_whole, long_texts_are_cut, running_out_of_memory_is_said,
           kinds_have_names);
