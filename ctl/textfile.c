/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"

static const struct type {
    const char *name;
    const char *old_name;
    const char *suffix; /* that its samples have, and the family had not */
} types[] = {
    {"counter", "counter", "_total"}, {"gauge", "gauge", ""},     {"histogram", "histogram", ""},
    {"summary", "summary", ""},       {"info", "gauge", "_info"}, {"unknown", "untyped", ""},
};

struct line {
    const char *text;
    size_t length;
};

/* Takes the word in front of `line`, and the blank behind it. */
static struct line take_word(struct line *line)
{
    const char *blank = memchr(line->text, ' ', line->length);
    struct line word = {line->text, blank ? (size_t)(blank - line->text) : line->length};
    size_t taken = blank ? word.length + 1 : word.length;

    line->text += taken;
    line->length -= taken;
    return word;
}

static bool is_word(struct line word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

static bool starts_with(struct line line, const char *text)
{
    return line.length >= strlen(text) && memcmp(line.text, text, strlen(text)) == 0;
}

/* NULL for one that the old format has nothing like. */
static const struct type *find_type(struct line name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
        if (is_word(name, types[i].name))
            return &types[i];
    }
    return NULL;
}

/* "# TYPE family type" and "# HELP family text", in this order. */
static void put_comment(struct line line, const struct type **type, struct bytes *out)
{
    struct line mark = take_word(&line), what = take_word(&line), family = take_word(&line);
    bool is_type = is_word(what, "TYPE");

    if (!is_word(mark, "#") || starts_with(family, "process_"))
        return;
    if (is_type)
        *type = find_type(line);
    if (!*type || (!is_type && !is_word(what, "HELP")))
        return;
    bytes_put_format(out, "# %s %.*s%s ", is_type ? "TYPE" : "HELP", (int)family.length,
                     family.text, (*type)->suffix);
    if (is_type)
        bytes_put_string(out, (*type)->old_name);
    else
        bytes_put_run(out, line.text, line.length);
    bytes_put_u8(out, '\n');
}

void textfile_convert(const char *openmetrics, struct bytes *out)
{
    const struct type *type = NULL;

    while (*openmetrics != '\0') {
        struct line line = {openmetrics, strcspn(openmetrics, "\n")};

        if (starts_with(line, "#"))
            put_comment(line, &type, out);
        else if (line.length > 0 && !starts_with(line, "process_"))
            bytes_put_format(out, "%.*s\n", (int)line.length, line.text);
        openmetrics += line.length;
        openmetrics += *openmetrics == '\n';
    }
}

/* A name that does not end in ".prom" is read by nobody. */
int textfile_write(const char *path, const void *content, size_t length)
{
    struct file_place place = {
        .folder = AT_FDCWD,
        .name = path,
        .mode = 0644,
        .owner = geteuid(),
        .group = getegid(),
    };
    char *temporary = NULL;
    int error;

    if (asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0)
        return -ENOMEM;
    place.temporary = temporary;
    error = file_write(&place, content, length, true);
    free(temporary);
    return error;
}
