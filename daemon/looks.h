/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looks at processes, by the workers of the probe. A look has a short time; when
 * that is over, what is not there is unknown, its worker is given up, and the
 * user whose process did that gets unknown at once for a while. Nobody else is
 * delayed by it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/questions.h"
#include "lib/action.h"
#include "lib/moment.h"
#include "lib/util.h"

struct facts;
struct look;
struct looks;
struct workers;

/* The user of questions that are about no runtime: no user has this number. */
#define LOOKS_NOBODY UINT32_MAX

struct look_owner {
    /* Its turn has come. False when nobody waits for the answer any more: it is ended. */
    bool (*begin)(struct look *look);
    /* The answer, which is taken; NULL: memory ran out. It is ended after that. */
    void (*answer)(struct look *look, struct facts *facts);
    void (*end)(struct look *look);
};

/* Part of whatever its owner keeps of it. */
struct look {
    struct questions_entry entry; /* `uid` is the owner's to set, as are the next two */
    const struct look_owner *owner;
    const struct action_question *question;
};

struct looks_options {
    struct workers *workers;
    /* Too many workers are stuck, so all is unknown; or not any more. */
    void (*be_stuck)(void *context, bool is_stuck);
    void *context;
};

/* NULL when memory is out. */
struct looks *looks_new(const struct looks_options *options) MUST_CHECK;
/* Ends all looks without an answer. Returns NULL. */
struct looks *looks_free(struct looks *looks);

/* Takes one. False when memory is out: it is not taken. Its owner is called later. */
bool looks_put(struct looks *looks, struct look *look) MUST_CHECK;

/* The answer is wanted by the rules of a handle of the process: it has not ended, so all that was
 * read is of this process. -1: by its start time alone. */
void looks_judge(struct facts *facts, const struct action_question *question, int pidfd);

/* When to call looks_run at the latest. */
struct moment looks_next(const struct looks *looks);
/* Starts looks, and ends those whose time is over; for some milliseconds. */
void looks_run(struct looks *looks);
