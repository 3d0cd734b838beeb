/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests and answers of HTTP: targets, bodies, errors, streams. When they are
 * looked at is not known here.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/http_core.h"
#include "lib/text.h"

enum {
    QUERY_PAIRS_MAX = 16,
    /* A client that is refused reads the answer once it has sent all; for so much it may go on. */
    DISCARD_MAX = 16 * 1024 * 1024,
    /* What is produced of a stream at once. A runtime is never cut, and its plan has as many steps
     * as fit into a policy. */
    CHUNK_MAX = 64 * 1024 * 1024,
    BLOCK_SIZE = 16 * 1024,
    DETAIL_MAX = 4096,
};

static const char type_json[] = "application/json";
static const char type_problem[] = "application/problem+json";

/* Targets. */

/* Decodes in place; false for what is no encoding, and for a NUL, which would end the text early.
 */
static bool decode(char *text, bool is_query)
{
    char *out = text;

    for (const char *at = text; *at != '\0'; at++) {
        int high, low;

        if (*at == '+' && is_query) {
            *out++ = ' ';
            continue;
        }
        if (*at != '%') {
            *out++ = *at;
            continue;
        }
        high = text_hex_digit(at[1]);
        low = high < 0 ? -1 : text_hex_digit(at[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *out++ = (char)(high * 16 + low);
        at += 2;
    }
    *out = '\0';
    return true;
}

static bool take_pair(struct http_request *request, const char *text, size_t length)
{
    struct http_pair *pair = &request->query[request->n_query++];
    const char *equals = memchr(text, '=', length);
    size_t key_length = equals ? (size_t)(equals - text) : length;

    pair->key = strndup(text, key_length);
    pair->value = equals ? strndup(equals + 1, length - key_length - 1) : strdup("");
    if (!pair->key || !pair->value)
        return false;
    if (!decode(pair->key, true) || !decode(pair->value, true))
        request->is_malformed = true;
    return true;
}

static bool take_query(struct http_request *request, const char *query)
{
    request->query = calloc(QUERY_PAIRS_MAX, sizeof *request->query);
    if (!request->query)
        return false;
    while (*query != '\0') {
        size_t length = strcspn(query, "&");

        if (length > 0 && request->n_query == QUERY_PAIRS_MAX)
            request->is_malformed = true;
        else if (length > 0 && !take_pair(request, query, length))
            return false;
        query += length;
        query += *query == '&';
    }
    return true;
}

struct http_request *request_new(struct http_client *client, const char *target)
{
    struct http_request *request = calloc(1, sizeof *request);
    size_t length = strcspn(target, "?");

    if (!request)
        return NULL;
    request->client = client;
    bytes_init(&request->body, HTTP_BODY_MAX);
    request->path = strndup(target, length);
    if (!request->path || !take_query(request, target[length] == '?' ? target + length + 1 : ""))
        return request_free(request);
    if (!decode(request->path, false))
        request->is_malformed = true;
    return request;
}

static struct http_sender *free_sender(struct http_sender *sender)
{
    if (!sender)
        return NULL;
    if (sender->client->sender == sender)
        sender->client->sender = NULL;
    sender->stream.free(sender->stream.context);
    bytes_deinit(&sender->chunk);
    free(sender);
    return NULL;
}

struct http_request *request_free(struct http_request *request)
{
    if (!request)
        return NULL;
    for (size_t i = 0; i < request->n_query; i++) {
        free(request->query[i].key);
        free(request->query[i].value);
    }
    free(request->query);
    free(request->method);
    free(request->path);
    free(request->text);
    free_sender(request->sender);
    bytes_deinit(&request->body);
    if (request->state)
        request->free_state(request->state);
    free(request);
    return NULL;
}

/* What it says. */

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
    return &request->client->peer;
}

const struct http_pair *http_query(const struct http_request *request, size_t *ret_n)
{
    *ret_n = request->n_query;
    return request->query;
}

const char *http_body(const struct http_request *request, size_t *ret_length)
{
    *ret_length = request->body.length;
    return request->body.length > 0 ? (const char *)request->body.data : "";
}

static const char *header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->client->connection, MHD_HEADER_KIND, name);
}

const char *http_content_type(const struct http_request *request)
{
    return header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
}

static size_t head_size(const struct http_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->client->connection,
                                MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return info ? info->header_size : 0;
}

static bool announces_too_much(const struct http_request *request)
{
    const char *text = header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t length;

    return text && text_number(text, strlen(text), UINT64_MAX, &length) && length > HTTP_BODY_MAX;
}

static void refuse_body(struct http_request *request)
{
    http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, NULL,
                 "the body is longer than the %d bytes that are taken", HTTP_BODY_MAX);
}

void request_check_head(struct http_request *request)
{
    if (head_size(request) > HTTP_HEAD_MAX)
        http_problem(request, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, NULL,
                     "the head is longer than the %d bytes that are taken", HTTP_HEAD_MAX);
    else if (request->is_malformed)
        http_problem(request, MHD_HTTP_BAD_REQUEST, NULL,
                     "the path or the query is not encoded as it has to be, or has more than %d "
                     "keys",
                     QUERY_PAIRS_MAX);
    else if (announces_too_much(request))
        refuse_body(request);
}

bool request_take_body(struct http_request *request, const char *data, size_t length)
{
    if (request->status == 0) {
        bytes_put_run(&request->body, data, length);
        if (bytes_finish(&request->body) == 0)
            return true;
        if (request->body.error != -EMSGSIZE)
            return false;
        bytes_deinit(&request->body);
        refuse_body(request);
    }
    request->n_discarded += length;
    return request->n_discarded <= DISCARD_MAX;
}

/* Answers. */

void http_answer(struct http_request *request, unsigned status, const char *type, char *text,
                 size_t length)
{
    /* An answer without a text ends the connection. */
    request->status = status;
    request->type = type;
    request->text = text;
    request->length = length;
}

void http_put_off(struct http_request *request, void *state, void (*free_state)(void *state))
{
    request->is_put_off = true;
    request->state = state;
    request->free_state = free_state;
}

void http_call_again(struct http_request *request)
{
    request->is_put_off = false;
    client_queue(request->client);
}

void *http_state(const struct http_request *request)
{
    return request->state;
}

/* Compact, and with a line feed for those who look at it in a terminal. */
static char *write_json(json_t *value, size_t *ret_length)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(15);
    size_t length = value ? json_dumpb(value, NULL, 0, flags) : 0;
    char *text = length > 0 ? malloc(length + 2) : NULL;

    /* Memory may run out the second time, and what was not written is whatever was there. */
    if (text && json_dumpb(value, text, length, flags) != length) {
        free(text);
        text = NULL;
    }
    if (text) {
        text[length] = '\n';
        text[length + 1] = '\0';
        *ret_length = length + 1;
    }
    json_decref(value);
    return text;
}

void http_answer_json(struct http_request *request, unsigned status, json_t *value)
{
    size_t length = 0;
    char *text = write_json(value, &length);

    http_answer(request, status, type_json, text, length);
}

static char *write_problem(unsigned status, const char *detail, json_t *members, size_t *ret_length)
{
    json_t *problem =
        json_pack("{s:s, s:s, s:i, s:s}", "type", "about:blank", "title",
                  MHD_get_reason_phrase_for(status), "status", (int)status, "detail", detail);

    if (problem && members && json_object_update(problem, members) != 0) {
        json_decref(problem);
        problem = NULL;
    }
    json_decref(members);
    return write_json(problem, ret_length);
}

void http_problem(struct http_request *request, unsigned status, json_t *members,
                  const char *format, ...)
{
    char detail[DETAIL_MAX], *text;
    size_t length = 0;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    text = write_problem(status, detail, members, &length);
    http_answer(request, status, type_problem, text, length);
}

void http_refuse(int fd, unsigned status, const char *detail)
{
    size_t length = 0;
    char *text = write_problem(status, detail, NULL, &length), *answer = NULL;
    int size;

    if (!text)
        return;
    size = asprintf(&answer,
                    "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\n\r\n%s",
                    status, MHD_get_reason_phrase_for(status), type_problem, length, text);
    if (size > 0)
        (void)!send(fd, answer, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size >= 0)
        free(answer);
    free(text);
}

void http_allow(struct http_request *request, const char *methods)
{
    request->allow = methods;
}

void http_answer_stream(struct http_request *request, const char *type,
                        const struct http_stream *stream)
{
    struct http_sender *sender = calloc(1, sizeof *sender);

    request->status = MHD_HTTP_OK;
    request->type = type;
    if (!sender) {
        stream->free(stream->context);
        return;
    }
    sender->client = request->client;
    sender->stream = *stream;
    bytes_init(&sender->chunk, CHUNK_MAX);
    request->sender = sender;
}

/* Refills an empty chunk; 0 when there is something in it, else what to tell libmicrohttpd. */
static ssize_t refill(struct http_sender *sender)
{
    bytes_deinit(&sender->chunk);
    sender->n_taken = 0;
    switch (sender->stream.more(sender->stream.context, &sender->chunk)) {
    case HTTP_MORE:
        return sender->chunk.error == 0 ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
    case HTTP_WAIT:
        if (client_must_end(sender->client))
            return MHD_CONTENT_READER_END_OF_STREAM;
        client_pause(sender->client, HTTP_AWAITS_STREAM);
        return 0;
    case HTTP_END:
        return MHD_CONTENT_READER_END_OF_STREAM;
    case HTTP_BROKEN:
        break;
    }
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t read_stream(void *context, uint64_t position, char *buffer, size_t size)
{
    struct http_sender *sender = context;
    size_t left = sender->chunk.length - sender->n_taken;

    (void)position;
    if (sender->client->has_hung_up)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (left == 0) {
        ssize_t end = refill(sender);

        if (end != 0)
            return end;
        left = sender->chunk.length;
    }
    if (left > size)
        left = size;
    if (left > 0)
        memcpy(buffer, sender->chunk.data + sender->n_taken, left);
    sender->n_taken += left;
    return (ssize_t)left;
}

static void end_stream(void *context)
{
    free_sender(context);
}

static struct MHD_Response *make_response(struct http_request *request)
{
    struct http_sender *sender = util_take(&request->sender);
    struct MHD_Response *response;

    if (!sender && request->text)
        return MHD_create_response_from_buffer(request->length, util_take(&request->text),
                                               MHD_RESPMEM_MUST_FREE);
    if (!sender)
        return NULL;
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_stream, sender,
                                                 end_stream);
    if (!response) {
        free_sender(sender);
        return NULL;
    }
    request->client->sender = sender;
    request->client->has_patience = true;
    MHD_set_connection_option(request->client->connection, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)(sender->stream.patience.us / 1000000));
    return response;
}

enum MHD_Result request_send(struct http_request *request)
{
    struct MHD_Response *response = make_response(request);
    enum MHD_Result result = MHD_NO;

    if (!response)
        return MHD_NO;
    if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, request->type) &&
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") &&
        (!request->allow ||
         MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, request->allow)))
        result = MHD_queue_response(request->client->connection, request->status, response);
    MHD_destroy_response(response);
    return result;
}
