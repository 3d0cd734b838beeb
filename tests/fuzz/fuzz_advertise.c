/* SPDX-License-Identifier: Apache-2.0 */

/* What a peer writes first. */

#include "lib/advertise.h"
#include "tests/fuzz/fuzz.h"

/* What was read is written, and read as the same. */
static void check_round_trip(const struct advertise *advertise)
{
    uint8_t bytes[ADVERTISE_SIZE];
    struct advertise again;

    advertise_write(advertise, bytes);
    FUZZ_HOLDS(advertise_is_possible(bytes, sizeof bytes));
    FUZZ_HOLDS(advertise_read(bytes, &again));
    FUZZ_HOLDS(again.pid == advertise->pid);
    FUZZ_HOLDS(guid_compare(&again.cookie, &advertise->cookie) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct advertise advertise;
    size_t length = 0;

    /* Once it cannot become one, more bytes do not change that. */
    while (length < size && advertise_is_possible(data, length))
        length++;
    for (size_t i = length; i <= size; i++) {
        uint8_t *beginning = fuzz_copy(data, i);

        FUZZ_HOLDS(advertise_is_possible(beginning, i) ==
                   (i == size && length == size && advertise_is_possible(data, size)));
        free(beginning);
    }
    if (size < ADVERTISE_SIZE)
        return 0;
    if (advertise_read(data, &advertise)) {
        FUZZ_HOLDS(advertise_is_possible(data, ADVERTISE_SIZE));
        check_round_trip(&advertise);
    } else {
        FUZZ_HOLDS(!advertise_is_possible(data, ADVERTISE_SIZE));
    }
    return 0;
}
