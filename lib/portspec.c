/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/portspec.h"

#include <string.h>

struct piece {
    const char *at;
    size_t length;
};

/* Takes the next piece as strtok does: empty ones do not exist. */
static bool next_piece(struct piece *rest, char separator, struct piece *ret_piece)
{
    const char *end = rest->at + rest->length, *at = rest->at, *start;

    while (at < end && *at == separator)
        at++;
    start = at;
    while (at < end && *at != separator)
        at++;
    *ret_piece = (struct piece){start, (size_t)(at - start)};
    *rest = (struct piece){at, (size_t)(end - at)};
    return ret_piece->length > 0;
}

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter | 0x20) : letter;
}

static bool is_tag(struct piece piece, const char *tag)
{
    if (piece.length != strlen(tag))
        return false;
    for (size_t i = 0; i < piece.length; i++) {
        if (lower(piece.at[i]) != tag[i])
            return false;
    }
    return true;
}

/* The first piece is the path, even if it looks like a tag. Of tags that contradict each other the
 * leftmost wins, since the runtime reads them from the end. */
static struct portspec_entry read_entry(struct piece path, struct piece tags)
{
    struct portspec_entry entry = {
        .path = path.at,
        .path_length = path.length,
        .suspends = true,
        .is_too_long = path.length > PORTSPEC_PATH_MAX,
    };
    bool has_type = false, has_mode = false;
    struct piece tag;

    while (next_piece(&tags, ',', &tag)) {
        bool listen = is_tag(tag, "listen"), nosuspend = is_tag(tag, "nosuspend");

        if (!has_type && (listen || is_tag(tag, "connect"))) {
            entry.listens = listen;
            has_type = true;
        }
        if (!has_mode && (nosuspend || is_tag(tag, "suspend"))) {
            entry.suspends = !nosuspend;
            has_mode = true;
        }
    }
    return entry;
}

void portspec_read(const char *value, struct portspec *ret_portspec)
{
    struct piece rest = {value, strlen(value)}, part, path;

    *ret_portspec = (struct portspec){.n_entries = 0};
    while (next_piece(&rest, ';', &part)) {
        if (!next_piece(&part, ',', &path))
            continue;
        if (ret_portspec->n_entries == PORTSPEC_ENTRIES_MAX) {
            ret_portspec->is_cut = true;
            return;
        }
        ret_portspec->entries[ret_portspec->n_entries++] = read_entry(path, part);
    }
}

enum portspec_mode portspec_mode(const struct portspec *portspec)
{
    bool suspends = false, runs_on = false;

    for (size_t i = 0; i < portspec->n_entries; i++) {
        const struct portspec_entry *entry = &portspec->entries[i];

        if (entry->is_too_long || entry->listens)
            continue;
        suspends = suspends || entry->suspends;
        runs_on = runs_on || !entry->suspends;
    }
    if (portspec->is_cut || suspends == runs_on)
        return PORTSPEC_UNKNOWN;
    return suspends ? PORTSPEC_SUSPENDS : PORTSPEC_RUNS_ON;
}
