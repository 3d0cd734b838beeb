/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy as the broker uses it: complete, valid, and never changed after it
 * was read. Runtimes keep a reference to the policy that decided about them,
 * so a reload replaces the object and leaves them alone.
 *
 * How it is written is not known here (see policy_read.h), nor is who matches
 * (match.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/attributes.h"
#include "lib/guid.h"
#include "lib/moment.h"
#include "lib/record.h"
#include "lib/util.h"

struct bytes;
struct names;

/* Where something is written. Lines and columns count from 1; columns count characters. */
struct policy_place {
    const char *file; /* the name of the source, owned by the policy */
    unsigned line;
    unsigned column;
};

enum selector_kind {
    SELECTOR_ALL,      /* every child */
    SELECTOR_ANY,      /* one child */
    SELECTOR_NOT,      /* its one child, a SELECTOR_ALL, does not */
    SELECTOR_TEXT,     /* one of the globs fits one text of the attribute */
    SELECTOR_VARIABLE, /* one of the globs fits the value of the variable `name` */
};

struct selector {
    enum selector_kind kind;
    struct policy_place place;
    enum attribute_id attribute; /* SELECTOR_TEXT */
    char *name;                  /* SELECTOR_VARIABLE */
    char **globs;                /* fnmatch without flags in the C locale */
    size_t n_globs;
    struct selector *children;
    size_t n_children;
    uint16_t number; /* unique in its rule, from 0, in the order of the text */
};

struct policy_variable {
    char *name;
    char *value; /* NULL: unset */
    bool is_required;
    struct policy_place place;
};

struct policy_hook {
    char *path;
    bool is_required;
    struct policy_place place;
};

/* Whether the variables of a rule are shown to native code before a profiler is loaded. */
enum policy_primer {
    POLICY_PRIMER_AUTO,   /* where it needs that */
    POLICY_PRIMER_ALWAYS, /* and where that cannot be done, it is not loaded */
    POLICY_PRIMER_NEVER,
};

struct policy_profiler {
    struct guid clsid;
    char *path;    /* as it is shown; with a pattern, as it is written, templates and all */
    char *pattern; /* of platform.h; NULL for a plain path */
    bool is_required;
    enum policy_primer primer;
    struct policy_place place;
};

enum policy_mode { POLICY_APPLY, POLICY_OBSERVE };
enum policy_match_unknown { POLICY_UNKNOWN_STOP, POLICY_UNKNOWN_NEXT };
enum policy_children { POLICY_CHILDREN_INHERIT, POLICY_CHILDREN_DETACH };
enum policy_on_conflict { POLICY_CONFLICT_SKIP, POLICY_CONFLICT_REPLACE, POLICY_CONFLICT_FAIL };
enum policy_verify { POLICY_VERIFY_AUTO, POLICY_VERIFY_RECEIPT, POLICY_VERIFY_OFF };
enum policy_on_lost { POLICY_LOST_SKIP, POLICY_LOST_FAIL };
enum policy_on_failure { POLICY_FAILURE_RESUME, POLICY_FAILURE_HOLD, POLICY_FAILURE_KILL };
/* What a runtime gets that runs already. */
enum policy_late { POLICY_LATE_RESUME, POLICY_LATE_ATTACH };
enum policy_on_stop { POLICY_STOP_AUTO, POLICY_STOP_KEEP, POLICY_STOP_RESUME };

/* The keys that `defaults` may set for every rule. */
struct policy_defaults {
    enum policy_children children;
    enum policy_on_conflict on_conflict;
    enum policy_verify verify;
    enum policy_on_lost on_lost;
    enum policy_on_failure on_failure;
    enum policy_late late;
    enum policy_primer primer; /* of profilers that do not say it themselves */
    char *primer_path;         /* NULL: where it was installed */
    struct span deadline;
    struct span command_timeout;
    struct span hold_limit; /* SPAN_FOREVER for `forever` */
};

struct policy_rule {
    char *name;
    struct policy_place place;
    struct selector match; /* a SELECTOR_ALL; without children for `match: all` */
    size_t n_selectors;    /* in `match`, itself included */
    bool any_container;    /* `container: any`; else only processes of the host */
    enum policy_match_unknown match_unknown;
    bool ignore;
    enum policy_mode mode;
    struct policy_variable *variables;
    size_t n_variables;
    struct policy_profiler *profilers; /* in the order of wish: the first is to load first */
    size_t n_profilers;
    struct policy_hook *hooks;
    size_t n_hooks;
    struct policy_defaults keys; /* what the rule says, else what `defaults` says */
};

struct policy_listen {
    char *name;
    char *path;
    bool has_mode; /* it is written; else it is the default */
    uint32_t mode;
    char *owner; /* name or number; NULL: left alone */
    char *group;
    struct policy_place place;
};

/* Who may do one kind of thing over the control socket, besides root. */
struct policy_right {
    uint32_t *users;
    size_t n_users;
    uint32_t *groups;
    size_t n_groups;
};

struct policy_control {
    char *path;
    bool has_mode;
    uint32_t mode;
    char *owner;
    char *group;
    /* As written, for the canonical form; the numbers they stand for are in the rights. */
    char **read_users, **read_groups, **admin_users, **admin_groups;
    size_t n_read_users, n_read_groups, n_admin_users, n_admin_groups;
    struct policy_right read;
    struct policy_right admin; /* includes nobody but who is named; admin implies read */
    struct policy_place place;
};

struct policy_limits {
    uint32_t runtimes;             /* not yet resumed, in all; fewer where descriptors are few */
    bool has_runtimes;             /* it is written; else it is the default */
    uint32_t runtimes_per_user;    /* not yet resumed */
    uint32_t silent;               /* connections without an advertise */
    struct span hello;             /* time for the advertise */
    uint32_t connections_per_user; /* 0: a quarter of the usable descriptors */
    uint32_t cookies_per_process;
    struct span late_after;
    bool allow_pid_identity;
    uint32_t history_records;
    struct span history_age;
};

enum { POLICY_HASH_SIZE = 65 }; /* SHA-256, hexadecimal, with its NUL */

struct policy_file {
    char *name;
    char hash[POLICY_HASH_SIZE]; /* of its bytes */
};

struct policy {
    unsigned n_references;
    struct policy_listen *listens;
    size_t n_listens;
    struct policy_control control;
    struct policy_limits limits;
    struct policy_defaults defaults;
    enum policy_on_stop on_stop;
    struct policy_rule *rules; /* first match wins; without those in `disable` */
    size_t n_rules;
    struct names *names; /* for the users and groups of this host */
    struct policy_file *files;
    size_t n_files;
    char hash[POLICY_HASH_SIZE]; /* of all its files, in order */
    uint32_t facts_wanted;       /* what the selectors of all rules need (facts.h) */
    char **strings;              /* names of sources, that places point to */
    size_t n_strings;
};

/* An empty policy with one reference, every default in force and no rule, no listener and no
 * control socket. NULL when memory is out. */
struct policy *policy_new(void) MUST_CHECK;

struct policy *policy_ref(struct policy *policy);

/* Gives a reference back; the last one frees the policy. NULL is allowed. Returns NULL. */
struct policy *policy_unref(struct policy *policy);

/* The first bytes of its hash, by which a record names it. */
void policy_id(const struct policy *policy, uint8_t ret_id[static RECORD_POLICY_SIZE]);

/* True when the rule sends something besides Resume. */
bool policy_rule_has_plan(const struct policy_rule *rule);

/* True when it has a hook or a profiler, or will have a value read from a file. */
bool policy_rule_is_guarded(const struct policy_rule *rule);

/*
 * Appends the canonical form: one YAML document that says everything, defaults
 * included, in a fixed order. Reading it gives the same policy, and printing
 * that the same text.
 */
void policy_print(const struct policy *policy, struct bytes *out);

const char *policy_mode_name(enum policy_mode mode);
const char *policy_match_unknown_name(enum policy_match_unknown match_unknown);
const char *policy_children_name(enum policy_children children);
const char *policy_verify_name(enum policy_verify verify);
const char *policy_on_conflict_name(enum policy_on_conflict on_conflict);
const char *policy_on_lost_name(enum policy_on_lost on_lost);
const char *policy_on_failure_name(enum policy_on_failure on_failure);
const char *policy_late_name(enum policy_late late);
const char *policy_primer_name(enum policy_primer primer);
const char *policy_on_stop_name(enum policy_on_stop on_stop);
