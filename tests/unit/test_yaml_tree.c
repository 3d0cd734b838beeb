/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"
#include "lib/yaml_tree.h"

enum { SIZE_MAX_OF_TESTS = 1024 * 1024 };

static void put_node(struct bytes *out, const struct yaml_node *node)
{
    const char *const brackets = node->kind == YAML_NODE_LIST ? "[]" : "{}";

    bytes_put_format(out, "%u:%u", node->line, node->column);
    if (node->kind == YAML_NODE_TEXT) {
        ck_assert_uint_eq(strlen(node->text), node->length);
        bytes_put_string(out, node->is_plain ? "=" : "'");
        text_put_escaped(out, node->text, node->length);
        return;
    }
    bytes_put_format(out, "%s%c", node->is_flow ? "~" : "", brackets[0]);
    for (const struct yaml_node *at = node->first; at; at = at->next) {
        bytes_put_string(out, at == node->first ? "" : " ");
        put_node(out, at);
    }
    bytes_put_format(out, "%c%zu", brackets[1], node->n);
}

/* The whole tree and its problem, as one line. */
static char *describe(const char *document, size_t length)
{
    struct yaml_tree *tree = NULL;
    struct bytes out;

    ck_assert_int_eq(yaml_tree_read(document, length, SIZE_MAX_OF_TESTS, &tree), 0);
    bytes_init(&out, SIZE_MAX - 1);
    if (tree->root)
        put_node(&out, tree->root);
    if (tree->problem)
        bytes_put_format(&out, "! %u:%u: %s", tree->line, tree->column, tree->problem);
    yaml_tree_free(tree);
    ck_assert_int_eq(bytes_finish(&out), 0);
    return (char *)bytes_take(&out);
}

static const struct {
    const char *document;
    const char *tree;
} good[] = {
    {"", ""},
    {"# only a comment\n", ""},
    {"---\n", "2:1="},
    {"a", "1:1=a"},
    {"a: b", "1:1{1:1=a 1:4=b}1"},
    {"a: b\r\nc: d\r\n", "1:1{1:1=a 1:4=b 2:1=c 2:4=d}2"},
    {"a:\n  - b\n  - 'c'\n", "1:1{1:1=a 2:3[2:5=b 3:5'c]2}1"},
    {"{a: [b, \"c\"]}", "1:1~{1:2=a 1:5~[1:6=b 1:9'c]2}1"},
    {"a:\nb: ''\n", "1:1{1:1=a 1:3= 2:1=b 2:4'}2"},
    {"a: |\n  x\n  y\n", "1:1{1:1=a 1:4'x\\x0ay\\x0a}1"},
    {"a: x\n  y\n", "1:1{1:1=a 1:4=x y}1"},
    {"a: no\nb: 1.10\nc: 0644\nd: ~\ne: null\nf: .5\ng: 0x28\n",
     "1:1{1:1=a 1:4=no 2:1=b 2:4=1.10 3:1=c 3:4=0644 4:1=d 4:4=~ 5:1=e 5:4=null 6:1=f 6:4=.5 "
     "7:1=g 7:4=0x28}7"},
    {"[]", "1:1~[]0"},
    {"{}", "1:1~{}0"},
    {"{ a: {b} }", "1:1~{1:3=a 1:6~{1:7=b 1:8=}1}1"},
    {"a: ab #cd\n", "1:1{1:1=a 1:4=ab}1"},
    {"a: 'it''s'\n", "1:1{1:1=a 1:4'it's}1"},
    {"\"a\": \"x\\ty\\u00e9\"\n", "1:1{1:1'a 1:6'x\\x09y\xC3\xA9}1"},
    {"%YAML 1.2\n---\na: b\n...\n", "3:1{3:1=a 3:4=b}1"},
    /* Columns count characters, after a byte order mark as well. */
    {"\xEF\xBB\xBF"
     "a: b\n",
     "1:1{1:1=a 1:4=b}1"},
    {"{\xC3\xA9: \xF0\x9F\x98\x80, b: c}\n",
     "1:1~{1:2=\xC3\xA9 1:5=\xF0\x9F\x98\x80 1:8=b 1:11=c}2"},
    {"a: [\xE2\x82\xAC, '\xE2\x82\xAC', x]\n",
     "1:1{1:1=a 1:4~[1:5=\xE2\x82\xAC 1:8'\xE2\x82\xAC 1:13=x]3}1"},
};

START_TEST(documents_become_trees)
{
    char *tree = describe(good[_i].document, strlen(good[_i].document));

    ck_assert_str_eq(tree, good[_i].tree);
    free(tree);
}
END_TEST

#define TAB "a tab: indent with blanks"
#define ANCHOR                                                                              \
    "\"&\" starts an anchor, which policies do not have; quote the text if it starts with " \
    "\"&\""
#define ALIAS \
    "\"*\" starts an alias, which policies do not have; quote the text if it starts with \"*\""
#define TAG "\"!\" starts a tag, which policies do not have; quote the text if it starts with \"!\""

/* What was complete before the problem is kept. */
static const struct {
    const char *document;
    size_t length; /* 0: up to its NUL */
    const char *problem;
} bad[] = {
    {"rules: &\n  - name: x\n", 0, "! 1:9: " ANCHOR},
    {"version: 1\nrules: &\n  - name: x\n", 0, "1:1{1:1=version 1:10=1}1! 2:9: " ANCHOR},
    {"a: &x b\n", 0, "! 1:4: " ANCHOR},
    {"a: &x [b]\n", 0, "! 1:4: " ANCHOR},
    {"a: &x {b: c}\n", 0, "! 1:4: " ANCHOR},
    {"a: *x\n", 0, "! 1:4: " ALIAS},
    {"a: */dotnet\n", 0, "! 1:5: " ALIAS},
    {"a: !!int 1\n", 0, "! 1:4: " TAG},
    {"a: !x [b]\n", 0, "! 1:4: " TAG},
    {"a: !x {b: c}\n", 0, "! 1:4: " TAG},
    {"a: !x!y z\n", 0, "! 1:4: " TAG},
    {"a: !<\n", 0, "! 1:4: " TAG},
    {"%TAG ! tag:x,2000:\n---\na: b\n", 0, "! 1:1: a %TAG directive: policies do not have tags"},
    {"%FOO bar\n---\na: b\n", 0,
     "! 1:1: \"%\" at the start of a line is a YAML directive; quote the text if it starts with "
     "\"%\""},
    {"%YAML 2.0\n---\na: b\n", 0, "! 1:1: only YAML 1.1 and 1.2 can be read"},
    {"%YAML 1.1\n%YAML 1.1\n---\na: b\n", 0, "! 2:1: one \"%YAML 1.2\" is enough"},
    {"a: b\nc: d\ne: [f\n", 0,
     "1:1{1:1=a 1:4=b 2:1=c 2:4=d}2! 4:1: expected \",\" or \"]\" to go on with the list that "
     "starts at line 3, column 4"},
    {"a: b\nc: d\ne: @\n", 0,
     "1:1{1:1=a 1:4=b 2:1=c 2:4=d}2! 3:4: a text cannot start with \"@\"; quote it"},
    {"- a\n- @\n", 0, "! 2:3: a text cannot start with \"@\"; quote it"},
    {"<<: {a: b}\n", 0,
     "! 1:1: \"<<\" merges mappings, which policies do not have; write the keys out"},
    {"a: b\n---\nc: d\n", 0,
     "1:1{1:1=a 1:4=b}1! 2:1: a second document starts here; a policy file has one"},
    {"a: b\n...\nc: d\n", 0,
     "1:1{1:1=a 1:4=b}1! 3:1: nothing may follow here, the document is complete; check the "
     "indentation of this line"},
    {"[a]: b\n", 0, "! 1:1: a key has to be a text; quote it if it starts with \"[\""},
    {"{a: b}: c\n", 0, "! 1:1: a key has to be a text; quote it if it starts with \"{\""},
    {"? - a\n", 0, "! 1:3: a key has to be a text; quote it if it starts with \"[\""},
    {"a:\n\t- b\n", 0, "! 2:1: " TAB},
    {"a:\n  b: c\n\td: e\n", 0, "! 3:1: " TAB},
    {"a:\n  - b\n\t- c\n", 0, "! 3:1: " TAB},
    {"a: |\n\tb\n", 0, "! 2:1: " TAB},
    {"a: %h/x\n", 0, "! 1:4: a text cannot start with \"%\"; quote it"},
    {"a: @x\n", 0, "! 1:4: a text cannot start with \"@\"; quote it"},
    {"a: `x`\n", 0, "! 1:4: a text cannot start with \"`\"; quote it"},
    {"a: >=8.0 <11\n", 0,
     "! 1:4: \">\" or \"|\" starts a block of text; quote the value if it starts with one, as in "
     "\">=8.0\""},
    {"a: |x\n", 0,
     "! 1:4: \">\" or \"|\" starts a block of text; quote the value if it starts with one, as in "
     "\">=8.0\""},
    {"a: >0\n  x\n", 0,
     "! 1:4: \">\" or \"|\" starts a block of text; quote the value if it starts with one, as in "
     "\">=8.0\""},
    {"a: b: c\n", 0,
     "! 1:5: a second \": \" in one line; quote the value if a colon is part of it"},
    {"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9: b: c\n", 0,
     "! 1:9: a second \": \" in one line; quote the value if a colon is part of it"},
    {"a: b\n  c: d\n", 0,
     "! 2:4: a key cannot stand here: this line is indented deeper than the one that it should "
     "line up with"},
    {"a: b\nc:2s\n", 0, "! 2:1: a blank is missing after the colon: write \"c: ...\""},
    {"a: b\nc:2s\nd: e\n", 0, "! 2:1: a blank is missing after the colon: write \"c: ...\""},
    {"a: b\nsecret\n", 0,
     "! 2:1: expected \"key: value\" here; check the indentation of this line, "
     "or quote a text that is meant to go on here"},
    {"a:\n  - b\n - c\n", 0,
     "! 3:2: expected a key to go on with the mapping that starts at line 1, column 1; check the "
     "indentation, and that nothing follows a closing quote"},
    {"- a\n- b: c\n d: e\n", 0,
     "! 3:2: expected \"- \" to go on with the list that starts at line 1, column 1; check the "
     "indentation"},
    {"a:\n    b: c\n  d: e\n", 0,
     "! 3:3: expected a key to go on with the mapping that starts at line 1, column 1; check the "
     "indentation, and that nothing follows a closing quote"},
    {"a: - b\n", 0,
     "! 1:4: a list item (\"- \") cannot stand here: write it on a line of its own, below its key"},
    {"a: ? b\n", 0, "! 1:4: \"? \" cannot stand here; quote the text if it starts with \"?\""},
    {"a: [b\nc: d\n", 0,
     "! 2:2: expected \",\" or \"]\" to go on with the list that starts at line 1, column 4"},
    {"a: {b: c\nd: e\n", 0,
     "! 2:2: expected \",\" or \"}\" to go on with the mapping that starts at line 1, column 4"},
    {"a: [b", 0,
     "! 2:1: expected \",\" or \"]\" to go on with the list that starts at line 1, column 4"},
    {"a: [b,,c]\n", 0, "! 1:7: a value is missing here"},
    {"a: \"b\n", 0, "! 1:4: the quoted text that starts here is never closed"},
    {"a: 'b\n---\n", 0,
     "! 1:4: the quoted text that starts here is not closed before a line of \"---\" or \"...\""},
    {"a: \"b\\d\"\n", 0,
     "! 1:6: in double quotes \"\\\" starts an escape, and this is none that YAML knows; write "
     "\"\\\\\", or use single quotes"},
    {"a: \"\\xZZ\"\n", 0,
     "! 1:7: \\x takes 2 hexadecimal digits, \\u 4 and \\U 8; or use single quotes"},
    {"a: \"\\uD800\"\n", 0, "! 1:7: this escape names no character that Unicode has"},
    {"a: \"x\\0y\"\n", 0, "! 1:4: a text cannot contain a NUL (\"\\0\")"},
    {"a: b\xFF\n", 0, "! 1:5: this is not UTF-8; save the file as UTF-8"},
    {"a: \xED\xA0\x80\n", 0, "! 1:4: this is not UTF-8; save the file as UTF-8"},
    {"\xFF\xFE"
     "a",
     0, "! 1:1: this is not UTF-8; save the file as UTF-8"},
    {"a: b\0c\n", 7, "! 1:5: a NUL byte; remove it"},
    {"a: \x1B[1m\n", 0,
     "! 1:4: a control character; remove it, or write it as an escape in double quotes"},
    {"\xC3\xA9: \xC2\x9B\n", 0,
     "! 1:4: a control character; remove it, or write it as an escape in double quotes"},
    {"a: b\n\xEF\xBB\xBF"
     "c: d\n",
     0, "! 2:1: a byte order mark inside the file; remove it"},
    {"a: b\rc: d\n", 0,
     "! 1:5: a carriage return without a line feed; save the file with Unix line ends"},
    {"a: b\xE2\x80\xA8"
     "c: d\n",
     0,
     "! 1:5: an invisible line break that is no line feed; remove it, or write it as an escape in "
     "double quotes"},
};

START_TEST(problems_are_told_with_their_place)
{
    const size_t length = bad[_i].length > 0 ? bad[_i].length : strlen(bad[_i].document);
    char *tree = describe(bad[_i].document, length);

    ck_assert_str_eq(tree, bad[_i].problem);
    free(tree);
}
END_TEST

START_TEST(every_document_can_be_cut_anywhere)
{
    const char *document = good[_i].document;

    for (size_t length = 0; length <= strlen(document); length++)
        free(describe(document, length));
}
END_TEST

/* `n` times the piece. */
static char *repeat(const char *piece, size_t n, size_t *ret_length)
{
    const size_t length = strlen(piece);
    char *text = malloc(n * length + 1);

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * length, piece, length);
    text[n * length] = '\0';
    *ret_length = n * length;
    return text;
}

static const struct {
    const char *piece;
    const char *problem; /* how its message ends; NULL: none */
} large[] = {
    {"[", "more than 16 lists and mappings in one another"},
    {"{", "quote it if it starts with \"{\""},
    {"{a: ", "more than 16 lists and mappings in one another"},
    {"- ", "more than 16 lists and mappings in one another"},
    {"? ", "quote it if it starts with \"{\""},
    {"a: &", "quote the value if a colon is part of it"},
    {"a: ", "quote the value if a colon is part of it"},
    {"a: b\n", "more than 100000 keys and values; split the file into several"},
    {"- a\n", "more than 100000 keys and values; split the file into several"},
    {"a\n", NULL},
    {"x", NULL},
    {"#", NULL},
    {"\n", NULL},
    {" ", NULL},
    {"\"", NULL},
    {",", "a value is missing here"},
    {"]", "a value is missing here"},
    {"!", TAG},
    {"---\n", "a second document starts here; a policy file has one"},
    {"\xC3\xA9", NULL},
};

START_TEST(a_megabyte_of_anything_ends)
{
    size_t length;
    char *document = repeat(large[_i].piece, SIZE_MAX_OF_TESTS / strlen(large[_i].piece), &length);
    struct yaml_tree *tree = NULL;

    ck_assert_int_eq(yaml_tree_read(document, length, SIZE_MAX_OF_TESTS, &tree), 0);
    if (large[_i].problem) {
        size_t n = strlen(large[_i].problem);

        ck_assert_ptr_nonnull(tree->problem);
        ck_assert_uint_ge(strlen(tree->problem), n);
        ck_assert_str_eq(tree->problem + strlen(tree->problem) - n, large[_i].problem);
    } else if (large[_i].piece[0] != '"') {
        ck_assert_ptr_null(tree->problem);
    }
    yaml_tree_free(tree);
    free(document);
}
END_TEST

START_TEST(flow_lists_of_a_megabyte_end)
{
    size_t length;
    char *document = repeat("[a,", SIZE_MAX_OF_TESTS / 3, &length);
    char *flat = repeat("a,", SIZE_MAX_OF_TESTS / 2, &length);

    free(describe(document, length));
    flat[0] = '[';
    free(describe(flat, length));
    free(document);
    free(flat);
}
END_TEST

START_TEST(a_file_that_is_too_long_is_not_read)
{
    struct yaml_tree *tree = NULL;

    ck_assert_int_eq(yaml_tree_read("a: bcd", 6, 5, &tree), 0);
    ck_assert_str_eq(tree->problem, "the file has more than 5 bytes; split it into several");
    ck_assert_uint_eq(tree->line, 0);
    yaml_tree_free(tree);
    ck_assert_int_eq(yaml_tree_read("a: bcd", 6, 6, &tree), 0);
    ck_assert_ptr_null(tree->problem);
    yaml_tree_free(tree);
    ck_assert_ptr_null(yaml_tree_free(NULL));
}
END_TEST

START_TEST(depth_ends_at_sixteen)
{
    char *tree = describe("[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", 32);

    ck_assert_ptr_null(strchr(tree, '!'));
    free(tree);
    tree = describe("[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", 34);
    ck_assert_str_eq(tree, "! 1:17: more than 16 lists and mappings in one another");
    free(tree);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, documents_become_trees, 0, ARRAY_LENGTH(good));
    tcase_add_loop_test(tests, problems_are_told_with_their_place, 0, ARRAY_LENGTH(bad));
    tcase_add_loop_test(tests, every_document_can_be_cut_anywhere, 0, ARRAY_LENGTH(good));
    tcase_add_loop_test(tests, a_megabyte_of_anything_ends, 0, ARRAY_LENGTH(large));
    tcase_add_test(tests, flow_lists_of_a_megabyte_end);
    tcase_add_test(tests, a_file_that_is_too_long_is_not_read);
    tcase_add_test(tests, depth_ends_at_sixteen);
}
