/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/policy_parts.h"
#include "lib/policy_read.h"

static struct policy *read_text(const char *text)
{
    const struct policy_source source = {"a.yaml", text, strlen(text)};
    struct policy_problems problems;
    struct policy *policy;

    ck_assert_int_eq(policy_read(&source, 1, NULL, &policy, &problems), 0);
    ck_assert_msg(policy != NULL, "%s", problems.n > 0 ? problems.list[0].text : "");
    policy_problems_deinit(&problems);
    return policy;
}

/* One glob in its canonical form. */
static char *print_glob(char *glob)
{
    struct selector selector = {.kind = SELECTOR_TEXT,
                                .attribute = ATTRIBUTE_EXE,
                                .globs = &glob,
                                .n_globs = 1};
    struct bytes out;

    bytes_init(&out, 4096);
    policy_print_selector(&selector, 0, &out);
    ck_assert_int_eq(bytes_finish(&out), 0);
    return (char *)bytes_take(&out);
}

START_TEST(texts_are_quoted_so_that_they_come_back)
{
    static const struct {
        const char *text;
        const char *form;
    } rows[] = {
        {"a", "exe: \"a\"\n"},
        {"a\"b\\c", "exe: \"a\\\"b\\\\c\"\n"},
        {"\n\t\x01\x7F", "exe: \"\\n\\t\\x01\\x7F\"\n"},
        {"{x}: [y] # z", "exe: \"{x}: [y] # z\"\n"},
        {"\xC3\xA9\xF0\x9F\x98\x80", "exe: \"\xC3\xA9\xF0\x9F\x98\x80\"\n"},
        {"\xC2\x85\xC2\xAD", "exe: \"\\x85\\xAD\"\n"},
        {"\xE2\x80\xAE\xEF\xBF\xBE", "exe: \"\\u202E\\uFFFE\"\n"},
        {"\xF3\xA0\x80\x81", "exe: \"\\U000E0001\"\n"},
        {"\xFF", "exe: \"\\xFF\"\n"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        char *text = strdup(rows[i].text), *form = print_glob(text);

        ck_assert_str_eq(form, rows[i].form);
        free(form);
        free(text);
    }
}
END_TEST

START_TEST(every_character_comes_back)
{
    for (uint32_t code_point = 1; code_point < 0x3000; code_point++) {
        char text[128];
        struct policy *policy;
        struct bytes form;

        snprintf(text, sizeof text,
                 "version: 1\nrules:\n  - { name: a, match: all, env: { A: \"x\\u%04X\" } }\n",
                 code_point == '{' ? 'a' : code_point);
        policy = read_text(text);
        bytes_init(&form, SIZE_MAX - 1);
        policy_print(policy, &form);
        ck_assert_int_eq(bytes_finish(&form), 0);
        {
            struct policy *again = read_text((const char *)form.data);

            ck_assert_str_eq(again->rules[0].variables[0].value,
                             policy->rules[0].variables[0].value);
            policy_unref(again);
        }
        bytes_deinit(&form);
        policy_unref(policy);
    }
}
END_TEST

START_TEST(a_buffer_that_is_too_small_says_so)
{
    struct policy *policy =
        read_text("version: 1\n"
                  "rules:\n"
                  "  - { name: a, match: { any: [ { exe: /a } ] }, env: { A: b } }\n");
    struct bytes form;
    size_t length;

    bytes_init(&form, SIZE_MAX - 1);
    policy_print(policy, &form);
    length = form.length;
    bytes_deinit(&form);
    for (size_t limit = 0; limit < length; limit++) {
        bytes_init(&form, limit);
        policy_print(policy, &form);
        ck_assert_int_eq(bytes_finish(&form), -EMSGSIZE);
        bytes_deinit(&form);
    }
    policy_unref(policy);
}
END_TEST

UNIT_TESTS(texts_are_quoted_so_that_they_come_back, every_character_comes_back,
           a_buffer_that_is_too_small_says_so);
