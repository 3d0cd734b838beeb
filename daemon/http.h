/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1 over connections that somebody else accepted, bounded in memory,
 * number and time. The only user of libmicrohttpd, and nothing of it is visible.
 * What the requests mean is not known here.
 *
 * Everything happens in http_run, at most one request a call: whoever runs the
 * loop decides what comes before.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/util.h"

struct bytes;
struct http;
struct http_request;
struct loop;

enum {
    /* Heads are small: a path, a few query keys, what curl adds. */
    HTTP_HEAD_MAX = 16 * 1024,
    /* The largest policy file, and nothing else comes near it. */
    HTTP_BODY_MAX = 1024 * 1024,
};

/* Who is at the other end, as the kernel says. */
struct http_peer {
    int32_t pid; /* 0 when our pid namespace has none for it */
    uint32_t uid;
    uint32_t gid;
    uint32_t *groups; /* supplementary */
    size_t n_groups;
};

struct http_options {
    struct loop *loop;
    unsigned n_connections_max;
    /* The head of a request is there. May answer, and then the body is not kept. */
    void (*begin)(void *context, struct http_request *request);
    /* All of it is there, and nobody has answered yet. Not to answer closes the connection, which
     * is for when memory is out. */
    void (*handle)(void *context, struct http_request *request);
    void *context;
};

/* NULL when memory or descriptors are out. */
struct http *http_new(const struct http_options *options) MUST_CHECK;

/* Ends all streams and closes all connections. Returns NULL. */
struct http *http_free(struct http *http);

/* Takes an accepted, non-blocking descriptor and the groups of its peer. False when memory is out;
 * it is closed then. */
bool http_add(struct http *http, int fd, struct http_peer *peer) MUST_CHECK;

size_t http_count(const struct http *http);
size_t http_count_user(const struct http *http, uint32_t uid);

/* When to call http_run at the latest. */
struct moment http_next(const struct http *http, struct moment now);
void http_run(struct http *http, struct moment now);

/* Writes an error to a connection that is not taken, as far as that can be done at once. */
void http_refuse(int fd, unsigned status, const char *detail);

/* The request. */

const char *http_method(const struct http_request *request);
/* Decoded, without the query. */
const char *http_path(const struct http_request *request);
const struct http_peer *http_peer(const struct http_request *request);
/* NUL-terminated, which is not counted. */
const char *http_body(const struct http_request *request, size_t *ret_length);
/* NULL when there is none. */
const char *http_content_type(const struct http_request *request);

struct http_pair {
    char *key;
    char *value; /* decoded; "" where there is no "=" */
};

/* The pairs of the query, in order. */
const struct http_pair *http_query(const struct http_request *request, size_t *ret_n);

/* The answer: one of these, once. */

/* Takes `text`; NULL stands for memory that ran out. `type` is a constant. */
void http_answer(struct http_request *request, unsigned status, const char *type, char *text,
                 size_t length);

/* Takes `value`; NULL stands for memory that ran out. */
void http_answer_json(struct http_request *request, unsigned status, json_t *value);

/* An error as of RFC 9457; `members` (taken, or NULL) are added. */
void http_problem(struct http_request *request, unsigned status, json_t *members,
                  const char *format, ...) PRINTF_LIKE(4, 5);

enum http_more {
    HTTP_MORE,   /* something was added */
    HTTP_WAIT,   /* there is nothing now */
    HTTP_END,    /* that was all */
    HTTP_BROKEN, /* the rest cannot be given: the client is to notice */
};

struct http_stream {
    /* Adds a few kilobytes. */
    enum http_more (*more)(void *context, struct bytes *out);
    /* After HTTP_WAIT: when there will be more. */
    struct moment (*next)(void *context);
    void (*free)(void *context);
    void *context;
    /* A client that takes nothing for so long, while there is something, is dropped. */
    struct span patience;
};

void http_answer_stream(struct http_request *request, const char *type,
                        const struct http_stream *stream);

/*
 * Instead of an answer: not yet. `handle` is called again, in its turn, after
 * http_call_again. `free_state` is called with the end of the request, however
 * that comes; a request is put off with one state, as often as it has to be.
 */
void http_put_off(struct http_request *request, void *state, void (*free_state)(void *state));
void http_call_again(struct http_request *request);
/* What it was put off with; NULL before that. */
void *http_state(const struct http_request *request);

/* Adds the header Allow; a constant, or text that lives as long as the request. */
void http_allow(struct http_request *request, const char *methods);
