/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/control_core.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "lib/policy.h"

enum {
    /* One user's tools and a few followers; nobody can take all places. */
    CONNECTIONS_PER_USER = 16,
    /* One in so many of all places is for root: an operator gets in whatever others do. */
    SHARE_FOR_ROOT = 8,
    ACCEPTS_PER_TURN = 16,
    /* The kernel allows no process more supplementary groups. */
    GROUPS_MAX = 65536,
};

#define RETRY_TIME span_from_ms(100)

static int explain(int error, char **ret_why, const char *format, ...) PRINTF_LIKE(3, 4);

static int explain(int error, char **ret_why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(ret_why, format, arguments) < 0)
        *ret_why = NULL;
    va_end(arguments);
    return error;
}

void control_verdict_deinit(struct control_verdict *verdict)
{
    free(verdict->why);
    policy_problems_deinit(&verdict->problems);
    *verdict = (struct control_verdict){.is_done = false};
}

/* Life. */

struct control *control_new(const struct control_options *options)
{
    struct control *control = calloc(1, sizeof *control);
    struct http_options http = {
        .loop = options->loop,
        .n_connections_max = options->n_connections_max,
        .begin = control_begin,
        .handle = control_handle,
        .context = control,
    };

    if (!control)
        return NULL;
    control->options = *options;
    control->started_at = clock_now();
    control->retry = MOMENT_NEVER;
    control->socket = (struct listener_socket){.fd = -1, .lock = -1};
    control->http = http_new(&http);
    return control->http ? control : control_free(control);
}

struct control *control_free(struct control *control)
{
    if (!control)
        return NULL;
    loop_watch_free(control->watch);
    if (control->is_open)
        listener_close(&control->socket);
    http_free(control->http);
    policy_unref(control->policy);
    policy_unref(control->staged);
    free(control);
    return NULL;
}

bool control_is_master(uint32_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Accepting. */

static void on_arrival(void *context)
{
    struct control *control = context;

    /* The socket stays readable until control_run has accepted. */
    loop_watch_pause(control->watch);
    control->wants_accept = true;
}

static bool take_groups(int fd, struct http_peer *peer)
{
    socklen_t size = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0)
        return true;
    if (errno != ERANGE || size > GROUPS_MAX * sizeof *peer->groups)
        return false;
    peer->groups = malloc(size);
    if (!peer->groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer->groups, &size) != 0) {
        free(peer->groups);
        return false;
    }
    peer->n_groups = size / sizeof *peer->groups;
    return true;
}

static bool take_peer(int fd, struct http_peer *ret_peer)
{
    struct ucred credentials;
    socklen_t size = sizeof credentials;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
        return false;
    *ret_peer = (struct http_peer){
        .pid = credentials.pid,
        .uid = credentials.uid,
        .gid = credentials.gid,
    };
    return take_groups(fd, ret_peer);
}

/* Why nobody more may come from there; NULL when somebody may. */
static const char *over_limit(const struct control *control, uint32_t uid)
{
    bool is_master = control_is_master(uid);
    size_t places = control->options.n_connections_max;

    if (!is_master)
        places -= places / SHARE_FOR_ROOT;
    if (http_count(control->http) >= places)
        return "there are too many connections";
    if (!is_master && http_count_user(control->http, uid) >= CONNECTIONS_PER_USER)
        return "there are too many connections of this user";
    return NULL;
}

/* What it has sent already is read, so that the answer is not lost with it. */
static void turn_away(int fd, const char *why)
{
    char buffer[4096];

    http_refuse(fd, 503, why);
    (void)!recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    close(fd);
}

static void take_in(struct control *control, int fd)
{
    struct http_peer peer;
    const char *why;

    if (!take_peer(fd, &peer)) {
        close(fd);
        return;
    }
    why = over_limit(control, peer.uid);
    if (why) {
        turn_away(fd, why);
        free(peer.groups);
    } else if (!http_add(control->http, fd, &peer)) {
        log_error("memory ran out for a control connection");
    }
}

static bool watch(struct control *control)
{
    control->watch = loop_watch_new(control->options.loop, control->socket.fd, on_arrival, control);
    return control->watch;
}

static void accept_clients(struct control *control, struct moment now)
{
    control->wants_accept = false;
    control->retry = MOMENT_NEVER;
    if (!control->watch)
        watch(control);
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(control->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take_in(control, fd);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            /* Who waits there stays readable, and would be tried without end. */
            control->retry = moment_after(now, RETRY_TIME);
            return;
        }
    }
    if (!control->watch || !loop_watch_go_on(control->watch))
        control->retry = moment_after(now, RETRY_TIME);
}

/* The socket. */

static struct listener_rights rights_of(const struct policy *policy)
{
    return (struct listener_rights){.mode = policy->control.mode,
                                    .owner = policy->control.owner,
                                    .group = policy->control.group};
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool have_same_rights(const struct policy *a, const struct policy *b)
{
    return a->control.mode == b->control.mode && same_text(a->control.owner, b->control.owner) &&
           same_text(a->control.group, b->control.group);
}

int control_open(struct control *control, struct policy *policy, int passed, char **ret_why)
{
    struct listener_rights rights = rights_of(policy);
    const char *path = policy->control.path;
    char *why = NULL;
    int error;

    *ret_why = NULL;
    control->policy = policy_ref(policy);
    if (!path && passed < 0) {
        log_notice("the policy has no control.path: there is no control socket");
        return 0;
    }
    control->was_passed_in = passed >= 0;
    error = passed >= 0 ? listener_adopt(passed, path, &control->socket, &why)
                        : listener_make(path, &rights, &control->socket, &why);
    if (error != 0) {
        explain(error, ret_why, "the control socket cannot be opened: %s",
                why ? why : strerror(-error));
        free(why);
        return error;
    }
    control->is_open = true;
    if (!watch(control))
        return explain(-ENOMEM, ret_why, "memory ran out for the control socket");
    log_info("control socket %s%s", path ? path : "passed in",
             path && control->was_passed_in ? ", passed in" : "");
    return 0;
}

void control_keep_folder(struct control *control)
{
    control->socket.has_made_folder = false;
}

bool control_look(struct control *control, char **ret_why)
{
    bool was_missing = control->is_missing;

    *ret_why = NULL;
    control->is_missing = !listener_is_in_place(&control->socket);
    if (!control->is_missing)
        return true;
    /* Its unit cannot be started while the service runs, which restarts with its other socket. */
    *ret_why = listener_explain(&control->socket, "the control interface",
                                "diagportd.socket diagportd-control.socket");
    if (!was_missing)
        log_error("%s", *ret_why ? *ret_why : "memory ran out for telling what is wrong with it");
    return false;
}

void control_repair(struct control *control)
{
    struct listener_rights rights = rights_of(control->policy);
    char *why = NULL;
    int old;

    if (control->was_passed_in || listener_is_in_place(&control->socket))
        return;
    if (listener_make_anew(&control->socket, &rights, &old, &why) != 0) {
        log_error("there is still no control socket: %s", why ? why : "memory ran out");
    } else {
        /* The next turn accepts; where there is no memory to watch it, one after that. */
        control->watch = loop_watch_free(control->watch);
        control->wants_accept = true;
        close(old);
        log_info("control socket %s", control->socket.path);
    }
    free(why);
}

int control_stage(struct control *control, struct policy *policy, char **ret_why)
{
    struct listener_rights rights = rights_of(policy);
    char *why = NULL;
    int error;

    *ret_why = NULL;
    if (!same_text(control->policy->control.path, policy->control.path))
        return explain(-EINVAL, ret_why,
                       "control.path cannot be changed by a reload (it is %s); restart the daemon",
                       control->policy->control.path ? control->policy->control.path : "not set");
    if (control->is_open && !control->was_passed_in && !have_same_rights(control->policy, policy)) {
        error = listener_set_rights(&control->socket, &rights, &why);
        if (error != 0) {
            explain(error, ret_why,
                    "mode, owner and group of the control socket cannot be changed: %s",
                    why ? why : strerror(-error));
            free(why);
            return error;
        }
    }
    control->staged = policy_ref(policy);
    return 0;
}

void control_commit(struct control *control)
{
    policy_unref(control->policy);
    control->policy = util_take(&control->staged);
}

void control_abandon(struct control *control)
{
    struct listener_rights rights = rights_of(control->policy);
    char *why = NULL;

    if (!control->staged)
        return;
    if (control->is_open && !control->was_passed_in &&
        !have_same_rights(control->policy, control->staged) &&
        listener_set_rights(&control->socket, &rights, &why) != 0)
        log_error("the control socket keeps new rights: %s", why ? why : "memory ran out");
    free(why);
    control->staged = policy_unref(control->staged);
}

/* Turns. */

struct moment control_next(const struct control *control, struct moment now)
{
    if (control->wants_accept)
        return now;
    return moment_earlier(control->retry, http_next(control->http, now));
}

void control_run(struct control *control, struct moment now)
{
    if (control->wants_accept || moment_is_due(control->retry, now))
        accept_clients(control, now);
    http_run(control->http, now);
}
