/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What speaks against the steps of a plan before they are sent: their files, the
 * kind and version of the runtime, and what is left of the primer's use. How a
 * plan is laid out and carried out is in plan.c.
 */

#include <errno.h>
#include <string.h>

#include "lib/access.h"
#include "lib/facts.h"
#include "lib/plan.h"

void plan_refuse(struct step *step, const char *why)
{
    if (step->result != STEP_PENDING)
        return;
    step->result = STEP_REFUSED;
    step->why = why;
}

void plan_leave_out(struct step *step, const char *why)
{
    if (step->result != STEP_PENDING || step->was_sent)
        return;
    step->result = STEP_SKIPPED;
    step->is_left_out = true;
    step->why = why;
}

/* The primer. */

static const char not_primed[] =
    "is loaded without the primer, so its native code sees no variable of the rule";

bool plan_needs_primer(enum policy_primer primer, enum plan_reading reading)
{
    switch (primer) {
    case POLICY_PRIMER_AUTO:
        return reading != PLAN_READING_RUNTIME;
    case POLICY_PRIMER_ALWAYS:
        return true;
    case POLICY_PRIMER_NEVER:
        break;
    }
    return false;
}

static struct step *find_primer(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == STEP_PRIMER)
            return &plan->steps[i];
    }
    return NULL;
}

static bool is_primed(const struct step *step)
{
    return step->kind == STEP_PROFILER && plan_needs_primer(step->primer, step->reading);
}

/* A profiler that is to be loaded with the primer is not loaded, or said to be without it. */
static void go_without_primer(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (step->is_for_primer)
            plan_leave_out(step, "there is no primer to read it");
        else if (is_primed(step) && step->primer == POLICY_PRIMER_ALWAYS)
            plan_refuse(step, "is to be loaded with the primer only, which cannot be loaded");
        else if (is_primed(step) && (step->result == STEP_PENDING || step->result == STEP_OK))
            step->why = not_primed;
    }
}

/* It does nothing when the list of names is not there. */
static bool may_be_told(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (step->is_for_primer && step->value == plan->primer_names)
            return step->result == STEP_PENDING || step->result == STEP_OK;
    }
    return false;
}

void plan_judge_primer(struct plan *plan)
{
    struct step *primer = find_primer(plan);
    bool is_needed = false, is_wanted = false;

    if (!primer)
        return;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        is_needed |= is_primed(step);
        is_wanted |= is_primed(step) && (step->result == STEP_PENDING || step->result == STEP_OK);
    }
    if (!is_needed)
        plan_leave_out(primer, "no profiler of the rule needs it");
    else if (!is_wanted)
        plan_leave_out(primer, "no profiler is left that needs it");
    else if (!may_be_told(plan))
        plan_refuse(primer, "cannot be told of the variables");
    if (primer->result == STEP_REFUSED || primer->result == STEP_SKIPPED)
        go_without_primer(plan);
}

/* Files. */

static const struct facts_file *find_file(const struct facts *facts, const char *path)
{
    for (size_t i = 0; i < facts->n_files; i++) {
        if (strcmp(facts->files[i].path, path) == 0)
            return &facts->files[i];
    }
    return NULL;
}

/* Only who can ask the runtime for variables, and has nothing to ask anybody else with, is sure to
 * do without the primer. */
static enum plan_reading reading_of(const struct facts_image *image)
{
    if (image->kind != FACTS_IMAGE_ELF)
        return PLAN_READING_UNKNOWN;
    if (image->reads_environment)
        return PLAN_READING_NATIVE;
    return image->names_info11 ? PLAN_READING_RUNTIME : PLAN_READING_UNKNOWN;
}

/* A file as one that is loaded for a step: what its kind is there for, and what is wrong with it.
 */
static enum preflight judge_image(const struct facts_image *image, enum step_kind kind)
{
    bool is_profiler = kind != STEP_HOOK;

    if (image->kind == FACTS_IMAGE_UNKNOWN)
        return image->problem;
    if (image->kind != (is_profiler ? FACTS_IMAGE_ELF : FACTS_IMAGE_PE))
        return is_profiler ? PREFLIGHT_NOT_ELF : PREFLIGHT_NOT_MANAGED;
    return is_profiler && image->is_noexec ? PREFLIGHT_NO_EXEC : image->problem;
}

/* Without memory for the detail there is none. */
static void refuse_file(struct step *step, enum preflight code, const char *detail)
{
    if (step->result != STEP_PENDING)
        return;
    plan_refuse(step, preflight_why(code));
    step->code = code;
    step->detail = detail ? strdup(detail) : NULL;
}

/* One that an earlier daemon sent was looked into before that, and nobody wrote down what it was.
 */
static void note_identity(struct step *step, const struct facts_file *file)
{
    step->has_identity = step->result == STEP_PENDING && !step->was_sent;
    step->identity = file->identity;
}

/* What its file is asked about by. */
static const char *asked_name(const struct step *step)
{
    return step->pattern ? step->pattern : step->name;
}

size_t plan_files(const struct plan *plan, const char **ret_files)
{
    size_t n_files = 0;

    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan_has_file(&plan->steps[i]))
            ret_files[n_files++] = asked_name(&plan->steps[i]);
    }
    return n_files;
}

/* What is looked at is the path for the platform that whoever looked found; he names it, and not
 * the path. False when it has no other name than before. */
static bool name_file(struct step *step, const struct facts *facts)
{
    const struct facts_file *file = step->pattern ? find_file(facts, step->pattern) : NULL;
    char *path = NULL;

    if (!file || platform_expand(step->pattern, &file->platform, &path) != 0)
        return false;
    free(step->own_name);
    step->name = step->own_name = path;
    return true;
}

static void name_files(struct plan *plan, const struct facts *facts)
{
    bool is_any = false;

    for (size_t i = 0; i < plan->n_steps; i++)
        is_any |= name_file(&plan->steps[i], facts);
    /* Where memory runs out it tries to open what is not there, and says so. */
    if (is_any)
        (void)!plan_name_libraries(plan);
}

/* What keeps the process from its file, before that is opened. */
static enum preflight judge_path(const struct step *step, const struct facts_file *file,
                                 const struct attributes *attributes)
{
    enum preflight code;

    if (!file)
        return PREFLIGHT_LOOK_FAILED;
    if (step->pattern && file->error == ENODATA)
        return PREFLIGHT_NO_PLATFORM;
    code = access_judge(file, attributes);
    return code == PREFLIGHT_GOOD && step->pattern && !step->own_name ? PREFLIGHT_NO_PLATFORM
                                                                      : code;
}

void plan_check_file(struct step *step, const struct facts *facts,
                     const struct attributes *attributes)
{
    const struct facts_file *file = find_file(facts, asked_name(step));
    enum preflight code = judge_path(step, file, attributes);

    if (code != PREFLIGHT_GOOD) {
        refuse_file(step, code, NULL);
        return;
    }
    step->reading = reading_of(&file->image);
    code = judge_image(&file->image, step->kind);
    if (code != PREFLIGHT_GOOD)
        refuse_file(step, code, code == file->image.problem ? file->image.detail : NULL);
    note_identity(step, file);
}

void plan_check_files(struct plan *plan, const struct facts *facts,
                      const struct attributes *attributes)
{
    name_files(plan, facts);
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (plan_has_file(step))
            plan_check_file(step, facts, attributes);
    }
    plan_judge_primer(plan);
}

static bool is_to_be_loaded(const struct step *step)
{
    return step->has_identity && step->result == STEP_OK;
}

size_t plan_loaded_files(const struct plan *plan, const char **ret_files)
{
    size_t n_files = 0;

    for (size_t i = 0; i < plan->n_steps; i++) {
        if (is_to_be_loaded(&plan->steps[i]))
            ret_files[n_files++] = plan->steps[i].name;
    }
    return n_files;
}

bool plan_compare_file(struct step *step, const struct facts *facts)
{
    const struct facts_file *file = is_to_be_loaded(step) ? find_file(facts, step->name) : NULL;

    if (!file)
        return false;
    if (file->error == ENOENT || file->error == ENOTDIR)
        step->code = PREFLIGHT_REMOVED;
    else if (file->error == 0 && !facts_identity_equal(&file->identity, &step->identity))
        step->code = PREFLIGHT_REPLACED;
    else
        return false;
    step->why = preflight_why(step->code);
    return true;
}

/* The runtime. */

/* What only CoreCLR does; asking a NativeAOT program for it is answered with NOT_SUPPORTED at best.
 */
static const char *kind_refusal(const struct step *step, enum runtime_kind kind)
{
    if (step->kind == STEP_VARIABLE || kind == RUNTIME_KIND_CORECLR)
        return NULL;
    if (kind == RUNTIME_KIND_UNKNOWN)
        return "is only sent to CoreCLR, and this runtime did not say what it is";
    return "is not supported by NativeAOT programs";
}

void plan_check_step(struct step *step, const struct command_target *target)
{
    enum command_id command = plan_command(step);
    const char *why = kind_refusal(step, target->kind);

    if (!why && !command_is_known_to(command, target->major))
        why = "is not known to this version of .NET";
    if (!why)
        why = command_deadly(command, target, plan_is_unset(step));
    if (why)
        plan_refuse(step, why);
}

void plan_check_target(struct plan *plan, const struct command_target *target)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind != STEP_RESUME)
            plan_check_step(&plan->steps[i], target);
    }
    plan_judge_primer(plan);
}
