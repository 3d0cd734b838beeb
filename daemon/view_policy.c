/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Policies, what they were decided by, and what is wrong with them.
 */

#include <string.h>

#include "daemon/view.h"
#include "lib/attributes.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/match.h"
#include "lib/policy.h"
#include "lib/policy_read.h"

/* Attributes. */

static const char *attribute_state_name(enum attribute_state state)
{
    switch (state) {
    case ATTRIBUTE_UNKNOWN:
        return "unknown";
    case ATTRIBUTE_ABSENT:
        return "absent";
    case ATTRIBUTE_PRESENT:
        return "present";
    }
    return "unknown";
}

/* The name of a variable only: its value is nobody's business. */
static json_t *view_variable_name(const char *text)
{
    char *name = strndup(text, strcspn(text, "="));
    json_t *view = name ? view_text(name) : NULL;

    free(name);
    return view;
}

static json_t *view_texts(const struct attribute *attribute, bool is_environment)
{
    json_t *list = json_array();

    for (size_t i = 0; i < attribute->n_texts; i++) {
        const char *text = attribute->texts[i];

        view_append(&list, is_environment ? view_variable_name(text) : view_text(text));
    }
    return list;
}

json_t *view_attributes(const struct attributes *attributes)
{
    json_t *view = json_object();

    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct attribute *attribute = &attributes->list[i];
        json_t *entry = json_object();

        view_put(&entry, "state", json_string(attribute_state_name(attribute->state)));
        view_put(&entry, "source", view_text(attribute->source));
        view_put(&entry, "why", view_text(attribute->why));
        view_put(&entry, "texts", view_texts(attribute, i == ATTRIBUTE_ENVIRON));
        view_put(&entry, "cut", json_boolean(attribute->is_cut));
        view_put(&view, attribute_name((enum attribute_id)i), entry);
    }
    return view;
}

/* Decisions. */

static json_t *view_explanation(const struct policy_rule *rule, const struct match_reason *reason,
                                const struct attributes *attributes)
{
    struct bytes text;
    json_t *view = NULL;

    bytes_init(&text, SIZE_MAX - 1);
    match_explain(rule, reason, attributes, &text);
    if (bytes_finish(&text) == 0)
        view = view_escaped((const char *)text.data);
    bytes_deinit(&text);
    return view;
}

static void put_place(json_t **view, const struct policy_place *place)
{
    view_put(view, "file", view_text(place->file));
    view_put(view, "line", json_integer(place->line));
}

json_t *view_trace(const struct policy *policy, const struct match_decision *decision,
                   const struct attributes *attributes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < decision->n_reasons && i < policy->n_rules; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        const struct match_reason *reason = &decision->reasons[i];
        enum match_verdict verdict = (enum match_verdict)reason->verdict;
        json_t *entry = json_object();

        view_put(&entry, "rule", view_text(rule->name));
        put_place(&entry, &rule->place);
        view_put(&entry, "verdict", json_string(match_verdict_name(verdict)));
        view_put(&entry, "why", view_explanation(rule, reason, attributes));
        view_append(&list, entry);
    }
    return list;
}

/* Policies. */

static json_t *view_files(const struct policy *policy)
{
    json_t *list = json_array();

    for (size_t i = 0; i < policy->n_files; i++) {
        json_t *file = json_object();

        view_put(&file, "name", view_text(policy->files[i].name));
        view_put(&file, "hash", json_string(policy->files[i].hash));
        view_append(&list, file);
    }
    return list;
}

json_t *view_policy(const struct policy *policy, enum config_origin origin, struct moment loaded_at)
{
    json_t *view = json_object();

    view_put(&view, "hash", json_string(policy->hash));
    view_put(&view, "origin", json_string(config_origin_name(origin)));
    view_put(&view, "loaded_at", view_time(loaded_at));
    view_put(&view, "files", view_files(policy));
    view_put(&view, "rules", json_integer((json_int_t)policy->n_rules));
    view_put(&view, "on_stop", json_string(policy_on_stop_name(policy->on_stop)));
    return view;
}

json_t *view_limits(const struct broker *broker)
{
    const struct policy_limits *limits = &broker_policy(broker)->limits;
    json_t *view = json_object();

    view_put(&view, "runtimes", json_integer((json_int_t)broker_runtimes(broker)));
    view_put(&view, "runtimes_per_user",
             json_integer((json_int_t)broker_runtimes_per_user(broker)));
    view_put(&view, "silent", json_integer(limits->silent));
    view_put(&view, "hello_seconds", view_span(limits->hello));
    view_put(&view, "connections_per_user",
             json_integer((json_int_t)broker_connections_per_user(broker)));
    view_put(&view, "cookies_per_process", json_integer(limits->cookies_per_process));
    view_put(&view, "late_after_seconds", view_span(limits->late_after));
    view_put(&view, "allow_pid_identity", json_boolean(limits->allow_pid_identity));
    view_put(&view, "history_records", json_integer(limits->history_records));
    view_put(&view, "history_age_seconds", view_span(limits->history_age));
    return view;
}

/* Rules. */

static json_t *view_variables(const struct policy_rule *rule)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rule->n_variables; i++)
        view_append(&list, view_text(rule->variables[i].name));
    return list;
}

static json_t *view_profilers(const struct policy_rule *rule)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rule->n_profilers; i++)
        view_append(&list, view_text(rule->profilers[i].path));
    return list;
}

static json_t *view_hooks(const struct policy_rule *rule)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rule->n_hooks; i++)
        view_append(&list, view_text(rule->hooks[i].path));
    return list;
}

static void put_keys(json_t **view, const struct policy_defaults *keys)
{
    view_put(view, "children", json_string(policy_children_name(keys->children)));
    view_put(view, "on_conflict", json_string(policy_on_conflict_name(keys->on_conflict)));
    view_put(view, "verify", json_string(policy_verify_name(keys->verify)));
    view_put(view, "on_lost", json_string(policy_on_lost_name(keys->on_lost)));
    view_put(view, "on_failure", json_string(policy_on_failure_name(keys->on_failure)));
    view_put(view, "deadline_seconds", view_span(keys->deadline));
    view_put(view, "command_timeout_seconds", view_span(keys->command_timeout));
    view_put(view, "hold_limit_seconds", view_span(keys->hold_limit));
}

json_t *view_rule(const struct policy *policy, size_t place, const struct broker_rule_use *use)
{
    const struct policy_rule *rule = &policy->rules[place];
    json_t *view = json_object();

    view_put(&view, "name", view_text(rule->name));
    put_place(&view, &rule->place);
    view_put(&view, "matches", json_integer((json_int_t)use->n_matches));
    view_put(&view, "last_match", use->n_matches > 0 ? view_time(use->last) : json_null());
    view_put(&view, "ignore", json_boolean(rule->ignore));
    view_put(&view, "mode", json_string(policy_mode_name(rule->mode)));
    view_put(&view, "match_unknown", json_string(policy_match_unknown_name(rule->match_unknown)));
    view_put(&view, "env", view_variables(rule));
    view_put(&view, "profilers", view_profilers(rule));
    view_put(&view, "startup_hooks", view_hooks(rule));
    put_keys(&view, &rule->keys);
    return view;
}

/* Problems. */

static json_t *view_problem(const struct policy_problem *problem)
{
    bool is_error = problem->severity == POLICY_ERROR, has_place = problem->line > 0;
    json_t *view = json_object();

    view_put(&view, "severity", json_string(is_error ? "error" : "warning"));
    view_put(&view, "file", view_text(problem->file));
    view_put(&view, "line", has_place ? json_integer(problem->line) : json_null());
    view_put(&view, "column", has_place ? json_integer(problem->column) : json_null());
    view_put(&view, "text", view_escaped(problem->text));
    return view;
}

json_t *view_problems(const struct policy_problems *problems)
{
    json_t *list = json_array();

    for (size_t i = 0; i < problems->n; i++)
        view_append(&list, view_problem(&problems->list[i]));
    return list;
}
