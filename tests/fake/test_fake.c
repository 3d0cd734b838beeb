/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of the fake runtime that need no process: grammar, back-off, rules of faults,
 * variables. */

#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/hresult.h"
#include "lib/util.h"
#include "tests/fake/behaviour.h"
#include "tests/fake/commands.h"
#include "tests/fake/fault.h"
#include "tests/fake/grammar.h"
#include "tests/fake/utf8.h"
#include "tests/fake/variables.h"
#include "tests/fake/version.h"

START_TEST(ports_are_read)
{
    static const struct {
        const char *value;
        const char *read; /* path and + for suspend or - */
    } rows[] = {
        {"p", "p+"},
        {"p;q", "p+q+"},
        {"p;p", "p+p+"},
        {"p,connect,suspend", "p+"},
        {"p;", "p+"},
        {";;p", "p+"},
        {",p", "p+"},
        {",,p,,nosuspend", "p-"},
        {"p,bogus", "p+"},
        {"p,nosuspend", "p-"},
        {"p,NOSUSPEND", "p-"},
        {"p, nosuspend", "p+"},
        {"p,suspend,nosuspend", "p+"},
        {"p,nosuspend,suspend", "p-"},
        {"p,listen", ""},
        {"p,LISTEN;q", "q+"},
        {"p,connect,listen", "p+"},
        {"p,listen,connect", ""},
        {"suspend", "suspend+"},
        {" p", " p+"},
        {"", ""},
        {";", ""},
        {",", ""},
        {",;,", ""},
        {"p,nosuspend;q;r,suspend", "p-q+r+"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct grammar_ports ports;
        struct bytes read;

        bytes_init(&read, 1000);
        ck_assert(grammar_read(rows[i].value, &ports));
        for (size_t port = 0; port < ports.n; port++)
            bytes_put_format(&read, "%s%c", ports.list[port].path,
                             ports.list[port].suspends ? '+' : '-');
        ck_assert_int_eq(bytes_finish(&read), 0);
        ck_assert_str_eq((char *)read.data, rows[i].read);
        bytes_deinit(&read);
        grammar_deinit(&ports);
    }
}
END_TEST

START_TEST(back_off_has_its_steps)
{
    static const int steps[] = {10, 12,  15,  18,  22,  27,  33,  41,  51,  63,  78,
                                97, 121, 151, 188, 235, 293, 366, 457, 571, 500, 500};
    int wait = -1;

    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        wait = grammar_back_off(wait);
        ck_assert_int_eq(wait, steps[i]);
    }
    ck_assert_int_eq(grammar_back_off(10), 12);
}
END_TEST

START_TEST(settings_have_two_prefixes)
{
    unsetenv("DOTNET_X");
    unsetenv("COMPlus_X");
    ck_assert_ptr_null(grammar_setting("X", true));
    setenv("COMPlus_X", "c", 1);
    ck_assert_str_eq(grammar_setting("X", true), "c");
    ck_assert_ptr_null(grammar_setting("X", false));
    setenv("DOTNET_X", "", 1);
    ck_assert_str_eq(grammar_setting("X", true), "c");
    setenv("DOTNET_X", "d", 1);
    ck_assert_str_eq(grammar_setting("X", true), "d");
}
END_TEST

START_TEST(switches_are_hexadecimal)
{
    static const struct {
        const char *value;
        bool is_on;
    } rows[] = {{"0", false},    {"00000000", false}, {"1", true},  {"0x0", false},
                {"false", true}, {"A", true},         {"no", true}, {"", true}};

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        setenv("DOTNET_SWITCH", rows[i].value, 1);
        ck_assert_int_eq(grammar_switch("SWITCH", true, true), rows[i].is_on);
    }
}
END_TEST

START_TEST(rules_of_faults_are_read)
{
    static const struct {
        enum fault_argument argument;
        const char *rule;
        bool is_good;
    } rows[] = {
        {FAULT_ARGUMENT_NONE, "any", true},
        {FAULT_ARGUMENT_NONE, "resume@3", true},
        {FAULT_ARGUMENT_NONE, "info@2-4", true},
        {FAULT_ARGUMENT_NONE, "0403@2+", true},
        {FAULT_ARGUMENT_NONE, "start", true},
        {FAULT_ARGUMENT_NONE, "", false},
        {FAULT_ARGUMENT_NONE, "resum", false},
        {FAULT_ARGUMENT_NONE, "resume@", false},
        {FAULT_ARGUMENT_NONE, "resume@0", false},
        {FAULT_ARGUMENT_NONE, "resume@-1", false},
        {FAULT_ARGUMENT_NONE, "resume@4-2", false},
        {FAULT_ARGUMENT_NONE, "resume@2x", false},
        {FAULT_ARGUMENT_NONE, "resume:1", false},
        {FAULT_ARGUMENT_NUMBER, "resume:1", true},
        {FAULT_ARGUMENT_NUMBER, "resume@1:1", true},
        {FAULT_ARGUMENT_NUMBER, "resume", false},
        {FAULT_ARGUMENT_NUMBER, "resume:", false},
        {FAULT_ARGUMENT_NUMBER, "resume:1x", false},
        {FAULT_ARGUMENT_MAYBE, "resume", true},
        {FAULT_ARGUMENT_MAYBE, "resume:9", true},
        {FAULT_ARGUMENT_MAYBE, "resume:x", false},
        {FAULT_ARGUMENT_HRESULT, "resume:80070057", true},
        {FAULT_ARGUMENT_HRESULT, "resume:0x80070057:3", true},
        {FAULT_ARGUMENT_HRESULT, "resume:180070057", false},
        {FAULT_ARGUMENT_HRESULT, "resume:80070057:0", false},
        {FAULT_ARGUMENT_HRESULT, "resume", false},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct faults faults = {0};
        const char *error = faults_add(&faults, FAULT_DELAY, rows[i].argument, rows[i].rule);

        ck_assert_msg((error == NULL) == rows[i].is_good, "%s: %s", rows[i].rule,
                      error ? error : "accepted");
        faults_deinit(&faults);
    }
}
END_TEST

/* How many of ten commands of that set and id a rule is due for, as a string of digits. */
static void check_due(const char *rule, uint8_t set, uint8_t id, const char *expected)
{
    struct faults faults = {0};
    char due[11] = "";

    ck_assert_ptr_null(faults_add(&faults, FAULT_SILENT, FAULT_ARGUMENT_NONE, rule));
    for (unsigned i = 0; i < 10; i++)
        due[i] = faults_command(&faults, set, id, true).due[FAULT_SILENT] ? '1' : '0';
    ck_assert_str_eq(due, expected);
    ck_assert_ptr_null(faults_command(&faults, set, id, false).due[FAULT_SILENT]);
    faults_deinit(&faults);
}

START_TEST(rules_of_faults_count)
{
    check_due("resume", 4, 1, "1111111111");
    check_due("resume", 4, 2, "0000000000");
    check_due("resume@3", 4, 1, "0010000000");
    check_due("resume@3-5", 4, 1, "0011100000");
    check_due("resume@9+", 4, 1, "0000000011");
    check_due("info", 4, 8, "1111111111");
    check_due("info2", 4, 8, "0000000000");
    check_due("perf-map", 4, 6, "0000000000");
    check_due("any@1", 9, 9, "1000000000");
    check_due("0909@2", 9, 9, "0100000000");
    check_due("start", FAULT_SET_START, 0, "1111111111");
    check_due("any", FAULT_SET_START, 0, "0000000000");
}
END_TEST

START_TEST(garbage_has_bytes)
{
    struct faults faults = {0};
    struct fault_plan plan;

    ck_assert_ptr_null(
        faults_add(&faults, FAULT_GARBAGE_ADVERTISE, FAULT_ARGUMENT_TEXT, "@2:a\\x00\\xfFb\\y"));
    plan = faults_connection(&faults);
    ck_assert_ptr_null(plan.due[FAULT_GARBAGE_ADVERTISE]);
    plan = faults_connection(&faults);
    ck_assert_ptr_nonnull(plan.due[FAULT_GARBAGE_ADVERTISE]);
    ck_assert_uint_eq(plan.due[FAULT_GARBAGE_ADVERTISE]->text_length, 6);
    ck_assert_mem_eq(plan.due[FAULT_GARBAGE_ADVERTISE]->text,
                     "a\0\xff"
                     "b\\y",
                     6);
    faults_deinit(&faults);
}
END_TEST

START_TEST(every_kind_of_command_has_a_name)
{
    ck_assert_uint_ne(commands_kinds("resume"), 0);
    ck_assert_uint_eq(commands_kinds("resume"), commands_kind(4, 1));
    ck_assert_uint_eq(commands_kinds("info"),
                      commands_kind(4, 0) | commands_kind(4, 4) | commands_kind(4, 8));
    ck_assert_uint_eq(commands_kinds("inf"), 0);
    ck_assert_str_eq(commands_name(4, 1), "ResumeRuntime");
    ck_assert_str_eq(commands_name(4, 0x7F), "unknown");
}
END_TEST

START_TEST(behaviours_are_read_from_a_list)
{
    struct behaviour behaviour;
    char list[] =
        "version=9,kind=coreclr,entry=a\\,b,,no-advertise=@2,start-delay=7,leave-open=any";

    behaviour_init(&behaviour);
    ck_assert(behaviour_set_list(&behaviour, list));
    ck_assert(behaviour_complete(&behaviour));
    ck_assert_uint_eq(behaviour.version.major, 9);
    ck_assert_str_eq(behaviour.version.text, "9.0.23");
    ck_assert_str_eq(behaviour.entry, "a,b");
    ck_assert_uint_eq(behaviour.start_delay, 7);
    ck_assert_uint_eq(behaviour.faults.n, 2);
    behaviour_deinit(&behaviour);
}
END_TEST

START_TEST(versions_are_found)
{
    ck_assert_uint_eq(version_find(KIND_CORECLR, "8")->major, 8);
    ck_assert_uint_eq(version_find(KIND_CORECLR, "11.0.0-rc.1")->major, 11);
    ck_assert_ptr_null(version_find(KIND_CORECLR, "4"));
    ck_assert_ptr_null(version_find(KIND_CORECLR, "8x"));
    ck_assert_ptr_null(version_find(KIND_CORECLR, ""));
    ck_assert_ptr_null(version_find(KIND_MONO, "5"));
    ck_assert(version_adjust(version_find(KIND_CORECLR, "8"), "8.0.0").too_long_waits);
    ck_assert(!version_adjust(version_find(KIND_CORECLR, "8"), "8").too_long_waits);
}
END_TEST

START_TEST(variables_change_as_the_copy_does)
{
    struct variables variables;
    struct bytes changes;

    clearenv();
    setenv("FIRST", "1", 1);
    setenv("SECOND", "2", 1);
    ck_assert(variables_init(&variables, true));
    ck_assert_uint_eq(variables_set(&variables, "NEW", "n"), HRESULT_OK);
    ck_assert_uint_eq(variables_set(&variables, "SECOND", ""), HRESULT_OK);
    ck_assert_uint_eq(variables_set(&variables, "FIRST", NULL), HRESULT_OK);
    ck_assert_uint_eq(variables_set(&variables, "FIRST", NULL), HRESULT_VARIABLE_NOT_FOUND);
    ck_assert_uint_eq(variables_set(&variables, "P=a", "b"), HRESULT_OK);
    ck_assert_uint_eq(variables_set(&variables, "P=a", NULL), HRESULT_VARIABLE_NOT_FOUND);
    ck_assert_uint_eq(variables_set(&variables, "", "x"), HRESULT_OK);
    ck_assert_uint_eq(variables_set(&variables, NULL, "x"), HRESULT_INVALID_ARGUMENT);
    ck_assert_str_eq(variables_get(&variables, "P"), "a=b");
    ck_assert_ptr_null(variables_get(&variables, "FIRST"));
    ck_assert_str_eq(variables_get_launched(&variables, "FIRST"), "1");
    ck_assert_str_eq(getenv("FIRST"), "1");
    ck_assert_str_eq(variables.list[0], "NEW=n");

    bytes_init(&changes, 1000);
    variables_put_changes(&variables, &changes);
    ck_assert_int_eq(bytes_finish(&changes), 0);
    ck_assert_str_eq((char *)changes.data,
                     "{\"NEW\":\"n\",\"SECOND\":\"\",\"P\":\"a=b\",\"FIRST\":null}");
    bytes_deinit(&changes);
    variables_deinit(&variables);
}
END_TEST

START_TEST(variables_fill_exactly)
{
    for (size_t size = 100; size < 9000; size += 2) {
        struct variables variables;
        struct bytes out;

        clearenv();
        ck_assert(variables_init(&variables, true));
        ck_assert(variables_fill(&variables, size));
        bytes_init(&out, 100000);
        ck_assert(variables_put(&variables, &out));
        ck_assert_uint_eq(out.length, size);
        bytes_deinit(&out);
        variables_deinit(&variables);
    }
}
END_TEST

START_TEST(wrong_bytes_are_replaced)
{
    char *repaired = utf8_repair("a\xff\xc3(\xc3\xa9");
    struct bytes json;

    ck_assert_str_eq(repaired, "a\xEF\xBF\xBD\xEF\xBF\xBD(\xc3\xa9");
    free(repaired);
    bytes_init(&json, 1000);
    utf8_put_json(&json, "\"\\\n\xff\xc3\xa9");
    utf8_put_json(&json, NULL);
    ck_assert_int_eq(bytes_finish(&json), 0);
    ck_assert_str_eq((char *)json.data, "\"\\\"\\\\\\u000a\\udcff\xc3\xa9\"null");
    bytes_deinit(&json);
}
END_TEST

UNIT_TESTS(ports_are_read, back_off_has_its_steps, settings_have_two_prefixes,
           switches_are_hexadecimal, rules_of_faults_are_read, rules_of_faults_count,
           garbage_has_bytes, every_kind_of_command_has_a_name, behaviours_are_read_from_a_list,
           versions_are_found, variables_change_as_the_copy_does, variables_fill_exactly,
           wrong_bytes_are_replaced);
