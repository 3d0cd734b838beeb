/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/picture.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/fake/grammar.h"
#include "tests/fake/runtime.h"

/* Address space only: pages that are never touched cost nothing. */
enum { STACK_SIZE = 256 * 1024 };

struct start {
    const char *name;
    void *(*function)(void *);
    void *argument;
    sem_t is_named;
};

static void *run_thread(void *argument)
{
    struct start *start = argument;
    void *(*function)(void *) = start->function;
    void *function_argument = start->argument;

    if (start->name)
        prctl(PR_SET_NAME, start->name);
    sem_post(&start->is_named);
    return function(function_argument);
}

bool picture_start_thread(const char *name, void *(*function)(void *), void *argument)
{
    struct start start = {.name = name, .function = function, .argument = argument};
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int error;

    sem_init(&start.is_named, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, run_thread, &start);
    if (error == 0)
        sem_wait(&start.is_named);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    sem_destroy(&start.is_named);
    if (error != 0)
        fprintf(stderr, "fake-runtime: no thread: error %d\n", error);
    return error == 0;
}

void *picture_idle(void *unused)
{
    (void)unused;
    for (;;)
        pause();
}

static void show(const char *name)
{
    picture_start_thread(name, picture_idle, NULL);
}

/* A name that /proc/PID/maps shows as /memfd:dotnet_ipc_created; 10 and 11 have it. */
static void map_created_mark(void)
{
    int fd = memfd_create("dotnet_ipc_created", MFD_CLOEXEC);

    if (fd < 0)
        return;
    if (ftruncate(fd, 1) == 0)
        (void)!mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

const char *picture_server_name(const struct runtime *runtime)
{
    if (runtime->behaviour->picture == PICTURE_BARE || !runtime->version->server_is_named)
        return NULL;
    return ".NET EventPipe";
}

static void show_threads_of_running(const struct runtime *runtime)
{
    const struct version *version = runtime->version;

    if (version->has_debugger && grammar_switch("EnableDiagnostics", true, true)) {
        show(".NET DebugPipe");
        show(".NET Debugger");
    }
    show(version->finalizer);
    if (version->tiering)
        show(version->tiering);
    show(".NET SigHandler");
}

void picture_show_early(const struct runtime *runtime, bool has_server)
{
    const struct version *version = runtime->version;

    if (version->has_synch_manager && runtime->behaviour->picture != PICTURE_BARE)
        show(".NET SynchManag");
    if (has_server && version->kind == KIND_CORECLR && version->major >= 10)
        map_created_mark();
    if (runtime->behaviour->picture == PICTURE_RUNNING)
        show_threads_of_running(runtime);
}

void picture_show_running(const struct runtime *runtime)
{
    if (runtime->behaviour->picture == PICTURE_HONEST)
        show_threads_of_running(runtime);
}
