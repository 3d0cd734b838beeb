/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/primer.h"

#include <string.h>

#include "lib/text.h"

static const char *const failure_words[] = {
    [PRIMER_NO_FAILURE] = "", [PRIMER_NAME] = "name",       [PRIMER_TEXT] = "text",
    [PRIMER_LONG] = "long",   [PRIMER_RUNTIME] = "runtime", [PRIMER_LIBC] = "libc",
};

static bool is(struct primer_words words, const char *text)
{
    return words.length == strlen(text) && memcmp(words.text, text, words.length) == 0;
}

/* Takes the text up to the next `end` off its front. False when there is none. */
static bool take(struct primer_words *rest, char end, struct primer_words *ret_words)
{
    const char *at = rest->length > 0 ? memchr(rest->text, end, rest->length) : NULL;

    if (!at)
        return false;
    *ret_words = (struct primer_words){rest->text, (size_t)(at - rest->text)};
    rest->text = at + 1;
    rest->length -= ret_words->length + 1;
    return true;
}

/* A line with that word in front; what is behind it is left. */
static bool take_line(struct primer_words *rest, const char *word, struct primer_words *ret_line)
{
    struct primer_words first;

    return take(rest, '\n', ret_line) && take(ret_line, ' ', &first) && is(first, word);
}

/* As the primer writes it: without a zero in front. */
static bool read_number(struct primer_words words, uint32_t *ret_number)
{
    uint64_t number = 0;

    if (words.length == 0 || (words.length > 1 && words.text[0] == '0') ||
        !text_number(words.text, words.length, UINT32_MAX, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static bool read_count(struct primer_words *rest, const char *word, uint32_t *ret_number)
{
    struct primer_words line;

    return take_line(rest, word, &line) && read_number(line, ret_number);
}

/* Words that a primer shows: of its length, and in one line. */
static bool may_be_shown(struct primer_words words)
{
    for (size_t i = 0; i < words.length; i++) {
        if ((unsigned char)words.text[i] < 0x20 || words.text[i] == 0x7F)
            return false;
    }
    return words.length <= PRIMER_WORDS_MAX;
}

static bool read_failures(struct primer_words *rest, struct primer_result *result)
{
    struct primer_words line, number, word;

    if (!take_line(rest, "failed", &line))
        return false;
    if (is(line, "0"))
        return true;
    if (!take(&line, ' ', &number) || !read_number(number, &result->n_failed) ||
        result->n_failed == 0 || !take(&line, ' ', &word))
        return false;
    for (size_t i = PRIMER_NAME; i < ARRAY_LENGTH(failure_words); i++) {
        if (is(word, failure_words[i]))
            result->failure = (enum primer_failure)i;
    }
    result->failed = line;
    return result->failure != PRIMER_NO_FAILURE && may_be_shown(line);
}

static bool read_library(struct primer_words line, struct primer_library *ret_library)
{
    struct primer_words word;

    *ret_library = (struct primer_library){.state = PRIMER_OPENED};
    if (is(line, "ok"))
        return true;
    ret_library->state = PRIMER_NO_ENTRY;
    if (is(line, "no-entry"))
        return true;
    ret_library->state = PRIMER_UNTRIED;
    if (is(line, "untried"))
        return true;
    ret_library->state = PRIMER_REFUSED;
    ret_library->words = line;
    return take(&ret_library->words, ' ', &word) && is(word, "failed") &&
           may_be_shown(ret_library->words);
}

/* The libraries and the end, with nothing behind it. */
static bool read_libraries(struct primer_words *rest, struct primer_result *result)
{
    struct primer_words line, word;

    while (take(rest, '\n', &line)) {
        if (is(line, PRIMER_END))
            return rest->length == 0;
        if (result->n_libraries == PRIMER_LIBRARIES_MAX || !take(&line, ' ', &word) ||
            !is(word, "library") || !read_library(line, &result->libraries[result->n_libraries++]))
            return false;
    }
    return false;
}

bool primer_read_result(const char *text, size_t length, struct primer_result *ret_result)
{
    struct primer_words rest = {text, length};
    struct primer_result result = {.n_set = 0};
    struct primer_words line;

    if (!take(&rest, '\n', &line) || !is(line, PRIMER_VERSION) ||
        !read_count(&rest, "set", &result.n_set) || !read_count(&rest, "unset", &result.n_unset) ||
        !read_failures(&rest, &result) || !read_libraries(&rest, &result))
        return false;
    *ret_result = result;
    return true;
}

const char *primer_failure_name(enum primer_failure failure)
{
    switch (failure) {
    case PRIMER_NO_FAILURE:
        return "none";
    case PRIMER_NAME:
        return "is no name of a variable";
    case PRIMER_TEXT:
        return "has a value that is no valid UTF-16";
    case PRIMER_LONG:
        return "has a value that is too long";
    case PRIMER_RUNTIME:
        return "was not shown by the runtime";
    case PRIMER_LIBC:
        return "was refused by the C library";
    }
    return "none";
}

const char *primer_library_state_name(enum primer_library_state state)
{
    switch (state) {
    case PRIMER_OPENED:
        return "opened";
    case PRIMER_NO_ENTRY:
        return "has no entry point for profilers";
    case PRIMER_UNTRIED:
        return "untried";
    case PRIMER_REFUSED:
        return "refused by the loader";
    }
    return "untried";
}
