/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_control.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/control.h"
#include "daemon/handle.h"
#include "daemon/http.h"
#include "daemon/log.h"
#include "daemon/looks.h"
#include "daemon/metrics.h"
#include "daemon/notices.h"
#include "daemon/ports.h"
#include "daemon/view.h"
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
static struct look *look_at_hand;

static void must(bool holds, const char *what)
{
    if (!holds)
        world_fail("control: %s", what);
}

/* What the world allocates does not count. */
static size_t n_allocations, fails_at;

static void count_on(void)
{
    unit_memory_watch(fails_at > n_allocations ? fails_at - n_allocations : 0);
}

static void count_no_more(void)
{
    size_t n_left;

    n_allocations += unit_memory_release(&n_left);
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
    bool is_short; /* of memory: what is missing in the answer may be */
    struct unit_answer answer;
    const char *type; /* of the answer; NULL while there is none */
    void *state;      /* that it was put off with */
    void (*free_state)(void *state);
    bool is_called_again;
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

/* Takes the text; NULL stands for memory that ran out. */
static void take_answer(struct http_request *request, unsigned status, const char *type, char *text,
                        size_t length)
{
    must(!request->type, "a request was answered twice");
    must(status >= 200 && status <= 599, "an answer has no status");
    must(text || request->is_short, "an answer has no text");
    request->type = type;
    if (!text)
        return;
    request->answer.status = status;
    request->answer.text = text;
    request->answer.length = length;
}

void http_answer(struct http_request *request, unsigned status, const char *type, char *text,
                 size_t length)
{
    take_answer(request, status, type, text, length);
}

void http_answer_json(struct http_request *request, unsigned status, json_t *value)
{
    struct bytes text;
    size_t length;

    bytes_init(&text, SIZE_MAX - 1);
    view_write(value, &text);
    length = text.length;
    take_answer(request, status, "application/json",
                bytes_finish(&text) == 0 ? (char *)bytes_take(&text) : NULL, length);
    bytes_deinit(&text);
}

void http_problem(struct http_request *request, unsigned status, json_t *members,
                  const char *format, ...)
{
    va_list arguments;
    json_t *view = json_object(), *detail;

    must(status >= 400, "a problem is none");
    va_start(arguments, format);
    detail = json_vsprintf(format, arguments);
    va_end(arguments);
    must(detail || request->is_short, "what is told of a problem is not UTF-8");
    if (json_object_set_new(view, "detail", detail) != 0) {
        json_decref(view);
        view = NULL;
    }
    json_decref(members);
    http_answer_json(request, status, view);
}

void http_answer_stream(struct http_request *request, const char *type,
                        const struct http_stream *stream)
{
    enum http_more more = HTTP_MORE;
    struct bytes all;
    size_t length;

    bytes_init(&all, SIZE_MAX - 1);
    for (unsigned n = 0; more == HTTP_MORE; n++) {
        struct bytes chunk;

        must(n < CHUNKS_MAX, "a stream does not end");
        bytes_init(&chunk, SIZE_MAX - 1);
        more = stream->more(stream->context, &chunk);
        if (chunk.error != 0)
            more = HTTP_BROKEN;
        bytes_put_run(&all, chunk.data, chunk.length);
        bytes_deinit(&chunk);
    }
    must(more != HTTP_BROKEN || request->is_short, "a stream is broken");
    (void)stream->next(stream->context);
    stream->free(stream->context);
    length = all.length;
    take_answer(request, 200, type,
                bytes_finish(&all) == 0 && more != HTTP_BROKEN ? (char *)bytes_take(&all) : NULL,
                length);
    bytes_deinit(&all);
}

void http_put_off(struct http_request *request, void *state, void (*free_state)(void *state))
{
    must(!request->type && look_at_hand, "a request is put off for nothing");
    request->state = state;
    request->free_state = free_state;
}

void http_call_again(struct http_request *request)
{
    request->is_called_again = true;
}

void *http_state(const struct http_request *request)
{
    return request->state;
}

void http_allow(struct http_request *request, const char *methods)
{
    must(!request->type && methods, "methods are told too late");
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

void log_open(const char *journal)
{
    (void)journal;
}

bool log_is_journal(void)
{
    return false;
}

void log_close(void)
{
}

void log_write(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

void log_entry(enum entry_kind kind, enum log_level level, const struct notice *notice,
               const char *format, ...)
{
    (void)kind;
    (void)level;
    (void)notice;
    (void)format;
}

int handle_of_pid(pid_t pid)
{
    (void)pid;
    return -1;
}

bool looks_put(struct looks *looks, struct look *look)
{
    (void)looks;
    must(!look_at_hand, "two looks at once");
    look_at_hand = look;
    return true;
}

void looks_judge(struct facts *facts, const struct action_question *question, int pidfd)
{
    (void)facts;
    (void)question;
    (void)pidfd;
}

static struct facts *look_at_world(const struct action_question *question)
{
    struct facts *facts = NULL;

    for (size_t i = 0; i < world->n_processes && !facts; i++) {
        if (world->processes[i].pid == question->pid)
            facts = world_look(&world->processes[i], question, world->now);
    }
    return facts ? facts : facts_new(question->wanted, ESRCH);
}

/* What others do between two calls. */
static void look(void)
{
    struct look *at_hand = util_take(&look_at_hand);
    struct facts *facts = NULL;

    if (at_hand->owner->begin(at_hand)) {
        count_no_more();
        facts = look_at_world(at_hand->question);
        count_on();
        at_hand->owner->answer(at_hand, facts);
    }
    at_hand->owner->end(at_hand);
}

/* The daemon. */

static struct control *control;
static struct policy *without_socket; /* that the interface would open */
static struct notices *notices;
static struct ports *ports;
static struct control_reloads reloads;

static void settle(void *context)
{
    (void)context;
    count_no_more();
    world_settle(world);
    count_on();
}

static void tell(void *context, struct notice *notice)
{
    (void)context;
    notices_take(notices, notice);
}

static void reload(void *context, struct control_verdict *ret_verdict)
{
    (void)context;
    count_no_more();
    *ret_verdict = (struct control_verdict){.is_done = world_set_policy(world, policy)};
    count_on();
    reloads.n_done++;
    reloads.last_at = world->now;
}

static bool is_stopping(void *context)
{
    (void)context;
    return reloads.n_done > 1;
}

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

void unit_control_begin(void)
{
    struct control_options options = {
        .reloads = &reloads,
        .usable_descriptors = 1000,
        .may_kill = true,
        .settle = settle,
        .tell = tell,
        .reload = reload,
        .is_stopping = is_stopping,
    };
    char *why;

    /* So that what it allocates is seen by unit_memory.h. */
    json_set_alloc_funcs(malloc, free);
    json_object_seed(1);
    world = world_new(policy);
    add_runtimes();
    reloads = (struct control_reloads){.last_at = MOMENT_NEVER};
    options.broker = world->broker;
    options.ports = ports = world_need(ports_new(NULL, world->broker, NULL));
    options.notices = notices = world_need(notices_new());
    without_socket = world_need(policy_new());
    control = world_need(control_new(&options));
    must(control_open(control, without_socket, -1, &why) == 0, "it cannot be opened");
}

void unit_control_end(void)
{
    control_free(control);
    policy_unref(without_socket);
    ports_free(ports);
    notices_free(notices);
    world_free(world);
}

/* Requests. */

static char *copy(const char *text, size_t length)
{
    return world_need(strndup(text, length));
}

static void take_query(struct http_request *request, const char *query)
{
    while (*query != '\0' && request->n_query < PAIRS_MAX) {
        size_t length = strcspn(query, "&"), key_length = strcspn(query, "&=");
        struct http_pair *pair = &request->query[request->n_query++];

        pair->key = copy(query, key_length);
        pair->value = key_length < length ? copy(query + key_length + 1, length - key_length - 1)
                                          : copy("", 0);
        query += length;
        query += *query == '&';
    }
}

static void free_request(struct http_request *request)
{
    free(request->method);
    free(request->path);
    free(request->body);
    for (size_t i = 0; i < request->n_query; i++) {
        free(request->query[i].key);
        free(request->query[i].value);
    }
}

static void check_json(const char *text, size_t length)
{
    json_error_t error;
    json_t *value = json_loadb(text, length, 0, &error);

    if (!value)
        world_fail("control: an answer is not JSON: %s: %.*s", error.text, (int)length, text);
    json_decref(value);
}

/* One value, or one in each line. */
static void check_answer(const struct http_request *request)
{
    const char *text = request->answer.text, *end;

    if (!text || strcmp(request->type, metrics_type) == 0)
        return;
    end = text + request->answer.length;
    if (strcmp(request->type, "application/json") == 0) {
        check_json(text, request->answer.length);
        return;
    }
    while (text < end) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));

        must(feed != NULL, "a line has no end");
        check_json(text, (size_t)(feed - text));
        text = feed + 1;
    }
}

struct unit_answer unit_control_ask(const struct unit_request *asked)
{
    size_t path_length = strcspn(asked->target, "?");
    struct http_request request = {
        .method = copy(asked->method, strlen(asked->method)),
        .path = copy(asked->target, path_length),
        .body = world_need(malloc(asked->body_length + 1)),
        .body_length = asked->body_length,
        .peer = {.pid = 1, .uid = asked->uid, .gid = asked->uid},
        .is_short = asked->fails_at > 0,
    };

    if (asked->body_length > 0)
        memcpy(request.body, asked->body, asked->body_length);
    request.body[asked->body_length] = '\0';
    if (asked->target[path_length] == '?')
        take_query(&request, asked->target + path_length + 1);
    n_allocations = 0;
    fails_at = asked->fails_at;
    count_on();
    server.options.begin(server.options.context, &request);
    for (bool is_called = !request.type; is_called; is_called = request.is_called_again) {
        request.is_called_again = false;
        server.options.handle(server.options.context, &request);
        if (look_at_hand)
            look();
    }
    if (request.state)
        request.free_state(request.state);
    count_no_more();
    request.answer.n_allocations = n_allocations;
    must(request.type || request.is_short, "there is no answer");
    check_answer(&request);
    free_request(&request);
    broker_check(world->broker);
    world_serve(world);
    return request.answer;
}
