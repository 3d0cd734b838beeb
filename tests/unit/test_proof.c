/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/proof.h"

#include <stdio.h>
#include <string.h>

#include "lib/plan.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_nettrace.h"

static char main_path[] = "/m.so", notify_path[] = "/n.so", hook_a[] = "/opt/rig/hooks/HookA.dll",
            hook_b[] = "/opt/rig/hooks/HookB.dll";
static struct policy_profiler profilers[] = {
    {.path = main_path, .is_required = true, .primer = POLICY_PRIMER_NEVER},
    {.path = notify_path, .is_required = true, .primer = POLICY_PRIMER_NEVER},
};
static struct policy_hook hooks[] = {{.path = hook_a}, {.path = hook_b}};

/* What a plan comes to, one step after the other. */
struct scene {
    struct plan plan;
    size_t n_told;
    char said[1024];
};

static void begin(struct scene *scene, size_t n_profilers, size_t n_hooks)
{
    struct policy_rule rule = {.profilers = profilers,
                               .n_profilers = n_profilers,
                               .hooks = hooks,
                               .n_hooks = n_hooks};

    ck_assert(guid_parse("d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e61", &profilers[0].clsid));
    ck_assert(guid_parse("d1a60d3b-7e57-4c0d-9a3e-5b1f0c2d4e62", &profilers[1].clsid));
    *scene = (struct scene){0};
    plan_init(&scene->plan);
    ck_assert_int_eq(plan_build(&scene->plan, &rule, true), 0);
    for (size_t i = 0; i < scene->plan.n_steps; i++)
        scene->plan.steps[i].result = STEP_OK;
}

static void known(void *context, const struct step *step)
{
    struct scene *scene = context;

    ck_assert_int_ne(step->proof, PROOF_OPEN);
    scene->n_told++;
}

static const char *said(struct scene *scene)
{
    size_t at = 0;

    for (size_t i = 0; i < scene->plan.n_steps; i++) {
        const struct step *step = &scene->plan.steps[i];

        at += (size_t)snprintf(scene->said + at, sizeof scene->said - at, "%s%s %s",
                               i > 0 ? ", " : "",
                               step->kind == STEP_HOOK ? strrchr(step->name, '/') : step->name,
                               step->proof == PROOF_OPEN ? "open" : step_proof_name(step->proof));
    }
    return scene->said;
}

static void prove(struct scene *scene, const char *name, unsigned major)
{
    struct bytes stream = unit_nettrace_recorded(name, major);
    struct receipt_hook wanted[4];
    struct receipt receipt;

    receipt_init(&receipt, wanted, proof_hooks(&scene->plan, wanted, ARRAY_LENGTH(wanted)));
    receipt_take(&receipt, stream.data, stream.length);
    receipt_close(&receipt);
    (void)proof_take(&scene->plan, &receipt, known, scene);
    proof_close(&scene->plan, proof_silence(&receipt), known, scene);
    receipt_deinit(&receipt);
    bytes_deinit(&stream);
}

struct expected {
    const char *name;
    size_t n_profilers, n_hooks;
    const char *said;
    const char *why; /* of the last step; NULL for nothing */
    uint32_t code;   /* likewise */
};

static const struct expected cases[] = {
    {"loaded", 1, 0, "/m.so loaded", NULL, 0},
    {"absent", 1, 0, "/m.so not_loaded", "could not be loaded, or has no such class", 0x8007007E},
    {"no-export", 1, 0, "/m.so not_loaded", "could not be loaded, or has no such class",
     0x8007007F},
    {"initialize-fails", 1, 0, "/m.so not_loaded", "was loaded, and its Initialize failed",
     0x80004005},
    {"cancelled", 1, 0, "/m.so not_loaded", "wants no part in this process", 0},
    {"older", 1, 0, "/m.so loaded", "was made for older runtimes", 0},
    {"two", 2, 0, "/n.so loaded, /m.so loaded", NULL, 0},
    /* Of the one that was refused no name is said. */
    {"second", 2, 0, "/n.so not_loaded, /m.so loaded", NULL, 0},
    {"prevented", 1, 0, "/m.so not_loaded", "is kept out by a setting of the program", 0},
    {"misconfigured", 1, 0, "/m.so unknown", "was not spoken of by the runtime", 0},
    {"hook", 0, 2, "/HookA.dll loaded, /HookB.dll unknown", "was not spoken of by the runtime", 0},
    {"hooks-profiler", 1, 2, "/m.so loaded, /HookA.dll loaded, /HookB.dll loaded", NULL, 0},
    {"hook-throws", 1, 1, "/m.so loaded, /HookA.dll unknown",
     "was not spoken of before the runtime, or its session, ended", 0},
};

START_TEST(what_was_recorded_is_judged)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases) * 4; i++) {
        const struct expected *expected = &cases[i / 4];
        struct scene scene;
        const struct step *last;

        begin(&scene, expected->n_profilers, expected->n_hooks);
        ck_assert(proof_is_wanted(&scene.plan));
        ck_assert(proof_needs_modules(&scene.plan) == (expected->n_hooks > 0));
        prove(&scene, expected->name, 8 + (unsigned)i % 4);
        ck_assert_str_eq(said(&scene), expected->said);
        last = &scene.plan.steps[scene.plan.n_steps - 1];
        ck_assert_pstr_eq(last->proof_why, expected->why);
        ck_assert_uint_eq(last->proof_code, expected->code);
        ck_assert_uint_eq(scene.n_told, scene.plan.n_steps);
        plan_deinit(&scene.plan);
    }
}
END_TEST

/* Only an answer of OK can be proved or not. */
START_TEST(what_was_not_sent_is_not_spoken_of)
{
    static const enum step_result results[] = {STEP_PENDING, STEP_REFUSED, STEP_LOST, STEP_SKIPPED};

    for (size_t i = 0; i < ARRAY_LENGTH(results); i++) {
        struct scene scene;

        begin(&scene, 1, 1);
        scene.plan.steps[0].result = results[i];
        scene.plan.steps[1].result = results[i];
        ck_assert(!proof_is_wanted(&scene.plan) && !proof_needs_modules(&scene.plan));
        prove(&scene, "hooks-profiler", 10);
        ck_assert_str_eq(said(&scene), "/m.so open, /HookA.dll open");
        ck_assert_uint_eq(scene.n_told, 0);
        plan_deinit(&scene.plan);
    }
}
END_TEST

/* A primer that wants no part in the process any more has done its work. */
START_TEST(a_primer_that_leaves_was_loaded)
{
    struct scene scene;

    begin(&scene, 1, 0);
    scene.plan.steps[0].kind = STEP_PRIMER;
    prove(&scene, "cancelled", 9);
    ck_assert_str_eq(said(&scene), "/m.so loaded");
    plan_deinit(&scene.plan);
    begin(&scene, 1, 0);
    scene.plan.steps[0].kind = STEP_PRIMER;
    prove(&scene, "absent", 9);
    ck_assert_str_eq(said(&scene), "/m.so not_loaded");
    plan_deinit(&scene.plan);
}
END_TEST

/* What is known stays; what is not said by the end is unknown, and why is said. */
START_TEST(the_end_is_told_once)
{
    struct scene scene;

    begin(&scene, 2, 0);
    proof_close(&scene.plan, "was not asked about", known, &scene);
    ck_assert_str_eq(said(&scene), "/n.so unknown, /m.so unknown");
    ck_assert_str_eq(scene.plan.steps[0].proof_why, "was not asked about");
    ck_assert_uint_eq(scene.n_told, 2);
    proof_close(&scene.plan, "another", known, &scene);
    ck_assert_str_eq(scene.plan.steps[0].proof_why, "was not asked about");
    ck_assert_uint_eq(scene.n_told, 2);
    plan_deinit(&scene.plan);
}
END_TEST

START_TEST(silence_has_reasons)
{
    static const uint8_t garbage[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    struct receipt receipt;

    receipt_init(&receipt, NULL, 0);
    receipt_take(&receipt, garbage, sizeof garbage);
    ck_assert_ptr_nonnull(strstr(proof_silence(&receipt), "cannot be read"));
    receipt_deinit(&receipt);
    /* Which is no fault of the runtime's. */
    receipt_init(&receipt, NULL, 0);
    receipt.stream = RECEIPT_UNREADABLE;
    receipt.why = NETTRACE_E_MEMORY;
    ck_assert_ptr_nonnull(strstr(proof_silence(&receipt), "memory ran out"));
    receipt_deinit(&receipt);
    receipt_init(&receipt, NULL, 0);
    receipt.has_gaps = true;
    receipt_close(&receipt);
    ck_assert_ptr_nonnull(strstr(proof_silence(&receipt), "was lost"));
    receipt_deinit(&receipt);
}
END_TEST

UNIT_TESTS(what_was_recorded_is_judged, what_was_not_sent_is_not_spoken_of,
           a_primer_that_leaves_was_loaded, the_end_is_told_once, silence_has_reasons);
