/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is to be done to one runtime: the steps of its rule in the order in
 * which they are sent, what became of each, and what is left to take back.
 *
 * Order: variables, then profilers in reverse order of wish (measured on 8 to
 * 11: the last one sent loads first), then all hooks in one command (their
 * paths joined by ':' run in that order). What cannot be withdrawn comes last.
 *
 * Where a profiler may need it, the primer (shim/) is the last profiler that is
 * sent, so that it loads before all others; two variables in front of them tell it
 * what to do. One for all: a second one would change the environment under the
 * threads of profilers that are there already. Whether it is needed does not
 * change how a plan is laid out, which the record of it goes by: where it is not,
 * its steps are skipped.
 *
 * Resume is not a step of the plan: it is the business of runtime.h, which adds
 * it to the list for the record.
 *
 * A plan knows nothing of connections and clocks; whoever runs it asks what is
 * next, sends it, and says what came of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/command.h"
#include "lib/facts.h"
#include "lib/moment.h"
#include "lib/policy.h"
#include "lib/preflight.h"
#include "lib/util.h"

struct attributes;
struct bytes;
struct guid;
struct record;

enum step_kind {
    STEP_VARIABLE,
    STEP_PROFILER,
    STEP_PRIMER,
    STEP_HOOK,
    STEP_RESUME,
    STEP_ATTACH, /* an operator's, and in no plan: see runtime.h */
};

enum step_result {
    STEP_PENDING,
    STEP_OK,
    STEP_REFUSED, /* by the runtime, or by our own checks before anything was sent */
    STEP_LOST, /* it, or taking it back, was sent and not answered: nobody knows if it is there */
    STEP_SKIPPED, /* not sent: the plan ended before it, or it is not needed; or by `mode: observe`
                   */
    STEP_ROLLED_BACK, /* was ok, and was taken back */
};

/* Whether a profiler or hook that was answered OK is in. */
enum step_proof {
    PROOF_OPEN,       /* nothing is known yet, or there is nothing to know */
    PROOF_LOADED,     /* on the word of the runtime */
    PROOF_NOT_LOADED, /* likewise */
    PROOF_UNKNOWN,
};

enum { STEP_PROOFS = PROOF_UNKNOWN + 1 };

enum step_old {
    STEP_OLD_UNKNOWN,
    STEP_OLD_ABSENT,
    STEP_OLD_PRESENT,
};

/* What the file of a profiler says about how it is configured. */
enum plan_reading {
    PLAN_READING_UNKNOWN,
    PLAN_READING_NATIVE,  /* by the environment of the process, and not by the runtime's */
    PLAN_READING_RUNTIME, /* by the runtime's */
};

struct step {
    enum step_kind kind;
    enum step_result result;
    bool is_required;
    bool is_left_out;     /* SKIPPED, and the plan goes on without it */
    bool is_for_conflict; /* switches off a profiler that its environment configures */
    bool was_sent;        /* at least once: the runtime may have taken it */
    bool is_unanswered;   /* the last time that it was sent */
    bool was_lost;      /* an earlier time: it may have been taken, whatever the last answer says */
    bool is_forgiven;   /* lost with an earlier daemon, and the plan goes on without it; PENDING: if
                         * it is lost */
    bool undo_failed;   /* taking it back was tried, and it stays */
    bool may_be_undone; /* taking it back was sent, and no answer told what came of it */
    uint32_t hresult;   /* of the last answer */
    unsigned attempts;  /* how often it was sent */
    struct moment at;   /* when the result was known */
    const char *why;    /* a constant: why it was refused or skipped without asking, what of it was
                         * lost, or what is wrong though it was answered OK; else NULL */
    enum preflight code;       /* what is wrong with its file; PREFLIGHT_GOOD otherwise */
    char *detail;              /* of that: foreign text, or NULL */
    enum plan_reading reading; /* of a profiler: by what its file shows */
    enum step_proof proof;     /* of a profiler, the primer or a hook */
    const char *proof_why;     /* a constant, the end of a sentence that starts with the name of the
                                * step; NULL when there is nothing to add */
    uint32_t proof_code;       /* HRESULT that the runtime gave for it; 0 for none */
    bool has_identity;         /* its file was looked into before it was sent, and was this one */
    struct facts_identity identity;
    const char *name;    /* the variable, or the path; NULL for Resume. The policy's, or this: */
    char *own_name;      /* the path that its pattern stands for, once that is known */
    const char *pattern; /* of its path, the policy's; NULL for a plain one */
    const char *value;   /* of a variable; NULL unsets. Never shown. The policy's, or the plan's */
    bool is_for_primer;  /* a variable that is the primer's and not the rule's */
    const struct guid *clsid;
    enum policy_primer primer; /* of a profiler */
    enum step_old old;         /* what the variable was before */
    char *old_value;
    unsigned undo_attempts;
    struct span retry_delay;   /* the last wait before a profiler was sent again */
    struct moment retry_until; /* MOMENT_NEVER while it was not refused yet */
};

/* The variables that switch on profilers of the environment: of all versions, and from .NET 11 on.
 */
#define PLAN_SWITCH     "CORECLR_ENABLE_PROFILING"
#define PLAN_SWITCH_NEW "DOTNET_ENABLE_PROFILING"

struct plan {
    struct step *steps;
    size_t n_steps;
    size_t capacity;
    bool knows_primer;      /* it was laid out by a daemon that knows the primer */
    char *primer_names;     /* of all variables, with PRIMER_SEPARATOR between them */
    char *primer_libraries; /* likewise, the paths of the profilers that may need it */
};

enum {
    /* Bytes of old values that one plan may keep. */
    PLAN_OLD_VALUES_MAX = 64 * 1024,
    /* Entries for Resume; with more ports the last one counts on. */
    PLAN_RESUMES_MAX = 8,
};

void plan_init(struct plan *plan);
void plan_deinit(struct plan *plan);

/* Lays out the steps of a rule, all pending, or as daemons did that knew of no primer. The plan
 * points into the policy. 0 or -ENOMEM. */
int plan_build(struct plan *plan, const struct policy_rule *rule, bool knows_primer) MUST_CHECK;

/* Writes down how far it came; `sending` is about to be sent, or NULL. */
void plan_record(const struct plan *plan, const struct step *sending, struct record *record);

/*
 * Goes on where an earlier daemon ended. What was sent and not answered is sent
 * again when it is a variable. A hook or profiler is lost, unless its answer can
 * still be read (`is_awaited`); where `is_lost_forgiven` it is no failure should
 * it be lost. False when the record is not that of such a plan.
 */
bool plan_recall(struct plan *plan, const struct record *record, bool is_awaited,
                 bool is_lost_forgiven, struct moment now) MUST_CHECK;

/* The hook or profiler whose answer is still to be read; for hooks the first one of the one
 * command. NULL when there is none. */
struct step *plan_awaited(struct plan *plan);

/* Adds a step for Resume and returns it, or the last one when there are enough; NULL when memory is
 * out and there is none. */
struct step *plan_add_resume(struct plan *plan);

/*
 * The checks that need no question to the runtime. Each refuses the steps that
 * cannot be done, with the reason.
 */

/* True when the primer has something to do for a profiler of that key; one that nobody could look
 * into may need it. */
bool plan_needs_primer(enum policy_primer primer, enum plan_reading reading);

/* The files that are to be looked into, or has room for: how many. */
size_t plan_files(const struct plan *plan, const char **ret_files);

/* By the files as the process sees them; `facts` answers for every path in plan_files. Patterns
 * become paths. */
void plan_check_files(struct plan *plan, const struct facts *facts,
                      const struct attributes *attributes);

/* One step of them. */
void plan_check_file(struct step *step, const struct facts *facts,
                     const struct attributes *attributes);
/* The files that were looked into and that the runtime is to load, or has room for: how many. */
size_t plan_loaded_files(const struct plan *plan, const char **ret_files);

/* Whether the file of a step is one of those, and not the same any more: that is said of the step,
 * which stays done. `facts` answers for every path in plan_loaded_files. */
bool plan_compare_file(struct step *step, const struct facts *facts) MUST_CHECK;

/* Refuses a step that is pending, or leaves it out, with the reason: a constant, the end of a
 * sentence that starts with the name of the step. A required profiler that is left out is missed in
 * the outcome. */
void plan_refuse(struct step *step, const char *why);
void plan_leave_out(struct step *step, const char *why);

/* Tells the primer of the profilers by their present paths. 0 or -ENOMEM. */
int plan_name_libraries(struct plan *plan) MUST_CHECK;

/* What was found out about the primer, or about those that it is for, has a say in the rest. The
 * other checks do it themselves. */
void plan_judge_primer(struct plan *plan);

/* By what is known of the runtime: its version, its kind, whether it is held. */
void plan_check_target(struct plan *plan, const struct command_target *target);

/* One step of them. */
void plan_check_step(struct step *step, const struct command_target *target);

/* Takes old values of the plan's variables out of the environment in `attributes`, as far as it is
 * known. 0 or -ENOMEM. */
int plan_take_old_values(struct plan *plan, const struct attributes *attributes) MUST_CHECK;

/* Sets the old value of every step for that variable; `value` NULL says that it was absent. */
int plan_set_old_value(struct plan *plan, const char *name, const char *value) MUST_CHECK;

/* True when version and kind have to be asked for: there is a hook, a profiler or an unset, or a
 * variable that only an unset could take back. */
bool plan_needs_target(const struct plan *plan);

/* True of a step that has a runtime load a file. */
bool plan_has_file(const struct step *step);

/* True of a variable that is to be taken away. */
bool plan_is_unset(const struct step *step);

/* True when an old value is not known, so that the runtime has to be asked for its environment. */
bool plan_needs_old_values(const struct plan *plan);

/* True when a required step was refused, lost or skipped: the plan has failed. */
bool plan_has_failed(const struct plan *plan);

/* True when anything of it was sent. */
bool plan_was_sent(const struct plan *plan);

/* The next step to send; for hooks the first one of the one command. NULL when there is none. */
struct step *plan_next(struct plan *plan);

/* What a step is sent by. */
enum command_id plan_command(const struct step *step);

/* Writes the message of that step into an empty buffer, with all pending hooks for a hook. 0,
 * -ENOMEM or an error of wire.h. */
int plan_write(const struct plan *plan, const struct step *step, struct bytes *message) MUST_CHECK;

/* Counts an attempt: of all pending hooks for a hook. */
void plan_sent(struct plan *plan, struct step *step);

/* Says what became of the step: of all pending hooks for a hook. */
void plan_answered(struct plan *plan, struct step *step, enum step_result result, uint32_t hresult,
                   struct moment now);

/* The last variable that the runtime has, or may have, and that has to be taken back; not one that
 * this failed for. NULL when there is none. */
struct step *plan_next_undo(struct plan *plan);

/* True when the protocol allows it for that target: an old value is known, and an unset is only
 * sent where it does not kill. */
bool plan_can_undo(const struct step *step, const struct command_target *target);

/* Nothing more will be taken back. */
void plan_forget_old_values(struct plan *plan);

int plan_write_undo(const struct step *step, struct bytes *message) MUST_CHECK;

/* Counts an attempt to take the step back, and says what became of the last one. The first answer
 * tells all; after one that was lost, a refusal tells nothing. */
void plan_undo_sent(struct step *step);
void plan_undo_answered(struct step *step, bool is_done, struct moment now);

/* Nothing more is done about a step: when it was ok and may have been taken back, it is lost. True
 * when it is now. */
bool plan_doubt(struct step *step, struct moment now);

/* Ends a step that is pending, as lost when it was sent and never answered, else as skipped; and
 * one whose taking back was sent and never answered. False when there was nothing to end. */
bool plan_skip(struct step *step, const char *why, struct moment now);

/* Ends every step in that way. */
void plan_skip_rest(struct plan *plan, const char *why, struct moment now);

enum plan_outcome {
    PLAN_APPLIED,     /* every required step is ok, and none is forgiven or missed */
    PLAN_FAILED,      /* nothing was sent */
    PLAN_ROLLED_BACK, /* sent, and all of it withdrawn */
    PLAN_PARTIAL,     /* something stays, or may */
};

/* Why a plan that has not failed is not applied as it is written. */
const char *plan_shortfall(const struct plan *plan);

/* Of a plan that has ended. */
enum plan_outcome plan_outcome(const struct plan *plan);

const char *step_kind_name(enum step_kind kind);
const char *step_result_name(enum step_result result);
/* "unknown" for PROOF_OPEN. */
const char *step_proof_name(enum step_proof proof);
