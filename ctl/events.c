/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl events: what happened, and what happens, one line each.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "lib/bytes.h"
#include "lib/text.h"
#include "lib/util.h"

enum { OPTION_FOLLOW, OPTION_SINCE };

static const struct command_option options[] = {
    [OPTION_FOLLOW] = {"follow", 'f', NULL, "go on with those that come, until Ctrl-C"},
    [OPTION_SINCE] = {"since", '\0', "N", "only those after number N; 0 for all that are kept"},
};

/* "name: value" where there is a value. */
static void put_member(const json_t *event, const char *member, const char *words,
                       struct page *page)
{
    const char *text = answer_text(event, member);

    if (text && text[0] != '\0')
        page_format(page, ", %s%s", words, text);
}

static void put_runtime(const json_t *event, struct page *page)
{
    const char *state = answer_text_or_empty(event, "state");
    const char *old = answer_text_or_empty(event, "old_state");

    if (old[0] != '\0' && strcmp(old, state) != 0)
        page_format(page, "%s -> ", old);
    page_text(page, state);
    put_member(event, "outcome", "", page);
    put_member(event, "rule", "rule ", page);
    put_member(event, "exe", "", page);
}

static void put_step(const json_t *event, struct page *page)
{
    const char *hresult = answer_text(event, "hresult"), *name = answer_text(event, "name");

    page_format(page, "%s%s%s: %s", answer_text_or_empty(event, "step"), name ? " " : "",
                name ? name : "", answer_text_or_empty(event, "result"));
    if (hresult && strcmp(hresult, "0x00000000") != 0)
        page_format(page, ", %s", hresult);
    if (answer_number(event, "attempts") > 1)
        page_format(page, ", sent %" PRId64 " times", answer_number(event, "attempts"));
    put_member(event, "rule", "rule ", page);
}

static void put_alarm(const json_t *event, struct page *page)
{
    const bool is_on = answer_is_true(event, "on");

    page_styled(page, is_on ? STYLE_BAD : STYLE_GOOD, answer_text_or_empty(event, "alarm"));
    page_text(page, is_on ? " begins" : " ends");
}

static void put_admin(const json_t *event, struct page *page)
{
    page_format(page, "%s: %s", answer_text_or_empty(event, "what"),
                answer_text_or_empty(event, "result"));
}

static void put_peer_error(const json_t *event, struct page *page)
{
    page_text(page, answer_text_or_empty(event, "error"));
}

static void put_gap(const json_t *event, struct page *page)
{
    if (json_is_integer(answer_member(event, "lost")))
        page_format(page, "%" PRId64 " events are not kept any more", answer_number(event, "lost"));
    else
        page_format(page,
                    "event %" PRId64 " is not there yet; either the daemon was started anew or "
                    "the number is wrong",
                    answer_number(event, "since"));
}

/* Whom it is about. */
static void put_subject(const json_t *event, struct page *page)
{
    const char *id = answer_text(event, "id");

    page_format(page, "%-8s  ", id ? id : "-");
    if (json_is_integer(answer_member(event, "pid")))
        page_format(page, "%7" PRId64 "  ", answer_number(event, "pid"));
    else
        page_format(page, "%7s  ", "-");
}

/* What --since takes. */
static void put_number(const json_t *event, struct page *page)
{
    if (json_is_integer(answer_member(event, "seq")))
        page_format(page, "%6" PRId64 "  ", answer_number(event, "seq"));
    else
        page_format(page, "%6s  ", "-");
}

static void put_news(const json_t *event, struct page *page)
{
    (void)event;
    page_text(page, "(of a kind that this version does not know)");
}

static void put_content(const char *kind, const json_t *event, struct page *page)
{
    static const struct {
        const char *kind;
        void (*put)(const json_t *event, struct page *page);
    } kinds[] = {
        {"runtime", put_runtime}, {"step", put_step},   {"peer_error", put_peer_error},
        {"alarm", put_alarm},     {"admin", put_admin}, {"gap", put_gap},
    };
    void (*put)(const json_t *event, struct page *page) = put_news;

    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (strcmp(kind, kinds[i].kind) == 0)
            put = kinds[i].put;
    }
    put(event, page);
    put_member(event, "why", "", page);
}

static void put_event(const json_t *event, struct page *page)
{
    const char *kind = answer_text_or_empty(event, "kind");

    put_number(event, page);
    page_styled(page, STYLE_FAINT, answer_text_or_empty(event, "at"));
    page_format(page, "  %-10s  ", kind);
    put_subject(event, page);
    put_content(kind, event, page);
    page_end_line(page);
}

/* A heartbeat is for us, not for people. */
static int take(void *context, const json_t *event)
{
    const struct call *call = context;
    struct page page;

    if (strcmp(answer_text_or_empty(event, "kind"), "heartbeat") == 0)
        return STATUS_DONE;
    if (call->is_json)
        return output_json_line(event);
    page_init(&page);
    put_event(event, &page);
    return page_write(&page);
}

static int follow(const struct call *call, const char *target)
{
    const struct client_follower follower = {.take = take, .context = (void *)(uintptr_t)call};
    struct client *client;
    int status = client_open(call, &client);

    if (status != STATUS_DONE)
        return status;
    status = client_follow(client, target, &follower);
    client_free(client);
    return status;
}

static int run(const struct call *call)
{
    const char *since = call->values[OPTION_SINCE];
    const bool is_followed = call->values[OPTION_FOLLOW];
    char target[64];
    uint64_t number = 0;
    int status;

    if (since && !text_number(since, strlen(since), INT64_MAX, &number)) {
        output_error("--since takes the number of an event, not \"%s\"", since);
        return STATUS_USAGE;
    }
    snprintf(target, sizeof target, "/v1/events%s", is_followed ? "?follow=1" : "");
    if (since)
        snprintf(target + strlen(target), sizeof target - strlen(target), "%csince=%" PRIu64,
                 is_followed ? '&' : '?', number);
    if (is_followed)
        output_end_on_interrupt();
    status = follow(call, target);
    if (status != STATUS_DONE || !is_followed)
        return status;
    output_error("the daemon has stopped");
    return STATUS_NO_DAEMON;
}

const struct command command_events = {
    .name = "events",
    .summary = "say what happened, and what happens",
    .help = "Writes one line for each event that is kept, the oldest first: a runtime changed\n"
            "its state, a step got its result, a peer misbehaved, an alarm began or ended, or\n"
            "somebody told the daemon what to do.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .run = run,
};
