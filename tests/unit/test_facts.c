/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

START_TEST(new_answer_knows_nothing)
{
    struct facts *facts = facts_new(FACTS_STAT | FACTS_EXE, EACCES);
    const struct facts_text *texts[] = {&facts->stat,    &facts->status,    &facts->exe,
                                        &facts->cwd,     &facts->arguments, &facts->cgroup,
                                        &facts->environ, &facts->parent_exe};

    ck_assert_uint_eq(facts->wanted, FACTS_STAT | FACTS_EXE);
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        ck_assert_int_eq(texts[i]->error, EACCES);
        ck_assert_uint_eq(texts[i]->length, 0);
        ck_assert_ptr_null(texts[i]->data);
    }
    ck_assert_int_eq(facts->threads_error, EACCES);
    ck_assert(!facts->is_alive && !facts->has_handle && !facts->is_frozen);
    ck_assert_int_lt(facts->age.us, 0);
    ck_assert_uint_eq(facts->n_threads, 0);
    ck_assert_uint_eq(facts->n_files, 0);
    ck_assert_ptr_null(facts_free(facts));
    ck_assert_ptr_null(facts_free(NULL));
}
END_TEST

START_TEST(texts_are_copied_and_replaced)
{
    struct facts_text text = {.error = ENODATA};
    char data[] = "a\0b";

    facts_text_set(&text, data, 3);
    data[0] = 'X';
    ck_assert_int_eq(text.error, 0);
    ck_assert_uint_eq(text.length, 3);
    ck_assert_mem_eq(text.data, "a\0b", 4);
    text.is_cut = true;
    facts_text_set(&text, NULL, 0);
    ck_assert_int_eq(text.error, 0);
    ck_assert_uint_eq(text.length, 0);
    ck_assert_str_eq(text.data, "");
    ck_assert(!text.is_cut);
    free(text.data);
}
END_TEST

START_TEST(everything_is_freed)
{
    struct facts *facts = facts_new(FACTS_FILES, 0);
    struct facts_text *texts[] = {&facts->stat,    &facts->status,    &facts->exe,
                                  &facts->cwd,     &facts->arguments, &facts->cgroup,
                                  &facts->environ, &facts->parent_exe};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        facts_text_set(texts[i], "text", 4);
    facts->files = calloc(2, sizeof *facts->files);
    facts->n_files = 2;
    ck_assert_ptr_nonnull(facts->files);
    facts->files[0].path = strdup("/opt/hook.dll");
    facts->files[0].nodes = calloc(3, sizeof *facts->files[0].nodes);
    facts->files[0].n_nodes = 3;
    facts->files[1].path = strdup("/opt/absent.dll");
    facts_free(facts); /* the leak check of the sanitizers looks on */
}
END_TEST

static int make_answer(void *context)
{
    struct facts *facts = facts_new(0, ENODATA);
    int error;

    (void)context;
    if (!facts)
        return -ENOMEM;
    facts_text_set(&facts->exe, "/bin/a", 6);
    facts_text_set(&facts->exe, "/bin/b", 6);
    error = -facts->exe.error;
    if (error != 0 && (facts->exe.data || facts->exe.length > 0))
        error = 1;
    facts_free(facts);
    return error;
}

/* The last of three allocations is the second setting of the text, which then is without bytes. */
START_TEST(text_without_memory_says_so)
{
    static const int results[] = {0, -ENOMEM, 0, -ENOMEM};

    for (size_t nth = 0; nth < ARRAY_LENGTH(results); nth++) {
        size_t n_left;
        int result;

        unit_memory_watch(nth);
        result = make_answer(NULL);
        unit_memory_release(&n_left);
        ck_assert_int_eq(result, results[nth]);
        ck_assert_uint_eq(n_left, 0);
    }
}
END_TEST

UNIT_TESTS(new_answer_knows_nothing, texts_are_copied_and_replaced, everything_is_freed,
           text_without_memory_says_so);
