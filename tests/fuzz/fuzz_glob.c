/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pattern, a NUL and a text. The pattern means what it means to fnmatch, and
 * no pair of them takes longer than it may.
 */

#include <fnmatch.h>

#include "lib/glob.h"
#include "tests/fuzz/fuzz.h"

enum {
    /* fnmatch tries everything that stars may take, which is too much for more of them. */
    STARS_MAX = 6,
    LENGTH_MAX = 64,
};

static bool is_for_fnmatch(const char *glob, const char *text)
{
    size_t n_stars = 0;

    for (const char *at = glob; *at != '\0'; at++)
        n_stars += *at == '*';
    return n_stars <= STARS_MAX && strlen(glob) <= LENGTH_MAX && strlen(text) <= LENGTH_MAX;
}

static void check_match(const char *glob, const char *text)
{
    bool fits = glob_match(glob, text);
    size_t steps = (strlen(glob) + 1) * (strlen(text) + 1);

    FUZZ_HOLDS(glob_match_within(glob, text, &steps) == fits);
    FUZZ_HOLDS(!glob_is_literal(glob) || fits == (strcmp(glob, text) == 0));
    if (is_for_fnmatch(glob, text))
        FUZZ_HOLDS(fits == (fnmatch(glob, text, 0) == 0));
    steps = 3;
    if (!glob_match_within(glob, text, &steps) && fits)
        FUZZ_HOLDS(steps == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input rest = {data, size}, pattern = fuzz_take_until(&rest, 0);
    char *glob = fuzz_text(pattern.at, pattern.left), *text = fuzz_text(rest.at, rest.left);

    if (glob_check(glob) == GLOB_FINE)
        check_match(glob, text);
    free(glob);
    free(text);
    return 0;
}
