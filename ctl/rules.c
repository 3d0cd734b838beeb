/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl rules: the rules in force, what they do, and how often they
 * matched.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/ask.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/table.h"
#include "lib/bytes.h"
#include "lib/util.h"

enum { OPTION_BUILTIN };

static const struct command_option options[] = {
    [OPTION_BUILTIN] = {"builtin", '\0', NULL, NULL},
};

static void put_count(const json_t *rule, const char *member, const char *one, const char *many,
                      struct bytes *out)
{
    const size_t n = json_array_size(answer_member(rule, member));

    if (n > 0)
        bytes_put_format(out, "%s%zu %s", out->length > 0 ? ", " : "", n, n == 1 ? one : many);
}

/* What it does, then where it is written. */
static void put_summary(const json_t *rule, struct bytes *out)
{
    if (answer_is_true(rule, "ignore")) {
        bytes_put_string(out, "ignore");
    } else {
        put_count(rule, "env", "variable", "variables", out);
        put_count(rule, "profilers", "profiler", "profilers", out);
        put_count(rule, "startup_hooks", "hook", "hooks", out);
    }
    if (out->length == 0)
        bytes_put_string(out, "nothing");
    if (strcmp(answer_text_or_empty(rule, "mode"), "observe") == 0)
        bytes_put_string(out, " (observe only)");
    bytes_put_format(out, "  [%s:%" PRId64 "]", answer_text_or_empty(rule, "file"),
                     answer_number(rule, "line"));
}

static void add_rule(struct table *table, const json_t *rule)
{
    const char *cells[4];
    struct bytes summary;
    char matches[32];

    bytes_init(&summary, SIZE_MAX - 1);
    put_summary(rule, &summary);
    snprintf(matches, sizeof matches, "%" PRId64, answer_number(rule, "matches"));
    cells[0] = answer_text(rule, "name");
    cells[1] = matches;
    cells[2] = answer_text(rule, "last_match");
    cells[3] = bytes_finish(&summary) == 0 ? (const char *)summary.data : NULL;
    table_add(table, cells, STYLE_PLAIN);
    bytes_deinit(&summary);
}

static int print(const struct call *call, const json_t *answer)
{
    static const struct table_column columns[] = {{.title = "RULE", .share = 0.3},
                                                  {.title = "MATCHES", .is_number = true},
                                                  {.title = "LAST"},
                                                  {.title = "DOES", .share = 0.4}};
    const json_t *rules = answer_member(answer, "rules");
    struct table *table = table_new(columns, ARRAY_LENGTH(columns));
    struct page page;

    (void)call;
    page_init(&page);
    for (size_t i = 0; table && i < json_array_size(rules); i++)
        add_rule(table, json_array_get(rules, i));
    if (json_array_size(rules) == 0 && output_width() > 0) {
        page_styled(&page, STYLE_FAINT, "no rule: every runtime is resumed untouched");
        page_end_line(&page);
    }
    table_put(table, 0, &page);
    return page_write(&page);
}

static int run(const struct call *call)
{
    return ask_get(call, "/v1/rules", print);
}

const struct command command_rules = {
    .name = "rules",
    .summary = "list the rules in force, and how often they matched",
    .help = "Lists the rules of the policy in force in the order in which they are tried, how\n"
            "often each has matched since it was loaded first, and what it does.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .run = run,
};
