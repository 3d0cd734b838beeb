/* SPDX-License-Identifier: Apache-2.0 */

/*
 * decide POLICY CASES: for every line of CASES, which describes a process,
 * writes the line, the rule that it gets, and why.
 *
 * A line is a list of attributes with blanks between them: unit=web.service,
 * args=dotnet|App.dll (several texts), exe=? (unknown), unit=- (absent),
 * args+=a|b (there were more), "\s" for a blank. What is not named is unknown,
 * except the container, which is absent.
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/match.h"
#include "tests/golden/golden.h"

enum { TEXTS_MAX = 16 };

/* Attributes whose texts point into the line. */
struct process {
    struct attributes attributes;
    const char *texts[ATTRIBUTE_COUNT][TEXTS_MAX];
};

static enum attribute_id attribute_called(const char *name)
{
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        if (strcmp(attribute_name((enum attribute_id)i), name) == 0)
            return (enum attribute_id)i;
    }
    errx(2, "no attribute is called %s", name);
}

static void init(struct process *process)
{
    *process = (struct process){.attributes = {.pid = 1}};
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        process->attributes.list[i] = (struct attribute){.source = "the case",
                                                         .why = "not asked for",
                                                         .texts = process->texts[i]};
    }
    process->attributes.list[ATTRIBUTE_CONTAINER].state = ATTRIBUTE_ABSENT;
    process->attributes.list[ATTRIBUTE_CONTAINER].why = "on the host";
}

static void unescape_blanks(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (from[0] == '\\' && from[1] == 's') {
            *to++ = ' ';
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static void set(struct process *process, char *token)
{
    char *value = strchr(token, '='), *rest;
    struct attribute *attribute;
    bool is_cut;

    if (!value)
        errx(2, "%s has no value", token);
    is_cut = value > token && value[-1] == '+';
    value[is_cut ? -1 : 0] = '\0';
    value++;
    attribute = &process->attributes.list[attribute_called(token)];
    attribute->is_cut = is_cut;
    attribute->why = "";
    attribute->n_texts = 0;
    if (strcmp(value, "?") == 0 || strcmp(value, "-") == 0) {
        attribute->state = value[0] == '?' ? ATTRIBUTE_UNKNOWN : ATTRIBUTE_ABSENT;
        attribute->why = value[0] == '?' ? "permission denied" : "there is none";
        return;
    }
    attribute->state = ATTRIBUTE_PRESENT;
    for (char *text = strtok_r(value, "|", &rest); text; text = strtok_r(NULL, "|", &rest)) {
        if (attribute->n_texts == TEXTS_MAX)
            errx(2, "%s has too many texts", token);
        unescape_blanks(text);
        attribute->texts[attribute->n_texts++] = text;
    }
}

static void explain(const struct policy *policy, const struct match_decision *decision,
                    const struct attributes *attributes)
{
    for (size_t i = 0; i < decision->n_reasons; i++) {
        const struct match_reason *reason = &decision->reasons[i];
        struct bytes text;

        bytes_init(&text, SIZE_MAX - 1);
        match_explain(&policy->rules[i], reason, attributes, &text);
        if (bytes_finish(&text) != 0)
            errx(2, "memory");
        printf("   %s: %s: %s\n", policy->rules[i].name,
               match_verdict_name((enum match_verdict)reason->verdict), (const char *)text.data);
        bytes_deinit(&text);
    }
}

static void decide(const struct policy *policy, char *line)
{
    struct match_decision decision;
    struct process process;
    char *rest;

    printf("%s\n", line);
    init(&process);
    for (char *token = strtok_r(line, " ", &rest); token; token = strtok_r(NULL, " ", &rest))
        set(&process, token);
    if (match_decide(policy, &process.attributes, &decision) != 0)
        errx(2, "memory");
    printf("-> %s%s\n", decision.rule ? decision.rule->name : "no rule",
           decision.by_unknown ? ", since it could not be decided" : "");
    explain(policy, &decision, &process.attributes);
    match_decision_deinit(&decision);
}

int main(int argc, char **argv)
{
    struct golden_sources sources, cases;
    struct policy_problems problems;
    struct policy_host host;
    struct policy *policy;
    char *line, *rest;

    if (argc != 3)
        errx(2, "usage: decide POLICY CASES");
    golden_read_sources(argv[1], &sources);
    golden_read_sources(argv[2], &cases);
    host = golden_host(&sources);
    if (policy_read(sources.list, sources.n, &host, &policy, &problems) != 0)
        errx(2, "memory");
    if (problems.n > 0)
        golden_print_problems(&problems, stdout);
    if (!policy)
        return EXIT_FAILURE;
    line = strdup(cases.list[0].bytes);
    if (!line)
        errx(2, "memory");
    for (char *at = strtok_r(line, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest)) {
        if (at[0] == '#')
            printf("\n%s\n", at);
        else
            decide(policy, at);
    }
    free(line);
    policy_unref(policy);
    policy_problems_deinit(&problems);
    golden_free_sources(&sources);
    golden_free_sources(&cases);
    return EXIT_SUCCESS;
}
