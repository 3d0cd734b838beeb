/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/primer.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static bool read_text(const char *text, struct primer_result *ret_result)
{
    return primer_read_result(text, strlen(text), ret_result);
}

static void check_words(struct primer_words words, const char *text)
{
    ck_assert_uint_eq(words.length, strlen(text));
    ck_assert_mem_eq(words.text, text, words.length);
}

static const char everything[] = "diagport-primer 1\n"
                                 "set 3\n"
                                 "unset 10\n"
                                 "failed 2 text NA ME\n"
                                 "library ok\n"
                                 "library no-entry\n"
                                 "library untried\n"
                                 "library failed /x: not found\n"
                                 "library failed \n"
                                 "end\n";

START_TEST(it_is_read)
{
    struct primer_result result;

    ck_assert(read_text(everything, &result));
    ck_assert_uint_eq(result.n_set, 3);
    ck_assert_uint_eq(result.n_unset, 10);
    ck_assert_uint_eq(result.n_failed, 2);
    ck_assert_int_eq(result.failure, PRIMER_TEXT);
    check_words(result.failed, "NA ME");
    ck_assert_uint_eq(result.n_libraries, 5);
    ck_assert_int_eq(result.libraries[0].state, PRIMER_OPENED);
    ck_assert_int_eq(result.libraries[1].state, PRIMER_NO_ENTRY);
    ck_assert_int_eq(result.libraries[2].state, PRIMER_UNTRIED);
    ck_assert_int_eq(result.libraries[3].state, PRIMER_REFUSED);
    check_words(result.libraries[3].words, "/x: not found");
    check_words(result.libraries[4].words, "");
}
END_TEST

START_TEST(nothing_may_have_been_to_do)
{
    struct primer_result result;

    ck_assert(read_text("diagport-primer 1\nset 0\nunset 0\nfailed 0\nend\n", &result));
    ck_assert_uint_eq(result.n_failed, 0);
    ck_assert_int_eq(result.failure, PRIMER_NO_FAILURE);
    ck_assert_uint_eq(result.n_libraries, 0);
}
END_TEST

START_TEST(every_cut_is_refused)
{
    for (size_t length = 0; length + 1 < sizeof everything; length++) {
        char *cut = (char *)unit_copy(everything, length);
        struct primer_result result = {.n_set = 77};

        ck_assert_msg(!primer_read_result(cut, length, &result), "%zu", length);
        ck_assert_uint_eq(result.n_set, 77);
        free(cut);
    }
}
END_TEST

START_TEST(every_reason_has_its_word)
{
    static const char *const words[] = {"name", "text", "long", "runtime", "libc"};

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        struct primer_result result;
        char text[128];

        snprintf(text, sizeof text, "diagport-primer 1\nset 0\nunset 0\nfailed 1 %s X\nend\n",
                 words[i]);
        ck_assert(read_text(text, &result));
        ck_assert_uint_eq(result.failure, PRIMER_NAME + i);
        ck_assert_str_ne(primer_failure_name(result.failure), "");
    }
}
END_TEST

#define HEAD "diagport-primer 1\nset 1\nunset 0\n"

START_TEST(whatever_no_primer_writes_is_refused)
{
    static const char *const texts[] = {
        "diagport-primer 2\nset 1\nunset 0\nfailed 0\nend\n",
        "diagport-primer 1 \nset 1\nunset 0\nfailed 0\nend\n",
        "diagport-primer 1\nset 01\nunset 0\nfailed 0\nend\n",
        "diagport-primer 1\nset -1\nunset 0\nfailed 0\nend\n",
        "diagport-primer 1\nset 4294967296\nunset 0\nfailed 0\nend\n",
        "diagport-primer 1\nset \nunset 0\nfailed 0\nend\n",
        "diagport-primer 1\nset\nunset 0\nfailed 0\nend\n",
        "diagport-primer 1\nunset 0\nset 1\nfailed 0\nend\n",
        HEAD "failed 1\nend\n",
        HEAD "failed 0 text X\nend\n",
        HEAD "failed 1 other X\nend\n",
        HEAD "failed 1  X\nend\n",
        HEAD "failed 1 text\nend\n",
        HEAD "failed 1 text X\rY\nend\n",
        HEAD "failed 0\nlibrary OK\nend\n",
        HEAD "failed 0\nlibrary failed\nend\n",
        HEAD "failed 0\nlibraries ok\nend\n",
        HEAD "failed 0\nlibrary failed a\x1b[0m\nend\n",
        HEAD "failed 0\nend\nend\n",
        HEAD "failed 0\nend \n",
        HEAD "failed 0\n\nend\n",
        " " HEAD "failed 0\nend\n",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        struct primer_result result;

        ck_assert_msg(!read_text(texts[i], &result), "%s", texts[i]);
    }
}
END_TEST

/* A result with that many libraries, each refused with that many bytes. */
static bool read_many(size_t n, int length)
{
    static char text[2 * PRIMER_LIBRARIES_MAX * PRIMER_WORDS_MAX];
    struct primer_result result;
    int at = snprintf(text, sizeof text, HEAD "failed 0\n");

    for (size_t i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "library failed %0*d\n", length, 1);
    snprintf(text + at, sizeof text - (size_t)at, "end\n");
    return read_text(text, &result);
}

START_TEST(more_than_a_primer_writes_is_refused)
{
    ck_assert(read_many(PRIMER_LIBRARIES_MAX, PRIMER_WORDS_MAX));
    ck_assert(!read_many(PRIMER_LIBRARIES_MAX + 1, 1));
    ck_assert(!read_many(1, PRIMER_WORDS_MAX + 1));
}
END_TEST

START_TEST(all_is_named)
{
    ck_assert_str_eq(primer_failure_name(PRIMER_NO_FAILURE), "none");
    for (int state = PRIMER_OPENED; state <= PRIMER_REFUSED; state++)
        ck_assert_str_ne(primer_library_state_name((enum primer_library_state)state), "");
}
END_TEST

UNIT_TESTS(it_is_read, nothing_may_have_been_to_do, every_cut_is_refused, every_reason_has_its_word,
           whatever_no_primer_writes_is_refused, more_than_a_primer_writes_is_refused,
           all_is_named);
