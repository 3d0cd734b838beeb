/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/control_route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/control_core.h"
#include "daemon/view.h"
#include "lib/notice.h"
#include "lib/policy.h"
#include "lib/runtime.h"
#include "lib/text.h"

enum {
    IDS_MAX = 20, /* that are listed when an id is not one runtime's */
    ID_MAX = 64,
};

static const struct control_route routes[] = {
    {"GET", "/v1/status", CONTROL_READ, NULL, control_show_status},
    {"GET", "/v1/runtimes", CONTROL_READ, NULL, control_list_runtimes},
    {"GET", "/v1/runtimes/{id}", CONTROL_READ, NULL, control_show_runtime},
    {"POST", "/v1/runtimes/{id}/resume", CONTROL_ADMIN, "resume", control_resume},
    {"POST", "/v1/runtimes/{id}/hold", CONTROL_ADMIN, "hold", control_hold},
    {"POST", "/v1/runtimes/{id}/kill", CONTROL_ADMIN, "kill", control_kill},
    {"POST", "/v1/runtimes/{id}/attach-profiler", CONTROL_ADMIN, "attach-profiler", control_attach},
    {"GET", "/v1/rules", CONTROL_READ, NULL, control_list_rules},
    {"POST", "/v1/explain", CONTROL_READ, NULL, control_explain},
    {"POST", "/v1/policy/check", CONTROL_READ, NULL, control_check_policy},
    {"POST", "/v1/policy/reload", CONTROL_ADMIN, "reload", control_reload},
    {"GET", "/v1/events", CONTROL_READ, NULL, control_list_events},
    {"GET", "/metrics", CONTROL_READ, NULL, control_show_metrics},
    {"GET", "/healthz", CONTROL_READ, NULL, control_show_health},
    {"GET", "/readyz", CONTROL_READ, NULL, control_show_readiness},
};

/* Routes. */

const struct control_route *control_route_get(size_t place)
{
    return place < ARRAY_LENGTH(routes) ? &routes[place] : NULL;
}

static bool fits(const char *pattern, const char *path, const char **ret_id, size_t *ret_length)
{
    const char *brace = strchr(pattern, '{');
    size_t before = brace ? (size_t)(brace - pattern) : strlen(pattern), length;

    *ret_id = NULL;
    *ret_length = 0;
    if (!brace)
        return strcmp(pattern, path) == 0;
    if (strncmp(pattern, path, before) != 0)
        return false;
    length = strcspn(path + before, "/");
    if (length == 0 || strcmp(path + before + length, strchr(brace, '}') + 1) != 0)
        return false;
    *ret_id = path + before;
    *ret_length = length;
    return true;
}

enum control_found control_route_find(const char *method, const char *path,
                                      const struct control_route **ret_route, const char **ret_id,
                                      size_t *ret_id_length, const char **ret_methods)
{
    const char *asked = strcmp(method, "HEAD") == 0 ? "GET" : method;
    enum control_found found = ROUTE_NONE;

    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++) {
        const struct control_route *route = &routes[i];

        if (!fits(route->path, path, ret_id, ret_id_length))
            continue;
        if (strcmp(route->method, asked) == 0) {
            *ret_route = route;
            return ROUTE_FOUND;
        }
        *ret_methods = strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method;
        found = ROUTE_OTHER_METHODS;
    }
    return found;
}

/* Rights. */

static bool holds(const uint32_t *list, size_t n, uint32_t wanted)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == wanted)
            return true;
    }
    return false;
}

static bool is_named(const struct policy_right *right, const struct http_peer *peer)
{
    if (holds(right->users, right->n_users, peer->uid) ||
        holds(right->groups, right->n_groups, peer->gid))
        return true;
    for (size_t i = 0; i < peer->n_groups; i++) {
        if (holds(right->groups, right->n_groups, peer->groups[i]))
            return true;
    }
    return false;
}

bool control_route_allows(const struct policy_control *policy, const struct http_peer *peer,
                          enum control_right right)
{
    return is_named(&policy->admin, peer) ||
           (right == CONTROL_READ && is_named(&policy->read, peer));
}

static bool may(const struct control_call *call)
{
    const struct http_peer *peer = http_peer(call->request);
    const struct policy *policy = broker_policy(call->control->options.broker);

    return control_is_master(peer->uid) ||
           control_route_allows(&policy->control, peer, call->route->right);
}

/* Calls. */

void control_tell(struct control_call *call, const struct runtime *runtime, const char *result,
                  const char *why)
{
    const struct control_options *options = &call->control->options;
    const struct http_peer *peer = http_peer(call->request);
    struct notice content = {
        .kind = NOTICE_ADMIN,
        .at = call->now,
        .pid = peer->pid,
        .uid = peer->uid,
        .what = call->route->what,
        .result = result,
        .why = why,
    };
    struct notice *notice;

    call->was_told = true;
    if (runtime) {
        content.has_runtime = true;
        content.cookie = runtime->cookie;
        content.start_time = runtime->start_time;
    }
    notice = notice_new(&content, NULL, NULL);
    if (notice)
        options->tell(options->context, notice);
}

/* Within bounds: nobody may push everything else out of the events, or hide who else was denied. */
static void tell_denied(struct control_call *call)
{
    struct control *control = call->control;

    if (!call->route->what)
        return;
    if (moment_is_due(moment_after(control->denied_since, span_from_s(1)), call->now)) {
        control->denied_since = call->now;
        control->denied = (struct ration){0};
    }
    if (ration_take(&control->denied, &ration_few, http_peer(call->request)->uid))
        control_tell(call, NULL, "forbidden", "the right admin is missing");
}

/* What to ask for, and for whom: the policy may name users and groups by number or name. */
static void deny(struct control_call *call)
{
    const char *right = call->route->right == CONTROL_ADMIN ? "admin" : "read";

    tell_denied(call);
    http_problem(call->request, 403, NULL,
                 "you may not %s here: the right %s is missing; ask for user %" PRIu32
                 " or one of its groups to be named in control.%s of the policy",
                 call->route->right == CONTROL_ADMIN ? "change anything" : "look", right,
                 http_peer(call->request)->uid,
                 call->route->right == CONTROL_ADMIN ? "admin" : "read or control.admin");
}

/* What cannot be done is answered; false then. */
static bool judge(struct control_call *call, char id[static ID_MAX + 1])
{
    const char *path = http_path(call->request), *method = http_method(call->request);
    const char *methods = NULL, *found_id = NULL;
    size_t length = 0;

    switch (control_route_find(method, path, &call->route, &found_id, &length, &methods)) {
    case ROUTE_NONE:
        http_problem(call->request, 404, NULL, "there is no such route");
        return false;
    case ROUTE_OTHER_METHODS:
        http_allow(call->request, methods);
        http_problem(call->request, 405, NULL, "this route is only for %s", methods);
        return false;
    case ROUTE_FOUND:
        break;
    }
    if (!may(call)) {
        deny(call);
        return false;
    }
    if (length > ID_MAX) {
        http_problem(call->request, 404, NULL, "no id of a runtime is so long");
        return false;
    }
    if (found_id) {
        memcpy(id, found_id, length);
        id[length] = '\0';
        call->id = id;
    }
    return true;
}

void control_begin(void *context, struct http_request *request)
{
    struct control *control = context;
    struct control_call call = {.control = control, .request = request, .now = clock_now()};
    char id[ID_MAX + 1];

    (void)judge(&call, id);
}

/* Judged once more: a reload may have come between the head and the rest. */
void control_handle(void *context, struct http_request *request)
{
    struct control *control = context;
    struct control_call call = {.control = control, .request = request, .now = clock_now()};
    char id[ID_MAX + 1];

    if (!judge(&call, id))
        return;
    call.route->answer(&call);
    if (call.route->what && !call.was_told)
        control_tell(&call, NULL, "refused", "the request is wrong, or there is no such runtime");
}

/* What calls have in common. */

static size_t place_of(const char *key, const char *const *keys, size_t n_keys)
{
    size_t place = 0;

    while (place < n_keys && strcmp(key, keys[place]) != 0)
        place++;
    return place;
}

/* "KEY" and what is wrong with it. */
static void refuse_key(struct control_call *call, const char *key, const char *what)
{
    char *escaped = text_escape(key, strlen(key));

    if (escaped)
        http_problem(call->request, 400, NULL, "\"%s\" %s", escaped, what);
    free(escaped);
}

bool control_read_query(struct control_call *call, const char *const *keys, size_t n_keys,
                        const char **values)
{
    size_t n_pairs;
    const struct http_pair *pairs = http_query(call->request, &n_pairs);

    for (size_t i = 0; i < n_keys; i++)
        values[i] = NULL;
    for (size_t i = 0; i < n_pairs; i++) {
        size_t place = place_of(pairs[i].key, keys, n_keys);

        if (place == n_keys) {
            refuse_key(call, pairs[i].key, "is not a query key of this route");
            return false;
        }
        if (values[place]) {
            refuse_key(call, pairs[i].key, "is there twice in the query");
            return false;
        }
        values[place] = pairs[i].value;
    }
    return true;
}

static void refuse_json(struct control_call *call, const json_error_t *error)
{
    char *escaped = text_escape(error->text, strlen(error->text));

    http_problem(call->request, 400, NULL, "the body is not JSON: line %d, column %d: %s",
                 error->line > 0 ? error->line : 1, error->column > 0 ? error->column : 1,
                 escaped ? escaped : "");
    free(escaped);
}

bool control_read_body(struct control_call *call, const char *const *keys, size_t n_keys,
                       json_t **ret_body)
{
    size_t length;
    const char *text = http_body(call->request, &length), *key;
    json_error_t error;
    json_t *body = length > 0
                       ? json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error)
                       : json_object();
    const json_t *value;

    if (!body) {
        /* Without a word it was memory that ran out. */
        if (length > 0 && error.text[0] != '\0')
            refuse_json(call, &error);
        return false;
    }
    if (!json_is_object(body)) {
        http_problem(call->request, 400, NULL, "the body has to be a JSON object");
        json_decref(body);
        return false;
    }
    json_object_foreach(body, key, value)
    {
        if (place_of(key, keys, n_keys) < n_keys)
            continue;
        refuse_key(call, key, "is not a key of the body of this route");
        json_decref(body);
        return false;
    }
    *ret_body = body;
    return true;
}

void control_refuse(struct control_call *call, const struct runtime *runtime, unsigned status,
                    const char *why)
{
    control_tell(call, runtime, "refused", why);
    http_problem(call->request, status, NULL, "%s", why);
}

/* The cookies of all that are meant. */
static json_t *view_ids(const struct control_call *call)
{
    struct runtime *list[IDS_MAX];
    size_t n = broker_find_all(call->control->options.broker, call->id, list, ARRAY_LENGTH(list));
    json_t *ids = json_array(), *members = json_object();

    for (size_t i = 0; i < n; i++)
        view_append(&ids, view_cookie(&list[i]->cookie));
    view_put(&members, "ids", ids);
    return members;
}

bool control_find(struct control_call *call, struct runtime **ret_runtime)
{
    char *escaped = text_escape(call->id, strlen(call->id));
    const char *shown = escaped ? escaped : "";
    bool is_found = false;

    switch (broker_find(call->control->options.broker, call->id, ret_runtime)) {
    case BROKER_FOUND_ONE:
        is_found = true;
        break;
    case BROKER_FOUND_NONE:
        http_problem(call->request, 404, NULL,
                     "there is no runtime \"%s\"; an id is a cookie, at least four digits of "
                     "the beginning of one, or pid:N",
                     shown);
        break;
    case BROKER_FOUND_MANY:
        http_problem(call->request, 409, view_ids(call), "\"%s\" means more than one runtime",
                     shown);
        break;
    }
    free(escaped);
    return is_found;
}
