/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl list: one line per runtime, once, or anew whenever something
 * happens.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/runtime.h"
#include "ctl/table.h"
#include "lib/bytes.h"
#include "lib/util.h"

enum {
    OPTION_HELD,
    OPTION_WATCH,
    OPTION_STATE,
    OPTION_RULE,
    OPTION_PID,
    OPTION_USER,
    OPTION_UNIT,
};

static const struct command_option options[] = {
    [OPTION_HELD] = {"held", '\0', NULL, "only those that are held; short for --state held"},
    [OPTION_WATCH] = {"watch", 'w', NULL, "again whenever something happens, until Ctrl-C"},
    [OPTION_STATE] = {"state", '\0', "STATE", "only those in that state"},
    [OPTION_RULE] = {"rule", '\0', "NAME", "only those that the rule matched"},
    [OPTION_PID] = {"pid", '\0', "PID", "only those of that process"},
    [OPTION_USER] = {"user", '\0', "USER", "only those of that user, a name or number"},
    [OPTION_UNIT] = {"unit", '\0', "GLOB", "only those of the systemd units that fit"},
};

enum {
    /* Where much happens, pictures are this far apart. */
    REDRAW_NS_MIN = 100 * 1000 * 1000,
    /* Of a screen: titles, what does not fit, and the cursor. */
    LINES_BESIDE = 3,
};

/* What to ask for; the caller frees it. NULL when memory is out. */
static char *make_target(const struct call *call)
{
    const char *separator = "?";
    struct bytes target;

    bytes_init(&target, SIZE_MAX - 1);
    bytes_put_string(&target, "/v1/runtimes");
    for (size_t i = OPTION_STATE; i <= OPTION_UNIT; i++) {
        const char *value = call->values[i];

        if (i == OPTION_STATE && call->values[OPTION_HELD])
            value = "held";
        if (!value)
            continue;
        bytes_put_format(&target, "%s%s=", separator, options[i].name);
        client_put_part(&target, value);
        separator = "&";
    }
    if (bytes_finish(&target) != 0) {
        bytes_deinit(&target);
        return NULL;
    }
    return (char *)bytes_take(&target);
}

/* The table. */

enum column {
    COLUMN_ID,
    COLUMN_PID,
    COLUMN_USER,
    COLUMN_STATE,
    COLUMN_BLOCKED,
    COLUMN_RULE,
    COLUMN_OUTCOME,
    COLUMN_HOLD,
    COLUMN_COMMAND
};

static const struct table_column columns[] = {
    [COLUMN_ID] = {.title = "ID"},
    [COLUMN_PID] = {.title = "PID", .is_number = true},
    [COLUMN_USER] = {.title = "USER", .share = 0.1},
    [COLUMN_STATE] = {.title = "STATE"},
    [COLUMN_BLOCKED] = {.title = "BLOCKED", .is_rare = true},
    [COLUMN_RULE] = {.title = "RULE", .share = 0.15},
    [COLUMN_OUTCOME] = {.title = "OUTCOME"},
    [COLUMN_HOLD] = {.title = "HOLD", .is_number = true},
    [COLUMN_COMMAND] = {.title = "COMMAND", .share = 0.2},
};

static void add_runtime(struct table *table, const json_t *runtime)
{
    const char *cells[ARRAY_LENGTH(columns)];
    char pid[32], hold[ANSWER_SPAN_SIZE];
    struct bytes user, command;

    bytes_init(&user, SIZE_MAX - 1);
    bytes_init(&command, SIZE_MAX - 1);
    runtime_put_user(runtime, &user);
    runtime_put_command(runtime, &command);
    snprintf(pid, sizeof pid, "%" PRId64, answer_number(runtime, "pid"));
    cells[COLUMN_ID] = answer_text(runtime, "id");
    cells[COLUMN_PID] = pid;
    cells[COLUMN_USER] = bytes_finish(&user) == 0 ? (const char *)user.data : NULL;
    cells[COLUMN_STATE] = answer_text(runtime, "state");
    cells[COLUMN_BLOCKED] = answer_text(runtime, "blocked");
    cells[COLUMN_RULE] = answer_text(runtime, "rule");
    cells[COLUMN_OUTCOME] = answer_text(runtime, "outcome");
    cells[COLUMN_HOLD] = answer_member_span(runtime, "hold_seconds", hold);
    cells[COLUMN_COMMAND] = bytes_finish(&command) == 0 ? (const char *)command.data : NULL;
    table_add(table, cells, runtime_style(runtime));
    bytes_deinit(&user);
    bytes_deinit(&command);
}

/* At most `n_max` of them, the newest. */
static void put_runtimes(const json_t *runtimes, size_t n_max, struct page *page)
{
    const size_t n = json_array_size(runtimes), first = n > n_max ? n - n_max : 0;
    struct table *table = table_new(columns, ARRAY_LENGTH(columns));

    for (size_t i = first; table && i < n; i++)
        add_runtime(table, json_array_get(runtimes, i));
    if (first > 0) {
        page_format(page, "(%zu earlier ones do not fit)", first);
        page_end_line(page);
    }
    if (n == 0 && output_width() > 0) {
        page_styled(page, STYLE_FAINT, "no runtime");
        page_end_line(page);
    }
    table_put(table, 0, page);
}

/* A rule that nobody was matched by may be one that there is not. */

static bool has_rule(const json_t *rules, const char *name)
{
    for (size_t i = 0; i < json_array_size(rules); i++) {
        char *own = answer_unescape(answer_text_or_empty(json_array_get(rules, i), "name"));
        const bool is_it = own && strcmp(own, name) == 0;

        free(own);
        if (is_it)
            return true;
    }
    return false;
}

static int note_no_rule(struct client *client, const char *name, const json_t *answer)
{
    json_t *rules;
    int status;

    if (!name || json_array_size(answer_member(answer, "runtimes")) > 0)
        return STATUS_DONE;
    status = client_get(client, "/v1/rules", &rules);
    if (status == STATUS_DONE && !has_rule(answer_member(rules, "rules"), name))
        output_note("there is no rule \"%s\" in the policy in force; see \"diagportctl rules\"",
                    name);
    json_decref(rules);
    return status;
}

/* Watching. */

struct watch {
    struct client *client; /* that asks, while another one follows */
    const char *target;
    const char *rule; /* of --rule, or NULL */
    bool is_json;
    bool is_due; /* something has happened since it was drawn */
    bool is_drawn;
    struct timespec drawn_at;
};

static int64_t ns_between(const struct timespec *start, const struct timespec *end)
{
    return (end->tv_sec - start->tv_sec) * INT64_C(1000000000) + end->tv_nsec - start->tv_nsec;
}

/* What happens meanwhile is shown together. */
static void keep_distance(struct watch *watch)
{
    struct timespec now, rest = {.tv_sec = 0};
    int64_t passed;

    clock_gettime(CLOCK_MONOTONIC, &now);
    passed = ns_between(&watch->drawn_at, &now);
    if (watch->is_drawn && passed < REDRAW_NS_MIN) {
        rest.tv_nsec = REDRAW_NS_MIN - passed;
        nanosleep(&rest, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &watch->drawn_at);
}

/* When a picture was taken that others follow. */
static void put_time(struct page *page)
{
    const time_t now = time(NULL);
    struct tm parts;
    char text[32];

    if (gmtime_r(&now, &parts) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
        page_text(page, text);
    page_end_line(page);
}

/* Where nothing can be drawn over, one picture follows the other. */
static int draw(const struct watch *watch, const json_t *answer)
{
    const size_t height = output_height();
    struct page page;

    if (watch->is_json)
        return output_json_line(answer);
    page_init(&page);
    if (height > 0) {
        page_clear_screen(&page);
    } else {
        if (watch->is_drawn)
            page_end_line(&page);
        put_time(&page);
    }
    put_runtimes(answer_member(answer, "runtimes"), height > 0 ? height - LINES_BESIDE : SIZE_MAX,
                 &page);
    return page_write(&page);
}

/* A heartbeat says that nothing has happened. */
static int take_event(void *context, const json_t *event)
{
    struct watch *watch = context;

    if (strcmp(answer_text_or_empty(event, "kind"), "heartbeat") != 0)
        watch->is_due = true;
    return STATUS_DONE;
}

static int redraw(void *context)
{
    struct watch *watch = context;
    json_t *answer;
    int status;

    if (!watch->is_due)
        return STATUS_DONE;
    keep_distance(watch);
    status = client_get(watch->client, watch->target, &answer);
    if (status == STATUS_DONE)
        status = draw(watch, answer);
    if (status == STATUS_DONE && !watch->is_drawn)
        status = note_no_rule(watch->client, watch->rule, answer);
    json_decref(answer);
    watch->is_due = false;
    watch->is_drawn = true;
    return status;
}

static int watch_runtimes(const struct call *call, struct client *client, const char *target)
{
    struct watch watch = {.client = client,
                          .target = target,
                          .rule = call->values[OPTION_RULE],
                          .is_json = call->is_json,
                          .is_due = true};
    const struct client_follower follower = {take_event, redraw, &watch};
    struct client *events;
    int status = client_open(call, &events);

    if (status != STATUS_DONE)
        return status;
    output_end_on_interrupt();
    status = client_follow(events, "/v1/events?follow=1", &follower);
    client_free(events);
    if (status != STATUS_DONE)
        return status;
    output_error("the daemon has stopped");
    return STATUS_NO_DAEMON;
}

static int list_runtimes(const struct call *call, struct client *client, const char *target)
{
    struct page page;
    json_t *answer;
    int status = client_get(client, target, &answer);

    if (status == STATUS_DONE && call->is_json) {
        status = output_json(answer);
    } else if (status == STATUS_DONE) {
        page_init(&page);
        put_runtimes(answer_member(answer, "runtimes"), SIZE_MAX, &page);
        status = page_write(&page);
    }
    if (status == STATUS_DONE)
        status = note_no_rule(client, call->values[OPTION_RULE], answer);
    json_decref(answer);
    return status;
}

static int run(const struct call *call)
{
    struct client *client;
    char *target;
    int status;

    if (call->values[OPTION_HELD] && call->values[OPTION_STATE]) {
        output_error("--held and --state exclude each other; leave one of them out");
        return STATUS_USAGE;
    }
    target = make_target(call);
    if (!target)
        return output_no_memory();
    status = client_open(call, &client);
    if (status == STATUS_DONE) {
        status = call->values[OPTION_WATCH] ? watch_runtimes(call, client, target)
                                            : list_runtimes(call, client, target);
        client_free(client);
    }
    free(target);
    return status;
}

const struct command command_list = {
    .name = "list",
    .summary = "list runtimes",
    .help = "Lists the runtimes that the daemon knows in the order in which they came, those\n"
            "that have ended and are still remembered among them. Filters have to hold all\n"
            "together. HOLD is how long a runtime was, or is, kept waiting; BLOCKED is why it\n"
            "does not run although the daemon has resumed it.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .run = run,
};
