/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers that look random and are the same everywhere. */

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

static inline struct dice dice_new(uint64_t salt)
{
    return (struct dice){salt * UINT64_C(0x9E3779B97F4A7C15) + 1};
}

/* One of 0 to n - 1 (xorshift64*). */
static inline uint32_t dice_throw(struct dice *dice, uint32_t n)
{
    dice->state ^= dice->state >> 12;
    dice->state ^= dice->state << 25;
    dice->state ^= dice->state >> 27;
    return (uint32_t)((dice->state * UINT64_C(2685821657736338717)) >> 33) % n;
}

static inline bool dice_chance(struct dice *dice, uint32_t percent)
{
    return dice_throw(dice, 100) < percent;
}
