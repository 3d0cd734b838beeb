/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers of HTTP as texts: whole, or there is none. Connections are in the
 * end-to-end tests.
 */

#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http_core.h"
#include "tests/unit/unit_memory.h"

static const char whole[] = "{\"alpha\":[1,2],\"beta\":\"text\"}\n";

static json_t *make_value(void)
{
    json_t *value = json_pack("{s:[i,i], s:s}", "alpha", 1, 2, "beta", "text");

    ck_assert_ptr_nonnull(value);
    return value;
}

START_TEST(an_answer_is_whole_or_there_is_none)
{
    size_t n = 1, n_left, n_whole = 0;

    json_set_alloc_funcs(malloc, free);
    for (size_t fails_at = 0; fails_at <= n; fails_at++) {
        struct http_request request = {.status = 0};
        json_t *value = make_value();

        unit_memory_watch(fails_at);
        http_answer_json(&request, 200, value);
        if (fails_at == 0)
            n = unit_memory_release(&n_left);
        else
            (void)unit_memory_release(&n_left);
        ck_assert_uint_eq(request.status, 200);
        if (request.text) {
            ck_assert_uint_eq(request.length, strlen(whole));
            ck_assert_str_eq(request.text, whole);
            n_whole++;
        }
        ck_assert_msg(request.text || fails_at > 0, "there is none although there was memory");
        free(request.text);
    }
    ck_assert_uint_ge(n_whole, 1);
    ck_assert_uint_gt(n, 1);
}
END_TEST

UNIT_TESTS(an_answer_is_whole_or_there_is_none);
