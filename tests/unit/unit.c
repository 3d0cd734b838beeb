/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "44 4F 54 4E 45 54 5F 49 50 43 5F 56 31 00";
static const char cookie[] = "67 45 3E 12 9B E8 D3 12 A4 56 42 66 14 17 40 00";
static const char profiler[] = "1E 82 0D CF 9B 29 07 53 A3 D8 B2 83 C0 39 16 DD";
static const char provider[] = "01 00 00 00 00 00 00 00 04 00 00 00 02 00 00 00 58 00 00 00 "
                               "00 00 00 00";

static void append(struct unit_bytes *bytes, const char *text)
{
    for (const char *at = text; *at != '\0';) {
        char pair[3] = {at[0], at[1], '\0'};

        if (*at == ' ') {
            at++;
            continue;
        }
        switch (*at) {
        case 'M':
            append(bytes, magic);
            at++;
            continue;
        case 'G':
            append(bytes, profiler);
            at++;
            continue;
        case 'P':
            append(bytes, provider);
            at++;
            continue;
        default:
            break;
        }
        if (*at == 'C' && (at[1] == ' ' || at[1] == '\0')) {
            append(bytes, cookie);
            at++;
            continue;
        }
        ck_assert_uint_lt(bytes->length, sizeof bytes->data);
        bytes->data[bytes->length++] = (uint8_t)strtoul(pair, NULL, 16);
        at += 2;
    }
}

struct unit_bytes unit_vector(const char *text)
{
    struct unit_bytes bytes = {.length = 0};

    append(&bytes, text);
    return bytes;
}

void unit_assert_bytes(const void *data, size_t length, const char *vector)
{
    struct unit_bytes expected = unit_vector(vector);

    ck_assert_uint_eq(length, expected.length);
    if (length > 0)
        ck_assert_mem_eq(data, expected.data, length);
}

uint8_t *unit_copy(const void *data, size_t length)
{
    uint8_t *copy = malloc(length);

    ck_assert(copy || length == 0);
    if (length > 0)
        memcpy(copy, data, length);
    return copy;
}

size_t unit_share(void)
{
    return getenv("DIAGPORT_SLOW") ? 8 : 1;
}

uint32_t unit_random(uint64_t *state)
{
    /* xorshift64*, Vigna 2016. */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * UINT64_C(0x2545F4914F6CDD1D) >> 32);
}

int main(void)
{
    Suite *suite = suite_create("unit");
    TCase *tests = tcase_create("tests");
    SRunner *runner;
    int failed;

    unit_add_tests(tests);
    /* Against endless loops only; a slow machine is no fault. */
    tcase_set_timeout(tests, 120);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
