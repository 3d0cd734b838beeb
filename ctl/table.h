/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables that fit the terminal, or, where there is none, that other programs
 * can take apart by blanks. What is in them is not known here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "ctl/output.h"
#include "lib/util.h"

enum { TABLE_COLUMNS_MAX = 12 };

struct table_column {
    const char *title; /* NULL in all: no titles */
    bool is_number;    /* to the right */
    double share;      /* of a narrow terminal, that it is cut to; 0: it is never cut */
    bool is_rare; /* left out when all its cells are empty, but not where others count columns */
};

struct table;

/* `columns` has to live as long as the table. The last column may have blanks in it; those of the
 * others are shown as such only on a terminal, or where there are no titles. NULL when memory is
 * out. */
struct table *table_new(const struct table_column *columns, size_t n_columns) MUST_CHECK;

/* Returns NULL. NULL is allowed. */
struct table *table_free(struct table *table);

/* Adds a row with a cell for each column. NULL is as good as "", which under a title is "-". */
void table_add(struct table *table, const char *const *cells, enum output_style style);

/* Appends the table, as far into the line as `indent` says, and frees it. */
void table_put(struct table *table, size_t indent, struct page *page);
