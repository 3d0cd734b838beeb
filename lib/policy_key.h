/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every key of the policy language: where it may stand, what it takes, what it
 * is when it is left out, and since which version it is in force.
 *
 * One table row per key; the reader, the hints in its messages and the manual
 * ask the table. How a value is read is not known here (policy_value.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct bytes;

/* The version of the language's implementation that messages name. */
#define POLICY_KEY_VERSION "0.1"

/* The mappings that have keys of their own. */
enum policy_section {
    SECTION_MAIN,
    SECTION_DROP_IN,
    SECTION_LISTEN,
    SECTION_CONTROL,
    SECTION_RIGHT,
    SECTION_LIMITS,
    SECTION_HISTORY,
    SECTION_RULE,
    SECTION_DEFAULTS,
    SECTION_BUNDLE,
    SECTION_MATCH,
    SECTION_PATTERN,
    SECTION_VALUE,
    SECTION_PROFILER,
    SECTION_HOOK,
    SECTION_TRIP,
};

enum { SECTION_COUNT = SECTION_TRIP + 1 };

enum policy_type {
    TYPE_TEXT,
    TYPE_TEXTS,
    TYPE_VALUE, /* a text, or null */
    TYPE_BOOL,
    TYPE_NUMBER,
    TYPE_SPAN,
    TYPE_SPAN_OR_FOREVER,
    TYPE_CHOICE,
    TYPE_SHARE,
    TYPE_FILE_MODE,
    TYPE_PATH,
    TYPE_PATHS,
    TYPE_CLSID,
    TYPE_VERSIONS,
    TYPE_GLOBS,
    TYPE_VARIABLE_GLOBS, /* names, and globs for their values */
    TYPE_VARIABLES,      /* names, and a text, null or a mapping each */
    TYPE_MAPPING,        /* of the keys of `inner` */
    TYPE_MAPPINGS,       /* a list of those */
    TYPE_NAMED_MAPPINGS, /* names, and such a mapping each */
    TYPE_MAPPING_OR_ALL,
    TYPE_MAPPING_OR_OFF,
    TYPE_SESSION, /* a mapping that is not described yet */
};

enum policy_key_id {
    KEY_VERSION,
    KEY_INCLUDE,
    KEY_WATCH,
    KEY_LISTEN,
    KEY_CONTROL,
    KEY_LIMITS,
    KEY_DEFAULTS,
    KEY_ON_STOP,
    KEY_BUNDLES,
    KEY_RULES,
    KEY_DISABLE,
    KEY_LISTEN_NAME,
    KEY_LISTEN_PATH,
    KEY_LISTEN_MODE,
    KEY_LISTEN_OWNER,
    KEY_LISTEN_GROUP,
    KEY_CONTROL_PATH,
    KEY_CONTROL_MODE,
    KEY_CONTROL_OWNER,
    KEY_CONTROL_GROUP,
    KEY_READ,
    KEY_ADMIN,
    KEY_USERS,
    KEY_GROUPS,
    KEY_RUNTIMES,
    KEY_RUNTIMES_PER_USER,
    KEY_SILENT,
    KEY_HELLO,
    KEY_CONNECTIONS_PER_USER,
    KEY_COOKIES_PER_PROCESS,
    KEY_LATE_AFTER,
    KEY_ALLOW_PID_IDENTITY,
    KEY_HISTORY,
    KEY_RECORDS,
    KEY_AGE,
    KEY_NAME,
    KEY_MATCH,
    KEY_MATCH_UNKNOWN,
    KEY_IGNORE,
    KEY_MODE,
    KEY_SAMPLE,
    KEY_USE,
    KEY_ENV,
    KEY_PROFILERS,
    KEY_STARTUP_HOOKS,
    KEY_TRACE,
    KEY_CHILDREN,
    KEY_ON_CONFLICT,
    KEY_VERIFY,
    KEY_ON_LOST,
    KEY_ON_FAILURE,
    KEY_DEADLINE,
    KEY_COMMAND_TIMEOUT,
    KEY_HOLD_LIMIT,
    KEY_LATE,
    KEY_TRIP,
    KEY_MATCH_EXE,
    KEY_MATCH_ARGS,
    KEY_MATCH_ASSEMBLY,
    KEY_MATCH_CWD,
    KEY_MATCH_USER,
    KEY_MATCH_GROUP,
    KEY_MATCH_UNIT,
    KEY_MATCH_ENV,
    KEY_MATCH_PARENT,
    KEY_MATCH_PORT,
    KEY_MATCH_CONTAINER,
    KEY_MATCH_RUNTIME,
    KEY_MATCH_RID,
    KEY_MATCH_ARCH,
    KEY_MATCH_LIBC,
    KEY_MATCH_SLICE,
    KEY_MATCH_USER_UNIT,
    KEY_MATCH_CGROUP,
    KEY_MATCH_POD,
    KEY_MATCH_CONTAINER_NAME,
    KEY_MATCH_BUILTIN,
    KEY_MATCH_ANY,
    KEY_MATCH_ALL,
    KEY_MATCH_NOT,
    KEY_REGEX,
    KEY_VALUE,
    KEY_FILE,
    KEY_KEEP,
    KEY_CLSID,
    KEY_PATH,
    KEY_REQUIRED,
    KEY_PRIMER,
    KEY_PRIMER_PATH,
    KEY_DEATHS,
    KEY_WITHIN,
};

enum { KEY_COUNT = KEY_WITHIN + 1 };

struct policy_key {
    const char *name;
    uint32_t sections; /* a bit, 1 << enum policy_section, for each where it may stand */
    enum policy_type type;
    enum policy_section inner;  /* TYPE_MAPPING and its kin: whose keys it takes */
    const char *const *choices; /* TYPE_CHOICE: NULL-terminated, the default first */
    int64_t least;              /* TYPE_NUMBER, and TYPE_SPAN in microseconds */
    int64_t most;
    const char *fallback; /* what it is when it is left out; NULL: nothing */
    const char *since;    /* the version since which it is in force; NULL: not yet */
    const char *help;     /* one line for the manual */
};

const struct policy_key *policy_key_row(enum policy_key_id id);

/* The key of that name in a section; false when there is none. */
bool policy_key_find(enum policy_section section, const char *name,
                     enum policy_key_id *ret_id) MUST_CHECK;

/* "a rule", "\"match\"", ...: as the end of "is not a key of" and "it belongs in". */
const char *policy_section_name(enum policy_section section);

/* Appends what the key takes, as the end of "takes": "true or false", "a time from 10ms to 10m". */
void policy_key_put_takes(const struct policy_key *key, struct bytes *out);

/*
 * Appends what its author may have meant by a name that is not a key of that
 * section, as the rest of a sentence that says so: `; did you mean "env"?`.
 * True when it is like one of the section's keys, and tells which.
 */
bool policy_key_put_advice(enum policy_section section, const char *name, struct bytes *out,
                           enum policy_key_id *ret_meant) MUST_CHECK;

/* Reads a length of time as policies write it, a number and its unit: "500ms", "3s", "10m", "2h".
 * False, and nothing returned, for anything else, and for more than fits. */
bool policy_key_read_span(const char *text, int64_t *ret_us) MUST_CHECK;

/* Appends a length of time as policies write it, in the largest unit that has no remainder. */
void policy_key_put_span(int64_t us, struct bytes *out);
