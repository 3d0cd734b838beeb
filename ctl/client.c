/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "ctl/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/place.h"
#include "ctl/socket.h"

enum {
    ANSWER_MAX = 128 * 1024 * 1024,
    LINE_MAX_SIZE = 1024 * 1024,
    ANSWER_SECONDS_MAX = 30,
    /* After which people want to know why nothing happens. */
    PATIENCE_SECONDS = 2,
    /* A follower hears something every 10 s. */
    SILENCE_SECONDS_MAX = 35,
};

struct client {
    CURL *easy;
    struct curl_slist *headers;
    struct place place;
    bool is_json; /* problems are shown as such, too */
    struct bytes body;
    const struct client_follower *follower; /* NULL when the answer is taken as a whole */
    int status;                             /* of its callbacks */
    bool has_news;                          /* for it to settle */
    bool is_overdue;                        /* and the user knows */
    char error[CURL_ERROR_SIZE];
};

static void begin_request(struct client *client)
{
    bytes_deinit(&client->body);
    bytes_init(&client->body, ANSWER_MAX);
    client->status = STATUS_DONE;
    client->has_news = false;
    client->is_overdue = false;
    client->error[0] = '\0';
}

/* What curl calls. */

static long http_status(const struct client *client)
{
    long status = 0;

    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static int take_line(struct client *client, const char *text, size_t length)
{
    json_t *line = json_loadb(text, length, 0, NULL);
    int status;

    if (!json_is_object(line)) {
        json_decref(line);
        output_error("whoever answers at %s sent a line that is no JSON object",
                     client->place.path);
        return STATUS_NO;
    }
    status = client->follower->take(client->follower->context, line);
    json_decref(line);
    return status;
}

/* Hands over every whole line and keeps the rest; the first `n_searched` bytes have no line feed.
 */
static void take_lines(struct client *client, size_t n_searched)
{
    struct bytes *body = &client->body;
    size_t start = 0;
    const uint8_t *end;

    while (client->status == STATUS_DONE &&
           (end = memchr(body->data + n_searched, '\n', body->length - n_searched))) {
        const size_t stop = (size_t)(end - body->data);

        client->status = take_line(client, (const char *)body->data + start, stop - start);
        start = n_searched = stop + 1;
    }
    memmove(body->data, body->data + start, body->length - start);
    body->length -= start;
    client->has_news = true;
}

static bool is_stream(const struct client *client)
{
    return client->follower && http_status(client) == 200;
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *context)
{
    struct client *client = context;
    const size_t n_searched = client->body.length;

    bytes_put_run(&client->body, bytes, size * n);
    if (n == 0 || client->body.error != 0)
        return 0;
    if (is_stream(client)) {
        take_lines(client, n_searched);
        if (client->status != STATUS_DONE || client->body.length > LINE_MAX_SIZE)
            return 0;
    }
    return n;
}

/* The empty line after the head of an answer: from here on nothing is missed. */
static size_t take_header(char *bytes, size_t size, size_t n, void *context)
{
    struct client *client = context;

    if (size * n > 0 && bytes[0] == '\r' && is_stream(client))
        client->has_news = true;
    return n;
}

/* Called by curl, at least about once a second. */
static int take_time(void *context, curl_off_t n_down_all, curl_off_t n_down, curl_off_t n_up_all,
                     curl_off_t n_up)
{
    struct client *client = context;
    curl_off_t us = 0;

    (void)n_down_all, (void)n_down, (void)n_up_all, (void)n_up;
    curl_easy_getinfo(client->easy, CURLINFO_TOTAL_TIME_T, &us);
    if (!client->is_overdue && http_status(client) == 0 &&
        us >= PATIENCE_SECONDS * INT64_C(1000000)) {
        client->is_overdue = true;
        output_note("waiting for the daemon at %s", client->place.path);
    }
    return 0;
}

/* What goes wrong. */

/* How the system's daemon is looked at; there is no such command for one of somebody's own. */
static const char *advice(const struct client *client)
{
    return client->place.is_system ? "; look at it with \"systemctl status diagportd\"" : "";
}

/* Whoever looks for his own should not have to guess that nobody else did. */
static void explain_stray(const struct place *place)
{
    if (place->stray)
        output_note("no instance of your own was found, since XDG_RUNTIME_DIR says %s, which "
                    "cannot be used: %s; set it to a folder of yours, or unset it and /tmp is used",
                    place->stray, strerror(place->stray_error));
}

static int explain_connect(const struct client *client, int error)
{
    const char *path = client->place.path, *origin = client->place.origin;

    switch (error) {
    case EACCES:
    case EPERM:
        output_error("you may not write to %s (named by %s); ask to be put into a group that may",
                     path, origin);
        return STATUS_REFUSED;
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
        output_error("no daemon listens at %s (named by %s); start %sone of your own with "
                     "\"diagportd --user\", or say where it is with --socket",
                     path, origin,
                     client->place.is_system ? "it with \"systemctl start diagportd\", or " : "");
        explain_stray(&client->place);
        return STATUS_NO_DAEMON;
    case ENAMETOOLONG:
        output_error("%s (named by %s) is too long for the path of a socket", path, origin);
        return STATUS_USAGE;
    default:
        output_error("%s (named by %s) cannot be connected to: %s", path, origin, strerror(error));
        return STATUS_NO_DAEMON;
    }
}

/* Somebody was there a moment ago, so this is why he is not, or that he accepts nobody. */
static int explain_no_connection(const struct client *client)
{
    const int error = -socket_probe(client->place.path);

    if (error != 0)
        return explain_connect(client, error);
    output_error("whoever listens at %s accepts nobody%s", client->place.path, advice(client));
    return STATUS_NO_DAEMON;
}

static int explain_transfer(const struct client *client, CURLcode code)
{
    const char *path = client->place.path;

    if (code == CURLE_COULDNT_CONNECT)
        return explain_no_connection(client);
    if (client->body.error == -ENOMEM)
        return output_no_memory();
    switch (code) {
    case CURLE_WRITE_ERROR:
        output_error("the answer from %s is longer than it may be", path);
        return STATUS_NO;
    case CURLE_OPERATION_TIMEDOUT:
        output_error("the daemon at %s has not answered in time%s", path, advice(client));
        return STATUS_NO_DAEMON;
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        output_error("the daemon at %s has closed the connection before its answer was complete",
                     path);
        return STATUS_NO_DAEMON;
    default:
        output_error("the daemon at %s cannot be asked: %s", path,
                     client->error[0] != '\0' ? client->error : curl_easy_strerror(code));
        return STATUS_NO_DAEMON;
    }
}

static int status_of(long http)
{
    switch (http) {
    case 400:
        return STATUS_USAGE;
    case 401:
    case 403:
        return STATUS_REFUSED;
    default:
        return STATUS_NO;
    }
}

/* What an id that means several could have meant, to be copied from. */
static void list_ids(const json_t *ids)
{
    struct page page;

    page_init(&page);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));

        page_indent(&page, 2);
        page_text(&page, id ? id : "?");
        page_end_line(&page);
    }
    page_write_error(&page);
}

static int explain_problem(const struct client *client, const json_t *problem)
{
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const long http = http_status(client);

    if (detail)
        output_error("%s", detail);
    else
        output_error("the daemon at %s answered with the status %ld", client->place.path, http);
    list_ids(json_object_get(problem, "ids"));
    if (client->is_json && problem)
        output_json(problem);
    return status_of(http);
}

/* Judges what has come, which is an answer if its status says so. */
static int take_answer(const struct client *client, json_t **ret_answer)
{
    const bool is_good = http_status(client) == 200 || http_status(client) == 202;
    json_t *answer = client->body.length == 0
                         ? NULL
                         : json_loadb((const char *)client->body.data, client->body.length,
                                      JSON_REJECT_DUPLICATES, NULL);

    if (answer && !json_is_object(answer)) {
        json_decref(answer);
        answer = NULL;
    }
    *ret_answer = answer;
    if (!is_good)
        return explain_problem(client, answer);
    if (answer)
        return STATUS_DONE;
    output_error("whoever answers at %s is no diagportd: its answer is no JSON object",
                 client->place.path);
    return STATUS_NO;
}

/* The client. */

static void set_up(struct client *client)
{
    CURL *easy = client->easy;

    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->place.path);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
#else
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTP);
#endif
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "diagportctl/" PACKAGE_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, take_time);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, client);
}

int client_open(const struct call *call, struct client **ret_client)
{
    struct client *client = calloc(1, sizeof *client);
    int error, status;

    if (!client)
        return output_no_memory();
    bytes_init(&client->body, ANSWER_MAX);
    client->is_json = call->is_json;
    /* Nothing of what curl could set up is needed for a local socket. */
    if (curl_global_init(CURL_GLOBAL_NOTHING) == CURLE_OK)
        client->easy = curl_easy_init();
    client->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!client->easy || !client->headers || place_find(call->socket, &client->place) != 0) {
        client_free(client);
        return output_no_memory();
    }
    set_up(client);
    if (client->place.is_second && call->command->is_weighty)
        output_note("your own instance does not run, so the daemon at %s is asked",
                    client->place.path);
    error = socket_probe(client->place.path);
    if (error != 0) {
        status = explain_connect(client, -error);
        client_free(client);
        return status;
    }
    *ret_client = client;
    return STATUS_DONE;
}

struct client *client_free(struct client *client)
{
    if (!client)
        return NULL;
    curl_easy_cleanup(client->easy);
    curl_slist_free_all(client->headers);
    place_deinit(&client->place);
    bytes_deinit(&client->body);
    free(client);
    return NULL;
}

/* Asking. */

/* Any host: it is not looked up, and the daemon does not care. */
static bool set_target(struct client *client, const char *target)
{
    char *url = NULL;
    bool is_set;

    if (asprintf(&url, "http://localhost%s", target) < 0)
        return false;
    is_set = curl_easy_setopt(client->easy, CURLOPT_URL, url) == CURLE_OK;
    free(url);
    return is_set;
}

static int transfer(struct client *client, const char *target)
{
    CURLcode code;

    begin_request(client);
    if (!set_target(client, target))
        return output_no_memory();
    curl_easy_setopt(client->easy, CURLOPT_TIMEOUT, (long)ANSWER_SECONDS_MAX);
    code = curl_easy_perform(client->easy);
    return code == CURLE_OK ? STATUS_DONE : explain_transfer(client, code);
}

static int ask(struct client *client, const char *target, json_t **ret_answer)
{
    int status;

    *ret_answer = NULL;
    status = transfer(client, target);
    return status == STATUS_DONE ? take_answer(client, ret_answer) : status;
}

int client_get(struct client *client, const char *target, json_t **ret_answer)
{
    curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
    return ask(client, target, ret_answer);
}

int client_get_text(struct client *client, const char *target, const char **ret_text)
{
    json_t *problem = NULL;
    int status;

    curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
    status = transfer(client, target);
    if (status != STATUS_DONE)
        return status;
    if (http_status(client) != 200) {
        status = take_answer(client, &problem);
        json_decref(problem);
        return status;
    }
    if (bytes_finish(&client->body) != 0)
        return output_no_memory();
    *ret_text = (const char *)client->body.data;
    if (strlen(*ret_text) == client->body.length)
        return STATUS_DONE;
    output_error("whoever answers at %s is no diagportd: its answer is no text",
                 client->place.path);
    return STATUS_NO;
}

int client_post(struct client *client, const char *target, const json_t *body, json_t **ret_answer)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("");
    int status;

    *ret_answer = NULL;
    if (!text)
        return output_no_memory();
    curl_easy_setopt(client->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(text));
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, text);
    status = ask(client, target, ret_answer);
    curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, NULL);
    free(text);
    return status;
}

/* Following. */

static int settle(struct client *client)
{
    const struct client_follower *follower = client->follower;

    if (!client->has_news || !follower->settle)
        return STATUS_DONE;
    client->has_news = false;
    return follower->settle(follower->context);
}

static bool end_of(CURLM *multi, CURLcode *ret_code)
{
    const CURLMsg *message;
    int n_left;

    while ((message = curl_multi_info_read(multi, &n_left))) {
        if (message->msg == CURLMSG_DONE) {
            *ret_code = message->data.result;
            return true;
        }
    }
    return false;
}

/* Until it is said that the answer is overdue, or it has begun, curl has to look at the time. */
static int wait_ms(const struct client *client)
{
    const bool is_settled = client->is_overdue || http_status(client) != 0;

    return (is_settled ? SILENCE_SECONDS_MAX : 1) * 1000;
}

/* Until the answer ends or a callback has had enough. */
static int read_stream(struct client *client, CURLM *multi, CURLcode *ret_code)
{
    int n_running = 1, status = STATUS_DONE;

    while (n_running > 0 && status == STATUS_DONE) {
        const bool failed = curl_multi_perform(multi, &n_running) != CURLM_OK;

        if (failed)
            return output_no_memory();
        status = settle(client);
        if (n_running > 0 && status == STATUS_DONE)
            curl_multi_wait(multi, NULL, 0, wait_ms(client), NULL);
    }
    if (status == STATUS_DONE && !end_of(multi, ret_code))
        *ret_code = CURLE_RECV_ERROR;
    return status;
}

static int end_stream(const struct client *client, CURLcode code)
{
    json_t *problem = NULL;
    int status;

    if (client->status != STATUS_DONE)
        return client->status;
    if (code != CURLE_OK)
        return explain_transfer(client, code);
    if (http_status(client) == 200)
        return STATUS_DONE;
    status = take_answer(client, &problem);
    json_decref(problem);
    return status;
}

int client_follow(struct client *client, const char *target, const struct client_follower *follower)
{
    CURLM *multi = curl_multi_init();
    CURLcode code = CURLE_OK;
    int status;

    if (!multi || !set_target(client, target)) {
        curl_multi_cleanup(multi);
        return output_no_memory();
    }
    begin_request(client);
    client->follower = follower;
    curl_easy_setopt(client->easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(client->easy, CURLOPT_TIMEOUT, 0L);
    curl_easy_setopt(client->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(client->easy, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_SECONDS_MAX);
    curl_multi_add_handle(multi, client->easy);
    status = read_stream(client, multi, &code);
    if (status == STATUS_DONE)
        status = end_stream(client, code);
    curl_multi_remove_handle(multi, client->easy);
    curl_multi_cleanup(multi);
    client->follower = NULL;
    return status;
}

void client_put_part(struct bytes *target, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text))
            bytes_put_u8(target, (uint8_t)*text);
        else
            bytes_put_format(target, "%%%02X", (unsigned char)*text);
    }
}
