/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Points in time and lengths of time, as two types that cannot be mixed up.
 *
 * A moment is microseconds of a clock that never jumps (the daemon uses
 * CLOCK_MONOTONIC, tests a number they add to). Nothing here reads a clock.
 */

#include <stdbool.h>
#include <stdint.h>

struct moment {
    int64_t us;
};

struct span {
    int64_t us;
};

#define MOMENT_NEVER ((struct moment){INT64_MAX})
#define SPAN_FOREVER ((struct span){INT64_MAX})

static inline struct span span_from_us(int64_t us)
{
    return (struct span){us};
}

static inline struct span span_from_ms(int64_t ms)
{
    return (struct span){ms * 1000};
}

static inline struct span span_from_s(int64_t s)
{
    return (struct span){s * 1000000};
}

static inline bool span_is_forever(struct span length)
{
    return length.us == INT64_MAX;
}

static inline double span_seconds(struct span length)
{
    return (double)length.us / 1e6;
}

/* `start` + `length`, staying at MOMENT_NEVER once there. */
static inline struct moment moment_after(struct moment start, struct span length)
{
    int64_t sum;

    if (start.us == INT64_MAX || __builtin_add_overflow(start.us, length.us, &sum))
        return MOMENT_NEVER;
    return (struct moment){sum};
}

/* The length from `start` to `end`; negative when `end` is the earlier one. */
static inline struct span moment_between(struct moment start, struct moment end)
{
    if (end.us == INT64_MAX)
        return SPAN_FOREVER;
    return (struct span){end.us - start.us};
}

static inline bool moment_is_never(struct moment moment)
{
    return moment.us == INT64_MAX;
}

static inline bool moment_is_before(struct moment a, struct moment b)
{
    return a.us < b.us;
}

/* A deadline is due at its very microsecond. */
static inline bool moment_is_due(struct moment deadline, struct moment now)
{
    return deadline.us != INT64_MAX && deadline.us <= now.us;
}

static inline struct moment moment_earlier(struct moment a, struct moment b)
{
    return a.us < b.us ? a : b;
}
