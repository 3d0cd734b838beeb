/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Plans by themselves: what a rule is laid out as, what is kept of old values,
 * and memory that runs out. What is done with them is in test_broker_apply.c.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attribute.h"
#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/plan.h"
#include "lib/policy.h"
#include "lib/primer_names.h"
#include "lib/record.h"
#include "lib/wire.h"
#include "tests/unit/unit_memory.h"

static char one[] = "ONE", two[] = "TWO", value[] = "1", profiler_a[] = "/a.so",
            profiler_b[] = "/b.so", hook_a[] = "/a.dll", hook_b[] = "/b.dll",
            primer[] = "/primer.so";
static struct policy_variable variables[] = {{.name = one, .value = value, .is_required = true},
                                             {.name = two}};
static struct policy_profiler profilers[] = {{.path = profiler_a}, {.path = profiler_b}};
static struct policy_hook hooks[] = {{.path = hook_a, .is_required = true}, {.path = hook_b}};
static const struct policy_rule rule = {
    .variables = variables,
    .n_variables = ARRAY_LENGTH(variables),
    .profilers = profilers,
    .n_profilers = ARRAY_LENGTH(profilers),
    .hooks = hooks,
    .n_hooks = ARRAY_LENGTH(hooks),
    .keys = {.children = POLICY_CHILDREN_DETACH, .primer_path = primer},
};

/* The first profiler is to load first, and the runtime loads the last one first. */
START_TEST(a_rule_is_laid_out)
{
    static const struct {
        const char *kind;
        const char *name;
    } wanted[] = {
        {"env", "ONE"},
        {"env", "TWO"},
        {"env", "DOTNET_DiagnosticPorts"},
        {"env", "COMPlus_DiagnosticPorts"},
        {"env", "DIAGPORT_PRIMER_NAMES"},
        {"env", "DIAGPORT_PRIMER_PROBE"},
        {"profiler", "/b.so"},
        {"profiler", "/a.so"},
        {"primer", "/primer.so"},
        {"hook", "/a.dll"},
        {"hook", "/b.dll"},
        {"resume", NULL},
    };
    struct plan plan;

    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &rule, true), 0);
    ck_assert_ptr_nonnull(plan_add_resume(&plan));
    ck_assert_uint_eq(plan.n_steps, ARRAY_LENGTH(wanted));
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        ck_assert_str_eq(step_kind_name(plan.steps[i].kind), wanted[i].kind);
        ck_assert_str_eq(step_result_name(plan.steps[i].result), "pending");
        if (wanted[i].name)
            ck_assert_str_eq(plan.steps[i].name, wanted[i].name);
        else
            ck_assert_ptr_null(plan.steps[i].name);
    }
    plan_deinit(&plan);
}
END_TEST

/* What is too much to keep stays unknown, and cannot be taken back. */
START_TEST(old_values_have_a_bound)
{
    const struct command_target target = {.kind = RUNTIME_KIND_CORECLR, .major = 10};
    char *half = calloc(1, PLAN_OLD_VALUES_MAX / 2 + 2);
    struct plan plan;

    ck_assert_ptr_nonnull(half);
    memset(half, 'x', PLAN_OLD_VALUES_MAX / 2 + 1);
    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &rule, true), 0);
    ck_assert_int_eq(plan_set_old_value(&plan, "ONE", half), 0);
    ck_assert_int_eq(plan_set_old_value(&plan, "TWO", half), 0);
    ck_assert_int_eq(plan.steps[0].old, STEP_OLD_PRESENT);
    ck_assert(plan_can_undo(&plan.steps[0], &target));
    ck_assert_int_eq(plan.steps[1].old, STEP_OLD_UNKNOWN);
    ck_assert(!plan_can_undo(&plan.steps[1], &target));
    /* What is known already is not changed by another answer. */
    ck_assert_int_eq(plan_set_old_value(&plan, "ONE", NULL), 0);
    ck_assert_int_eq(plan.steps[0].old, STEP_OLD_PRESENT);
    ck_assert_int_eq(plan_set_old_value(&plan, "TWO", NULL), 0);
    ck_assert_int_eq(plan.steps[1].old, STEP_OLD_ABSENT);
    free(half);
    plan_deinit(&plan);
}
END_TEST

/* Of what nobody looked at nothing is thought to be there. */
START_TEST(a_file_without_an_answer_is_refused)
{
    struct facts *facts = facts_new(FACTS_FILES, 0);
    struct attributes attributes;
    struct plan plan;

    ck_assert_ptr_nonnull(facts);
    attributes_init(&attributes);
    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &rule, true), 0);
    plan_check_files(&plan, facts, &attributes);
    for (size_t i = 0; i < plan.n_steps; i++)
        ck_assert_int_eq(plan.steps[i].result, plan.steps[i].is_for_primer ? STEP_SKIPPED
                                               : plan.steps[i].kind == STEP_VARIABLE
                                                   ? STEP_PENDING
                                                   : STEP_REFUSED);
    /* What was refused stays so, for the first reason. */
    plan_check_target(&plan, &(struct command_target){.kind = RUNTIME_KIND_NATIVEAOT, .major = 8});
    ck_assert(plan_has_failed(&plan));
    plan_deinit(&plan);
    facts_free(facts);
}
END_TEST

/* The primer. */

static struct step *step_of(struct plan *plan, enum step_kind kind)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == kind)
            return &plan->steps[i];
    }
    ck_abort_msg("there is no %s", step_kind_name(kind));
}

static bool has_step(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].name && strcmp(plan->steps[i].name, name) == 0)
            return true;
    }
    return false;
}

static struct step *variable_of(struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].name && strcmp(plan->steps[i].name, name) == 0)
            return &plan->steps[i];
    }
    ck_abort_msg("there is no %s", name);
}

static const struct command_target coreclr = {
    .kind = RUNTIME_KIND_CORECLR,
    .major = 10,
    .port_suspends = true,
    .shows_suspended = true,
};

START_TEST(the_primer_is_told_of_all_variables)
{
    struct guid clsid;
    struct plan plan;

    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &rule, true), 0);
    ck_assert_str_eq(variable_of(&plan, PRIMER_NAMES)->value,
                     "ONE\nTWO\nDOTNET_DiagnosticPorts\nCOMPlus_DiagnosticPorts");
    ck_assert_str_eq(variable_of(&plan, PRIMER_LIBRARIES)->value, "/a.so\n/b.so");
    ck_assert(guid_parse(PRIMER_CLSID, &clsid));
    ck_assert_int_eq(guid_compare(step_of(&plan, STEP_PRIMER)->clsid, &clsid), 0);
    ck_assert_int_eq(plan_command(step_of(&plan, STEP_PRIMER)), COMMAND_STARTUP_PROFILER);
    ck_assert(!step_of(&plan, STEP_PRIMER)->is_required);
    plan_check_target(&plan, &coreclr);
    for (size_t i = 0; i < plan.n_steps; i++) {
        ck_assert_int_eq(plan.steps[i].result, STEP_PENDING);
        ck_assert_ptr_null(plan.steps[i].why);
    }
    plan_deinit(&plan);
}
END_TEST

/* A plan of these two profilers, with or without the variables of the rule. */
static void build_with(struct plan *plan, enum policy_primer a, enum policy_primer b,
                       bool has_variables, bool knows_primer)
{
    static struct policy_profiler two_profilers[2];
    static struct policy_rule with;

    two_profilers[0] =
        (struct policy_profiler){.path = profiler_a, .primer = a, .is_required = true};
    two_profilers[1] = (struct policy_profiler){.path = profiler_b, .primer = b};
    with = rule;
    with.profilers = two_profilers;
    if (!has_variables) {
        with.n_variables = 0;
        with.keys.children = POLICY_CHILDREN_INHERIT;
    }
    plan_init(plan);
    ck_assert_int_eq(plan_build(plan, &with, knows_primer), 0);
}

START_TEST(there_is_a_primer_where_there_is_a_use_for_it)
{
    static const struct {
        enum policy_primer a, b;
        bool has_variables, knows_primer, has_primer;
        const char *libraries;
    } cases[] = {
        {POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, true, true, "/a.so\n/b.so"},
        {POLICY_PRIMER_AUTO, POLICY_PRIMER_NEVER, true, true, true, "/a.so"},
        {POLICY_PRIMER_NEVER, POLICY_PRIMER_ALWAYS, true, true, true, "/b.so"},
        {POLICY_PRIMER_NEVER, POLICY_PRIMER_NEVER, true, true, false, NULL},
        {POLICY_PRIMER_ALWAYS, POLICY_PRIMER_AUTO, false, true, false, NULL},
        {POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, false, false, NULL},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct plan plan;

        build_with(&plan, cases[i].a, cases[i].b, cases[i].has_variables, cases[i].knows_primer);
        ck_assert_int_eq(has_step(&plan, primer), cases[i].has_primer);
        ck_assert_int_eq(has_step(&plan, PRIMER_NAMES), cases[i].has_primer);
        if (cases[i].libraries)
            ck_assert_str_eq(variable_of(&plan, PRIMER_LIBRARIES)->value, cases[i].libraries);
        plan_deinit(&plan);
    }
}
END_TEST

START_TEST(a_profiler_needs_it_or_does_not)
{
    for (int reading = PLAN_READING_UNKNOWN; reading <= PLAN_READING_RUNTIME; reading++) {
        ck_assert_int_eq(plan_needs_primer(POLICY_PRIMER_AUTO, (enum plan_reading)reading),
                         reading != PLAN_READING_RUNTIME);
        ck_assert(plan_needs_primer(POLICY_PRIMER_ALWAYS, (enum plan_reading)reading));
        ck_assert(!plan_needs_primer(POLICY_PRIMER_NEVER, (enum plan_reading)reading));
    }
}
END_TEST

/* What the process sees of its files: one is not there, unless `absent` is NULL. */
static void check_files(struct plan *plan, const char *absent)
{
    struct facts *facts = facts_new(FACTS_FILES, 0);
    struct facts_file files[16];
    struct attributes attributes;
    struct facts_node node = {.mode = 0100644};

    ck_assert_ptr_nonnull(facts);
    attributes_init(&attributes);
    facts->files = files;
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct facts_file *file = &files[facts->n_files];

        if (plan->steps[i].kind == STEP_VARIABLE)
            continue;
        ck_assert_uint_lt(facts->n_files, ARRAY_LENGTH(files));
        *file = (struct facts_file){.path = (char *)(uintptr_t)plan->steps[i].name,
                                    .nodes = &node,
                                    .n_nodes = 1};
        if (absent && strcmp(absent, plan->steps[i].name) == 0)
            file->error = ENOENT;
        facts->n_files++;
    }
    plan_check_files(plan, facts, &attributes);
    facts->files = NULL;
    facts->n_files = 0;
    facts_free(facts);
}

START_TEST(a_primer_that_is_missing_is_said_to_be)
{
    struct plan plan;

    build_with(&plan, POLICY_PRIMER_AUTO, POLICY_PRIMER_NEVER, true, true);
    check_files(&plan, primer);
    ck_assert_int_eq(step_of(&plan, STEP_PRIMER)->result, STEP_REFUSED);
    ck_assert_int_eq(variable_of(&plan, PRIMER_NAMES)->result, STEP_SKIPPED);
    ck_assert_int_eq(variable_of(&plan, PRIMER_LIBRARIES)->result, STEP_SKIPPED);
    ck_assert_int_eq(variable_of(&plan, profiler_a)->result, STEP_PENDING);
    ck_assert_ptr_nonnull(strstr(variable_of(&plan, profiler_a)->why, "without the primer"));
    ck_assert_ptr_null(variable_of(&plan, profiler_b)->why);
    ck_assert(!plan_has_failed(&plan));
    plan_deinit(&plan);
}
END_TEST

START_TEST(a_profiler_that_is_never_loaded_without_it_is_not)
{
    struct plan plan;

    build_with(&plan, POLICY_PRIMER_ALWAYS, POLICY_PRIMER_AUTO, true, true);
    check_files(&plan, primer);
    ck_assert_int_eq(variable_of(&plan, profiler_a)->result, STEP_REFUSED);
    ck_assert_int_eq(variable_of(&plan, profiler_b)->result, STEP_PENDING);
    ck_assert(plan_has_failed(&plan));
    plan_deinit(&plan);
}
END_TEST

START_TEST(a_primer_for_nobody_is_left_out)
{
    struct plan plan;

    build_with(&plan, POLICY_PRIMER_AUTO, POLICY_PRIMER_NEVER, true, true);
    check_files(&plan, profiler_a);
    ck_assert_int_eq(variable_of(&plan, profiler_a)->result, STEP_REFUSED);
    ck_assert_int_eq(step_of(&plan, STEP_PRIMER)->result, STEP_SKIPPED);
    ck_assert_int_eq(variable_of(&plan, PRIMER_NAMES)->result, STEP_SKIPPED);
    ck_assert_int_eq(variable_of(&plan, profiler_b)->result, STEP_PENDING);
    plan_deinit(&plan);
}
END_TEST

START_TEST(who_has_no_profilers_gets_no_primer)
{
    struct plan plan;

    build_with(&plan, POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, true);
    plan_check_target(&plan, &(struct command_target){.kind = RUNTIME_KIND_NATIVEAOT, .major = 10});
    ck_assert_int_eq(step_of(&plan, STEP_PRIMER)->result, STEP_REFUSED);
    ck_assert_int_eq(variable_of(&plan, PRIMER_NAMES)->result, STEP_SKIPPED);
    plan_deinit(&plan);
}
END_TEST

/* It would find nothing to do; and whoever was to be primed is said not to be. */
START_TEST(a_primer_that_could_not_be_told_is_not_sent)
{
    const struct moment now = {1};
    struct plan plan;
    struct step *names;

    build_with(&plan, POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, true);
    check_files(&plan, NULL);
    names = variable_of(&plan, PRIMER_NAMES);
    plan_sent(&plan, names);
    plan_answered(&plan, names, STEP_REFUSED, 0x80004005, now);
    ck_assert_int_eq(step_of(&plan, STEP_PRIMER)->result, STEP_REFUSED);
    ck_assert_ptr_nonnull(variable_of(&plan, profiler_a)->why);
    plan_deinit(&plan);
}
END_TEST

START_TEST(a_primer_that_the_runtime_refuses_is_said_to_be)
{
    const struct moment now = {1};
    struct plan plan;
    struct step *step;

    build_with(&plan, POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, true);
    check_files(&plan, NULL);
    while ((step = plan_next(&plan))) {
        bool is_primer = step->kind == STEP_PRIMER;

        plan_sent(&plan, step);
        plan_answered(&plan, step, is_primer ? STEP_REFUSED : STEP_OK, 0, now);
    }
    ck_assert_ptr_nonnull(strstr(variable_of(&plan, profiler_a)->why, "without the primer"));
    ck_assert_int_eq(plan_outcome(&plan), PLAN_APPLIED);
    plan_deinit(&plan);
}
END_TEST

START_TEST(a_list_that_does_not_fit_into_a_message)
{
    static struct policy_variable many[2000];
    static char names[2000][40];
    struct policy_rule with = rule;
    struct plan plan;

    for (size_t i = 0; i < ARRAY_LENGTH(many); i++) {
        snprintf(names[i], sizeof names[i], "DIAGPORT_TEST_%024zu", i);
        many[i] = (struct policy_variable){.name = names[i], .value = value};
    }
    with.variables = many;
    with.n_variables = ARRAY_LENGTH(many);
    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &with, true), 0);
    check_files(&plan, NULL);
    ck_assert_int_eq(variable_of(&plan, PRIMER_NAMES)->result, STEP_REFUSED);
    ck_assert_int_eq(step_of(&plan, STEP_PRIMER)->result, STEP_REFUSED);
    ck_assert_int_eq(variable_of(&plan, PRIMER_LIBRARIES)->result, STEP_SKIPPED);
    ck_assert_int_eq(variable_of(&plan, profiler_a)->result, STEP_PENDING);
    plan_deinit(&plan);
}
END_TEST

/* Records. */

/* Whatever was found out about the primer, a plan is laid out alike, and its record fits. */
START_TEST(a_record_fits_to_the_next_daemon)
{
    for (int knows_primer = 0; knows_primer <= 1; knows_primer++) {
        struct record record = {.phase = RECORD_BEGUN};
        struct plan plan, next;

        build_with(&plan, POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, knows_primer);
        check_files(&plan, knows_primer ? primer : NULL);
        plan_record(&plan, NULL, &record);
        ck_assert_int_eq(record.knows_primer, knows_primer);
        build_with(&next, POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, record.knows_primer);
        ck_assert(plan_recall(&next, &record, false, false, (struct moment){1}));
        for (size_t i = 0; i < plan.n_steps; i++)
            ck_assert_int_eq(next.steps[i].result, plan.steps[i].result);
        plan_deinit(&next);
        build_with(&next, POLICY_PRIMER_AUTO, POLICY_PRIMER_AUTO, true, !record.knows_primer);
        ck_assert(!plan_recall(&next, &record, false, false, (struct moment){1}));
        plan_deinit(&next);
        plan_deinit(&plan);
    }
}
END_TEST

static struct facts *facts_of_files(const struct plan *plan, enum facts_image_kind kind,
                                    enum preflight problem, const char *detail)
{
    struct facts *facts = facts_new(FACTS_FILES | FACTS_IMAGES, 0);

    facts->files = calloc(plan->n_steps, sizeof *facts->files);
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct facts_file *file = &facts->files[facts->n_files++];

        file->path = strdup(plan->steps[i].name);
        file->nodes = calloc(1, sizeof *file->nodes);
        file->nodes[file->n_nodes++] = (struct facts_node){.mode = 0100644};
        file->image = (struct facts_image){.kind = kind, .problem = problem};
        file->image.detail = detail ? strdup(detail) : NULL;
    }
    return facts;
}

/* The code of the first step of that kind, and its detail. */
static enum preflight code_of(enum step_kind step_kind, enum facts_image_kind kind, bool is_noexec,
                              enum preflight problem, const char *detail)
{
    enum preflight code = PREFLIGHT_GOOD;
    struct attributes attributes;
    struct facts *facts;
    struct plan plan;
    size_t i = 0;

    attributes_init(&attributes);
    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &rule, true), 0);
    facts = facts_of_files(&plan, kind, problem, detail);
    for (size_t k = 0; k < facts->n_files; k++)
        facts->files[k].image.is_noexec = is_noexec;
    plan_check_files(&plan, facts, &attributes);
    while (plan.steps[i].kind != step_kind)
        i++;
    code = plan.steps[i].code;
    ck_assert_int_eq(plan.steps[i].result, code == PREFLIGHT_GOOD ? STEP_PENDING : STEP_REFUSED);
    if (code != PREFLIGHT_GOOD)
        ck_assert_str_eq(plan.steps[i].why, preflight_why(code));
    if (code == problem && detail)
        ck_assert_str_eq(plan.steps[i].detail, detail);
    else
        ck_assert_ptr_null(plan.steps[i].detail);
    plan_deinit(&plan);
    facts_free(facts);
    return code;
}

/* What is wrong with a file counts for what it is there for. */
START_TEST(a_file_is_refused_for_what_is_in_it)
{
    static const enum preflight library = PREFLIGHT_NEEDS_LIBRARY;
    static const enum facts_image_kind elf = FACTS_IMAGE_ELF, pe = FACTS_IMAGE_PE;

    ck_assert_int_eq(code_of(STEP_PROFILER, elf, false, PREFLIGHT_GOOD, NULL), PREFLIGHT_GOOD);
    ck_assert_int_eq(code_of(STEP_PROFILER, elf, false, library, "libxml2.so.2"), library);
    ck_assert_int_eq(code_of(STEP_PROFILER, pe, false, PREFLIGHT_GOOD, NULL), PREFLIGHT_NOT_ELF);
    ck_assert_int_eq(code_of(STEP_PROFILER, FACTS_IMAGE_OTHER, false, PREFLIGHT_GOOD, NULL),
                     PREFLIGHT_NOT_ELF);
    ck_assert_int_eq(code_of(STEP_PROFILER, elf, true, library, "x"), PREFLIGHT_NO_EXEC);
    ck_assert_int_eq(code_of(STEP_HOOK, pe, true, PREFLIGHT_GOOD, NULL), PREFLIGHT_GOOD);
    ck_assert_int_eq(code_of(STEP_HOOK, elf, false, library, "x"), PREFLIGHT_NOT_MANAGED);
    ck_assert_int_eq(code_of(STEP_HOOK, pe, false, PREFLIGHT_NO_STARTUP_HOOK, NULL),
                     PREFLIGHT_NO_STARTUP_HOOK);
    /* Of what could not be read only what is known all the same. */
    ck_assert_int_eq(code_of(STEP_HOOK, FACTS_IMAGE_UNKNOWN, true, PREFLIGHT_GOOD, NULL),
                     PREFLIGHT_GOOD);
    ck_assert_int_eq(code_of(STEP_HOOK, FACTS_IMAGE_UNKNOWN, false, PREFLIGHT_TOO_LARGE, NULL),
                     PREFLIGHT_TOO_LARGE);
}
END_TEST

/* Patterns. */

static const char *library_of(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].is_for_primer && strcmp(plan->steps[i].name, PRIMER_LIBRARIES) == 0)
            return plan->steps[i].value;
    }
    return NULL;
}

/* The one profiler of a rule whose path is a pattern, checked by what somebody said of it. */
static const struct step *check_pattern(struct plan *plan, struct platform platform, int error)
{
    static char written[] = "/opt/{rid}/p.so", pattern[] = "/opt/\x01/p.so";
    static struct policy_profiler profiler = {.path = written, .pattern = pattern};
    static struct policy_rule with;
    struct attributes attributes;
    struct facts *facts;
    const char *asked[8];
    size_t n_asked, i = 0;

    with = rule;
    with.profilers = &profiler;
    with.n_profilers = 1;
    with.n_hooks = 0;
    attributes_init(&attributes);
    ck_assert_int_eq(plan_build(plan, &with, true), 0);
    while (plan->steps[i].kind != STEP_PROFILER)
        i++;
    ck_assert_str_eq(plan->steps[i].name, written);
    n_asked = plan_files(plan, asked);
    ck_assert_uint_ge(n_asked, 1);
    ck_assert_str_eq(asked[0], pattern);
    facts = facts_of_files(plan, FACTS_IMAGE_ELF, PREFLIGHT_GOOD, NULL);
    for (size_t k = 0; k < facts->n_files; k++) {
        if (strcmp(facts->files[k].path, written) != 0)
            continue;
        free(facts->files[k].path);
        facts->files[k].path = strdup(pattern);
        facts->files[k].platform = platform;
        facts->files[k].error = error;
    }
    plan_check_files(plan, facts, &attributes);
    facts_free(facts);
    return &plan->steps[i];
}

START_TEST(a_pattern_becomes_a_path)
{
    static const struct platform alpine = {PLATFORM_X64, PLATFORM_MUSL};
    const struct step *step;
    struct plan plan;

    plan_init(&plan);
    step = check_pattern(&plan, alpine, 0);
    ck_assert_int_eq(step->result, STEP_PENDING);
    ck_assert_str_eq(step->name, "/opt/linux-musl-x64/p.so");
    ck_assert_str_eq(library_of(&plan), step->name);
    plan_deinit(&plan);
    plan_init(&plan);
    step = check_pattern(&plan, alpine, ENOENT);
    ck_assert_int_eq(step->code, PREFLIGHT_FILE_MISSING);
    ck_assert_str_eq(step->name, "/opt/linux-musl-x64/p.so");
    plan_deinit(&plan);
}
END_TEST

/* Whatever else is said of it then. */
START_TEST(a_pattern_without_a_platform_is_refused)
{
    static const struct platform unknown = {PLATFORM_X64, PLATFORM_LIBC_UNKNOWN};
    static const int errors[] = {ENODATA, 0};

    for (size_t i = 0; i < ARRAY_LENGTH(errors); i++) {
        const struct step *step;
        struct plan plan;

        plan_init(&plan);
        step = check_pattern(&plan, unknown, errors[i]);
        ck_assert_int_eq(step->result, STEP_REFUSED);
        ck_assert_int_eq(step->code, PREFLIGHT_NO_PLATFORM);
        ck_assert_str_eq(step->name, "/opt/{rid}/p.so");
        plan_deinit(&plan);
    }
}
END_TEST

/* Memory. */

static int lay_out(void *context)
{
    const struct attributes *attributes = context;
    struct bytes message;
    struct plan plan;
    int error;

    plan_init(&plan);
    bytes_init(&message, WIRE_MESSAGE_MAX);
    error = plan_build(&plan, &rule, true);
    if (error == 0)
        error = plan_take_old_values(&plan, attributes);
    if (error == 0)
        error = plan_set_old_value(&plan, "TWO", "old");
    if (error == 0)
        error = plan_write(&plan, &plan.steps[0], &message);
    if (error == 0 && !plan_add_resume(&plan))
        error = -ENOMEM;
    bytes_deinit(&message);
    plan_deinit(&plan);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    static const char environ[] = "ONE=0";
    struct attributes attributes;

    attributes_init(&attributes);
    ck_assert_int_eq(attribute_set_texts(&attributes.list[ATTRIBUTE_ENVIRON], environ,
                                         sizeof environ, SIZE_MAX, false),
                     0);
    ck_assert_uint_ge(unit_memory_exhaust(lay_out, &attributes, -ENOMEM), 5);
    attributes_deinit(&attributes);
}
END_TEST

/* The last Resume counts on where there is no memory for another. */
START_TEST(a_resume_needs_no_memory_once_there_is_one)
{
    struct plan plan;
    size_t n_left, n_failed = 0;

    plan_init(&plan);
    ck_assert_ptr_nonnull(plan_add_resume(&plan));
    for (size_t i = 1; i < 2 * PLAN_RESUMES_MAX; i++) {
        const struct step *step;
        size_t n_steps = plan.n_steps;

        unit_memory_watch(1);
        step = plan_add_resume(&plan);
        n_failed += unit_memory_release(&n_left);
        ck_assert_ptr_eq(step, &plan.steps[plan.n_steps - 1]);
        ck_assert_uint_le(plan.n_steps, n_steps + 1);
    }
    ck_assert_uint_gt(n_failed, 0);
    plan_deinit(&plan);
}
END_TEST

UNIT_TESTS(a_rule_is_laid_out, old_values_have_a_bound, a_file_without_an_answer_is_refused,
           the_primer_is_told_of_all_variables, there_is_a_primer_where_there_is_a_use_for_it,
           a_profiler_needs_it_or_does_not, a_primer_that_is_missing_is_said_to_be,
           a_profiler_that_is_never_loaded_without_it_is_not, a_primer_for_nobody_is_left_out,
           who_has_no_profilers_gets_no_primer, a_primer_that_could_not_be_told_is_not_sent,
           a_primer_that_the_runtime_refuses_is_said_to_be, a_list_that_does_not_fit_into_a_message,
           a_record_fits_to_the_next_daemon, a_pattern_becomes_a_path,
           a_pattern_without_a_platform_is_refused, a_file_is_refused_for_what_is_in_it,
           every_allocation_may_fail, a_resume_needs_no_memory_once_there_is_one);
