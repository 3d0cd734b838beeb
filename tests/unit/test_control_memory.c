/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every route while memory runs out: whichever allocation fails, there is the
 * answer that there should be, or none and the connection is closed; nothing is
 * leaked, and the daemon answers the next one.
 */

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit_control.h"

#define ATTACH "{\"clsid\":\"cf0d821e-299b-5307-a3d8-b283c03916dd\",\"path\":\"/opt/p.so\""

static const struct {
    const char *method;
    const char *target;
    const char *body;
    unsigned status;
} requests[] = {
    {"GET", "/v1/status", "", 200},
    {"GET", "/v1/runtimes", "", 200},
    {"GET", "/v1/runtimes?state=running&rule=few&pid=1&user=x&unit=*", "", 200},
    {"GET", "/v1/runtimes?unit=[", "", 400},
    {"GET", "/v1/runtimes?x=1", "", 400},
    {"GET", "/v1/runtimes/aaaa0001", "", 200},
    {"GET", "/v1/runtimes/aaaa", "", 409},
    {"GET", "/v1/runtimes/ffff", "", 404},
    {"POST", "/v1/runtimes/aaaa0001/resume", "", 200},
    {"POST", "/v1/runtimes/dddd0005/resume", "", 200},
    {"POST", "/v1/runtimes/aaaa0001/hold", "{\"for\":\"10s\"}", 200},
    {"POST", "/v1/runtimes/aaaa0001/hold", "{\"for\":1}", 400},
    {"POST", "/v1/runtimes/bbbb0003/hold", "", 409},
    {"POST", "/v1/runtimes/aaaa0001/kill", "", 200},
    {"POST", "/v1/runtimes/bbbb0003/attach-profiler", ATTACH ",\"data_hex\":\"00ff\"}", 202},
    {"POST", "/v1/runtimes/bbbb0003/attach-profiler", ATTACH ",\"data_hex\":\"0\"}", 400},
    {"POST", "/v1/runtimes/aaaa0001/attach-profiler", ATTACH ",\"data\":\"x\"}", 409},
    {"POST", "/v1/runtimes/bbbb0003/attach-profiler", "", 400},
    {"GET", "/v1/rules", "", 200},
    {"POST", "/v1/explain",
     "{\"attributes\":{\"exe\":\"/app/plan\",\"args\":[\"a\",\"x\"],\"env\":{\"A\":\"1\"}}}", 200},
    {"POST", "/v1/explain", "{\"attributes\":{\"args\":[\"dotnet\",\"App.dll\"]}}", 200},
    {"POST", "/v1/explain", "{\"attributes\":{\"env\":\"x\"}}", 400},
    {"POST", "/v1/explain", "{\"pid\":1000}", 200},
    {"POST", "/v1/explain", "{\"pid\":7}", 404},
    {"POST", "/v1/explain", "{", 400},
    {"POST", "/v1/explain", "[]", 400},
    {"POST", "/v1/explain", "{\"a\":1}", 400},
    {"POST", "/v1/policy/check",
     "version: 1\nrules: [ { name: a, match: all, env: { A: \"1\" } } ]\n", 200},
    {"POST", "/v1/policy/check?name=x", "version: 2\nrules: x\n", 200},
    {"POST", "/v1/policy/reload", "", 200},
    {"GET", "/v1/events?since=0", "", 200},
    {"GET", "/v1/events?since=99999&follow=1", "", 200},
    {"GET", "/metrics", "", 200},
    {"GET", "/healthz", "", 200},
    {"GET", "/readyz", "", 200},
    {"DELETE", "/healthz", "", 405},
    {"GET", "/nowhere", "", 404},
};

static struct unit_answer ask(size_t i, size_t fails_at)
{
    const struct unit_request request = {
        .uid = UNIT_CONTROL_ADMIN,
        .method = requests[i].method,
        .target = requests[i].target,
        .body = requests[i].body,
        .body_length = strlen(requests[i].body),
        .fails_at = fails_at,
    };

    return unit_control_ask(&request);
}

/* The library that reads JSON does not always tell what it has no memory for from what is wrong. */
static bool may_be_malformed(size_t i, unsigned status)
{
    return status == 400 && requests[i].body[0] == '{';
}

/* Returns how many allocations there were. */
static size_t try(size_t i, size_t fails_at)
{
    struct unit_answer answer;
    size_t n;

    unit_control_begin();
    answer = ask(i, fails_at);
    n = answer.n_allocations;
    if (fails_at == 0 || (answer.status != 0 && !may_be_malformed(i, answer.status)))
        ck_assert_msg(answer.status == requests[i].status, "%s, allocation %zu: %u",
                      requests[i].target, fails_at, answer.status);
    free(answer.text);
    answer = ask(0, 0);
    ck_assert_uint_eq(answer.status, 200);
    free(answer.text);
    unit_control_end();
    return n;
}

START_TEST(every_allocation_may_fail)
{
    size_t n = try((size_t)_i, 0);

    ck_assert_uint_gt(n, 0);
    for (size_t fails_at = 1; fails_at <= n; fails_at += unit_share())
        try((size_t)_i, fails_at);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, ARRAY_LENGTH(requests));
}
