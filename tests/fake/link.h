/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Blocking bytes in and out of one connection, as slowly as told. A runtime
 * has no time-out for either.
 */

#include <stddef.h>

/* Reads exactly `length` bytes; how many came before the end, an error or the socket's time-out. */
size_t link_read(int fd, void *data, size_t length);

/* Writes all of it, `pause_ms` after each byte when that is not 0; what fails is not told, since
 * the runtime does not care either. */
void link_write(int fd, const void *data, size_t length, unsigned long pause_ms);

void link_sleep(unsigned long ms);

/* Milliseconds of CLOCK_MONOTONIC. */
long link_now(void);
