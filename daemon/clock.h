/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The only place where a clock is read. */

#include "lib/moment.h"

/* CLOCK_MONOTONIC: what every deadline is measured by. */
struct moment clock_now(void);

/* Since the boot, suspended time included, as the start times of processes are. */
struct span clock_since_boot(void);

/* Seconds of the epoch at which `moment` was or will be, as far as the calendar is right now; for
 * showing, never for deciding. */
double clock_calendar(struct moment moment);
