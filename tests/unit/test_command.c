/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/wire.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

static struct bytes empty_message(void)
{
    struct bytes message;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    return message;
}

static void assert_message(struct bytes *message, int result, const char *vector)
{
    struct wire_header header;

    ck_assert_int_eq(result, 0);
    unit_assert_bytes(message->data, message->length, vector);
    ck_assert_int_eq(wire_header_read(message->data, &header), 0);
    ck_assert_uint_eq(header.size, message->length);
    bytes_deinit(message);
}

/* The vectors of the protocol, by their numbers. */

/* 2 and 3 */
START_TEST(commands_without_payload_are_written)
{
    static const struct {
        enum command_id id;
        const char *vector;
    } cases[] = {
        {COMMAND_PROCESS_INFO, "M 14 00 04 00 00 00"},
        {COMMAND_RESUME, "M 14 00 04 01 00 00"},
        {COMMAND_PROCESS_ENVIRONMENT, "M 14 00 04 02 00 00"},
        {COMMAND_PROCESS_INFO_2, "M 14 00 04 04 00 00"},
        {COMMAND_PROCESS_INFO_3, "M 14 00 04 08 00 00"},
        {COMMAND_DISABLE_PERF_MAP, "M 14 00 04 06 00 00"},
        {COMMAND_ASK_KIND, "M 14 00 03 00 00 00"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct bytes message = empty_message();

        assert_message(&message, command_write_plain(&message, cases[i].id), cases[i].vector);
    }
}
END_TEST

/* 4, 5 and 6 */
START_TEST(set_environment_is_written)
{
    static const struct {
        const char *value, *vector;
    } cases[] = {
        {"B", "M 24 00 04 03 00 00 02 00 00 00 41 00 00 00 02 00 00 00 42 00 00 00"},
        {NULL, "M 20 00 04 03 00 00 02 00 00 00 41 00 00 00 00 00 00 00"},
        {"", "M 22 00 04 03 00 00 02 00 00 00 41 00 00 00 01 00 00 00 00 00"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct bytes message = empty_message();

        assert_message(&message, command_write_set_environment(&message, "A", cases[i].value),
                       cases[i].vector);
    }
}
END_TEST

static struct guid vector_profiler(void)
{
    struct unit_bytes bytes = unit_vector("G");
    struct guid clsid;

    memcpy(clsid.bytes, bytes.data, GUID_SIZE);
    return clsid;
}

/* 7 and 8 */
START_TEST(profilers_are_written)
{
    struct guid clsid = vector_profiler();
    struct bytes message = empty_message();

    assert_message(&message, command_write_startup_profiler(&message, &clsid, "/opt/p.so"),
                   "M 3C 00 03 02 00 00 G 0A 00 00 00 2F 00 6F 00 70 00 74 00 2F 00 70 00 2E 00 "
                   "73 00 6F 00 00 00");
    assert_message(&message,
                   command_write_attach_profiler(&message, 5000, &clsid, "/opt/p.so", NULL, 0),
                   "M 44 00 03 01 00 00 88 13 00 00 G 0A 00 00 00 2F 00 6F 00 70 00 74 00 2F 00 "
                   "70 00 2E 00 73 00 6F 00 00 00 00 00 00 00");
    assert_message(&message, command_write_attach_profiler(&message, 1, &clsid, "p", "\xAA\xBB", 2),
                   "M 36 00 03 01 00 00 01 00 00 00 G 02 00 00 00 70 00 00 00 02 00 00 00 AA BB");
}
END_TEST

/* 9, 10, 11 and 12 */
START_TEST(other_commands_are_written)
{
    struct bytes message = empty_message();

    assert_message(&message, command_write_apply_startup_hook(&message, "/opt/h.dll"),
                   "M 2E 00 04 07 00 00 0B 00 00 00 2F 00 6F 00 70 00 74 00 2F 00 68 00 2E 00 64 "
                   "00 6C 00 6C 00 00 00");
    assert_message(&message, command_write_enable_perf_map(&message, 3),
                   "M 18 00 04 05 00 00 03 00 00 00");
    assert_message(&message,
                   command_write_core_dump(&message, COMMAND_GENERATE_CORE_DUMP_3, "/tmp/d", 4, 1),
                   "M 2E 00 01 03 00 00 07 00 00 00 2F 00 74 00 6D 00 70 00 2F 00 64 00 00 00 04 "
                   "00 00 00 01 00 00 00");
    assert_message(&message, command_write_stop_tracing(&message, 0x7F0012345678),
                   "M 1C 00 02 01 00 00 78 56 34 12 00 7F 00 00");
}
END_TEST

static const struct command_provider vector_provider = {.keywords = 1, .level = 4, .name = "X"};

static struct command_session vector_session(void)
{
    return (struct command_session){
        .buffer_mb = 256,
        .rundown = true,
        .rundown_keywords = 0x80020139,
        .stacks = true,
        .block_when_full = true,
        .providers = &vector_provider,
        .n_providers = 1,
    };
}

/* 22 to 27 */
START_TEST(sessions_are_written)
{
    static const struct {
        enum command_id id;
        const char *vector;
    } cases[] = {
        {COMMAND_COLLECT_TRACING, "M 38 00 02 02 00 00 00 01 00 00 01 00 00 00 01 00 00 00 P"},
        {COMMAND_COLLECT_TRACING_2, "M 39 00 02 03 00 00 00 01 00 00 01 00 00 00 01 01 00 00 00 P"},
        {COMMAND_COLLECT_TRACING_3,
         "M 3A 00 02 04 00 00 00 01 00 00 01 00 00 00 01 01 01 00 00 00 P"},
        {COMMAND_COLLECT_TRACING_4, "M 41 00 02 05 00 00 00 01 00 00 01 00 00 00 39 01 02 80 00 00 "
                                    "00 00 01 01 00 00 00 P"},
        {COMMAND_COLLECT_TRACING_5, "M 4A 00 02 06 00 00 00 00 00 00 00 01 00 00 01 00 00 00 39 01 "
                                    "02 80 00 00 00 00 01 01 00 00 00 P 00 00 00 00 00"},
        {COMMAND_COLLECT_TRACING_6,
         "M 4E 00 02 07 00 00 00 00 00 00 00 01 00 00 01 00 00 00 39 01 02 80 00 00 00 00 01 01 00 "
         "00 00 P 00 00 00 00 00 01 00 00 00"},
    };
    struct command_session session = vector_session();

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct bytes message = empty_message();

        assert_message(&message, command_write_collect_tracing(&message, cases[i].id, &session),
                       cases[i].vector);
    }
}
END_TEST

START_TEST(session_says_what_it_is_told)
{
    static const struct command_provider providers[] = {
        {.keywords = 0x20000000000, .level = 4, .name = "R"},
        {.keywords = 0, .level = 5, .name = "S", .arguments = "a=b"},
    };
    struct command_session session = {.buffer_mb = 1, .providers = providers, .n_providers = 2};
    struct bytes message = empty_message();

    assert_message(&message,
                   command_write_collect_tracing(&message, COMMAND_COLLECT_TRACING_6, &session),
                   "M 73 00 02 07 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 "
                   "00 00 02 00 00 00 "
                   "00 00 00 00 00 02 00 00 04 00 00 00 02 00 00 00 52 00 00 00 00 00 00 00 "
                   "00 00 00 00 00 "
                   "00 00 00 00 00 00 00 00 05 00 00 00 02 00 00 00 53 00 00 00 "
                   "04 00 00 00 61 00 3D 00 62 00 00 00 00 00 00 00 00 00 00 00 00");
}
END_TEST

/* The limits in UTF-16 units, the NUL not counted. */
START_TEST(size_limits_are_exact)
{
    static const struct {
        enum command_id id;
        size_t units;
    } cases[] = {
        {COMMAND_SET_ENVIRONMENT, 32751 - 1}, /* the name takes one */
        {COMMAND_STARTUP_PROFILER, 32746},    {COMMAND_ATTACH_PROFILER, 32742},
        {COMMAND_APPLY_STARTUP_HOOK, 32754},  {COMMAND_GENERATE_CORE_DUMP, 32750},
    };
    struct guid clsid = vector_profiler();

    for (size_t i = 0; i < 2 * ARRAY_LENGTH(cases); i++) {
        enum command_id id = cases[i / 2].id;
        struct bytes message = empty_message();
        char text[32768];
        int result = -1;

        memset(text, 'x', sizeof text);
        text[cases[i / 2].units + i % 2] = '\0';
        if (id == COMMAND_SET_ENVIRONMENT)
            result = command_write_set_environment(&message, "A", text);
        else if (id == COMMAND_STARTUP_PROFILER)
            result = command_write_startup_profiler(&message, &clsid, text);
        else if (id == COMMAND_ATTACH_PROFILER)
            result = command_write_attach_profiler(&message, 1, &clsid, text, NULL, 0);
        else if (id == COMMAND_APPLY_STARTUP_HOOK)
            result = command_write_apply_startup_hook(&message, text);
        else
            result = command_write_core_dump(&message, id, text, 1, 0);
        ck_assert_int_eq(result, i % 2 == 0 ? 0 : WIRE_E_TOO_LONG);
        bytes_deinit(&message);
    }
}
END_TEST

/* Only a message with an odd number of bytes can be as long as the size field says. */
START_TEST(longest_message_is_written)
{
    static const uint8_t data[WIRE_MESSAGE_MAX];
    static const struct guid clsid;
    struct bytes message;

    bytes_init(&message, 2 * WIRE_MESSAGE_MAX);
    ck_assert_int_eq(command_write_attach_profiler(&message, 1, &clsid, "p", data, 65483), 0);
    ck_assert_uint_eq(message.length, WIRE_MESSAGE_MAX);
    bytes_deinit(&message);
    ck_assert_int_eq(command_write_attach_profiler(&message, 1, &clsid, "p", data, 65484),
                     WIRE_E_TOO_LONG);
    bytes_deinit(&message);
}
END_TEST

START_TEST(text_that_is_not_utf8_is_refused)
{
    struct bytes message = empty_message();

    ck_assert_int_eq(command_write_set_environment(&message, "A", "\xFF"), WIRE_E_TEXT);
    bytes_deinit(&message);
    ck_assert_int_eq(command_write_apply_startup_hook(&message, "/\xC3.dll"), WIRE_E_TEXT);
    bytes_deinit(&message);
}
END_TEST

/* The table, against a second writing-down of what was measured. */
static const struct {
    enum command_id row;
    uint8_t set, id, since;
    enum command_repeat repeat;
    enum command_undo undo;
    enum command_answer answer;
    const char *name;
} rows[] = {
    {COMMAND_GENERATE_CORE_DUMP, 1, 0x01, 3, COMMAND_ONCE, COMMAND_STAYS, COMMAND_ANSWERS_STATUS,
     "GenerateCoreDump"},
    {COMMAND_GENERATE_CORE_DUMP_2, 1, 0x02, 6, COMMAND_ONCE, COMMAND_STAYS, COMMAND_ANSWERS_STATUS,
     "GenerateCoreDump2"},
    {COMMAND_GENERATE_CORE_DUMP_3, 1, 0x03, 8, COMMAND_ONCE, COMMAND_STAYS, COMMAND_ANSWERS_STATUS,
     "GenerateCoreDump3"},
    {COMMAND_STOP_TRACING, 2, 0x01, 3, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_SESSION_ID, "StopTracing"},
    {COMMAND_COLLECT_TRACING, 2, 0x02, 3, COMMAND_ONCE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_SESSION, "CollectTracing"},
    {COMMAND_COLLECT_TRACING_2, 2, 0x03, 5, COMMAND_ONCE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_SESSION, "CollectTracing2"},
    /* 8 answers 0204 and 0205 with UNKNOWN_COMMAND */
    {COMMAND_COLLECT_TRACING_3, 2, 0x04, 9, COMMAND_ONCE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_SESSION, "CollectTracing3"},
    {COMMAND_COLLECT_TRACING_4, 2, 0x05, 9, COMMAND_ONCE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_SESSION, "CollectTracing4"},
    {COMMAND_COLLECT_TRACING_5, 2, 0x06, 10, COMMAND_ONCE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_SESSION, "CollectTracing5"},
    {COMMAND_COLLECT_TRACING_6, 2, 0x07, 11, COMMAND_ONCE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_SESSION, "CollectTracing6"},
    {COMMAND_ASK_KIND, 3, 0x00, 5, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_STATUS, "the question for the kind"},
    {COMMAND_ATTACH_PROFILER, 3, 0x01, 3, COMMAND_ONCE, COMMAND_STAYS, COMMAND_ANSWERS_STATUS,
     "AttachProfiler"},
    {COMMAND_STARTUP_PROFILER, 3, 0x02, 6, COMMAND_ONCE, COMMAND_STAYS, COMMAND_ANSWERS_STATUS,
     "StartupProfiler"},
    {COMMAND_PROCESS_INFO, 4, 0x00, 5, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_PROCESS_INFO, "ProcessInfo"},
    {COMMAND_RESUME, 4, 0x01, 5, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_STATUS, "ResumeRuntime"},
    {COMMAND_PROCESS_ENVIRONMENT, 4, 0x02, 5, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_ENVIRONMENT, "ProcessEnvironment"},
    {COMMAND_SET_ENVIRONMENT, 4, 0x03, 6, COMMAND_REPEATABLE, COMMAND_UNDONE_BY_VALUE,
     COMMAND_ANSWERS_STATUS, "SetEnvironmentVariable"},
    {COMMAND_PROCESS_INFO_2, 4, 0x04, 6, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_PROCESS_INFO, "ProcessInfo2"},
    {COMMAND_ENABLE_PERF_MAP, 4, 0x05, 8, COMMAND_REPEATABLE, COMMAND_UNDONE_BY_OTHER,
     COMMAND_ANSWERS_STATUS, "EnablePerfMap"},
    {COMMAND_DISABLE_PERF_MAP, 4, 0x06, 8, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_STATUS, "DisablePerfMap"},
    {COMMAND_APPLY_STARTUP_HOOK, 4, 0x07, 8, COMMAND_ONCE, COMMAND_STAYS, COMMAND_ANSWERS_STATUS,
     "ApplyStartupHook"},
    {COMMAND_PROCESS_INFO_3, 4, 0x08, 8, COMMAND_REPEATABLE, COMMAND_NOTHING_TO_UNDO,
     COMMAND_ANSWERS_PROCESS_INFO, "ProcessInfo3"},
};

START_TEST(table_is_what_was_measured)
{
    ck_assert_uint_eq(ARRAY_LENGTH(rows), COMMAND_COUNT);
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const struct command *row = command_row(rows[i].row);

        ck_assert_str_eq(row->name, rows[i].name);
        ck_assert_uint_eq(row->set, rows[i].set);
        ck_assert_uint_eq(row->id, rows[i].id);
        ck_assert_uint_eq(row->since, rows[i].since);
        ck_assert_int_eq(row->repeat, rows[i].repeat);
        ck_assert_int_eq(row->undo, rows[i].undo);
        ck_assert_int_eq(row->answer, rows[i].answer);
    }
}
END_TEST

START_TEST(commands_are_found_by_their_numbers)
{
    unsigned n_found = 0;

    for (unsigned set = 0; set < 256; set++) {
        for (unsigned number = 0; number < 256; number++) {
            enum command_id id;

            if (!command_find((uint8_t)set, (uint8_t)number, &id))
                continue;
            n_found++;
            ck_assert_uint_eq(command_row(id)->set, set);
            ck_assert_uint_eq(command_row(id)->id, number);
        }
    }
    ck_assert_uint_eq(n_found, COMMAND_COUNT);
}
END_TEST

START_TEST(versions_know_their_commands)
{
    static const unsigned majors[] = {5, 6, 7, 8, 9, 10, 11, 12};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        for (size_t k = 0; k < ARRAY_LENGTH(majors); k++)
            ck_assert(command_is_known_to(rows[i].row, majors[k]) == (majors[k] >= rows[i].since));
        ck_assert(command_is_known_to(rows[i].row, 0));
    }
}
END_TEST

/* Every runtime that is told apart, in every state its port and its threads can show. */
static struct command_target target_of(unsigned number)
{
    static const unsigned majors[] = {0, 5, 6, 7, 8, 9, 10, 11};
    static const enum runtime_kind kinds[] = {RUNTIME_KIND_UNKNOWN, RUNTIME_KIND_CORECLR,
                                              RUNTIME_KIND_NATIVEAOT, RUNTIME_KIND_MONO};

    return (struct command_target){
        .kind = kinds[number & 3],
        .major = majors[number >> 2 & 7],
        .port_suspends = number >> 5 & 1,
        .shows_running = number >> 6 & 1,
        .shows_suspended = number >> 7 & 1,
        .prevents_profilers = number >> 8 & 1,
    };
}

enum { TARGETS = 512 };

START_TEST(hooks_go_to_held_runtimes_only)
{
    for (unsigned i = 0; i < TARGETS; i++) {
        struct command_target target = target_of(i);
        bool is_held = target.port_suspends && !target.shows_running;

        ck_assert(!command_deadly(COMMAND_APPLY_STARTUP_HOOK, &target, false) == is_held);
    }
}
END_TEST

START_TEST(startup_profilers_go_to_held_runtimes_only)
{
    for (unsigned i = 0; i < TARGETS; i++) {
        struct command_target target = target_of(i);
        bool is_held = target.port_suspends && !target.shows_running;

        ck_assert(!command_deadly(COMMAND_STARTUP_PROFILER, &target, false) ==
                  (is_held && !target.prevents_profilers));
    }
}
END_TEST

START_TEST(only_known_coreclr_is_told_to_unset)
{
    for (unsigned i = 0; i < TARGETS; i++) {
        struct command_target target = target_of(i);
        bool is_held = target.port_suspends && !target.shows_running;

        ck_assert(!command_deadly(COMMAND_SET_ENVIRONMENT, &target, true) ==
                  (is_held && target.kind == RUNTIME_KIND_CORECLR));
        ck_assert_ptr_null(command_deadly(COMMAND_SET_ENVIRONMENT, &target, false));
    }
}
END_TEST

/* 8 and 9 die of it while suspended; what is not known to run may be suspended. */
START_TEST(perf_map_spares_suspended_runtimes_before_10)
{
    for (unsigned i = 0; i < TARGETS; i++) {
        struct command_target target = target_of(i);
        bool is_safe = target.major >= 10 || target.shows_running;

        ck_assert(!command_deadly(COMMAND_ENABLE_PERF_MAP, &target, false) == is_safe);
        ck_assert_ptr_null(command_deadly(COMMAND_DISABLE_PERF_MAP, &target, false));
    }
}
END_TEST

/* NativeAOT dies of the question when a value is not UTF-8. */
START_TEST(only_coreclr_is_asked_for_its_environment)
{
    for (unsigned i = 0; i < TARGETS; i++) {
        struct command_target target = target_of(i);

        ck_assert(!command_deadly(COMMAND_PROCESS_ENVIRONMENT, &target, false) ==
                  (target.kind == RUNTIME_KIND_CORECLR));
    }
}
END_TEST

START_TEST(sessions_that_kill_are_not_written)
{
    static const struct command_provider none[COMMAND_PROVIDERS_MAX + 1];
    struct command_session session = {.providers = none};
    struct bytes message;

    bytes_init(&message, WIRE_MESSAGE_MAX);
    ck_assert_int_eq(command_write_collect_tracing(&message, COMMAND_COLLECT_TRACING_2, &session),
                     -EINVAL);
    session.buffer_mb = 1;
    session.n_providers = COMMAND_PROVIDERS_MAX + 1;
    ck_assert_int_eq(command_write_collect_tracing(&message, COMMAND_COLLECT_TRACING_2, &session),
                     -EINVAL);
    ck_assert_uint_eq(message.length, 0);
    bytes_deinit(&message);
}
END_TEST

START_TEST(nothing_else_is_deadly)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(rows); i++) {
        enum command_id id = rows[i].row;

        if (id == COMMAND_APPLY_STARTUP_HOOK || id == COMMAND_STARTUP_PROFILER ||
            id == COMMAND_SET_ENVIRONMENT || id == COMMAND_ENABLE_PERF_MAP ||
            id == COMMAND_PROCESS_ENVIRONMENT)
            continue;
        for (unsigned k = 0; k < TARGETS; k++) {
            struct command_target target = target_of(k);

            ck_assert_ptr_null(command_deadly(id, &target, false));
        }
    }
}
END_TEST

START_TEST(kinds_have_names)
{
    ck_assert_ptr_null(runtime_kind_name(RUNTIME_KIND_UNKNOWN));
    ck_assert_str_eq(runtime_kind_name(RUNTIME_KIND_CORECLR), "coreclr");
    ck_assert_str_eq(runtime_kind_name(RUNTIME_KIND_NATIVEAOT), "nativeaot");
    ck_assert_str_eq(runtime_kind_name(RUNTIME_KIND_MONO), "mono");
}
END_TEST

static int write_one(struct bytes *message, unsigned number, const char *path)
{
    static const struct guid clsid;
    struct command_session session = vector_session();

    switch (number) {
    case 0:
        return command_write_plain(message, COMMAND_RESUME);
    case 1:
        return command_write_set_environment(message, "NAME", path);
    case 2:
        return command_write_startup_profiler(message, &clsid, path);
    case 3:
        return command_write_attach_profiler(message, 1, &clsid, path, path, 100);
    case 4:
        return command_write_apply_startup_hook(message, path);
    case 5:
        return command_write_enable_perf_map(message, 1);
    case 6:
        return command_write_core_dump(message, COMMAND_GENERATE_CORE_DUMP_2, path, 1, 0);
    case 7:
        return command_write_stop_tracing(message, 1);
    default:
        return command_write_collect_tracing(message, COMMAND_COLLECT_TRACING_6, &session);
    }
}

static int write_all(void *context)
{
    for (unsigned number = 0; number <= 8; number++) {
        struct bytes message = empty_message();
        int result = write_one(&message, number, context);

        bytes_deinit(&message);
        if (result != 0)
            return result;
    }
    return 0;
}

/* Whatever else is in the reply is not looked at. */
START_TEST(session_id_is_read)
{
    struct unit_bytes reply = unit_vector("78 56 34 12 00 7F 00 00 AA");

    for (size_t length = 0; length <= reply.length; length++) {
        uint8_t *copy = unit_copy(reply.data, length);
        uint64_t session = 1;

        ck_assert(command_read_session(copy, length, &session) == (length >= 8));
        ck_assert_uint_eq(session, length >= 8 ? 0x7F0012345678 : 1);
        free(copy);
    }
}
END_TEST

START_TEST(running_out_of_memory_is_said)
{
    char path[200] = {0};

    memset(path, 'p', sizeof path - 1);
    ck_assert_uint_gt(unit_memory_exhaust(write_all, path, -ENOMEM), 8);
}
END_TEST

UNIT_TESTS(commands_without_payload_are_written, set_environment_is_written, profilers_are_written,
           other_commands_are_written, sessions_are_written, session_id_is_read,
           session_says_what_it_is_told, size_limits_are_exact, longest_message_is_written,
           text_that_is_not_utf8_is_refused, table_is_what_was_measured,
           commands_are_found_by_their_numbers, versions_know_their_commands,
           hooks_go_to_held_runtimes_only, startup_profilers_go_to_held_runtimes_only,
           only_known_coreclr_is_told_to_unset, perf_map_spares_suspended_runtimes_before_10,
           only_coreclr_is_asked_for_its_environment, sessions_that_kill_are_not_written,
           nothing_else_is_deadly, kinds_have_names, running_out_of_memory_is_said);
