/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/conflict.h"

#include <string.h>

#include "lib/attributes.h"
#include "lib/plan.h"
#include "lib/settings.h"

enum { FIRST_WITH_NEW_NAMES = 11 };

/* Of a variable that it was started with; what the plan makes of it counts, since the runtime reads
 * it only after Resume. NULL when it is, or will be, absent. */
static const char *value_of(const struct attributes *attributes, const struct plan *plan,
                            const char *name)
{
    const char *value = NULL;

    if (attributes_variable(attributes, name, &value) != ATTRIBUTE_PRESENT)
        return NULL;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (step->kind == STEP_VARIABLE && !step->is_for_conflict && strcmp(step->name, name) == 0)
            return step->value;
    }
    return value;
}

static bool configures(const struct attributes *attributes, const struct plan *plan,
                       const char *enable, const char *profiler)
{
    const char *clsid = value_of(attributes, plan, profiler);

    return settings_switch(value_of(attributes, plan, enable)) == SETTINGS_ON && clsid &&
           *clsid != '\0';
}

static bool has_entry(const char *list, const char *path)
{
    size_t length = strlen(path);

    for (const char *entry = list; entry; entry = strchr(entry, ':')) {
        entry += entry != list;
        if (strncmp(entry, path, length) == 0 && (entry[length] == ':' || entry[length] == '\0'))
            return true;
    }
    return false;
}

/* It would run twice. */
static void leave_own_hooks(const struct attributes *attributes, struct plan *plan)
{
    const char *hooks = NULL;

    if (attributes_variable(attributes, "DOTNET_STARTUP_HOOKS", &hooks) != ATTRIBUTE_PRESENT)
        return;
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (step->kind == STEP_HOOK && has_entry(hooks, step->name))
            plan_leave_out(step, "is there already, by DOTNET_STARTUP_HOOKS in its environment");
    }
}

void conflict_find(const struct attributes *attributes, struct plan *plan,
                   struct conflict *ret_conflict)
{
    *ret_conflict = (struct conflict){
        .has_profiler = configures(attributes, plan, PLAN_SWITCH, "CORECLR_PROFILER"),
        .has_new_profiler = configures(attributes, plan, PLAN_SWITCH_NEW, "DOTNET_PROFILER"),
        .profilers_off = settings_switch_profilers_off(attributes),
    };
    leave_own_hooks(attributes, plan);
}

/* Does that to every profiler: refuses it, or leaves it out. */
static void each_profiler(struct plan *plan, void (*what)(struct step *step, const char *why),
                          const char *why)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == STEP_PROFILER)
            what(&plan->steps[i], why);
    }
}

static bool has_profilers(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == STEP_PROFILER && plan->steps[i].result == STEP_PENDING)
            return true;
    }
    return false;
}

/* Nothing is sent to switch off what is not there, or what nothing would come in the place of. */
static void leave_out_switches(struct plan *plan, bool has_old, bool has_new)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (step->is_for_conflict &&
            !(strcmp(step->name, PLAN_SWITCH_NEW) == 0 ? has_new : has_old))
            plan_leave_out(step, "is not needed, since no other profiler is configured by it");
    }
}

void conflict_settle(const struct conflict *conflict, unsigned major,
                     enum policy_on_conflict on_conflict, struct plan *plan)
{
    bool has_new = conflict->has_new_profiler && (major == 0 || major >= FIRST_WITH_NEW_NAMES);
    bool has_any = conflict->has_profiler || has_new;

    if (conflict->profilers_off)
        each_profiler(plan, plan_refuse,
                      "would not be loaded, since its environment has "
                      "DOTNET_EnableDiagnostics_Profiler=0");
    leave_out_switches(plan, conflict->has_profiler && has_profilers(plan),
                       has_new && has_profilers(plan));
    if (has_any && on_conflict == POLICY_CONFLICT_SKIP)
        each_profiler(plan, plan_leave_out,
                      "is left out, since its environment configures another profiler, "
                      "which would win");
    else if (has_any && on_conflict == POLICY_CONFLICT_FAIL)
        each_profiler(plan, plan_refuse,
                      "would not be loaded, since its environment configures another "
                      "profiler, which would win");
    plan_judge_primer(plan);
}
