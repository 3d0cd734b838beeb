/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event loop. The only user of libevent: descriptors, one timer, signals
 * come out as calls, and nothing of libevent is visible.
 */

#include <stdbool.h>

#include "lib/moment.h"
#include "lib/util.h"

struct loop;
struct loop_watch;
struct loop_signal;

/* NULL when memory or descriptors are out. */
struct loop *loop_new(void) MUST_CHECK;

/* Everything that was watched must have been freed before. Returns NULL. */
struct loop *loop_free(struct loop *loop);

/* Calls `ready` whenever `fd` can be read, until it is freed or paused. The descriptor stays the
 * caller's, who frees the watch before closing it. NULL when memory is out. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, void (*ready)(void *context),
                                  void *context) MUST_CHECK;
void loop_watch_pause(struct loop_watch *watch);
/* False when the kernel has no memory for it: it stays paused. */
bool loop_watch_go_on(struct loop_watch *watch) MUST_CHECK;
/* Returns NULL. */
struct loop_watch *loop_watch_free(struct loop_watch *watch);

/* Calls `caught` from the loop after the signal came, once for any number of them. */
struct loop_signal *loop_signal_new(struct loop *loop, int number, void (*caught)(void *context),
                                    void *context) MUST_CHECK;
/* Returns NULL. */
struct loop_signal *loop_signal_free(struct loop_signal *signal);

/* Waits until something can be done, at most until `deadline`, and does it for a few milliseconds.
 * True when there was more to be done than that. */
bool loop_wait(struct loop *loop, struct moment deadline);

/* Does what can be done without waiting; true when that was anything. */
bool loop_poll(struct loop *loop);

/* Makes the loop_wait at hand, or the next one, return. */
void loop_wake(struct loop *loop);
