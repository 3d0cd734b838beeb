/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests to the control interface of a daemon that holds some runtimes
 * (unit_control.h). Each is a byte for who asks, "METHOD PATH?QUERY", a line
 * feed, and a body up to a byte FF. The six upper bits of the byte are the
 * allocation that fails, 0 being none.
 */

#include "tests/fuzz/fuzz.h"
#include "tests/unit/unit_control.h"

enum { REQUEST_END = 0xFF, REQUESTS_MAX = 8 };

/* Who may not, does not. */
static void check_rights(const struct unit_request *request, unsigned status)
{
    bool is_done = status >= 200 && status < 300;

    FUZZ_HOLDS(request->uid != UNIT_CONTROL_NOBODY || !is_done);
    if (is_done && request->uid == UNIT_CONTROL_READER)
        FUZZ_HOLDS(strcmp(request->method, "POST") != 0 ||
                   strcmp(request->target, "/v1/explain") == 0 ||
                   strncmp(request->target, "/v1/policy/check", 16) == 0);
}

static void ask(struct fuzz_input *input)
{
    static const uint32_t uids[] = {0, UNIT_CONTROL_READER, UNIT_CONTROL_ADMIN,
                                    UNIT_CONTROL_NOBODY};
    uint8_t who = fuzz_take_u8(input);
    struct fuzz_input body = fuzz_take_until(input, REQUEST_END);
    struct fuzz_input target = fuzz_take_until(&body, '\n'), method = fuzz_take_until(&target, ' ');
    char *method_text = fuzz_text(method.at, method.left);
    char *target_text = fuzz_text(target.at, target.left);
    const struct unit_request request = {
        .uid = uids[who % ARRAY_LENGTH(uids)],
        .method = method_text,
        .target = target_text,
        .body = body.at,
        .body_length = body.left,
        .fails_at = who / ARRAY_LENGTH(uids),
    };
    struct unit_answer answer = unit_control_ask(&request);

    check_rights(&request, answer.status);
    free(answer.text);
    free(method_text);
    free(target_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    unit_control_begin();
    for (int n = 0; input.left > 0 && n < REQUESTS_MAX; n++)
        ask(&input);
    unit_control_end();
    return 0;
}
