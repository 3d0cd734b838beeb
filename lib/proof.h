/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a receipt proves: of each profiler and hook of a plan that was answered
 * OK, whether it is in.
 *
 * "Loaded" is only what the runtime itself said was loaded: an answer of OK means
 * that a command was taken (measured on 8 to 11: it comes for absent files, wrong
 * architectures and hooks that are switched off). That something was not said is
 * no proof of the opposite: the runtime may not have come to it.
 *
 * When the session is opened and ended is not known here.
 */

#include <stdbool.h>

#include "lib/receipt.h"
#include "lib/util.h"

struct plan;
struct step;

/* True of a step that was answered OK and may be in or not. */
bool proof_is_about(const struct step *step);

/* True when there is such a step in the plan. */
bool proof_is_wanted(const struct plan *plan);

/* True when a hook is among them, so that loaded modules have to be told of. */
bool proof_needs_modules(const struct plan *plan);

/* The paths of those hooks, as many as fit; returns how many there are. They stay the plan's. */
size_t proof_hooks(const struct plan *plan, struct receipt_hook *hooks, size_t capacity);

/* Called with each step whose proof has become known. */
typedef void proof_known(void *context, const struct step *step);

/* Takes over what was said by now. True when everything is known. */
bool proof_take(struct plan *plan, const struct receipt *receipt, proof_known *known,
                void *context);

/* Nothing more will be said: what is still open is unknown, and `why` says why: a constant, the end
 * of a sentence that starts with the name of the step. */
void proof_close(struct plan *plan, const char *why, proof_known *known, void *context);

/* Why nothing more was said in a receipt that has ended, for proof_close. */
const char *proof_silence(const struct receipt *receipt);
