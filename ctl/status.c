/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl status: how the daemon is.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/ask.h"
#include "ctl/command.h"
#include "ctl/output.h"

static void put_daemon(const json_t *answer, struct page *page)
{
    char uptime[ANSWER_SPAN_SIZE];

    page_label(page, "diagportd");
    page_format(page, "%s, process %" PRId64 " of user %" PRId64 "%s, up for %s",
                answer_text_or_empty(answer, "version"), answer_number(answer, "pid"),
                answer_number(answer, "uid"),
                answer_is_true(answer, "user_instance") ? " (an instance of its own)" : "",
                answer_member_span(answer, "uptime_seconds", uptime));
    if (answer_is_true(answer, "stopping"))
        page_styled(page, STYLE_WARNING, ", stopping");
    page_end_line(page);
}

static void put_alarms(const json_t *alarms, struct page *page)
{
    for (size_t i = 0; i < json_array_size(alarms); i++) {
        const json_t *alarm = json_array_get(alarms, i);

        page_label(page, "ALARM");
        page_styled(page, STYLE_BAD, answer_text_or_empty(alarm, "name"));
        page_format(page, ": %s", answer_text_or_empty(alarm, "why"));
        page_end_line(page);
    }
}

static void put_policy(const json_t *answer, struct page *page)
{
    const json_t *policy = answer_member(answer, "policy");
    const json_t *files = answer_member(policy, "files");
    const json_t *reload = answer_member(answer, "last_reload");

    page_label(page, "policy");
    if (strcmp(answer_text_or_empty(policy, "origin"), "salvaged") == 0) {
        page_styled(page, STYLE_BAD, "none: the files cannot be loaded, and nobody is set up");
    } else {
        page_format(page, "%.12s with %" PRId64 " rule%s, loaded %s",
                    answer_text_or_empty(policy, "hash"), answer_number(policy, "rules"),
                    answer_plural(answer_number(policy, "rules")),
                    answer_text_or_empty(policy, "loaded_at"));
        if (strcmp(answer_text_or_empty(policy, "origin"), "last_good") == 0)
            page_styled(page, STYLE_BAD, ": the last good one, since the files cannot be loaded");
    }
    page_end_line(page);
    for (size_t i = 0; i < json_array_size(files); i++)
        page_field(page, "", "%s", answer_text_or_empty(json_array_get(files, i), "name"));
    if (!json_is_object(reload))
        return;
    page_label(page, "reload");
    page_styled(page, answer_is_true(reload, "ok") ? STYLE_PLAIN : STYLE_BAD,
                answer_is_true(reload, "ok") ? "done " : "failed ");
    page_text(page, answer_text_or_empty(reload, "at"));
    page_end_line(page);
}

/* A label, a name if it has one, and a path. */
static void put_socket(const json_t *socket, const char *label, struct page *page)
{
    const char *name = answer_text(socket, "name");

    page_label(page, label);
    page_format(page, "%s%s%s%s", name ? name : "", name ? " at " : "",
                answer_text_or_empty(socket, "path"),
                answer_is_true(socket, "passed_in") ? " (passed in)" : "");
    if (json_is_false(answer_member(socket, "in_place")))
        page_styled(page, STYLE_BAD,
                    ": the socket file was removed or replaced; reload to make it anew");
    page_end_line(page);
}

static void put_sockets(const json_t *answer, struct page *page)
{
    const json_t *listeners = answer_member(answer, "listeners");
    const json_t *control = answer_member(answer, "control");

    for (size_t i = 0; i < json_array_size(listeners); i++)
        put_socket(json_array_get(listeners, i), i == 0 ? "listeners" : "", page);
    put_socket(control, "control", page);
}

static void put_runtimes(const json_t *answer, struct page *page)
{
    const json_t *counts = answer_member(answer, "runtimes");
    const json_t *connections = answer_member(answer, "connections");
    const json_t *limits = answer_member(answer, "limits");
    const char *state, *separator = "";
    json_t *count;

    page_label(page, "runtimes");
    json_object_foreach((json_t *)(uintptr_t)counts, state, count)
    {
        if (json_integer_value(count) == 0)
            continue;
        page_format(page, "%s%" JSON_INTEGER_FORMAT " %s", separator, json_integer_value(count),
                    state);
        separator = ", ";
    }
    page_format(page, "%s%" PRId64 " seen so far", separator,
                answer_number(answer, "runtimes_seen"));
    if (json_is_integer(answer_member(limits, "runtimes")))
        page_format(page, "; %" PRId64 " may wait", answer_number(limits, "runtimes"));
    page_end_line(page);
    page_field(page, "connections",
               "%" PRId64 " open, %" PRId64 " of them silent; room for %" PRId64,
               answer_number(connections, "open"), answer_number(connections, "silent"),
               answer_number(connections, "usable"));
}

/* Nothing to say while they are as they should be. */
static void put_records(const json_t *answer, struct page *page)
{
    const char *records = answer_text_or_empty(answer, "records");

    if (strcmp(records, "distrusted") == 0)
        page_field(page, "records", "damaged or gone: older runtimes are resumed untouched");
    else if (strcmp(records, "none") == 0)
        page_field(page, "records", "none can be kept: nothing is applied to anybody");
}

static int print(const struct call *call, const json_t *answer)
{
    struct page page;

    (void)call;
    page_init(&page);
    put_daemon(answer, &page);
    put_alarms(answer_member(answer, "alarms"), &page);
    put_policy(answer, &page);
    put_sockets(answer, &page);
    put_runtimes(answer, &page);
    put_records(answer, &page);
    return page_write(&page);
}

static int run(const struct call *call)
{
    return ask_get(call, "/v1/status", print);
}

const struct command command_status = {
    .name = "status",
    .summary = "say how the daemon is",
    .help = "Says how the daemon is: its version, alarms, the policy in force, its sockets and\n"
            "how many runtimes are in which state.\n",
    .run = run,
};
