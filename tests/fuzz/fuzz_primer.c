/* SPDX-License-Identifier: Apache-2.0 */

/* The result that a primer wrote into the environment of its process. */

#include "lib/primer.h"
#include "tests/fuzz/fuzz.h"

/* Words lie within the text, in one line. */
static void check_words(struct primer_words words, const char *text, size_t size)
{
    if (words.length == 0)
        return;
    FUZZ_HOLDS(words.text >= text && words.text + words.length <= text + size);
    FUZZ_HOLDS(words.length <= PRIMER_WORDS_MAX);
    FUZZ_HOLDS(!memchr(words.text, '\n', words.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = (char *)fuzz_copy(data, size);
    struct primer_result result;

    if (primer_read_result(text, size, &result)) {
        struct primer_result cut;

        FUZZ_HOLDS(result.n_libraries <= PRIMER_LIBRARIES_MAX);
        FUZZ_HOLDS((result.n_failed == 0) == (result.failure == PRIMER_NO_FAILURE));
        check_words(result.failed, text, size);
        for (size_t i = 0; i < result.n_libraries; i++)
            check_words(result.libraries[i].words, text, size);
        FUZZ_HOLDS(!primer_read_result(text, size - 1, &cut));
    }
    free(text);
    return 0;
}
