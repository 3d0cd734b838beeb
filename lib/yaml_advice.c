/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/yaml_advice.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"
#include "lib/util.h"

enum { EXCERPT_MAX = 60 }; /* bytes of a key that are shown */

/* A piece of the document, to the end of its line. */
struct run {
    const char *at;
    size_t length;
};

/* What is written from a place to the end of its line. Lines end at a line feed only: other breaks
 * were refused before. */
static struct run run_at(const char *source, size_t length, struct yaml_advice_place place)
{
    struct run run = {source, 0};
    const char *const end = source + length;
    const char *line_end;

    for (unsigned line = 1; line < place.line; line++) {
        const char *feed = memchr(run.at, '\n', (size_t)(end - run.at));

        if (!feed)
            return (struct run){end, 0};
        run.at = feed + 1;
    }
    line_end = memchr(run.at, '\n', (size_t)(end - run.at));
    if (!line_end)
        line_end = end;
    for (unsigned column = 1; column < place.column && run.at < line_end; column++) {
        uint32_t code_point;
        size_t size =
            text_decode((const uint8_t *)run.at, (size_t)(line_end - run.at), &code_point);

        run.at += size > 0 ? size : 1;
    }
    run.length = (size_t)(line_end - run.at);
    return run;
}

/* What is written in the line of a place before it. */
static struct run run_before(const char *source, size_t length, struct yaml_advice_place place)
{
    struct run run = run_at(source, length, (struct yaml_advice_place){place.line, 1});

    run.length -= run_at(source, length, place).length;
    return run;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* True when the run has a colon that a blank, or the end, follows: a key, or the end of one. */
static bool has_colon(struct run run)
{
    for (size_t i = 0; i < run.length; i++) {
        if (run.at[i] == ':' && (i + 1 == run.length || is_blank(run.at[i + 1])))
            return true;
    }
    return false;
}

/* Something stands where "key: value" has to. */
static void put_key(struct bytes *out, struct run run)
{
    const char *colon = memchr(run.at, ':', run.length);

    if (run.length > 0 && run.at[0] == '\t') {
        bytes_put_string(out, "a tab: indent with blanks");
    } else if (colon && colon > run.at && colon - run.at <= EXCERPT_MAX) {
        bytes_put_string(out, "a blank is missing after the colon: write \"");
        text_put_escaped(out, run.at, (size_t)(colon - run.at));
        bytes_put_string(out, ": ...\"");
    } else {
        bytes_put_string(out,
                         "expected \"key: value\" here; check the indentation of this line, or "
                         "quote a text that is meant to go on here");
    }
}

/* A colon makes a key of something that cannot be one; `before` is its line up to there. */
static void put_colon(struct bytes *out, struct run before)
{
    if (has_colon(before))
        bytes_put_string(out, "a second \": \" in one line; quote the value if a colon is part "
                              "of it");
    else
        bytes_put_string(out, "a key cannot stand here: this line is indented deeper than the one "
                              "that it should line up with");
}

/* A character that no text may start with. */
static void put_first_character(struct bytes *out, struct run run)
{
    if (run.length == 0) {
        bytes_put_string(out, "expected a value here");
    } else if (run.at[0] == '\t') {
        bytes_put_string(out, "a tab: indent with blanks");
    } else {
        bytes_put_string(out, "a text cannot start with \"");
        text_put_escaped(out, run.at, 1);
        bytes_put_string(out, "\"; quote it");
    }
}

/* Which function words a problem, for those that need more than a sentence. */
enum wording { SENTENCE, KEY, COLON, FIRST_CHARACTER, OPENED };

static const struct row {
    const char *context; /* a part of libyaml's; NULL: any */
    const char *problem; /* a part of libyaml's; NULL: any */
    bool at_context;     /* the place is where libyaml began to read, not where it gave up */
    enum wording wording;
    const char *words; /* of SENTENCE and OPENED */
    const char *tail;  /* of OPENED, after the place */
} rows[] = {
    {"directive", NULL, true, SENTENCE,
     "\"%\" at the start of a line is a YAML directive; quote the text if it starts with \"%\"",
     NULL},
    {"tag", NULL, true, SENTENCE,
     "\"!\" starts a tag, which policies do not have; quote the text if it starts with \"!\"",
     NULL},
    {"anchor", NULL, false, SENTENCE,
     "\"&\" starts an anchor, which policies do not have; quote the text if it starts with \"&\"",
     NULL},
    {"alias", NULL, false, SENTENCE,
     "\"*\" starts an alias, which policies do not have; quote the text if it starts with \"*\"",
     NULL},
    {"simple key", "expected ':'", true, KEY, NULL, NULL},
    {NULL, "mapping values are not allowed", false, COLON, NULL, NULL},
    {NULL, "mapping keys are not allowed", false, SENTENCE,
     "\"? \" cannot stand here; quote the text if it starts with \"?\"", NULL},
    {NULL, "block sequence entries are not allowed", false, SENTENCE,
     "a list item (\"- \") cannot stand here: write it on a line of its own, below its key", NULL},
    {NULL, "cannot start any token", false, FIRST_CHARACTER, NULL, NULL},
    {NULL, "found a tab character", false, SENTENCE, "a tab: indent with blanks", NULL},
    {"block scalar", NULL, true, SENTENCE,
     "\">\" or \"|\" starts a block of text; quote the value if it starts with one, as in "
     "\">=8.0\"",
     NULL},
    {"quoted scalar", "end of stream", true, SENTENCE,
     "the quoted text that starts here is never closed", NULL},
    {"quoted scalar", "document indicator", true, SENTENCE,
     "the quoted text that starts here is not closed before a line of \"---\" or \"...\"", NULL},
    {NULL, "unknown escape", false, SENTENCE,
     "in double quotes \"\\\" starts an escape, and this is none that YAML knows; write \"\\\\\", "
     "or use single quotes",
     NULL},
    {NULL, "hexdecimal number", false, SENTENCE,
     "\\x takes 2 hexadecimal digits, \\u 4 and \\U 8; or use single quotes", NULL},
    {NULL, "Unicode character escape", false, SENTENCE,
     "this escape names no character that Unicode has", NULL},
    {"plain scalar", "unexpected ':'", false, SENTENCE,
     "a text inside [] or {} cannot have \":\" here; quote it", NULL},
    {NULL, "expected '-' indicator", false, OPENED, "expected \"- \" to go on with the list",
     "; check the indentation"},
    {"block mapping", "expected key", false, OPENED, "expected a key to go on with the mapping",
     "; check the indentation, and that nothing follows a closing quote"},
    {NULL, "',' or ']'", false, OPENED, "expected \",\" or \"]\" to go on with the list", ""},
    {NULL, "',' or '}'", false, OPENED, "expected \",\" or \"}\" to go on with the mapping", ""},
    {NULL, "expected node content", false, SENTENCE, "a value is missing here", NULL},
    {NULL, "<document start>", false, SENTENCE,
     "nothing may follow here, the document is complete; check the indentation of this line", NULL},
    {NULL, "undefined tag handle", true, SENTENCE,
     "\"!\" starts a tag, which policies do not have; quote the text if it starts with \"!\"",
     NULL},
    {NULL, "%YAML directive", false, SENTENCE, "one \"%YAML 1.2\" is enough", NULL},
    {NULL, "incompatible YAML document", false, SENTENCE, "only YAML 1.1 and 1.2 can be read",
     NULL},
};

static bool has_part(const char *text, const char *part)
{
    return !part || (text && strstr(text, part));
}

static const struct row *row_of(const struct yaml_advice_fault *fault)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (has_part(fault->context, rows[i].context) && has_part(fault->problem, rows[i].problem))
            return &rows[i];
    }
    return NULL;
}

void yaml_advice_put(struct bytes *out, const struct yaml_advice_fault *fault, const char *source,
                     size_t length, struct yaml_advice_place *ret_place)
{
    const struct row *row = row_of(fault);
    const struct yaml_advice_place place =
        row && row->at_context ? fault->context_place : fault->problem_place;

    *ret_place = place;
    if (!row) {
        bytes_put_format(out, "this is not YAML: %s", fault->problem);
        return;
    }
    switch (row->wording) {
    case SENTENCE:
        bytes_put_string(out, row->words);
        break;
    case OPENED:
        bytes_put_format(out, "%s that starts at line %u, column %u%s", row->words,
                         fault->context_place.line, fault->context_place.column, row->tail);
        break;
    case KEY:
        put_key(out, run_at(source, length, place));
        break;
    case COLON:
        put_colon(out, run_before(source, length, place));
        break;
    case FIRST_CHARACTER:
        put_first_character(out, run_at(source, length, place));
        break;
    }
}

/* What is wrong with a character, of which `size` 0 says that it is not UTF-8; NULL: nothing. */
static const char *character_fault(size_t size, uint32_t code_point, bool before_line_feed)
{
    if (size == 0)
        return "this is not UTF-8; save the file as UTF-8";
    if (code_point == '\r' && !before_line_feed)
        return "a carriage return without a line feed; save the file with Unix line ends";
    if (code_point == 0x85 || code_point == 0x2028 || code_point == 0x2029)
        return "an invisible line break that is no line feed; remove it, or write it as an escape "
               "in double quotes";
    if (code_point == 0xFEFF)
        return "a byte order mark inside the file; remove it";
    if (code_point == 0)
        return "a NUL byte; remove it";
    if ((code_point < 0x20 && code_point != '\t' && code_point != '\n' && code_point != '\r') ||
        (code_point >= 0x7F && code_point <= 0x9F) || code_point == 0xFFFE || code_point == 0xFFFF)
        return "a control character; remove it, or write it as an escape in double quotes";
    return NULL;
}

const char *yaml_advice_character(const char *source, size_t length,
                                  struct yaml_advice_place *ret_place)
{
    struct yaml_advice_place place = {1, 1};

    for (size_t i = 0; i < length;) {
        uint32_t code_point = 0;
        size_t size = text_decode((const uint8_t *)source + i, length - i, &code_point);
        const char *fault =
            character_fault(size, code_point, i + 1 < length && source[i + 1] == '\n');

        if (fault) {
            *ret_place = place;
            return fault;
        }
        place.column++;
        if (code_point == '\n')
            place = (struct yaml_advice_place){place.line + 1, 1};
        i += size;
    }
    return NULL;
}
