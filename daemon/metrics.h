/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The metrics as OpenMetrics text. Labels are by rule and kind, never by
 * process: their number is that of the policy's rules.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/runtime.h"

struct broker_counters;
struct bytes;
struct self;

/* What the text says. */
struct metrics {
    const struct broker_counters *counters;
    size_t by_state[RUNTIME_STATES];
    uint64_t n_reloads_done;
    uint64_t n_reloads_failed;
    const char *policy_hash;
    const struct self *self;
    double started_at; /* seconds of the epoch */
};

extern const char metrics_type[];

void metrics_write(const struct metrics *metrics, struct bytes *out);
