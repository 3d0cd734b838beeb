/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Profilers that operators have loaded into runtimes that run: reads what is
 * wanted. What becomes of it takes its time and is not waited for here; it is a
 * step of the runtime.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/control_core.h"
#include "daemon/view.h"
#include "lib/bytes.h"
#include "lib/guid.h"
#include "lib/policy_key.h"
#include "lib/runtime.h"
#include "lib/text.h"

#define USUAL_TIMEOUT span_from_s(5)

enum { PATH_LENGTH_MAX = 4095 };

enum { MEMBER_CLSID, MEMBER_PATH, MEMBER_DATA, MEMBER_DATA_HEX, MEMBER_TIMEOUT, N_MEMBERS };

static const char *const members[] = {"clsid", "path", "data", "data_hex", "timeout"};

static const char *text_of(const json_t *body, int member)
{
    return json_string_value(json_object_get(body, members[member]));
}

static bool has(const json_t *body, int member)
{
    return json_object_get(body, members[member]) != NULL;
}

/* Pairs of digits and nothing else; false for anything else. */
static bool read_hex(const char *text, struct bytes *out)
{
    for (; *text != '\0'; text += 2) {
        int high = text_hex_digit(text[0]), low = high >= 0 ? text_hex_digit(text[1]) : -1;

        if (low < 0)
            return false;
        bytes_put_u8(out, (uint8_t)(high << 4 | low));
    }
    return true;
}

/* What is wrong with the body, as a sentence; NULL when nothing is. `data` is filled. */
static const char *read_wanted(const json_t *body, struct bytes *data, struct broker_attach *wanted)
{
    const char *clsid = text_of(body, MEMBER_CLSID), *timeout = text_of(body, MEMBER_TIMEOUT);
    int64_t us = USUAL_TIMEOUT.us;

    if (!clsid || !guid_parse(clsid, &wanted->clsid))
        return "\"clsid\" has to be the class id of the profiler, as "
               "\"918728dd-259f-4a6a-ac2b-b85e1b658318\"";
    wanted->path = text_of(body, MEMBER_PATH);
    if (!wanted->path || wanted->path[0] != '/' || strlen(wanted->path) > PATH_LENGTH_MAX)
        return "\"path\" has to be the absolute path of the profiler, as the process sees it";
    if (has(body, MEMBER_TIMEOUT) && (!timeout || !policy_key_read_span(timeout, &us) ||
                                      us < 1000 || us > BROKER_ATTACH_TIMEOUT_MAX.us))
        return "\"timeout\" has to be a length of time with a unit, such as \"5s\", of one minute "
               "at most";
    wanted->timeout = span_from_us(us);
    if (has(body, MEMBER_DATA) && has(body, MEMBER_DATA_HEX))
        return "\"data\" and \"data_hex\" are two forms of the same; give one of them";
    if (has(body, MEMBER_DATA) && !text_of(body, MEMBER_DATA))
        return "\"data\" has to be a text";
    if (has(body, MEMBER_DATA_HEX) &&
        (!text_of(body, MEMBER_DATA_HEX) || !read_hex(text_of(body, MEMBER_DATA_HEX), data)))
        return "\"data_hex\" has to be pairs of hexadecimal digits";
    if (has(body, MEMBER_DATA))
        bytes_put_string(data, text_of(body, MEMBER_DATA));
    wanted->data = data->data;
    wanted->n_data = data->length;
    return NULL;
}

/* Of one that is not running. */
static const char *explain_not_running(const struct runtime *runtime)
{
    return runtime->state < RUNTIME_RESUMING
               ? "the runtime does not run yet; profilers that are to be there from the start "
                 "belong into a rule"
               : "the runtime is being resumed; ask again when it runs";
}

static void answer_begun(struct control_call *call, const struct runtime *runtime)
{
    const struct control_options *options = &call->control->options;
    uint64_t serial = runtime->serial, number = runtime->n_attaches;
    json_t *view = json_object();

    control_tell(call, runtime, "begun", NULL);
    options->settle(options->context);
    /* It may have ended meanwhile, and be forgotten. */
    runtime = broker_runtime_after(options->broker, serial - 1);
    view_put(&view, "verdict", json_string("begun"));
    view_put(&view, "number", json_integer((json_int_t)number));
    view_put(&view, "runtime",
             runtime && runtime->serial == serial ? view_runtime(runtime, call->now) : json_null());
    http_answer_json(call->request, 202, view);
}

static void begin(struct control_call *call, struct runtime *runtime,
                  const struct broker_attach *wanted)
{
    switch (broker_attach(runtime, wanted, call->now)) {
    case BROKER_DONE:
        answer_begun(call, runtime);
        return;
    case BROKER_ALREADY:
        control_refuse(call, runtime, 409,
                       "another profiler is being loaded into the runtime; ask again when that has "
                       "its result");
        return;
    case BROKER_NOT_RUNNING:
        control_refuse(call, runtime, 409, explain_not_running(runtime));
        return;
    case BROKER_DOES_NOT_FIT:
        control_refuse(call, runtime, 400,
                       "path and data together do not fit into a message of the protocol, which "
                       "takes 64 KiB and two bytes for each character of the path");
        return;
    case BROKER_STOPS:
        control_refuse(call, runtime, 503, "the daemon is stopping");
        return;
    case BROKER_TOO_LATE:
    case BROKER_NO_HANDLE:
        control_refuse(call, runtime, 409, "the runtime has ended");
        return;
    case BROKER_NO_MEMORY:
        control_tell(call, runtime, "refused", "memory ran out");
        return;
    }
}

void control_attach(struct control_call *call)
{
    struct broker_attach wanted = {.path = NULL};
    struct runtime *runtime;
    struct bytes data;
    json_t *body;

    if (!control_read_query(call, NULL, 0, NULL) ||
        !control_read_body(call, members, N_MEMBERS, &body))
        return;
    bytes_init(&data, HTTP_BODY_MAX);
    if (control_find(call, &runtime)) {
        const char *problem = read_wanted(body, &data, &wanted);

        if (problem)
            control_refuse(call, runtime, 400, problem);
        else if (data.error == 0)
            begin(call, runtime, &wanted);
        else
            control_tell(call, runtime, "refused", "memory ran out");
    }
    bytes_deinit(&data);
    json_decref(body);
}
