/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/policy.h"

#include <string.h>

#include "lib/names.h"
#include "lib/policy_parts.h"

struct policy *policy_new(void)
{
    struct policy *policy = calloc(1, sizeof *policy);

    if (!policy)
        return NULL;
    policy->n_references = 1;
    policy->limits = (struct policy_limits){
        .runtimes = 20000,
        .runtimes_per_user = 5000,
        .silent = 1000,
        .hello = span_from_s(1),
        .cookies_per_process = 4,
        .late_after = span_from_s(2),
        .history_records = 10000,
        .history_age = span_from_s(3600),
    };
    policy->defaults = (struct policy_defaults){
        .deadline = span_from_s(3),
        .command_timeout = span_from_s(1),
        .hold_limit = span_from_s(600),
    };
    policy->names = names_new();
    if (!policy->names) {
        free(policy);
        return NULL;
    }
    return policy;
}

struct policy *policy_ref(struct policy *policy)
{
    policy->n_references++;
    return policy;
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
}

static void free_profiler(struct policy_profiler *profiler)
{
    free(profiler->path);
    free(profiler->pattern);
}

/* No deeper than the document that it was read from, see YAML_TREE_DEPTH_MAX. */
static void selector_deinit(struct selector *selector)
{
    for (size_t i = 0; i < selector->n_children; i++)
        selector_deinit(&selector->children[i]);
    free(selector->children);
    free_texts(selector->globs, selector->n_globs);
    free(selector->name);
}

void policy_rule_deinit(struct policy_rule *rule)
{
    selector_deinit(&rule->match);
    for (size_t i = 0; i < rule->n_variables; i++) {
        free(rule->variables[i].name);
        free(rule->variables[i].value);
    }
    free(rule->variables);
    for (size_t i = 0; i < rule->n_profilers; i++)
        free_profiler(&rule->profilers[i]);
    free(rule->profilers);
    for (size_t i = 0; i < rule->n_hooks; i++)
        free(rule->hooks[i].path);
    free(rule->hooks);
    free(rule->keys.primer_path);
    free(rule->name);
}

void policy_listens_free(struct policy_listen *listens, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(listens[i].name);
        free(listens[i].path);
        free(listens[i].owner);
        free(listens[i].group);
    }
    free(listens);
}

void policy_control_deinit(struct policy_control *control)
{
    free(control->path);
    free(control->owner);
    free(control->group);
    free_texts(control->read_users, control->n_read_users);
    free_texts(control->read_groups, control->n_read_groups);
    free_texts(control->admin_users, control->n_admin_users);
    free_texts(control->admin_groups, control->n_admin_groups);
    free(control->read.users);
    free(control->read.groups);
    free(control->admin.users);
    free(control->admin.groups);
}

struct policy *policy_unref(struct policy *policy)
{
    if (!policy || --policy->n_references > 0)
        return NULL;
    policy_listens_free(policy->listens, policy->n_listens);
    policy_control_deinit(&policy->control);
    free(policy->defaults.primer_path);
    for (size_t i = 0; i < policy->n_rules; i++)
        policy_rule_deinit(&policy->rules[i]);
    free(policy->rules);
    names_free(policy->names);
    for (size_t i = 0; i < policy->n_files; i++)
        free(policy->files[i].name);
    free(policy->files);
    free_texts(policy->strings, policy->n_strings);
    free(policy);
    return NULL;
}

static uint8_t digit_of(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

void policy_id(const struct policy *policy, uint8_t ret_id[static RECORD_POLICY_SIZE])
{
    memset(ret_id, 0, RECORD_POLICY_SIZE);
    for (size_t i = 0; i < RECORD_POLICY_SIZE && policy->hash[2 * i] != '\0'; i++)
        ret_id[i] =
            (uint8_t)(digit_of(policy->hash[2 * i]) << 4 | digit_of(policy->hash[2 * i + 1]));
}

bool policy_rule_has_plan(const struct policy_rule *rule)
{
    if (rule->ignore || rule->mode == POLICY_OBSERVE)
        return false;
    return rule->n_variables > 0 || rule->n_profilers > 0 || rule->n_hooks > 0 ||
           rule->keys.children == POLICY_CHILDREN_DETACH;
}

bool policy_rule_is_guarded(const struct policy_rule *rule)
{
    return rule->n_profilers > 0 || rule->n_hooks > 0;
}

const char *policy_mode_name(enum policy_mode mode)
{
    switch (mode) {
    case POLICY_APPLY:
        return "apply";
    case POLICY_OBSERVE:
        return "observe";
    }
    return NULL;
}

const char *policy_match_unknown_name(enum policy_match_unknown match_unknown)
{
    switch (match_unknown) {
    case POLICY_UNKNOWN_STOP:
        return "stop";
    case POLICY_UNKNOWN_NEXT:
        return "next";
    }
    return NULL;
}

const char *policy_children_name(enum policy_children children)
{
    switch (children) {
    case POLICY_CHILDREN_INHERIT:
        return "inherit";
    case POLICY_CHILDREN_DETACH:
        return "detach";
    }
    return NULL;
}

const char *policy_on_conflict_name(enum policy_on_conflict on_conflict)
{
    switch (on_conflict) {
    case POLICY_CONFLICT_SKIP:
        return "skip";
    case POLICY_CONFLICT_REPLACE:
        return "replace";
    case POLICY_CONFLICT_FAIL:
        return "fail";
    }
    return "skip";
}

const char *policy_verify_name(enum policy_verify verify)
{
    switch (verify) {
    case POLICY_VERIFY_AUTO:
        return "auto";
    case POLICY_VERIFY_RECEIPT:
        return "receipt";
    case POLICY_VERIFY_OFF:
        return "off";
    }
    return "auto";
}

const char *policy_on_lost_name(enum policy_on_lost on_lost)
{
    switch (on_lost) {
    case POLICY_LOST_SKIP:
        return "skip";
    case POLICY_LOST_FAIL:
        return "fail";
    }
    return "skip";
}

const char *policy_on_failure_name(enum policy_on_failure on_failure)
{
    switch (on_failure) {
    case POLICY_FAILURE_RESUME:
        return "resume";
    case POLICY_FAILURE_HOLD:
        return "hold";
    case POLICY_FAILURE_KILL:
        return "kill";
    }
    return NULL;
}

const char *policy_late_name(enum policy_late late)
{
    switch (late) {
    case POLICY_LATE_RESUME:
        return "resume";
    case POLICY_LATE_ATTACH:
        return "attach";
    }
    return "resume";
}

const char *policy_primer_name(enum policy_primer primer)
{
    switch (primer) {
    case POLICY_PRIMER_AUTO:
        return "auto";
    case POLICY_PRIMER_ALWAYS:
        return "always";
    case POLICY_PRIMER_NEVER:
        return "never";
    }
    return NULL;
}

const char *policy_on_stop_name(enum policy_on_stop on_stop)
{
    switch (on_stop) {
    case POLICY_STOP_AUTO:
        return "auto";
    case POLICY_STOP_KEEP:
        return "keep";
    case POLICY_STOP_RESUME:
        return "resume";
    }
    return NULL;
}
