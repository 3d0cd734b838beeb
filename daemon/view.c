/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts, times, and runtimes with their steps.
 */

#include "daemon/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/clock.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/guid.h"
#include "lib/hresult.h"
#include "lib/names.h"
#include "lib/runtime.h"
#include "lib/text.h"

enum { SHORT_COOKIE = 8 };

/* Building. */

void view_put(json_t **object, const char *key, json_t *value)
{
    if (*object && json_object_set_new(*object, key, value) == 0)
        return;
    if (!*object)
        json_decref(value);
    json_decref(*object);
    *object = NULL;
}

void view_append(json_t **list, json_t *value)
{
    if (*list && json_array_append_new(*list, value) == 0)
        return;
    if (!*list)
        json_decref(value);
    json_decref(*list);
    *list = NULL;
}

static int write_run(const char *run, size_t length, void *context)
{
    bytes_put_run(context, run, length);
    return 0;
}

void view_write(json_t *value, struct bytes *out)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(15);

    if (!value || json_dump_callback(value, write_run, out, flags) != 0)
        out->error = out->error != 0 ? out->error : -ENOMEM;
    json_decref(value);
}

/* Small things. */

json_t *view_text(const char *text)
{
    char *escaped;
    json_t *value;

    if (!text)
        return json_null();
    escaped = text_escape(text, strlen(text));
    value = escaped ? json_string(escaped) : NULL;
    free(escaped);
    return value;
}

json_t *view_escaped(const char *text)
{
    return text_is_utf8(text, strlen(text)) ? json_string(text) : view_text(text);
}

json_t *view_cookie(const struct guid *cookie)
{
    char text[GUID_TEXT_SIZE];

    guid_format(cookie, text);
    return json_string(text);
}

json_t *view_short_cookie(const struct guid *cookie)
{
    char text[GUID_TEXT_SIZE];

    guid_format(cookie, text);
    return json_stringn(text, SHORT_COOKIE);
}

json_t *view_code(uint32_t hresult)
{
    char text[sizeof "0x00000000"];

    snprintf(text, sizeof text, "0x%08" PRIx32, hresult);
    return json_string(text);
}

json_t *view_time(struct moment moment)
{
    char text[sizeof "-2147483648-01-01T00:00:00.000000Z"], fraction[sizeof ".000000Z"];
    int64_t us;
    time_t seconds;
    struct tm parts;

    if (moment_is_never(moment))
        return json_null();
    us = (int64_t)(clock_calendar(moment) * 1e6 + 0.5);
    seconds = (time_t)(us / 1000000);
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(fraction, sizeof fraction, ".%06uZ", (unsigned)(us % 1000000) % 1000000);
    return json_sprintf("%s%s", text, fraction);
}

json_t *view_span(struct span length)
{
    return span_is_forever(length) ? json_null() : json_real(span_seconds(length));
}

static json_t *attribute_text(const struct runtime *runtime, enum attribute_id id)
{
    return view_text(attributes_text(&runtime->attributes, id));
}

/* Steps. */

/* What was sent and not lost was answered. */
static bool was_answered(const struct step *step)
{
    return step->attempts > 0 && step->result != STEP_PENDING && step->result != STEP_LOST;
}

static json_t *begin_step(const struct step *step)
{
    json_t *view = json_object();

    view_put(&view, "kind", json_string(step_kind_name(step->kind)));
    view_put(&view, "name", view_text(step->name));
    view_put(&view, "required", json_boolean(step->is_required));
    view_put(&view, "result", json_string(step_result_name(step->result)));
    return view;
}

/* What only some kinds have. */
static void end_step(json_t **view, const struct step *step)
{
    if (step->kind == STEP_VARIABLE)
        view_put(view, "unset", json_boolean(!step->value));
    if (step->clsid)
        view_put(view, "clsid", view_cookie(step->clsid));
    if (plan_has_file(step)) {
        view_put(view, "code", view_text(preflight_name(step->code)));
        view_put(view, "detail", view_text(step->detail));
        view_put(view, "remedy", view_text(preflight_remedy(step->code)));
    }
}

static json_t *view_step(const struct step *step)
{
    json_t *view = begin_step(step);
    const char *meaning = was_answered(step) ? hresult_meaning(step->hresult) : "";

    view_put(&view, "hresult", was_answered(step) ? view_code(step->hresult) : json_null());
    view_put(&view, "meaning", *meaning != '\0' ? json_string(meaning) : json_null());
    view_put(&view, "attempts", json_integer(step->attempts));
    view_put(&view, "at", view_time(step->at));
    view_put(&view, "why", view_text(step->why));
    end_step(&view, step);
    if (plan_has_file(step) && step->kind != STEP_ATTACH) {
        view_put(&view, "proof", json_string(step_proof_name(step->proof)));
        view_put(&view, "proof_detail", view_text(step->proof_why));
        view_put(&view, "proof_hresult",
                 step->proof_code != 0 ? view_code(step->proof_code) : json_null());
    }
    return view;
}

/* Those of its plan, and after them what operators had loaded into it. */
static json_t *view_steps(const struct runtime *runtime)
{
    json_t *list = json_array();
    const struct attach *attach;

    for (size_t i = 0; i < runtime->plan.n_steps; i++)
        view_append(&list, view_step(&runtime->plan.steps[i]));
    TAILQ_FOREACH(attach, &runtime->attaches, link) {
        json_t *view = view_step(&attach->step);

        view_put(&view, "number", json_integer((json_int_t)attach->number));
        view_append(&list, view);
    }
    return list;
}

json_t *view_planned_steps(const struct plan *plan)
{
    json_t *list = json_array();

    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];
        json_t *view = begin_step(step);

        view_put(&view, "why", view_text(step->why));
        end_step(&view, step);
        view_append(&list, view);
    }
    return list;
}

/* Runtimes. */

static json_t *view_arguments(const struct runtime *runtime)
{
    const struct attribute *arguments = &runtime->attributes.list[ATTRIBUTE_ARGUMENTS];
    json_t *list = arguments->state == ATTRIBUTE_PRESENT ? json_array() : json_null();

    for (size_t i = 0; i < arguments->n_texts; i++)
        view_append(&list, view_text(arguments->texts[i]));
    return list;
}

/* A list that was joined by ';'. */
static json_t *view_ports(const char *ports)
{
    json_t *list = json_array();

    while (ports && *ports != '\0') {
        size_t length = strcspn(ports, ";");
        char *port = strndup(ports, length);

        view_append(&list, port ? view_text(port) : NULL);
        free(port);
        ports += length;
        ports += *ports == ';';
    }
    return list;
}

static struct span hold_length(const struct runtime *runtime, struct moment now)
{
    struct moment end = moment_earlier(runtime->resumed_at, runtime->ended_at);

    return moment_between(runtime->connected_at, moment_is_never(end) ? now : end);
}

static void put_process(json_t **view, const struct runtime *runtime)
{
    view_put(view, "pid", json_integer(runtime->pid));
    view_put(view, "uid", json_integer(runtime->uid));
    view_put(view, "user", view_text(names_user(runtime->policy->names, runtime->uid)));
    view_put(view, "exe", attribute_text(runtime, ATTRIBUTE_EXE));
    view_put(view, "cmdline", view_arguments(runtime));
    view_put(view, "assembly", attribute_text(runtime, ATTRIBUTE_ASSEMBLY));
    view_put(view, "unit", attribute_text(runtime, ATTRIBUTE_UNIT));
    view_put(view, "container", attribute_text(runtime, ATTRIBUTE_CONTAINER));
}

static void put_times(json_t **view, const struct runtime *runtime, struct moment now)
{
    bool is_held = runtime->state == RUNTIME_HELD;

    view_put(view, "connected_at", view_time(runtime->connected_at));
    view_put(view, "deadline_at", view_time(runtime->end.at));
    view_put(view, "hold_until", is_held ? view_time(runtime->next.at) : json_null());
    view_put(view, "resumed_at", view_time(runtime->resumed_at));
    view_put(view, "ended_at", view_time(runtime->ended_at));
    view_put(view, "hold_seconds", view_span(hold_length(runtime, now)));
}

json_t *view_runtime(const struct runtime *runtime, struct moment now)
{
    const char *kind = runtime_kind_name(runtime->target.kind);
    bool has_other_port = runtime->blocked == BLOCKED_OTHER_PORT;
    json_t *view = json_object();

    view_put(&view, "id", view_short_cookie(&runtime->cookie));
    view_put(&view, "cookie", view_cookie(&runtime->cookie));
    put_process(&view, runtime);
    view_put(&view, "runtime_version", view_text(runtime->version));
    view_put(&view, "kind", view_text(kind));
    view_put(&view, "rid", view_text(runtime->rid));
    view_put(&view, "port", view_text(broker_listener_name(runtime->broker, runtime->listener)));
    view_put(&view, "state", json_string(runtime_state_name(runtime->state)));
    view_put(&view, "rule", view_text(runtime->rule ? runtime->rule->name : NULL));
    view_put(&view, "outcome", view_text(runtime_outcome_name(runtime->outcome)));
    view_put(&view, "why", view_text(runtime->why));
    view_put(&view, "late", json_boolean(runtime->outcome == OUTCOME_LATE));
    view_put(&view, "blocked", view_text(runtime_blocked_name(runtime->blocked)));
    view_put(&view, "blocked_ports", view_ports(has_other_port ? runtime->other_ports : NULL));
    put_times(&view, runtime, now);
    view_put(&view, "steps", view_steps(runtime));
    return view;
}

static json_t *view_own_ports(const struct runtime *runtime)
{
    json_t *view = json_object();
    bool is_known = runtime->n_suspending >= 0;

    view_put(&view, "suspending", is_known ? json_integer(runtime->n_suspending) : json_null());
    view_put(&view, "other", view_ports(runtime->other_ports));
    return view;
}

json_t *view_runtime_whole(const struct runtime *runtime, struct moment now)
{
    json_t *view = view_runtime(runtime, now);

    /* A claim may be any 64 bits; what is no pid at all is no number either. */
    view_put(&view, "claimed_pid",
             runtime->claimed_pid <= INT32_MAX ? json_integer((json_int_t)runtime->claimed_pid)
                                               : json_null());
    view_put(&view, "connections", json_integer((json_int_t)runtime->n_connections));
    view_put(&view, "ports", view_own_ports(runtime));
    view_put(&view, "policy", json_string(runtime->policy->hash));
    view_put(&view, "attributes", view_attributes(&runtime->attributes));
    view_put(&view, "trace", view_trace(runtime->policy, &runtime->decision, &runtime->attributes));
    return view;
}
