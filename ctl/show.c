/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl show: everything about one runtime, on one page.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/ask.h"
#include "ctl/command.h"
#include "ctl/decision.h"
#include "ctl/output.h"
#include "ctl/runtime.h"
#include "lib/bytes.h"
#include "lib/util.h"

static void put_text(struct page *page, const char *label, const json_t *runtime,
                     const char *member)
{
    const char *text = answer_text(runtime, member);

    if (text && text[0] != '\0')
        page_field(page, label, "%s", text);
}

static void put_bytes(struct page *page, const char *label, struct bytes *text)
{
    if (bytes_finish(text) == 0 && text->length > 0)
        page_field(page, label, "%s", (const char *)text->data);
    bytes_deinit(text);
}

static void put_process(const json_t *runtime, struct page *page)
{
    const json_t *claimed = answer_member(runtime, "claimed_pid");
    struct bytes text;

    bytes_init(&text, SIZE_MAX - 1);
    if (answer_number(runtime, "pid") != 0)
        bytes_put_format(&text, "%" PRId64 " of user ", answer_number(runtime, "pid"));
    else
        bytes_put_string(&text, "not known, of user ");
    runtime_put_user(runtime, &text);
    if (answer_text(runtime, "user"))
        bytes_put_format(&text, " (%" PRId64 ")", answer_number(runtime, "uid"));
    if (json_is_integer(claimed) && json_integer_value(claimed) != answer_number(runtime, "pid"))
        bytes_put_format(&text, ", which is %" JSON_INTEGER_FORMAT " where it lives",
                         json_integer_value(claimed));
    put_bytes(page, "process", &text);
}

static void put_kind(const json_t *runtime, struct page *page)
{
    static const char *const members[] = {"kind", "runtime_version", "rid"};
    struct bytes text;

    bytes_init(&text, SIZE_MAX - 1);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
        const char *part = answer_text(runtime, members[i]);

        if (part)
            bytes_put_format(&text, "%s%s", text.length > 0 ? " " : "", part);
    }
    put_bytes(page, ".NET", &text);
}

static void put_identity(const json_t *runtime, struct page *page)
{
    struct bytes command;

    page_label(page, "runtime");
    page_styled(page, STYLE_STRONG, answer_text_or_empty(runtime, "cookie"));
    page_end_line(page);
    put_process(runtime, page);
    put_text(page, "program", runtime, "exe");
    bytes_init(&command, SIZE_MAX - 1);
    runtime_put_arguments(answer_member(runtime, "cmdline"), &command);
    put_bytes(page, "command", &command);
    put_text(page, "assembly", runtime, "assembly");
    put_text(page, "unit", runtime, "unit");
    put_text(page, "container", runtime, "container");
    put_kind(runtime, page);
}

static void put_ports(const json_t *runtime, struct page *page)
{
    const json_t *ports = answer_member(runtime, "ports");
    const json_t *others = answer_member(ports, "other");
    const int64_t n_connections = answer_number(runtime, "connections");
    const int64_t n_suspending = answer_number(ports, "suspending");
    struct bytes text;

    bytes_init(&text, SIZE_MAX - 1);
    bytes_put_string(&text, answer_text_or_empty(runtime, "port"));
    bytes_put_format(&text, ", %" PRId64 " connection%s open", n_connections,
                     answer_plural(n_connections));
    if (json_is_integer(answer_member(ports, "suspending")))
        bytes_put_format(&text, ", suspended by %" PRId64 " port%s", n_suspending,
                         answer_plural(n_suspending));
    if (json_array_size(others) > 0) {
        bytes_put_string(&text, "; not ours: ");
        answer_put_list(&text, others, ", ");
    }
    put_bytes(page, "port", &text);
}

static void put_blocked(const json_t *runtime, struct page *page)
{
    const char *words = runtime_blocked_words(runtime);
    struct bytes ports;

    if (!words)
        return;
    bytes_init(&ports, SIZE_MAX - 1);
    answer_put_list(&ports, answer_member(runtime, "blocked_ports"), ", ");
    page_label(page, "blocked");
    page_styled(page, STYLE_BAD, words);
    if (bytes_finish(&ports) == 0 && ports.length > 0)
        page_format(page, ": %s", (const char *)ports.data);
    page_end_line(page);
    bytes_deinit(&ports);
}

static void put_state(const json_t *runtime, struct page *page)
{
    const char *outcome = answer_text(runtime, "outcome"), *rule = answer_text(runtime, "rule");
    const char *why = answer_text_or_empty(runtime, "why");

    page_end_line(page);
    page_label(page, "state");
    page_styled(page, runtime_style(runtime), answer_text_or_empty(runtime, "state"));
    page_end_line(page);
    put_blocked(runtime, page);
    page_field(page, "rule", "%s", rule ? rule : outcome ? "none matches" : "not decided yet");
    if (outcome || why[0] != '\0')
        page_field(page, "outcome", "%s%s%s", outcome ? outcome : "none yet",
                   why[0] != '\0' ? ": " : "", why);
}

static void put_times(const json_t *runtime, struct page *page)
{
    char hold[ANSWER_SPAN_SIZE];

    page_end_line(page);
    put_text(page, "connected", runtime, "connected_at");
    put_text(page, "deadline", runtime, "deadline_at");
    if (strcmp(answer_text_or_empty(runtime, "state"), "held") == 0)
        page_field(page, "held until", "%s",
                   answer_text(runtime, "hold_until") ? answer_text(runtime, "hold_until")
                                                      : "somebody resumes it");
    put_text(page, "resumed", runtime, "resumed_at");
    put_text(page, "ended", runtime, "ended_at");
    page_field(page, "waited", "%s", answer_member_span(runtime, "hold_seconds", hold));
}

static int print(const struct call *call, const json_t *runtime)
{
    struct page page;

    (void)call;
    page_init(&page);
    put_identity(runtime, &page);
    put_ports(runtime, &page);
    put_state(runtime, &page);
    put_times(runtime, &page);
    decision_put_steps(answer_member(runtime, "steps"), answer_text(runtime, "connected_at"),
                       "Steps, in their order", &page);
    decision_put_trace(answer_member(runtime, "trace"), &page);
    decision_put_attributes(answer_member(runtime, "attributes"), &page);
    return page_write(&page);
}

static int run(const struct call *call)
{
    char *target;
    int status = runtime_make_target(call->operands[0], NULL, &target);

    if (status != STATUS_DONE)
        return status;
    status = ask_get(call, target, print);
    free(target);
    return status;
}

const struct command command_show = {
    .name = "show",
    .operands = "ID",
    .summary = "show everything about one runtime",
    .help = "Shows who the runtime is, what was done to it, when, and why.\n"
            "\n" RUNTIME_ID_HELP,
    .n_operands_min = 1,
    .n_operands_max = 1,
    .run = run,
};
