/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/proof.h"

#include "lib/plan.h"

bool proof_is_about(const struct step *step)
{
    return step->result == STEP_OK && plan_has_file(step);
}

static bool is_open(const struct step *step)
{
    return proof_is_about(step) && step->proof == PROOF_OPEN;
}

static size_t count(const struct plan *plan, bool (*is_so)(const struct step *step))
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_steps; i++)
        n += is_so(&plan->steps[i]);
    return n;
}

bool proof_is_wanted(const struct plan *plan)
{
    return count(plan, proof_is_about) > 0;
}

bool proof_needs_modules(const struct plan *plan)
{
    return proof_hooks(plan, NULL, 0) > 0;
}

size_t proof_hooks(const struct plan *plan, struct receipt_hook *hooks, size_t capacity)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (!proof_is_about(step) || step->kind != STEP_HOOK)
            continue;
        if (n < capacity)
            hooks[n].path = step->name;
        n++;
    }
    return n;
}

static void know(struct step *step, enum step_proof proof, const char *why)
{
    step->proof = proof;
    step->proof_why = why;
}

/* What the runtime said about a profiler. */
static void judge(struct step *step, const struct profiler_message *message, bool is_older)
{
    switch (message->kind) {
    case PROFILER_MESSAGE_LOADED:
        know(step, PROOF_LOADED, is_older ? "was made for older runtimes" : NULL);
        return;
    case PROFILER_MESSAGE_CANCELLED:
        /* The primer leaves when it has done its work. */
        if (step->kind == STEP_PRIMER)
            know(step, PROOF_LOADED, NULL);
        else
            know(step, PROOF_NOT_LOADED, "wants no part in this process");
        return;
    case PROFILER_MESSAGE_FAILED_INSTANTIATION:
        know(step, PROOF_NOT_LOADED, "could not be loaded, or has no such class");
        break;
    case PROFILER_MESSAGE_FAILED_INITIALIZATION:
        know(step, PROOF_NOT_LOADED, "was loaded, and its Initialize failed");
        break;
    case PROFILER_MESSAGE_FAILED:
    case PROFILER_MESSAGE_MISCONFIGURED:
        know(step, PROOF_NOT_LOADED, "was refused by the runtime");
        break;
    case PROFILER_MESSAGE_ALREADY_LOADED:
    case PROFILER_MESSAGE_PREVENTED:
    case PROFILER_MESSAGE_OLDER_VERSION:
    case PROFILER_MESSAGE_ATTACH_REQUESTED:
    case PROFILER_MESSAGE_OTHER:
        return;
    }
    step->proof_code = message->has_hresult ? message->hresult : 0;
}

static void take_step(struct step *step, const struct receipt *receipt)
{
    const struct profiler_message *message;
    bool is_older;

    if (step->kind == STEP_HOOK) {
        if (receipt_hook(receipt, step->name))
            know(step, PROOF_LOADED, NULL);
        return;
    }
    message = receipt_profiler(receipt, step->clsid, &is_older);
    if (message)
        judge(step, message, is_older);
}

static bool is_open_profiler(const struct step *step)
{
    return is_open(step) && step->kind == STEP_PROFILER;
}

/* What is said without a name is said of all profilers of which nothing else was. */
static void know_rest(struct plan *plan, const char *why, proof_known *known, void *context)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (!is_open_profiler(step))
            continue;
        know(step, PROOF_NOT_LOADED, why);
        known(context, step);
    }
}

/* Which one was refused because another was there is not said: when as many were as there are of
 * which nothing else was said, it was those. */
static void take_nameless(struct plan *plan, const struct receipt *receipt, proof_known *known,
                          void *context)
{
    if (receipt_count(receipt, PROFILER_MESSAGE_PREVENTED) > 0)
        know_rest(plan, "is kept out by a setting of the program", known, context);
    else if (receipt_count(receipt, PROFILER_MESSAGE_ALREADY_LOADED) ==
             count(plan, is_open_profiler))
        know_rest(plan, "came when another profiler was loaded already", known, context);
}

bool proof_take(struct plan *plan, const struct receipt *receipt, proof_known *known, void *context)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (!is_open(step))
            continue;
        take_step(step, receipt);
        if (step->proof != PROOF_OPEN)
            known(context, step);
    }
    take_nameless(plan, receipt, known, context);
    return count(plan, is_open) == 0;
}

void proof_close(struct plan *plan, const char *why, proof_known *known, void *context)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (!is_open(step))
            continue;
        know(step, PROOF_UNKNOWN, why);
        known(context, step);
    }
}

const char *proof_silence(const struct receipt *receipt)
{
    if (receipt->stream == RECEIPT_UNREADABLE && receipt->why == NETTRACE_E_MEMORY)
        return "is not known of: memory ran out while the runtime spoke of it";
    if (receipt->stream == RECEIPT_UNREADABLE)
        return "is not known of: what the runtime says of it cannot be read by this version";
    if (receipt->has_gaps)
        return "is not known of: some of what the runtime said was lost";
    if (receipt->stream == RECEIPT_CUT)
        return "was not spoken of before the runtime, or its session, ended";
    return "was not spoken of by the runtime";
}
