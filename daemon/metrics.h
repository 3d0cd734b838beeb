/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The metrics as OpenMetrics text. Labels are by rule, listener and kind, never
 * by process: their number is that of the policy's rules and listeners.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/runtime.h"

struct broker_counters;
struct bytes;
struct ports_entry;
struct self;

/* What the text says. */
struct metrics {
    const struct broker_counters *counters;
    size_t by_state[RUNTIME_STATES];
    uint64_t n_reloads_done;
    uint64_t n_reloads_failed;
    const char *policy_hash;
    const char *policy_origin; /* as /v1/status has it */
    const char *version;
    bool is_ready; /* as /readyz has it */
    const struct ports_entry *listeners;
    size_t n_listeners;
    bool is_control_in_place;
    const struct self *self;
    double started_at; /* seconds of the epoch */
};

extern const char metrics_type[];

void metrics_write(const struct metrics *metrics, struct bytes *out);
