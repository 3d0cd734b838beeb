/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/clock.h"

#include <time.h>

enum { CALENDAR_JITTER_US = 1000 };

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

/* The two clocks cannot be read at once, so what lies between them comes out a little different
 * each time; then one moment would be shown as two. Only what the calendar does counts. */
static int64_t calendar_offset(void)
{
    static int64_t offset;
    int64_t now = read_us(CLOCK_REALTIME) - read_us(CLOCK_MONOTONIC);

    if (now - offset > CALENDAR_JITTER_US || offset - now > CALENDAR_JITTER_US)
        offset = now;
    return offset;
}

double clock_calendar(struct moment moment)
{
    return span_seconds(span_from_us(calendar_offset() + moment.us));
}
