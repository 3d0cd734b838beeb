/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/clock.h"

#include <time.h>

enum { CALENDAR_JITTER_US = 1000, CALENDAR_TRIES = 5 };

static int64_t read_us(clockid_t clock)
{
    struct timespec time = {0};

    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* The loop sets its timer by this clock. */
struct moment clock_now(void)
{
    return (struct moment){read_us(CLOCK_MONOTONIC)};
}

struct span clock_since_boot(void)
{
    return span_from_us(read_us(CLOCK_BOOTTIME));
}

/* What lies between the two clocks; `*ret_error_us` is how far off it may be, since they cannot be
 * read at once, and somebody else may run in between. */
static int64_t read_offset(int64_t *ret_error_us)
{
    int64_t before = read_us(CLOCK_MONOTONIC);
    int64_t calendar = read_us(CLOCK_REALTIME);

    *ret_error_us = read_us(CLOCK_MONOTONIC) - before;
    return calendar - before;
}

/* A little different each time, so that one moment would be shown as two. Only what the calendar
 * does counts. */
static int64_t calendar_offset(void)
{
    static int64_t offset;
    int64_t error_us, now = read_offset(&error_us);

    for (int i = 0; i < CALENDAR_TRIES && error_us > CALENDAR_JITTER_US / 2; i++)
        now = read_offset(&error_us);
    if (now - offset > CALENDAR_JITTER_US + error_us || offset - now > CALENDAR_JITTER_US)
        offset = now;
    return offset;
}

double clock_calendar(struct moment moment)
{
    return span_seconds(span_from_us(calendar_offset() + moment.us));
}
