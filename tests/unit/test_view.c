/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The core's objects as JSON: what is shown of them, what never is, and memory
 * that runs out in the middle.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/view.h"
#include "lib/attribute.h"
#include "lib/attributes.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/notice.h"
#include "lib/plan.h"
#include "lib/policy.h"
#include "lib/policy_read.h"
#include "lib/runtime.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"

static const char policy[] =
    "version: 1\n"
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
    "control: { path: /run/diagport/control.sock }\n"
    "rules:\n"
    "  - { name: first, match: { exe: /other }, ignore: true }\n"
    "  - { name: second, match: all, env: { TOKEN: secret, GONE: null } }\n";

/* The library's memory is to run out with ours. */
static void *take(size_t size)
{
    return malloc(size);
}

static void give_back(void *memory)
{
    free(memory);
}

static void set_up(void)
{
    json_set_alloc_funcs(take, give_back);
    json_object_seed(1);
}

/* Takes the value; its times, which are the calendar's, are taken out. */
static void shows(json_t *value, const char *text)
{
    char *shown;

    ck_assert_ptr_nonnull(value);
    if (json_object_get(value, "at"))
        json_object_set_new(value, "at", json_null());
    shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_str_eq(shown, text);
    free(shown);
    json_decref(value);
}

START_TEST(small_things)
{
    const struct guid cookie = world_cookie("123e4567");

    shows(view_text(NULL), "null");
    shows(view_text("a\n\"\\\xff"), "\"a\\\\x0a\\\"\\\\x5c\\\\xff\"");
    shows(view_escaped("a \\x0a"), "\"a \\\\x0a\"");
    shows(view_escaped("\xff"), "\"\\\\xff\"");
    shows(view_short_cookie(&cookie), "\"123e4567\"");
    shows(view_code(0x80070057), "\"0x80070057\"");
    shows(view_time(MOMENT_NEVER), "null");
    shows(view_span(SPAN_FOREVER), "null");
    shows(view_span(span_from_ms(1500)), "1.5");
}
END_TEST

/* The same moment is the same text, however often it is asked for; the next one is greater. */
START_TEST(times_are_rfc_3339)
{
    static const char pattern[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    json_t *first = view_time((struct moment){5000000}), *again, *later;

    for (int i = 0; i < 1000; i++) {
        again = view_time((struct moment){5000000});
        ck_assert_str_eq(json_string_value(again), json_string_value(first));
        json_decref(again);
    }
    later = view_time((struct moment){5000001});
    ck_assert_int_lt(strcmp(json_string_value(first), json_string_value(later)), 0);
    ck_assert_uint_eq(json_string_length(first), strlen(pattern));
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        char character = json_string_value(first)[i];

        ck_assert(pattern[i] == 'd' ? character >= '0' && character <= '9'
                                    : character == pattern[i]);
    }
    json_decref(first);
    json_decref(later);
}
END_TEST

START_TEST(of_the_environment_only_names)
{
    static const char variables[] = "A=secret\0B=\0no-equals\0=secret2";
    struct attributes attributes;
    json_t *view, *entry;

    attributes_init(&attributes);
    ck_assert_int_eq(attribute_set_texts(&attributes.list[ATTRIBUTE_ENVIRON], variables,
                                         sizeof variables, SIZE_MAX, false),
                     0);
    ck_assert_int_eq(attributes_set(&attributes, ATTRIBUTE_EXE, "/proc/PID/exe", "/a=b"), 0);
    view = view_attributes(&attributes);
    ck_assert_uint_eq(json_object_size(view), ATTRIBUTE_COUNT);
    entry = json_incref(json_object_get(json_object_get(view, "env"), "texts"));
    shows(entry, "[\"A\",\"B\",\"no-equals\",\"\"]");
    entry = json_incref(json_object_get(view, "exe"));
    shows(entry, "{\"state\":\"present\",\"source\":\"/proc/PID/exe\",\"why\":\"\","
                 "\"texts\":[\"/a=b\"],\"cut\":false}");
    json_decref(view);
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(every_kind_of_event)
{
    const struct guid cookie = world_cookie("123e4567");
    struct notice notice = {.pid = 7, .uid = 8, .why = "because", .rule = (char[]){"r"}};
    json_t *view;

    notice.kind = NOTICE_PEER_ERROR;
    notice.peer_error = PEER_CLAIMED_WRONG;
    shows(view_notice(1, &notice),
          "{\"seq\":1,\"at\":null,\"kind\":\"peer_error\",\"id\":null,\"cookie\":null,\"pid\":7,"
          "\"uid\":8,\"why\":\"because\",\"error\":\"wrong_claim\"}");
    notice.kind = NOTICE_ALARM;
    notice.alarm = ALARM_POLICY;
    notice.is_on = true;
    shows(view_notice(2, &notice),
          "{\"seq\":2,\"at\":null,\"kind\":\"alarm\",\"id\":null,\"cookie\":null,\"pid\":null,"
          "\"uid\":null,\"why\":\"because\",\"alarm\":\"policy\",\"on\":true}");
    notice.kind = NOTICE_ADMIN;
    notice.has_runtime = true;
    notice.cookie = cookie;
    notice.what = "kill";
    notice.result = "done";
    shows(view_notice(3, &notice),
          "{\"seq\":3,\"at\":null,\"kind\":\"admin\",\"id\":\"123e4567\","
          "\"cookie\":\"123e4567-0000-4000-8000-000000000000\",\"pid\":7,\"uid\":8,"
          "\"why\":\"because\",\"what\":\"kill\",\"result\":\"done\"}");
    notice.kind = NOTICE_RUNTIME;
    notice.state = "running";
    notice.old_state = "resuming";
    notice.name = (char[]){"/a\x1b"};
    notice.why = NULL;
    shows(view_notice(4, &notice),
          "{\"seq\":4,\"at\":null,\"kind\":\"runtime\",\"id\":\"123e4567\","
          "\"cookie\":\"123e4567-0000-4000-8000-000000000000\",\"pid\":7,\"uid\":8,\"why\":null,"
          "\"state\":\"running\",\"old_state\":\"resuming\",\"outcome\":null,\"rule\":\"r\","
          "\"exe\":\"/a\\\\x1b\"}");
    notice.kind = NOTICE_STEP;
    notice.step = "env";
    notice.result = "refused";
    notice.attempts = 2;
    notice.hresult = 0x80070057;
    notice.name = (char[]){"A"};
    shows(view_notice(5, &notice),
          "{\"seq\":5,\"at\":null,\"kind\":\"step\",\"id\":\"123e4567\","
          "\"cookie\":\"123e4567-0000-4000-8000-000000000000\",\"pid\":7,\"uid\":8,\"why\":null,"
          "\"step\":\"env\",\"name\":\"A\",\"result\":\"refused\",\"required\":false,"
          "\"hresult\":\"0x80070057\",\"attempts\":2,\"state\":\"running\",\"rule\":\"r\"}");
    /* A code of 0 would look like an answer. */
    notice.result = "lost";
    view = view_notice(6, &notice);
    shows(json_incref(json_object_get(view, "hresult")), "null");
    json_decref(view);
}
END_TEST

static const struct runtime *runtime_in(struct world *world)
{
    static const uint32_t first[] = {0};
    struct world_process *process =
        world_process(world, "/app",
                      "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0X=secret\0");

    world_start(world_runtime(world, process, "aaaaaaaa", first, 1));
    world_pass(world, span_from_s(5), true);
    return world_find(world, "aaaaaaaa");
}

static void has(const json_t *view, const char *key, const char *text)
{
    json_t *value = json_object_get(view, key);

    ck_assert_msg(value != NULL, "%s", key);
    shows(json_incref(value), text);
}

START_TEST(a_runtime_with_all_its_members)
{
    struct world *world = world_new(policy);
    const struct runtime *runtime = runtime_in(world);
    json_t *view = view_runtime_whole(runtime, world->now), *steps, *trace;
    char *text;

    has(view, "id", "\"aaaaaaaa\"");
    has(view, "exe", "\"/app\"");
    has(view, "state", "\"running\"");
    has(view, "rule", "\"second\"");
    has(view, "outcome", "\"applied\"");
    has(view, "port", "\"runtime\"");
    has(view, "kind", "\"coreclr\"");
    has(view, "blocked", "null");
    has(view, "blocked_ports", "[]");
    has(view, "late", "false");
    has(view, "hold_until", "null");
    has(view, "ports", "{\"suspending\":1,\"other\":[]}");
    steps = json_object_get(view, "steps");
    ck_assert_uint_eq(json_array_size(steps), 3);
    has(json_array_get(steps, 0), "unset", "false");
    has(json_array_get(steps, 1), "unset", "true");
    has(json_array_get(steps, 1), "hresult", "\"0x00000000\"");
    has(json_array_get(steps, 2), "kind", "\"resume\"");
    ck_assert_ptr_null(json_object_get(json_array_get(steps, 2), "unset"));
    trace = json_object_get(view, "trace");
    has(json_array_get(trace, 0), "verdict", "\"no\"");
    has(json_array_get(trace, 0), "why", "\"exe \\\"/app\\\" is none of \\\"/other\\\"\"");
    has(json_array_get(trace, 1), "verdict", "\"yes\"");
    text = json_dumps(view, 0);
    ck_assert_ptr_null(strstr(text, "secret"));
    free(text);
    json_decref(view);
    world_free(world);
}
END_TEST

struct sight {
    const struct runtime *runtime;
    const struct broker *broker;
};

static int see(void *context)
{
    const struct sight *sight = context;
    const struct broker_rule_use use = {.n_matches = 1};
    const struct policy *in_force = broker_policy(sight->broker);
    json_t *list = json_array();
    struct bytes text;
    int error;

    view_append(&list, view_runtime_whole(sight->runtime, sight->runtime->connected_at));
    view_append(&list, view_policy(in_force, CONFIG_FILES, MOMENT_NEVER));
    view_append(&list, view_rule(in_force, 1, &use));
    view_append(&list, view_limits(sight->broker));
    bytes_init(&text, SIZE_MAX - 1);
    view_write(list, &text);
    error = bytes_finish(&text);
    bytes_deinit(&text);
    return error;
}

START_TEST(memory_that_runs_out)
{
    struct world *world = world_new(policy);
    struct sight sight = {.runtime = runtime_in(world), .broker = world->broker};

    ck_assert_uint_gt(unit_memory_exhaust(see, &sight, -ENOMEM), 100);
    world_free(world);
}
END_TEST

/* What is shown is what counts. */
START_TEST(limits_are_those_in_force)
{
    static const char unlimited[] =
        "version: 1\n"
        "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
        "control: { path: /run/diagport/control.sock }\n";
    static const char limited[] =
        "version: 1\n"
        "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
        "control: { path: /run/diagport/control.sock }\n"
        "limits: { runtimes: 30, runtimes_per_user: 20, connections_per_user: 7 }\n";
    const struct {
        const char *policy;
        size_t usable;
        int runtimes, runtimes_per_user, connections_per_user;
    } rows[] = {
        {unlimited, 1000000, 20000, 5000, 250000},
        {unlimited, 100, 50, 50, 25},
        {limited, 100, 30, 20, 7},
        {limited, 30, 15, 15, 7},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct world *world = world_new_with(rows[i].policy, BROKER_TRUSTS_RECORDS, rows[i].usable);
        json_t *view = view_limits(world->broker);

        ck_assert_int_eq(json_integer_value(json_object_get(view, "runtimes")), rows[i].runtimes);
        ck_assert_int_eq(json_integer_value(json_object_get(view, "runtimes_per_user")),
                         rows[i].runtimes_per_user);
        ck_assert_int_eq(json_integer_value(json_object_get(view, "connections_per_user")),
                         rows[i].connections_per_user);
        json_decref(view);
        world_free(world);
    }
}
END_TEST

START_TEST(what_failed_once_stays_so)
{
    json_t *object = json_object();
    struct bytes text;

    view_put(&object, "a", json_true());
    view_put(&object, "b", NULL);
    ck_assert_ptr_null(object);
    view_put(&object, "c", json_array());
    ck_assert_ptr_null(object);
    bytes_init(&text, 100);
    view_write(object, &text);
    ck_assert_int_eq(bytes_finish(&text), -ENOMEM);
    bytes_deinit(&text);
}
END_TEST

START_TEST(problems_have_a_place_or_none)
{
    static const char bad[] = "version: 1\nlisten: 5\n";
    const struct policy_source source = {.name = "a\nb", .bytes = bad, .length = sizeof bad - 1};
    const struct policy_host host = {.may_kill = false};
    struct policy_problems problems;
    struct policy *none = NULL;
    json_t *list;

    ck_assert_int_eq(policy_read(&source, 1, &host, &none, &problems), 0);
    ck_assert_uint_gt(problems.n, 0);
    problems.list[0].line = 2;
    list = view_problems(&problems);
    has(json_array_get(list, 0), "severity", "\"error\"");
    has(json_array_get(list, 0), "file", "\"a\\\\x0ab\"");
    has(json_array_get(list, 0), "line", "2");
    json_decref(list);
    problems.list[0].line = 0;
    list = view_problems(&problems);
    has(json_array_get(list, 0), "line", "null");
    has(json_array_get(list, 0), "column", "null");
    json_decref(list);
    policy_problems_deinit(&problems);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_unchecked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, small_things);
    tcase_add_test(tests, times_are_rfc_3339);
    tcase_add_test(tests, of_the_environment_only_names);
    tcase_add_test(tests, every_kind_of_event);
    tcase_add_test(tests, a_runtime_with_all_its_members);
    tcase_add_test(tests, memory_that_runs_out);
    tcase_add_test(tests, limits_are_those_in_force);
    tcase_add_test(tests, what_failed_once_stays_so);
    tcase_add_test(tests, problems_have_a_place_or_none);
}
