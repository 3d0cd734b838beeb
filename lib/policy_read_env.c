/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Variables that look as if they did something and do not when they are set
 * over the diagnostic port: the loader, the .NET host and most of the runtime
 * have read theirs before they ask us.
 *
 * Measured on CoreCLR 8.0.0, 8.0.34, 9.0.23, 10.0.15 and 11.0.0. The runtime
 * reads names that begin with DOTNET_ or COMPlus_ through a filter that is made
 * before it connects, so only those that it was started with can change; the
 * CORECLR_ ones are behind that filter since 11. Managed code sees everything.
 */

#include <string.h>

#include "lib/glob.h"
#include "lib/policy_reader.h"

struct row {
    const char *glob;
    const char *advice;
};

#define LATE     "comes too late over the diagnostic port: "
#define AT_START "set it where the program is started"
#define RUNTIME  LATE "the runtime has read it already; " AT_START
#define HOST     LATE "the .NET host has read it already; " AT_START
#define CONFIG   RUNTIME ", or in runtimeconfig.json"
#define NEW \
    "is not known to .NET 8 to 10, and not seen by 11 over the diagnostic port; use profilers"

/* In both tables the first row that fits counts. */
static const struct row names[] = {
    {"LD_*", LATE
     "the loader has read it already, and only children of managed code inherit it; " AT_START},
    /* Agents have names of their own that begin so. */
    {"CORECLR_*PROFIL*",
     "is not seen by .NET 11 over the diagnostic port unless the program is started with it, too; "
     "use profilers"},
};

/* After DOTNET_ or COMPlus_. */
static const struct row settings[] = {
    {"STARTUP_HOOKS", LATE "the runtime has read it already; use startup_hooks"},
    {"DiagnosticPorts",
     LATE "the runtime has read it already, and only children of managed code inherit it; use "
          "\"children: detach\" to keep them away"},
    {"EnableDiagnostics*", RUNTIME},
    {"ENABLE_PROFILING", NEW},
    {"PROFILER*", NEW},
    {"ROOT*", HOST},
    {"ROLL_FORWARD*", HOST},
    {"ADDITIONAL_DEPS", HOST},
    {"SHARED_STORE", HOST},
    {"BUNDLE_EXTRACT_BASE_DIR", HOST},
    {"MODIFIABLE_ASSEMBLIES", RUNTIME},
    {"gcServer", CONFIG},
    {"gcConcurrent", CONFIG},
    {"GC*",
     "is seen over the diagnostic port only if the program is started with it, too; " AT_START
     " (as a hexadecimal number), or in runtimeconfig.json"},
    {"Tiered*", CONFIG},
    {"TC_*", CONFIG},
    {"ReadyToRun*", RUNTIME},
    /* Names of settings have small letters; DOTNET_ENVIRONMENT and its like are for managed code.
     */
    {"*[a-z]*", RUNTIME},
};

static const char *find(const struct row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (glob_match(rows[i].glob, name))
            return rows[i].advice;
    }
    return NULL;
}

/* CORECLR_ENABLE_PROFILING=0, or without it, takes back a profiler of the launch environment, on
 * all versions. */
static bool is_switch_off(const char *name, const char *value)
{
    return strcmp(name, "CORECLR_ENABLE_PROFILING") == 0 && (!value || strcmp(value, "0") == 0);
}

static const char *advice_for(const char *name, const char *value)
{
    static const char *const prefixes[] = {"DOTNET_", "COMPlus_"};

    if (is_switch_off(name, value))
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return find(settings, ARRAY_LENGTH(settings), name + strlen(prefixes[i]));
    }
    return find(names, ARRAY_LENGTH(names), name);
}

void policy_read_env_advice(struct reader *reader, const struct yaml_node *key, const char *value)
{
    const char *advice = advice_for(key->text, value);

    if (advice)
        reader_warn(reader, key, "\"%s\" %s", reader_show(reader, key->text), advice);
}
