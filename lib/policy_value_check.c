/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Values of keys that are not in force in this version: whether they would be
 * taken by the version that knows them. Nothing of them is kept.
 */

#include <string.h>

#include "lib/policy_reader.h"

/* "8", "8.0", "10.0.12", after one of the five ways to compare. */
static bool is_version_term(const char *term, size_t length)
{
    static const char *const comparisons[] = {">=", "<=", ">", "<", "="};
    size_t at = 0, n_digits = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(comparisons) && at == 0; i++) {
        if (strncmp(term, comparisons[i], strlen(comparisons[i])) == 0)
            at = strlen(comparisons[i]);
    }
    if (at == length || term[length - 1] == '.')
        return false;
    for (; at < length; at++) {
        if (term[at] == '.' && n_digits == 0)
            return false;
        if (term[at] != '.' && (term[at] < '0' || term[at] > '9'))
            return false;
        n_digits = term[at] == '.' ? 0 : n_digits + 1;
    }
    return true;
}

static bool is_versions(const char *text)
{
    size_t n = 0;

    for (const char *at = text + strspn(text, " "); *at != '\0'; n++) {
        const size_t length = strcspn(at, " ");

        if (!is_version_term(at, length))
            return false;
        at += length + strspn(at + length, " ");
    }
    return n > 0;
}

/* "1%" to "100%" */
static bool is_share(const char *text)
{
    const size_t n_digits = strspn(text, "0123456789");

    if (strcmp(text + n_digits, "%") != 0 || text[0] == '0')
        return false;
    return n_digits == 1 || n_digits == 2 || (n_digits == 3 && strncmp(text, "100", 3) == 0);
}

static void check_text(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                       bool (*is_fine)(const char *))
{
    const char *text;

    if (value_text(reader, id, node, &text) && !is_fine(text))
        value_refuse(reader, id, node);
}

static void check_paths(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    const char *path;

    if (!value_list(reader, id, node))
        return;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        (void)!value_path(reader, id, item, &path);
}

static void check_texts(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    const char *text;

    if (!value_list(reader, id, node))
        return;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        (void)!value_text(reader, id, item, &text);
}

static void check_globs(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    char **globs;
    size_t n;

    if (!value_globs(reader, policy_key_row(id)->name, id, node, &globs, &n))
        return;
    for (size_t i = 0; i < n; i++)
        free(globs[i]);
    free(globs);
}

/* Its keys are not in force either, so looking at each is all there is to do. */
static void check_mapping(struct reader *reader, enum policy_key_id id,
                          const struct yaml_node *node)
{
    struct reader_view view;

    (void)!reader_view(reader, &view, policy_key_row(id)->inner, NULL, node);
}

/* Everything that a row may say whose key is not in force. */
void value_check(struct reader *reader, enum policy_key_id id, const struct yaml_node *node)
{
    struct span span;
    unsigned choice;
    uint32_t number;
    const char *text;
    bool flag;

    switch (policy_key_row(id)->type) {
    case TYPE_TEXT:
        (void)!value_text(reader, id, node, &text);
        break;
    case TYPE_TEXTS:
        check_texts(reader, id, node);
        break;
    case TYPE_BOOL:
        (void)!value_bool(reader, id, node, &flag);
        break;
    case TYPE_NUMBER:
        (void)!value_number(reader, id, node, &number);
        break;
    case TYPE_SPAN:
    case TYPE_SPAN_OR_FOREVER:
        (void)!value_span(reader, id, node, &span);
        break;
    case TYPE_CHOICE:
        (void)!value_choice(reader, id, node, &choice);
        break;
    case TYPE_SHARE:
        check_text(reader, id, node, is_share);
        break;
    case TYPE_PATH:
        (void)!value_path(reader, id, node, &text);
        break;
    case TYPE_PATHS:
        check_paths(reader, id, node);
        break;
    case TYPE_VERSIONS:
        check_text(reader, id, node, is_versions);
        break;
    case TYPE_GLOBS:
        check_globs(reader, id, node);
        break;
    case TYPE_NAMED_MAPPINGS:
        policy_read_bundles(reader, node);
        break;
    case TYPE_MAPPING_OR_OFF:
        if (node->kind == YAML_NODE_MAPPING)
            check_mapping(reader, id, node);
        else if (node->kind != YAML_NODE_TEXT || strcmp(node->text, "off") != 0)
            value_refuse(reader, id, node);
        break;
    case TYPE_SESSION:
        if (node->kind != YAML_NODE_MAPPING)
            value_refuse(reader, id, node);
        break;
    /* No row with one of these is out of force; its reader is in the file of its section. */
    case TYPE_VALUE:
    case TYPE_FILE_MODE:
    case TYPE_CLSID:
    case TYPE_VARIABLE_GLOBS:
    case TYPE_VARIABLES:
    case TYPE_MAPPING:
    case TYPE_MAPPINGS:
    case TYPE_MAPPING_OR_ALL:
        break;
    }
}
