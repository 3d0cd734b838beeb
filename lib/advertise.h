/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The advertise: the 34 bytes that a runtime writes on every connection to a
 * diagnostic port of ours, before anything else. No answer is expected.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-protocol.c,
 * ds_ipc_advertise_v1_send. Everything in it is the peer's claim.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

enum { ADVERTISE_SIZE = 34 };

struct advertise {
    /* Random, the same on every connection of one runtime until its process dies or execs. */
    struct guid cookie;
    /* getpid() of the runtime in its own pid namespace, often 1 in a container. */
    uint64_t pid;
};

/* True when `length` bytes can still become an advertise: what is there of its magic is right. */
bool advertise_is_possible(const uint8_t *bytes, size_t length);

/* False, and nothing written, when the magic is not an advertise's. The two reserved bytes are
 * not looked at. */
bool advertise_read(const uint8_t bytes[static ADVERTISE_SIZE],
                    struct advertise *ret_advertise) MUST_CHECK;

/* The bytes a runtime sends; for simulators and tests. */
void advertise_write(const struct advertise *advertise, uint8_t ret_bytes[static ADVERTISE_SIZE]);
