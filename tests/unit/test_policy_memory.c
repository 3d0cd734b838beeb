/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading, printing, deciding and explaining while memory runs out: whichever
 * allocation fails, the one operation ends with an error and nothing is left
 * behind.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/match.h"
#include "lib/policy_read.h"
#include "tests/unit/unit_memory.h"

static bool user_number(void *context, const char *name, uint32_t *ret_number)
{
    (void)context;
    *ret_number = 61234;
    return strcmp(name, "acme") == 0;
}

static bool link_target(void *context, const char *path, char **ret_target)
{
    (void)context, (void)path;
    /* The C library's own allocation, which is not made to fail: a host that cannot tell is none of
     * the reader's business. */
    return asprintf(ret_target, "/usr/lib/x") > 0;
}

static const struct policy_host host = {.user_number = user_number,
                                        .group_number = user_number,
                                        .link_target = link_target};

static const char main_file[] =
    "version: 1\n"
    "listen:\n"
    "  - { name: runtime, path: /run/a, mode: \"0666\", owner: acme, group: nobody-here }\n"
    "control:\n"
    "  path: /run/c\n"
    "  read: { users: [ acme, nobody-here ], groups: [ acme ] }\n"
    "  admin: { users: [ acme ] }\n"
    "limits: { silent: 5, history: { records: 5, age: 2h } }\n"
    "defaults: { children: detach, deadline: 5s }\n"
    "rules:\n"
    "  - name: web\n"
    "    match:\n"
    "      unit: [ \"web*.service\", db.service ]\n"
    "      any: [ { exe: /a, env: { A: b, C: [ d ] } }, { not: { user: acme, group: acme } } ]\n"
    "    env: { A: \"b{{\", C: null, D: { value: e, required: false }, LD_PRELOAD: x }\n"
    "    profilers: [ { clsid: '{00000001-0002-0003-0405-060708090a0b}', path: /p } ]\n"
    "    startup_hooks: [ { path: /h } ]\n"
    "  - { name: rest, match: all, ignore: true }\n";
static const char drop_in[] = "rules:\n"
                              "  - { name: late, match: { unit: x.service }, ignore: true }\n"
                              "  - { name: off, match: { unit: y.service }, ignore: true }\n"
                              "disable: [ off ]\n";
static const char broken[] =
    "version: 1\n"
    "rules:\n"
    "  - { name: a, mach: all, env: { A: { file: /x }, B: [ c ], \"\": d } }\n"
    "  - { name: a, match: { exe: {x}, unit: \"[\" }, deadline: 5 }\n"
    "  - /a\n"
    "bundles: { otel: { env: { A: b }, trace: {}, use: [ a ] } }\n"
    "frobnicate: 1\n"
    "include: a\n"
    "rules:\n";
static const char no_yaml[] = "version: 1\nrules:\n  - name: [\n";

/* Does something; 0, or -ENOMEM. */
typedef int (*operation)(void *context);

static int read_texts(const char *a, const char *b)
{
    const struct policy_source sources[] = {{"a.yaml", a, strlen(a)}, {"b.yaml", b, strlen(b)}};
    struct policy_problems problems;
    struct policy *policy;
    int r = policy_read(sources, 2, &host, &policy, &problems);

    policy_problems_deinit(&problems);
    if (r != 0 && policy)
        return 0;
    policy_unref(policy);
    return r;
}

static int read_good(void *context)
{
    (void)context;
    return read_texts(main_file, drop_in);
}

static int read_broken(void *context)
{
    (void)context;
    return read_texts(broken, drop_in);
}

static int read_no_yaml(void *context)
{
    (void)context;
    return read_texts(no_yaml, "disable: [ b ]");
}

static int salvage_text(const char *text)
{
    const struct policy_source source = {"a.yaml", text, strlen(text)};
    struct policy *policy = policy_salvage(&source, &host);

    if (!policy)
        return -ENOMEM;
    policy_unref(policy);
    return 0;
}

static int salvage_good(void *context)
{
    (void)context;
    return salvage_text(main_file);
}

static int salvage_broken(void *context)
{
    (void)context;
    return salvage_text(broken);
}

static int salvage_no_yaml(void *context)
{
    (void)context;
    return salvage_text(no_yaml);
}

/* Made before memory runs out. */
static struct policy *policy;

static int print(void *context)
{
    (void)context;
    struct bytes out;
    int r;

    bytes_init(&out, SIZE_MAX - 1);
    policy_print(policy, &out);
    r = bytes_finish(&out);
    bytes_deinit(&out);
    return r;
}

static int decide(void *context)
{
    (void)context;
    struct attributes attributes = {.pid = 1};
    struct match_decision decision;
    int r = match_decide(policy, &attributes, &decision);

    if (r == 0)
        match_decision_deinit(&decision);
    return r;
}

static int explain(void *context)
{
    (void)context;
    const struct match_reason reason = {MATCH_UNKNOWN, MATCH_SELECTOR_CONTAINER};
    struct attributes attributes = {.pid = 1};
    struct bytes out;
    int r;

    attributes.list[ATTRIBUTE_CONTAINER].why = "no reason";
    bytes_init(&out, SIZE_MAX - 1);
    match_explain(&policy->rules[0], &reason, &attributes, &out);
    r = bytes_finish(&out);
    bytes_deinit(&out);
    return r;
}

static const struct {
    operation run;
    size_t n_least; /* allocations there are at least */
} operations[] = {
    {read_good, 100},   {read_broken, 50},    {read_no_yaml, 10},
    {salvage_good, 20}, {salvage_broken, 10}, {salvage_no_yaml, 5},
    {print, 5},         {decide, 1},          {explain, 1},
};

START_TEST(every_allocation_may_fail)
{
    const struct policy_source source = {"a.yaml", main_file, strlen(main_file)};
    struct policy_problems problems;

    ck_assert_int_eq(policy_read(&source, 1, NULL, &policy, &problems), 0);
    ck_assert_ptr_nonnull(policy);
    policy_problems_deinit(&problems);
    ck_assert_uint_ge(unit_memory_exhaust(operations[_i].run, NULL, -ENOMEM),
                      operations[_i].n_least);
    policy_unref(policy);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, ARRAY_LENGTH(operations));
}
