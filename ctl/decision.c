/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/decision.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/table.h"
#include "lib/bytes.h"
#include "lib/util.h"

enum { INDENT = 2 };

static void put_title(const char *title, struct page *page)
{
    page_end_line(page);
    page_styled(page, STYLE_STRONG, title);
    page_end_line(page);
}

/* NULL when memory ran out; the text lives as long as the buffer. */
static const char *finish(struct bytes *text)
{
    return bytes_finish(text) == 0 ? (const char *)text->data : NULL;
}

/* Steps. */

static void put_note(struct bytes *notes, const char *note)
{
    bytes_put_string(notes, notes->length > 0 ? ", " : "");
    bytes_put_string(notes, note);
}

static void put_code(const json_t *step, struct bytes *notes)
{
    const char *hresult = answer_text(step, "hresult"), *meaning = answer_text(step, "meaning");

    if (!hresult || strcmp(hresult, "0x00000000") == 0)
        return;
    put_note(notes, hresult);
    if (meaning)
        bytes_put_format(notes, " (%s)", meaning);
}

/* What is wrong with its file, by the name that programs know. */
static void put_file_code(const json_t *step, struct bytes *notes)
{
    const char *code = answer_text(step, "code"), *detail = answer_text(step, "detail");

    if (detail)
        bytes_put_format(notes, ": %s", detail);
    if (code)
        bytes_put_format(notes, " (%s)", code);
}

/* Without a reason it is unknown because nothing is known yet. */
static void put_proof(const json_t *step, struct bytes *notes)
{
    const char *proof = answer_text(step, "proof"), *detail = answer_text(step, "proof_detail");
    const char *hresult = answer_text(step, "proof_hresult");

    if (!proof || (strcmp(proof, "unknown") == 0 && !detail))
        return;
    put_note(notes, "proof: ");
    bytes_put_string(notes, proof);
    if (detail)
        bytes_put_format(notes, " (%s%s%s)", detail, hresult ? ": " : "", hresult ? hresult : "");
}

/* What there is to say besides the result. */
static void put_step_notes(const json_t *step, struct bytes *notes)
{
    const char *why = answer_text(step, "why"), *remedy = answer_text(step, "remedy");

    if (why && why[0] != '\0')
        put_note(notes, why);
    put_file_code(step, notes);
    put_code(step, notes);
    if (answer_is_true(step, "unset"))
        put_note(notes, "to be taken away");
    if (json_is_false(answer_member(step, "required")))
        put_note(notes, "not required");
    if (answer_number(step, "attempts") > 1) {
        put_note(notes, "");
        bytes_put_format(notes, "sent %" PRId64 " times", answer_number(step, "attempts"));
    }
    put_proof(step, notes);
    if (remedy)
        bytes_put_format(notes, ". %s", remedy);
}

static enum output_style step_style(const json_t *step)
{
    const char *result = answer_text_or_empty(step, "result");

    if (strcmp(result, "refused") == 0 || strcmp(result, "lost") == 0 ||
        strcmp(answer_text_or_empty(step, "proof"), "not_loaded") == 0)
        return json_is_false(answer_member(step, "required")) ? STYLE_WARNING : STYLE_BAD;
    return strcmp(result, "ok") == 0 ? STYLE_GOOD : STYLE_PLAIN;
}

static void add_step(struct table *table, const json_t *step, const char *start)
{
    char span[ANSWER_SPAN_SIZE], at[ANSWER_SPAN_SIZE + 1] = "";
    const char *cells[5];
    struct bytes notes;
    double seconds;

    bytes_init(&notes, SIZE_MAX - 1);
    put_step_notes(step, &notes);
    if (answer_seconds_between(start, answer_text(step, "at"), &seconds))
        snprintf(at, sizeof at, "+%s", answer_span(seconds, span));
    cells[0] = answer_text(step, "kind");
    cells[1] = answer_text(step, "result");
    cells[2] = at;
    cells[3] = answer_text(step, "name");
    cells[4] = finish(&notes);
    table_add(table, cells, step_style(step));
    bytes_deinit(&notes);
}

void decision_put_steps(const json_t *steps, const char *start, const char *title,
                        struct page *page)
{
    static const struct table_column columns[] = {
        {.title = NULL},   {.title = NULL},   {.is_number = true, .is_rare = true},
        {.is_rare = true}, {.is_rare = true},
    };
    struct table *table;

    if (json_array_size(steps) == 0)
        return;
    table = table_new(columns, ARRAY_LENGTH(columns));
    for (size_t i = 0; table && i < json_array_size(steps); i++)
        add_step(table, json_array_get(steps, i), start);
    put_title(title, page);
    table_put(table, INDENT, page);
}

/* Rules. */

static enum output_style verdict_style(const char *verdict)
{
    if (strcmp(verdict, "yes") == 0)
        return STYLE_GOOD;
    if (strcmp(verdict, "unknown") == 0 || strcmp(verdict, "barred") == 0)
        return STYLE_WARNING;
    return STYLE_PLAIN;
}

static void add_rule(struct table *table, const json_t *entry)
{
    const char *verdict = answer_text_or_empty(entry, "verdict");
    const char *cells[3] = {strcmp(verdict, "not_asked") == 0 ? "not asked" : verdict,
                            answer_text(entry, "rule"), NULL};
    struct bytes why;

    bytes_init(&why, SIZE_MAX - 1);
    bytes_put_string(&why, answer_text_or_empty(entry, "why"));
    bytes_put_format(&why, "%s[%s:%" PRId64 "]", why.length > 0 ? "  " : "",
                     answer_text_or_empty(entry, "file"), answer_number(entry, "line"));
    cells[2] = finish(&why);
    table_add(table, cells, verdict_style(verdict));
    bytes_deinit(&why);
}

void decision_put_trace(const json_t *trace, struct page *page)
{
    static const struct table_column columns[] = {{.title = NULL},
                                                  {.title = NULL},
                                                  {.title = NULL}};
    struct table *table;

    if (json_array_size(trace) == 0)
        return;
    table = table_new(columns, ARRAY_LENGTH(columns));
    for (size_t i = 0; table && i < json_array_size(trace); i++)
        add_rule(table, json_array_get(trace, i));
    put_title("Rules, the first that matches decides", page);
    table_put(table, INDENT, page);
}

/* Attributes. */

static void put_value(const json_t *attribute, struct bytes *out)
{
    const char *state = answer_text_or_empty(attribute, "state");
    const char *why = answer_text_or_empty(attribute, "why");

    if (strcmp(state, "present") == 0)
        answer_put_list(out, answer_member(attribute, "texts"), ", ");
    else
        bytes_put_format(out, "(%s%s%s)", state, why[0] != '\0' ? ": " : "", why);
    if (answer_is_true(attribute, "cut"))
        bytes_put_string(out, " (and more that was not kept)");
}

static void add_attribute(struct table *table, const char *name, const json_t *attribute)
{
    const char *source = answer_text_or_empty(attribute, "source");
    const char *cells[2] = {name, NULL};
    struct bytes value;

    bytes_init(&value, SIZE_MAX - 1);
    put_value(attribute, &value);
    if (source[0] != '\0')
        bytes_put_format(&value, "  [%s]", source);
    cells[1] = finish(&value);
    table_add(table, cells, STYLE_PLAIN);
    bytes_deinit(&value);
}

void decision_put_attributes(const json_t *attributes, struct page *page)
{
    static const struct table_column columns[] = {{.title = NULL}, {.title = NULL}};
    struct table *table;
    const char *name;
    json_t *attribute;

    if (json_object_size(attributes) == 0)
        return;
    table = table_new(columns, ARRAY_LENGTH(columns));
    json_object_foreach((json_t *)(uintptr_t)attributes, name, attribute)
    {
        if (table)
            add_attribute(table, name, attribute);
    }
    put_title("Attributes, and where they were read", page);
    table_put(table, INDENT, page);
}
