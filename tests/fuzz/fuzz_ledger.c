/* SPDX-License-Identifier: Apache-2.0 */

/* Histories of the rescue: whatever runtimes do in whatever order, all of them run in the end. */

#include "tests/fuzz/fuzz.h"
#include "tests/unit/unit_ledger.h"

enum { STEPS_MAX = 400 };

static uint32_t choose(void *context, uint32_t n)
{
    struct fuzz_input *input = context;

    return fuzz_take_u8(input) % n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct unit_ledger_options options = {.choose = choose, .context = &input};
    struct unit_ledger_outcome outcome;

    options.n_usable = 1 + fuzz_take_u8(&input);
    options.n_runtimes = 1 + fuzz_take_u8(&input) % 4;
    /* A step takes about four bytes. */
    options.n_steps = size < STEPS_MAX * 4 ? (uint32_t)size / 4 : STEPS_MAX;
    unit_ledger_play(&options, &outcome);
    if (outcome.problem)
        fprintf(stderr, "%s\n", outcome.problem);
    FUZZ_HOLDS(!outcome.problem);
    return 0;
}
