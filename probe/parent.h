/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The probe's parent: forks workers when it is told to, kills those that are
 * given up, reports the end of each. It looks at no process and reads nothing
 * but orders, so nothing can hold it up.
 */

/* Runs until the daemon is gone, and ends with all workers. */
_Noreturn void parent_run(int channel);
