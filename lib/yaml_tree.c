/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/yaml_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <yaml.h>

#include "lib/bytes.h"
#include "lib/yaml_advice.h"

enum { BLOCK_SIZE = 64 * 1024, PROBLEM_MAX = 4096 };

/* Memory of a tree: pieces are cut off and freed all at once. */
struct yaml_block {
    struct yaml_block *next;
    size_t left;
    char *at;
    _Alignas(struct yaml_node) char data[];
};

/* Something is wrong with the document, which ends reading but is no error of the reader. */
enum { TREE_E_PROBLEM = 1 };

struct builder {
    struct yaml_tree *tree;
    struct yaml_node *open[YAML_TREE_DEPTH_MAX]; /* the lists and mappings around what comes next */
    struct yaml_node *last[YAML_TREE_DEPTH_MAX]; /* and the last child of each */
    size_t depth;
    size_t n_nodes;
    unsigned n_documents;
};

static void *tree_take(struct yaml_tree *tree, size_t size)
{
    struct yaml_block *block = tree->blocks;
    void *piece;

    size = (size + _Alignof(struct yaml_node) - 1) & ~(_Alignof(struct yaml_node) - 1);
    if (!block || block->left < size) {
        const size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;

        block = malloc(sizeof *block + capacity);
        if (!block)
            return NULL;
        *block = (struct yaml_block){tree->blocks, capacity, block->data};
        tree->blocks = block;
    }
    piece = block->at;
    block->at += size;
    block->left -= size;
    return piece;
}

struct yaml_tree *yaml_tree_free(struct yaml_tree *tree)
{
    if (!tree)
        return NULL;
    while (tree->blocks) {
        struct yaml_block *next = tree->blocks->next;

        free(tree->blocks);
        tree->blocks = next;
    }
    free(tree->problem);
    free(tree);
    return NULL;
}

/* Keeps a problem; returns TREE_E_PROBLEM or -ENOMEM. */
static int tree_set_problem(struct yaml_tree *tree, unsigned line, unsigned column,
                            struct bytes *text)
{
    int r = bytes_finish(text);

    if (r != 0)
        return r;
    tree->problem = (char *)bytes_take(text);
    tree->line = line;
    tree->column = column;
    return TREE_E_PROBLEM;
}

static int PRINTF_LIKE(4, 5)
    tree_fail(struct yaml_tree *tree, unsigned line, unsigned column, const char *format, ...)
{
    char text[256];
    struct bytes CLEANUP(bytes_deinit) out;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bytes_init(&out, PROBLEM_MAX);
    bytes_put_string(&out, text);
    return tree_set_problem(tree, line, column, &out);
}

#define fail_at(builder, mark, ...) \
    tree_fail((builder)->tree, (unsigned)(mark).line + 1, (unsigned)(mark).column + 1, __VA_ARGS__)

/* True when a mapping has a key whose value is still to come. */
static bool has_open_key(const struct yaml_node *mapping)
{
    return mapping->n % 2 == 1;
}

/* Adds a node below the innermost list or mapping; `n` of a mapping counts keys and values until it
 * is closed. */
static int append(struct builder *builder, const yaml_event_t *event, enum yaml_node_kind kind,
                  struct yaml_node **ret_node)
{
    struct yaml_node *parent = builder->depth > 0 ? builder->open[builder->depth - 1] : NULL;
    struct yaml_node *node;

    if (++builder->n_nodes > YAML_TREE_NODES_MAX)
        return fail_at(builder, event->start_mark,
                       "more than %d keys and values; split the file into several",
                       YAML_TREE_NODES_MAX);
    if (parent && parent->kind == YAML_NODE_MAPPING && kind != YAML_NODE_TEXT &&
        !has_open_key(parent))
        return fail_at(builder, event->start_mark,
                       "a key has to be a text; quote it if it starts with \"%s\"",
                       kind == YAML_NODE_LIST ? "[" : "{");
    node = tree_take(builder->tree, sizeof *node);
    if (!node)
        return -ENOMEM;
    *node = (struct yaml_node){
        .kind = kind,
        .line = (unsigned)event->start_mark.line + 1,
        .column = (unsigned)event->start_mark.column + 1,
    };
    if (!parent)
        builder->tree->root = node;
    else if (parent->n++ == 0)
        parent->first = node;
    else
        builder->last[builder->depth - 1]->next = node;
    if (parent)
        builder->last[builder->depth - 1] = node;
    *ret_node = node;
    return 0;
}

static int open_node(struct builder *builder, const yaml_event_t *event, enum yaml_node_kind kind,
                     bool is_flow)
{
    struct yaml_node *node;
    int r;

    if (builder->depth == YAML_TREE_DEPTH_MAX)
        return fail_at(builder, event->start_mark, "more than %d lists and mappings in one another",
                       YAML_TREE_DEPTH_MAX);
    r = append(builder, event, kind, &node);
    if (r != 0)
        return r;
    node->is_flow = is_flow;
    builder->open[builder->depth++] = node;
    return 0;
}

static void close_node(struct builder *builder)
{
    struct yaml_node *node = builder->open[--builder->depth];

    if (node->kind == YAML_NODE_MAPPING)
        node->n /= 2;
}

static int add_text(struct builder *builder, const yaml_event_t *event)
{
    const size_t length = event->data.scalar.length;
    const char *value = (const char *)event->data.scalar.value;
    const struct yaml_node *parent = builder->depth > 0 ? builder->open[builder->depth - 1] : NULL;
    const bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const bool is_key = parent && parent->kind == YAML_NODE_MAPPING && !has_open_key(parent);
    struct yaml_node *node;
    char *text;
    int r;

    if (memchr(value, '\0', length))
        return fail_at(builder, event->start_mark, "a text cannot contain a NUL (\"\\0\")");
    if (is_key && is_plain && strcmp(value, "<<") == 0)
        return fail_at(builder, event->start_mark,
                       "\"<<\" merges mappings, which policies do not have; write the keys out");
    r = append(builder, event, YAML_NODE_TEXT, &node);
    if (r != 0)
        return r;
    text = tree_take(builder->tree, length + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, value, length);
    text[length] = '\0';
    node->text = text;
    node->length = length;
    node->is_plain = is_plain;
    return 0;
}

static int refuse_anchor_and_tag(struct builder *builder, const yaml_event_t *event,
                                 const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return fail_at(builder, event->start_mark,
                       "\"&\" starts an anchor, which policies do not have; quote the text if it "
                       "starts with \"&\"");
    if (tag)
        return fail_at(builder, event->start_mark,
                       "\"!\" starts a tag, which policies do not have; quote the text if it "
                       "starts with \"!\"");
    return 0;
}

static int start_document(struct builder *builder, const yaml_event_t *event)
{
    if (event->data.document_start.tag_directives.start !=
        event->data.document_start.tag_directives.end)
        return fail_at(builder, event->start_mark, "a %%TAG directive: policies do not have tags");
    if (builder->n_documents++ > 0)
        return fail_at(builder, event->start_mark,
                       "a second document starts here; a policy file has one");
    return 0;
}

static int take_event(struct builder *builder, const yaml_event_t *event)
{
    int r = 0;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return start_document(builder, event);
    case YAML_ALIAS_EVENT:
        return fail_at(builder, event->start_mark,
                       "\"*\" starts an alias, which policies do not have; quote the text if it "
                       "starts with \"*\"");
    case YAML_SCALAR_EVENT:
        r = refuse_anchor_and_tag(builder, event, event->data.scalar.anchor,
                                  event->data.scalar.tag);
        return r != 0 ? r : add_text(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        r = refuse_anchor_and_tag(builder, event, event->data.sequence_start.anchor,
                                  event->data.sequence_start.tag);
        return r != 0 ? r
                      : open_node(builder, event, YAML_NODE_LIST,
                                  event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
    case YAML_MAPPING_START_EVENT:
        r = refuse_anchor_and_tag(builder, event, event->data.mapping_start.anchor,
                                  event->data.mapping_start.tag);
        return r != 0 ? r
                      : open_node(builder, event, YAML_NODE_MAPPING,
                                  event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(builder);
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

static int fail_as_parser(struct yaml_tree *tree, const yaml_parser_t *parser, const char *source,
                          size_t length)
{
    const struct yaml_advice_fault fault = {
        .context = parser->context,
        .problem = parser->problem,
        .context_place = {(unsigned)parser->context_mark.line + 1,
                          (unsigned)parser->context_mark.column + 1},
        .problem_place = {(unsigned)parser->problem_mark.line + 1,
                          (unsigned)parser->problem_mark.column + 1},
    };
    struct bytes CLEANUP(bytes_deinit) out;
    struct yaml_advice_place place;

    if (parser->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    bytes_init(&out, PROBLEM_MAX);
    yaml_advice_put(&out, &fault, source, length, &place);
    return tree_set_problem(tree, place.line, place.column, &out);
}

static int read_events(struct builder *builder, yaml_parser_t *parser, const char *source,
                       size_t length)
{
    for (bool is_done = false; !is_done;) {
        yaml_event_t event;
        int r;

        if (!yaml_parser_parse(parser, &event))
            return fail_as_parser(builder->tree, parser, source, length);
        is_done = event.type == YAML_STREAM_END_EVENT;
        r = take_event(builder, &event);
        yaml_event_delete(&event);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Leaves of a document with a problem what was complete before it: the pairs of the top level that
 * another key follows. */
static void cut_incomplete(struct builder *builder)
{
    struct yaml_node *root = builder->tree->root;
    size_t n_complete;
    struct yaml_node *at;

    if (!root || builder->depth == 0)
        return;
    /* Both keys and values are counted, and the last pair may be a part of one. */
    n_complete = root->n == 0 ? 0 : (root->n - 1) / 2;
    if (root->kind != YAML_NODE_MAPPING || n_complete == 0) {
        builder->tree->root = NULL;
        return;
    }
    root->n = n_complete;
    at = root->first;
    for (size_t i = 1; i < 2 * root->n; i++)
        at = at->next;
    at->next = NULL;
}

static int read_document(struct yaml_tree *tree, const char *source, size_t length)
{
    struct builder builder = {.tree = tree};
    yaml_parser_t parser;
    int r;

    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)source, length);
    r = read_events(&builder, &parser, source, length);
    yaml_parser_delete(&parser);
    if (r == TREE_E_PROBLEM)
        cut_incomplete(&builder);
    return r;
}

int yaml_tree_read(const char *bytes, size_t length, size_t length_max, struct yaml_tree **ret_tree)
{
    struct yaml_tree *tree = calloc(1, sizeof *tree);
    struct yaml_advice_place place;
    const char *fault;
    int r;

    if (!tree)
        return -ENOMEM;
    if (length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
        bytes += 3;
        length -= 3;
    }
    fault = length <= length_max ? yaml_advice_character(bytes, length, &place) : NULL;
    if (length > length_max)
        r = tree_fail(tree, 0, 0, "the file has more than %zu bytes; split it into several",
                      length_max);
    else if (fault)
        r = tree_fail(tree, place.line, place.column, "%s", fault);
    else
        r = read_document(tree, bytes, length);
    if (r < 0) {
        yaml_tree_free(tree);
        return r;
    }
    *ret_tree = tree;
    return 0;
}
