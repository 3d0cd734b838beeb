/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runtimes: a list of them, one with everything, and what operators do to them.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control_core.h"
#include "daemon/view.h"
#include "lib/bytes.h"
#include "lib/glob.h"
#include "lib/names.h"
#include "lib/policy.h"
#include "lib/policy_key.h"
#include "lib/runtime.h"
#include "lib/text.h"

enum {
    /* Written at once; more would keep runtimes waiting. */
    LIST_CHUNK = 8 * 1024,
};

/* As long as for any other answer. */
#define LIST_PATIENCE span_from_s(15)

/* Lists. */

enum { KEY_STATE, KEY_RULE, KEY_PID, KEY_USER, KEY_UNIT, N_KEYS };

static const char *const keys[] = {"state", "rule", "pid", "user", "unit"};

/* A walk that goes on where it was left, while runtimes come and go. */
struct list {
    const struct control *control;
    struct moment now; /* of the request */
    char *wanted[N_KEYS];
    uint64_t serial; /* of the last one that was looked at */
    bool has_begun;
    bool has_some;
    bool has_ended;
};

static struct list *free_list(struct list *list)
{
    for (size_t i = 0; i < N_KEYS; i++)
        free(list->wanted[i]);
    free(list);
    return NULL;
}

static void end_list(void *context)
{
    free_list(context);
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

static bool is_number(int64_t number, const char *wanted)
{
    uint64_t value;

    return text_number(wanted, strlen(wanted), UINT32_MAX, &value) && (int64_t)value == number;
}

static bool fits(const struct runtime *runtime, char *const *wanted)
{
    const char *unit = attributes_text(&runtime->attributes, ATTRIBUTE_UNIT);

    if (wanted[KEY_STATE] && !is_text(runtime_state_name(runtime->state), wanted[KEY_STATE]))
        return false;
    if (wanted[KEY_RULE] && !is_text(runtime->rule ? runtime->rule->name : NULL, wanted[KEY_RULE]))
        return false;
    if (wanted[KEY_PID] && !is_number(runtime->pid, wanted[KEY_PID]))
        return false;
    if (wanted[KEY_USER] && !is_number(runtime->uid, wanted[KEY_USER]) &&
        !is_text(names_user(runtime->policy->names, runtime->uid), wanted[KEY_USER]))
        return false;
    return !wanted[KEY_UNIT] || (unit && glob_match(wanted[KEY_UNIT], unit));
}

static enum http_more list_more(void *context, struct bytes *out)
{
    const struct runtime *runtime;
    struct list *list = context;

    if (list->has_ended)
        return HTTP_END;
    if (!list->has_begun)
        bytes_put_string(out, "{\"runtimes\":[");
    list->has_begun = true;
    while (out->length < LIST_CHUNK && out->error == 0) {
        runtime = broker_runtime_after(list->control->options.broker, list->serial);
        if (!runtime) {
            bytes_put_string(out, "]}\n");
            list->has_ended = true;
            break;
        }
        list->serial = runtime->serial;
        if (!fits(runtime, list->wanted))
            continue;
        if (list->has_some)
            bytes_put_u8(out, ',');
        list->has_some = true;
        view_write(view_runtime(runtime, list->now), out);
    }
    return out->error == 0 ? HTTP_MORE : HTTP_BROKEN;
}

/* It never waits. */
static struct moment list_next(void *context)
{
    (void)context;
    return MOMENT_NEVER;
}

static bool is_state(const char *text)
{
    for (size_t i = 0; i < RUNTIME_STATES; i++) {
        if (is_text(runtime_state_name((enum runtime_state)i), text))
            return true;
    }
    return false;
}

/* A filter that can fit nothing is a mistake; false when that is answered. */
static bool check_filters(struct control_call *call, const char *const *values)
{
    uint64_t pid;

    if (values[KEY_STATE] && !is_state(values[KEY_STATE])) {
        http_problem(call->request, 400, NULL,
                     "\"state\" is one of known, applying, held, resuming, running, gone, killed");
        return false;
    }
    if (values[KEY_PID] &&
        !text_number(values[KEY_PID], strlen(values[KEY_PID]), INT32_MAX, &pid)) {
        http_problem(call->request, 400, NULL, "\"pid\" has to be a number");
        return false;
    }
    if (values[KEY_UNIT] && glob_check(values[KEY_UNIT]) != GLOB_FINE) {
        http_problem(call->request, 400, NULL, "\"unit\" is not a pattern");
        return false;
    }
    return true;
}

static struct list *new_list(const struct control_call *call, const char *const *values)
{
    struct list *list = calloc(1, sizeof *list);

    if (!list)
        return NULL;
    list->control = call->control;
    list->now = call->now;
    for (size_t i = 0; i < N_KEYS; i++) {
        list->wanted[i] = values[i] ? strdup(values[i]) : NULL;
        if (values[i] && !list->wanted[i])
            return free_list(list);
    }
    return list;
}

void control_list_runtimes(struct control_call *call)
{
    const char *values[N_KEYS];
    struct http_stream stream = {.more = list_more,
                                 .next = list_next,
                                 .free = end_list,
                                 .patience = LIST_PATIENCE};

    if (!control_read_query(call, keys, N_KEYS, values) || !check_filters(call, values))
        return;
    stream.context = new_list(call, values);
    if (stream.context)
        http_answer_stream(call->request, "application/json", &stream);
}

/* One. */

void control_show_runtime(struct control_call *call)
{
    struct runtime *runtime;

    if (control_read_query(call, NULL, 0, NULL) && control_find(call, &runtime))
        http_answer_json(call->request, 200, view_runtime_whole(runtime, call->now));
}

/* What operators do. */

static void answer_done(struct control_call *call, struct runtime *runtime,
                        enum broker_verdict verdict)
{
    const struct control_options *options = &call->control->options;
    const char *result = verdict == BROKER_ALREADY ? "already" : "done";
    uint64_t serial = runtime->serial;
    json_t *view = json_object();

    control_tell(call, runtime, result, NULL);
    options->settle(options->context);
    /* It may have ended meanwhile, and be forgotten. */
    runtime = broker_runtime_after(options->broker, serial - 1);
    view_put(&view, "verdict", json_string(result));
    view_put(&view, "runtime",
             runtime && runtime->serial == serial ? view_runtime(runtime, call->now) : json_null());
    http_answer_json(call->request, 200, view);
}

/* The runtime that a call without a body is about; false when the call is answered already. */
static bool begin(struct control_call *call, struct runtime **ret_runtime)
{
    json_t *body;

    if (!control_read_query(call, NULL, 0, NULL) || !control_read_body(call, NULL, 0, &body))
        return false;
    json_decref(body);
    return control_find(call, ret_runtime);
}

void control_resume(struct control_call *call)
{
    struct runtime *runtime;
    enum broker_verdict verdict;

    if (!begin(call, &runtime))
        return;
    verdict = broker_resume(runtime, call->now);
    if (verdict == BROKER_TOO_LATE)
        control_refuse(call, runtime, 409, "the runtime has ended");
    else
        answer_done(call, runtime, verdict);
}

static void refuse_long_hold(const struct control_call *call, struct span limit)
{
    struct bytes text;

    bytes_init(&text, 64);
    policy_key_put_span(limit.us, &text);
    if (bytes_finish(&text) == 0)
        http_problem(call->request, 400, NULL,
                     "\"for\" is longer than hold_limit allows, which is %s", (char *)text.data);
    else
        http_problem(call->request, 400, NULL, "\"for\" is longer than hold_limit allows");
    bytes_deinit(&text);
}

/* What the body wants, at most what the rule allows; false when it is answered that it is no length
 * of time. */
static bool read_length(struct control_call *call, const json_t *body, struct span limit,
                        struct span *ret_length)
{
    const json_t *value = json_object_get(body, "for");
    const char *text = json_string_value(value);
    int64_t us = 0;

    *ret_length = limit;
    if (!value)
        return true;
    if (text && strcmp(text, "forever") == 0) {
        *ret_length = SPAN_FOREVER;
    } else if (text && policy_key_read_span(text, &us) && us > 0) {
        *ret_length = span_from_us(us);
    } else {
        http_problem(call->request, 400, NULL,
                     "\"for\" has to be a length of time with a unit, such as \"10m\", or "
                     "\"forever\"");
        return false;
    }
    if (ret_length->us > limit.us) {
        refuse_long_hold(call, limit);
        return false;
    }
    return true;
}

/* Of one that cannot be held any more. */
static const char *explain_too_late(enum runtime_state state)
{
    switch (state) {
    case RUNTIME_KILLING:
        return "the runtime is being killed, so it cannot be held any more";
    case RUNTIME_KILLED:
        return "the runtime was killed and has ended, so it cannot be held any more";
    case RUNTIME_RUNNING:
        return "the runtime is running, so it cannot be held any more";
    case RUNTIME_GONE:
        return "the runtime is gone: it has ended, so it cannot be held any more";
    case RUNTIME_DECIDING:
    case RUNTIME_ASKING:
    case RUNTIME_APPLYING:
    case RUNTIME_WITHDRAWING:
    case RUNTIME_HELD:
    case RUNTIME_RESUMING:
    case RUNTIME_SETTLING:
        break;
    }
    return "the runtime is being resumed, so it cannot be held any more";
}

void control_hold(struct control_call *call)
{
    static const char *const body_keys[] = {"for"};
    struct runtime *runtime;
    struct span length;
    json_t *body;

    if (!control_read_query(call, NULL, 0, NULL) || !control_read_body(call, body_keys, 1, &body))
        return;
    if (control_find(call, &runtime)) {
        struct span limit =
            runtime->rule ? runtime->rule->keys.hold_limit : runtime->policy->defaults.hold_limit;

        if (!read_length(call, body, limit, &length))
            control_tell(call, runtime, "refused", "the length of time is wrong");
        else if (broker_hold(runtime, length, call->now) == BROKER_TOO_LATE)
            control_refuse(call, runtime, 409, explain_too_late(runtime->state));
        else
            answer_done(call, runtime, BROKER_DONE);
    }
    json_decref(body);
}

void control_kill(struct control_call *call)
{
    const struct control_options *options = &call->control->options;
    struct runtime *runtime;
    enum broker_verdict verdict;

    if (!begin(call, &runtime))
        return;
    if (!options->may_kill && runtime->uid != geteuid() && !runtime_has_ended(runtime)) {
        control_refuse(call, runtime, 501,
                       "the daemon may not kill processes of other users (CAP_KILL)");
        return;
    }
    verdict = broker_kill(runtime, call->now);
    if (verdict == BROKER_TOO_LATE)
        control_refuse(call, runtime, 409, "the runtime has ended");
    else if (verdict == BROKER_NO_HANDLE)
        control_refuse(call, runtime, 409, "its process cannot be identified beyond doubt");
    else
        answer_done(call, runtime, verdict);
}
