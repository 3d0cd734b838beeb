/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A YAML document as a small tree of texts, lists and mappings, each with its
 * place.
 *
 * This is a subset of YAML: one document in UTF-8 without anchors, aliases,
 * tags and merge keys, and every key is a text. Nothing is interpreted: whether
 * a text is a number is the business of whoever knows what it is for. What the
 * keys mean is not known here; libyaml is not known anywhere else.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/util.h"

enum {
    YAML_TREE_DEPTH_MAX = 16,     /* lists and mappings in one another */
    YAML_TREE_NODES_MAX = 100000, /* a full file of a megabyte has fewer */
};

enum yaml_node_kind { YAML_NODE_TEXT, YAML_NODE_LIST, YAML_NODE_MAPPING };

struct yaml_node {
    enum yaml_node_kind kind;
    bool is_plain;    /* a text without quotes that is not a block either */
    bool is_flow;     /* a list in [] or a mapping in {} */
    unsigned line;    /* from 1 */
    unsigned column;  /* from 1, in characters */
    const char *text; /* of a text: strict UTF-8, `length` bytes and a NUL, no NUL inside */
    size_t length;
    struct yaml_node *first; /* of a list: its items; of a mapping: key, value, key, value, ... */
    struct yaml_node *next;
    size_t n; /* items of a list, pairs of a mapping */
};

struct yaml_block;

struct yaml_tree {
    /* NULL when the document is empty. With a problem: the pairs of the top level that another key
     * followed before it, or NULL. */
    struct yaml_node *root;
    char *problem; /* NULL: none; else one line, escaped */
    unsigned line; /* of the problem; 0 when it is about the document as a whole */
    unsigned column;
    struct yaml_block *blocks;
};

/*
 * Reads a document, of which only the first problem is told. The tree does not
 * point into `bytes`. 0, also with a problem, or -ENOMEM.
 */
int yaml_tree_read(const char *bytes, size_t length, size_t length_max,
                   struct yaml_tree **ret_tree) MUST_CHECK;

/* Returns NULL. */
struct yaml_tree *yaml_tree_free(struct yaml_tree *tree);
