/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The selectors of a rule: from `match` to a tree of selectors, and what can be
 * said beforehand about those that can never match.
 */

#include <errno.h>
#include <string.h>

#include "lib/glob.h"
#include "lib/names.h"
#include "lib/policy_reader.h"

enum {
    SELECTORS_MAX = 10000, /* of one rule; numbers above are taken, see match.h */
    DYNAMIC_USER_FIRST = 61184,
    DYNAMIC_USER_LAST = 65519,
};

struct match_reader {
    struct reader *reader;
    struct policy_rule *rule;
    bool is_full; /* it was said that there are too many selectors */
};

static void read_mapping(struct match_reader *match, const char *what, const struct yaml_node *node,
                         struct selector *all, bool is_top);

static bool attribute_of(enum policy_key_id id, enum attribute_id *ret_attribute)
{
    static const struct {
        enum policy_key_id key;
        enum attribute_id attribute;
    } rows[] = {
        {KEY_MATCH_EXE, ATTRIBUTE_EXE},           {KEY_MATCH_ARGS, ATTRIBUTE_ARGUMENTS},
        {KEY_MATCH_ASSEMBLY, ATTRIBUTE_ASSEMBLY}, {KEY_MATCH_CWD, ATTRIBUTE_CWD},
        {KEY_MATCH_USER, ATTRIBUTE_USER},         {KEY_MATCH_GROUP, ATTRIBUTE_GROUP},
        {KEY_MATCH_UNIT, ATTRIBUTE_UNIT},         {KEY_MATCH_PARENT, ATTRIBUTE_PARENT},
        {KEY_MATCH_PORT, ATTRIBUTE_PORT},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (rows[i].key == id) {
            *ret_attribute = rows[i].attribute;
            return true;
        }
    }
    return false;
}

/* The resolved path of a program is absolute and spelled in one way only. */
static void advise_path(struct reader *reader, const struct yaml_node *node, const char *glob,
                        const char *key)
{
    char *target = NULL;

    if (strchr("/*?[\\", glob[0]) == NULL)
        reader_warn(reader, node,
                    "\"%s\" is the whole path, so \"%s\" never matches; write \"*/%s\"", key,
                    reader_show(reader, glob), reader_show(reader, glob));
    if (strstr(glob, "//") || strstr(glob, "/./") || strstr(glob, "/../"))
        reader_warn(reader, node,
                    "\"%s\" is a resolved path without \"//\", \".\" and \"..\", so \"%s\" never "
                    "matches; write the path without",
                    key, reader_show(reader, glob));
    if (glob_is_literal(glob) && reader->host->link_target &&
        reader->host->link_target(reader->host->context, glob, &target)) {
        reader_warn(reader, node,
                    "\"%s\" is a link on this host, and processes show what it leads to; write "
                    "\"%s\"",
                    reader_show(reader, glob), reader_show(reader, target));
        free(target);
    }
}

static void advise_argument(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    if (strchr(glob, ' '))
        reader_warn(reader, node,
                    "each argument is matched alone, so \"%s\" only fits one with a blank in it; "
                    "for two arguments write two selectors below \"all\"",
                    reader_show(reader, glob));
}

static void advise_assembly(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    const size_t length = strlen(glob);

    if (length > 4 && strcmp(glob + length - 4, ".dll") == 0)
        reader_warn(reader, node,
                    "an assembly is named without \".dll\", so \"%s\" hardly ever matches; leave "
                    "it out",
                    reader_show(reader, glob));
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void advise_unit(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    if (strchr("*?]", glob[strlen(glob) - 1]) == NULL && !ends_in(glob, ".service") &&
        !ends_in(glob, ".scope"))
        reader_warn(reader, node,
                    "the name of a unit ends in \".service\" or \".scope\", so \"%s\" never "
                    "matches; write the whole name",
                    reader_show(reader, glob));
}

static void warn_dynamic(struct reader *reader, const struct yaml_node *node, const char *glob,
                         uint32_t number)
{
    if (number >= DYNAMIC_USER_FIRST && number <= DYNAMIC_USER_LAST)
        reader_warn(reader, node,
                    "\"%s\" is a dynamic user, who has another number with each start; use "
                    "\"unit\"",
                    reader_show(reader, glob));
}

/* A number is shown by one name only, see names.h; the other one would never match. */
static void warn_alias(struct reader *reader, const struct yaml_node *node, const char *glob,
                       const char *known, uint32_t number)
{
    if (known && strcmp(known, glob) != 0)
        reader_warn(reader, node,
                    "\"%s\" and \"%s\" have one number, %u, and only the other name is shown: "
                    "write "
                    "the number",
                    reader_show(reader, glob), reader_show(reader, known), number);
}

/* Also puts the name into the table that turns numbers into names later. */
static void advise_user(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    const struct policy_host *host = reader->host;
    uint32_t number;

    if (!glob_is_literal(glob))
        return;
    if (value_is_id(glob, &number)) {
        warn_dynamic(reader, node, glob, number);
    } else if (host->user_number && !host->user_number(host->context, glob, &number)) {
        reader_warn(reader, node, "no user \"%s\" is known on this host: this matches nobody",
                    reader_show(reader, glob));
    } else if (host->user_number) {
        warn_dynamic(reader, node, glob, number);
        warn_alias(reader, node, glob, names_user(reader->policy->names, number), number);
        if (names_add_user(reader->policy->names, number, glob) != 0)
            reader->error = -ENOMEM;
    }
}

static void advise_group(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    const struct policy_host *host = reader->host;
    uint32_t number;

    if (!glob_is_literal(glob) || value_is_id(glob, &number) || !host->group_number)
        return;
    if (!host->group_number(host->context, glob, &number)) {
        reader_warn(reader, node, "no group \"%s\" is known on this host: this matches nobody",
                    reader_show(reader, glob));
        return;
    }
    warn_alias(reader, node, glob, names_group(reader->policy->names, number), number);
    if (names_add_group(reader->policy->names, number, glob) != 0)
        reader->error = -ENOMEM;
}

static void advise_port(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    const struct policy *policy = reader->policy;

    if (policy->n_listens == 0)
        return;
    for (size_t i = 0; i < policy->n_listens; i++) {
        /* One without a name was refused. */
        if (!policy->listens[i].name || glob_match(glob, policy->listens[i].name))
            return;
    }
    reader_warn(reader, node, "no listener has a name like \"%s\": this matches nothing",
                reader_show(reader, glob));
}

/* As shells have them. */
static void advise_braces(struct reader *reader, const struct yaml_node *node, const char *glob)
{
    const char *open = strchr(glob, '{'), *comma = open ? strchr(open, ',') : NULL;

    if (comma && strchr(comma, '}'))
        reader_warn(reader, node,
                    "braces stand for themselves in a pattern, so \"%s\" has no alternatives; "
                    "write "
                    "a list of patterns",
                    reader_show(reader, glob));
}

/* Says of one pattern what keeps it from ever matching. */
static void advise(struct reader *reader, const struct yaml_node *node, const char *glob,
                   enum policy_key_id id)
{
    advise_braces(reader, node, glob);
    switch (id) {
    case KEY_MATCH_EXE:
    case KEY_MATCH_PARENT:
    case KEY_MATCH_CWD:
        advise_path(reader, node, glob, policy_key_row(id)->name);
        break;
    case KEY_MATCH_ARGS:
        advise_argument(reader, node, glob);
        break;
    case KEY_MATCH_ASSEMBLY:
        advise_assembly(reader, node, glob);
        break;
    case KEY_MATCH_UNIT:
        advise_unit(reader, node, glob);
        break;
    case KEY_MATCH_USER:
        advise_user(reader, node, glob);
        break;
    case KEY_MATCH_GROUP:
        advise_group(reader, node, glob);
        break;
    case KEY_MATCH_PORT:
        advise_port(reader, node, glob);
        break;
    default:
        break;
    }
}

static void start_selector(struct match_reader *match, struct selector *selector,
                           enum selector_kind kind, const struct yaml_node *node)
{
    *selector = (struct selector){
        .kind = kind,
        .place = reader_place(match->reader, node),
        .number = (uint16_t)match->rule->n_selectors,
    };
    match->rule->n_selectors++;
}

static void read_text(struct match_reader *match, enum policy_key_id id,
                      enum attribute_id attribute, const struct yaml_node *key,
                      struct selector *selector)
{
    const struct yaml_node *value = key->next;
    const struct yaml_node *item = value->kind == YAML_NODE_LIST ? value->first : value;

    start_selector(match, selector, SELECTOR_TEXT, key);
    selector->attribute = attribute;
    if (!value_globs(match->reader, key->text, id, value, &selector->globs, &selector->n_globs))
        return;
    for (size_t i = 0; i < selector->n_globs; i++, item = item->next)
        advise(match->reader, item, selector->globs[i], id);
}

static void read_variable(struct match_reader *match, const struct yaml_node *key,
                          struct selector *selector)
{
    struct reader *reader = match->reader;

    start_selector(match, selector, SELECTOR_VARIABLE, key);
    if (!value_variable(reader, key))
        return;
    if (value_is_empty(key->next) || value_is_null(key->next)) {
        reader_error(reader, key,
                     "\"%s\" has no pattern; write \"*\" for any value, and not: { env: { %s: "
                     "\"*\" } } for a process without it",
                     reader_show(reader, key->text), reader_show(reader, key->text));
        return;
    }
    selector->name = reader_copy(reader, key->text);
    /* The row of any key that takes patterns. */
    (void)!value_globs(reader, key->text, KEY_MATCH_ARGS, key->next, &selector->globs,
                       &selector->n_globs);
}

/* `any` and `all`: a list of mappings. */
static void read_alternatives(struct match_reader *match, enum policy_key_id id,
                              const struct yaml_node *key, struct selector *selector)
{
    const struct yaml_node *list = key->next;

    start_selector(match, selector, id == KEY_MATCH_ANY ? SELECTOR_ANY : SELECTOR_ALL, key);
    if (!value_list(match->reader, id, list))
        return;
    selector->children = reader_alloc(match->reader, list->n, sizeof *selector->children);
    if (!selector->children)
        return;
    for (const struct yaml_node *item = list->first; item; item = item->next)
        read_mapping(match, id == KEY_MATCH_ANY ? "an item of \"any\"" : "an item of \"all\"", item,
                     &selector->children[selector->n_children++], false);
}

static void read_not(struct match_reader *match, const struct yaml_node *key,
                     struct selector *selector)
{
    start_selector(match, selector, SELECTOR_NOT, key);
    if (key->next->kind == YAML_NODE_LIST) {
        value_refuse(match->reader, KEY_MATCH_NOT, key->next);
        return;
    }
    selector->children = reader_alloc(match->reader, 1, sizeof *selector->children);
    if (!selector->children)
        return;
    selector->n_children = 1;
    read_mapping(match, "\"not\"", key->next, &selector->children[0], false);
}

/* Only `any` is in force, and only where it concerns the rule as a whole. */
static void read_container(struct match_reader *match, const struct yaml_node *key, bool is_top)
{
    const struct yaml_node *value = key->next;
    char **globs;
    size_t n;

    if (value->kind == YAML_NODE_TEXT && strcmp(value->text, "any") == 0) {
        if (!is_top)
            reader_error(match->reader, key,
                         "\"container: any\" concerns the whole rule; write it directly below "
                         "\"match\"");
        match->rule->any_container = true;
        return;
    }
    if (!value_globs(match->reader, key->text, KEY_MATCH_CONTAINER, value, &globs, &n))
        return;
    for (size_t i = 0; i < n; i++)
        free(globs[i]);
    free(globs);
    reader_error(match->reader, value,
                 "selecting containers is not in force in this version (%s); write any, or leave "
                 "the key out for processes of the host only",
                 POLICY_KEY_VERSION);
}

static void read_variables(struct match_reader *match, const struct yaml_node *node,
                           struct selector *all)
{
    if (!value_names(match->reader, KEY_MATCH_ENV, node))
        return;
    for (const struct yaml_node *key = node->first; key; key = key->next->next)
        read_variable(match, key, &all->children[all->n_children++]);
}

/* One key of a mapping of selectors. */
static void read_key(struct match_reader *match, enum policy_key_id id, const struct yaml_node *key,
                     struct selector *all, bool is_top)
{
    enum attribute_id attribute;

    if (id == KEY_MATCH_CONTAINER)
        read_container(match, key, is_top);
    else if (id == KEY_MATCH_ENV)
        read_variables(match, key->next, all);
    else if (id == KEY_MATCH_ANY || id == KEY_MATCH_ALL)
        read_alternatives(match, id, key, &all->children[all->n_children++]);
    else if (id == KEY_MATCH_NOT)
        read_not(match, key, &all->children[all->n_children++]);
    else if (attribute_of(id, &attribute))
        read_text(match, id, attribute, key, &all->children[all->n_children++]);
}

/* How many selectors the keys of a mapping can make at most. */
static size_t count_selectors(const struct yaml_node *node)
{
    size_t n = 0;

    for (const struct yaml_node *key = node->first; key; key = key->next->next) {
        const bool is_env = strcmp(key->text, "env") == 0;

        n += is_env && key->next->kind == YAML_NODE_MAPPING ? key->next->n : 1;
    }
    return n;
}

static bool is_too_many(struct match_reader *match, const struct yaml_node *node)
{
    if (!match->is_full && match->rule->n_selectors + count_selectors(node) > SELECTORS_MAX) {
        match->is_full = true;
        reader_error(match->reader, node, "a rule has at most %d selectors; make several rules",
                     SELECTORS_MAX);
    }
    return match->is_full;
}

static void read_mapping(struct match_reader *match, const char *what, const struct yaml_node *node,
                         struct selector *all, bool is_top)
{
    struct reader_view view;

    start_selector(match, all, SELECTOR_ALL, node);
    if (!reader_view(match->reader, &view, SECTION_MATCH, what, node) || is_too_many(match, node))
        return;
    /* One more: nothing to select is an error of the key that says so, not an empty array. */
    all->children = reader_alloc(match->reader, count_selectors(node) + 1, sizeof *all->children);
    if (!all->children)
        return;
    for (const struct yaml_node *key = node->first; key; key = key->next->next) {
        enum policy_key_id id;

        /* A key that was refused has no value in the view, a repeated one is another node. */
        if (policy_key_find(SECTION_MATCH, key->text, &id) && view.values[id] == key->next)
            read_key(match, id, key, all, is_top);
    }
}

void policy_read_match(struct reader *reader, const struct yaml_node *node,
                       struct policy_rule *rule)
{
    struct match_reader match = {.reader = reader, .rule = rule};

    if (node->kind == YAML_NODE_TEXT && strcmp(node->text, "all") == 0)
        start_selector(&match, &rule->match, SELECTOR_ALL, node);
    else if (node->kind == YAML_NODE_LIST ||
             (node->kind == YAML_NODE_TEXT && !strchr(node->text, ':')))
        value_refuse(reader, KEY_MATCH, node);
    else if (node->kind == YAML_NODE_MAPPING && node->n == 0)
        reader_error(reader, node,
                     "\"match\" is empty; say which processes, or write \"match: all\" for every "
                     "process of the host");
    else
        read_mapping(&match, NULL, node, &rule->match, true);
}
