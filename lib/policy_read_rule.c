/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rules and the keys that they share with `defaults`. What a rule selects is
 * read in policy_read_match.c, what it applies in policy_read_steps.c.
 */

#include <errno.h>

#include "lib/policy_parts.h"
#include "lib/policy_reader.h"

enum {
    RULE_NAME_MAX = 128, /* bytes */
    MESSAGE_AFTER_US = 4000000,
};

/* SIGKILL goes to the right process only when the kernel says which one it is. */
static void check_kill(struct reader *reader, const struct yaml_node *node)
{
    if (!reader->host->may_kill)
        reader_error(reader, node,
                     "\"kill\" needs the right to kill, which the daemon does not have; install "
                     "the drop-in that gives its probe CAP_KILL, or write hold");
    else if (!reader->host->has_peer_pidfd && !reader->policy->limits.allow_pid_identity)
        reader_error(reader, node,
                     "\"kill\" needs a kernel that names the process at the other end of a socket "
                     "(6.5); write hold, or set allow_pid_identity below \"limits\"");
}

static void check_times(struct reader *reader, const struct reader_view *view,
                        const struct policy_defaults *keys)
{
    const struct yaml_node *deadline = view->values[KEY_DEADLINE];
    const struct yaml_node *timeout = view->values[KEY_COMMAND_TIMEOUT];

    if (deadline && keys->deadline.us > MESSAGE_AFTER_US)
        reader_warn(reader, deadline,
                    "after 5s of waiting a runtime writes a message to the output of its program; "
                    "a deadline up to 4s avoids that");
    if ((deadline || timeout) && keys->deadline.us < keys->command_timeout.us)
        reader_warn(reader, deadline ? deadline : timeout,
                    "the deadline comes before the end of command_timeout, so no command has its "
                    "whole time; shorten command_timeout");
}

static void read_times(struct reader *reader, const struct reader_view *view,
                       struct policy_defaults *keys)
{
    const struct yaml_node *deadline = view->values[KEY_DEADLINE];
    const struct yaml_node *timeout = view->values[KEY_COMMAND_TIMEOUT];
    bool is_fine = true;

    if (deadline)
        is_fine = value_span(reader, KEY_DEADLINE, deadline, &keys->deadline);
    if (timeout)
        is_fine =
            value_span(reader, KEY_COMMAND_TIMEOUT, timeout, &keys->command_timeout) && is_fine;
    if (is_fine)
        check_times(reader, view, keys);
}

/* The keys that a rule and `defaults` have in common. */
static void read_common(struct reader *reader, const struct reader_view *view,
                        struct policy_defaults *keys)
{
    const struct yaml_node *const *values = view->values;
    unsigned choice;

    if (values[KEY_CHILDREN] && value_choice(reader, KEY_CHILDREN, values[KEY_CHILDREN], &choice))
        keys->children = (enum policy_children)choice;
    if (values[KEY_ON_CONFLICT] &&
        value_choice(reader, KEY_ON_CONFLICT, values[KEY_ON_CONFLICT], &choice))
        keys->on_conflict = (enum policy_on_conflict)choice;
    if (values[KEY_VERIFY] && value_choice(reader, KEY_VERIFY, values[KEY_VERIFY], &choice))
        keys->verify = (enum policy_verify)choice;
    if (values[KEY_ON_LOST] && value_choice(reader, KEY_ON_LOST, values[KEY_ON_LOST], &choice))
        keys->on_lost = (enum policy_on_lost)choice;
    if (values[KEY_ON_FAILURE] &&
        value_choice(reader, KEY_ON_FAILURE, values[KEY_ON_FAILURE], &choice)) {
        keys->on_failure = (enum policy_on_failure)choice;
        if (keys->on_failure == POLICY_FAILURE_KILL)
            check_kill(reader, values[KEY_ON_FAILURE]);
    }
    if (values[KEY_LATE] && value_choice(reader, KEY_LATE, values[KEY_LATE], &choice))
        keys->late = (enum policy_late)choice;
    if (values[KEY_HOLD_LIMIT])
        (void)!value_span(reader, KEY_HOLD_LIMIT, values[KEY_HOLD_LIMIT], &keys->hold_limit);
    if (values[KEY_PRIMER] && value_choice(reader, KEY_PRIMER, values[KEY_PRIMER], &choice))
        keys->primer = (enum policy_primer)choice;
    if (values[KEY_PRIMER_PATH])
        policy_read_primer_path(reader, values[KEY_PRIMER_PATH], keys);
    read_times(reader, view, keys);
}

/* Those of `defaults`, as far as the rule does not say them itself. */
static void take_defaults(struct reader *reader, struct policy_defaults *keys)
{
    *keys = reader->policy->defaults;
    if (keys->primer_path)
        keys->primer_path = reader_copy(reader, keys->primer_path);
}

void policy_read_defaults(struct reader *reader, const struct yaml_node *node)
{
    struct reader_view view;

    if (reader_view(reader, &view, SECTION_DEFAULTS, NULL, node))
        read_common(reader, &view, &reader->policy->defaults);
}

/* An ignored process gets nothing, so a key that gives it something was meant for another rule. */
static void check_ignore(struct reader *reader, const struct reader_view *view,
                         struct policy_rule *rule)
{
    static const enum policy_key_id steps[] = {KEY_ENV, KEY_PROFILERS, KEY_STARTUP_HOOKS};

    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        if (view->keys[steps[i]])
            reader_error(reader, view->keys[steps[i]],
                         "\"%s\" is never applied in a rule with \"ignore: true\"; leave one of "
                         "them out",
                         policy_key_row(steps[i])->name);
    }
    if (view->values[KEY_CHILDREN] && rule->keys.children == POLICY_CHILDREN_DETACH)
        reader_error(reader, view->keys[KEY_CHILDREN],
                     "\"children: detach\" is never applied in a rule with \"ignore: true\"; leave "
                     "one of them out");
    if (rule->mode == POLICY_OBSERVE)
        reader_warn(reader, view->keys[KEY_MODE],
                    "\"mode: observe\" has no effect in a rule with \"ignore: true\"; leave one of "
                    "them out");
    rule->keys.children = POLICY_CHILDREN_INHERIT;
}

/* True when the rule says something to apply, be it right or wrong. */
static bool has_steps(const struct reader_view *view, const struct policy_rule *rule)
{
    return view->keys[KEY_ENV] || view->keys[KEY_PROFILERS] || view->keys[KEY_STARTUP_HOOKS] ||
           view->keys[KEY_USE] || view->keys[KEY_TRACE] ||
           rule->keys.children == POLICY_CHILDREN_DETACH;
}

static void check_purpose(struct reader *reader, const struct reader_view *view,
                          struct policy_rule *rule)
{
    if (rule->ignore)
        check_ignore(reader, view, rule);
    else if (has_steps(view, rule))
        return;
    else if (rule->mode == POLICY_OBSERVE)
        reader_warn(reader, view->keys[KEY_MODE],
                    "there is nothing to observe: the rule applies nothing");
    else
        reader_error(reader, view->node,
                     "the rule applies nothing; write \"ignore: true\" if that is meant, or env, "
                     "profilers or startup_hooks beside \"match\"");
}

/* False when it is not known what the rule is for. */
static bool read_keys(struct reader *reader, const struct reader_view *view,
                      struct policy_rule *rule)
{
    const size_t n_errors = reader->n_errors;
    const struct yaml_node *const *values = view->values;
    unsigned choice;

    if (values[KEY_MATCH_UNKNOWN] &&
        value_choice(reader, KEY_MATCH_UNKNOWN, values[KEY_MATCH_UNKNOWN], &choice))
        rule->match_unknown = (enum policy_match_unknown)choice;
    if (values[KEY_IGNORE])
        (void)!value_bool(reader, KEY_IGNORE, values[KEY_IGNORE], &rule->ignore);
    if (values[KEY_MODE] && value_choice(reader, KEY_MODE, values[KEY_MODE], &choice))
        rule->mode = (enum policy_mode)choice;
    take_defaults(reader, &rule->keys);
    read_common(reader, view, &rule->keys);
    return reader->n_errors == n_errors;
}

static void read_rule(struct reader *reader, const struct yaml_node *node, struct policy_rule *rule)
{
    const size_t n_errors = reader->n_errors;
    const struct yaml_node *name, *match;
    struct reader_view view;
    bool is_known;

    *rule = (struct policy_rule){.place = reader_place(reader, node)};
    if (!reader_view(reader, &view, SECTION_RULE, NULL, node))
        return;
    is_known = reader->n_errors == n_errors;
    name = reader_need(reader, &view, KEY_NAME);
    if (name)
        (void)!value_name(reader, KEY_NAME, name, RULE_NAME_MAX, &rule->name);
    match = reader_need(reader, &view, KEY_MATCH);
    if (match)
        policy_read_match(reader, match, rule);
    is_known = read_keys(reader, &view, rule) && is_known;
    policy_read_steps(reader, &view, rule);
    if (is_known)
        check_purpose(reader, &view, rule);
}

void policy_read_rules(struct reader *reader, const struct yaml_node *node)
{
    struct policy *policy = reader->policy;
    struct policy_rule *rules;

    if (!value_list(reader, KEY_RULES, node)) {
        reader->is_incomplete = true;
        return;
    }
    rules = realloc(policy->rules, (policy->n_rules + node->n) * sizeof *rules);
    if (!rules) {
        reader->error = -ENOMEM;
        return;
    }
    policy->rules = rules;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        read_rule(reader, item, &rules[policy->n_rules++]);
}

/* Bundles are not in force: what is in one is read as the steps of a rule that is thrown away. */
void policy_read_bundles(struct reader *reader, const struct yaml_node *node)
{
    if (!value_names(reader, KEY_BUNDLES, node))
        return;
    for (const struct yaml_node *key = node->first; key; key = key->next->next) {
        struct policy_rule scratch = {.place = reader_place(reader, key)};
        struct reader_view view;

        if (reader_view(reader, &view, SECTION_BUNDLE, NULL, key->next))
            policy_read_steps(reader, &view, &scratch);
        policy_rule_deinit(&scratch);
    }
}
