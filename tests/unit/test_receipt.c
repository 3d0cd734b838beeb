/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/receipt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/command.h"
#include "lib/wire.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"
#include "tests/unit/unit_nettrace.h"

#define PROVIDER "Microsoft-Windows-DotNETRuntime"
#define MAIN     "d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e61"
#define NOTIFY   "d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e62"
#define HOOK_A   "/opt/rig/hooks/HookA.dll"
#define HOOK_B   "/opt/rig/hooks/HookB.dll"

static const unsigned majors[] = {8, 9, 10, 11};

static struct guid guid_of(const char *text)
{
    struct guid guid;

    ck_assert(guid_parse(text, &guid));
    return guid;
}

static void take_in_pieces(struct receipt *receipt, const struct bytes *stream, size_t step)
{
    for (size_t at = 0; at < stream->length;) {
        size_t n = stream->length - at < step ? stream->length - at : step;
        uint8_t *piece = unit_copy(stream->data + at, n);

        receipt_take(receipt, piece, n);
        free(piece);
        at += n;
    }
}

/* The verdict on a profiler as a word; "silent" when nothing was said of it. */
static const char *said_of(const struct receipt *receipt, const char *clsid)
{
    struct guid guid = guid_of(clsid);
    bool is_older;
    const struct profiler_message *message = receipt_profiler(receipt, &guid, &is_older);

    return message ? profiler_message_kind_name(message->kind) : "silent";
}

struct expected {
    const char *name;
    const char *main_profiler;
    const char *notify_profiler;
    uint32_t hresult;
    bool is_older;
    bool has_hook_a, has_hook_b;
    size_t n_messages;
    enum receipt_stream stream;
};

static void assert_expected(const struct receipt *receipt, const struct expected *expected)
{
    struct guid guid = guid_of(MAIN);
    const struct profiler_message *message;
    bool is_older;

    ck_assert_int_eq(receipt->stream, expected->stream);
    ck_assert_str_eq(said_of(receipt, MAIN), expected->main_profiler);
    ck_assert_str_eq(said_of(receipt, NOTIFY), expected->notify_profiler);
    message = receipt_profiler(receipt, &guid, &is_older);
    ck_assert(is_older == expected->is_older);
    ck_assert(!message || message->hresult == expected->hresult);
    ck_assert(receipt_hook(receipt, HOOK_A) == expected->has_hook_a);
    ck_assert(receipt_hook(receipt, HOOK_B) == expected->has_hook_b);
    ck_assert_uint_eq(receipt->n_messages, expected->n_messages);
    ck_assert(receipt_is_whole(receipt) == (expected->stream == RECEIPT_ENDED));
    ck_assert(receipt_has_ended(receipt));
}

static const struct expected recorded[] = {
    {"loaded", "loaded", "silent", 0, false, false, false, 1, RECEIPT_ENDED},
    {"absent", "failed_instantiation", "silent", 0x8007007E, false, false, false, 1, RECEIPT_ENDED},
    {"no-export", "failed_instantiation", "silent", 0x8007007F, false, false, false, 1,
     RECEIPT_ENDED},
    {"initialize-fails", "failed_initialization", "silent", 0x80004005, false, false, false, 1,
     RECEIPT_ENDED},
    {"cancelled", "cancelled", "silent", 0, false, false, false, 1, RECEIPT_ENDED},
    {"older", "loaded", "silent", 0, true, false, false, 2, RECEIPT_ENDED},
    {"older-allowed", "loaded", "silent", 0, true, false, false, 2, RECEIPT_ENDED},
    {"second", "loaded", "silent", 0, false, false, false, 2, RECEIPT_ENDED},
    {"two", "loaded", "loaded", 0, false, false, false, 2, RECEIPT_ENDED},
    {"prevented", "silent", "silent", 0, false, false, false, 1, RECEIPT_ENDED},
    {"misconfigured", "silent", "silent", 0, false, false, false, 1, RECEIPT_ENDED},
    {"attach", "loaded", "silent", 0, false, false, false, 2, RECEIPT_ENDED},
    {"hook", "silent", "silent", 0, false, true, false, 0, RECEIPT_ENDED},
    {"hooks-profiler", "loaded", "silent", 0, false, true, true, 1, RECEIPT_ENDED},
    {"hook-throws", "loaded", "silent", 0, false, false, false, 1, RECEIPT_CUT},
};

START_TEST(recorded_streams_say_what_was_done)
{
    static const size_t steps[] = {SIZE_MAX, 1, 13, 4096};

    for (size_t i = 0; i < ARRAY_LENGTH(recorded) * ARRAY_LENGTH(majors); i++) {
        const struct expected *expected = &recorded[i / ARRAY_LENGTH(majors)];
        struct bytes stream =
            unit_nettrace_recorded(expected->name, majors[i % ARRAY_LENGTH(majors)]);

        for (size_t j = 0; j < ARRAY_LENGTH(steps); j++) {
            struct receipt_hook hooks[] = {{HOOK_A, true}, {HOOK_B, true}};
            struct receipt receipt;

            receipt_init(&receipt, hooks, 2);
            take_in_pieces(&receipt, &stream, steps[j]);
            receipt_close(&receipt);
            assert_expected(&receipt, expected);
            receipt_deinit(&receipt);
        }
        bytes_deinit(&stream);
    }
}
END_TEST

/* The second is refused without a name. */
START_TEST(refusals_are_counted)
{
    for (size_t i = 0; i < ARRAY_LENGTH(majors); i++) {
        struct bytes stream = unit_nettrace_recorded("second", majors[i]);
        struct receipt receipt;

        receipt_init(&receipt, NULL, 0);
        receipt_take(&receipt, stream.data, stream.length);
        ck_assert_uint_eq(receipt_count(&receipt, PROFILER_MESSAGE_ALREADY_LOADED), 1);
        ck_assert_uint_eq(receipt_count(&receipt, PROFILER_MESSAGE_LOADED), 1);
        ck_assert_uint_eq(receipt_count(&receipt, PROFILER_MESSAGE_OTHER), 0);
        receipt_deinit(&receipt);
        bytes_deinit(&stream);
    }
}
END_TEST

/* A verdict is there as soon as it was said, and stays; before it there is none. */
START_TEST(cut_streams_say_what_they_can)
{
    for (size_t i = 0; i < ARRAY_LENGTH(majors); i += unit_share()) {
        struct bytes stream = unit_nettrace_recorded("initialize-fails", majors[i]);
        size_t n_silent = 0, n_said = 0;

        for (size_t length = 0; length < stream.length; length++) {
            struct receipt receipt;

            receipt_init(&receipt, NULL, 0);
            receipt_take(&receipt, stream.data, length);
            ck_assert(!receipt_has_ended(&receipt));
            receipt_close(&receipt);
            ck_assert_int_eq(receipt.stream, RECEIPT_CUT);
            ck_assert(!receipt_is_whole(&receipt));
            if (strcmp(said_of(&receipt, MAIN), "silent") == 0)
                n_silent++;
            else
                n_said++;
            ck_assert(n_said == 0 || n_silent + n_said == length + 1);
            receipt_deinit(&receipt);
        }
        ck_assert_uint_gt(n_silent, 800);
        ck_assert_uint_gt(n_said, 400);
        bytes_deinit(&stream);
    }
}
END_TEST

/* The profiler ended the program: before 11 not one byte comes. */
START_TEST(aborting_profiler_says_nothing)
{
    struct bytes stream = unit_nettrace_recorded("profiler-aborts", 11);
    struct receipt receipt;

    for (unsigned i = 0; i < 2; i++) {
        receipt_init(&receipt, NULL, 0);
        receipt_take(&receipt, stream.data, i * stream.length);
        receipt_close(&receipt);
        ck_assert_int_eq(receipt.stream, RECEIPT_CUT);
        ck_assert_str_eq(said_of(&receipt, MAIN), "silent");
        receipt_deinit(&receipt);
    }
    bytes_deinit(&stream);
}
END_TEST

/* Values of variables are nowhere. */
START_TEST(values_are_not_kept)
{
    static const char *const names[] = {"misconfigured", "older-allowed"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct bytes stream = unit_nettrace_recorded(names[i], 10);
        struct receipt receipt;

        receipt_init(&receipt, NULL, 0);
        receipt_take(&receipt, stream.data, stream.length);
        ck_assert_uint_gt(receipt.n_messages, 0);
        for (size_t j = 0; j < receipt.n_messages; j++)
            ck_assert_ptr_null(receipt.messages[j].text);
        receipt_deinit(&receipt);
        bytes_deinit(&stream);
    }
}
END_TEST

/* A stream that is built: descriptions 1 of the message and 2 of a loaded module. */
static struct bytes begin(void)
{
    struct bytes stream;

    bytes_init(&stream, SIZE_MAX - 1);
    unit_nettrace_begin(&stream);
    unit_nettrace_describe(&stream, 1, PROVIDER, 299);
    unit_nettrace_describe(&stream, 2, PROVIDER, 152);
    unit_nettrace_describe(&stream, 3, "Somebody-Else", 299);
    return stream;
}

static void put_message(struct bytes *stream, uint32_t id, const char *text)
{
    struct bytes payload;

    bytes_init(&payload, SIZE_MAX - 1);
    bytes_put_u16(&payload, 0);
    unit_nettrace_text(&payload, text);
    unit_nettrace_tell(stream, id, 0, &payload);
    bytes_deinit(&payload);
}

static void put_module(struct bytes *stream, const char *path)
{
    struct bytes payload;

    bytes_init(&payload, SIZE_MAX - 1);
    for (unsigned i = 0; i < 3; i++)
        bytes_put_u64(&payload, i);
    unit_nettrace_text(&payload, path);
    unit_nettrace_text(&payload, "native");
    unit_nettrace_tell(stream, 2, 0, &payload);
    bytes_deinit(&payload);
}

static struct receipt take(const struct bytes *stream, struct receipt_hook *hooks, size_t n_hooks)
{
    struct receipt receipt;

    receipt_init(&receipt, hooks, n_hooks);
    receipt_take(&receipt, stream->data, stream->length);
    return receipt;
}

START_TEST(only_the_runtime_is_believed)
{
    struct bytes stream = begin();
    struct receipt receipt;

    put_message(&stream, 3, "The profiler was loaded successfully.  Profiler CLSID: '{" MAIN "}'.");
    receipt = take(&stream, NULL, 0);
    ck_assert_uint_eq(receipt.n_events, 1);
    ck_assert_str_eq(said_of(&receipt, MAIN), "silent");
    receipt_deinit(&receipt);
    bytes_deinit(&stream);
}
END_TEST

/* Loaded counts most, whatever was said before or after it; of failures the last one. */
START_TEST(heaviest_word_counts)
{
    static const char *const texts[] = {
        "The CLR received a request to attach a profiler. Profiler CLSID: '{" MAIN "}'.",
        "The profiler has requested that the CLR instance not load the profiler into this process. "
        " Profiler CLSID: '{" MAIN "}'.",
        "Loading profiler failed during instantiation.  Profiler CLSID: '{" MAIN
        "}'.  HRESULT: 0x8007007e.",
        "The profiler was loaded successfully.  Profiler CLSID: '{" MAIN "}'.",
        "Loading profiler failed during instantiation.  Profiler CLSID: '{" MAIN
        "}'.  HRESULT: 0x8007007f.",
        "Something new.  Profiler CLSID: '{" MAIN "}'.",
    };
    static const char *const said[] = {"attach_requested", "cancelled", "failed_instantiation",
                                       "loaded",           "loaded",    "loaded"};
    struct bytes stream = begin();

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct receipt receipt;

        put_message(&stream, 1, texts[i]);
        receipt = take(&stream, NULL, 0);
        ck_assert_str_eq(said_of(&receipt, MAIN), said[i]);
        ck_assert_str_eq(said_of(&receipt, NOTIFY), "silent");
        receipt_deinit(&receipt);
    }
    bytes_deinit(&stream);
}
END_TEST

START_TEST(paths_are_compared_exactly)
{
    static const char *const loaded[] = {
        "/h/Hook.dll.old", "/h/Hook",         "/H/Hook.dll",
        "/h/./Hook.dll",   "/h/\xc3\xa4.dll", "/h/\xf0\x9f\x98\x81.dll",
    };
    struct receipt_hook hooks[] = {
        {"/h/Hook.dll", false},
        {"/h/\xc3\xa4.dll", false},
        {"/h/\xf0\x9f\x98\x80.dll", false},
        {"/h/\xf0\x9f\x98\x81.dll", false},
        {"/h/\xff.dll", false},
    };
    struct bytes stream = begin();
    struct receipt receipt;

    for (size_t i = 0; i < ARRAY_LENGTH(loaded); i++)
        put_module(&stream, loaded[i]);
    receipt = take(&stream, hooks, ARRAY_LENGTH(hooks));
    ck_assert_uint_eq(receipt.n_events, ARRAY_LENGTH(loaded));
    ck_assert(!receipt_hook(&receipt, "/h/Hook.dll"));
    ck_assert(receipt_hook(&receipt, "/h/\xc3\xa4.dll"));
    ck_assert(!receipt_hook(&receipt, "/h/\xf0\x9f\x98\x80.dll"));
    ck_assert(receipt_hook(&receipt, "/h/\xf0\x9f\x98\x81.dll"));
    ck_assert(!receipt_hook(&receipt, "/h/\xff.dll"));
    ck_assert(!receipt_hook(&receipt, "/h/Hook.dll.old"));
    receipt_deinit(&receipt);
    put_module(&stream, "/h/Hook.dll");
    receipt = take(&stream, hooks, ARRAY_LENGTH(hooks));
    ck_assert(receipt_hook(&receipt, "/h/Hook.dll"));
    receipt_deinit(&receipt);
    bytes_deinit(&stream);
}
END_TEST

/* A path that is longer than any can be, and payloads that are too short. */
START_TEST(odd_modules_are_passed_over)
{
    struct receipt_hook hooks[] = {{"/h/Hook.dll", false}};
    struct bytes stream = begin(), payload;
    static char path[20000];
    struct receipt receipt;

    memset(path, 'x', sizeof path - 1);
    put_module(&stream, path);
    bytes_init(&payload, SIZE_MAX - 1);
    for (size_t i = 0; i < 30; i++) {
        unit_nettrace_tell(&stream, 2, 0, &payload);
        bytes_put_u8(&payload, '/');
    }
    receipt = take(&stream, hooks, 1);
    ck_assert_int_eq(receipt.stream, RECEIPT_READING);
    ck_assert_uint_eq(receipt.n_events, 31);
    ck_assert(!receipt_hook(&receipt, "/h/Hook.dll"));
    receipt_deinit(&receipt);
    bytes_deinit(&payload);
    bytes_deinit(&stream);
}
END_TEST

/* What was lost on the way, or does not fit, could have been the word that was waited for. */
START_TEST(gaps_are_noticed)
{
    struct bytes stream = begin(), payload;
    struct receipt receipt;

    /* each point counts from the beginning */
    put_message(&stream, 1, "A");
    unit_nettrace_point(&stream, 1);
    put_message(&stream, 1, "B");
    unit_nettrace_point(&stream, 2);
    bytes_put_u8(&stream, 1);
    receipt = take(&stream, NULL, 0);
    ck_assert(receipt_is_whole(&receipt));
    receipt_deinit(&receipt);
    bytes_deinit(&stream);

    stream = begin();
    put_message(&stream, 1, "A");
    unit_nettrace_point(&stream, 2);
    bytes_put_u8(&stream, 1);
    receipt = take(&stream, NULL, 0);
    ck_assert_int_eq(receipt.stream, RECEIPT_ENDED);
    ck_assert(!receipt_is_whole(&receipt));
    receipt_deinit(&receipt);
    bytes_deinit(&stream);

    stream = begin();
    bytes_init(&payload, 10);
    unit_nettrace_tell(&stream, 1, 0, &payload);
    bytes_put_u8(&stream, 1);
    receipt = take(&stream, NULL, 0);
    ck_assert_int_eq(receipt.stream, RECEIPT_ENDED);
    ck_assert(!receipt_is_whole(&receipt));
    receipt_deinit(&receipt);
    bytes_deinit(&payload);
    bytes_deinit(&stream);
}
END_TEST

START_TEST(messages_and_texts_are_limited)
{
    struct bytes stream = begin();
    struct receipt receipt;
    size_t n_texts = 0;

    for (size_t i = 0; i < RECEIPT_MESSAGES_MAX; i++)
        put_message(&stream, 1, "Something new.");
    receipt = take(&stream, NULL, 0);
    ck_assert(!receipt.has_gaps);
    receipt_deinit(&receipt);
    put_message(&stream, 1, "Something new.");
    receipt = take(&stream, NULL, 0);
    ck_assert(receipt.has_gaps);
    ck_assert_uint_eq(receipt_count(&receipt, PROFILER_MESSAGE_OTHER), RECEIPT_MESSAGES_MAX);
    for (size_t i = 0; i < receipt.n_messages; i++)
        n_texts += receipt.messages[i].text != NULL;
    ck_assert_uint_eq(n_texts, RECEIPT_TEXTS_MAX);
    receipt_deinit(&receipt);
    bytes_deinit(&stream);
}
END_TEST

START_TEST(unreadable_streams_are_said_to_be)
{
    static const uint8_t later[] = "Nettrace\0\0\0\0\6\0\0\0\0\0\0";
    struct bytes stream = begin();
    struct receipt receipt;

    put_message(&stream, 1, "The profiler was loaded successfully.  Profiler CLSID: '{" MAIN "}'.");
    bytes_put_u8(&stream, 9);
    receipt = take(&stream, NULL, 0);
    ck_assert_int_eq(receipt.stream, RECEIPT_UNREADABLE);
    ck_assert_int_eq(receipt.why, NETTRACE_E_OBJECT);
    ck_assert(receipt_has_ended(&receipt));
    ck_assert(!receipt_is_whole(&receipt));
    /* what was said before that stays said */
    ck_assert_str_eq(said_of(&receipt, MAIN), "loaded");
    receipt_take(&receipt, stream.data, stream.length);
    receipt_close(&receipt);
    ck_assert_int_eq(receipt.stream, RECEIPT_UNREADABLE);
    receipt_deinit(&receipt);
    bytes_deinit(&stream);

    receipt_init(&receipt, NULL, 0);
    receipt_take(&receipt, later, sizeof later);
    ck_assert_int_eq(receipt.stream, RECEIPT_UNREADABLE);
    ck_assert_int_eq(receipt.why, NETTRACE_E_VERSION);
    ck_assert_uint_eq(receipt.refused_version, 6);
    receipt_deinit(&receipt);
}
END_TEST

/* A receipt that waits holds little; one that has ended, its messages only. */
START_TEST(little_is_held)
{
    for (size_t i = 0; i < ARRAY_LENGTH(majors); i++) {
        struct bytes stream = unit_nettrace_recorded("hooks-profiler", majors[i]);
        struct receipt_hook hooks[] = {{HOOK_A, false}};
        struct receipt receipt;

        receipt_init(&receipt, hooks, 1);
        unit_memory_charge_begin();
        receipt_take(&receipt, stream.data, stream.length - 1);
        unit_memory_charge_end();
        ck_assert_uint_lt(unit_memory_charged(), 4096);
        unit_memory_charge_begin();
        receipt_take(&receipt, stream.data + stream.length - 1, 1);
        unit_memory_charge_end();
        ck_assert_int_eq(receipt.stream, RECEIPT_ENDED);
        ck_assert_uint_le(unit_memory_charged(), sizeof *receipt.messages);
        receipt_deinit(&receipt);
        bytes_deinit(&stream);
    }
}
END_TEST

static struct bytes session(bool with_hooks)
{
    struct bytes message;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    ck_assert_int_eq(receipt_write_session(&message, with_hooks), 0);
    return message;
}

/* The bytes that were sent when the streams were recorded. */
START_TEST(session_is_written)
{
    struct unit_bytes head =
        unit_vector("M 73 00 02 03 00 00 01 00 00 00 01 00 00 00 00 01 00 00 00");
    struct unit_bytes keywords[] = {unit_vector("00 00 00 00 00 02 00 00 04 00 00 00 20 00 00 00"),
                                    unit_vector("08 00 00 00 00 02 00 00 04 00 00 00 20 00 00 00")};

    for (unsigned i = 0; i < 2; i++) {
        struct bytes message = session(i == 1), name;

        bytes_init(&name, SIZE_MAX - 1);
        unit_nettrace_text(&name, PROVIDER);
        bytes_put_u32(&name, 0);
        ck_assert_uint_eq(message.length, head.length + keywords[i].length + name.length);
        ck_assert_uint_eq(message.length, message.data[14]);
        ck_assert_int_eq(memcmp(message.data + 16, head.data + 16, head.length - 16), 0);
        ck_assert_int_eq(memcmp(message.data + head.length, keywords[i].data, keywords[i].length),
                         0);
        ck_assert_int_eq(memcmp(message.data + head.length + keywords[i].length, name.data,
                                name.length),
                         0);
        bytes_deinit(&name);
        bytes_deinit(&message);
    }
}
END_TEST

struct attempt {
    struct bytes stream;
    struct receipt_hook hooks[1];
};

static int take_all(void *context)
{
    struct attempt *attempt = context;
    struct receipt receipt;
    int error = 0;

    receipt_init(&receipt, attempt->hooks, 1);
    receipt_take(&receipt, attempt->stream.data, attempt->stream.length);
    if (receipt.stream == RECEIPT_UNREADABLE)
        error = receipt.why == NETTRACE_E_MEMORY ? -ENOMEM : -EINVAL;
    else if (!receipt_is_whole(&receipt))
        error = -EINVAL;
    receipt_deinit(&receipt);
    return error;
}

START_TEST(running_out_of_memory_is_said)
{
    struct attempt attempts[] = {
        {unit_nettrace_recorded("hooks-profiler", 11), {{HOOK_A, false}}},
        {begin(), {{HOOK_A, false}}},
    };

    put_message(&attempts[1].stream, 1, "Something new.");
    put_message(&attempts[1].stream, 1, "Something else.");
    bytes_put_u8(&attempts[1].stream, 1);
    for (size_t i = 0; i < ARRAY_LENGTH(attempts); i++) {
        ck_assert_uint_gt(unit_memory_exhaust(take_all, &attempts[i], -ENOMEM), 10);
        bytes_deinit(&attempts[i].stream);
    }
}
END_TEST

UNIT_TESTS(recorded_streams_say_what_was_done, refusals_are_counted, cut_streams_say_what_they_can,
           aborting_profiler_says_nothing, values_are_not_kept, only_the_runtime_is_believed,
           heaviest_word_counts, paths_are_compared_exactly, odd_modules_are_passed_over,
           gaps_are_noticed, messages_and_texts_are_limited, unreadable_streams_are_said_to_be,
           little_is_held, session_is_written, running_out_of_memory_is_said);
