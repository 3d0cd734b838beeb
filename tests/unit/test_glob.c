/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/glob.h"

static const struct {
    const char *glob;
    const char *text;
    bool fits;
} rows[] = {
    {"", "", true},
    {"", "a", false},
    {"*", "", true},
    {"*", "a/b", true},
    {"***", "", true},
    {"?", "", false},
    {"?", "/", true},
    {"?", "\xC3\xA9", false},
    {"??", "\xC3\xA9", true},
    {"?", "\xFF", true},
    {"web", "web", true},
    {"web", "Web", false},
    {"web", "web ", false},
    {"web*", "web", true},
    {"*.service", "a.service", true},
    {"*.service", "a.service.d", false},
    {"/opt/pay/*", "/opt/pay/app", true},
    {"/opt/pay/*", "/opt/pay/plugins/x/app", true},
    {"/opt/pay/*", "/opt/pay/", true},
    {"/opt/pay/*", "/opt/pay", false},
    {"--file=/var/log/*", "--file=/var/log/../../etc/x", true},
    {"pay[ment]*.service", "payments.service", true},
    {"pay[ment]*.service", "payroll.service", false},
    {"Pay*", "payments", false},
    {"*a*b*c", "xxaxxbxxbxxc", true},
    {"*a*b*c", "xxaxxbxxbxxcx", false},
    {"*ab*ab*", "abab", true},
    {"*ab*ab*", "aba", false},
    {".*", ".hidden", true},
    {"*", ".hidden", true},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"\\a", "a", true},
    {"a\\\\b", "a\\b", true},
    {"[abc]", "b", true},
    {"[abc]", "d", false},
    {"[!abc]", "d", true},
    {"[^abc]", "b", false},
    {"[!a]", "", false},
    {"[]]", "]", true},
    {"[!]]", "]", false},
    {"[]-a]", "^", true},
    {"[a-c]x", "bx", true},
    {"[a-c]x", "dx", false},
    {"[a-]", "-", true},
    {"[-a]", "-", true},
    {"[a-c-e]", "-", true},
    {"[a-c-e]", "d", false},
    {"[\\]]", "]", true},
    {"[a\\-z]", "m", false},
    {"[a\\-z]", "-", true},
    {"[[]", "[", true},
    {"[[:digit:]]", "7", true},
    {"[[:digit:]]", "x", false},
    {"[![:digit:]x]", "x", false},
    {"[[:alpha:][:digit:]]", "7", true},
    {"[[.-.]]", "-", true},
    {"[[=a=]b]", "a", true},
    {"[[.a.]-c]", "b", true},
    {"[\xC0-\xFF]", "\xC3", true},
    {"[/]", "/", true},
};

START_TEST(texts_fit_as_the_table_says)
{
    ck_assert_msg(glob_match(rows[_i].glob, rows[_i].text) == rows[_i].fits, "%s against %s",
                  rows[_i].glob, rows[_i].text);
    if (glob_check(rows[_i].glob) == GLOB_FINE)
        ck_assert_int_eq(fnmatch(rows[_i].glob, rows[_i].text, 0), rows[_i].fits ? 0 : FNM_NOMATCH);
}
END_TEST

/* Everything that the small alphabet can spell, so that stars, brackets and backslashes meet. */
static void fill(char *text, size_t size, const char *alphabet)
{
    size_t length = (size_t)rand() % size;

    for (size_t i = 0; i < length; i++)
        text[i] = alphabet[(size_t)rand() % strlen(alphabet)];
    text[length] = '\0';
}

START_TEST(random_patterns_fit_what_fnmatch_says)
{
    size_t n_compared = 0, n_fits = 0;

    srand(1);
    for (size_t i = 0; i < 400000; i++) {
        char glob[12], text[10];
        bool fits;

        fill(glob, sizeof glob, i % 2 ? "ab*?[]-!.=" : "ab*?\\[]-^:c");
        fill(text, sizeof text, "ab-[]c\\.=");
        if (glob_check(glob) != GLOB_FINE)
            continue;
        fits = glob_match(glob, text);
        ck_assert_msg(fits == (fnmatch(glob, text, 0) == 0), "%s against %s: %d", glob, text, fits);
        n_compared++;
        n_fits += fits;
    }
    ck_assert_uint_gt(n_compared, 100000);
    ck_assert_uint_gt(n_fits, 5000);
}
END_TEST

START_TEST(every_byte_is_in_the_classes_that_fnmatch_says)
{
    static const char *const globs[] = {
        "[[:alnum:]]", "[[:alpha:]]", "[[:blank:]]", "[[:cntrl:]]", "[[:digit:]]", "[[:graph:]]",
        "[[:lower:]]", "[[:print:]]", "[[:punct:]]", "[[:space:]]", "[[:upper:]]", "[[:xdigit:]]",
    };

    for (unsigned byte = 1; byte < 256; byte++) {
        const char text[] = {(char)byte, '\0'};

        ck_assert_msg(glob_match(globs[_i], text) == (fnmatch(globs[_i], text, 0) == 0),
                      "%s and byte %u", globs[_i], byte);
    }
}
END_TEST

START_TEST(faults_are_found)
{
    static const struct {
        const char *glob;
        enum glob_fault fault;
    } faults[] = {
        {"", GLOB_FINE},
        {"a[bc]d\\*", GLOB_FINE},
        {"a]", GLOB_FINE},
        {"pay[ment", GLOB_OPEN_BRACKET},
        {"[", GLOB_OPEN_BRACKET},
        {"[]", GLOB_OPEN_BRACKET},
        {"[!]", GLOB_OPEN_BRACKET},
        {"[a\\", GLOB_OPEN_BRACKET},
        {"[a-", GLOB_OPEN_BRACKET},
        {"[a-\\", GLOB_OPEN_BRACKET},
        {"[[:alpha:]", GLOB_OPEN_BRACKET},
        {"[[:foo:]]", GLOB_UNKNOWN_CLASS},
        {"[[::]]", GLOB_UNKNOWN_CLASS},
        {"[[.ab.]]", GLOB_STRAY_ELEMENT},
        {"[[=ab=]]", GLOB_STRAY_ELEMENT},
        {"[a[.]", GLOB_STRAY_ELEMENT},
        {"[A-[=]", GLOB_STRAY_ELEMENT},
        {"[[=a=]-z]", GLOB_STRAY_ELEMENT},
        {"[A-[=a=]]", GLOB_STRAY_ELEMENT},
        {"[A-[:alpha:]]", GLOB_STRAY_ELEMENT},
        {"[[=a=]-]", GLOB_FINE},
        {"[===[]", GLOB_FINE},
        {"[[.a", GLOB_OPEN_BRACKET},
        {"x[z-a]", GLOB_EMPTY_RANGE},
        {"x\\", GLOB_OPEN_BACKSLASH},
        {"x\\\\", GLOB_FINE},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        ck_assert_msg(glob_check(faults[i].glob) == faults[i].fault, "%s", faults[i].glob);
}
END_TEST

START_TEST(a_literal_has_nothing_special)
{
    ck_assert(glob_is_literal("/usr/bin/dotnet"));
    ck_assert(glob_is_literal(""));
    ck_assert(glob_is_literal("a]b!-"));
    ck_assert(!glob_is_literal("*"));
    ck_assert(!glob_is_literal("a?"));
    ck_assert(!glob_is_literal("[a]"));
    ck_assert(!glob_is_literal("a\\b"));
}
END_TEST

/* A matcher that tries every way a star can go would not come back from these. */
START_TEST(many_stars_and_a_long_text_end)
{
    const size_t length = 1024 * 1024;
    char *text = malloc(length + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, 'a', length);
    text[length] = '\0';
    ck_assert(!glob_match("*a*a*a*a*a*a*a*a*a*a*b", text));
    ck_assert(!glob_match("*[a]*?*[a]*?*[a]*?*aab", text));
    ck_assert(!glob_match("*aaaaaaaaaaaaaaaaaaaaaab*", text));
    ck_assert(glob_match("*a*a*a*a*a*a*a*a*a*a*a", text));
    free(text);
}
END_TEST

void unit_add_tests(TCase *tests)
{
    tcase_add_loop_test(tests, texts_fit_as_the_table_says, 0, ARRAY_LENGTH(rows));
    tcase_add_test(tests, random_patterns_fit_what_fnmatch_says);
    tcase_add_loop_test(tests, every_byte_is_in_the_classes_that_fnmatch_says, 0, 12);
    tcase_add_test(tests, faults_are_found);
    tcase_add_test(tests, a_literal_has_nothing_special);
    tcase_add_test(tests, many_stars_and_a_long_text_end);
}
