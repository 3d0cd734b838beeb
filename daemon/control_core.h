/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rooms of the control interface share.
 *
 * control.c           the socket: who may connect, and how many
 * control_route.c     the table of routes, rights, and one call
 * control_status.c    status, probes, metrics
 * control_runtimes.c  runtimes: a list, one, what operators do to them
 * control_attach.c    profilers that operators have loaded into those that run
 * control_policy.c    rules, checks, reload
 * control_explain.c   which rule a process gets
 * control_events.c    what happened, and who follows it
 */

#include <jansson.h>

#include "daemon/control.h"
#include "daemon/http.h"
#include "daemon/listener.h"
#include "daemon/ration.h"

struct control_route;

struct control {
    struct control_options options;
    struct moment started_at;
    struct http *http;
    struct listener_socket socket;
    bool is_open;
    bool was_passed_in;
    bool is_missing; /* the last look found that its file was removed or replaced; it was told */
    struct policy *policy; /* whose path, mode, owner and group the socket has */
    struct policy *staged; /* whose it is to have */
    struct loop_watch *watch;
    bool wants_accept;
    struct moment retry; /* the system had no descriptor to give */
    size_t n_followers;
    size_t n_limited_followers; /* all but root's */
    struct ration denied;       /* calls that were denied, and may be told of since then */
    struct moment denied_since;
};

/* One request on its way to an answer. */
struct control_call {
    struct control *control;
    struct http_request *request;
    const struct control_route *route;
    const char *id; /* what the path has in the place of {id}; NULL when it has none */
    struct moment now;
    bool was_told; /* what came of it */
};

/* control.c */

/* Root, and the user that the daemon itself runs as. */
bool control_is_master(uint32_t uid);

/* control_route.c */

/* For http.h: refuses what must not be done, and does what may. */
void control_begin(void *control, struct http_request *request);
void control_handle(void *control, struct http_request *request);

/* Reads the query: each of the `n_keys` once at most, and no other. False when it is answered that
 * this is not so. `values` is NULL where there is none. */
bool control_read_query(struct control_call *call, const char *const *keys, size_t n_keys,
                        const char **values) MUST_CHECK;

/* Reads a body that is a JSON object of at most these keys; no body is an empty one. False when it
 * is answered that this is not so. */
bool control_read_body(struct control_call *call, const char *const *keys, size_t n_keys,
                       json_t **ret_body) MUST_CHECK;

/* Tells everybody what was asked for, and what came of it; `runtime` may be NULL. `result` and
 * `why` are constants. */
void control_tell(struct control_call *call, const struct runtime *runtime, const char *result,
                  const char *why);

/* Tells everybody that what was asked for is not done, and answers it. */
void control_refuse(struct control_call *call, const struct runtime *runtime, unsigned status,
                    const char *why);

/* Answers that there is no such runtime, or more than one; false then. */
bool control_find(struct control_call *call, struct runtime **ret_runtime) MUST_CHECK;

/* The rest. Each answers one route; when memory is out, it does not. */

void control_show_status(struct control_call *call);
void control_show_health(struct control_call *call);
void control_show_readiness(struct control_call *call);
void control_show_metrics(struct control_call *call);
void control_list_runtimes(struct control_call *call);
void control_show_runtime(struct control_call *call);
void control_resume(struct control_call *call);
void control_hold(struct control_call *call);
void control_kill(struct control_call *call);
void control_attach(struct control_call *call);
void control_list_rules(struct control_call *call);
void control_explain(struct control_call *call);
void control_check_policy(struct control_call *call);
void control_reload(struct control_call *call);
void control_list_events(struct control_call *call);
