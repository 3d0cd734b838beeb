/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/profilers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "lib/hresult.h"
#include "tests/fake/grammar.h"
#include "tests/fake/loaded_file.h"
#include "tests/fake/picture.h"
#include "tests/fake/runtime.h"
#include "tests/fake/utf8.h"

#define HRESULT_NO_MODULE        UINT32_C(0x8007007E)
#define HRESULT_NO_EXPORT        UINT32_C(0x8007007F)
#define HRESULT_NO_CLASS         UINT32_C(0x80040111)
#define HRESULT_ALREADY_ACTIVE   UINT32_C(0x8013136A)
#define HRESULT_OUT_OF_MEMORY    UINT32_C(0x80070008)
#define HRESULT_INITIALIZE_FAILS HRESULT_FAIL

/* The numbers under which the runtime keeps its messages; the one for a failing Initialize was not
 * seen, the others were. */
enum message {
    MESSAGE_INSTANTIATION = 0x2504,
    MESSAGE_INITIALIZATION = 0x2505,
    MESSAGE_LOADED = 0x2507,
    MESSAGE_ALREADY = 0x250A,
    MESSAGE_ATTACH = 0x2512,
};

uint32_t profilers_store(struct runtime *runtime, const struct guid *clsid, const char *path)
{
    struct profilers *profilers = &runtime->profilers;
    struct profiler *stored;
    size_t at = runtime->version->last_profiler_first ? 0 : profilers->n_stored;
    char *copy = path ? strdup(path) : NULL;

    stored = realloc(profilers->stored, (profilers->n_stored + 1) * sizeof *stored);
    if (stored)
        profilers->stored = stored;
    if (!stored || (path && !copy)) {
        free(copy);
        return HRESULT_OUT_OF_MEMORY;
    }
    memmove(&stored[at + 1], &stored[at], (profilers->n_stored - at) * sizeof *stored);
    stored[at] = (struct profiler){*clsid, copy};
    profilers->n_stored++;
    return HRESULT_OK;
}

static void tell(struct runtime *runtime, enum message message, const struct guid *clsid,
                 uint32_t hresult)
{
    char id[GUID_TEXT_SIZE], text[512];

    guid_format(clsid, id);
    switch (message) {
    case MESSAGE_INSTANTIATION:
        snprintf(text, sizeof text,
                 "Loading profiler failed during instantiation.  Profiler CLSID: '{%s}'.  HRESULT: "
                 "0x%08x.",
                 id, hresult);
        break;
    case MESSAGE_INITIALIZATION:
        snprintf(text, sizeof text,
                 "Loading profiler failed.  The profiler was instantiated, but the profiler failed "
                 "during its initialization callback.  Profiler CLSID: '{%s}'.  HRESULT: 0x%08x.",
                 id, hresult);
        break;
    case MESSAGE_LOADED:
        snprintf(text, sizeof text,
                 "The profiler was loaded successfully.  Profiler CLSID: '{%s}'.", id);
        break;
    case MESSAGE_ALREADY:
        snprintf(text, sizeof text,
                 "A request was made to load a profiler when a profiler was already loaded.");
        break;
    case MESSAGE_ATTACH:
        snprintf(text, sizeof text,
                 "The CLR received a request to attach a profiler. Profiler CLSID: '{%s}'.", id);
        break;
    }
    sessions_profiler_message(runtime, text, message);
}

static uint32_t read_profiler(const struct runtime *runtime, const char *path,
                              struct loaded_file *ret_file)
{
    *ret_file = (struct loaded_file){.is_there = true, .mark = "main"};
    if (!path || *path == '\0')
        return HRESULT_FAIL;
    if (runtime->behaviour->profilers == FILES_UNCHECKED)
        return HRESULT_OK;
    /* A bare name is looked for by the loader, and not found. */
    if (!strchr(path, '/'))
        return HRESULT_NO_MODULE;
    *ret_file = loaded_file_read(path, "fake-profiler: ");
    if (!ret_file->is_there || (!ret_file->is_elf && ret_file->mark[0] == '\0'))
        return HRESULT_NO_MODULE;
    if (strcmp(ret_file->mark, "no-export") == 0)
        return HRESULT_NO_EXPORT;
    if (strcmp(ret_file->mark, "wrong-class") == 0)
        return HRESULT_NO_CLASS;
    return HRESULT_OK;
}

static void note_load(struct runtime *runtime, const struct guid *clsid, const char *path,
                      const char *from, uint32_t hresult)
{
    struct profilers *profilers = &runtime->profilers;
    char id[GUID_TEXT_SIZE];
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    if (profilers->loaded) {
        bytes_put_string(&out, profilers->loaded);
        bytes_put_u8(&out, ',');
    } else {
        /* The first load, good or bad, makes a thread that waits for detach requests. */
        picture_start_thread(NULL, picture_idle, NULL);
    }
    guid_format(clsid, id);
    bytes_put_format(&out, "{\"clsid\":\"%s\",\"path\":", id);
    utf8_put_json(&out, path);
    bytes_put_format(&out, ",\"from\":\"%s\",\"hresult\":\"0x%08x\"}", from, hresult);
    if (bytes_finish(&out) != 0) {
        bytes_deinit(&out);
        return;
    }
    free(profilers->loaded);
    profilers->loaded = (char *)bytes_take(&out);
}

static uint32_t load(struct runtime *runtime, const struct guid *clsid, const char *path)
{
    struct profilers *profilers = &runtime->profilers;
    struct loaded_file file;
    uint32_t hresult = read_profiler(runtime, path, &file);
    bool notifies = strcmp(file.mark, "notify") == 0;

    if (hresult != HRESULT_OK) {
        tell(runtime, MESSAGE_INSTANTIATION, clsid, hresult);
        return hresult;
    }
    if (strcmp(file.mark, "undefined") == 0) {
        fprintf(stderr, "symbol lookup error: %s: undefined symbol\n", path);
        _exit(127);
    }
    if (profilers->has_main && !notifies) {
        /* The library was opened before anybody asked, and stays. */
        loaded_file_map(path, true);
        tell(runtime, MESSAGE_ALREADY, clsid, HRESULT_ALREADY_ACTIVE);
        return HRESULT_ALREADY_ACTIVE;
    }
    if (strcmp(file.mark, "aborts") == 0)
        runtime_die(SIGABRT, "a profiler aborts in Initialize");
    if (strcmp(file.mark, "fails") == 0) {
        tell(runtime, MESSAGE_INITIALIZATION, clsid, HRESULT_INITIALIZE_FAILS);
        return HRESULT_INITIALIZE_FAILS;
    }
    loaded_file_map(path, true);
    if (!notifies)
        profilers->has_main = true;
    tell(runtime, MESSAGE_LOADED, clsid, HRESULT_OK);
    return HRESULT_OK;
}

static void load_and_note(struct runtime *runtime, const struct guid *clsid, const char *path,
                          const char *from)
{
    note_load(runtime, clsid, path, from, load(runtime, clsid, path));
}

/* The profiler of the environment, by the names with that prefix. */
static bool load_configured(struct runtime *runtime, const char *prefix)
{
    char name[64];
    const char *enable, *clsid, *path;
    struct guid guid;

    snprintf(name, sizeof name, "%sENABLE_PROFILING", prefix);
    enable = runtime_setting(runtime, name);
    snprintf(name, sizeof name, "%sPROFILER", prefix);
    clsid = runtime_setting(runtime, name);
    snprintf(name, sizeof name, "%sPROFILER_PATH_64", prefix);
    path = runtime_setting(runtime, name);
    snprintf(name, sizeof name, "%sPROFILER_PATH", prefix);
    if (!path)
        path = runtime_setting(runtime, name);
    if (!enable || strtoul(enable, NULL, 16) != 1 || !clsid || !path || !guid_parse(clsid, &guid))
        return false;
    load_and_note(runtime, &guid, path, "environment");
    return true;
}

/* A bug of the runtime (8 to 11): with this setting, whatever it would load kills it. */
static bool prevents_load(const struct runtime *runtime)
{
    const char *value = runtime_setting(runtime, "DOTNET_ProfAPI_ProfilerCompatibilitySetting");

    return value && strcmp(value, "PreventLoad") == 0;
}

void profilers_load_stored(struct runtime *runtime)
{
    struct profilers *profilers = &runtime->profilers;
    bool complus = runtime->version->complus_prefix;

    if (!runtime->version->profilers || !grammar_switch("EnableDiagnostics", complus, true) ||
        (runtime->version->major >= 8 &&
         !grammar_switch("EnableDiagnostics_Profiler", complus, true)))
        return;
    if (profilers->n_stored > 0 && prevents_load(runtime))
        runtime_die(SIGSEGV, "PreventLoad");
    /* From 11 on there are DOTNET_ names, and they come first. */
    if (!runtime->version->settings_filtered || !load_configured(runtime, "DOTNET_"))
        load_configured(runtime, "CORECLR_");
    for (size_t i = 0; i < profilers->n_stored; i++)
        load_and_note(runtime, &profilers->stored[i].clsid, profilers->stored[i].path, "command");
}

uint32_t profilers_attach(struct runtime *runtime, const struct guid *clsid, const char *path)
{
    uint32_t hresult;

    tell(runtime, MESSAGE_ATTACH, clsid, HRESULT_OK);
    hresult = load(runtime, clsid, path);
    note_load(runtime, clsid, path, "attach", hresult);
    return hresult;
}
