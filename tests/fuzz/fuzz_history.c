/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A history of the broker (tests/sim): four bytes from which everything that is
 * fixed is drawn, then three bytes for each event, its kind and a number for
 * what it leaves open. A broken promise ends the program. What is found can be
 * told event by event:
 *
 *   FUZZ_TELL=1 fuzz_history FILE
 */

#include "tests/fuzz/fuzz.h"
#include "tests/sim/history.h"

enum { SALT_SIZE = 4, EVENT_SIZE = 3 };

static uint32_t take_number(struct fuzz_input *input, size_t size)
{
    uint32_t number = 0;

    for (size_t i = 0; i < size; i++)
        number |= (uint32_t)fuzz_take_u8(input) << 8 * i;
    return number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct history *history = history_new(take_number(&input, SALT_SIZE));

    history->is_told = getenv("FUZZ_TELL");
    for (size_t n = 0; n < HISTORY_EVENTS_MAX && input.left >= EVENT_SIZE; n++) {
        struct happening happening;

        happening.kind = fuzz_take_u8(&input) % (uint32_t)history_n_kinds();
        happening.salt = take_number(&input, EVENT_SIZE - 1);
        history_happen(history, &happening);
    }
    history_end(history);
    return 0;
}
