/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/match.h"

#include <errno.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/glob.h"

/* What a selector says, and which one decided it. */
struct result {
    enum match_verdict verdict; /* no, yes or unknown */
    uint16_t selector;
};

/*
 * Arguments, groups and variables of a process may be as many and as long as
 * the kernel allows, and are compared with the patterns of every rule. For all
 * that together there are so many steps, some ten milliseconds; then what was
 * not compared yet is unknown.
 */
enum { STEPS_MAX = 2 * 1024 * 1024 };

struct matching {
    const struct attributes *attributes;
    size_t steps; /* that are left */
};

static struct result evaluate(const struct selector *selector, struct matching *matching);

static struct result yes(void)
{
    return (struct result){MATCH_YES, MATCH_SELECTOR_NONE};
}

static bool fits_one(const struct selector *selector, const char *text, size_t *steps)
{
    for (size_t i = 0; i < selector->n_globs; i++) {
        if (glob_match_within(selector->globs[i], text, steps))
            return true;
    }
    return false;
}

static void take_steps(struct matching *matching, size_t n)
{
    matching->steps -= n < matching->steps ? n : matching->steps;
}

/* The first argument is the name that the program was called by. */
static size_t first_text(enum attribute_id attribute)
{
    return attribute == ATTRIBUTE_ARGUMENTS ? 1 : 0;
}

/* What there is one of is always compared: it is short. */
static enum match_verdict evaluate_text(const struct selector *selector, struct matching *matching)
{
    const struct attribute *attribute = &matching->attributes->list[selector->attribute];
    size_t unlimited = SIZE_MAX, *steps = attribute->n_texts > 1 ? &matching->steps : &unlimited;

    if (attribute->state == ATTRIBUTE_UNKNOWN)
        return MATCH_UNKNOWN;
    if (attribute->state == ATTRIBUTE_ABSENT)
        return MATCH_NO;
    for (size_t i = first_text(selector->attribute); i<attribute->n_texts && * steps> 0; i++) {
        --*steps;
        if (fits_one(selector, attribute->texts[i], steps))
            return MATCH_YES;
    }
    return attribute->is_cut || *steps == 0 ? MATCH_UNKNOWN : MATCH_NO;
}

/* True when the value is the end of an environment that was cut, so it may be longer. */
static bool is_cut_value(const struct attributes *attributes, const char *value)
{
    const struct attribute *environment = &attributes->list[ATTRIBUTE_ENVIRON];
    const char *last =
        environment->n_texts > 0 ? environment->texts[environment->n_texts - 1] : NULL;
    /* There is none where the name itself was cut. */
    const char *equals = last ? strchr(last, '=') : NULL;

    return environment->is_cut && equals && value == equals + 1;
}

static enum match_verdict evaluate_variable(const struct selector *selector,
                                            struct matching *matching)
{
    const struct attributes *attributes = matching->attributes;
    const char *value = NULL;

    take_steps(matching, attributes->list[ATTRIBUTE_ENVIRON].n_texts);
    if (matching->steps == 0)
        return MATCH_UNKNOWN;
    switch (attributes_variable(attributes, selector->name, &value)) {
    case ATTRIBUTE_UNKNOWN:
        return MATCH_UNKNOWN;
    case ATTRIBUTE_ABSENT:
        return MATCH_NO;
    case ATTRIBUTE_PRESENT:
        if (fits_one(selector, value, &matching->steps))
            return MATCH_YES;
        return is_cut_value(attributes, value) || matching->steps == 0 ? MATCH_UNKNOWN : MATCH_NO;
    }
    return MATCH_UNKNOWN;
}

/* One child that does not hold decides, else one that is unknown. */
static struct result evaluate_all(const struct selector *selector, struct matching *matching)
{
    struct result all = yes();

    for (size_t i = 0; i < selector->n_children; i++) {
        struct result child = evaluate(&selector->children[i], matching);

        if (child.verdict == MATCH_NO)
            return child;
        if (child.verdict == MATCH_UNKNOWN && all.verdict == MATCH_YES)
            all = child;
    }
    return all;
}

/* One child that holds decides, else one that is unknown. */
static struct result evaluate_any(const struct selector *selector, struct matching *matching)
{
    struct result any = {MATCH_NO, selector->number};

    for (size_t i = 0; i < selector->n_children; i++) {
        struct result child = evaluate(&selector->children[i], matching);

        if (child.verdict == MATCH_YES)
            return child;
        if (child.verdict == MATCH_UNKNOWN && any.verdict == MATCH_NO)
            any = child;
    }
    return any;
}

static struct result evaluate_not(const struct selector *selector, struct matching *matching)
{
    struct result child = evaluate(&selector->children[0], matching);

    switch (child.verdict) {
    case MATCH_YES:
        return (struct result){MATCH_NO, selector->number};
    case MATCH_NO:
        return yes();
    default:
        return child;
    }
}

/* No deeper than the document that the policy was read from. */
static struct result evaluate(const struct selector *selector, struct matching *matching)
{
    struct result result = {MATCH_UNKNOWN, selector->number};

    switch (selector->kind) {
    case SELECTOR_ALL:
        return evaluate_all(selector, matching);
    case SELECTOR_ANY:
        return evaluate_any(selector, matching);
    case SELECTOR_NOT:
        return evaluate_not(selector, matching);
    case SELECTOR_TEXT:
        result.verdict = evaluate_text(selector, matching);
        break;
    case SELECTOR_VARIABLE:
        result.verdict = evaluate_variable(selector, matching);
        break;
    }
    return result;
}

/* The selector that every rule has unless it lifts it: on the host, not in a container. */
static struct result evaluate_host(const struct attributes *attributes)
{
    switch (attributes->list[ATTRIBUTE_CONTAINER].state) {
    case ATTRIBUTE_ABSENT:
        return yes();
    case ATTRIBUTE_PRESENT:
        return (struct result){MATCH_NO, MATCH_SELECTOR_CONTAINER};
    case ATTRIBUTE_UNKNOWN:
        break;
    }
    return (struct result){MATCH_UNKNOWN, MATCH_SELECTOR_CONTAINER};
}

static enum match_verdict judge(const struct policy_rule *rule, struct matching *matching,
                                uint16_t *ret_selector)
{
    struct result host = rule->any_container ? yes() : evaluate_host(matching->attributes);
    struct result result = host;

    if (host.verdict != MATCH_NO) {
        result = evaluate(&rule->match, matching);
        if (result.verdict != MATCH_NO && host.verdict == MATCH_UNKNOWN)
            result = host;
    }
    *ret_selector = result.verdict == MATCH_YES ? MATCH_SELECTOR_NONE : result.selector;
    return result.verdict;
}

enum match_verdict match_rule(const struct policy_rule *rule, const struct attributes *attributes,
                              uint16_t *ret_selector)
{
    struct matching matching = {.attributes = attributes, .steps = STEPS_MAX};

    return judge(rule, &matching, ret_selector);
}

/* True when the rule is the one for the process; `*has_unknown` says that an earlier one might have
 * been, and is kept up to date. */
static bool decide_rule(const struct policy_rule *rule, struct matching *matching,
                        bool *has_unknown, struct match_reason *ret_reason)
{
    enum match_verdict verdict = judge(rule, matching, &ret_reason->selector);
    bool is_stopped = verdict == MATCH_UNKNOWN && rule->match_unknown == POLICY_UNKNOWN_STOP;

    if (verdict == MATCH_YES && *has_unknown && policy_rule_is_guarded(rule))
        verdict = MATCH_BARRED;
    ret_reason->verdict = (uint8_t)verdict;
    if (is_stopped && !rule->ignore)
        *has_unknown = true;
    return verdict == MATCH_YES || (is_stopped && rule->ignore);
}

int match_decide(const struct policy *policy, const struct attributes *attributes,
                 struct match_decision *ret_decision)
{
    struct match_decision decision = {.n_reasons = policy->n_rules};
    struct matching matching = {.attributes = attributes, .steps = STEPS_MAX};
    bool has_unknown = false;

    decision.reasons = calloc(policy->n_rules + 1, sizeof *decision.reasons);
    if (!decision.reasons)
        return -ENOMEM;
    for (size_t i = 0; i < policy->n_rules; i++) {
        struct match_reason *reason = &decision.reasons[i];

        if (decision.rule) {
            *reason = (struct match_reason){MATCH_NOT_ASKED, MATCH_SELECTOR_NONE};
        } else if (decide_rule(&policy->rules[i], &matching, &has_unknown, reason)) {
            decision.rule = &policy->rules[i];
            decision.by_unknown = reason->verdict == MATCH_UNKNOWN;
        }
    }
    *ret_decision = decision;
    return 0;
}

void match_decision_deinit(struct match_decision *decision)
{
    free(decision->reasons);
    *decision = (struct match_decision){.reasons = NULL};
}

static const struct selector *find_selector(const struct selector *selector, uint16_t number)
{
    if (selector->number == number)
        return selector;
    for (size_t i = 0; i < selector->n_children; i++) {
        const struct selector *found = find_selector(&selector->children[i], number);

        if (found)
            return found;
    }
    return NULL;
}

const struct selector *match_selector(const struct policy_rule *rule, uint16_t number)
{
    return find_selector(&rule->match, number);
}

const char *match_verdict_name(enum match_verdict verdict)
{
    switch (verdict) {
    case MATCH_NO:
        return "no";
    case MATCH_YES:
        return "yes";
    case MATCH_UNKNOWN:
        return "unknown";
    case MATCH_BARRED:
        return "barred";
    case MATCH_NOT_ASKED:
        return "not_asked";
    }
    return NULL;
}
