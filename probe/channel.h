/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the daemon orders of the probe's parent, and what that reports: small
 * messages of one size each, with descriptors, over a socket pair that both were
 * born with.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum channel_order_kind {
    CHANNEL_LOOK,    /* fork a worker that looks at processes, at the end of a socket */
    CHANNEL_KILL,    /* fork one that kills a process by its pidfd, and says so on the socket */
    CHANNEL_ABANDON, /* kill a worker */
};

enum {
    CHANNEL_DESCRIPTORS = 2,
    CHANNEL_NOT_FORKED = -1,
    CHANNEL_FORKED = -2,
};

struct channel_order {
    uint32_t kind;
    uint32_t unused;
    uint64_t serial; /* of the worker; the daemon never gives one twice */
};

/* A worker was forked, or has ended, or could not be forked. With one that was forked comes its
 * /proc/PID/status, which the daemon, having no rights, may not be able to open. */
struct channel_report {
    uint64_t serial;
    int32_t status; /* as waitpid says, CHANNEL_FORKED or CHANNEL_NOT_FORKED */
    int32_t unused;
};

/* Sends one without waiting: 0 or a negative errno. The descriptors stay the caller's; those that
 * are not there are -1. */
int channel_order(int channel, const struct channel_order *order,
                  const int descriptors[static CHANNEL_DESCRIPTORS]) MUST_CHECK;

/* Waits for one: 0, -EPIPE when the daemon is gone, or another negative errno. The descriptors are
 * the caller's then. */
int channel_take_order(int channel, struct channel_order *ret_order,
                       int ret_descriptors[static CHANNEL_DESCRIPTORS]) MUST_CHECK;

/* Waits until it is sent. `descriptor` stays the caller's; -1 for none. */
int channel_report(int channel, const struct channel_report *report, int descriptor) MUST_CHECK;

/* Takes one without waiting: 0, -EAGAIN, -EPIPE when the parent is gone, or another negative errno.
 * The descriptor, or -1, is the caller's then. */
int channel_take_report(int channel, struct channel_report *ret_report,
                        int *ret_descriptor) MUST_CHECK;
