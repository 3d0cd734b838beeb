/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a rule applies: variables, profilers and startup hooks, and whether the
 * commands of the diagnostics protocol can carry them.
 *
 * How long a text may be follows from the protocol: a message has 65535 bytes,
 * and a text takes its UTF-16 units and a few bytes of its own.
 */

#include <errno.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/command.h"
#include "lib/platform.h"
#include "lib/policy_reader.h"
#include "lib/primer_names.h"
#include "lib/text.h"

enum {
    /* UTF-16 units */
    PROFILER_UNITS_MAX = 32746, /* StartupProfiler: the path */
    HOOKS_UNITS_MAX = 32754,    /* ApplyStartupHook: all paths with colons between them */
};

static bool is_template_name(const char *name, size_t length)
{
    static const char *const names[] = {
        "pid",  "cookie",    "rid",       "arch",     "libc",     "user",
        "unit", "unit_name", "container", "assembly", "exe_name", "port",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    }
    return false;
}

/* A brace that is not doubled. What follows is not shown, it may be a part of a secret. */
static void refuse_brace(struct reader *reader, const struct yaml_node *node, const char *brace)
{
    const size_t length = strcspn(brace + 1, "}");

    if (brace[1 + length] == '}' && is_template_name(brace + 1, length))
        reader_error(reader, node,
                     "\"{%.*s}\" is a template, which is not in force in this version (%s); write "
                     "\"{{\" for the brace itself",
                     (int)length, brace + 1, POLICY_KEY_VERSION);
    else
        reader_error(reader, node,
                     "a \"{\" starts a template, and this is none; write \"{{\" for the brace "
                     "itself");
}

/* Whether a brace begins a word of a platform, and where it ends. */
static bool take_word(const char *brace, struct bytes *out, const char **ret_rest)
{
    const size_t length = strcspn(brace + 1, "}");
    enum platform_word word;

    if (brace[1 + length] != '}' || !platform_find(brace + 1, length, &word))
        return false;
    bytes_put_u8(out, (uint8_t)word);
    *ret_rest = brace + 1 + length + 1;
    return true;
}

/* A text in which templates may stand: "{{" is a brace; of the words of a platform, where they are
 * in force, comes a pattern. The caller frees it. */
static bool take_text(struct reader *reader, const struct yaml_node *node, const char *text,
                      bool has_words, char **ret_text)
{
    struct bytes CLEANUP(bytes_deinit) out;

    bytes_init(&out, SIZE_MAX - 1);
    while (*text != '\0') {
        const size_t length = strcspn(text, "{");

        bytes_put_run(&out, text, length);
        text += length;
        if (*text == '\0')
            break;
        if (has_words && take_word(text, &out, &text))
            continue;
        if (text[1] != '{') {
            refuse_brace(reader, node, text);
            return false;
        }
        bytes_put_u8(&out, '{');
        text += 2;
    }
    if (bytes_finish(&out) != 0) {
        reader->error = -ENOMEM;
        return false;
    }
    *ret_text = (char *)bytes_take(&out);
    return true;
}

static bool take_template(struct reader *reader, const struct yaml_node *node, const char *text,
                          char **ret_text)
{
    return take_text(reader, node, text, false, ret_text);
}

static bool is_port_variable(const char *name)
{
    return strcmp(name, "DOTNET_DiagnosticPorts") == 0 ||
           strcmp(name, "COMPlus_DiagnosticPorts") == 0;
}

static bool is_primer_variable(const char *name)
{
    return strcmp(name, PRIMER_NAMES) == 0 || strcmp(name, PRIMER_LIBRARIES) == 0 ||
           strcmp(name, PRIMER_RESULT) == 0;
}

/* `{value: ..., required: ...}`; NULL: there is no usable value in it. */
static const struct yaml_node *read_value_mapping(struct reader *reader,
                                                  const struct yaml_node *key, bool *ret_required)
{
    const struct yaml_node *node = key->next;
    struct reader_view view;

    if (node->is_flow && node->n == 1 && value_is_empty(node->first->next)) {
        value_refuse_as(reader, key->text, KEY_VALUE, node);
        return NULL;
    }
    if (!reader_view(reader, &view, SECTION_VALUE, NULL, node))
        return NULL;
    if (view.values[KEY_REQUIRED])
        (void)!value_bool(reader, KEY_REQUIRED, view.values[KEY_REQUIRED], ret_required);
    /* A file in its place is not in force, and said not to be. */
    return view.keys[KEY_FILE] ? view.values[KEY_VALUE] : reader_need(reader, &view, KEY_VALUE);
}

/* Reads a text or null into the variable. */
static void read_value(struct reader *reader, const struct yaml_node *key,
                       const struct yaml_node *value, struct policy_variable *variable)
{
    size_t units;

    if (value->kind != YAML_NODE_TEXT) {
        value_refuse_as(reader, key->text, KEY_VALUE, value);
        return;
    }
    if (!value_is_null(value) && !take_template(reader, value, value->text, &variable->value))
        return;
    units = text_utf16_units(variable->name) +
            (variable->value ? text_utf16_units(variable->value) : 0);
    if (units > COMMAND_VARIABLE_UNITS_MAX)
        reader_error(reader, value,
                     "the variable \"%s\" and its value have %zu characters; the runtime takes %d",
                     reader_show(reader, variable->name), units, COMMAND_VARIABLE_UNITS_MAX);
}

static void read_variable(struct reader *reader, const struct yaml_node *key,
                          const struct policy_rule *rule, struct policy_variable *variable)
{
    const struct yaml_node *value = key->next;

    *variable = (struct policy_variable){
        .name = reader_copy(reader, key->text),
        .is_required = true,
        .place = reader_place(reader, key),
    };
    if (!variable->name)
        return;
    if (!value_variable(reader, key))
        return;
    if (value->kind == YAML_NODE_MAPPING)
        value = read_value_mapping(reader, key, &variable->is_required);
    if (value && value_is_empty(value))
        reader_error(reader, key,
                     "\"%s\" has no value; write null to unset it, or \"\" to set it to an empty "
                     "text",
                     reader_show(reader, key->text));
    else if (value)
        read_value(reader, key, value, variable);
    if (is_primer_variable(key->text))
        reader_error(reader, key,
                     "\"%s\" is what diagport tells the primer by, or the primer diagport; use "
                     "\"primer\" of a profiler",
                     key->text);
    else if (rule->keys.children == POLICY_CHILDREN_DETACH && is_port_variable(key->text))
        reader_error(reader, key,
                     "\"%s\" is set by \"children: detach\" already; leave one of them out",
                     key->text);
    else
        policy_read_env_advice(reader, key, variable->value);
}

static void read_variables(struct reader *reader, const struct yaml_node *node,
                           struct policy_rule *rule)
{
    if (!value_names(reader, KEY_ENV, node))
        return;
    rule->variables = reader_alloc(reader, node->n, sizeof *rule->variables);
    if (!rule->variables)
        return;
    for (const struct yaml_node *key = node->first; key; key = key->next->next)
        read_variable(reader, key, rule, &rule->variables[rule->n_variables++]);
}

/* The keys that a profiler and a hook have in common. Words of a platform may stand where there is
 * `ret_pattern`. */
static void read_file(struct reader *reader, const struct reader_view *view, char **ret_path,
                      char **ret_pattern, bool *ret_required)
{
    const struct yaml_node *path = reader_need(reader, view, KEY_PATH);
    const char *text;

    *ret_required = true;
    if (view->values[KEY_REQUIRED])
        (void)!value_bool(reader, KEY_REQUIRED, view->values[KEY_REQUIRED], ret_required);
    if (!path || !value_path(reader, KEY_PATH, path, &text) ||
        !take_text(reader, path, text, ret_pattern != NULL, ret_path) || !ret_pattern ||
        !platform_is_pattern(*ret_path))
        return;
    *ret_pattern = *ret_path;
    *ret_path = reader_copy(reader, text);
}

/* The command that loads it is that of every profiler. */
static void check_profiler_path(struct reader *reader, const struct yaml_node *node,
                                const char *path)
{
    if (path && text_utf16_units(path) > PROFILER_UNITS_MAX)
        reader_error(reader, node, "the path of a profiler has at most %d characters; shorten it",
                     PROFILER_UNITS_MAX);
}

void policy_read_primer_path(struct reader *reader, const struct yaml_node *node,
                             struct policy_defaults *keys)
{
    const char *text;
    char *path = NULL;

    if (value_path(reader, KEY_PRIMER_PATH, node, &text) &&
        take_template(reader, node, text, &path)) {
        check_profiler_path(reader, node, path);
        free(keys->primer_path);
        keys->primer_path = path;
    }
}

static void read_profiler(struct reader *reader, const struct yaml_node *node,
                          const struct policy_rule *rule, struct policy_profiler *profiler)
{
    struct reader_view view;
    const struct yaml_node *clsid;
    unsigned choice;

    *profiler = (struct policy_profiler){
        .place = reader_place(reader, node),
        .primer = rule->keys.primer,
    };
    if (!reader_view(reader, &view, SECTION_PROFILER, NULL, node))
        return;
    clsid = reader_need(reader, &view, KEY_CLSID);
    if (clsid)
        (void)!value_clsid(reader, KEY_CLSID, clsid, &profiler->clsid);
    read_file(reader, &view, &profiler->path, &profiler->pattern, &profiler->is_required);
    check_profiler_path(reader, view.values[KEY_PATH], profiler->path);
    if (view.values[KEY_PRIMER] &&
        value_choice(reader, KEY_PRIMER, view.values[KEY_PRIMER], &choice))
        profiler->primer = (enum policy_primer)choice;
}

/* One class twice: the runtime loads it twice, and the second one fails. */
static void check_profilers(struct reader *reader, const struct policy_rule *rule)
{
    const size_t n = rule->n_profilers;
    struct reader_name *names = reader_alloc(reader, n, sizeof *names);
    char(*clsids)[GUID_TEXT_SIZE] = reader_alloc(reader, n, sizeof *clsids);

    for (size_t i = 0; names && clsids && i < n; i++) {
        guid_format(&rule->profilers[i].clsid, clsids[i]);
        names[i] = (struct reader_name){clsids[i], rule->profilers[i].place};
    }
    if (names && clsids)
        reader_find_repeats(reader, names, n, "the profiler", "leave one of them out");
    free(clsids);
    free(names);
}

static void read_profilers(struct reader *reader, const struct yaml_node *node,
                           struct policy_rule *rule)
{
    const size_t n_errors = reader->n_errors;

    if (!value_list(reader, KEY_PROFILERS, node))
        return;
    rule->profilers = reader_alloc(reader, node->n, sizeof *rule->profilers);
    if (!rule->profilers)
        return;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        read_profiler(reader, item, rule, &rule->profilers[rule->n_profilers++]);
    if (reader->n_errors == n_errors)
        check_profilers(reader, rule);
}

static void read_hook(struct reader *reader, const struct yaml_node *node, struct policy_hook *hook)
{
    struct reader_view view;

    *hook = (struct policy_hook){.place = reader_place(reader, node)};
    if (!reader_view(reader, &view, SECTION_HOOK, "a startup hook", node))
        return;
    read_file(reader, &view, &hook->path, NULL, &hook->is_required);
    if (hook->path && strchr(hook->path, ':'))
        reader_error(reader, view.values[KEY_PATH],
                     "the path of a startup hook cannot have a colon, which separates hooks; "
                     "rename the file, or list two hooks");
}

/* All hooks of a rule go into one command. */
static void check_hooks(struct reader *reader, const struct policy_rule *rule)
{
    struct reader_name *names = reader_alloc(reader, rule->n_hooks, sizeof *names);
    size_t n = 0, units = 0;

    for (size_t i = 0; names && i < rule->n_hooks; i++) {
        const struct policy_hook *hook = &rule->hooks[i];
        const size_t before = units;

        if (!hook->path)
            continue;
        units += text_utf16_units(hook->path) + (n > 0 ? 1 : 0);
        if (before <= HOOKS_UNITS_MAX && units > HOOKS_UNITS_MAX)
            reader_error_at(reader, &hook->place,
                            "the paths of all startup hooks up to this one have %zu characters; "
                            "the runtime takes %d",
                            units, HOOKS_UNITS_MAX);
        names[n++] = (struct reader_name){hook->path, hook->place};
    }
    if (n > 0)
        reader_find_repeats(reader, names, n, "the startup hook", "leave one of them out");
    free(names);
}

static void read_hooks(struct reader *reader, const struct yaml_node *node,
                       struct policy_rule *rule)
{
    if (!value_list(reader, KEY_STARTUP_HOOKS, node))
        return;
    rule->hooks = reader_alloc(reader, node->n, sizeof *rule->hooks);
    if (!rule->hooks)
        return;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        read_hook(reader, item, &rule->hooks[rule->n_hooks++]);
    check_hooks(reader, rule);
}

/*
 * Profilers are sent before hooks, and the last profiler first; neither can be
 * withdrawn. A required one that fails after another was taken leaves that one
 * behind.
 */
static void check_order(struct reader *reader, const struct policy_rule *rule)
{
    for (size_t i = 0; i + 1 < rule->n_profilers; i++) {
        if (rule->profilers[i].is_required)
            reader_warn_at(reader, &rule->profilers[i].place,
                           "this profiler is required and sent after the one listed below it, "
                           "which stays if this one fails; say \"required: false\" if the program "
                           "can do without");
    }
    for (size_t i = 0; rule->n_profilers > 0 && i < rule->n_hooks; i++) {
        if (rule->hooks[i].is_required)
            reader_warn_at(reader, &rule->hooks[i].place,
                           "this startup hook is required and sent after a profiler, which stays "
                           "if the hook fails; say \"required: false\" if the program can do "
                           "without");
    }
}

void policy_read_steps(struct reader *reader, const struct reader_view *view,
                       struct policy_rule *rule)
{
    const size_t n_errors = reader->n_errors;

    if (view->values[KEY_ENV])
        read_variables(reader, view->values[KEY_ENV], rule);
    if (view->values[KEY_PROFILERS])
        read_profilers(reader, view->values[KEY_PROFILERS], rule);
    if (view->values[KEY_STARTUP_HOOKS])
        read_hooks(reader, view->values[KEY_STARTUP_HOOKS], rule);
    if (reader->n_errors == n_errors && !rule->ignore)
        check_order(reader, rule);
}
