/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is written: pages of text for people, JSON for machines, and errors.
 *
 * Text reaches the terminal through the functions below and nothing else, and
 * every one of them escapes: whoever forgets that a text came from elsewhere
 * does no harm. What the text says is not known here.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/bytes.h"
#include "lib/util.h"

enum output_style {
    STYLE_PLAIN,
    STYLE_STRONG,
    STYLE_FAINT,
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_BAD,
};

/* Finds out about the locale and the terminal; before everything else. */
void output_open(void);

/* Sees to it that everything was written. The status, or a worse one when it was not. */
int output_close(int status);

/* Columns of the terminal; 0 when output goes elsewhere and is not cut. */
size_t output_width(void);

/* Lines of a terminal that can be drawn on anew; 0 when output goes elsewhere. */
size_t output_height(void);

/* The escape sequence that begins a style, and the one that ends any; "" without colour. */
const char *output_style_begin(enum output_style style);
const char *output_style_end(enum output_style style);

/*
 * Appends text as it may be shown. The daemon has escaped its texts already,
 * and a backslash is where such an escape starts: so it stays what it is, and
 * everything else that a terminal would obey becomes `\xNN`. Outside of UTF-8
 * locales that is every byte that is not ASCII.
 */
void output_put_text(struct bytes *out, const char *text);

/* A page is put together and then written at once. */
struct page {
    struct bytes bytes;
};

void page_init(struct page *page);
void page_deinit(struct page *page);

void page_text(struct page *page, const char *text);
void page_format(struct page *page, const char *format, ...) PRINTF_LIKE(2, 3);
void page_styled(struct page *page, enum output_style style, const char *text);
void page_end_line(struct page *page);

/* Blank columns. */
void page_indent(struct page *page, size_t n);

/* A label, padded to the width of a column of labels; the caller goes on with the value. */
void page_label(struct page *page, const char *label);

/* A whole line: label and value. */
void page_field(struct page *page, const char *label, const char *format, ...) PRINTF_LIKE(3, 4);

/* What somebody has escaped already, and blanks and line feeds, such as a table of table.h. */
void page_take(struct page *page, const char *text, size_t length);

/* Clears the screen before what follows. */
void page_clear_screen(struct page *page);

/* Writes the page to standard output, or, for what is no answer, to standard error, and frees it.
 * The status: STATUS_DONE, or has said why not. */
int page_write(struct page *page);
int page_write_error(struct page *page);

/* On several lines, or as one line of a stream. The status. */
int output_json(const json_t *value);
int output_json_line(const json_t *value);

/* Says on standard error, in one line, what went wrong. */
void output_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* The same for what is no problem, and good to know. */
void output_note(const char *format, ...) PRINTF_LIKE(1, 2);

/* The same for what only may go wrong. */
void output_warning(const char *format, ...) PRINTF_LIKE(1, 2);

/* Says that memory ran out; the status. */
int output_no_memory(void);

/* From now on Ctrl-C is the way to end what would never end by itself, and no failure. */
void output_end_on_interrupt(void);
