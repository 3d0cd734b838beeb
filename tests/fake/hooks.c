/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/hooks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hresult.h"
#include "lib/util.h"
#include "tests/fake/loaded_file.h"
#include "tests/fake/runtime.h"

#define HRESULT_OUT_OF_MEMORY UINT32_C(0x80070008)

/* Why a hook fails: what a running runtime answers, and what a starting one prints before it dies,
 * around the path. */
struct failure {
    const char *mark;
    uint32_t hresult;
    const char *before;
    const char *after;
};

static const struct failure invalid_name =
    {"", HRESULT_INVALID_ARGUMENT,
     "System.ArgumentException: The startup hook simple assembly name '", "' is invalid."};
static const struct failure not_loaded = {"", HRESULT_INVALID_ARGUMENT,
                                          "System.ArgumentException: Startup hook assembly '",
                                          "' failed to load. See inner exception for details."};
static const struct failure marked[] = {
    {"throws", UINT32_C(0x80131604),
     "System.Reflection.TargetInvocationException: Exception has been thrown by the target of an "
     "invocation. ('",
     "')"},
    {"no-type", UINT32_C(0x80131522),
     "System.TypeLoadException: Could not load type 'StartupHook' from assembly '", "'."},
    {"no-initialize", UINT32_C(0x80131513),
     "System.MissingMethodException: Method 'StartupHook.Initialize' not found. ('", "')"},
};

static bool insert(char ***list, size_t *n, size_t at, const char *text)
{
    char **longer = realloc(*list, (*n + 1) * sizeof *longer);
    char *copy = strdup(text);

    if (longer)
        *list = longer;
    if (!longer || !copy) {
        free(copy);
        return false;
    }
    memmove(&longer[at + 1], &longer[at], (*n - at) * sizeof *longer);
    longer[at] = copy;
    ++*n;
    return true;
}

uint32_t hooks_store(struct runtime *runtime, const char *paths)
{
    struct hooks *hooks = &runtime->hooks;

    return insert(&hooks->queue, &hooks->n_queue, 0, paths) ? HRESULT_OK : HRESULT_OUT_OF_MEMORY;
}

/* NULL when the hook ran. */
static const struct failure *run(struct runtime *runtime, const char *path)
{
    struct loaded_file file;

    if (runtime->behaviour->hooks == FILES_CHECKED) {
        if (strchr(path, '/') && *path != '/')
            return &invalid_name;
        file = loaded_file_read(path, "fake-hook: ");
        if (*path != '/' || !file.is_there || (!file.is_mz && file.mark[0] == '\0'))
            return &not_loaded;
        /* It is loaded, and shows in the maps, before it can fail. */
        loaded_file_map(path, false);
        sessions_module_loaded(runtime, path);
        for (size_t i = 0; i < ARRAY_LENGTH(marked); i++) {
            if (strcmp(file.mark, marked[i].mark) == 0)
                return &marked[i];
        }
    }
    insert(&runtime->hooks.ran, &runtime->hooks.n_ran, runtime->hooks.n_ran, path);
    return NULL;
}

static _Noreturn void die_of(const struct failure *failure, const char *path)
{
    fprintf(stderr, "Unhandled exception. %s%s%s\n", failure->before, path, failure->after);
    runtime_die(SIGABRT, NULL);
}

/* Runs the paths of one text in order, up to the first that fails. */
static const struct failure *run_all(struct runtime *runtime, const char *paths, bool dies)
{
    const struct failure *failure = NULL;
    char *copy = strdup(paths);
    char *rest = copy;

    while (rest && !failure) {
        const char *path = strsep(&rest, ":");

        if (*path == '\0' || runtime->behaviour->hooks == FILES_OFF)
            continue;
        failure = run(runtime, path);
        if (failure && dies)
            die_of(failure, path);
    }
    free(copy);
    return failure;
}

void hooks_run_stored(struct runtime *runtime)
{
    const char *configured = variables_get_launched(&runtime->variables, "DOTNET_STARTUP_HOOKS");

    for (size_t i = 0; i < runtime->hooks.n_queue; i++)
        run_all(runtime, runtime->hooks.queue[i], true);
    if (configured && runtime->version->kind == KIND_CORECLR)
        run_all(runtime, configured, true);
}

uint32_t hooks_run_now(struct runtime *runtime, const char *paths)
{
    const struct failure *failure = run_all(runtime, paths, runtime->version->failing_hook_kills);

    return failure ? failure->hresult : HRESULT_OK;
}
