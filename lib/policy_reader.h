/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rooms that read a policy share: where problems go, how a mapping is
 * taken apart into the keys of the language, and how single values are read.
 *
 * Internal to policy_read*.c and policy_value*.c; everybody else sees
 * policy_read.h. Reading goes on after an error, so that all of them are told:
 * a value that could not be read keeps its default, and the policy is thrown
 * away at the end. Running out of memory is sticky in `error`; whoever
 * allocates tells it to the reader and goes on with nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/policy.h"
#include "lib/policy_key.h"
#include "lib/policy_read.h"
#include "lib/util.h"
#include "lib/yaml_tree.h"

enum {
    READER_SHOWN_MAX = 80, /* characters of foreign text in a message */
    READER_SHOWN_SLOTS = 4,
    READER_GLOB_MAX = 4096, /* bytes: as long as a path can be */
};

struct reader_problem {
    struct policy_problem problem;
    size_t file_number; /* files in the order of reading */
    size_t number;      /* problems in the order of finding */
};

struct reader {
    struct policy *policy;
    const struct policy_host *host; /* never NULL */
    const char *file;               /* the one at hand; owned by the policy */
    bool is_incomplete;             /* a file could not be read, so rules may be missing */
    int error;                      /* 0 or -ENOMEM */
    struct reader_problem *problems;
    size_t n_problems;            /* kept */
    struct reader_problem *worst; /* of those, once there are too many; NULL: not known */
    size_t n_found;
    size_t n_errors;
    char *shown[READER_SHOWN_SLOTS];
    size_t next_shown;
};

void reader_init(struct reader *reader, struct policy *policy, const struct policy_host *host);
void reader_deinit(struct reader *reader);

/* From here on places are in a file of that name. */
void reader_enter_file(struct reader *reader, const char *name);

/* Hands over what was found, in order. */
void reader_take_problems(struct reader *reader, struct policy_problems *ret_problems);

struct policy_place reader_place(const struct reader *reader, const struct yaml_node *node);

/* The texts of messages are ours; what comes from a file goes in as reader_show() of it. */
void reader_error(struct reader *reader, const struct yaml_node *at, const char *format, ...)
    PRINTF_LIKE(3, 4);
void reader_warn(struct reader *reader, const struct yaml_node *at, const char *format, ...)
    PRINTF_LIKE(3, 4);
void reader_error_at(struct reader *reader, const struct policy_place *place, const char *format,
                     ...) PRINTF_LIKE(3, 4);
void reader_warn_at(struct reader *reader, const struct policy_place *place, const char *format,
                    ...) PRINTF_LIKE(3, 4);

/* The text as it may be shown, cut when it is long; good for the next READER_SHOWN_SLOTS calls. */
const char *reader_show(struct reader *reader, const char *text);

/* "file:line:column" of a place, escaped; good for as long. */
const char *reader_show_place(struct reader *reader, const struct policy_place *place);

/* Zeroed memory for n things; NULL when there are none to be, or memory is out, which the reader is
 * told. */
void *reader_alloc(struct reader *reader, size_t n, size_t size);

/* A copy of the text; NULL when memory is out, which the reader is told. */
char *reader_copy(struct reader *reader, const char *text);

/* The keys of one mapping. */
struct reader_view {
    enum policy_section section;
    const char *what; /* it is, in messages */
    const struct yaml_node *node;
    const struct yaml_node *keys[KEY_COUNT]; /* NULL: not there */
    /* NULL: not there, or there is nothing to read since something was said about it already */
    const struct yaml_node *values[KEY_COUNT];
    bool has_repeats[KEY_COUNT];
    bool is_misspelt[KEY_COUNT]; /* a key that is none is like this one */
};

/*
 * Takes a mapping apart. Says which keys are unknown, repeated, without value
 * or not in force. False when `node` is no mapping, or an empty one, which is
 * said too. `what` is what it is called in messages; NULL: as its section.
 */
bool reader_view(struct reader *reader, struct reader_view *view, enum policy_section section,
                 const char *what, const struct yaml_node *node) MUST_CHECK;

/* The value of a key that has to be there; NULL, and said, when it is not. */
const struct yaml_node *reader_need(struct reader *reader, const struct reader_view *view,
                                    enum policy_key_id id) MUST_CHECK;

/* A name that must not occur twice. */
struct reader_name {
    const char *name;
    struct policy_place place;
};

/*
 * Says which of the names occur twice, at the later place, naming the earlier
 * one: WHAT "name" is already at PLACE; `advice` is what to do.
 */
void reader_find_repeats(struct reader *reader, const struct reader_name *names, size_t n,
                         const char *what, const char *advice);

/*
 * Readers of single values (policy_value.c). Each says what is wrong with the
 * value, and what the key takes, and returns false; then nothing is written.
 */

bool value_is_empty(const struct yaml_node *node); /* nothing is written there */
bool value_is_null(const struct yaml_node *node);  /* null or ~, without quotes */

/* The number of a user or group, in decimal digits. */
bool value_is_id(const char *text, uint32_t *ret_id) MUST_CHECK;

/* Says that the key takes something else than this. */
void value_refuse(struct reader *reader, enum policy_key_id id, const struct yaml_node *node);
/* The same of something that is called `name`, and takes what the key takes. */
void value_refuse_as(struct reader *reader, const char *name, enum policy_key_id id,
                     const struct yaml_node *node);

/* A text that is not empty; it belongs to the tree. */
bool value_text(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                const char **ret_text) MUST_CHECK;
/* Also without control characters, at most `max` bytes; the caller frees it. */
bool value_name(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                size_t max, char **ret_name) MUST_CHECK;
/* A key that is the name of a variable. */
bool value_variable(struct reader *reader, const struct yaml_node *key) MUST_CHECK;
/* Absolute and spelled in one way only; it belongs to the tree. */
bool value_path(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                const char **ret_path) MUST_CHECK;
bool value_bool(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                bool *ret_value) MUST_CHECK;
bool value_number(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                  uint32_t *ret_number) MUST_CHECK;
bool value_span(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                struct span *ret_span) MUST_CHECK;
/* The number of the choice in its row. */
bool value_choice(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                  unsigned *ret_choice) MUST_CHECK;
bool value_file_mode(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                     uint32_t *ret_mode) MUST_CHECK;
bool value_clsid(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                 struct guid *ret_clsid) MUST_CHECK;
/* A list that is not empty. */
bool value_list(struct reader *reader, enum policy_key_id id,
                const struct yaml_node *node) MUST_CHECK;
/* A mapping that is not empty, of names that are not keys of the language. Names that occur twice
 * are said. */
bool value_names(struct reader *reader, enum policy_key_id id,
                 const struct yaml_node *node) MUST_CHECK;
/* A list of names; the caller frees it and them. */
bool value_name_list(struct reader *reader, enum policy_key_id id, const struct yaml_node *node,
                     char ***ret_names, size_t *ret_n) MUST_CHECK;
/* One glob or a list, of something that is called `name`; the caller frees it and them. */
bool value_globs(struct reader *reader, const char *name, enum policy_key_id id,
                 const struct yaml_node *node, char ***ret_globs, size_t *ret_n) MUST_CHECK;

/* Reads the value of a key that is not in force, for its errors. */
void value_check(struct reader *reader, enum policy_key_id id, const struct yaml_node *node);

/*
 * Sections, each in the file of its name.
 */

void policy_read_listens(struct reader *reader, const struct yaml_node *node);
/* The sockets that the host has for a policy that leaves them out. */
void policy_take_usual_listen(struct reader *reader);
void policy_take_usual_control(struct reader *reader);
void policy_read_control(struct reader *reader, const struct yaml_node *node);
void policy_read_limits(struct reader *reader, const struct yaml_node *node);
void policy_read_defaults(struct reader *reader, const struct yaml_node *node);
void policy_read_rules(struct reader *reader, const struct yaml_node *node);
void policy_read_match(struct reader *reader, const struct yaml_node *node,
                       struct policy_rule *rule);
void policy_read_steps(struct reader *reader, const struct reader_view *view,
                       struct policy_rule *rule);
/* `primer_path`, in a rule or in `defaults`. */
void policy_read_primer_path(struct reader *reader, const struct yaml_node *node,
                             struct policy_defaults *keys);
void policy_read_bundles(struct reader *reader, const struct yaml_node *node);

/* Warns when a variable that is set over the diagnostic port will not do what its name promises;
 * `value` NULL: it is unset. */
void policy_read_env_advice(struct reader *reader, const struct yaml_node *key, const char *value);

/* The name of a rule that is to be left out. */
struct reader_disable {
    char *name;
    struct policy_place place;
};

/*
 * What can be said and done only when all files are read: names that occur
 * twice, rules to leave out, rules that are never reached, facts that are
 * wanted.
 */
void policy_read_whole(struct reader *reader, const struct reader_disable *disables,
                       size_t n_disables);
