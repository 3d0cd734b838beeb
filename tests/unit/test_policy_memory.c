/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading, printing, deciding and explaining while memory runs out: whichever
 * allocation fails, the one operation ends with an error and nothing is left
 * behind. The linker's --wrap leads the allocations of the core, and of Check,
 * here.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/match.h"
#include "lib/policy_read.h"

static size_t left = SIZE_MAX; /* allocations until one fails */
static bool has_failed;
static long n_alive;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

static bool fails(void)
{
    if (left > 0) {
        left--;
        return false;
    }
    has_failed = true;
    return true;
}

static void *count(void *memory)
{
    n_alive += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : count(__real_calloc(n, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    void *moved;

    if (fails())
        return NULL;
    moved = __real_realloc(memory, size);
    n_alive += moved && !memory;
    return moved;
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : count(__real_strdup(text));
}

void __wrap_free(void *memory)
{
    n_alive -= memory != NULL;
    __real_free(memory);
}

static bool user_number(void *context, const char *name, uint32_t *ret_number)
{
    (void)context;
    *ret_number = 61234;
    return strcmp(name, "acme") == 0;
}

static bool link_target(void *context, const char *path, char **ret_target)
{
    (void)context, (void)path;
    *ret_target = strdup("/usr/lib/x");
    return *ret_target != NULL;
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
typedef int (*operation)(void);

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

static int read_good(void)
{
    return read_texts(main_file, drop_in);
}

static int read_broken(void)
{
    return read_texts(broken, drop_in);
}

static int read_no_yaml(void)
{
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

static int salvage_good(void)
{
    return salvage_text(main_file);
}

static int salvage_broken(void)
{
    return salvage_text(broken);
}

static int salvage_no_yaml(void)
{
    return salvage_text(no_yaml);
}

/* Made before memory runs out. */
static struct policy *policy;

static int print(void)
{
    struct bytes out;
    int r;

    bytes_init(&out, SIZE_MAX - 1);
    policy_print(policy, &out);
    r = bytes_finish(&out);
    bytes_deinit(&out);
    return r;
}

static int decide(void)
{
    struct attributes attributes = {.pid = 1};
    struct match_decision decision;
    int r = match_decide(policy, &attributes, &decision);

    if (r == 0)
        match_decision_deinit(&decision);
    return r;
}

static int explain(void)
{
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
    const long n_at_start = n_alive;
    size_t n = 0;

    ck_assert_int_eq(policy_read(&source, 1, NULL, &policy, &problems), 0);
    ck_assert_ptr_nonnull(policy);
    policy_problems_deinit(&problems);
    for (;; n++) {
        const long n_before = n_alive;
        int r;

        left = n;
        has_failed = false;
        r = operations[_i].run();
        left = SIZE_MAX;
        ck_assert_msg(n_alive == n_before, "%ld left after allocation %zu", n_alive - n_before, n);
        ck_assert_msg(r == (has_failed ? -ENOMEM : 0), "%d after allocation %zu", r, n);
        if (!has_failed)
            break;
    }
    ck_assert_uint_ge(n, operations[_i].n_least);
    policy_unref(policy);
    ck_assert_int_eq(n_alive, n_at_start);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, ARRAY_LENGTH(operations));
}
