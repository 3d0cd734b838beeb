/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which rule a process gets, and why not the others.
 *
 * The daemon's own decision, `explain` and everything else that asks go through
 * match_decide: there is one matcher.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/policy.h"
#include "lib/util.h"

struct attributes;

enum match_verdict {
    MATCH_NO,
    MATCH_YES,
    /* An attribute that decides could not be read, or is so large that comparing it took too long.
     */
    MATCH_UNKNOWN,
    MATCH_BARRED, /* would match, but an earlier rule could not be decided (match_unknown: stop) */
    MATCH_NOT_ASKED, /* a rule before it matched */
};

/* In place of a selector's number. */
enum {
    MATCH_SELECTOR_NONE = 0xFFFF,      /* nothing in particular: it matches, or was not asked */
    MATCH_SELECTOR_CONTAINER = 0xFFFE, /* the implied "on the host, not in a container" */
};

struct match_reason {
    uint8_t verdict;   /* enum match_verdict */
    uint16_t selector; /* the first one that decided against the rule, or was unknown */
};

struct match_decision {
    const struct policy_rule *rule; /* NULL: none matches */
    /* True when an `ignore` rule counts as matched because it could not be decided. */
    bool by_unknown;
    struct match_reason *reasons; /* one per rule of the policy, in order */
    size_t n_reasons;
};

/* Decides. `ret_decision` points into the policy and has to be freed with match_decision_deinit.
 * 0 or -ENOMEM. */
int match_decide(const struct policy *policy, const struct attributes *attributes,
                 struct match_decision *ret_decision) MUST_CHECK;

void match_decision_deinit(struct match_decision *decision);

/* MATCH_NO, MATCH_YES or MATCH_UNKNOWN of one rule alone. */
enum match_verdict match_rule(const struct policy_rule *rule, const struct attributes *attributes,
                              uint16_t *ret_selector);

/* The selector of that number in a rule; NULL for the two special values. */
const struct selector *match_selector(const struct policy_rule *rule, uint16_t number);

const char *match_verdict_name(enum match_verdict verdict);

/*
 * Appends one sentence: why the rule got that verdict, e.g.
 *   unit "web.service" is none of "payments-*.service"
 * Values of variables are never in it.
 */
void match_explain(const struct policy_rule *rule, const struct match_reason *reason,
                   const struct attributes *attributes, struct bytes *out);
