/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/clock.h"
#include "daemon/http_core.h"
#include "daemon/loop.h"

/* For a whole request, however it trickles in. */
#define REQUEST_TIME span_from_s(10)

enum {
    /* Head, query and the headers of the answer of one connection. */
    CONNECTION_MEMORY = 32 * 1024,
    /* An answer of which nobody takes anything; longer than REQUEST_TIME, which is to come first.
     */
    ANSWER_TIME_S = 15,
    /* At the end, for what is ready to go out. */
    LAST_RUNS = 16,
};

struct http {
    struct http_options options;
    struct MHD_Daemon *server;
    struct loop_watch *watch;
    TAILQ_HEAD(, http_client) clients;
    size_t n_clients;
    struct http_client *arriving; /* while libmicrohttpd takes it over */
    struct http_client *turn;     /* the one that waited for this run */
    uint64_t n_places;
    bool wants_run;
    bool has_handled; /* a request, in this run */
    bool is_ending;
};

/* Waiting. */

static void on_hang_up(void *context)
{
    struct http_client *client = context;
    struct pollfd state = {.fd = client->fd};

    /* What it sends meanwhile is read later. */
    loop_watch_pause(client->watch);
    if (poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR))) {
        client->has_hung_up = true;
        client->http->wants_run = true;
    }
}

void client_queue(struct http_client *client)
{
    client->pause = HTTP_AWAITS_TURN;
    client->place = ++client->http->n_places;
}

void client_pause(struct http_client *client, enum http_pause pause)
{
    struct http *http = client->http;

    client->pause = pause;
    MHD_suspend_connection(client->connection);
    if (pause == HTTP_AWAITS_TURN)
        client_queue(client);
    /* Without memory for it, hanging up shows when something is sent. */
    if (pause == HTTP_AWAITS_STREAM)
        client->watch = loop_watch_new(http->options.loop, client->fd, on_hang_up, client);
}

static void go_on(struct http_client *client)
{
    client->watch = loop_watch_free(client->watch);
    client->pause = HTTP_RUNS;
    MHD_resume_connection(client->connection);
}

bool client_must_end(const struct http_client *client)
{
    return client->http->is_ending;
}

/* What libmicrohttpd tells. */

static struct http_client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info->socket_context;
}

static struct http_client *free_client(struct http_client *client)
{
    loop_watch_free(client->watch);
    free(client->peer.groups);
    free(client);
    return NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **place,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *http = context;
    struct http_client *client = *place;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        client = util_take(&http->arriving);
        client->connection = connection;
        *place = client;
        TAILQ_INSERT_TAIL(&http->clients, client, link);
        http->n_clients++;
        return;
    }
    TAILQ_REMOVE(&http->clients, client, link);
    http->n_clients--;
    if (http->turn == client)
        http->turn = NULL;
    *place = free_client(client);
}

static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct http_client *client = client_of(connection);

    (void)context;
    client->request = target ? request_new(client, target) : NULL;
    return client->request;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **place,
                         enum MHD_RequestTerminationCode code)
{
    struct http_client *client = client_of(connection);

    (void)context;
    (void)code;
    client->request = request_free(client->request);
    *place = NULL;
    client->deadline = moment_after(clock_now(), REQUEST_TIME);
    if (client->has_patience)
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  (unsigned)ANSWER_TIME_S);
    client->has_patience = false;
}

static bool expects_to_be_told(struct MHD_Connection *connection)
{
    const char *expect =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);

    return expect && strcasecmp(expect, "100-continue") == 0;
}

static enum MHD_Result begin(struct http *http, struct http_request *request, const char *method)
{
    request->has_begun = true;
    request->method = strdup(method);
    if (!request->method)
        return MHD_NO;
    request_check_head(request);
    if (request->status == 0)
        http->options.begin(http->options.context, request);
    /* Who waits for leave to send a body is told at once; who sends it reads no answer before. */
    if (request->status != 0 && expects_to_be_told(request->client->connection))
        return request_send(request);
    return MHD_YES;
}

/* One request a run: whoever runs the loop has better things to do than to serve us. */
static bool has_turn(struct http *http, const struct http_client *client)
{
    return !http->has_handled && (!http->turn || http->turn == client);
}

static enum MHD_Result handle(struct http *http, struct http_request *request)
{
    struct http_client *client = request->client;

    client->deadline = MOMENT_NEVER;
    if (request->status == 0 && http->is_ending) {
        http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "the daemon is stopping");
    } else if (request->status == 0) {
        if (!has_turn(http, client)) {
            client_pause(client, HTTP_AWAITS_TURN);
            return MHD_YES;
        }
        http->has_handled = true;
        http->turn = NULL;
        http->options.handle(http->options.context, request);
        if (request->is_put_off) {
            client_pause(client, HTTP_AWAITS_CALL);
            return MHD_YES;
        }
    }
    return request_send(request);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *target, const char *method, const char *version,
                                  const char *data, size_t *size, void **place)
{
    struct http_request *request = *place;
    struct http *http = context;

    (void)connection;
    (void)target;
    (void)version;
    if (!request)
        return MHD_NO;
    if (!request->has_begun)
        return begin(http, request, method);
    if (*size > 0) {
        bool is_taken = request_take_body(request, data, *size);

        *size = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    return handle(http, request);
}

/* Life. */

static void on_ready(void *context)
{
    struct http *http = context;

    /* The descriptor stays readable until http_run has looked. */
    loop_watch_pause(http->watch);
    http->wants_run = true;
}

static struct MHD_Daemon *start_server(struct http *http)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                            NULL, NULL, on_request, http, MHD_OPTION_CONNECTION_LIMIT,
                            http->options.n_connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)ANSWER_TIME_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                            http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
                            MHD_OPTION_URI_LOG_CALLBACK, on_target, http,
                            MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
                            MHD_OPTION_END);
}

struct http *http_new(const struct http_options *options)
{
    struct http *http = calloc(1, sizeof *http);
    const union MHD_DaemonInfo *info;

    if (!http)
        return NULL;
    http->options = *options;
    TAILQ_INIT(&http->clients);
    http->server = start_server(http);
    info = http->server ? MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info)
        http->watch = loop_watch_new(options->loop, info->epoll_fd, on_ready, http);
    return http->watch ? http : http_free(http);
}

/* Streams end in good order, as far as their clients take it at once. */
static void end_all(struct http *http)
{
    struct http_client *client;

    http->is_ending = true;
    TAILQ_FOREACH(client, &http->clients, link) {
        if (client->pause != HTTP_RUNS)
            go_on(client);
    }
    for (int i = 0; i < LAST_RUNS && http->n_clients > 0; i++)
        MHD_run(http->server);
}

struct http *http_free(struct http *http)
{
    if (!http)
        return NULL;
    loop_watch_free(http->watch);
    if (http->server) {
        end_all(http);
        MHD_stop_daemon(http->server);
    }
    free(http);
    return NULL;
}

bool http_add(struct http *http, int fd, struct http_peer *peer)
{
    static const struct sockaddr_un nowhere = {.sun_family = AF_UNIX};
    struct http_client *client = calloc(1, sizeof *client);

    if (client) {
        client->http = http;
        client->fd = fd;
        client->peer = *peer;
        client->deadline = moment_after(clock_now(), REQUEST_TIME);
    } else {
        free(peer->groups);
    }
    *peer = (struct http_peer){.pid = 0};
    http->wants_run = true;
    http->arriving = client;
    /* It closes the descriptor when it cannot take it. */
    if (client && MHD_add_connection(http->server, fd, (const struct sockaddr *)&nowhere,
                                     sizeof nowhere) == MHD_YES)
        return true;
    if (http->arriving)
        free_client(util_take(&http->arriving));
    return false;
}

size_t http_count(const struct http *http)
{
    return http->n_clients;
}

size_t http_count_user(const struct http *http, uint32_t uid)
{
    const struct http_client *client;
    size_t n = 0;

    TAILQ_FOREACH(client, &http->clients, link) {
        n += client->peer.uid == uid;
    }
    return n;
}

/* Turns. */

/* When a connection needs something by itself. */
static struct moment client_next(const struct http_client *client)
{
    if (client->has_hung_up || client->pause == HTTP_AWAITS_TURN)
        return (struct moment){0};
    if (client->pause == HTTP_AWAITS_STREAM && client->sender)
        return client->sender->stream.next(client->sender->stream.context);
    return client->deadline;
}

struct moment http_next(const struct http *http, struct moment now)
{
    const struct http_client *client;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    struct moment next = MOMENT_NEVER;

    if (http->wants_run)
        return now;
    TAILQ_FOREACH(client, &http->clients, link) {
        next = moment_earlier(next, client_next(client));
    }
    if (MHD_get_timeout(http->server, &wait_ms) == MHD_YES && wait_ms < INT32_MAX)
        next = moment_earlier(next, moment_after(now, span_from_ms((int64_t)wait_ms)));
    return next;
}

/* A request that did not come in time. libmicrohttpd closes a connection whose end it sees. */
static void cut_off(struct http_client *client)
{
    client->deadline = MOMENT_NEVER;
    if (client->request && client->request->has_begun)
        http_refuse(client->fd, MHD_HTTP_REQUEST_TIMEOUT, "the request was not complete in time");
    shutdown(client->fd, SHUT_RDWR);
}

static struct http_client *first_in_queue(const struct http *http)
{
    struct http_client *client, *first = NULL;

    TAILQ_FOREACH(client, &http->clients, link) {
        if (client->pause == HTTP_AWAITS_TURN && (!first || client->place < first->place))
            first = client;
    }
    return first;
}

static void go_on_with_due(struct http *http, struct moment now)
{
    struct http_client *client;

    http->has_handled = false;
    http->turn = first_in_queue(http);
    if (http->turn)
        go_on(http->turn);
    TAILQ_FOREACH(client, &http->clients, link) {
        if (client->pause == HTTP_AWAITS_STREAM && moment_is_due(client_next(client), now))
            go_on(client);
        else if (client->pause == HTTP_RUNS && moment_is_due(client->deadline, now))
            cut_off(client);
    }
}

void http_run(struct http *http, struct moment now)
{
    if (!moment_is_due(http_next(http, now), now))
        return;
    go_on_with_due(http, now);
    http->wants_run = false;
    MHD_run(http->server);
    /* A watch that the kernel has no memory for now is tried at the next run. */
    if (!loop_watch_go_on(http->watch))
        http->wants_run = true;
}
