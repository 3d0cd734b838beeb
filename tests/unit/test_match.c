/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The decisions themselves are tables in tests/golden/match; here the matcher
 * is compared with one that is as plain as can be, on random rules and
 * processes.
 */

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/glob.h"
#include "lib/match.h"
#include "lib/policy_read.h"

enum { RULES_MAX = 6, NODES_MAX = 400 };

/* What the plain one works on, beside the text that the policy is read from. */
enum kind { ALL, ANY, NOT, TEXT, VARIABLE };

struct node {
    enum kind kind;
    enum attribute_id attribute;
    char glob[2][4];
    unsigned n_globs;
    char name;
    struct node *children[4];
    unsigned n_children;
};

struct rule {
    struct node *match;
    bool any_container, ignore, next, guarded;
};

static struct node nodes[NODES_MAX];
static size_t n_nodes;

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static const enum attribute_id attributes_used[] = {ATTRIBUTE_EXE, ATTRIBUTE_ARGUMENTS,
                                                    ATTRIBUTE_UNIT, ATTRIBUTE_USER};
static const char *const keys_used[] = {"exe", "args", "unit", "user"};

static struct node *new_node(enum kind kind)
{
    struct node *node = &nodes[n_nodes++];

    ck_assert_uint_le(n_nodes, NODES_MAX);
    *node = (struct node){.kind = kind};
    return node;
}

static void put_globs(struct node *node, struct bytes *out)
{
    node->n_globs = 1 + pick(2);
    bytes_put_string(out, "[ ");
    for (unsigned i = 0; i < node->n_globs; i++) {
        static const char *const globs[] = {"a", "b", "a*", "?", "*b", "*"};

        strcpy(node->glob[i], globs[pick(6)]);
        bytes_put_format(out, "%s\"%s\"", i > 0 ? ", " : "", node->glob[i]);
    }
    bytes_put_string(out, " ]");
}

static struct node *make_mapping(unsigned depth, struct bytes *out);

static struct node *make_list(enum kind kind, unsigned depth, struct bytes *out)
{
    struct node *node = new_node(kind);

    node->n_children = 1 + pick(3);
    bytes_put_string(out, kind == ANY ? "any: [ " : "all: [ ");
    for (unsigned i = 0; i < node->n_children; i++) {
        bytes_put_string(out, i > 0 ? ", " : "");
        node->children[i] = make_mapping(depth - 1, out);
    }
    bytes_put_string(out, " ]");
    return node;
}

static struct node *make_selector(unsigned key, unsigned depth, struct bytes *out)
{
    struct node *node;

    if (depth > 0 && key == 0)
        return make_list(pick(2) ? ANY : ALL, depth, out);
    if (depth > 0 && key == 1) {
        node = new_node(NOT);
        bytes_put_string(out, "not: ");
        node->children[0] = make_mapping(depth - 1, out);
        return node;
    }
    node = new_node(key == 2 ? VARIABLE : TEXT);
    if (key == 2) {
        node->name = (char)('A' + pick(2));
        bytes_put_format(out, "env: { %c: ", node->name);
        put_globs(node, out);
        bytes_put_string(out, " }");
    } else {
        node->attribute = attributes_used[key % 4];
        bytes_put_format(out, "%s: ", keys_used[key % 4]);
        put_globs(node, out);
    }
    return node;
}

/* Keys of their own: 0 a list, 1 not, 2 a variable, 4 to 7 attributes. */
static struct node *make_mapping(unsigned depth, struct bytes *out)
{
    struct node *node = new_node(ALL);
    unsigned first = pick(8);

    node->n_children = 1 + pick(3);
    bytes_put_string(out, "{ ");
    for (unsigned i = 0; i < node->n_children; i++) {
        unsigned key = (first + i * 3) % 8;

        if (key == 3 || (depth == 0 && key < 2))
            key = 4 + (key + i) % 4;
        for (unsigned j = 0; j < i; j++) {
            if (key >= 4 && node->children[j]->kind == TEXT &&
                node->children[j]->attribute == attributes_used[key % 4])
                key = 99;
        }
        if (key == 99) {
            node->n_children = i;
            break;
        }
        bytes_put_string(out, i > 0 ? ", " : "");
        node->children[i] = make_selector(key, depth, out);
    }
    bytes_put_string(out, " }");
    return node;
}

static void make_rule(struct rule *rule, unsigned number, struct bytes *out)
{
    *rule = (struct rule){.any_container = pick(2), .ignore = pick(4) == 0, .next = pick(3) == 0};
    rule->guarded = !rule->ignore && pick(2);
    bytes_put_format(out, "  - name: r%u\n    match: ", number);
    if (rule->any_container) {
        struct bytes inner;

        bytes_init(&inner, SIZE_MAX - 1);
        rule->match = make_mapping(3, &inner);
        ck_assert_int_eq(bytes_finish(&inner), 0);
        bytes_put_format(out, "{ container: any, %s", (const char *)inner.data + 2);
        bytes_deinit(&inner);
    } else if (pick(6) == 0) {
        rule->match = new_node(ALL);
        bytes_put_string(out, "all");
    } else {
        rule->match = make_mapping(3, out);
    }
    bytes_put_format(out, "\n    match_unknown: %s\n", rule->next ? "next" : "stop");
    if (rule->ignore)
        bytes_put_string(out, "    ignore: true\n");
    else if (rule->guarded)
        bytes_put_string(out, "    startup_hooks: [ { path: /h } ]\n");
    else
        bytes_put_string(out, "    env: { X: y }\n");
}

static void make_attribute(struct attribute *attribute, const char **texts, bool is_environ)
{
    static const char *const values[] = {"a", "b", "ab", "c", ""};
    static const char *const variables[] = {"A=a", "B=b", "A=ab", "C=a", "B="};

    *attribute =
        (struct attribute){.state = (enum attribute_state)pick(3), .why = "", .texts = texts};
    if (attribute->state != ATTRIBUTE_PRESENT)
        return;
    attribute->is_cut = pick(4) == 0;
    attribute->n_texts = pick(4);
    for (size_t i = 0; i < attribute->n_texts; i++)
        texts[i] = is_environ ? variables[pick(5)] : values[pick(5)];
}

/* -1 no, 0 unknown, 1 yes */

static int plain_fit(const struct node *node, const char *text)
{
    for (unsigned i = 0; i < node->n_globs; i++) {
        if (glob_match(node->glob[i], text))
            return 1;
    }
    return -1;
}

static int plain_text(const struct node *node, const struct attributes *attributes)
{
    const struct attribute *attribute = &attributes->list[node->attribute];

    if (attribute->state != ATTRIBUTE_PRESENT)
        return attribute->state == ATTRIBUTE_UNKNOWN ? 0 : -1;
    for (size_t i = node->attribute == ATTRIBUTE_ARGUMENTS; i < attribute->n_texts; i++) {
        if (plain_fit(node, attribute->texts[i]) > 0)
            return 1;
    }
    return attribute->is_cut ? 0 : -1;
}

static int plain_variable(const struct node *node, const struct attributes *attributes)
{
    const struct attribute *environ = &attributes->list[ATTRIBUTE_ENVIRON];

    if (environ->state != ATTRIBUTE_PRESENT)
        return environ->state == ATTRIBUTE_UNKNOWN ? 0 : -1;
    for (size_t i = 0; i < environ->n_texts; i++) {
        /* The same constant may be there twice. */
        bool is_last = environ->texts[i] == environ->texts[environ->n_texts - 1];

        if (environ->texts[i][0] == node->name)
            return plain_fit(node, environ->texts[i] + 2) > 0 ? 1
                   : environ->is_cut && is_last               ? 0
                                                              : -1;
    }
    return environ->is_cut ? 0 : -1;
}

static int plain_node(const struct node *node, const struct attributes *attributes)
{
    int result = node->kind == ANY ? -1 : 1;

    if (node->kind == TEXT)
        return plain_text(node, attributes);
    if (node->kind == VARIABLE)
        return plain_variable(node, attributes);
    if (node->kind == NOT)
        return -plain_node(node->children[0], attributes);
    for (unsigned i = 0; i < node->n_children; i++) {
        int child = plain_node(node->children[i], attributes);

        /* The least of all, the greatest of any. */
        if (node->kind == ANY ? child > result : child < result)
            result = child;
    }
    return result;
}

static int plain_rule(const struct rule *rule, const struct attributes *attributes)
{
    const enum attribute_state container = attributes->list[ATTRIBUTE_CONTAINER].state;
    int host = rule->any_container              ? 1
               : container == ATTRIBUTE_ABSENT  ? 1
               : container == ATTRIBUTE_UNKNOWN ? 0
                                                : -1;
    int match = plain_node(rule->match, attributes);

    return host < match ? host : match;
}

/* The number of the rule that decides; -1: none. */
static int plain_decide(const struct rule *rules, unsigned n, const struct attributes *attributes,
                        bool *ret_by_unknown)
{
    bool barred = false;

    *ret_by_unknown = false;
    for (unsigned i = 0; i < n; i++) {
        int match = plain_rule(&rules[i], attributes);

        if (match > 0 && !(barred && rules[i].guarded))
            return (int)i;
        if (match == 0 && !rules[i].next && rules[i].ignore) {
            *ret_by_unknown = true;
            return (int)i;
        }
        if (match == 0 && !rules[i].next)
            barred = true;
    }
    return -1;
}

static void compare(const struct policy *policy, const struct rule *rules,
                    const struct attributes *attributes, const char *text)
{
    struct match_decision decision;
    bool by_unknown;
    int expected = plain_decide(rules, (unsigned)policy->n_rules, attributes, &by_unknown);

    ck_assert_int_eq(match_decide(policy, attributes, &decision), 0);
    ck_assert_msg((decision.rule ? (int)(decision.rule - policy->rules) : -1) == expected, "%s",
                  text);
    ck_assert_int_eq(decision.by_unknown, by_unknown);
    ck_assert_uint_eq(decision.n_reasons, policy->n_rules);
    for (size_t i = 0; i < policy->n_rules; i++) {
        uint16_t selector;
        enum match_verdict verdict = match_rule(&policy->rules[i], attributes, &selector);
        int plain = plain_rule(&rules[i], attributes);

        ck_assert_int_eq(verdict, plain > 0 ? MATCH_YES : plain == 0 ? MATCH_UNKNOWN : MATCH_NO);
        if (selector < MATCH_SELECTOR_CONTAINER)
            ck_assert_ptr_nonnull(match_selector(&policy->rules[i], selector));
        if (expected >= 0 && i > (size_t)expected)
            ck_assert_int_eq(decision.reasons[i].verdict, MATCH_NOT_ASKED);
    }
    match_decision_deinit(&decision);
}

START_TEST(random_rules_decide_as_a_plain_matcher_does)
{
    unsigned n_matched = 0;

    srand((unsigned)_i);
    for (unsigned round = 0; round < 300; round++) {
        struct rule rules[RULES_MAX];
        unsigned n_rules = 1 + pick(RULES_MAX);
        struct policy_problems problems;
        struct policy_source source;
        struct policy *policy;
        struct bytes text;

        n_nodes = 0;
        bytes_init(&text, SIZE_MAX - 1);
        bytes_put_string(&text, "version: 1\nrules:\n");
        for (unsigned i = 0; i < n_rules; i++)
            make_rule(&rules[i], i, &text);
        ck_assert_int_eq(bytes_finish(&text), 0);
        source = (struct policy_source){"a.yaml", (const char *)text.data, text.length};
        ck_assert_int_eq(policy_read(&source, 1, NULL, &policy, &problems), 0);
        ck_assert_msg(policy != NULL, "%s", (const char *)text.data);
        policy_problems_deinit(&problems);
        for (unsigned i = 0; i < 40; i++) {
            const char *texts[ATTRIBUTE_COUNT][4];
            struct attributes attributes = {.pid = 1};

            for (size_t j = 0; j < ATTRIBUTE_COUNT; j++)
                make_attribute(&attributes.list[j], texts[j], j == ATTRIBUTE_ENVIRON);
            compare(policy, rules, &attributes, (const char *)text.data);
            n_matched += plain_rule(&rules[0], &attributes) > 0;
        }
        policy_unref(policy);
        bytes_deinit(&text);
    }
    ck_assert_uint_gt(n_matched, 100);
}
END_TEST

START_TEST(a_policy_without_rules_decides_nothing)
{
    struct attributes attributes = {.pid = 1};
    struct match_decision decision;
    struct policy *policy = policy_new();

    ck_assert_int_eq(match_decide(policy, &attributes, &decision), 0);
    ck_assert_ptr_null(decision.rule);
    ck_assert_uint_eq(decision.n_reasons, 0);
    match_decision_deinit(&decision);
    ck_assert_ptr_null(decision.reasons);
    policy_unref(policy);
}
END_TEST

START_TEST(special_numbers_are_no_selectors)
{
    const struct policy_rule rule = {.match = {.kind = SELECTOR_ALL}};

    ck_assert_ptr_eq(match_selector(&rule, 0), &rule.match);
    ck_assert_ptr_null(match_selector(&rule, MATCH_SELECTOR_NONE));
    ck_assert_ptr_null(match_selector(&rule, MATCH_SELECTOR_CONTAINER));
}
END_TEST

/* A process may have a megabyte of arguments and a pattern many stars. */
START_TEST(hostile_texts_end)
{
    const size_t length = 1024 * 1024;
    const char *texts[2] = {"a", NULL};
    struct attributes attributes = {.pid = 1};
    char *text = malloc(length + 1), glob[] = "*a*a*a*a*a*[ab]*b*c";
    char *globs[] = {glob};
    struct selector selector = {.kind = SELECTOR_TEXT,
                                .attribute = ATTRIBUTE_ARGUMENTS,
                                .globs = globs,
                                .n_globs = 1,
                                .number = 1};
    const struct policy_rule rule = {.match = {.kind = SELECTOR_ALL,
                                               .children = &selector,
                                               .n_children = 1},
                                     .any_container = true};
    uint16_t number;

    ck_assert_ptr_nonnull(text);
    memset(text, 'a', length);
    text[length] = '\0';
    texts[1] = text;
    attributes.list[ATTRIBUTE_ARGUMENTS] =
        (struct attribute){.state = ATTRIBUTE_PRESENT, .texts = texts, .n_texts = 2};
    ck_assert_int_eq(match_rule(&rule, &attributes, &number), MATCH_NO);
    ck_assert_uint_eq(number, 1);
    text[length - 1] = 'c';
    text[length - 2] = 'b';
    ck_assert_int_eq(match_rule(&rule, &attributes, &number), MATCH_YES);
    ck_assert_uint_eq(number, MATCH_SELECTOR_NONE);
    free(text);
}
END_TEST

/* However many rules there are and however much a process has of what they compare: at some point
 * that ends, and what was not compared is unknown. What there is one of is compared all the same.
 */
START_TEST(hostile_texts_are_not_compared_for_ever)
{
    enum { N = 500, LENGTH = 64 * 1024 };
    struct policy_rule rules[N] = {0};
    struct selector selectors[N] = {0};
    struct policy policy = {.rules = rules, .n_rules = N};
    struct match_decision decision;
    const char *texts[2] = {"a", NULL}, *exe[1] = {"/app"};
    struct attributes attributes = {.pid = 1};
    char *text = malloc(LENGTH + 1), slow[] = "*a*a*a*a*a*[ab]*b*c", fits[] = "/app";
    char *globs[] = {slow}, *exe_globs[] = {fits};
    struct bytes why;

    ck_assert_ptr_nonnull(text);
    memset(text, 'a', LENGTH);
    text[LENGTH] = '\0';
    texts[1] = text;
    attributes.list[ATTRIBUTE_ARGUMENTS] =
        (struct attribute){.state = ATTRIBUTE_PRESENT, .texts = texts, .n_texts = 2};
    attributes.list[ATTRIBUTE_EXE] =
        (struct attribute){.state = ATTRIBUTE_PRESENT, .texts = exe, .n_texts = 1};
    for (size_t i = 0; i < N; i++) {
        selectors[i] = (struct selector){.kind = SELECTOR_TEXT,
                                         .attribute = ATTRIBUTE_ARGUMENTS,
                                         .globs = globs,
                                         .n_globs = 1,
                                         .number = 1};
        rules[i] = (struct policy_rule){.match = {.kind = SELECTOR_ALL,
                                                  .children = &selectors[i],
                                                  .n_children = 1},
                                        .match_unknown = POLICY_UNKNOWN_NEXT,
                                        .any_container = true};
    }
    selectors[N - 1].attribute = ATTRIBUTE_EXE;
    selectors[N - 1].globs = exe_globs;
    ck_assert_int_eq(match_decide(&policy, &attributes, &decision), 0);
    ck_assert_uint_eq(decision.reasons[0].verdict, MATCH_NO);
    ck_assert_uint_eq(decision.reasons[N - 2].verdict, MATCH_UNKNOWN);
    ck_assert_ptr_eq(decision.rule, &rules[N - 1]);
    bytes_init(&why, SIZE_MAX - 1);
    match_explain(&rules[N - 2], &decision.reasons[N - 2], &attributes, &why);
    ck_assert_int_eq(bytes_finish(&why), 0);
    ck_assert_ptr_nonnull(strstr((const char *)why.data, "took too long"));
    bytes_deinit(&why);
    match_decision_deinit(&decision);
    free(text);
}
END_TEST

static struct policy_rule rule_of(struct selector *selector)
{
    return (struct policy_rule){
        .match = {.kind = SELECTOR_ALL, .children = selector, .n_children = 1},
        .any_container = true,
    };
}

static char *explain(const struct policy_rule *rule, enum match_verdict verdict, uint16_t selector,
                     const struct attributes *attributes)
{
    const struct match_reason reason = {(uint8_t)verdict, selector};
    struct bytes why;

    bytes_init(&why, SIZE_MAX - 1);
    match_explain(rule, &reason, attributes, &why);
    ck_assert_int_eq(bytes_finish(&why), 0);
    return (char *)bytes_take(&why);
}

/* Only a value that is the end of what is there may be longer. */
START_TEST(an_environment_may_be_cut_in_a_name)
{
    char name[] = "A", *globs[] = {(char[]){"2"}};
    struct selector selector = {.kind = SELECTOR_VARIABLE,
                                .name = name,
                                .globs = globs,
                                .n_globs = 1,
                                .number = 1};
    struct policy_rule rule = rule_of(&selector);
    const char *texts[] = {"A=1", "B"};
    struct attributes attributes = {.pid = 1};
    uint16_t number;

    attributes.list[ATTRIBUTE_ENVIRON] = (struct attribute){.state = ATTRIBUTE_PRESENT,
                                                            .is_cut = true,
                                                            .texts = texts,
                                                            .n_texts = 2};
    ck_assert_int_eq(match_rule(&rule, &attributes, &number), MATCH_NO);
    attributes.list[ATTRIBUTE_ENVIRON].n_texts = 1;
    ck_assert_int_eq(match_rule(&rule, &attributes, &number), MATCH_UNKNOWN);
    texts[0] = "B";
    ck_assert_int_eq(match_rule(&rule, &attributes, &number), MATCH_UNKNOWN);
}
END_TEST

START_TEST(a_hostile_environment_is_not_searched_for_ever)
{
    enum { N = 50, N_TEXTS = 65536 };
    char name[] = "A", *globs[] = {(char[]){"2"}};
    struct selector selectors[N];
    struct policy_rule rules[N];
    struct policy policy = {.rules = rules, .n_rules = N};
    const char **texts = calloc(N_TEXTS, sizeof *texts);
    struct attributes attributes = {.pid = 1};
    struct match_decision decision;
    char *why;

    ck_assert_ptr_nonnull(texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        texts[i] = "B=1";
    attributes.list[ATTRIBUTE_ENVIRON] =
        (struct attribute){.state = ATTRIBUTE_PRESENT, .texts = texts, .n_texts = N_TEXTS};
    for (size_t i = 0; i < N; i++) {
        selectors[i] = (struct selector){.kind = SELECTOR_VARIABLE,
                                         .name = name,
                                         .globs = globs,
                                         .n_globs = 1,
                                         .number = 1};
        rules[i] = rule_of(&selectors[i]);
        rules[i].match_unknown = POLICY_UNKNOWN_NEXT;
    }
    ck_assert_int_eq(match_decide(&policy, &attributes, &decision), 0);
    ck_assert_uint_eq(decision.reasons[0].verdict, MATCH_NO);
    ck_assert_uint_eq(decision.reasons[N - 1].verdict, MATCH_UNKNOWN);
    why = explain(&rules[N - 1], MATCH_UNKNOWN, decision.reasons[N - 1].selector, &attributes);
    ck_assert_str_eq(why, "comparing the variable \"A\" would have taken too long");
    free(why);
    match_decision_deinit(&decision);
    free(texts);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, random_rules_decide_as_a_plain_matcher_does, 0, 8);
    tcase_add_test(tests, a_policy_without_rules_decides_nothing);
    tcase_add_test(tests, special_numbers_are_no_selectors);
    tcase_add_test(tests, hostile_texts_end);
    tcase_add_test(tests, hostile_texts_are_not_compared_for_ever);
    tcase_add_test(tests, an_environment_may_be_cut_in_a_name);
    tcase_add_test(tests, a_hostile_environment_is_not_searched_for_ever);
}
