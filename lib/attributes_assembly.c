/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which assembly the .NET host starts for given arguments.
 *
 * Nothing here can look whether a file exists, as the host does: a first
 * argument that ends in .dll or .exe is taken for an app that is there.
 *
 * Source: dotnet/runtime src/native/corehost/corehost.cpp (a renamed `dotnet`
 * refuses to run, so the name of the executable tells it from an app's own
 * host), fxr/command_line.cpp (host options, their case, which of them need
 * `exec`) and fxr/fx_muxer.cpp (everything else goes to the SDK, whose entry
 * assembly is "dotnet"); confirmed on 10.0.12.
 */

#include "lib/attributes.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

static const char host_name[] = "dotnet";

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Every host option takes one value. */
static bool is_host_option(const char *argument, bool after_exec)
{
    static const struct {
        const char *name;
        bool needs_exec;
    } options[] = {
        {"--additionalprobingpath", false},
        {"--additional-deps", false},
        {"--fx-version", false},
        {"--roll-forward", false},
        {"--roll-forward-on-no-candidate-fx", false},
        {"--depsfile", true},
        {"--runtimeconfig", true},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
        if (strcasecmp(argument, options[i].name) == 0)
            return after_exec || !options[i].needs_exec;
    }
    return false;
}

static bool is_managed(const char *argument)
{
    size_t length = strlen(argument);

    return length >= 4 && (strcasecmp(argument + length - 4, ".dll") == 0 ||
                           strcasecmp(argument + length - 4, ".exe") == 0);
}

static bool copy(const char *name, size_t length, char **ret_assembly)
{
    /* What is longer than the name of a file is none that the host could open. */
    char *assembly = length > 0 && length <= NAME_MAX ? strndup(name, length) : NULL;

    if (!assembly)
        return false;
    *ret_assembly = assembly;
    return true;
}

static bool read_host_arguments(const char *const *arguments, size_t n_arguments,
                                char **ret_assembly)
{
    bool is_exec = n_arguments > 1 && strcasecmp(arguments[1], "exec") == 0;
    size_t at = is_exec ? 2 : 1;
    const char *name;

    while (at < n_arguments && is_host_option(arguments[at], is_exec))
        at += 2;
    if (at >= n_arguments)
        return false;
    if (is_managed(arguments[at])) {
        name = base_name(arguments[at]);
        return copy(name, strlen(name) - 4, ret_assembly);
    }
    /* After `exec` the host takes nothing else. */
    return !is_exec && copy(host_name, strlen(host_name), ret_assembly);
}

bool attributes_assembly(const char *exe, const char *const *arguments, size_t n_arguments,
                         char **ret_assembly)
{
    const char *name = exe ? base_name(exe) : n_arguments > 0 ? base_name(arguments[0]) : "";

    if (strcasecmp(name, host_name) == 0)
        return read_host_arguments(arguments, n_arguments, ret_assembly);
    /* argv[0] is anything, and only where it names the host do the other arguments bear it out. */
    return exe && copy(name, strlen(name), ret_assembly);
}
