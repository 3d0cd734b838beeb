/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/names.h"
#include "lib/policy_read.h"

static bool user_number(void *context, const char *name, uint32_t *ret_number)
{
    (void)context;
    if (strcmp(name, "acme") != 0 && strcmp(name, "payments") != 0)
        return false;
    *ret_number = name[0] == 'a' ? 1000 : 1001;
    return true;
}

static bool group_number(void *context, const char *name, uint32_t *ret_number)
{
    (void)context;
    if (strcmp(name, "diagport") != 0)
        return false;
    *ret_number = 990;
    return true;
}

static const struct policy_host host = {.user_number = user_number,
                                        .group_number = group_number,
                                        .may_kill = true,
                                        .has_peer_pidfd = true};

static struct policy_source source_of(const char *name, const char *text)
{
    return (struct policy_source){name, text, strlen(text)};
}

/* Reads one file that has to be fine; warnings may be there. */
static struct policy *read_good(const char *text, const struct policy_host *with)
{
    const struct policy_source source = source_of("a.yaml", text);
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(&source, 1, with, &policy, &problems), 0);
    ck_assert_msg(policy != NULL, "%s", problems.n > 0 ? problems.list[0].text : "no policy");
    ck_assert_uint_eq(problems.n_errors, 0);
    policy_problems_deinit(&problems);
    return policy;
}

static void assert_place(struct policy_place place, unsigned line, unsigned column)
{
    ck_assert_str_eq(place.file, "a.yaml");
    ck_assert_uint_eq(place.line, line);
    ck_assert_uint_eq(place.column, column);
}

/* The sockets that it leaves out are the host's, each by itself. */
START_TEST(a_policy_that_names_no_socket_has_the_usual_ones)
{
    struct policy_host usual = host;
    struct policy *policy;

    usual.sockets = "/run/diagport";
    policy = read_good("version: 1\n", &usual);
    ck_assert_uint_eq(policy->n_listens, 1);
    ck_assert_str_eq(policy->listens[0].name, "runtime");
    ck_assert_str_eq(policy->listens[0].path, "/run/diagport/runtime.sock");
    ck_assert(!policy->listens[0].has_mode);
    ck_assert_uint_eq(policy->listens[0].mode, 0666);
    ck_assert_str_eq(policy->control.path, "/run/diagport/control.sock");
    policy_unref(policy);
    policy = read_good("version: 1\nlisten: [ { name: a, path: /run/a } ]\n", &usual);
    ck_assert_uint_eq(policy->n_listens, 1);
    ck_assert_str_eq(policy->listens[0].path, "/run/a");
    ck_assert_str_eq(policy->control.path, "/run/diagport/control.sock");
    policy_unref(policy);
    usual.are_sockets_private = true;
    policy = read_good("version: 1\ncontrol: { path: /run/c }\n", &usual);
    ck_assert_uint_eq(policy->listens[0].mode, 0600);
    ck_assert_str_eq(policy->control.path, "/run/c");
    policy_unref(policy);
}
END_TEST

START_TEST(a_usual_folder_may_be_too_long)
{
    struct policy_host usual = host;
    struct policy_problems problems;
    struct policy_source source = source_of("a.yaml", "version: 1\n");
    struct policy *policy;
    char folder[128];

    memset(folder, 'x', sizeof folder);
    folder[0] = '/';
    folder[sizeof folder - 1] = '\0';
    usual.sockets = folder;
    ck_assert_int_eq(policy_read(&source, 1, &usual, &policy, &problems), 0);
    ck_assert_ptr_null(policy);
    ck_assert_uint_eq(problems.n_errors, 2);
    ck_assert_ptr_nonnull(strstr(problems.list[0].text, "is too long"));
    policy_problems_deinit(&problems);
}
END_TEST

START_TEST(a_policy_has_what_is_written)
{
    struct policy *policy =
        read_good("version: 1\n"
                  "listen:\n"
                  "  - { name: a, path: /run/a, mode: '0620' }\n"
                  "  - { name: b, path: /run/b, owner: acme }\n"
                  "control:\n"
                  "  path: /run/c\n"
                  "  read: { users: [acme, nobody-here, '7'], groups: [diagport] }\n"
                  "  admin: { users: [payments] }\n"
                  "limits: { silent: 5, late_after: 3s }\n"
                  "on_stop: keep\n"
                  "defaults: { deadline: 2s, hold_limit: forever }\n"
                  "rules:\n"
                  "  - name: web\n"
                  "    match: { user: [ payments, x, 4711 ], group: diagport }\n"
                  "    env: { A: b, C: null, D: { value: 'e{{f}', required: false } }\n"
                  "    profilers:\n"
                  "      - { clsid: '{00000001-0002-0003-0405-060708090a0b}', path: /p }\n"
                  "    startup_hooks: [ { path: /h, required: false } ]\n"
                  "    deadline: 1500ms\n",
                  &host);
    const struct policy_rule *rule = &policy->rules[0];

    ck_assert_uint_eq(policy->n_listens, 2);
    ck_assert(policy->listens[0].has_mode && !policy->listens[1].has_mode);
    ck_assert_uint_eq(policy->listens[0].mode, 0620);
    ck_assert_str_eq(policy->listens[1].owner, "acme");
    assert_place(policy->listens[1].place, 4, 5);
    ck_assert_str_eq(policy->control.path, "/run/c");
    ck_assert_uint_eq(policy->control.n_read_users, 3);
    ck_assert_uint_eq(policy->control.read.n_users, 2);
    ck_assert_uint_eq(policy->control.read.users[0], 1000);
    ck_assert_uint_eq(policy->control.read.users[1], 7);
    ck_assert_uint_eq(policy->control.read.groups[0], 990);
    ck_assert_uint_eq(policy->control.admin.users[0], 1001);
    ck_assert_uint_eq(policy->control.admin.n_groups, 0);
    ck_assert_uint_eq(policy->limits.silent, 5);
    ck_assert_int_eq(policy->limits.late_after.us, 3000000);
    ck_assert_uint_eq(policy->limits.runtimes, 20000);
    ck_assert_int_eq(policy->on_stop, POLICY_STOP_KEEP);
    ck_assert_uint_eq(policy->n_rules, 1);
    assert_place(rule->place, 13, 5);
    ck_assert_uint_eq(rule->n_selectors, 3);
    ck_assert_uint_eq(rule->match.number, 0);
    ck_assert_uint_eq(rule->match.children[1].number, 2);
    ck_assert_int_eq(rule->match.children[1].attribute, ATTRIBUTE_GROUP);
    assert_place(rule->match.children[0].place, 14, 14);
    ck_assert_uint_eq(rule->n_variables, 3);
    ck_assert_str_eq(rule->variables[0].value, "b");
    ck_assert_ptr_null(rule->variables[1].value);
    ck_assert_str_eq(rule->variables[2].value, "e{f}");
    ck_assert(rule->variables[1].is_required && !rule->variables[2].is_required);
    ck_assert_uint_eq(rule->profilers[0].clsid.bytes[0], 1);
    ck_assert_uint_eq(rule->profilers[0].clsid.bytes[15], 0x0b);
    ck_assert(!rule->hooks[0].is_required);
    ck_assert_int_eq(rule->keys.deadline.us, 1500000);
    ck_assert(span_is_forever(rule->keys.hold_limit));
    ck_assert_int_eq(rule->keys.command_timeout.us, 1000000);
    ck_assert_str_eq(names_user(policy->names, 1001), "payments");
    ck_assert_str_eq(names_group(policy->names, 990), "diagport");
    ck_assert_ptr_null(names_user(policy->names, 1000));
    policy_unref(policy);
}
END_TEST

START_TEST(selectors_are_numbered_in_the_order_of_the_text)
{
    struct policy *policy = read_good("version: 1\n"
                                      "rules:\n"
                                      "  - name: web\n"
                                      "    match: { any: [ { exe: /a, cwd: /b }, { not: { env: { "
                                      "A: x, B: y } } } ], unit: u.service }\n"
                                      "    ignore: true\n",
                                      NULL);
    const struct selector *all = &policy->rules[0].match, *any = &all->children[0];
    const struct selector *first = &any->children[0], *not = &any->children[1].children[0];

    ck_assert_uint_eq(policy->rules[0].n_selectors, 11);
    ck_assert_uint_eq(any->number, 1);
    ck_assert_int_eq(any->kind, SELECTOR_ANY);
    ck_assert_uint_eq(first->number, 2);
    ck_assert_int_eq(first->kind, SELECTOR_ALL);
    ck_assert_uint_eq(first->children[1].number, 4);
    ck_assert_uint_eq(any->children[1].number, 5);
    ck_assert_int_eq(not ->kind, SELECTOR_NOT);
    ck_assert_uint_eq(not ->number, 6);
    ck_assert_uint_eq(not ->children[0].children[1].number, 9);
    ck_assert_str_eq(not ->children[0].children[1].name, "B");
    ck_assert_uint_eq(all->children[1].number, 10);
    policy_unref(policy);
}
END_TEST

START_TEST(facts_are_wanted_for_what_is_selected)
{
    const uint32_t where = FACTS_STATUS | FACTS_CGROUP;
    const struct {
        const char *match;
        uint32_t facts;
    } rows[] = {
        {"{ container: any }", 0},
        {"all", where},
        {"{ port: a, container: any }", 0},
        {"{ exe: /a, container: any }", FACTS_EXE},
        {"{ args: a, container: any }", FACTS_ARGUMENTS},
        {"{ assembly: a, container: any }", FACTS_EXE | FACTS_ARGUMENTS},
        {"{ cwd: /a, container: any }", FACTS_CWD},
        {"{ user: a, container: any }", where},
        {"{ group: a, container: any }", FACTS_STATUS},
        {"{ unit: a.service, container: any }", where},
        {"{ env: { A: b }, container: any }", FACTS_ENVIRON},
        {"{ parent: /a, container: any }", FACTS_PARENT},
        {"{ exe: /a }", FACTS_EXE | where},
        {"{ any: [ { exe: /a }, { not: { cwd: /b } } ], container: any }", FACTS_EXE | FACTS_CWD},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char text[256];
        struct policy *policy;

        snprintf(text, sizeof text,
                 "version: 1\nrules:\n  - { name: a, match: %s, ignore: true }\n", rows[i].match);
        policy = read_good(text, NULL);
        ck_assert_msg(policy->facts_wanted == rows[i].facts, "%s: %x", rows[i].match,
                      policy->facts_wanted);
        policy_unref(policy);
    }
}
END_TEST

START_TEST(facts_of_disabled_rules_are_not_wanted)
{
    const struct policy_source sources[] = {
        source_of("a.yaml",
                  "version: 1\nrules:\n  - { name: a, match: { exe: /a }, ignore: true }\n"),
        source_of("b.yaml", "disable: [ a ]\n"),
    };
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(sources, 2, NULL, &policy, &problems), 0);
    ck_assert_ptr_nonnull(policy);
    ck_assert_uint_eq(policy->n_rules, 0);
    ck_assert_uint_eq(policy->facts_wanted, 0);
    policy_problems_deinit(&problems);
    policy_unref(policy);
}
END_TEST

START_TEST(files_are_told_by_their_hashes)
{
    const struct policy_source sources[] = {
        source_of("a.yaml", "version: 1\n"),
        source_of("b.yaml", "rules:\n  - { name: web, match: all, ignore: true }\n"),
    };
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(sources, 2, NULL, &policy, &problems), 0);
    ck_assert_uint_eq(policy->n_files, 2);
    ck_assert_str_eq(policy->files[1].name, "b.yaml");
    ck_assert_str_eq(policy->files[0].hash,
                     "09bfcc6a14b83e2192b8673677725c84883ee9cd0c70e45c9ec09daa8f2b2847");
    ck_assert_str_eq(policy->files[1].hash,
                     "48db6749b16e528214d2538ba496f8c58a7e573c61680980370c6018c6864ab8");
    ck_assert_str_eq(policy->hash,
                     "a6c35e7e89df4a30fe3df41713ac3f37efd4f56db342b52aaefe8941154b16da");
    policy_problems_deinit(&problems);
    policy_unref(policy);
}
END_TEST

START_TEST(a_reference_keeps_a_policy)
{
    struct policy *policy = read_good("version: 1\n", NULL);

    ck_assert_ptr_eq(policy_ref(policy), policy);
    ck_assert_ptr_null(policy_unref(policy));
    ck_assert_uint_eq(policy->n_references, 1);
    policy_unref(policy);
    ck_assert_ptr_null(policy_unref(NULL));
}
END_TEST

START_TEST(rules_know_what_they_send)
{
    static const struct {
        const char *keys;
        bool has_plan, is_guarded;
    } rows[] = {
        {"ignore: true", false, false},
        {"env: { A: b }", true, false},
        {"env: { A: b }, mode: observe", false, false},
        {"children: detach", true, false},
        {"startup_hooks: [ { path: /a } ]", true, true},
        {"startup_hooks: [ { path: /a } ], mode: observe", false, true},
        {"profilers: [ { path: /a, clsid: '{00000001-0002-0003-0405-060708090a0b}' } ]", true,
         true},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char text[256];
        struct policy *policy;

        snprintf(text, sizeof text, "version: 1\nrules:\n  - { name: a, match: all, %s }\n",
                 rows[i].keys);
        policy = read_good(text, NULL);
        ck_assert_msg(policy_rule_has_plan(&policy->rules[0]) == rows[i].has_plan, "%s",
                      rows[i].keys);
        ck_assert_msg(policy_rule_is_guarded(&policy->rules[0]) == rows[i].is_guarded, "%s",
                      rows[i].keys);
        policy_unref(policy);
    }
}
END_TEST

START_TEST(ignored_processes_are_not_detached_by_default)
{
    struct policy *policy = read_good("version: 1\n"
                                      "defaults: { children: detach }\n"
                                      "rules:\n"
                                      "  - { name: a, match: { exe: /a }, ignore: true }\n"
                                      "  - { name: b, match: { exe: /b } }\n",
                                      NULL);

    ck_assert(!policy_rule_has_plan(&policy->rules[0]));
    ck_assert(policy_rule_has_plan(&policy->rules[1]));
    policy_unref(policy);
}
END_TEST

START_TEST(without_a_host_nothing_is_said_about_it)
{
    const struct policy_source source =
        source_of("a.yaml", "version: 1\n"
                            "control: { path: /run/c, read: { users: [ nobody-here, '5' ] } }\n"
                            "rules:\n"
                            "  - { name: a, match: { user: nobody-here, exe: /usr/bin/dotnet },\n"
                            "      env: { A: b }, on_failure: kill }\n");
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(&source, 1, NULL, &policy, &problems), 0);
    ck_assert_ptr_nonnull(policy);
    ck_assert_uint_eq(problems.n, 0);
    ck_assert_uint_eq(policy->control.read.n_users, 1);
    policy_problems_deinit(&problems);
    policy_unref(policy);
}
END_TEST

static char *repeat(const char *head, const char *format, size_t n)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    bytes_put_string(&out, head);
    for (size_t i = 0; i < n; i++) {
        char piece[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(piece, sizeof piece, format, i, i, i);
#pragma GCC diagnostic pop
        bytes_put_string(&out, piece);
    }
    ck_assert_int_eq(bytes_finish(&out), 0);
    return (char *)bytes_take(&out);
}

static void assert_problems(const char *text, size_t n, size_t n_errors, size_t n_dropped)
{
    const struct policy_source source = source_of("a.yaml", text);
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(&source, 1, NULL, &policy, &problems), 0);
    ck_assert_uint_eq(problems.n, n);
    ck_assert_uint_eq(problems.n_errors, n_errors);
    ck_assert_uint_eq(problems.n_dropped, n_dropped);
    ck_assert(policy == NULL || n_errors == 0);
    for (size_t i = 1; i < problems.n; i++)
        ck_assert_uint_le(problems.list[i - 1].line, problems.list[i].line);
    policy_problems_deinit(&problems);
    policy_unref(policy);
}

START_TEST(problems_beyond_the_limit_are_counted)
{
    char *text = repeat("version: 1\nrules:\n",
                        "  - { name: r%zu, match: { exe: /%zu }, ignore: maybe }\n", 200);

    assert_problems(text, 200, 200, 0);
    free(text);
    text = repeat("version: 1\nrules:\n",
                  "  - { name: r%zu, match: { exe: /%zu }, ignore: maybe }\n", 300);
    assert_problems(text, 200, 300, 100);
    free(text);
}
END_TEST

START_TEST(errors_are_kept_before_warnings)
{
    char *text = repeat("version: 1\nrules:\n",
                        "  - { name: r%zu, match: { exe: bin%zu }, ignore: true }\n", 300);
    const struct policy_source sources[] = {source_of("a.yaml", text),
                                            source_of("b.yaml", "ruels: []\n")};
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(sources, 2, NULL, &policy, &problems), 0);
    ck_assert_uint_eq(problems.n, POLICY_PROBLEMS_MAX);
    ck_assert_uint_eq(problems.n_dropped, 101);
    ck_assert_int_eq(problems.list[POLICY_PROBLEMS_MAX - 1].severity, POLICY_ERROR);
    ck_assert_str_eq(problems.list[POLICY_PROBLEMS_MAX - 1].file, "b.yaml");
    ck_assert_uint_eq(problems.list[POLICY_PROBLEMS_MAX - 2].line, 201);
    policy_problems_deinit(&problems);
    free(text);
}
END_TEST

START_TEST(problems_are_printed_on_one_line)
{
    char file[] = "a\nb.yaml", words[] = "no";
    struct policy_problem problem = {POLICY_WARNING, file, 3, 5, words};
    struct bytes out;

    bytes_init(&out, 256);
    policy_problem_print(&problem, &out);
    problem.severity = POLICY_ERROR;
    problem.line = 0;
    policy_problem_print(&problem, &out);
    ck_assert_int_eq(bytes_finish(&out), 0);
    ck_assert_str_eq((const char *)out.data, "a\\x0ab.yaml:3:5: warning: no\na\\x0ab.yaml: no\n");
    bytes_deinit(&out);
}
END_TEST

static const char sections[] = "version: 1\n"
                               "listen: [ { name: a, path: /run/a } ]\n"
                               "control: { path: /run/c }\n"
                               "limits: { silent: 5 }\n";

START_TEST(what_is_whole_is_salvaged)
{
    static const struct {
        const char *text; /* NULL: the sections above */
        const char *tail;
        bool listens, controls, limits;
    } rows[] = {
        {NULL, "", true, true, true},
        {NULL, "rules: [ { name: a } ]\n", true, true, true},
        {NULL, "rules: &\n", true, true, true},
        {NULL, "frobnicate: 1\n", true, true, true},
        {NULL, "listen: []\n", false, true, true},
        {"listen: [ { name: a } ]\ncontrol: { path: /run/c }\nlimits: { silent: 5 }\n", "", false,
         true, true},
        {"listen: [ { name: a, path: /run/a } ]\ncontrol: { path: c }\nlimits: { silent: x }\n", "",
         true, false, false},
        {"listen: [ { name: a, path: /run/a } ]\ncontrol: { path: /run/a }\n", "", true, false,
         false},
        {"listen: [ { name: a, path: /run/a }, { name: b, path: /run/a } ]\n", "", false, false,
         false},
        {"listen: [ { name: a, path: /run/a } ]\ncontrol: { path: /run/c } x\nlimits: {}\n", "",
         true, false, false},
        {"version: 1\nlisten:\n  - { name: a, path: /run/a }\n - { name: b, path: /run/b }\n", "",
         false, false, false},
        {"", "", false, false, false},
        {"- a\n", "", false, false, false},
        {"\xFF", "", false, false, false},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char text[512];
        struct policy_source source;
        struct policy *policy;

        snprintf(text, sizeof text, "%s%s", rows[i].text ? rows[i].text : sections, rows[i].tail);
        source = source_of("a.yaml", text);
        policy = policy_salvage(&source, &host);
        ck_assert_ptr_nonnull(policy);
        ck_assert_msg((policy->n_listens > 0) == rows[i].listens, "%s", text);
        ck_assert_msg((policy->control.path != NULL) == rows[i].controls, "%s", text);
        ck_assert_msg((policy->limits.silent == 5) == rows[i].limits, "%s", text);
        ck_assert_uint_eq(policy->n_rules, 0);
        policy_unref(policy);
    }
}
END_TEST

static const char everything[] =
    "version: 1\n"
    "listen:\n"
    "  - { name: runtime, path: /run/a, mode: \"0666\", owner: acme, group: diagport }\n"
    "control:\n"
    "  path: /run/c\n"
    "  read: { users: [acme, nobody-here], groups: [diagport] }\n"
    "limits: { silent: 5, history: { records: 5, age: 2h } }\n"
    "defaults: { children: detach, deadline: 5s }\n"
    "on_stop: resume\n"
    "rules:\n"
    "  - name: web\n"
    "    match:\n"
    "      unit: [ \"web*.service\", db.service ]\n"
    "      any: [ { exe: /a, env: { A: b, C: [ d ] } }, { not: { user: acme } } ]\n"
    "    env: { A: \"b{{\", C: null, D: { value: e, required: false }, LD_PRELOAD: x }\n"
    "    profilers: [ { clsid: '{00000001-0002-0003-0405-060708090a0b}', path: /p } ]\n"
    "    startup_hooks: [ { path: /h } ]\n"
    "  - { name: same, match: { unit: [ \"web*.service\", db.service ], any: [ { exe: /a, env: { "
    "A: b, C: [ d ] } }, { not: { user: acme } } ] }, env: { A: b } }\n"
    "  - { name: web, mach: all, env: { A: { file: /x } } }\n"
    "bundles: { otel: { env: { A: b }, trace: {} } }\n";

/* Reads, and looks whether the answer is one. */
static void read_anything(const char *text, size_t length)
{
    const struct policy_source source = {"a.yaml", text, length};
    struct policy_problems problems;
    struct policy *policy, *salvaged;

    ck_assert_int_eq(policy_read(&source, 1, &host, &policy, &problems), 0);
    ck_assert_int_eq(policy == NULL, problems.n_errors > 0);
    for (size_t i = 0; i < problems.n; i++)
        ck_assert_ptr_null(strpbrk(problems.list[i].text, "\n\x1b"));
    policy_problems_deinit(&problems);
    policy_unref(policy);
    salvaged = policy_salvage(&source, &host);
    ck_assert_ptr_nonnull(salvaged);
    policy_unref(salvaged);
}

START_TEST(a_file_can_be_cut_anywhere)
{
    for (size_t length = 0; length <= strlen(everything); length++)
        read_anything(everything, length);
}
END_TEST

START_TEST(a_file_can_have_anything_anywhere)
{
    static const char bytes[] = "\n :-[]{}\"'#&*!|>%@`,?\t\\~0az\xC3\x80";

    srand(2);
    for (size_t i = 0; i < 4000; i++) {
        char text[sizeof everything];

        memcpy(text, everything, sizeof text);
        for (int n = rand() % 6; n >= 0; n--)
            text[(size_t)rand() % (sizeof text - 1)] = bytes[(size_t)rand() % sizeof bytes];
        read_anything(text, sizeof text - 1);
    }
}
END_TEST

/* `n` letters between the head and the tail. */
static char *fill(const char *head, size_t n, const char *tail)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    bytes_put_string(&out, head);
    for (size_t i = 0; i < n; i++)
        bytes_put_u8(&out, 'x');
    bytes_put_string(&out, tail);
    ck_assert_int_eq(bytes_finish(&out), 0);
    return (char *)bytes_take(&out);
}

START_TEST(texts_may_be_as_long_as_what_carries_them)
{
    static const struct {
        const char *head, *tail;
        size_t n_most;
    } rows[] = {
        {"version: 1\nlisten: [ { name: a, path: /", " } ]\n", 106},
        {"version: 1\nlisten: [ { path: /a, name: ", " } ]\n", 64},
        {"version: 1\nrules:\n  - { match: all, ignore: true, name: ", " }\n", 128},
        {"version: 1\nrules:\n  - { name: a, ignore: true, match: { args: ", " } }\n", 4096},
        {"version: 1\nrules:\n  - { name: a, match: all, env: { A: ", " } }\n", 32750},
        {"version: 1\nrules:\n  - { name: a, match: all, env: { \"", "\": b } }\n", 255},
        {"version: 1\nrules:\n  - { name: a, ignore: true, match: { env: { \"", "\": b } } }\n",
         255},
        {"version: 1\nrules:\n  - { name: a, match: all, startup_hooks: [ { path: /", " } ] }\n",
         32753},
        {"version: 1\nrules:\n  - { name: a, match: all, startup_hooks: [ { path: /a }, { path: /",
         " } ] }\n", 32750},
        {"version: 1\nrules:\n  - { name: a, match: all, profilers: [ { clsid: "
         "00000001-0002-0003-0405-060708090a0b, path: /",
         " } ] }\n", 32745},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char *text = fill(rows[i].head, rows[i].n_most, rows[i].tail);

        assert_problems(text, 0, 0, 0);
        free(text);
        text = fill(rows[i].head, rows[i].n_most + 1, rows[i].tail);
        assert_problems(text, 1, 1, 0);
        free(text);
    }
}
END_TEST

/* Each would take minutes if something were compared with everything before it. */
START_TEST(files_of_a_megabyte_end)
{
    static const struct {
        const char *head, *format;
        size_t n;
    } rows[] = {
        {"version: 1\n", "key%zu: a\n", 49000},
        {"version: 1\n", "rules:\n", 49000},
        {"version: 1\nrules:\n", "- { name: a }\n", 24000},
        {"version: 1\nrules:\n", "- { name: a%zu, match: all, ignore: true }\n", 14000},
        {"version: 1\nrules:\n", "- { name: a%zu, match: { exe: /%zu }, ignore: true }\n", 10000},
        {"version: 1\nrules:\n", "- { name: a%zu, match: { exe: /a, cwd: /%zu }, ignore: true }\n",
         9000},
        {"version: 1\nrules:\n- name: a\n  match: all\n  env:\n", "    A: b\n", 49000},
        {"version: 1\nrules:\n- name: a\n  match: all\n  env:\n", "    A%zu: b\n", 49000},
        {"version: 1\nrules:\n- name: a\n  match: all\n  startup_hooks:\n", "  - { path: /a }\n",
         24000},
        {"version: 1\nrules:\n- name: a\n  ignore: true\n  match:\n    exe:\n", "    - /%zu\n",
         90000},
        {"version: 1\nrules:\n- name: a\n  ignore: true\n  match:\n    any:\n", "    - exe: a\n",
         32000},
        {"version: 1\nlisten:\n", "- { name: a, path: /a }\n", 19000},
        {"version: 1\nbundles:\n", "  b: { rules: [] }\n", 24000},
    };
    char *text = repeat(rows[_i].head, rows[_i].format, rows[_i].n);

    read_anything(text, strlen(text));
    free(text);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_test(tests, a_policy_that_names_no_socket_has_the_usual_ones);
    tcase_add_test(tests, a_usual_folder_may_be_too_long);
    tcase_add_test(tests, a_policy_has_what_is_written);
    tcase_add_test(tests, selectors_are_numbered_in_the_order_of_the_text);
    tcase_add_test(tests, facts_are_wanted_for_what_is_selected);
    tcase_add_test(tests, facts_of_disabled_rules_are_not_wanted);
    tcase_add_test(tests, files_are_told_by_their_hashes);
    tcase_add_test(tests, a_reference_keeps_a_policy);
    tcase_add_test(tests, rules_know_what_they_send);
    tcase_add_test(tests, ignored_processes_are_not_detached_by_default);
    tcase_add_test(tests, without_a_host_nothing_is_said_about_it);
    tcase_add_test(tests, problems_beyond_the_limit_are_counted);
    tcase_add_test(tests, errors_are_kept_before_warnings);
    tcase_add_test(tests, problems_are_printed_on_one_line);
    tcase_add_test(tests, what_is_whole_is_salvaged);
    tcase_add_test(tests, a_file_can_be_cut_anywhere);
    tcase_add_test(tests, a_file_can_have_anything_anywhere);
    tcase_add_test(tests, texts_may_be_as_long_as_what_carries_them);
    tcase_add_loop_test(tests, files_of_a_megabyte_end, 0, 13);
}
