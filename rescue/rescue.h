/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rescue at work: takes connections in, reads them, writes Resume. Who gets
 * it when is the ledger's (ledger.h), what the next daemon is told the records'
 * (records.h).
 */

#include <signal.h>
#include <stddef.h>

#include "lib/moment.h"
#include "lib/util.h"
#include "rescue/port.h"

struct rescue_options {
    const struct port *ports; /* LEDGER_LISTENERS_MAX at most, and one at least */
    size_t n_ports;
    const char *state;   /* the daemon's folder */
    struct span seconds; /* SPAN_FOREVER, or when to end by itself */
    /* Signals that end it: blocked, except while it waits; a handler raises the flag. */
    const sigset_t *waiting_mask;
    const volatile sig_atomic_t *is_told_to_end;
};

/* Runs until it is time to end. 0, or a negative errno when it could not begin. */
int rescue_run(const struct rescue_options *options) MUST_CHECK;
