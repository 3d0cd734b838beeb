/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl explain: which rule a process would get if it connected now, and
 * why. Nothing is sent to it.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/ask.h"
#include "ctl/command.h"
#include "ctl/decision.h"
#include "ctl/output.h"
#include "lib/text.h"
#include "lib/util.h"

static const char *action_words(const char *action)
{
    static const struct {
        const char *name, *words;
    } actions[] = {
        {"apply", "the rule is applied"},
        {"observe", "the rule is only recorded (mode: observe), and it is resumed"},
        {"ignore", "it is resumed untouched (ignore: true)"},
        {"none", "the rule has nothing to apply, so it is resumed untouched"},
        {"untouched", "no rule matches, so it is resumed untouched"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(actions); i++) {
        if (strcmp(action, actions[i].name) == 0)
            return actions[i].words;
    }
    return action;
}

static void put_port(const json_t *answer, struct page *page)
{
    const char *picture = answer_text(answer, "picture"), *mode = answer_text(answer, "port_mode");

    if (picture)
        page_field(page, "threads", "%s",
                   strcmp(picture, "suspended") == 0 ? "as of a runtime that waits to be resumed"
                   : strcmp(picture, "running") == 0 ? "as of a runtime that runs"
                                                     : "do not tell whether it runs");
    if (mode)
        page_field(page, "ports", "%s",
                   strcmp(mode, "suspends") == 0  ? "its own list says that it waits"
                   : strcmp(mode, "runs_on") == 0 ? "its own list says that it does not wait"
                                                  : "its own list is not known, or mixed");
}

static int print(const struct call *call, const json_t *answer)
{
    const char *rule = answer_text(answer, "rule"), *id = answer_text(answer, "id");
    struct page page;

    (void)call;
    page_init(&page);
    page_field(&page, "process", "%" PRId64 "%s%s", answer_number(answer, "pid"),
               id ? ", runtime " : ", no runtime that is known here", id ? id : "");
    page_label(&page, "rule");
    page_styled(&page, STYLE_STRONG, rule ? rule : "none");
    page_end_line(&page);
    page_field(&page, "effect", "%s%s", action_words(answer_text_or_empty(answer, "action")),
               answer_is_true(answer, "by_unknown") ? ", since it could not be decided" : "");
    put_port(answer, &page);
    decision_put_steps(answer_member(answer, "steps"), NULL, "Steps, in their order", &page);
    decision_put_trace(answer_member(answer, "trace"), &page);
    decision_put_attributes(answer_member(answer, "attributes"), &page);
    return page_write(&page);
}

static int run(const struct call *call)
{
    const char *word = call->operands[0];
    json_t *question;
    uint64_t pid;
    int status;

    if (!text_number(word, strlen(word), INT32_MAX, &pid) || pid == 0) {
        output_error("\"%s\" is no process id", word);
        return STATUS_USAGE;
    }
    question = json_pack("{s:I}", "pid", (json_int_t)pid);
    if (!question)
        return output_no_memory();
    status = ask_post(call, "/v1/explain", question, print);
    json_decref(question);
    return status;
}

const struct command command_explain = {
    .name = "explain",
    .operands = "PID",
    .summary = "say which rule a process would get, and why",
    .help = "Looks at a process as if its runtime had just connected, and says which rule it\n"
            "would get, why it would get none of the others, and what would be sent. Nothing\n"
            "is sent, and the process need not be one of .NET.\n",
    .n_operands_min = 1,
    .n_operands_max = 1,
    .run = run,
};
