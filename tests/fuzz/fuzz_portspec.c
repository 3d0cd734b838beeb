/* SPDX-License-Identifier: Apache-2.0 */

/* A list of diagnostic ports, which any process may give itself. */

#include "lib/portspec.h"
#include "tests/fuzz/fuzz.h"

static void check_entry(const char *value, const struct portspec_entry *entry)
{
    size_t before = (size_t)(entry->path - value);

    FUZZ_HOLDS(entry->path >= value && before + entry->path_length <= strlen(value));
    FUZZ_HOLDS(entry->path_length > 0);
    FUZZ_HOLDS(!memchr(entry->path, ',', entry->path_length));
    FUZZ_HOLDS(!memchr(entry->path, ';', entry->path_length));
    FUZZ_HOLDS(entry->is_too_long == (entry->path_length > PORTSPEC_PATH_MAX));
}

/* Put together from what was read it is the same list. */
static void check_again(const struct portspec *portspec, size_t size)
{
    char *text = calloc(1, size + portspec->n_entries * sizeof ",nosuspend,connect;" + 1);
    struct portspec again;
    size_t length = 0;

    FUZZ_HOLDS(text);
    for (size_t i = 0; i < portspec->n_entries; i++) {
        const struct portspec_entry *entry = &portspec->entries[i];

        memcpy(text + length, entry->path, entry->path_length);
        length += entry->path_length;
        length +=
            (size_t)sprintf(text + length, ",%s,%s;", entry->suspends ? "SUSPEND" : "noSuspend",
                            entry->listens ? "Listen" : "connect");
    }
    portspec_read(text, &again);
    FUZZ_HOLDS(again.n_entries == portspec->n_entries && !again.is_cut);
    for (size_t i = 0; i < again.n_entries; i++) {
        const struct portspec_entry *a = &again.entries[i], *b = &portspec->entries[i];

        FUZZ_HOLDS(a->path_length == b->path_length &&
                   memcmp(a->path, b->path, a->path_length) == 0);
        FUZZ_HOLDS(a->listens == b->listens && a->suspends == b->suspends);
    }
    FUZZ_HOLDS(portspec->is_cut || portspec_mode(&again) == portspec_mode(portspec));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *value = fuzz_text(data, size);
    struct portspec portspec;

    portspec_read(value, &portspec);
    FUZZ_HOLDS(portspec.n_entries <= PORTSPEC_ENTRIES_MAX);
    for (size_t i = 0; i < portspec.n_entries; i++)
        check_entry(value, &portspec.entries[i]);
    FUZZ_HOLDS(!portspec.is_cut || portspec_mode(&portspec) == PORTSPEC_UNKNOWN);
    check_again(&portspec, size);
    free(value);
    return 0;
}
