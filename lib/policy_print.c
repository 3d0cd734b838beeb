/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The canonical form of a policy: one document, every key that has a value,
 * always in the same order; texts from outside in double quotes, so that
 * nothing in them can be taken for YAML.
 */

#include <string.h>

#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_key.h"
#include "lib/policy_parts.h"
#include "lib/text.h"

static void put_indent(struct bytes *out, size_t indent)
{
    for (size_t i = 0; i < indent; i++)
        bytes_put_u8(out, ' ');
}

/* True when the shown form of a character is the character. */
static bool is_shown_as_is(const char *character, size_t size, struct bytes *scratch)
{
    scratch->length = 0;
    text_put_escaped(scratch, character, size);
    return scratch->length == size && memcmp(scratch->data, character, size) == 0;
}

static void put_character(struct bytes *out, const char *character, size_t size,
                          uint32_t code_point, struct bytes *scratch)
{
    if (code_point == '"' || code_point == '\\')
        bytes_put_format(out, "\\%c", (int)code_point);
    else if (code_point == '\n')
        bytes_put_string(out, "\\n");
    else if (code_point == '\t')
        bytes_put_string(out, "\\t");
    else if (is_shown_as_is(character, size, scratch) && code_point != 0xFFFE &&
             code_point != 0xFFFF)
        bytes_put_run(out, character, size);
    else if (code_point <= 0xFF)
        bytes_put_format(out, "\\x%02X", code_point);
    else if (code_point <= 0xFFFF)
        bytes_put_format(out, "\\u%04X", code_point);
    else
        bytes_put_format(out, "\\U%08X", code_point);
}

/* In double quotes. Texts of policies are UTF-8; of one that is not, each byte is put as the
 * character of its number. */
static void put_text(struct bytes *out, const char *text)
{
    struct bytes CLEANUP(bytes_deinit) scratch;
    size_t left = strlen(text);

    bytes_init(&scratch, 64);
    bytes_put_u8(out, '"');
    while (left > 0) {
        uint32_t code_point = (unsigned char)*text;
        size_t size = text_decode((const uint8_t *)text, left, &code_point);

        if (size == 0)
            size = 1;
        put_character(out, text, size, code_point, &scratch);
        text += size;
        left -= size;
    }
    bytes_put_u8(out, '"');
    if (scratch.error != 0)
        out->error = scratch.error;
}

static void put_texts(struct bytes *out, char *const *texts, size_t n)
{
    bytes_put_u8(out, '[');
    for (size_t i = 0; i < n; i++) {
        bytes_put_string(out, i > 0 ? ", " : "");
        put_text(out, texts[i]);
    }
    bytes_put_string(out, "]\n");
}

/* One pattern without a list, which would be one level deeper than it may have been written. */
static void put_globs(struct bytes *out, const struct selector *selector)
{
    if (selector->n_globs != 1) {
        put_texts(out, selector->globs, selector->n_globs);
        return;
    }
    put_text(out, selector->globs[0]);
    bytes_put_u8(out, '\n');
}

/* "key: " on a line of its own. */
static void put_key(struct bytes *out, size_t indent, const char *key)
{
    put_indent(out, indent);
    bytes_put_format(out, "%s: ", key);
}

static void put_word(struct bytes *out, size_t indent, const char *key, const char *word)
{
    put_key(out, indent, key);
    bytes_put_format(out, "%s\n", word);
}

static void put_number(struct bytes *out, size_t indent, const char *key, uint32_t number)
{
    put_key(out, indent, key);
    bytes_put_format(out, "%u\n", number);
}

static void put_span(struct bytes *out, size_t indent, const char *key, struct span span)
{
    put_key(out, indent, key);
    if (span_is_forever(span))
        bytes_put_string(out, "forever");
    else
        policy_key_put_span(span.us, out);
    bytes_put_u8(out, '\n');
}

static void put_bool(struct bytes *out, size_t indent, const char *key, bool value)
{
    put_word(out, indent, key, value ? "true" : "false");
}

static void put_optional_text(struct bytes *out, size_t indent, const char *key, const char *text)
{
    if (!text)
        return;
    put_key(out, indent, key);
    put_text(out, text);
    bytes_put_u8(out, '\n');
}

static void put_file_mode(struct bytes *out, size_t indent, bool has_mode, uint32_t mode)
{
    if (!has_mode)
        return;
    put_key(out, indent, "mode");
    bytes_put_format(out, "\"%04o\"\n", mode);
}

static void put_listens(struct bytes *out, const struct policy *policy)
{
    if (policy->n_listens > 0)
        bytes_put_string(out, "listen:\n");
    for (size_t i = 0; i < policy->n_listens; i++) {
        const struct policy_listen *listen = &policy->listens[i];

        bytes_put_string(out, "  - name: ");
        put_text(out, listen->name);
        bytes_put_string(out, "\n");
        put_optional_text(out, 4, "path", listen->path);
        put_file_mode(out, 4, listen->has_mode, listen->mode);
        put_optional_text(out, 4, "owner", listen->owner);
        put_optional_text(out, 4, "group", listen->group);
    }
}

static void put_right(struct bytes *out, const char *key, char *const *users, size_t n_users,
                      char *const *groups, size_t n_groups)
{
    if (n_users == 0 && n_groups == 0)
        return;
    bytes_put_format(out, "  %s:\n", key);
    if (n_users > 0) {
        put_key(out, 4, "users");
        put_texts(out, users, n_users);
    }
    if (n_groups > 0) {
        put_key(out, 4, "groups");
        put_texts(out, groups, n_groups);
    }
}

static void put_control(struct bytes *out, const struct policy_control *control)
{
    if (!control->path)
        return;
    bytes_put_string(out, "control:\n");
    put_optional_text(out, 2, "path", control->path);
    put_file_mode(out, 2, control->has_mode, control->mode);
    put_optional_text(out, 2, "owner", control->owner);
    put_optional_text(out, 2, "group", control->group);
    put_right(out, "read", control->read_users, control->n_read_users, control->read_groups,
              control->n_read_groups);
    put_right(out, "admin", control->admin_users, control->n_admin_users, control->admin_groups,
              control->n_admin_groups);
}

static void put_limits(struct bytes *out, const struct policy_limits *limits)
{
    bytes_put_string(out, "limits:\n");
    put_number(out, 2, "runtimes", limits->runtimes);
    put_number(out, 2, "runtimes_per_user", limits->runtimes_per_user);
    put_number(out, 2, "silent", limits->silent);
    put_span(out, 2, "hello", limits->hello);
    if (limits->connections_per_user > 0)
        put_number(out, 2, "connections_per_user", limits->connections_per_user);
    put_number(out, 2, "cookies_per_process", limits->cookies_per_process);
    put_span(out, 2, "late_after", limits->late_after);
    put_bool(out, 2, "allow_pid_identity", limits->allow_pid_identity);
    bytes_put_string(out, "  history:\n");
    put_number(out, 4, "records", limits->history_records);
    put_span(out, 4, "age", limits->history_age);
}

/* In texts where templates may stand one day, a brace is doubled. */
static void put_template(struct bytes *out, const char *text)
{
    struct bytes CLEANUP(bytes_deinit) doubled;

    bytes_init(&doubled, SIZE_MAX - 1);
    for (; *text != '\0'; text++) {
        bytes_put_u8(&doubled, (uint8_t)*text);
        if (*text == '{')
            bytes_put_u8(&doubled, '{');
    }
    if (bytes_finish(&doubled) != 0)
        out->error = doubled.error;
    else
        put_text(out, (const char *)doubled.data);
}

static void put_defaults(struct bytes *out, size_t indent, const struct policy_defaults *keys)
{
    put_word(out, indent, "children", policy_children_name(keys->children));
    put_word(out, indent, "on_conflict", policy_on_conflict_name(keys->on_conflict));
    put_word(out, indent, "verify", policy_verify_name(keys->verify));
    put_word(out, indent, "on_lost", policy_on_lost_name(keys->on_lost));
    put_word(out, indent, "on_failure", policy_on_failure_name(keys->on_failure));
    put_word(out, indent, "late", policy_late_name(keys->late));
    put_word(out, indent, "primer", policy_primer_name(keys->primer));
    if (keys->primer_path) {
        put_key(out, indent, "primer_path");
        put_template(out, keys->primer_path);
        bytes_put_u8(out, '\n');
    }
    put_span(out, indent, "deadline", keys->deadline);
    put_span(out, indent, "command_timeout", keys->command_timeout);
    put_span(out, indent, "hold_limit", keys->hold_limit);
}

/* Selectors of variables that stand beside one another are one `env`. */
static void put_selectors(struct bytes *out, size_t indent, const struct selector *all)
{
    for (size_t i = 0; i < all->n_children; i++) {
        const struct selector *child = &all->children[i];
        const bool is_variable = child->kind == SELECTOR_VARIABLE;

        if (is_variable && (i == 0 || all->children[i - 1].kind != SELECTOR_VARIABLE)) {
            put_indent(out, indent);
            bytes_put_string(out, "env:\n");
        }
        policy_print_selector(child, is_variable ? indent + 2 : indent, out);
    }
}

/* A list of mappings. */
static void put_alternatives(struct bytes *out, size_t indent, const char *key,
                             const struct selector *selector)
{
    put_indent(out, indent);
    bytes_put_format(out, "%s:\n", key);
    for (size_t i = 0; i < selector->n_children; i++) {
        const size_t start = out->length;

        put_selectors(out, indent + 4, &selector->children[i]);
        /* The dash takes the place of a blank. */
        if (out->error == 0)
            out->data[start + indent + 2] = '-';
    }
}

void policy_print_selector(const struct selector *selector, size_t indent, struct bytes *out)
{
    switch (selector->kind) {
    case SELECTOR_ALL:
        put_alternatives(out, indent, "all", selector);
        break;
    case SELECTOR_ANY:
        put_alternatives(out, indent, "any", selector);
        break;
    case SELECTOR_NOT:
        put_indent(out, indent);
        bytes_put_string(out, "not:\n");
        put_selectors(out, indent + 2, &selector->children[0]);
        break;
    case SELECTOR_TEXT:
        put_key(out, indent, attribute_name(selector->attribute));
        put_globs(out, selector);
        break;
    case SELECTOR_VARIABLE:
        put_indent(out, indent);
        put_text(out, selector->name);
        bytes_put_string(out, ": ");
        put_globs(out, selector);
        break;
    }
}

static void put_match(struct bytes *out, const struct policy_rule *rule)
{
    if (rule->match.n_children == 0 && !rule->any_container) {
        put_word(out, 4, "match", "all");
        return;
    }
    bytes_put_string(out, "    match:\n");
    if (rule->any_container)
        put_word(out, 6, "container", "any");
    put_selectors(out, 6, &rule->match);
}

static void put_required(struct bytes *out, bool is_required)
{
    bytes_put_format(out, ", required: %s }\n", is_required ? "true" : "false");
}

/* What has templates is kept as it was written. */
static void put_profiler_path(struct bytes *out, const struct policy_profiler *profiler)
{
    if (profiler->pattern)
        put_text(out, profiler->path);
    else
        put_template(out, profiler->path);
}

static void put_steps(struct bytes *out, const struct policy_rule *rule)
{
    if (rule->n_variables > 0)
        bytes_put_string(out, "    env:\n");
    for (size_t i = 0; i < rule->n_variables; i++) {
        put_indent(out, 6);
        put_text(out, rule->variables[i].name);
        bytes_put_string(out, ": { value: ");
        if (rule->variables[i].value)
            put_template(out, rule->variables[i].value);
        else
            bytes_put_string(out, "null");
        put_required(out, rule->variables[i].is_required);
    }
    if (rule->n_profilers > 0)
        bytes_put_string(out, "    profilers:\n");
    for (size_t i = 0; i < rule->n_profilers; i++) {
        char clsid[GUID_TEXT_SIZE];

        guid_format(&rule->profilers[i].clsid, clsid);
        bytes_put_format(out, "      - { clsid: \"{%s}\", path: ", clsid);
        put_profiler_path(out, &rule->profilers[i]);
        bytes_put_format(out, ", primer: %s", policy_primer_name(rule->profilers[i].primer));
        put_required(out, rule->profilers[i].is_required);
    }
    if (rule->n_hooks > 0)
        bytes_put_string(out, "    startup_hooks:\n");
    for (size_t i = 0; i < rule->n_hooks; i++) {
        bytes_put_string(out, "      - { path: ");
        put_template(out, rule->hooks[i].path);
        put_required(out, rule->hooks[i].is_required);
    }
}

static void put_rule(struct bytes *out, const struct policy_rule *rule)
{
    bytes_put_string(out, "  - name: ");
    put_text(out, rule->name);
    bytes_put_u8(out, '\n');
    put_match(out, rule);
    put_word(out, 4, "match_unknown", policy_match_unknown_name(rule->match_unknown));
    put_bool(out, 4, "ignore", rule->ignore);
    put_word(out, 4, "mode", policy_mode_name(rule->mode));
    put_steps(out, rule);
    put_defaults(out, 4, &rule->keys);
}

void policy_print(const struct policy *policy, struct bytes *out)
{
    bytes_put_string(out, "version: 1\n");
    put_listens(out, policy);
    put_control(out, &policy->control);
    put_limits(out, &policy->limits);
    bytes_put_string(out, "defaults:\n");
    put_defaults(out, 2, &policy->defaults);
    put_word(out, 0, "on_stop", policy_on_stop_name(policy->on_stop));
    if (policy->n_rules > 0)
        bytes_put_string(out, "rules:\n");
    for (size_t i = 0; i < policy->n_rules; i++)
        put_rule(out, &policy->rules[i]);
}
