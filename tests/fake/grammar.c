/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Reads the tags from the right: so the leftmost of two that contradict each other wins. */
static void read_tags(char *tags, bool *ret_suspends, bool *ret_listens)
{
    char *comma;

    *ret_suspends = true;
    *ret_listens = false;
    do {
        const char *tag;

        comma = strrchr(tags, ',');
        tag = comma ? comma + 1 : tags;
        if (strcasecmp(tag, "suspend") == 0)
            *ret_suspends = true;
        else if (strcasecmp(tag, "nosuspend") == 0)
            *ret_suspends = false;
        else if (strcasecmp(tag, "listen") == 0)
            *ret_listens = true;
        else if (strcasecmp(tag, "connect") == 0)
            *ret_listens = false;
        if (comma)
            *comma = '\0';
    } while (comma);
}

static bool add_port(struct grammar_ports *ports, const char *path, bool suspends)
{
    struct grammar_port port = {.path = strdup(path), .suspends = suspends};
    struct grammar_port *list = realloc(ports->list, (ports->n + 1) * sizeof *list);

    if (list)
        ports->list = list;
    if (!list || !port.path) {
        free(port.path);
        return false;
    }
    list[ports->n++] = port;
    return true;
}

/* One piece between semicolons. Its first non-empty part is the path, whatever it says. */
static bool read_piece(struct grammar_ports *ports, char *piece)
{
    bool suspends = true, listens = false;
    char *tags;

    piece += strspn(piece, ",");
    if (*piece == '\0')
        return true;
    tags = strchr(piece, ',');
    if (tags) {
        *tags = '\0';
        read_tags(tags + 1, &suspends, &listens);
    }
    return listens || add_port(ports, piece, suspends);
}

bool grammar_read(const char *value, struct grammar_ports *ret_ports)
{
    char *copy = strdup(value);
    char *rest = copy;
    bool ok = copy != NULL;

    *ret_ports = (struct grammar_ports){0};
    while (ok && rest)
        ok = read_piece(ret_ports, strsep(&rest, ";"));
    free(copy);
    if (!ok)
        grammar_deinit(ret_ports);
    return ok;
}

void grammar_deinit(struct grammar_ports *ports)
{
    for (size_t i = 0; i < ports->n; i++)
        free(ports->list[i].path);
    free(ports->list);
    *ports = (struct grammar_ports){0};
}

static const char *prefixed(const char *prefix, const char *name)
{
    char full[128];
    const char *value;

    snprintf(full, sizeof full, "%s%s", prefix, name);
    value = getenv(full);
    return value && *value != '\0' ? value : NULL;
}

const char *grammar_setting(const char *name, bool with_complus)
{
    const char *value = prefixed("DOTNET_", name);

    return value || !with_complus ? value : prefixed("COMPlus_", name);
}

bool grammar_switch(const char *name, bool with_complus, bool otherwise)
{
    const char *value = grammar_setting(name, with_complus);
    unsigned long number;
    char *end;

    if (!value)
        return otherwise;
    number = strtoul(value, &end, 16);
    return end == value ? otherwise : number != 0;
}

int grammar_back_off(int previous)
{
    if (previous < 0)
        return 10;
    return previous >= 500 ? 500 : (int)((float)previous * 1.25f);
}
