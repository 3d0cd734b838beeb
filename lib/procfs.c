/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/procfs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

/* What is left of a text or a line. */
struct rest {
    const char *at;
    size_t length;
};

static void rest_skip(struct rest *rest, size_t length)
{
    rest->at += length;
    rest->length -= length;
}

/* Takes the next run of bytes without blanks; false when there is none. */
static bool next_word(struct rest *rest, struct rest *ret_word)
{
    size_t length = 0;

    while (rest->length > 0 && (*rest->at == ' ' || *rest->at == '\t'))
        rest_skip(rest, 1);
    while (length < rest->length && rest->at[length] != ' ' && rest->at[length] != '\t')
        length++;
    *ret_word = (struct rest){rest->at, length};
    rest_skip(rest, length);
    return length > 0;
}

static bool is_number(struct rest word, uint64_t largest, uint64_t *ret_number)
{
    return text_number(word.at, word.length, largest, ret_number);
}

static bool next_number(struct rest *rest, uint64_t largest, uint64_t *ret_number)
{
    struct rest word;

    return next_word(rest, &word) && is_number(word, largest, ret_number);
}

/* Fields that nobody here wants: numbers, some of which may be negative. */
static bool skip_numbers(struct rest *rest, unsigned n_numbers)
{
    for (unsigned i = 0; i < n_numbers; i++) {
        struct rest word;
        uint64_t number;

        if (!next_word(rest, &word))
            return false;
        if (word.length > 1 && *word.at == '-')
            rest_skip(&word, 1);
        if (!is_number(word, UINT64_MAX, &number))
            return false;
    }
    return true;
}

/* The name between parentheses may hold anything, parentheses too; the last one closes it. */
static bool split_at_name(const char *text, size_t length, struct rest *ret_before,
                          struct rest *ret_after)
{
    size_t open = 0, close = length;

    while (open < length && text[open] != '(')
        open++;
    while (close > open && text[close - 1] != ')')
        close--;
    if (close == open)
        return false;
    *ret_before = (struct rest){text, open};
    *ret_after = (struct rest){text + close, length - close};
    return true;
}

bool procfs_read_stat(const char *text, size_t length, struct procfs_stat *ret_stat)
{
    enum { FIELD_PARENT = 4, FIELD_THREADS = 20, FIELD_START = 22 };
    struct rest before, after, state;
    uint64_t pid, parent, n_threads, start;

    if (!split_at_name(text, length, &before, &after))
        return false;
    if (!next_number(&before, INT32_MAX, &pid) || !next_word(&after, &state) || state.length != 1)
        return false;
    if ((*state.at | 0x20) < 'a' || (*state.at | 0x20) > 'z')
        return false;
    if (!next_number(&after, INT32_MAX, &parent) ||
        !skip_numbers(&after, FIELD_THREADS - FIELD_PARENT - 1) ||
        !next_number(&after, UINT64_MAX, &n_threads) ||
        !skip_numbers(&after, FIELD_START - FIELD_THREADS - 1) ||
        !next_number(&after, UINT64_MAX, &start))
        return false;
    /* More fields follow; where none does, the text was cut and the number may be, too. */
    if (after.length == 0)
        return false;
    *ret_stat = (struct procfs_stat){
        .pid = (int32_t)pid,
        .state = *state.at,
        .parent = (int32_t)parent,
        .start_time = start,
        .has_ended = strchr("ZXx", *state.at) && n_threads <= 1,
    };
    return true;
}

/* Real, effective, saved and file system id. */
static bool read_ids(struct rest line, uint32_t *ret_real, uint32_t *ret_effective)
{
    uint64_t ids[4];
    struct rest word;

    for (size_t i = 0; i < ARRAY_LENGTH(ids); i++) {
        if (!next_number(&line, UINT32_MAX, &ids[i]))
            return false;
    }
    if (next_word(&line, &word))
        return false;
    *ret_real = (uint32_t)ids[0];
    *ret_effective = (uint32_t)ids[1];
    return true;
}

static bool read_groups(struct rest line, uint32_t **ret_groups, size_t *ret_n_groups)
{
    uint32_t *groups;
    struct rest word;
    size_t n_groups = 0;

    for (struct rest at = line; next_word(&at, &word);)
        n_groups++;
    groups = calloc(n_groups + 1, sizeof *groups);
    if (!groups)
        return false;
    for (size_t i = 0; i < n_groups; i++) {
        uint64_t group;

        if (!next_number(&line, UINT32_MAX, &group)) {
            free(groups);
            return false;
        }
        groups[i] = (uint32_t)group;
    }
    *ret_groups = groups;
    *ret_n_groups = n_groups;
    return true;
}

static bool read_ns_pids(struct rest line, size_t *ret_n_pids, uint64_t *ret_last)
{
    struct rest word;
    size_t n_pids = 0;

    while (next_word(&line, &word)) {
        if (!is_number(word, UINT64_MAX, ret_last))
            return false;
        n_pids++;
    }
    *ret_n_pids = n_pids;
    return n_pids > 0;
}

enum status_line { LINE_UID = 1, LINE_GID = 2, LINE_GROUPS = 4, LINE_NS_PID = 8, LINE_OTHER = 0 };

/* True for a line of that name, which is taken off it. */
static bool take_name(struct rest *line, const char *name)
{
    size_t length = strlen(name);

    if (line->length < length || memcmp(line->at, name, length) != 0)
        return false;
    rest_skip(line, length);
    return true;
}

/* Which line it is; takes the name off it. */
static enum status_line line_name(struct rest *line)
{
    static const struct {
        const char *name;
        enum status_line line;
    } names[] = {
        {"Uid:", LINE_UID},
        {"Gid:", LINE_GID},
        {"Groups:", LINE_GROUPS},
        {"NSpid:", LINE_NS_PID},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        if (take_name(line, names[i].name))
            return names[i].line;
    }
    return LINE_OTHER;
}

static bool read_line(enum status_line name, struct rest line, struct procfs_status *status)
{
    switch (name) {
    case LINE_UID:
        return read_ids(line, &status->real_uid, &status->uid);
    case LINE_GID:
        return read_ids(line, &status->real_gid, &status->gid);
    case LINE_GROUPS:
        return read_groups(line, &status->groups, &status->n_groups);
    case LINE_NS_PID:
        return read_ns_pids(line, &status->n_ns_pids, &status->ns_pid);
    case LINE_OTHER:
        break;
    }
    return true;
}

/* Takes a line; without its newline, what is there of Groups as far as the last number is whole,
 * and nothing of any other. */
static struct rest next_line(struct rest *text, enum status_line *ret_name)
{
    const char *end = memchr(text->at, '\n', text->length);
    struct rest line = {text->at, end ? (size_t)(end - text->at) : text->length};

    rest_skip(text, line.length + (end ? 1 : 0));
    *ret_name = line_name(&line);
    if (end)
        return line;
    if (*ret_name != LINE_GROUPS)
        *ret_name = LINE_OTHER;
    while (line.length > 0 && line.at[line.length - 1] != ' ' && line.at[line.length - 1] != '\t')
        line.length--;
    return line;
}

bool procfs_read_status(const char *text, size_t length, struct procfs_status *ret_status)
{
    struct procfs_status status = {.n_ns_pids = 0};
    struct rest rest = {text, length};
    unsigned seen = 0;

    while (rest.length > 0) {
        enum status_line name;
        struct rest line = next_line(&rest, &name);

        if ((seen & name) != 0 || !read_line(name, line, &status)) {
            free(status.groups);
            return false;
        }
        seen |= name;
    }
    if ((seen & LINE_UID) == 0 || (seen & LINE_GID) == 0) {
        free(status.groups);
        return false;
    }
    *ret_status = status;
    return true;
}

static bool read_state(struct rest line, char *ret_state)
{
    struct rest word;

    if (!next_word(&line, &word) || word.length != 1)
        return false;
    *ret_state = *word.at;
    return true;
}

bool procfs_read_motion(const char *text, size_t length, struct procfs_motion *ret_motion)
{
    struct rest rest = {text, length};
    uint64_t n_wished = 0, n_forced = 0;
    unsigned n_read = 0;
    char state = 0;
    const char *end;

    while ((end = memchr(rest.at, '\n', rest.length))) {
        struct rest line = {rest.at, (size_t)(end - rest.at)};

        rest_skip(&rest, line.length + 1);
        if (take_name(&line, "State:"))
            n_read += read_state(line, &state);
        else if (take_name(&line, "voluntary_ctxt_switches:"))
            n_read += next_number(&line, INT64_MAX, &n_wished);
        else if (take_name(&line, "nonvoluntary_ctxt_switches:"))
            n_read += next_number(&line, INT64_MAX, &n_forced);
    }
    if (n_read != 3)
        return false;
    *ret_motion = (struct procfs_motion){.state = state, .n_switches = n_wished + n_forced};
    return true;
}

static bool read_hexadecimal(struct rest word, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (word.length == 0 || word.length > 16)
        return false;
    for (size_t i = 0; i < word.length; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, word.at[i], 16);

        if (!digit)
            return false;
        number = number << 4 | (uint64_t)(digit - digits);
    }
    *ret_number = number;
    return true;
}

bool procfs_read_capabilities(const char *text, size_t length, uint64_t *ret_rights)
{
    struct rest rest = {text, length};
    const char *end;

    while (rest.length > 0 && (end = memchr(rest.at, '\n', rest.length))) {
        struct rest line = {rest.at, (size_t)(end - rest.at)}, word;

        rest_skip(&rest, line.length + 1);
        if (take_name(&line, "CapEff:"))
            return next_word(&line, &word) && read_hexadecimal(word, ret_rights);
    }
    return false;
}

bool procfs_map_has(const char *text, size_t length, uint32_t id)
{
    struct rest rest = {text, length};
    const char *end;

    while (rest.length > 0 && (end = memchr(rest.at, '\n', rest.length))) {
        struct rest line = {rest.at, (size_t)(end - rest.at)};
        uint64_t inside, outside, n;

        rest_skip(&rest, line.length + 1);
        if (!next_number(&line, UINT32_MAX, &inside) || !next_number(&line, UINT32_MAX, &outside) ||
            !next_number(&line, UINT32_MAX, &n))
            return false;
        if (id >= outside && id - outside < n)
            return true;
    }
    return false;
}
