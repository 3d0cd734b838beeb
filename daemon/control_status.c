/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How the daemon is: status, probes, metrics.
 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/control_core.h"
#include "daemon/metrics.h"
#include "daemon/notices.h"
#include "daemon/ports.h"
#include "daemon/self.h"
#include "daemon/view.h"
#include "lib/bytes.h"
#include "lib/notice.h"
#include "lib/policy.h"
#include "lib/runtime.h"

static const char *trust_name(enum broker_trust trust)
{
    switch (trust) {
    case BROKER_TRUSTS_RECORDS:
        return "trusted";
    case BROKER_DISTRUSTS_RECORDS:
        return "distrusted";
    case BROKER_HAS_NO_RECORDS:
        return "none";
    }
    return "none";
}

static bool is_stopping(const struct control *control)
{
    return control->options.is_stopping(control->options.context);
}

/* Status. */

static json_t *view_last_reload(const struct control_reloads *reloads)
{
    json_t *view;

    if (moment_is_never(reloads->last_at))
        return json_null();
    view = json_object();
    view_put(&view, "at", view_time(reloads->last_at));
    view_put(&view, "ok", json_boolean(reloads->was_last_done));
    return view;
}

static json_t *view_listeners(const struct ports *ports)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ports_count(ports); i++) {
        struct ports_entry entry = ports_get(ports, i);
        json_t *view = json_object();

        view_put(&view, "name", view_text(entry.name));
        view_put(&view, "path", view_text(entry.path));
        view_put(&view, "passed_in", json_boolean(entry.was_passed_in));
        view_put(&view, "in_place", json_boolean(entry.is_in_place));
        view_append(&list, view);
    }
    return list;
}

static json_t *view_control(const struct control *control)
{
    bool is_in_place = listener_is_in_place(&control->socket);
    json_t *view = json_object();

    view_put(&view, "path", view_text(control->policy->control.path));
    view_put(&view, "passed_in", json_boolean(control->was_passed_in));
    view_put(&view, "in_place", json_boolean(is_in_place));
    view_put(&view, "connections", json_integer((json_int_t)http_count(control->http)));
    view_put(&view, "followers", json_integer((json_int_t)control->n_followers));
    return view;
}

/* Several states of the core are shown as one. */
static json_t *view_states(const struct broker *broker)
{
    json_t *view = json_object();

    for (size_t i = 0; i < RUNTIME_STATES; i++) {
        const char *name = runtime_state_name((enum runtime_state)i);
        json_int_t n = (json_int_t)broker_count(broker, (enum runtime_state)i);

        view_put(&view, name, json_integer(json_integer_value(json_object_get(view, name)) + n));
    }
    return view;
}

static json_t *view_connections(const struct control *control)
{
    const struct broker_counters *counters = broker_counters(control->options.broker);
    json_t *view = json_object();

    view_put(&view, "open", json_integer((json_int_t)counters->n_connections));
    view_put(&view, "silent", json_integer((json_int_t)counters->n_silent));
    view_put(&view, "usable", json_integer((json_int_t)control->options.usable_descriptors));
    return view;
}

static json_t *view_alarms(const struct broker_counters *counters)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ALARM_COUNT; i++) {
        json_t *view;

        if (!counters->alarms[i])
            continue;
        view = json_object();
        view_put(&view, "name", json_string(alarm_name((enum alarm)i)));
        view_put(&view, "why", view_text(counters->alarm_reasons[i]));
        view_append(&list, view);
    }
    return list;
}

static json_t *view_events(const struct notices *notices)
{
    json_t *view = json_object();

    view_put(&view, "oldest", json_integer((json_int_t)notices_oldest(notices)));
    view_put(&view, "newest", json_integer((json_int_t)notices_next(notices) - 1));
    return view;
}

static void put_instance(json_t **view, const struct control_call *call)
{
    const struct control *control = call->control;

    view_put(view, "version", json_string(PACKAGE_VERSION));
    view_put(view, "pid", json_integer(getpid()));
    view_put(view, "uid", json_integer(geteuid()));
    view_put(view, "user_instance", json_boolean(control->options.is_user));
    view_put(view, "started_at", view_time(control->started_at));
    view_put(view, "uptime_seconds", view_span(moment_between(control->started_at, call->now)));
    view_put(view, "stopping", json_boolean(is_stopping(control)));
}

void control_show_status(struct control_call *call)
{
    const struct control *control = call->control;
    const struct broker *broker = control->options.broker;
    const struct broker_counters *counters = broker_counters(broker);
    const struct policy *policy = broker_policy(broker);
    const struct control_reloads *reloads = control->options.reloads;
    json_t *view;

    if (!control_read_query(call, NULL, 0, NULL))
        return;
    view = json_object();
    put_instance(&view, call);
    view_put(&view, "policy", view_policy(policy, reloads->origin, reloads->loaded_at));
    view_put(&view, "last_reload", view_last_reload(reloads));
    view_put(&view, "listeners", view_listeners(control->options.ports));
    view_put(&view, "control", view_control(control));
    view_put(&view, "runtimes", view_states(broker));
    view_put(&view, "runtimes_seen", json_integer((json_int_t)counters->n_seen));
    view_put(&view, "connections", view_connections(control));
    view_put(&view, "alarms", view_alarms(counters));
    view_put(&view, "limits", view_limits(broker));
    view_put(&view, "records", json_string(trust_name(broker_trust(broker))));
    view_put(&view, "events", view_events(control->options.notices));
    http_answer_json(call->request, 200, view);
}

/* Probes. */

static void answer_probe(struct control_call *call, bool is_ok, json_t *reasons)
{
    json_t *view = json_object();

    view_put(&view, "ok", json_boolean(is_ok));
    view_put(&view, "why", reasons);
    http_answer_json(call->request, is_ok ? 200 : 503, view);
}

void control_show_health(struct control_call *call)
{
    if (control_read_query(call, NULL, 0, NULL))
        answer_probe(call, true, json_array());
}

/* Why runtimes that come are not served. */
static json_t *view_unreadiness(const struct control *control)
{
    const struct ports *ports = control->options.ports;
    json_t *reasons = json_array();

    if (is_stopping(control))
        view_append(&reasons, json_string("the daemon is stopping"));
    if (broker_counters(control->options.broker)->alarms[ALARM_DESCRIPTORS])
        view_append(&reasons, json_string("descriptors have run short"));
    for (size_t i = 0; i < ports_count(ports); i++) {
        struct ports_entry entry = ports_get(ports, i);
        json_t *name;

        if (entry.is_in_place)
            continue;
        name = view_text(entry.name);
        view_append(&reasons, json_sprintf("the socket file of the listener %s is gone",
                                           name ? json_string_value(name) : ""));
        json_decref(name);
    }
    return reasons;
}

void control_show_readiness(struct control_call *call)
{
    json_t *reasons;

    if (!control_read_query(call, NULL, 0, NULL))
        return;
    reasons = view_unreadiness(call->control);
    answer_probe(call, json_array_size(reasons) == 0, reasons);
}

/* Metrics. */

/* In a list that the caller frees; NULL when memory is out. */
static struct ports_entry *list_ports(const struct ports *ports, size_t *ret_n)
{
    size_t n = ports_count(ports);
    struct ports_entry *list = calloc(n + 1, sizeof *list);

    for (size_t i = 0; list && i < n; i++)
        list[i] = ports_get(ports, i);
    *ret_n = n;
    return list;
}

static void answer_metrics(struct control_call *call, const struct metrics *metrics)
{
    struct bytes text;
    size_t length;

    bytes_init(&text, SIZE_MAX - 1);
    metrics_write(metrics, &text);
    length = text.length;
    if (bytes_finish(&text) == 0)
        http_answer(call->request, 200, metrics_type, (char *)bytes_take(&text), length);
    bytes_deinit(&text);
}

void control_show_metrics(struct control_call *call)
{
    const struct control *control = call->control;
    const struct control_reloads *reloads = control->options.reloads;
    struct metrics metrics = {
        .counters = broker_counters(control->options.broker),
        .n_reloads_done = reloads->n_done,
        .n_reloads_failed = reloads->n_failed,
        .policy_hash = broker_policy(control->options.broker)->hash,
        .policy_origin = config_origin_name(reloads->origin),
        .version = PACKAGE_VERSION,
        .is_control_in_place = listener_is_in_place(&control->socket),
        .started_at = clock_calendar(control->started_at),
    };
    struct ports_entry *listeners;
    struct self self;
    json_t *unready;

    if (!control_read_query(call, NULL, 0, NULL))
        return;
    for (size_t i = 0; i < RUNTIME_STATES; i++)
        metrics.by_state[i] = broker_count(control->options.broker, (enum runtime_state)i);
    self_look(&self);
    metrics.self = &self;
    unready = view_unreadiness(control);
    metrics.listeners = listeners = list_ports(control->options.ports, &metrics.n_listeners);
    metrics.is_ready = unready && json_array_size(unready) == 0;
    if (unready && listeners)
        answer_metrics(call, &metrics);
    free(listeners);
    json_decref(unready);
}
