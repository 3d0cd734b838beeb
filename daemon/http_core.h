/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the two halves of HTTP share: connections and turns (http.c), requests
 * and answers (http_request.c).
 */

#include <microhttpd.h>

#include "daemon/http.h"
#include "lib/bytes.h"
#include "lib/tree.h"

/* Why a connection is taken out of the loop for a while. */
enum http_pause {
    HTTP_RUNS,
    HTTP_AWAITS_TURN,   /* another request was handled in this run */
    HTTP_AWAITS_STREAM, /* its stream has nothing now */
    HTTP_AWAITS_CALL,   /* it was put off */
};

/*
 * A connection. Its deadline is that of the request at hand, counted from the
 * connection or from the answer before, until all of it is there; from then on
 * libmicrohttpd watches over how the answer is taken.
 */
struct http_client {
    TAILQ_ENTRY(http_client) link;
    struct http *http;
    struct MHD_Connection *connection;
    int fd; /* libmicrohttpd's, open as long as this object is there */
    struct http_peer peer;
    struct moment deadline;
    struct http_request *request; /* once its first line is there */
    struct http_sender *sender;   /* of the stream that is being sent */
    enum http_pause pause;
    uint64_t place;           /* in the queue for a turn */
    struct loop_watch *watch; /* while a stream waits: tells of hanging up */
    bool has_hung_up;
    bool has_patience; /* that of a stream, instead of the usual one */
};

struct http_request {
    struct http_client *client;
    char *method;
    char *path;
    struct http_pair *query;
    size_t n_query;
    bool is_malformed; /* its target cannot be decoded */
    bool has_begun;
    struct bytes body;
    uint64_t n_discarded; /* bytes of a body that nobody wants any more */
    unsigned status;      /* of the answer; 0 while there is none */
    const char *type;
    char *text;
    size_t length;
    const char *allow;
    struct http_sender *sender;
    bool is_put_off;
    void *state; /* NULL when it never was */
    void (*free_state)(void *state);
};

/* A stream on its way out: what was produced and is not taken yet. */
struct http_sender {
    struct http_client *client;
    struct http_stream stream;
    struct bytes chunk;
    size_t n_taken;
};

/* `target` is the path with its query, as it was sent. NULL when memory is out. */
struct http_request *request_new(struct http_client *client, const char *target) MUST_CHECK;
struct http_request *request_free(struct http_request *request);

/* Answers what is refused whatever it means; the head is there. */
void request_check_head(struct http_request *request);

/* Keeps, or throws away, a part of the body. False when there is no end to it. */
bool request_take_body(struct http_request *request, const char *data, size_t length) MUST_CHECK;

/* Hands the answer over. */
enum MHD_Result request_send(struct http_request *request) MUST_CHECK;

/* http.c */

void client_pause(struct http_client *client, enum http_pause pause);
/* What it waited for is there: it waits for its turn. */
void client_queue(struct http_client *client);
/* True when the daemon ends, and nobody may wait any more. */
bool client_must_end(const struct http_client *client);
