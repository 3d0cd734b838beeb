/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The routes of the control interface, and who may take them. What is not in
 * the table is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct control_call;
struct http_peer;
struct policy_control;

enum control_right { CONTROL_READ, CONTROL_ADMIN };

struct control_route {
    const char *method;
    const char *path;         /* one "{id}" stands for anything but "/" */
    enum control_right right; /* that it needs */
    const char *what;         /* what is told when it is taken; NULL for what changes nothing */
    void (*answer)(struct control_call *call);
};

enum control_found {
    ROUTE_FOUND,
    ROUTE_NONE,
    ROUTE_OTHER_METHODS, /* `*ret_methods` says which, for the header Allow */
};

/* `*ret_id` points into `path`, NULL when the route has no id. */
enum control_found control_route_find(const char *method, const char *path,
                                      const struct control_route **ret_route, const char **ret_id,
                                      size_t *ret_id_length, const char **ret_methods);

/* True when the policy gives that right to the peer; `admin` includes `read`. */
bool control_route_allows(const struct policy_control *policy, const struct http_peer *peer,
                          enum control_right right);

/* The table, for tests: the route of that place, NULL at its end. */
const struct control_route *control_route_get(size_t place);
