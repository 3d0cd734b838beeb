/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Policies: the rules in force, the verdict on a text, and reloading.
 */

#include <string.h>
#include <strings.h>

#include "daemon/control_core.h"
#include "daemon/view.h"
#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_read.h"

/* Rules. */

void control_list_rules(struct control_call *call)
{
    const struct broker *broker = call->control->options.broker;
    const struct broker_counters *counters = broker_counters(broker);
    const struct policy *policy = broker_policy(broker);
    json_t *view, *rules;

    if (!control_read_query(call, NULL, 0, NULL))
        return;
    view = json_object();
    rules = json_array();
    for (size_t i = 0; i < policy->n_rules && i < counters->n_rules; i++)
        view_append(&rules, view_rule(policy, i, &counters->rules[i]));
    view_put(&view, "policy", json_string(policy->hash));
    view_put(&view, "rules", rules);
    http_answer_json(call->request, 200, view);
}

/* Checking. */

static void put_problems(json_t **view, const struct policy_problems *problems)
{
    size_t n_warnings = 0;

    for (size_t i = 0; i < problems->n; i++)
        n_warnings += problems->list[i].severity == POLICY_WARNING;
    view_put(view, "n_errors", json_integer((json_int_t)problems->n_errors));
    view_put(view, "n_warnings", json_integer((json_int_t)n_warnings));
    view_put(view, "problems", view_problems(problems));
    view_put(view, "n_dropped", json_integer((json_int_t)problems->n_dropped));
}

/* The caller's own text, in another form. */
static json_t *view_canonical(const struct policy *policy)
{
    struct bytes text;
    json_t *view = NULL;

    bytes_init(&text, SIZE_MAX - 1);
    policy_print(policy, &text);
    if (bytes_finish(&text) == 0)
        view = view_escaped((const char *)text.data);
    bytes_deinit(&text);
    return view;
}

/* `curl -d @FILE` takes the line feeds out, and what is left has errors where nobody wrote any. */
static json_t *view_hint(const struct control_call *call, const struct policy_source *source,
                         bool is_ok)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = http_content_type(call->request);

    if (is_ok || !type || strncasecmp(type, form, sizeof form - 1) != 0 ||
        memchr(source->bytes, '\n', source->length))
        return json_null();
    return json_string("there is no line feed in the body: curl -d takes them out of a file, "
                       "--data-binary does not");
}

void control_check_policy(struct control_call *call)
{
    static const char *const keys[] = {"name"};
    /* Nothing is looked up: neither a name, which could take long, nor a file. */
    const struct policy_host host = {.may_kill = true, .has_peer_pidfd = true};
    struct policy_source source = {.name = "policy.yaml"};
    struct policy_problems problems;
    struct policy *policy = NULL;
    const char *name;
    json_t *view;

    if (!control_read_query(call, keys, 1, &name))
        return;
    if (name)
        source.name = name;
    source.bytes = http_body(call->request, &source.length);
    if (policy_read(&source, 1, &host, &policy, &problems) != 0)
        return;
    view = json_object();
    view_put(&view, "ok", json_boolean(policy != NULL));
    put_problems(&view, &problems);
    view_put(&view, "canonical", policy ? view_canonical(policy) : json_null());
    view_put(&view, "hash", policy ? json_string(policy->hash) : json_null());
    view_put(&view, "hint", view_hint(call, &source, policy != NULL));
    http_answer_json(call->request, 200, view);
    policy_unref(policy);
    policy_problems_deinit(&problems);
}

/* Reloading. */

void control_reload(struct control_call *call)
{
    const struct control_options *options = &call->control->options;
    struct control_verdict verdict = {.is_done = false};
    json_t *view, *body;

    if (!control_read_query(call, NULL, 0, NULL) || !control_read_body(call, NULL, 0, &body))
        return;
    json_decref(body);
    if (options->is_stopping(options->context)) {
        control_tell(call, NULL, "refused", "the daemon is stopping");
        http_problem(call->request, 503, NULL, "the daemon is stopping");
        return;
    }
    options->reload(options->context, &verdict);
    control_tell(call, NULL, verdict.is_done ? "done" : "refused", NULL);
    view = json_object();
    view_put(&view, "ok", json_boolean(verdict.is_done));
    view_put(&view, "why", verdict.why ? view_text(verdict.why) : json_null());
    view_put(&view, "policy",
             view_policy(broker_policy(options->broker), options->reloads->origin,
                         options->reloads->loaded_at));
    put_problems(&view, &verdict.problems);
    http_answer_json(call->request, 200, view);
    control_verdict_deinit(&verdict);
}
