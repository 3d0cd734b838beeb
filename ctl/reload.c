/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl reload: has the daemon read its policy again, and says its
 * verdict; for ExecReload= as well as for people.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"

/* As `check` and the daemon's own log write them. */
static void put_problem(const json_t *problem, struct page *page)
{
    const bool is_warning = strcmp(answer_text_or_empty(problem, "severity"), "warning") == 0;

    page_text(page, answer_text_or_empty(problem, "file"));
    if (json_is_integer(answer_member(problem, "line")))
        page_format(page, ":%" PRId64 ":%" PRId64, answer_number(problem, "line"),
                    answer_number(problem, "column"));
    page_format(page, ": %s%s", is_warning ? "warning: " : "",
                answer_text_or_empty(problem, "text"));
    page_end_line(page);
}

static void print_problems(const json_t *answer)
{
    const json_t *problems = answer_member(answer, "problems");
    struct page page;

    page_init(&page);
    for (size_t i = 0; i < json_array_size(problems); i++)
        put_problem(json_array_get(problems, i), &page);
    page_write_error(&page);
    if (answer_number(answer, "n_dropped") > 0)
        output_error("%" PRId64 " more problems are not shown", answer_number(answer, "n_dropped"));
}

static int print(const json_t *answer)
{
    const json_t *policy = answer_member(answer, "policy");
    const char *why = answer_text(answer, "why"), *hash = answer_text_or_empty(policy, "hash");
    struct page page;

    print_problems(answer);
    if (!answer_is_true(answer, "ok")) {
        output_error("not reloaded%s%s; the policy before%s%.12s%s stays in force", why ? ": " : "",
                     why ? why : "", *hash ? ", " : "", hash, *hash ? "," : "");
        return STATUS_DONE;
    }
    page_init(&page);
    page_format(&page, "reloaded; policy %.12s with %" PRId64 " rule%s is in force", hash,
                answer_number(policy, "rules"), answer_plural(answer_number(policy, "rules")));
    page_end_line(&page);
    return page_write(&page);
}

static int run(const struct call *call)
{
    struct client *client;
    json_t *answer;
    int status = client_open(call, &client);

    if (status != STATUS_DONE)
        return status;
    status = client_post(client, "/v1/policy/reload", NULL, &answer);
    if (status == STATUS_DONE)
        status = call->is_json ? output_json(answer) : print(answer);
    if (status == STATUS_DONE && !answer_is_true(answer, "ok"))
        status = STATUS_NO;
    json_decref(answer);
    client_free(client);
    return status;
}

const struct command command_reload = {
    .name = "reload",
    .summary = "have the daemon read its policy again",
    .help = "Has the daemon read its policy files again and waits for the verdict: exit status\n"
            "0 when the new policy is in force, 1 when it has errors or needs a restart; then\n"
            "the one before stays in force. Runtimes that are there already are not affected.\n",
    .is_weighty = true,
    .run = run,
};
