/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All that is read of a process, each text up to a byte FF, with a byte before
 * it that says whether it could be read: from the raw facts to the rule it gets
 * and the sentences that say why.
 */

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/match.h"
#include "lib/picture.h"
#include "lib/policy_read.h"
#include "lib/portspec.h"
#include "lib/settings.h"
#include "lib/text.h"
#include "tests/fuzz/fuzz.h"

enum { PID = 4242, TEXT_END = 0xFF };

static const char policy_text[] =
    "version: 1\n"
    "rules:\n"
    "  - { name: a, env: { A: a }, match: { exe: \"/opt/*\", args: \"*-x*\", cwd: /srv } }\n"
    "  - { name: b, env: { A: b }, match_unknown: next,\n"
    "      match: { env: { SECRET: \"*z*\", GONE: \"?*\" } } }\n"
    "  - { name: c, ignore: true, match: { user: [root, \"10*\"], group: \"4*\" } }\n"
    "  - { name: d, env: { A: d }, match: { not: { exe: \"/x*\" },\n"
    "      any: [ { unit: \"web*\" }, { assembly: \"*b\" }, { parent: \"*sh\" } ] } }\n"
    "  - { name: e, env: { A: e },\n"
    "      match: { container: any, assembly: App, port: x } }\n"
    "  - { name: f, env: { A: f }, match: all }\n";

/* Read once. */
static const struct policy *the_policy(void)
{
    static struct policy *policy;
    const struct policy_source source = {"p", policy_text, sizeof policy_text - 1};
    const struct policy_host host = {.context = NULL};
    struct policy_problems problems;

    if (policy)
        return policy;
    FUZZ_HOLDS(policy_read(&source, 1, &host, &policy, &problems) == 0);
    if (!policy)
        fprintf(stderr, "%u: %s\n", problems.list[0].line, problems.list[0].text);
    FUZZ_HOLDS(policy);
    policy_problems_deinit(&problems);
    return policy;
}

static void take_text(struct fuzz_input *input, struct facts_text *text)
{
    uint8_t state = fuzz_take_u8(input);
    struct fuzz_input part = fuzz_take_until(input, TEXT_END);

    if (state % 8 == 7) {
        text->error = state;
        return;
    }
    facts_text_set(text, part.at, part.left);
    text->error = 0;
    text->is_cut = state % 8 == 6;
}

static void take_threads(struct fuzz_input *input, struct facts *facts)
{
    uint8_t state = fuzz_take_u8(input);

    facts->threads_error = state % 8 == 7 ? state : 0;
    facts->n_threads = state;
    for (size_t i = 0; i < state && i < FACTS_THREADS_MAX; i++) {
        struct fuzz_input name = fuzz_take_until(input, '\n');
        struct facts_thread *thread = &facts->threads[i];

        thread->id = i == 0 ? PID : PID + (int32_t)i;
        memcpy(thread->name, name.at,
               name.left < sizeof thread->name ? name.left : sizeof thread->name - 1);
    }
}

static struct facts *take_facts(struct fuzz_input *input)
{
    uint8_t bits = fuzz_take_u8(input);
    uint32_t wanted = fuzz_take_u8(input) | (uint32_t)fuzz_take_u8(input) << 8;
    struct facts *facts = facts_new(wanted, 61);

    FUZZ_HOLDS(facts);
    facts->is_alive = bits & 1;
    facts->is_frozen = bits & 2;
    take_text(input, &facts->stat);
    take_text(input, &facts->status);
    take_text(input, &facts->exe);
    take_text(input, &facts->arguments);
    take_text(input, &facts->cwd);
    take_text(input, &facts->cgroup);
    take_text(input, &facts->environ);
    take_text(input, &facts->parent_exe);
    take_threads(input, facts);
    return facts;
}

static void check_attribute(const struct attribute *attribute)
{
    FUZZ_HOLDS(attribute->why && attribute->source);
    FUZZ_HOLDS(attribute->state != ATTRIBUTE_PRESENT || attribute->why[0] == '\0');
    FUZZ_HOLDS(attribute->state == ATTRIBUTE_PRESENT || attribute->n_texts == 0);
    for (size_t i = 0; i < attribute->n_texts; i++)
        FUZZ_HOLDS(strlen(attribute->texts[i]) < SIZE_MAX);
}

static void explain(const struct policy *policy, const struct match_decision *decision,
                    const struct attributes *attributes)
{
    for (size_t i = 0; i < decision->n_reasons; i++) {
        struct bytes out;

        bytes_init(&out, SIZE_MAX - 1);
        match_explain(&policy->rules[i], &decision->reasons[i], attributes, &out);
        FUZZ_HOLDS(bytes_finish(&out) == 0);
        FUZZ_HOLDS(text_is_utf8(out.data, out.length));
        bytes_deinit(&out);
    }
}

/* Exactly one rule is for it at most, and none after the first that could not be decided and says
 * to stop there. */
static void decide(const struct attributes *attributes)
{
    const struct policy *policy = the_policy();
    struct match_decision decision;
    size_t n_chosen = 0;

    FUZZ_HOLDS(match_decide(policy, attributes, &decision) == 0);
    FUZZ_HOLDS(decision.n_reasons == policy->n_rules);
    for (size_t i = 0; i < decision.n_reasons; i++) {
        enum match_verdict verdict = (enum match_verdict)decision.reasons[i].verdict;

        n_chosen += verdict == MATCH_YES;
        if (verdict == MATCH_YES)
            FUZZ_HOLDS(decision.rule == &policy->rules[i]);
    }
    FUZZ_HOLDS(n_chosen <= 1);
    FUZZ_HOLDS(decision.by_unknown || (n_chosen == 1) == (decision.rule != NULL));
    explain(policy, &decision, attributes);
    match_decision_deinit(&decision);
}

static void look_at_settings(const struct attributes *attributes)
{
    struct portspec portspec;
    const char *value = NULL;

    if (settings_ports(attributes, &value) == ATTRIBUTE_PRESENT)
        portspec_read(value, &portspec);
    (void)settings_suspends_default_port(attributes);
    (void)settings_prevent_profilers(attributes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct attributes attributes;

    attributes_init(&attributes);
    /* A second answer adds to the first. */
    for (int i = 0; i < 2; i++) {
        struct facts *facts = take_facts(&input);

        FUZZ_HOLDS(attributes_take_facts(&attributes, PID, facts, NULL) == 0);
        (void)picture_of(facts, PID);
        facts_free(facts);
        for (size_t id = 0; id < ATTRIBUTE_COUNT; id++)
            check_attribute(&attributes.list[id]);
        look_at_settings(&attributes);
        decide(&attributes);
    }
    attributes_trim(&attributes, 8);
    FUZZ_HOLDS(attributes.list[ATTRIBUTE_ENVIRON].state != ATTRIBUTE_PRESENT);
    decide(&attributes);
    attributes_deinit(&attributes);
    return 0;
}
