/* SPDX-License-Identifier: Apache-2.0 */

/* The reply to ProcessEnvironment, six bytes of payload, and what follows it. */

#include "lib/environment.h"
#include "tests/fuzz/fuzz.h"

enum { PAYLOAD_SIZE = 6, BUDGET = 64, N_VALUES = 4 };

struct reading {
    struct environment_value values[N_VALUES];
    enum environment_result result;
    size_t taken;
};

static struct reading read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
    struct reading reading = {
        .values = {{.name = "A"}, {.name = "LONG"}, {.name = ""}, {.name = "A"}},
        .result = ENVIRONMENT_E_ENCODING,
    };
    size_t payload_size = size < PAYLOAD_SIZE ? size : PAYLOAD_SIZE;
    struct environment environment;

    if (!environment_init(&environment, data, payload_size, reading.values, N_VALUES, BUDGET))
        return reading;
    reading.result = ENVIRONMENT_MORE;
    data += payload_size;
    size -= payload_size;
    while (reading.result == ENVIRONMENT_MORE && reading.taken < size) {
        size_t length = size - reading.taken < piece ? size - reading.taken : piece, taken;
        uint8_t *part = fuzz_copy(data + reading.taken, length);

        reading.result = environment_feed(&environment, part, length, &taken);
        free(part);
        FUZZ_HOLDS(taken <= length);
        FUZZ_HOLDS(reading.result != ENVIRONMENT_MORE || taken == length);
        FUZZ_HOLDS(environment.text.length <= ENVIRONMENT_STRING_MAX);
        reading.taken += taken;
    }
    environment_deinit(&environment);
    return reading;
}

static void check_budget(const struct reading *reading)
{
    size_t kept = 0;

    for (size_t i = 0; i < N_VALUES; i++)
        kept += reading->values[i].value ? strlen(reading->values[i].value) : 0;
    FUZZ_HOLDS(kept <= BUDGET);
}

static void check_same(const struct reading *a, const struct reading *b)
{
    FUZZ_HOLDS(a->result == b->result);
    if (a->result != ENVIRONMENT_WHOLE && a->result != ENVIRONMENT_MORE)
        return;
    FUZZ_HOLDS(a->taken == b->taken);
    for (size_t i = 0; i < N_VALUES; i++) {
        const struct environment_value *x = &a->values[i], *y = &b->values[i];

        FUZZ_HOLDS(x->is_too_long == y->is_too_long);
        FUZZ_HOLDS(!x->value == !y->value && (!x->value || strcmp(x->value, y->value) == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole = read_in_pieces(data, size, SIZE_MAX);
    const size_t pieces[] = {1, 7};

    check_budget(&whole);
    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++) {
        struct reading other = read_in_pieces(data, size, pieces[i]);

        check_same(&whole, &other);
        environment_values_clear(other.values, N_VALUES);
    }
    environment_values_clear(whole.values, N_VALUES);
    return 0;
}
