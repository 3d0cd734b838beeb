/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Routes and rights: every row is found by its path and no other, the manual
 * says the same, and rights are what the policy gives.
 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control_route.h"
#include "daemon/http.h"
#include "lib/policy.h"

static enum control_found find(const char *method, const char *path,
                               const struct control_route **ret_route, char *ret_id)
{
    const char *id = NULL, *methods = NULL;
    size_t length = 0;
    enum control_found found = control_route_find(method, path, ret_route, &id, &length, &methods);

    if (found == ROUTE_OTHER_METHODS)
        ck_assert_ptr_nonnull(methods);
    snprintf(ret_id, 64, "%.*s", (int)length, id ? id : "");
    return found;
}

/* The path of a route with that in the place of {id}. */
static const char *path_with(const struct control_route *route, const char *id)
{
    static char path[128];
    const char *brace = strchr(route->path, '{');
    int length = brace ? (int)(brace - route->path) : (int)strlen(route->path);

    snprintf(path, sizeof path, "%.*s%s%s", length, route->path, brace ? id : "",
             brace ? strchr(brace, '}') + 1 : "");
    return path;
}

START_TEST(every_row_is_found)
{
    size_t n = 0;

    for (; control_route_get(n); n++) {
        const struct control_route *row = control_route_get(n), *found = NULL;
        bool has_id = strchr(row->path, '{');
        char id[64];

        ck_assert_int_eq(find(row->method, path_with(row, "pid:1"), &found, id), ROUTE_FOUND);
        ck_assert_ptr_eq(found, row);
        ck_assert_str_eq(id, has_id ? "pid:1" : "");
        ck_assert_int_eq(find("BREW", path_with(row, "x"), &found, id), ROUTE_OTHER_METHODS);
        if (strcmp(row->method, "GET") == 0)
            ck_assert_int_eq(find("HEAD", path_with(row, "x"), &found, id), ROUTE_FOUND);
        if (has_id)
            ck_assert_int_eq(find(row->method, path_with(row, ""), &found, id), ROUTE_NONE);
        /* Only what changes nothing may be had for the lesser right, and what changes is told. */
        ck_assert_int_eq(row->right == CONTROL_ADMIN, row->what != NULL);
    }
    ck_assert_uint_eq(n, 15);
}
END_TEST

START_TEST(nothing_else_is_found)
{
    static const char *const paths[] = {
        "",
        "/",
        "/v1",
        "/v1/",
        "/v1/statu",
        "/v1/status/",
        "/v1/status/x",
        "//v1/status",
        "/V1/status",
        "/v1/runtimes/",
        "/v1/runtimes//resume",
        "/v1/runtimes/a/",
        "/v1/runtimes/a/b",
        "/v1/runtimes/a/resume/",
        "/v1/runtimes/a/b/resume",
        "/v1/pause",
        "/v1/rules/a/reset",
        "/metrics/",
        "*",
    };
    const struct control_route *route;
    char id[64];

    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        ck_assert_msg(find("GET", paths[i], &route, id) == ROUTE_NONE, "%s", paths[i]);
        ck_assert_msg(find("POST", paths[i], &route, id) == ROUTE_NONE, "%s", paths[i]);
    }
}
END_TEST

START_TEST(the_manual_has_every_row)
{
    static char manual[128 * 1024];
    FILE *file = fopen(MANUAL, "re");

    ck_assert_ptr_nonnull(file);
    manual[fread(manual, 1, sizeof manual - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; control_route_get(i); i++) {
        const struct control_route *row = control_route_get(i);
        const char *right = row->right == CONTROL_ADMIN ? "admin" : "read";
        char cell[128], *line;

        snprintf(cell, sizeof cell, "`%s %s`", row->method, row->path);
        line = strstr(manual, cell);
        ck_assert_msg(line != NULL, "%s", cell);
        ck_assert_msg(strncmp(strchr(line, '|') + 2, right, strlen(right)) == 0, "%s", cell);
    }
}
END_TEST

START_TEST(rights)
{
    uint32_t reader[] = {10}, readers[] = {20, 21}, admins[] = {30};
    uint32_t both[] = {7, 21}, other[] = {7, 30};
    const struct policy_control policy = {
        .read = {.users = reader, .n_users = 1, .groups = readers, .n_groups = 2},
        .admin = {.groups = admins, .n_groups = 1},
    };
    const struct policy_control nobody = {.path = NULL};
    const struct {
        struct http_peer peer;
        bool reads, administers;
    } cases[] = {
        {{.uid = 11, .gid = 11}, false, false},
        {{.uid = 10, .gid = 11}, true, false},
        {{.uid = 20, .gid = 11}, false, false},
        {{.uid = 11, .gid = 20}, true, false},
        {{.uid = 11, .gid = 10}, false, false},
        {{.uid = 11, .gid = 11, .groups = both, .n_groups = 2}, true, false},
        {{.uid = 11, .gid = 11, .groups = both, .n_groups = 1}, false, false},
        {{.uid = 11, .gid = 30}, true, true},
        {{.uid = 11, .gid = 11, .groups = other, .n_groups = 2}, true, true},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const struct http_peer *peer = &cases[i].peer;

        ck_assert_int_eq(control_route_allows(&policy, peer, CONTROL_READ), cases[i].reads);
        ck_assert_int_eq(control_route_allows(&policy, peer, CONTROL_ADMIN), cases[i].administers);
        ck_assert(!control_route_allows(&nobody, peer, CONTROL_READ));
    }
}
END_TEST

UNIT_TESTS(every_row_is_found, nothing_else_is_found, the_manual_has_every_row, rights);
