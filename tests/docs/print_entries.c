/* SPDX-License-Identifier: Apache-2.0 */

/*
 * print_entries [mdoc]: writes the table of what entries of the log have: a line
 * for each kind with its name, id and fields, or, as mdoc, that part of the
 * manual page. check-manuals holds the page and the catalog against it.
 */

#include <stdio.h>

#include "daemon/entry.h"

static void print_line(enum entry_kind kind)
{
    printf("%s %s", entry_kind_name(kind), entry_kind_id(kind));
    for (unsigned i = 0; i < ENTRY_FIELDS; i++) {
        if (entry_kind_has(kind, (enum entry_field)i))
            printf(" %s", entry_field_name((enum entry_field)i));
    }
    putchar('\n');
}

static void print_item(enum entry_kind kind)
{
    const char *separator = "\n.br\n.Ev ";

    printf(".It Cm %s\n.Li %s", entry_kind_name(kind), entry_kind_id(kind));
    for (unsigned i = 0; i < ENTRY_FIELDS; i++) {
        if (!entry_kind_has(kind, (enum entry_field)i))
            continue;
        printf("%s%s", separator, entry_field_name((enum entry_field)i));
        separator = " ,\n.Ev ";
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    (void)argv;
    for (unsigned i = 0; i < ENTRY_KINDS; i++) {
        if (!entry_kind_id((enum entry_kind)i))
            continue;
        if (argc > 1)
            print_item((enum entry_kind)i);
        else
            print_line((enum entry_kind)i);
    }
    return 0;
}
