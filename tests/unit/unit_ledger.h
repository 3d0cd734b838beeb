/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Runtimes around a ledger: they connect, wait, answer, connect again and die in
 * an order that somebody else chooses, and whoever asks is told whether all of
 * them run in the end. No socket and no clock.
 */

#include <stdbool.h>
#include <stdint.h>

struct unit_ledger_options {
    uint32_t n_runtimes; /* 16 at most */
    uint32_t n_usable;   /* descriptors */
    uint32_t n_steps;
    /* A number below `n`. */
    uint32_t (*choose)(void *context, uint32_t n);
    void *context;
};

struct unit_ledger_outcome {
    const char *problem;     /* NULL when every promise was kept */
    uint32_t n_resumes_most; /* that one runtime got */
    uint64_t n_connections;
};

/* One history; then nobody dies any more, everything is delivered, and time passes. */
void unit_ledger_play(const struct unit_ledger_options *options,
                      struct unit_ledger_outcome *ret_outcome);
