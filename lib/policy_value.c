/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Single values of a policy: texts, times, numbers, modes, paths, patterns.
 * What a value is for is not known here; what it may be is in its key's row.
 */

#include <errno.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/glob.h"
#include "lib/policy_reader.h"

enum { NAME_MAX_OF_LISTS = 255, VARIABLE_MAX = 255 }; /* bytes */

bool value_is_empty(const struct yaml_node *node)
{
    return node->kind == YAML_NODE_TEXT && node->is_plain && node->length == 0;
}

bool value_is_null(const struct yaml_node *node)
{
    return node->kind == YAML_NODE_TEXT && node->is_plain &&
           (strcmp(node->text, "null") == 0 || strcmp(node->text, "~") == 0);
}

/* Values of variables are never shown, and where one is expected anything may be one. */
static bool is_secret(enum policy_key_id id)
{
    return id == KEY_ENV || id == KEY_VALUE;
}

/* True when the word null could be meant as a text. */
static bool takes_words(enum policy_type type)
{
    return type == TYPE_TEXT || type == TYPE_TEXTS || type == TYPE_GLOBS;
}

static bool takes_list(enum policy_type type)
{
    return type == TYPE_TEXTS || type == TYPE_PATHS;
}

static void put_found_text(struct reader *reader, enum policy_key_id id,
                           const struct yaml_node *node, struct bytes *out)
{
    const enum policy_type type = policy_key_row(id)->type;

    if (value_is_empty(node)) {
        bytes_put_string(out, "but nothing is written here");
    } else if (node->length == 0) {
        bytes_put_string(out, "not an empty text");
    } else if (value_is_null(node)) {
        bytes_put_string(out, "not null");
        bytes_put_string(out, takes_words(type) ? "; quote it if the word is meant" : "");
    } else if (is_secret(id)) {
        bytes_put_string(out, "not a text");
    } else {
        bytes_put_format(out, "not \"%s\"", reader_show(reader, node->text));
        bytes_put_string(out, takes_list(type) ? "; write it in []" : "");
    }
}

/* What is written instead of what the key takes, and how that may have come about. */
static void put_found(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                      struct bytes *out)
{
    switch (node->kind) {
    case YAML_NODE_LIST:
        bytes_put_string(out, "not a list");
        break;
    case YAML_NODE_MAPPING:
        bytes_put_string(out, "not a mapping");
        if (policy_key_row(id)->type == TYPE_MAPPINGS)
            bytes_put_string(out, "; begin each with \"- \"");
        else if (node->is_flow && node->n == 1 && value_is_empty(node->first->next))
            bytes_put_string(out, "; quote a text that starts with \"{\"");
        break;
    case YAML_NODE_TEXT:
        put_found_text(reader, id, node, out);
        break;
    }
}

void value_refuse_as(struct reader *reader, const char *name, enum policy_key_id id,
                     const struct yaml_node *node)
{
    struct bytes CLEANUP(bytes_deinit) takes;

    bytes_init(&takes, SIZE_MAX - 1);
    policy_key_put_takes(policy_key_row(id), &takes);
    bytes_put_string(&takes, ", ");
    put_found(reader, id, node, &takes);
    if (bytes_finish(&takes) != 0) {
        reader->error = -ENOMEM;
        return;
    }
    reader_error(reader, node, "\"%s\" takes %s", reader_show(reader, name),
                 (const char *)takes.data);
}

void value_refuse(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    value_refuse_as(reader, policy_key_row(id)->name, id, node);
}

bool value_text(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                const char **ret_text)
{
    if (node->kind != YAML_NODE_TEXT || node->length == 0 || value_is_null(node)) {
        value_refuse(reader, id, node);
        return false;
    }
    *ret_text = node->text;
    return true;
}

bool value_is_id(const char *text, uint32_t *ret_id)
{
    const size_t length = strlen(text);
    unsigned long long number;

    if (length == 0 || length > 10 || strspn(text, "0123456789") != length)
        return false;
    number = strtoull(text, NULL, 10);
    if (number >= UINT32_MAX)
        return false;
    *ret_id = (uint32_t)number;
    return true;
}

static bool has_control_character(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return true;
    }
    return false;
}

bool value_name(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                size_t max, char **ret_name)
{
    const char *text, *key = policy_key_row(id)->name;
    char *copy;

    if (!value_text(reader, id, node, &text))
        return false;
    if (strlen(text) > max) {
        reader_error(reader, node, "\"%s\" is longer than %zu bytes; shorten it", key, max);
        return false;
    }
    if (has_control_character(text)) {
        reader_error(reader, node, "\"%s\" has a control character or line break in it; remove it",
                     key);
        return false;
    }
    copy = reader_copy(reader, text);
    if (!copy)
        return false;
    *ret_name = copy;
    return true;
}

bool value_variable(struct reader *reader, const struct yaml_node *key)
{
    if (key->length > 0 && key->length <= VARIABLE_MAX && !strchr(key->text, '=') &&
        !has_control_character(key->text))
        return true;
    reader_error(reader, key,
                 "\"%s\" is no name of a variable: it has 1 to %d bytes, no \"=\" and no control "
                 "characters",
                 reader_show(reader, key->text), VARIABLE_MAX);
    return false;
}

/* True when a component between slashes is empty, "." or "..", or the path ends in a slash. */
static bool is_spelled_oddly(const char *path)
{
    for (const char *at = path + 1; at;) {
        const size_t length = strcspn(at, "/");

        if (length == 0 || (length == 1 && at[0] == '.') ||
            (length == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        at = at[length] == '/' ? at + length + 1 : NULL;
    }
    return false;
}

bool value_path(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                const char **ret_path)
{
    const char *path;

    if (!value_text(reader, id, node, &path))
        return false;
    if (path[0] != '/') {
        value_refuse(reader, id, node);
        return false;
    }
    if (has_control_character(path)) {
        reader_error(reader, node, "\"%s\" has a control character or line break in it; remove it",
                     policy_key_row(id)->name);
        return false;
    }
    if (is_spelled_oddly(path)) {
        reader_error(reader, node,
                     "the path \"%s\" has \"//\", \".\", \"..\" or a \"/\" at its end; write it "
                     "without",
                     reader_show(reader, path));
        return false;
    }
    *ret_path = path;
    return true;
}

bool value_bool(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                bool *ret_value)
{
    if (node->kind == YAML_NODE_TEXT && strcmp(node->text, "true") == 0) {
        *ret_value = true;
        return true;
    }
    if (node->kind == YAML_NODE_TEXT && strcmp(node->text, "false") == 0) {
        *ret_value = false;
        return true;
    }
    value_refuse(reader, id, node);
    return false;
}

/* Decimal digits without a leading zero, at most 18 of them; what follows is in `*ret_rest`. */
static bool take_number(const char *text, int64_t *ret_number, const char **ret_rest)
{
    int64_t number = 0;
    size_t n = 0;

    for (; text[n] >= '0' && text[n] <= '9'; n++) {
        if (n == 18)
            return false;
        number = 10 * number + (text[n] - '0');
    }
    if (n == 0 || (n > 1 && text[0] == '0'))
        return false;
    *ret_number = number;
    *ret_rest = text + n;
    return true;
}

static bool is_in_range(const struct policy_key *key, int64_t number)
{
    return number >= key->least && number <= key->most;
}

bool value_number(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                  uint32_t *ret_number)
{
    const char *rest = NULL;
    int64_t number = 0;

    if (node->kind != YAML_NODE_TEXT || !take_number(node->text, &number, &rest) || *rest != '\0' ||
        !is_in_range(policy_key_row(id), number)) {
        value_refuse(reader, id, node);
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

bool value_span(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                struct span *ret_span)
{
    const struct policy_key *key = policy_key_row(id);
    int64_t us = 0;

    if (node->kind == YAML_NODE_TEXT && key->type == TYPE_SPAN_OR_FOREVER &&
        strcmp(node->text, "forever") == 0) {
        *ret_span = SPAN_FOREVER;
        return true;
    }
    if (node->kind != YAML_NODE_TEXT || !policy_key_read_span(node->text, &us) ||
        !is_in_range(key, us)) {
        value_refuse(reader, id, node);
        return false;
    }
    *ret_span = span_from_us(us);
    return true;
}

bool value_choice(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                  unsigned *ret_choice)
{
    const char *const *choices = policy_key_row(id)->choices;

    for (unsigned i = 0; node->kind == YAML_NODE_TEXT && choices[i]; i++) {
        if (strcmp(node->text, choices[i]) == 0) {
            *ret_choice = i;
            return true;
        }
    }
    value_refuse(reader, id, node);
    return false;
}

/* Taken as written, quoted or not: "0660" and 0660 are the same text. */
bool value_file_mode(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                     uint32_t *ret_mode)
{
    const char *text = node->kind == YAML_NODE_TEXT ? node->text : "";

    if (strlen(text) != 4 || text[0] != '0' || strspn(text, "01234567") != 4) {
        value_refuse(reader, id, node);
        return false;
    }
    *ret_mode = (uint32_t)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
    return true;
}

bool value_clsid(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                 struct guid *ret_clsid)
{
    static const struct guid nothing;
    struct guid clsid;

    if (node->kind != YAML_NODE_TEXT || !guid_parse(node->text, &clsid) ||
        guid_compare(&clsid, &nothing) == 0) {
        value_refuse(reader, id, node);
        return false;
    }
    *ret_clsid = clsid;
    return true;
}

/* A list of something that is called `name`, see value_refuse_as. */
static bool take_list(struct reader *reader, const char *name, enum policy_key_id id,
                      const struct yaml_node *node)
{
    if (node->kind != YAML_NODE_LIST) {
        value_refuse_as(reader, name, id, node);
        return false;
    }
    if (node->n == 0) {
        reader_error(reader, node, "\"%s\" is an empty list; leave it out, or say what is in it",
                     reader_show(reader, name));
        return false;
    }
    return true;
}

bool value_list(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    return take_list(reader, policy_key_row(id)->name, id, node);
}

bool value_names(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    struct reader_name *names;
    size_t n = 0;

    if (node->kind != YAML_NODE_MAPPING) {
        value_refuse(reader, id, node);
        return false;
    }
    if (node->n == 0) {
        reader_error(reader, node, "\"%s\" is an empty mapping; leave it out, or say what is in it",
                     policy_key_row(id)->name);
        return false;
    }
    names = reader_alloc(reader, node->n, sizeof *names);
    if (!names)
        return false;
    for (const struct yaml_node *key = node->first; key; key = key->next->next)
        names[n++] = (struct reader_name){key->text, reader_place(reader, key)};
    reader_find_repeats(reader, names, n, "the name", "leave one of them out");
    free(names);
    return true;
}

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(texts[i]);
    free(texts);
}

bool value_name_list(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                     char ***ret_names, size_t *ret_n)
{
    char **names;
    size_t n = 0;

    if (!value_list(reader, id, node))
        return false;
    names = reader_alloc(reader, node->n, sizeof *names);
    if (!names)
        return false;
    for (const struct yaml_node *item = node->first; item; item = item->next) {
        if (value_name(reader, id, item, NAME_MAX_OF_LISTS, &names[n]))
            n++;
    }
    if (n < node->n) {
        free_texts(names, n);
        return false;
    }
    *ret_names = names;
    *ret_n = n;
    return true;
}

static const char *glob_fault_advice(enum glob_fault fault)
{
    switch (fault) {
    case GLOB_FINE:
        return NULL;
    case GLOB_OPEN_BRACKET:
        return "has a \"[\" without its \"]\"; write \"[[]\" for the bracket itself";
    case GLOB_EMPTY_RANGE:
        return "has a range in [] that ends before it starts; turn it round";
    case GLOB_UNKNOWN_CLASS:
        return "has a class in [] that is none of alnum, alpha, blank, cntrl, digit, graph, lower, "
               "print, punct, space, upper and xdigit";
    case GLOB_STRAY_ELEMENT:
        return "has a \"[.\", \"[=\" or \"[:\" in [] that means nothing there; write the \"[\" as "
               "the last one in []";
    case GLOB_OPEN_BACKSLASH:
        return "ends in a \"\\\"; write \"[\\]\" for the backslash itself";
    }
    return NULL;
}

static bool is_regex(const struct yaml_node *node)
{
    return node->kind == YAML_NODE_MAPPING && node->n > 0 &&
           strcmp(node->first->text, policy_key_row(KEY_REGEX)->name) == 0;
}

/* One glob, for the caller to free. */
static bool take_glob(struct reader *reader, const char *name, enum policy_key_id id,
                      const struct yaml_node *node, char **ret_glob)
{
    struct reader_view view;
    const char *advice;

    if (is_regex(node)) {
        (void)!reader_view(reader, &view, SECTION_PATTERN, NULL, node);
        return false;
    }
    if (node->kind != YAML_NODE_TEXT || node->length == 0 || value_is_null(node)) {
        value_refuse_as(reader, name, id, node);
        return false;
    }
    if (node->length > READER_GLOB_MAX) {
        reader_error(reader, node, "a pattern of \"%s\" has more than %d bytes; shorten it",
                     reader_show(reader, name), READER_GLOB_MAX);
        return false;
    }
    advice = glob_fault_advice(glob_check(node->text));
    if (advice) {
        reader_error(reader, node, "the pattern \"%s\" %s", reader_show(reader, node->text),
                     advice);
        return false;
    }
    *ret_glob = reader_copy(reader, node->text);
    return *ret_glob != NULL;
}

bool value_globs(struct reader *reader, const char *name, enum policy_key_id id,
                 const struct yaml_node *node, char ***ret_globs, size_t *ret_n)
{
    const bool is_list = node->kind == YAML_NODE_LIST;
    const size_t n_wanted = is_list ? node->n : 1;
    char **globs;
    size_t n = 0;

    if (is_list && !take_list(reader, name, id, node))
        return false;
    globs = reader_alloc(reader, n_wanted, sizeof *globs);
    if (!globs)
        return false;
    if (is_list) {
        for (const struct yaml_node *item = node->first; item; item = item->next) {
            if (take_glob(reader, name, id, item, &globs[n]))
                n++;
        }
    } else if (take_glob(reader, name, id, node, &globs[0])) {
        n++;
    }
    if (n < n_wanted) {
        free_texts(globs, n);
        return false;
    }
    *ret_globs = globs;
    *ret_n = n;
    return true;
}
