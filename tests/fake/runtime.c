/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tests/fake/link.h"

/* How a runtime that this process becomes by exec knows that it is not the first. */
static const char generation_variable[] = "FAKE_GENERATION";

static bool find_program(struct runtime *runtime)
{
    ssize_t length = readlink("/proc/self/exe", runtime->program, sizeof runtime->program - 1);

    if (length < 0) {
        fprintf(stderr, "fake-runtime: /proc/self/exe: %s\n", strerror(errno));
        return false;
    }
    runtime->program[length] = '\0';
    return true;
}

/* Random as the runtime's, version and variant in their places. */
static bool make_cookie(struct behaviour *behaviour, unsigned generation)
{
    uint8_t *bytes = behaviour->cookie.bytes;

    if (!behaviour->has_cookie) {
        if (getrandom(bytes, GUID_SIZE, 0) != GUID_SIZE)
            return false;
        bytes[7] = (uint8_t)((bytes[7] & 0x0F) | 0x40);
        bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    }
    /* A given cookie is another one after exec. */
    if (behaviour->has_cookie)
        bytes[GUID_SIZE - 2] = (uint8_t)(bytes[GUID_SIZE - 2] ^ generation);
    return true;
}

bool runtime_init(struct runtime *runtime, struct behaviour *behaviour, char **process_arguments,
                  int n_arguments, char **arguments)
{
    const char *generation = getenv(generation_variable);
    pthread_condattr_t monotonic;

    *runtime = (struct runtime){
        .behaviour = behaviour,
        .version = &behaviour->version,
        .process_arguments = process_arguments,
        .arguments = (const char *const *)arguments,
        .n_arguments = n_arguments,
        .generation = generation ? (unsigned)strtoul(generation, NULL, 10) : 0,
    };
    pthread_mutex_init(&runtime->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&runtime->resumed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!find_program(runtime) || !make_cookie(behaviour, runtime->generation) ||
        !variables_init(&runtime->variables, runtime->version->private_copy))
        return false;
    return behaviour->environment_bytes == 0 || !runtime->version->private_copy ||
           variables_fill(&runtime->variables, behaviour->environment_bytes);
}

struct guid runtime_cookie(const struct runtime *runtime, unsigned connection)
{
    struct guid cookie = runtime->behaviour->cookie;
    unsigned turn;

    if (runtime->behaviour->cookies > 1 && connection > 0) {
        turn = (connection - 1) % (unsigned)runtime->behaviour->cookies;
        for (unsigned i = 0; i < 4; i++)
            cookie.bytes[i] = (uint8_t)(cookie.bytes[i] ^ (turn >> (8 * i)));
    }
    return cookie;
}

uint64_t runtime_pid(const struct runtime *runtime)
{
    return runtime->behaviour->claim_pid != 0 ? runtime->behaviour->claim_pid : (uint64_t)getpid();
}

const char *runtime_entry(const struct runtime *runtime, char *buffer, size_t size)
{
    const char *path = runtime->n_arguments > 0 ? runtime->arguments[0] : runtime->program;
    const char *slash;
    size_t length;

    if (runtime->behaviour->entry)
        return runtime->behaviour->entry;
    if (runtime->version->kind == KIND_NATIVEAOT)
        path = runtime->program;
    slash = strrchr(path, '/');
    snprintf(buffer, size, "%s", slash ? slash + 1 : path);
    length = strlen(buffer);
    if (length > 4 && strcmp(buffer + length - 4, ".dll") == 0)
        buffer[length - 4] = '\0';
    return buffer;
}

void runtime_resume(struct runtime *runtime, struct port *port)
{
    port->is_resumed = true;
    port->resumes++;
    if (ports_any_suspended(&runtime->ports) || !runtime->has_resume_event)
        return;
    if (!runtime->is_resumed)
        runtime->resumed_at = link_now();
    runtime->is_resumed = true;
    runtime->is_paused_for_startup = false;
    pthread_cond_broadcast(&runtime->resumed);
}

const char *runtime_setting(const struct runtime *runtime, const char *name)
{
    bool is_filtered = runtime->version->settings_filtered || strncmp(name, "DOTNET_", 7) == 0;
    const char *value = variables_get(&runtime->variables, name);

    if (is_filtered && !variables_get_launched(&runtime->variables, name) &&
        !variables_get_launched(&runtime->variables, "DOTNET_DisableConfigCache"))
        return NULL;
    return value && *value != '\0' ? value : NULL;
}

void runtime_die(int signal_number, const char *why)
{
    if (why)
        fprintf(stderr, "fake-runtime: dies by signal %d: %s\n", signal_number, why);
    if (signal_number == 0)
        _exit(0);
    signal(signal_number, SIG_DFL);
    for (;;) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        kill(getpid(), signal_number);
        link_sleep(1);
    }
}

void runtime_exec(const struct runtime *runtime)
{
    char generation[16];

    snprintf(generation, sizeof generation, "%u", runtime->generation + 1);
    setenv(generation_variable, generation, 1);
    execv(runtime->program, runtime->process_arguments);
    fprintf(stderr, "fake-runtime: exec: %s\n", strerror(errno));
    _exit(1);
}
