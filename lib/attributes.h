/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known about the process of a runtime, from which source.
 *
 * Every attribute is a list of texts: an exe has one, arguments have many, a
 * user has a name and a number. "Unknown" (it could not be read) and "absent"
 * (there is none) are different, and both say why.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct facts;
struct names;

enum attribute_id {
    ATTRIBUTE_EXE,       /* the resolved path, " (deleted)" stripped */
    ATTRIBUTE_ARGUMENTS, /* argv[0] first */
    ATTRIBUTE_ASSEMBLY,  /* the entry assembly, without .dll */
    ATTRIBUTE_CWD,
    ATTRIBUTE_USER,  /* name and number of the effective user, then of the owner if that differs */
    ATTRIBUTE_GROUP, /* names and numbers of the effective and all supplementary groups */
    ATTRIBUTE_UNIT,
    ATTRIBUTE_USER_UNIT,
    ATTRIBUTE_SLICE,
    ATTRIBUTE_CGROUP,
    ATTRIBUTE_CONTAINER,
    ATTRIBUTE_ENVIRON, /* NAME=VALUE each; values are never shown */
    ATTRIBUTE_PARENT,  /* the parent's exe */
    ATTRIBUTE_PORT,    /* the name of the listener */
};

enum { ATTRIBUTE_COUNT = ATTRIBUTE_PORT + 1 };

enum attribute_state {
    ATTRIBUTE_UNKNOWN,
    ATTRIBUTE_ABSENT,
    ATTRIBUTE_PRESENT,
};

struct attribute {
    enum attribute_state state;
    const char *source; /* a constant: "/proc/PID/exe", "the socket", ... */
    const char *why;    /* a constant: why it is unknown or absent; "" when present */
    bool is_cut;        /* there were more texts, or longer ones, than are kept */
    size_t n_texts;
    const char **texts; /* each NUL-terminated, inside `block` */
    char *block;
};

struct attributes {
    int32_t pid;
    uint64_t start_time; /* clock ticks after boot, field 22 of /proc/PID/stat; 0 when unknown */
    uint32_t uid;        /* effective; UINT32_MAX while unknown */
    uint32_t gid;        /* likewise */
    uint32_t *groups;    /* supplementary */
    size_t n_groups;
    uint64_t ns_pid;  /* in its innermost pid namespace; 0 when unknown */
    size_t n_ns_pids; /* pid namespaces it is in, as seen from ours; 0 when unknown */
    struct attribute list[ATTRIBUTE_COUNT];
};

/* All unknown, "not asked for". */
void attributes_init(struct attributes *attributes);
void attributes_deinit(struct attributes *attributes);

/*
 * Works the attributes out from an answer to a question about process `pid`.
 * What the answer has nothing about stays as it was, so a second answer adds to
 * the first; what could not be read takes away nothing that was known. Of a
 * process that was not alive at the end of reading everything counts as not
 * read, since it may have been another's. `names` turns numbers into names and
 * may be NULL. 0, or -ENOMEM, and then a part may have been taken.
 */
int attributes_take_facts(struct attributes *attributes, int32_t pid, const struct facts *facts,
                          const struct names *names) MUST_CHECK;

/* Sets an attribute of one text, present. 0 or -ENOMEM. */
int attributes_set(struct attributes *attributes, enum attribute_id id, const char *source,
                   const char *text) MUST_CHECK;

/* Forgets what nobody needs once a decision is made: the environment, which is unknown then, and
 * all of the arguments but their first `arguments_max` bytes, the last of which may be cut, and no
 * more of them than take as much for the pointers to them. Of the names of groups
 * ATTRIBUTES_GROUPS_MAX bytes are kept likewise. */
enum { ATTRIBUTES_GROUPS_MAX = 4096 };
void attributes_trim(struct attributes *attributes, size_t arguments_max);

/* And what nobody needs once its files were looked at: the numbers of its groups. */
void attributes_forget_groups(struct attributes *attributes);

/* Bytes held on behalf of the process. */
size_t attributes_size(const struct attributes *attributes);

/* The first text of a present attribute, else NULL. */
const char *attributes_text(const struct attributes *attributes, enum attribute_id id);

/* The value of a variable in ATTRIBUTE_ENVIRON, the first if it is there twice, as the runtime has
 * it. Absent and unknown are told apart by the state; `*ret_value` is set for a present one. One
 * that is not found in an environment that was cut is unknown. */
enum attribute_state attributes_variable(const struct attributes *attributes, const char *name,
                                         const char **ret_value) MUST_CHECK;

/* "exe", "args", "assembly", ...: as policies and answers call it. */
const char *attribute_name(enum attribute_id id);

/*
 * The entry assembly, without ".dll", that the .NET host would take for these
 * arguments: "App" for `dotnet App.dll`, `dotnet exec --depsfile x App.dll` and
 * /opt/App; "dotnet" for the SDK's own verbs. `exe` is the resolved path, or NULL,
 * and then it can be told only where argv[0] is the host's name. False, and
 * nothing returned, when it cannot be told, which includes arguments that the
 * host refuses, or memory is out. The caller frees it.
 */
bool attributes_assembly(const char *exe, const char *const *arguments, size_t n_arguments,
                         char **ret_assembly) MUST_CHECK;
