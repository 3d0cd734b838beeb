/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one runtime that a process plays: what its main thread and its server
 * thread share. It lives as long as the process: nothing in it is ever freed,
 * since the threads are there to the end. Whoever reads or writes anything below `lock` holds it;
 * what is above does not change once the threads run.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/guid.h"
#include "tests/fake/behaviour.h"
#include "tests/fake/hooks.h"
#include "tests/fake/port.h"
#include "tests/fake/profilers.h"
#include "tests/fake/report.h"
#include "tests/fake/sessions.h"
#include "tests/fake/variables.h"

/* As the runtime calls what it was compiled for. */
#if defined(__x86_64__)
#define FAKE_ARCHITECTURE "x64"
#elif defined(__aarch64__)
#define FAKE_ARCHITECTURE "arm64"
#else
#define FAKE_ARCHITECTURE "Unknown"
#endif

struct runtime {
    struct behaviour *behaviour;
    const struct version *version;
    char **process_arguments;     /* all of the program's */
    const char *const *arguments; /* what the "application" gets */
    int n_arguments;
    char program[4096];  /* the resolved path of the program */
    unsigned generation; /* how many runtimes this process was before, by exec */
    struct ports ports;

    pthread_mutex_t lock;
    pthread_cond_t resumed; /* a Resume left no port that suspends */

    /* The runtime's own flag, with its flaw: it is raised at every start, after the server thread
     * began, and lowered only by a Resume that ends a pause. */
    bool is_paused_for_startup;
    bool has_resume_event; /* some port suspended when the ports were made */
    bool is_resumed;
    bool is_started; /* the execution engine is: g_fEEStarted */
    bool is_managed; /* managed code runs, and the whole command line is known */
    bool told_pause; /* the message on standard output was written */
    long resumed_at;

    struct variables variables;
    struct profilers profilers;
    struct hooks hooks;
    struct sessions sessions;
    struct report report;
};

/* Everything that is there before the first thread; false, with a line on standard error. */
bool runtime_init(struct runtime *runtime, struct behaviour *behaviour, char **process_arguments,
                  int n_arguments, char **arguments);

/* The cookie that the `connection`th connection shows, from 1. */
struct guid runtime_cookie(const struct runtime *runtime, unsigned connection);

uint64_t runtime_pid(const struct runtime *runtime);

/* The entry assembly's name. */
const char *runtime_entry(const struct runtime *runtime, char *buffer, size_t size);

/* ResumeRuntime on that port, with the lock held. */
void runtime_resume(struct runtime *runtime, struct port *port);

/* A setting that CoreCLR looks up after the pause: in its own copy, and up to .NET 10 whatever its
 * name, from 11 on (and for DOTNET_ and COMPlus_ names always) only if it was there at launch.
 * With the lock held. NULL when it is not set. */
const char *runtime_setting(const struct runtime *runtime, const char *name);

/* Ends the process by that signal, whatever was arranged for it; 0 is exit status 0. `why` goes to
 * standard error. */
_Noreturn void runtime_die(int signal, const char *why);

/* Becomes a new runtime in the same process. */
_Noreturn void runtime_exec(const struct runtime *runtime);
