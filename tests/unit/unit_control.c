/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_control.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/control.h"
#include "daemon/facts.h"
#include "daemon/handle.h"
#include "daemon/http.h"
#include "daemon/log.h"
#include "daemon/notices.h"
#include "daemon/ports.h"
#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/policy.h"
#include "tests/sim/world.h"
#include "tests/unit/unit_memory.h"

enum { PAIRS_MAX = 16, CHUNKS_MAX = 1000 };

static const char policy[] =
    "version: 1\n"
    "listen: [ { name: runtime, path: /run/diagport/runtime.sock } ]\n"
    "control: { path: /run/diagport/control.sock, read: { users: [\"1001\"] },\n"
    "  admin: { users: [\"1002\"] } }\n"
    "defaults: { hold_limit: 10m }\n"
    "rules:\n"
    "  - { name: left, match: { exe: /app/left }, ignore: true }\n"
    "  - { name: few, match: { exe: /app/few }, env: { A: \"1\" } }\n"
    "  - { name: plan, match: { args: \"*x*\" }, env: { A: \"1\" },\n"
    "      profilers: [ { clsid: cf0d821e-299b-5307-a3d8-b283c03916dd, path: /opt/p.so } ],\n"
    "      startup_hooks: [ { path: /opt/a.dll } ] }\n";

static struct world *world;

static void must(bool holds, const char *what)
{
    if (!holds)
        world_fail("control: %s", what);
}

/* HTTP. */

/* The one server there is. */
struct http {
    struct http_options options;
};

static struct http server;

struct http_request {
    char *method;
    char *path;
    char *body;
    size_t body_length;
    struct http_peer peer;
    struct http_pair query[PAIRS_MAX];
    size_t n_query;
    unsigned status; /* of the answer; 0: there was none yet */
};

struct http *http_new(const struct http_options *options)
{
    server.options = *options;
    return &server;
}

struct http *http_free(struct http *http)
{
    (void)http;
    return NULL;
}

bool http_add(struct http *http, int fd, struct http_peer *peer)
{
    (void)http;
    (void)fd;
    (void)peer;
    return false;
}

size_t http_count(const struct http *http)
{
    (void)http;
    return 1;
}

size_t http_count_user(const struct http *http, uint32_t uid)
{
    (void)http;
    (void)uid;
    return 1;
}

struct moment http_next(const struct http *http, struct moment now)
{
    (void)http;
    return now;
}

void http_run(struct http *http, struct moment now)
{
    (void)http;
    (void)now;
}

void http_refuse(int fd, unsigned status, const char *detail)
{
    (void)fd;
    (void)status;
    (void)detail;
}

const char *http_method(const struct http_request *request)
{
    return request->method;
}

const char *http_path(const struct http_request *request)
{
    return request->path;
}

const struct http_peer *http_peer(const struct http_request *request)
{
    return &request->peer;
}

const char *http_body(const struct http_request *request, size_t *ret_length)
{
    *ret_length = request->body_length;
    return request->body;
}

const char *http_content_type(const struct http_request *request)
{
    return request->body_length % 2 ? "application/x-www-form-urlencoded" : NULL;
}

const struct http_pair *http_query(const struct http_request *request, size_t *ret_n)
{
    *ret_n = request->n_query;
    return request->query;
}

static void take_answer(struct http_request *request, unsigned status)
{
    FUZZ_HOLDS(request->status == 0);
    FUZZ_HOLDS(status >= 200 && status <= 599 && status != 500);
    request->status = status;
}

static void check_json(const char *text, size_t length)
{
    json_error_t error;
    json_t *value = json_loadb(text, length, 0, &error);

    FUZZ_HOLDS(value);
    json_decref(value);
}

void http_answer(struct http_request *request, unsigned status, const char *type, char *text,
                 size_t length)
{
    FUZZ_HOLDS(text && type && strlen(text) == length);
    take_answer(request, status);
    free(text);
}

void http_answer_json(struct http_request *request, unsigned status, json_t *value)
{
    char *text = json_dumps(value, 0);

    FUZZ_HOLDS(text);
    check_json(text, strlen(text));
    take_answer(request, status);
    json_decref(value);
    free(text);
}

void http_problem(struct http_request *request, unsigned status, json_t *members,
                  const char *format, ...)
{
    va_list arguments;
    json_t *detail;

    va_start(arguments, format);
    detail = json_vsprintf(format, arguments);
    va_end(arguments);
    FUZZ_HOLDS(detail && status >= 400);
    json_decref(detail);
    json_decref(members);
    take_answer(request, status);
}

/* Lists are one value, events one in each line. */
static void check_stream(const char *type, const struct bytes *all)
{
    struct fuzz_input lines = {all->data, all->length};

    if (strcmp(type, "application/json") == 0) {
        check_json((const char *)all->data, all->length);
        return;
    }
    while (lines.left > 0) {
        struct fuzz_input line = fuzz_take_until(&lines, '\n');

        check_json((const char *)line.at, line.left);
    }
}

void http_answer_stream(struct http_request *request, const char *type,
                        const struct http_stream *stream)
{
    enum http_more more = HTTP_MORE;
    struct bytes all;

    bytes_init(&all, SIZE_MAX - 1);
    for (unsigned n = 0; more == HTTP_MORE; n++) {
        struct bytes chunk;

        FUZZ_HOLDS(n < CHUNKS_MAX);
        bytes_init(&chunk, SIZE_MAX - 1);
        more = stream->more(stream->context, &chunk);
        bytes_put_run(&all, chunk.data, chunk.length);
        bytes_deinit(&chunk);
    }
    FUZZ_HOLDS(more == HTTP_END || more == HTTP_WAIT);
    (void)stream->next(stream->context);
    FUZZ_HOLDS(bytes_finish(&all) == 0);
    check_stream(type, &all);
    bytes_deinit(&all);
    stream->free(stream->context);
    take_answer(request, 200);
}

void http_allow(struct http_request *request, const char *methods)
{
    FUZZ_HOLDS(request->status == 0 && methods);
}

/* The rest of the shell. */

struct moment clock_now(void)
{
    return world->now;
}

struct span clock_since_boot(void)
{
    return span_from_us(world->now.us);
}

double clock_calendar(struct moment moment)
{
    return (double)moment.us / 1e6;
}

void log_open(void)
{
}

void log_write(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

int handle_of_pid(pid_t pid)
{
    (void)pid;
    return -1;
}

struct facts *facts_look(const struct action_question *question, int pidfd)
{
    (void)pidfd;
    for (size_t i = 0; i < world->n_processes; i++) {
        if (world->processes[i].pid == question->pid)
            return world_look(&world->processes[i], question, world->now);
    }
    return facts_new(question->wanted, 3);
}

/* The daemon. */

struct daemon {
    struct control *control;
    struct policy *policy; /* without a socket to open */
    struct notices *notices;
    struct ports *ports;
    struct control_reloads reloads;
};

static void settle(void *context)
{
    (void)context;
    world_settle(world);
}

static void tell(void *context, struct notice *notice)
{
    struct daemon *daemon = context;

    notices_take(daemon->notices, notice);
}

static void reload(void *context, struct control_verdict *ret_verdict)
{
    struct daemon *daemon = context;

    *ret_verdict = (struct control_verdict){.is_done = world_set_policy(world, policy)};
    daemon->reloads.n_done++;
    daemon->reloads.last_at = world->now;
}

static bool is_stopping(void *context)
{
    const struct daemon *daemon = context;

    return daemon->reloads.n_done > 1;
}

/* One is held, one applies, one runs, one is left alone and one is dead. */
static void add_runtimes(void)
{
    static const char *const exes[] = {"/app/few", "/app/few", "/app/few", "/app/left", NULL};
    static const char *const cookies[] = {"aaaa0001", "aaaa0002", "bbbb0003", "cccc0004",
                                          "dddd0005"};
    static const uint32_t port[] = {0};
    struct runtime *held;

    for (size_t i = 0; i < ARRAY_LENGTH(exes); i++) {
        struct world_process *process =
            world_process(world, exes[i],
                          "DOTNET_DiagnosticPorts=/run/diagport/runtime.sock\0A=b\0");

        process->arguments = "/app/few\0-x\0";
        world_start(world_runtime(world, process, cookies[i], port, 1));
        if (i == 0 && broker_find(world->broker, cookies[i], &held) == BROKER_FOUND_ONE)
            (void)broker_hold(held, span_from_s(60), world->now);
        world_settle(world);
        if (i != 1)
            world_serve(world);
        if (i == 4)
            world_kill(world, process);
    }
}

static void begin(struct daemon *daemon)
{
    struct control_options options = {
        .reloads = &daemon->reloads,
        .trust = BROKER_TRUSTS_RECORDS,
        .usable_descriptors = 1000,
        .may_kill = true,
        .settle = settle,
        .tell = tell,
        .reload = reload,
        .is_stopping = is_stopping,
        .context = daemon,
    };
    char *why;

    world = world_new(policy);
    add_runtimes();
    *daemon = (struct daemon){.reloads = {.last_at = MOMENT_NEVER}};
    options.broker = world->broker;
    options.ports = daemon->ports = ports_new(NULL, world->broker, NULL);
    options.notices = daemon->notices = notices_new();
    FUZZ_HOLDS(options.ports && options.notices);
    daemon->control = control_new(&options);
    daemon->policy = policy_new();
    FUZZ_HOLDS(daemon->control && daemon->policy);
    FUZZ_HOLDS(control_open(daemon->control, daemon->policy, -1, &why) == 0);
}

static void end(struct daemon *daemon)
{
    control_free(daemon->control);
    policy_unref(daemon->policy);
    ports_free(daemon->ports);
    notices_free(daemon->notices);
    world_free(world);
}

