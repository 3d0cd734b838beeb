/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/journal.h"
#include "daemon/log.h"
#include "lib/bytes.h"
#include "lib/notice.h"
#include "tests/unit/unit_log.h"
#include "tests/unit/unit_memory.h"

static char rule[] = "pay\nments";
static char name[] = "/opt/\033[31mHook.dll";

static const struct notice STEP = {
    .kind = NOTICE_STEP,
    .pid = 4711,
    .uid = 1000,
    .has_runtime = true,
    .cookie = {{0x1f, 0x3a, 0x5c, 0x7e}},
    .state = "applying",
    .step = "hook",
    .result = "refused",
    .attempts = 1,
    .hresult = 0x80131515,
    .rule = rule,
    .name = name,
};

START_TEST(elsewhere_lines_are_as_ever)
{
    unit_log_open(false);
    log_warning("a %d", 7);
    log_entry(ENTRY_STEP, LOG_LEVEL_NOTICE, &STEP, "a step");
    ck_assert_str_eq(unit_log_lines(), "diagportd: a 7\ndiagportd: a step\n");
    ck_assert_ptr_null(unit_log_entry(NULL));
    unit_log_close();
}
END_TEST

START_TEST(under_systemd_an_entry_has_fields)
{
    unit_log_open(true);
    log_entry(ENTRY_STEP, LOG_LEVEL_WARNING, &STEP, "step %s", "hook");
    ck_assert_ptr_nonnull(unit_log_entry(NULL));
    ck_assert_str_eq(unit_log_field("MESSAGE"), "step hook");
    ck_assert_str_eq(unit_log_field("PRIORITY"), "4");
    ck_assert_str_eq(unit_log_field("SYSLOG_IDENTIFIER"), "diagportd");
    ck_assert_str_eq(unit_log_field("MESSAGE_ID"), entry_kind_id(ENTRY_STEP));
    ck_assert_str_eq(unit_log_field("DIAGPORT_COOKIE"), "7e5c3a1f-0000-0000-0000-000000000000");
    ck_assert_str_eq(unit_log_field("DIAGPORT_RULE"), "pay\\x0aments");
    ck_assert_str_eq(unit_log_field("DIAGPORT_STATE"), "applying");
    ck_assert_str_eq(unit_log_field("DIAGPORT_OUTCOME"), "");
    ck_assert_str_eq(unit_log_field("DIAGPORT_STEP"), "hook");
    ck_assert_str_eq(unit_log_field("DIAGPORT_NAME"), "/opt/\\x1b[31mHook.dll");
    ck_assert_str_eq(unit_log_field("DIAGPORT_RESULT"), "refused");
    ck_assert_str_eq(unit_log_field("DIAGPORT_HRESULT"), "0x80131515");
    ck_assert_str_eq(unit_log_field("DIAGPORT_UID"), "1000");
    ck_assert_str_eq(unit_log_field("DIAGPORT_PID"), "4711");
    ck_assert_str_eq(unit_log_field("OBJECT_PID"), "4711");
    ck_assert_str_eq(unit_log_field("DIAGPORT_ERROR"), "");
    ck_assert_str_eq(unit_log_lines(), "");
    log_info("a line");
    ck_assert_str_eq(unit_log_entry(NULL),
                     "MESSAGE=a line\nPRIORITY=6\nSYSLOG_IDENTIFIER=diagportd\n");
    unit_log_close();
}
END_TEST

/* What the kinds have is in the one table; each field is there for some notice. */
START_TEST(other_kinds_have_theirs)
{
    const struct notice admin = {.kind = NOTICE_ADMIN,
                                 .pid = 5,
                                 .uid = 0,
                                 .what = "resume",
                                 .result = "done"};
    const struct notice alarm = {.kind = NOTICE_ALARM, .alarm = ALARM_POLICY, .is_on = true};
    const struct notice peer = {.kind = NOTICE_PEER_ERROR, .peer_error = PEER_SENT_GARBAGE};

    unit_log_open(true);
    log_entry(entry_kind_of(&admin), LOG_LEVEL_NOTICE, &admin, "m");
    ck_assert_str_eq(unit_log_entry(NULL) +
                         strlen("MESSAGE=m\nPRIORITY=5\nSYSLOG_IDENTIFIER="
                                "diagportd\nMESSAGE_ID=") +
                         32,
                     "\nDIAGPORT_NAME=resume\nDIAGPORT_RESULT=done\nDIAGPORT_UID=0\n"
                     "DIAGPORT_PID=5\n");
    log_entry(entry_kind_of(&alarm), LOG_LEVEL_ERROR, &alarm, "m");
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("MESSAGE_ID"), entry_kind_id(ENTRY_ALARM_ON));
    ck_assert_str_eq(unit_log_field("DIAGPORT_ALARM"), "policy");
    ck_assert_str_eq(unit_log_field("DIAGPORT_UID"), "");
    log_entry(entry_kind_of(&peer), LOG_LEVEL_ERROR, &peer, "m");
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("DIAGPORT_ERROR"), "garbage");
    ck_assert_str_eq(unit_log_field("DIAGPORT_PID"), "");
    ck_assert_str_eq(unit_log_field("OBJECT_PID"), "");
    unit_log_close();
}
END_TEST

/* One that was never answered, or lost, has no code. */
START_TEST(only_an_answer_has_a_code)
{
    struct notice notice = STEP;

    unit_log_open(true);
    notice.result = "lost";
    log_entry(ENTRY_STEP, LOG_LEVEL_NOTICE, &notice, "m");
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("DIAGPORT_HRESULT"), "");
    notice.result = "skipped";
    notice.attempts = 0;
    log_entry(ENTRY_STEP, LOG_LEVEL_NOTICE, &notice, "m");
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("DIAGPORT_HRESULT"), "");
    unit_log_close();
}
END_TEST

/* Redirected since systemd connected it, it is a file of somebody's own. */
START_TEST(a_stream_of_somebody_else_is_none)
{
    unit_log_open(true);
    log_close();
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_open("/nowhere");
    log_notice("a");
    ck_assert_str_eq(unit_log_lines(), "diagportd: a\n");
    unit_log_close();
}
END_TEST

START_TEST(without_the_socket_levels_are_in_front)
{
    char path[200];

    unit_log_open(true);
    unit_log_end_journal();
    log_warning("a");
    ck_assert_str_eq(unit_log_lines(), "<4>a\n");
    log_close();
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    log_open(path);
    log_error("b");
    ck_assert_str_eq(unit_log_lines(), "<3>b\n");
    unit_log_close();
}
END_TEST

/* A journald that does not read keeps nobody waiting. */
START_TEST(losses_are_counted_and_told)
{
    unsigned n_sent = 0, n_read = 0;
    char told[64];

    unit_log_open(true);
    for (; n_sent < 5000; n_sent++)
        log_info("line %u", n_sent);
    ck_assert_str_eq(unit_log_lines(), "");
    while (unit_log_entry(NULL))
        n_read++;
    ck_assert_uint_gt(n_read, 0);
    ck_assert_uint_lt(n_read, n_sent);
    log_info("again");
    unit_log_entry(NULL);
    snprintf(told, sizeof told, "(%u lines before this one were lost) again", n_sent - n_read);
    ck_assert_str_eq(unit_log_field("MESSAGE"), told);
    log_info("again");
    unit_log_entry(NULL);
    ck_assert_str_eq(unit_log_field("MESSAGE"), "again");
    unit_log_close();
}
END_TEST

START_TEST(losses_on_standard_error_too)
{
    unsigned n_sent = 0;

    unit_log_open(false);
    for (; n_sent < 5000; n_sent++)
        log_info("line %0999u", n_sent);
    while (*unit_log_lines() != '\0')
        ;
    log_info("again");
    ck_assert_ptr_nonnull(strstr(unit_log_lines(), " lines before this one were lost) again\n"));
    unit_log_close();
}
END_TEST

START_TEST(what_is_too_long_is_cut)
{
    struct notice notice = STEP;
    char text[20001];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    notice.name = text;
    unit_log_open(true);
    log_entry(ENTRY_STEP, LOG_LEVEL_INFO, &notice, "%s", text);
    ck_assert_ptr_nonnull(unit_log_entry(NULL));
    ck_assert_uint_eq(strlen(unit_log_field("DIAGPORT_NAME")), 1024);
    ck_assert_str_eq(unit_log_field("OBJECT_PID"), "4711");
    ck_assert_uint_gt(strlen(unit_log_field("MESSAGE")), 4000);
    unit_log_close();
    unit_log_open(false);
    log_info("%s", text);
    /* A pipe takes that much without blocking. */
    ck_assert_uint_le(strlen(unit_log_lines()), 4096);
    unit_log_close();
}
END_TEST

/* Wherever it does: then it is a line on standard error, and nothing is left behind. */
START_TEST(without_memory_there_is_a_line)
{
    size_t n, n_left;

    unit_log_open(true);
    unit_memory_watch(0);
    log_entry(ENTRY_STEP, LOG_LEVEL_INFO, &STEP, "a step");
    n = unit_memory_release(&n_left);
    ck_assert_uint_gt(n, 2);
    ck_assert_uint_eq(n_left, 0);
    ck_assert_ptr_nonnull(unit_log_entry(NULL));
    for (size_t i = 1; i <= n; i++) {
        unit_memory_watch(i);
        log_entry(ENTRY_STEP, LOG_LEVEL_INFO, &STEP, "a step");
        unit_memory_release(&n_left);
        ck_assert_uint_eq(n_left, 0);
        ck_assert_str_eq(unit_log_lines(), "<6>a step\n");
        ck_assert_ptr_null(unit_log_entry(NULL));
    }
    unit_log_close();
}
END_TEST

/* Not in the middle of a character, wherever the cut falls. */
START_TEST(a_cut_leaves_text)
{
    char text[8001] = "";

    unit_log_open(true);
    for (size_t i = 0; i < sizeof text - 2; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    for (size_t i = 0; i < 2; i++) {
        const char *message;

        log_info("%.*s%s", (int)i, "x", text);
        unit_log_entry(NULL);
        message = unit_log_field("MESSAGE");
        ck_assert_uint_eq(strlen(message) % 2, i);
    }
    unit_log_close();
}
END_TEST

START_TEST(a_value_of_several_lines_has_its_length)
{
    static const char expected[] = "A=b\nC\n\x03\0\0\0\0\0\0\0d\ne\nF=\n";
    struct bytes entry;

    bytes_init(&entry, 1000);
    journal_put(&entry, "A", "b");
    journal_put(&entry, "C", "d\ne");
    journal_put(&entry, "F", "");
    ck_assert_int_eq(bytes_finish(&entry), 0);
    ck_assert_uint_eq(entry.length, sizeof expected - 1);
    ck_assert_mem_eq(entry.data, expected, entry.length);
    bytes_deinit(&entry);
}
END_TEST

START_TEST(ids_are_ids)
{
    for (unsigned i = 0; i < ENTRY_KINDS; i++) {
        const char *id = entry_kind_id((enum entry_kind)i);

        ck_assert_int_eq(id == NULL, i == ENTRY_LINE);
        if (!id)
            continue;
        ck_assert_uint_eq(strlen(id), 32);
        ck_assert_uint_eq(strspn(id, "0123456789abcdef"), 32);
        for (unsigned j = 1; j < i; j++)
            ck_assert_str_ne(id, entry_kind_id((enum entry_kind)j));
    }
}
END_TEST

UNIT_TESTS(elsewhere_lines_are_as_ever, under_systemd_an_entry_has_fields, other_kinds_have_theirs,
           only_an_answer_has_a_code, a_stream_of_somebody_else_is_none,
           without_the_socket_levels_are_in_front, losses_are_counted_and_told,
           losses_on_standard_error_too, what_is_too_long_is_cut, without_memory_there_is_a_line,
           a_cut_leaves_text, a_value_of_several_lines_has_its_length, ids_are_ids);
