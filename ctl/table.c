/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/table.h"

#include <errno.h>
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

/* Cells do not meet their neighbours. */
#define GAP "  "

struct table {
    struct libscols_table *table;
    const struct table_column *columns;
    size_t n_columns;
    bool is_filled[TABLE_COLUMNS_MAX];
    bool is_split; /* by whoever reads it, at blanks */
    int error;
};

static bool add_column(struct table *table, const struct table_column *column)
{
    const int flags =
        (column->is_number ? SCOLS_FL_RIGHT : 0) | (column->share > 0 ? SCOLS_FL_TRUNC : 0);

    return scols_table_new_column(table->table, column->title ? column->title : "", column->share,
                                  flags) != NULL;
}

static bool set_up(struct table *table)
{
    if (!table->table || scols_table_set_column_separator(table->table, GAP) != 0)
        return false;
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!add_column(table, &table->columns[i]))
            return false;
    }
    /* What is to be escaped is escaped already; a second time would hide it. */
    scols_table_enable_noencoding(table->table, 1);
    scols_table_enable_noheadings(table->table, !table->columns[0].title);
    scols_table_enable_colors(table->table, 1);
    return true;
}

struct table *table_new(const struct table_column *columns, size_t n_columns)
{
    struct table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    table->table = scols_new_table();
    table->columns = columns;
    table->n_columns = n_columns;
    table->is_split = columns[0].title && output_width() == 0;
    return set_up(table) ? table : table_free(table);
}

struct table *table_free(struct table *table)
{
    if (!table)
        return NULL;
    scols_unref_table(table->table);
    free(table);
    return NULL;
}

static void put_word(struct bytes *out, const char *word)
{
    for (; *word != '\0'; word++) {
        if (*word == ' ')
            bytes_put_string(out, "\\x20");
        else
            bytes_put_u8(out, (uint8_t)*word);
    }
}

/* A cell as the table takes it, which frees it; NULL when memory is out. */
static char *make_cell(const char *text, bool is_word)
{
    struct bytes shown, cell;
    bool is_good;

    bytes_init(&shown, SIZE_MAX - 1);
    bytes_init(&cell, SIZE_MAX - 1);
    output_put_text(&shown, text);
    is_good = bytes_finish(&shown) == 0;
    if (is_good && is_word)
        put_word(&cell, (const char *)shown.data);
    else if (is_good)
        bytes_put_string(&cell, (const char *)shown.data);
    is_good = is_good && bytes_finish(&cell) == 0;
    bytes_deinit(&shown);
    if (!is_good)
        bytes_deinit(&cell);
    return is_good ? (char *)bytes_take(&cell) : NULL;
}

static bool fill_line(struct table *table, struct libscols_line *line, const char *const *cells)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *empty = table->columns[0].title ? "-" : "";
        const bool is_filled = cells[i] && cells[i][0] != '\0';
        char *cell =
            make_cell(is_filled ? cells[i] : empty, table->is_split && i + 1 < table->n_columns);

        if (!cell || scols_line_refer_data(line, i, cell) != 0) {
            free(cell);
            return false;
        }
        table->is_filled[i] = table->is_filled[i] || is_filled;
    }
    return true;
}

void table_add(struct table *table, const char *const *cells, enum output_style style)
{
    struct libscols_line *line;

    if (!table || table->error != 0)
        return;
    line = scols_table_new_line(table->table, NULL);
    if (!line || !fill_line(table, line, cells))
        table->error = -ENOMEM;
    else if (output_style_begin(style)[0] != '\0')
        scols_line_set_color(line, output_style_begin(style));
}

static void put_lines(const char *lines, size_t indent, struct page *page)
{
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        size_t shown = length;

        while (shown > 0 && lines[shown - 1] == ' ')
            shown--;
        page_indent(page, indent);
        page_take(page, lines, shown);
        page_end_line(page);
        lines += length + (lines[length] == '\n');
    }
}

static void hide_rare(struct table *table)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        if (table->columns[i].is_rare && !table->is_filled[i])
            scols_column_set_flags(scols_table_get_column(table->table, i), SCOLS_FL_HIDDEN);
    }
}

/* libsmartcols writes none where there is no line; who reads the table expects it. */
static void put_titles(const struct table *table, size_t indent, struct page *page)
{
    page_indent(page, indent);
    for (size_t i = 0; i < table->n_columns; i++)
        page_format(page, "%s%s", i > 0 ? GAP : "", table->columns[i].title);
    page_end_line(page);
}

static int print(struct table *table, size_t indent, struct page *page)
{
    const size_t width = output_width();
    char *lines = NULL;

    if (table->error != 0)
        return table->error;
    scols_table_set_termforce(table->table,
                              width > 0 ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
    if (table->is_split && scols_table_get_nlines(table->table) == 0) {
        put_titles(table, indent, page);
        return 0;
    }
    if (!table->is_split)
        hide_rare(table);
    if (width > indent)
        scols_table_set_termwidth(table->table, width - indent);
    if (scols_print_table_to_string(table->table, &lines) != 0)
        return -ENOMEM;
    put_lines(lines, indent, page);
    free(lines);
    return 0;
}

void table_put(struct table *table, size_t indent, struct page *page)
{
    const int error = table ? print(table, indent, page) : -ENOMEM;

    if (error != 0)
        page->bytes.error = error;
    table_free(table);
}
