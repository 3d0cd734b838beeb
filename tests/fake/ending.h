/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the process ends: the signals, which the versions take in different
 * ways, and what is written before the end.
 */

struct runtime;
struct version;

/* For the time before managed code: up to .NET 9 a SIGTERM that comes then is gone for good. */
void ending_prepare(const struct version *version);

/* From now on a SIGTERM is noticed by ending_wait. */
void ending_begin(void);

/* Runs until it is told to end, which may be at once; why it did, or NULL. */
const char *ending_wait(const struct runtime *runtime);

/* Writes the last report if there was a reason. Returns the exit status, or dies by the signal. */
int ending_end(struct runtime *runtime, const char *reason);
