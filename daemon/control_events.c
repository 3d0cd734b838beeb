/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What happened, one line each, and whoever follows it. A follower has a number
 * in the ring of what is kept, and nothing else.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/control_core.h"
#include "daemon/notices.h"
#include "daemon/view.h"
#include "lib/bytes.h"
#include "lib/text.h"

enum {
    FOLLOWERS_MAX = 32,
    EVENTS_CHUNK = 8 * 1024, /* written at once */
};

/* So that a client can tell silence from a daemon that is gone. */
#define HEARTBEAT         span_from_s(10)
#define FOLLOWER_PATIENCE span_from_s(2)
#define READER_PATIENCE   span_from_s(15)

struct follower {
    struct control *control;
    bool follows;
    bool is_limited;
    uint64_t next; /* the event that is to be written next */
    uint64_t end;  /* the one after the last that is wanted */
    json_t *gap;   /* to be told first; NULL */
    struct moment heartbeat;
};

static json_t *view_gap(const struct notices *notices, uint64_t since, json_t *lost,
                        struct moment now)
{
    json_t *view = json_object();

    view_put(&view, "seq", json_null());
    view_put(&view, "at", view_time(now));
    view_put(&view, "kind", json_string("gap"));
    view_put(&view, "oldest", json_integer((json_int_t)notices_oldest(notices)));
    view_put(&view, "since", json_integer((json_int_t)since));
    view_put(&view, "lost", lost);
    return view;
}

static void put_line(json_t *view, struct bytes *out)
{
    view_write(view, out);
    bytes_put_u8(out, '\n');
}

static void put_heartbeat(const struct notices *notices, struct moment now, struct bytes *out)
{
    json_t *view = json_object();

    view_put(&view, "seq", json_null());
    view_put(&view, "at", view_time(now));
    view_put(&view, "kind", json_string("heartbeat"));
    view_put(&view, "newest", json_integer((json_int_t)notices_next(notices) - 1));
    put_line(view, out);
}

static enum http_more more(void *context, struct bytes *out)
{
    struct follower *follower = context;
    const struct notices *notices = follower->control->options.notices;
    uint64_t end = follower->follows ? notices_next(notices) : follower->end;
    struct moment now = clock_now();

    if (follower->gap)
        put_line(util_take(&follower->gap), out);
    while (follower->next < end && out->length < EVENTS_CHUNK) {
        const struct notice *notice = notices_get(notices, follower->next);

        /* It fell behind: what is missing is not to look like what never was. */
        if (!notice)
            return HTTP_BROKEN;
        put_line(view_notice(follower->next, notice), out);
        follower->next++;
    }
    if (out->length == 0 && !follower->follows)
        return HTTP_END;
    if (out->length == 0 && moment_is_due(follower->heartbeat, now))
        put_heartbeat(notices, now, out);
    if (out->length == 0)
        return HTTP_WAIT;
    follower->heartbeat = moment_after(now, HEARTBEAT);
    return HTTP_MORE;
}

static struct moment next(void *context)
{
    const struct follower *follower = context;

    if (follower->next < notices_next(follower->control->options.notices))
        return (struct moment){0};
    return follower->heartbeat;
}

static void leave(void *context)
{
    struct follower *follower = context;

    follower->control->n_followers -= follower->follows;
    follower->control->n_limited_followers -= follower->is_limited;
    json_decref(follower->gap);
    free(follower);
}

static bool take_flag(struct control_call *call, const char *value, bool *ret_flag)
{
    *ret_flag = value && strcmp(value, "1") == 0;
    if (!value || *ret_flag || strcmp(value, "0") == 0)
        return true;
    http_problem(call->request, 400, NULL, "\"follow\" is 0 or 1");
    return false;
}

/* Where to begin, and what of it is lost. */
static void find_start(struct follower *follower, const char *since_text, uint64_t since,
                       struct moment now)
{
    const struct notices *notices = follower->control->options.notices;
    uint64_t oldest = notices_oldest(notices), newest = notices_next(notices) - 1;

    if (!since_text) {
        follower->next = follower->follows ? newest + 1 : oldest;
        return;
    }
    follower->next = since < oldest || since > newest ? oldest : since + 1;
    if (since > newest)
        follower->gap = view_gap(notices, since, json_null(), now);
    else if (since > 0 && since + 1 < oldest)
        follower->gap =
            view_gap(notices, since, json_integer((json_int_t)(oldest - since - 1)), now);
}

static void begin(struct control_call *call, bool follows, const char *since_text, uint64_t since)
{
    bool is_limited = follows && !control_is_master(http_peer(call->request)->uid);
    struct http_stream stream = {.more = more,
                                 .next = next,
                                 .free = leave,
                                 .patience = follows ? FOLLOWER_PATIENCE : READER_PATIENCE};
    struct follower *follower;

    if (is_limited && call->control->n_limited_followers >= FOLLOWERS_MAX) {
        http_problem(call->request, 503, NULL, "there are too many followers");
        return;
    }
    follower = calloc(1, sizeof *follower);
    if (!follower)
        return;
    follower->control = call->control;
    follower->follows = follows;
    follower->end = notices_next(call->control->options.notices);
    follower->is_limited = is_limited;
    follower->heartbeat = moment_after(call->now, HEARTBEAT);
    find_start(follower, since_text, since, call->now);
    call->control->n_followers += follows;
    call->control->n_limited_followers += is_limited;
    stream.context = follower;
    http_answer_stream(call->request, "application/x-ndjson", &stream);
}

void control_list_events(struct control_call *call)
{
    static const char *const keys[] = {"since", "follow"};
    const char *values[ARRAY_LENGTH(keys)];
    uint64_t since = 0;
    bool follows;

    if (!control_read_query(call, keys, ARRAY_LENGTH(keys), values) ||
        !take_flag(call, values[1], &follows))
        return;
    if (values[0] && !text_number(values[0], strlen(values[0]), INT64_MAX, &since))
        http_problem(call->request, 400, NULL, "\"since\" has to be a number");
    else
        begin(call, follows, values[0], since);
}
