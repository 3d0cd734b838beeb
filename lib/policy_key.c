/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/policy_key.h"

#include <inttypes.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"

#define MS INT64_C(1000)
#define S  (1000 * MS)
#define M  (60 * S)
#define H  (60 * M)

#define IN(section)       (1U << SECTION_##section)
#define RULE_AND_DEFAULTS (IN(RULE) | IN(DEFAULTS))
#define RULE_AND_BUNDLE   (IN(RULE) | IN(BUNDLE))

/* Not in force yet: named, so that nobody has to guess whether a key is misspelt. */
#define LATER NULL

static const char *const on_stop_choices[] = {"auto", "keep", "resume", NULL};
static const char *const match_unknown_choices[] = {"stop", "next", NULL};
static const char *const mode_choices[] = {"apply", "observe", NULL};
static const char *const children_choices[] = {"inherit", "detach", NULL};
static const char *const on_conflict_choices[] = {"skip", "replace", "fail", NULL};
static const char *const verify_choices[] = {"auto", "receipt", "off", NULL};
static const char *const on_lost_choices[] = {"skip", "fail", NULL};
static const char *const on_failure_choices[] = {"resume", "hold", "kill", NULL};
static const char *const late_choices[] = {"resume", "attach", NULL};
static const char *const primer_choices[] = {"auto", "always", "never", NULL};

static const struct policy_key table[KEY_COUNT] = {
/* clang-format off */
#define KEY(id, name, sections, type, ...) [KEY_##id] = {name, sections, TYPE_##type, __VA_ARGS__}
#define PLAIN(fallback, since, help) 0, NULL, 0, 0, fallback, since, help
#define RANGE(least, most, fallback, since, help) 0, NULL, least, most, fallback, since, help
#define CHOICE(choices, fallback, since, help) 0, choices, 0, 0, fallback, since, help
#define INNER(section, since, help) SECTION_##section, NULL, 0, 0, NULL, since, help

    /* The files */
    KEY(VERSION, "version", IN(MAIN), NUMBER, RANGE(1, 1, NULL, "0.1", "the version of the language")),
    KEY(INCLUDE, "include", IN(MAIN), PATHS, PLAIN(NULL, LATER, "further files, read before the drop-ins")),
    KEY(WATCH, "watch", IN(MAIN), BOOL, PLAIN("false", LATER, "reload when a file changes")),
    KEY(LISTEN, "listen", IN(MAIN), MAPPINGS, INNER(LISTEN, "0.1", "sockets that runtimes connect to; left out: the built-in one")),
    KEY(CONTROL, "control", IN(MAIN), MAPPING, INNER(CONTROL, "0.1", "the socket that people and tools ask; left out: the built-in one")),
    KEY(LIMITS, "limits", IN(MAIN), MAPPING, INNER(LIMITS, "0.1", "what is held at most")),
    KEY(DEFAULTS, "defaults", IN(MAIN), MAPPING, INNER(DEFAULTS, "0.1", "keys for every rule that does not say them itself")),
    KEY(ON_STOP, "on_stop", IN(MAIN), CHOICE, CHOICE(on_stop_choices, "auto", "0.1", "what held runtimes get when the daemon stops: auto keeps them when the sockets were handed in, else resumes all")),
    KEY(BUNDLES, "bundles", IN(MAIN) | IN(DROP_IN), NAMED_MAPPINGS, INNER(BUNDLE, LATER, "things to apply under a name, for use in rules")),
    KEY(RULES, "rules", IN(MAIN) | IN(DROP_IN), MAPPINGS, INNER(RULE, "0.1", "the first that matches decides")),
    KEY(DISABLE, "disable", IN(DROP_IN), TEXTS, PLAIN(NULL, "0.1", "names of rules to leave out")),

    /* Sockets */
    KEY(LISTEN_NAME, "name", IN(LISTEN), TEXT, PLAIN(NULL, "0.1", "its name; a socket that systemd passes under it is adopted")),
    KEY(LISTEN_PATH, "path", IN(LISTEN), PATH, PLAIN(NULL, "0.1", "where it is")),
    KEY(LISTEN_MODE, "mode", IN(LISTEN), FILE_MODE, PLAIN("0666", "0.1", "permissions of the socket file")),
    KEY(LISTEN_OWNER, "owner", IN(LISTEN), TEXT, PLAIN(NULL, "0.1", "owner of the socket file, a name or number")),
    KEY(LISTEN_GROUP, "group", IN(LISTEN), TEXT, PLAIN(NULL, "0.1", "group of the socket file, a name or number")),
    KEY(CONTROL_PATH, "path", IN(CONTROL), PATH, PLAIN(NULL, "0.1", "where it is")),
    KEY(CONTROL_MODE, "mode", IN(CONTROL), FILE_MODE, PLAIN("0666", "0.1", "permissions of the socket file")),
    KEY(CONTROL_OWNER, "owner", IN(CONTROL), TEXT, PLAIN(NULL, "0.1", "owner of the socket file, a name or number")),
    KEY(CONTROL_GROUP, "group", IN(CONTROL), TEXT, PLAIN(NULL, "0.1", "group of the socket file, a name or number")),
    KEY(READ, "read", IN(CONTROL), MAPPING, INNER(RIGHT, "0.1", "who may look, besides root and the user of the daemon")),
    KEY(ADMIN, "admin", IN(CONTROL), MAPPING, INNER(RIGHT, "0.1", "who may change things, besides root and the user of the daemon; may look as well")),
    KEY(USERS, "users", IN(RIGHT), TEXTS, PLAIN(NULL, "0.1", "names or numbers of users")),
    KEY(GROUPS, "groups", IN(RIGHT), TEXTS, PLAIN(NULL, "0.1", "names or numbers of groups")),

    /* Limits */
    KEY(RUNTIMES, "runtimes", IN(LIMITS), NUMBER, RANGE(1, 1000000, "20000", "0.1", "runtimes not yet resumed; fewer where descriptors do not last for so many")),
    KEY(RUNTIMES_PER_USER, "runtimes_per_user", IN(LIMITS), NUMBER, RANGE(1, 1000000, "5000", "0.1", "runtimes not yet resumed, of one user")),
    KEY(SILENT, "silent", IN(LIMITS), NUMBER, RANGE(1, 1000000, "1000", "0.1", "connections that have not said who they are")),
    KEY(HELLO, "hello", IN(LIMITS), SPAN, RANGE(10 * MS, M, "1s", "0.1", "time to say it")),
    KEY(CONNECTIONS_PER_USER, "connections_per_user", IN(LIMITS), NUMBER, RANGE(1, 1000000, "a quarter of the usable descriptors", "0.1", "open connections of one user, resumed or not")),
    KEY(COOKIES_PER_PROCESS, "cookies_per_process", IN(LIMITS), NUMBER, RANGE(1, 64, "4", "0.1", "runtimes in one process")),
    KEY(LATE_AFTER, "late_after", IN(LIMITS), SPAN, RANGE(10 * MS, H, "2s", "0.1", "age from which a process without a record of ours counts as running")),
    KEY(ALLOW_PID_IDENTITY, "allow_pid_identity", IN(LIMITS), BOOL, PLAIN("false", "0.1", "trust pid and start time on kernels before 6.5")),
    KEY(HISTORY, "history", IN(LIMITS), MAPPING, INNER(HISTORY, "0.1", "what is kept of runtimes that are gone")),
    KEY(RECORDS, "records", IN(HISTORY), NUMBER, RANGE(1, 1000000, "10000", "0.1", "how many")),
    KEY(AGE, "age", IN(HISTORY), SPAN, RANGE(S, 720 * H, "1h", "0.1", "for how long")),

    /* Rules */
    KEY(NAME, "name", IN(RULE), TEXT, PLAIN(NULL, "0.1", "unique, shown everywhere")),
    KEY(MATCH, "match", IN(RULE), MAPPING_OR_ALL, INNER(MATCH, "0.1", "which processes; required")),
    KEY(MATCH_UNKNOWN, "match_unknown", IN(RULE), CHOICE, CHOICE(match_unknown_choices, "stop", "0.1", "when a selector could not be read: stop takes an ignore rule as matched and keeps later rules from sending hooks and profilers, next goes on")),
    KEY(IGNORE, "ignore", IN(RULE), BOOL, PLAIN("false", "0.1", "resume and apply nothing")),
    KEY(MODE, "mode", IN(RULE), CHOICE, CHOICE(mode_choices, "apply", "0.1", "observe decides and records, and sends nothing but Resume")),
    KEY(SAMPLE, "sample", IN(RULE), SHARE, PLAIN("100%", LATER, "a stable share of processes")),
    KEY(USE, "use", IN(RULE), TEXTS, PLAIN(NULL, LATER, "names of bundles")),
    KEY(ENV, "env", RULE_AND_BUNDLE, VARIABLES, INNER(VALUE, "0.1", "variables to set; null unsets")),
    KEY(PROFILERS, "profilers", RULE_AND_BUNDLE, MAPPINGS, INNER(PROFILER, "0.1", "profilers to load, the first one first")),
    KEY(STARTUP_HOOKS, "startup_hooks", RULE_AND_BUNDLE, MAPPINGS, INNER(HOOK, "0.1", "hooks to run, the first one first")),
    KEY(TRACE, "trace", RULE_AND_BUNDLE, SESSION, PLAIN(NULL, LATER, "a trace session from the first instruction on")),
    KEY(CHILDREN, "children", RULE_AND_DEFAULTS, CHOICE, CHOICE(children_choices, "inherit", "0.1", "detach empties the port variables, so that children of managed code do not connect")),
    KEY(ON_CONFLICT, "on_conflict", RULE_AND_DEFAULTS, CHOICE, CHOICE(on_conflict_choices, "skip", "0.1", "when its environment configures another profiler, which would win: skip leaves ours out, replace switches that one off, fail takes ours for failed")),
    KEY(VERIFY, "verify", RULE_AND_DEFAULTS, CHOICE, CHOICE(verify_choices, "auto", "0.1", "whether the runtime is asked, in a trace session of a few seconds, if it loaded what it was sent: receipt does, auto not beside a profiler on .NET 8, off never")),
    KEY(ON_LOST, "on_lost", RULE_AND_DEFAULTS, CHOICE, CHOICE(on_lost_choices, "skip", "0.1", "a hook or profiler whose answer was lost in a crash")),
    KEY(ON_FAILURE, "on_failure", RULE_AND_DEFAULTS, CHOICE, CHOICE(on_failure_choices, "resume", "0.1", "when a required step fails")),
    KEY(DEADLINE, "deadline", RULE_AND_DEFAULTS, SPAN, RANGE(10 * MS, 10 * M, "3s", "0.1", "after which the runtime is resumed whatever is left to do")),
    KEY(COMMAND_TIMEOUT, "command_timeout", RULE_AND_DEFAULTS, SPAN, RANGE(10 * MS, 10 * M, "1s", "0.1", "after which one command counts as lost")),
    KEY(HOLD_LIMIT, "hold_limit", RULE_AND_DEFAULTS, SPAN_OR_FOREVER, RANGE(10 * MS, 168 * H, "10m", "0.1", "after which a held runtime is resumed")),
    KEY(LATE, "late", RULE_AND_DEFAULTS, CHOICE, CHOICE(late_choices, "resume", "0.1", "what a runtime gets that is already running: resume gives it nothing more, attach loads the profilers of the rule into it, and nothing else of the rule")),
    KEY(TRIP, "trip", RULE_AND_DEFAULTS, MAPPING_OR_OFF, INNER(TRIP, LATER, "deaths of matched processes that suspend the rule")),

    /* Selectors */
    KEY(MATCH_EXE, "exe", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the program, its resolved path")),
    KEY(MATCH_ARGS, "args", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "any one argument after the first word")),
    KEY(MATCH_ASSEMBLY, "assembly", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the entry assembly, without .dll")),
    KEY(MATCH_CWD, "cwd", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the working directory")),
    KEY(MATCH_USER, "user", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the user, or the owner of a rootless container, a name or number")),
    KEY(MATCH_GROUP, "group", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "any of its groups, a name or number")),
    KEY(MATCH_UNIT, "unit", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the systemd unit")),
    KEY(MATCH_ENV, "env", IN(MATCH), VARIABLE_GLOBS, PLAIN(NULL, "0.1", "variables it was started with")),
    KEY(MATCH_PARENT, "parent", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the program of its parent")),
    KEY(MATCH_PORT, "port", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "the name of the listener it came to")),
    KEY(MATCH_CONTAINER, "container", IN(MATCH), GLOBS, PLAIN(NULL, "0.1", "any: in a container or not; left out: only processes of the host")),
    KEY(MATCH_RUNTIME, "runtime", IN(MATCH), VERSIONS, PLAIN(NULL, LATER, "the version of the runtime")),
    KEY(MATCH_RID, "rid", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the platform of the runtime")),
    KEY(MATCH_ARCH, "arch", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the processor architecture")),
    KEY(MATCH_LIBC, "libc", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "glibc or musl")),
    KEY(MATCH_SLICE, "slice", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the systemd slice")),
    KEY(MATCH_USER_UNIT, "user_unit", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the unit of a user's own manager")),
    KEY(MATCH_CGROUP, "cgroup", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the control group")),
    KEY(MATCH_POD, "pod", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the pod")),
    KEY(MATCH_CONTAINER_NAME, "container_name", IN(MATCH), GLOBS, PLAIN(NULL, LATER, "the name of the container")),
    KEY(MATCH_BUILTIN, "builtin", IN(MATCH), TEXT, PLAIN(NULL, LATER, "selectors that are shipped")),
    KEY(MATCH_ANY, "any", IN(MATCH), MAPPINGS, INNER(MATCH, "0.1", "one of these matches")),
    KEY(MATCH_ALL, "all", IN(MATCH), MAPPINGS, INNER(MATCH, "0.1", "each of these matches")),
    KEY(MATCH_NOT, "not", IN(MATCH), MAPPING, INNER(MATCH, "0.1", "these together do not match")),
    KEY(REGEX, "regex", IN(PATTERN), TEXT, PLAIN(NULL, LATER, "a regular expression in place of a pattern")),

    /* Steps */
    KEY(VALUE, "value", IN(VALUE), VALUE, PLAIN(NULL, "0.1", "the text; null unsets")),
    KEY(FILE, "file", IN(VALUE), PATH, PLAIN(NULL, LATER, "a file that has the text")),
    KEY(KEEP, "keep", IN(VALUE), BOOL, PLAIN("false", LATER, "set it only where it is absent")),
    KEY(CLSID, "clsid", IN(PROFILER), CLSID, PLAIN(NULL, "0.1", "the class id of the profiler")),
    KEY(PATH, "path", IN(PROFILER) | IN(HOOK), PATH, PLAIN(NULL, "0.1", "the file")),
    KEY(REQUIRED, "required", IN(VALUE) | IN(PROFILER) | IN(HOOK), BOOL, PLAIN("true", "0.1", "false: go on when this step fails")),
    KEY(PRIMER, "primer", RULE_AND_DEFAULTS | IN(PROFILER), CHOICE, CHOICE(primer_choices, "auto", "0.1", "show the variables to native code before the profiler is loaded: auto does so where there are variables and the profiler needs it, always does not load it without")),
    KEY(PRIMER_PATH, "primer_path", RULE_AND_DEFAULTS, PATH, PLAIN(NULL, "0.1", "the file of the primer as the process sees it; left out: where it was installed")),
    KEY(DEATHS, "deaths", IN(TRIP), NUMBER, RANGE(1, 1000, "3", LATER, "how many")),
    KEY(WITHIN, "within", IN(TRIP), SPAN, RANGE(S, H, "10s", LATER, "how soon after Resume")),
    /* clang-format on */
};

const struct policy_key *policy_key_row(enum policy_key_id id)
{
    return &table[id];
}

static bool stands_in(const struct policy_key *key, enum policy_section section)
{
    return (key->sections & 1U << section) != 0;
}

bool policy_key_find(enum policy_section section, const char *name, enum policy_key_id *ret_id)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (stands_in(&table[i], section) && strcmp(table[i].name, name) == 0) {
            *ret_id = (enum policy_key_id)i;
            return true;
        }
    }
    return false;
}

const char *policy_section_name(enum policy_section section)
{
    switch (section) {
    case SECTION_MAIN:
        return "the top level of the main file";
    case SECTION_DROP_IN:
        return "the top level of a drop-in file";
    case SECTION_LISTEN:
        return "a listener";
    case SECTION_CONTROL:
        return "\"control\"";
    case SECTION_RIGHT:
        return "\"read\" or \"admin\"";
    case SECTION_LIMITS:
        return "\"limits\"";
    case SECTION_HISTORY:
        return "\"history\"";
    case SECTION_DEFAULTS:
        return "\"defaults\"";
    case SECTION_RULE:
        return "a rule";
    case SECTION_BUNDLE:
        return "a bundle";
    case SECTION_MATCH:
        return "\"match\"";
    case SECTION_PATTERN:
        return "a pattern";
    case SECTION_VALUE:
        return "a variable";
    case SECTION_PROFILER:
        return "a profiler";
    case SECTION_HOOK:
        return "a startup hook";
    case SECTION_TRIP:
        return "\"trip\"";
    }
    return NULL;
}

static const struct {
    int64_t us;
    const char *name;
} units[] = {{H, "h"}, {M, "m"}, {S, "s"}, {MS, "ms"}};

bool policy_key_read_span(const char *text, int64_t *ret_us)
{
    size_t n_digits = strspn(text, "0123456789");
    uint64_t number = 0;

    if (!text_number(text, n_digits, INT64_MAX, &number))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        if (strcmp(text + n_digits, units[i].name) != 0)
            continue;
        if (number > (uint64_t)(INT64_MAX / units[i].us))
            return false;
        *ret_us = (int64_t)number * units[i].us;
        return true;
    }
    return false;
}

void policy_key_put_span(int64_t us, struct bytes *out)
{
    size_t i = 0;

    while (i + 1 < ARRAY_LENGTH(units) && (us == 0 || us % units[i].us != 0))
        i++;
    bytes_put_format(out, "%" PRId64 "%s", us / units[i].us, units[i].name);
}

static void put_choices(const struct policy_key *key, struct bytes *out)
{
    for (const char *const *choice = key->choices; *choice; choice++) {
        if (choice != key->choices)
            bytes_put_string(out, choice[1] ? ", " : " or ");
        bytes_put_string(out, *choice);
    }
}

static void put_span_range(const struct policy_key *key, struct bytes *out)
{
    bytes_put_string(out, "a time from ");
    policy_key_put_span(key->least, out);
    bytes_put_string(out, " to ");
    policy_key_put_span(key->most, out);
}

/* What the types take whose values no row restricts; NULL for the others. */
static const char *type_takes(enum policy_type type)
{
    switch (type) {
    case TYPE_TEXT:
        return "a text";
    case TYPE_TEXTS:
        return "a list of texts";
    case TYPE_VALUE:
        return "a text, or null to unset the variable";
    case TYPE_BOOL:
        return "true or false";
    case TYPE_SHARE:
        return "a share from 1% to 100%";
    case TYPE_FILE_MODE:
        return "four octal digits such as \"0660\"";
    case TYPE_PATH:
        return "an absolute path";
    case TYPE_PATHS:
        return "a list of absolute paths";
    case TYPE_CLSID:
        return "a class id such as \"{918728DD-259F-4A6A-AC2B-B85E1B658318}\"";
    case TYPE_VERSIONS:
        return "versions such as \">=8.0 <11\"";
    case TYPE_GLOBS:
        return "a pattern or a list of patterns";
    case TYPE_VARIABLE_GLOBS:
        return "a mapping of names and patterns";
    case TYPE_VARIABLES:
        return "a mapping of names and values";
    case TYPE_MAPPING:
        return "a mapping";
    case TYPE_MAPPINGS:
        return "a list of mappings";
    case TYPE_NAMED_MAPPINGS:
        return "a mapping of names and mappings";
    case TYPE_MAPPING_OR_ALL:
        return "a mapping of selectors, or all";
    case TYPE_MAPPING_OR_OFF:
        return "a mapping, or off";
    case TYPE_SESSION:
        return "a mapping";
    case TYPE_NUMBER:
    case TYPE_SPAN:
    case TYPE_SPAN_OR_FOREVER:
    case TYPE_CHOICE:
        return NULL;
    }
    return NULL;
}

void policy_key_put_takes(const struct policy_key *key, struct bytes *out)
{
    switch (key->type) {
    case TYPE_NUMBER:
        if (key->least == key->most)
            bytes_put_format(out, "%" PRId64, key->least);
        else
            bytes_put_format(out, "a whole number from %" PRId64 " to %" PRId64, key->least,
                             key->most);
        break;
    case TYPE_SPAN:
        put_span_range(key, out);
        bytes_put_string(out, " with its unit (ms, s, m, h)");
        break;
    case TYPE_SPAN_OR_FOREVER:
        put_span_range(key, out);
        bytes_put_string(out, " with its unit (ms, s, m, h), or forever");
        break;
    case TYPE_CHOICE:
        put_choices(key, out);
        break;
    default:
        bytes_put_string(out, type_takes(key->type));
        break;
    }
}
