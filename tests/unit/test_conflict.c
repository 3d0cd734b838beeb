/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "lib/attribute.h"
#include "lib/attributes.h"
#include "lib/conflict.h"
#include "lib/plan.h"

static char switch_name[] = PLAN_SWITCH, zero[] = "0", profiler[] = "/p.so", hook_a[] = "/a.dll",
            hook_b[] = "/b.dll";
static struct policy_profiler profilers[] = {
    {.path = profiler, .is_required = true, .primer = POLICY_PRIMER_NEVER}};
static struct policy_hook hooks[] = {{.path = hook_a, .is_required = true}, {.path = hook_b}};
static struct policy_variable variables[] = {
    {.name = switch_name, .value = zero, .is_required = true}};

/* What a plan comes to. */
struct scene {
    struct plan plan;
    char said[1024];
};

static void settle(struct scene *scene, const struct policy_rule *rule, const char *environ,
                   size_t length, unsigned major)
{
    struct attributes attributes;
    struct conflict conflict;
    size_t at = 0;

    attributes_init(&attributes);
    if (environ)
        ck_assert_int_eq(attribute_set_texts(&attributes.list[ATTRIBUTE_ENVIRON], environ, length,
                                             SIZE_MAX, false),
                         0);
    plan_init(&scene->plan);
    ck_assert_int_eq(plan_build(&scene->plan, rule, true), 0);
    conflict_find(&attributes, &scene->plan, &conflict);
    conflict_settle(&conflict, major, rule->keys.on_conflict, &scene->plan);
    for (size_t i = 0; i < scene->plan.n_steps; i++) {
        const struct step *step = &scene->plan.steps[i];

        at += (size_t)snprintf(scene->said + at, sizeof scene->said - at, "%s%s %s",
                               i > 0 ? ", " : "", step->name, step_result_name(step->result));
    }
    attributes_deinit(&attributes);
}

/* What a rule comes to in an environment: the results of its steps. */
struct outcome {
    const char *environ;
    size_t length;
    unsigned major;
    const char *said;
};

/* A switch that nobody needed is no shortfall, and a hook that is there already is what was wished.
 */
static void come_to(const struct policy_rule *rule, const struct outcome *cases, size_t n,
                    bool may_fail)
{
    for (size_t i = 0; i < n; i++) {
        struct scene scene;

        settle(&scene, rule, cases[i].environ, cases[i].length, cases[i].major);
        ck_assert_str_eq(scene.said, cases[i].said);
        ck_assert_ptr_null(plan_shortfall(&scene.plan));
        ck_assert(may_fail || !plan_has_failed(&scene.plan));
        plan_deinit(&scene.plan);
    }
}

#define OWN     "CORECLR_ENABLE_PROFILING=1\0CORECLR_PROFILER={1}"
#define OWN_NEW "DOTNET_ENABLE_PROFILING=1\0DOTNET_PROFILER={1}"

static const struct {
    const char *environ;
    size_t length;
    unsigned major;
    bool is_conflict;
} environments[] = {
#define ROW(environ, major, is_conflict)            \
    {                                               \
        environ, sizeof environ, major, is_conflict \
    }
    ROW(OWN, 8, true),
    ROW(OWN, 11, true),
    ROW(OWN, 0, true),
    ROW(OWN_NEW, 10, false),
    ROW(OWN_NEW, 11, true),
    ROW(OWN_NEW, 0, true),
    ROW("CORECLR_ENABLE_PROFILING=0\0CORECLR_PROFILER={1}", 8, false),
    ROW("CORECLR_ENABLE_PROFILING=a\0CORECLR_PROFILER={1}", 8, true),
    ROW("CORECLR_ENABLE_PROFILING=\0CORECLR_PROFILER={1}", 8, false),
    ROW("CORECLR_ENABLE_PROFILING=yes\0CORECLR_PROFILER={1}", 8, false),
    ROW("CORECLR_ENABLE_PROFILING=1\0CORECLR_PROFILER=", 8, false),
    ROW("CORECLR_ENABLE_PROFILING=1", 8, false),
    ROW("CORECLR_PROFILER={1}\0CORECLR_PROFILER_PATH=/q.so", 8, false),
    ROW("COR_ENABLE_PROFILING=1\0COR_PROFILER={1}", 8, false),
    ROW("COMPlus_ENABLE_PROFILING=1\0COMPlus_PROFILER={1}", 11, false),
#undef ROW
};

START_TEST(another_profiler_is_seen)
{
    static const char *const wanted[] = {"/p.so skipped", "", "/p.so refused"};

    for (size_t i = 0; i < ARRAY_LENGTH(environments); i++) {
        for (int on_conflict = POLICY_CONFLICT_SKIP; on_conflict <= POLICY_CONFLICT_FAIL;
             on_conflict++) {
            const struct policy_rule rule = {
                .profilers = profilers,
                .n_profilers = 1,
                .keys = {.on_conflict = (enum policy_on_conflict)on_conflict},
            };
            struct scene scene;

            if (on_conflict == POLICY_CONFLICT_REPLACE)
                continue;
            settle(&scene, &rule, environments[i].environ, environments[i].length,
                   environments[i].major);
            ck_assert_str_eq(scene.said,
                             environments[i].is_conflict ? wanted[on_conflict] : "/p.so pending");
            plan_deinit(&scene.plan);
        }
    }
}
END_TEST

/* Without it the plan goes on, and is not as it was written; failing it fails. */
START_TEST(what_is_left_out_is_missed)
{
    struct policy_rule rule = {.profilers = profilers, .n_profilers = 1};
    struct scene scene;

    settle(&scene, &rule, OWN, sizeof OWN, 8);
    ck_assert(!plan_has_failed(&scene.plan));
    ck_assert_str_eq(plan_shortfall(&scene.plan), "a profiler was left out");
    plan_deinit(&scene.plan);
    rule.keys.on_conflict = POLICY_CONFLICT_FAIL;
    settle(&scene, &rule, OWN, sizeof OWN, 8);
    ck_assert(plan_has_failed(&scene.plan));
    plan_deinit(&scene.plan);
    profilers[0].is_required = false;
    rule.keys.on_conflict = POLICY_CONFLICT_SKIP;
    settle(&scene, &rule, OWN, sizeof OWN, 8);
    ck_assert_ptr_null(plan_shortfall(&scene.plan));
    profilers[0].is_required = true;
    plan_deinit(&scene.plan);
}
END_TEST

START_TEST(another_profiler_is_switched_off)
{
    struct policy_rule rule = {
        .profilers = profilers,
        .n_profilers = 1,
        .keys = {.on_conflict = POLICY_CONFLICT_REPLACE},
    };
    static const struct outcome cases[] = {
#define OLD PLAN_SWITCH
#define NEW PLAN_SWITCH_NEW
        {OWN, sizeof OWN, 8, OLD " pending, " NEW " skipped, /p.so pending"},
        {OWN_NEW, sizeof OWN_NEW, 8, OLD " skipped, " NEW " skipped, /p.so pending"},
        {OWN_NEW, sizeof OWN_NEW, 11, OLD " skipped, " NEW " pending, /p.so pending"},
        {OWN "\0" OWN_NEW, sizeof OWN "\0" OWN_NEW, 0,
         OLD " pending, " NEW " pending, /p.so pending"},
        {"A=1", 4, 11, OLD " skipped, " NEW " skipped, /p.so pending"},
        {NULL, 0, 11, OLD " skipped, " NEW " skipped, /p.so pending"},
        {OWN "\0DOTNET_EnableDiagnostics_Profiler=0",
         sizeof OWN "\0DOTNET_EnableDiagnostics_Profiler=0", 8,
         OLD " skipped, " NEW " skipped, /p.so refused"},
#undef OLD
#undef NEW
    };

    come_to(&rule, cases, ARRAY_LENGTH(cases), true);
    rule.n_profilers = 0;
    {
        struct scene scene;

        settle(&scene, &rule, OWN, sizeof OWN, 8);
        ck_assert_uint_eq(scene.plan.n_steps, 0);
        plan_deinit(&scene.plan);
    }
}
END_TEST

/* The runtime reads these variables after Resume. */
START_TEST(what_the_rule_sets_counts)
{
    struct policy_rule rule = {
        .variables = variables,
        .n_variables = 1,
        .profilers = profilers,
        .n_profilers = 1,
    };
    struct scene scene;

    settle(&scene, &rule, OWN, sizeof OWN, 8);
    ck_assert_str_eq(scene.said, PLAN_SWITCH " pending, /p.so pending");
    plan_deinit(&scene.plan);
    /* And is not said twice. */
    rule.keys.on_conflict = POLICY_CONFLICT_REPLACE;
    settle(&scene, &rule, OWN, sizeof OWN, 8);
    ck_assert_str_eq(scene.said,
                     PLAN_SWITCH " pending, " PLAN_SWITCH_NEW " skipped, /p.so pending");
    plan_deinit(&scene.plan);
    variables[0].value = NULL;
    rule.keys.on_conflict = POLICY_CONFLICT_FAIL;
    settle(&scene, &rule, OWN, sizeof OWN, 8);
    ck_assert_str_eq(scene.said, PLAN_SWITCH " pending, /p.so pending");
    plan_deinit(&scene.plan);
    variables[0].value = zero;
}
END_TEST

/* Nobody is left who needs it. */
START_TEST(the_primer_is_left_out_with_them)
{
    static char name[] = "A";
    static struct policy_variable one[] = {{.name = name, .value = zero, .is_required = true}};
    const struct policy_rule rule = {
        .variables = one,
        .n_variables = 1,
        .profilers = profilers,
        .n_profilers = 1,
    };
    struct scene scene;

    profilers[0].primer = POLICY_PRIMER_ALWAYS;
    settle(&scene, &rule, OWN, sizeof OWN, 8);
    for (size_t i = 0; i < scene.plan.n_steps; i++)
        ck_assert_int_eq(scene.plan.steps[i].result, i == 0 ? STEP_PENDING : STEP_SKIPPED);
    ck_assert_uint_eq(scene.plan.n_steps, 5);
    ck_assert(!plan_has_failed(&scene.plan));
    plan_deinit(&scene.plan);
    profilers[0].primer = POLICY_PRIMER_NEVER;
}
END_TEST

START_TEST(profilers_that_are_switched_off)
{
    static const struct policy_rule rule = {.profilers = profilers, .n_profilers = 1};
    static const struct outcome cases[] = {
#define ROW(environ, said) {environ, sizeof environ, 10, said}
        ROW("DOTNET_EnableDiagnostics_Profiler=0", "/p.so refused"),
        ROW("COMPlus_EnableDiagnostics_Profiler=0", "/p.so refused"),
        ROW("DOTNET_EnableDiagnostics_Profiler=1\0COMPlus_EnableDiagnostics_Profiler=0",
            "/p.so pending"),
        ROW("DOTNET_EnableDiagnostics_Profiler=", "/p.so pending"),
        ROW("DOTNET_EnableDiagnostics_Profiler=off", "/p.so pending"),
#undef ROW
    };

    come_to(&rule, cases, ARRAY_LENGTH(cases), true);
}
END_TEST

START_TEST(hooks_that_are_there_already)
{
    static const struct policy_rule rule = {.hooks = hooks, .n_hooks = 2};
    static const struct outcome cases[] = {
#define ROW(value, said) \
    {"DOTNET_STARTUP_HOOKS=" value, sizeof "DOTNET_STARTUP_HOOKS=" value, 10, said}
        ROW("", "/a.dll pending, /b.dll pending"),
        ROW("/a.dll", "/a.dll skipped, /b.dll pending"),
        ROW("/c.dll:/b.dll", "/a.dll pending, /b.dll skipped"),
        ROW("/b.dll:/a.dll:", "/a.dll skipped, /b.dll skipped"),
        ROW("/a.dll.x:x/b.dll", "/a.dll pending, /b.dll pending"),
#undef ROW
    };

    come_to(&rule, cases, ARRAY_LENGTH(cases), false);
}
END_TEST

/* What an earlier step says is not said again: the first reason stays. */
START_TEST(what_was_refused_stays_so)
{
    static const struct policy_rule rule = {
        .profilers = profilers,
        .n_profilers = 1,
        .hooks = hooks,
        .n_hooks = 1,
    };
    static const char environ[] = OWN "\0DOTNET_STARTUP_HOOKS=/a.dll";
    struct attributes attributes;
    struct conflict conflict;
    struct plan plan;

    attributes_init(&attributes);
    ck_assert_int_eq(attribute_set_texts(&attributes.list[ATTRIBUTE_ENVIRON], environ,
                                         sizeof environ, SIZE_MAX, false),
                     0);
    plan_init(&plan);
    ck_assert_int_eq(plan_build(&plan, &rule, true), 0);
    plan_refuse(&plan.steps[0], "is bad");
    plan_refuse(&plan.steps[1], "is bad");
    conflict_find(&attributes, &plan, &conflict);
    conflict_settle(&conflict, 8, POLICY_CONFLICT_SKIP, &plan);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(plan.steps[i].why, "is bad");
        ck_assert_int_eq(plan.steps[i].result, STEP_REFUSED);
    }
    plan_deinit(&plan);
    attributes_deinit(&attributes);
}
END_TEST

UNIT_TESTS(another_profiler_is_seen, what_is_left_out_is_missed, another_profiler_is_switched_off,
           what_the_rule_sets_counts, the_primer_is_left_out_with_them,
           profilers_that_are_switched_off, hooks_that_are_there_already,
           what_was_refused_stays_so);
