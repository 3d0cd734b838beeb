/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the primer does once it is loaded: it makes the variables of a rule, that
 * a runtime keeps for managed code only, visible to native code; and opens the
 * real profilers, to hear what the loader says.
 *
 * It knows nothing of how it came into the process.
 */

struct com_object;
struct native;

/*
 * `info` is the runtime's side as a profiler is given it. Nothing is done, and
 * nothing said, when the runtime does not show its environment, or nothing is
 * asked for in it: so a second load of the primer does no harm.
 */
void primer_run(struct com_object *info, const struct native *native);
