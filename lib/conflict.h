/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the environment that a process was started with says against the plan for
 * it: another profiler that would load in the place of ours, profilers switched
 * off, a hook that it has already. All of it is known before anything is sent,
 * and none of it would be told by the answer to a command, which is OK.
 *
 * Measured on 8, 9, 10 and 11: a profiler of the launch environment loads before
 * those that were sent, and a second main one is refused; one whose variable
 * CORECLR_ENABLE_PROFILING is made 0 while the runtime is suspended does not load.
 */

#include <stdbool.h>

#include "lib/policy.h"
#include "lib/util.h"

struct attributes;
struct plan;

struct conflict {
    bool has_profiler;     /* by CORECLR_ variables, which every version reads */
    bool has_new_profiler; /* by DOTNET_ variables, which .NET 11 reads, before the others */
    bool profilers_off;    /* DOTNET_EnableDiagnostics_Profiler=0 */
};

/*
 * What is to be seen of profilers in the environment in `attributes`, with what
 * the plan itself makes of those variables; nothing where it could not be read.
 * Hooks of the plan that it has already are left out of the plan.
 */
void conflict_find(const struct attributes *attributes, struct plan *plan,
                   struct conflict *ret_conflict);

/* Does to the profilers of the plan what `on_conflict` says, for a runtime of that major version; 0
 * when that is not known, which is taken for one that reads all of these variables. */
void conflict_settle(const struct conflict *conflict, unsigned major,
                     enum policy_on_conflict on_conflict, struct plan *plan);
