/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/startup.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fake/ending.h"
#include "tests/fake/grammar.h"
#include "tests/fake/link.h"
#include "tests/fake/picture.h"
#include "tests/fake/runtime.h"
#include "tests/fake/server.h"

static bool has_server(const struct runtime *runtime)
{
    bool complus = runtime->version->complus_prefix;

    if (!grammar_switch("EnableDiagnostics", complus, true))
        return false;
    /* Only CoreCLR from 8 on knows this one. */
    return !complus || runtime->version->major < 8 ||
           grammar_switch("EnableDiagnostics_IPC", complus, true);
}

/* What the runtime says after it has waited for a while: on standard output, once. */
static void tell_pause(struct runtime *runtime)
{
    printf("The runtime has been configured to pause during startup and is awaiting a Diagnostics "
           "IPC ResumeStartup command from a Diagnostic Port.\n"
           "DOTNET_DiagnosticPorts=\"%s\"\n"
           "DOTNET_DefaultDiagnosticPortSuspend=%d\n",
           runtime->ports.value, runtime->ports.default_suspends);
    fflush(stdout);
    runtime->told_pause = true;
}

static void wait_for_resume(struct runtime *runtime)
{
    unsigned long ms = runtime->behaviour->message_after;
    struct timespec limit;
    int error = 0;

    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += (time_t)(ms / 1000);
    limit.tv_nsec += (long)(ms % 1000) * 1000000;
    if (limit.tv_nsec >= 1000000000) {
        limit.tv_sec++;
        limit.tv_nsec -= 1000000000;
    }
    while (!runtime->is_resumed && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&runtime->resumed, &runtime->lock, &limit);
    if (!runtime->is_resumed)
        tell_pause(runtime);
    while (!runtime->is_resumed)
        pthread_cond_wait(&runtime->resumed, &runtime->lock);
}

static void pause_for_tools(struct runtime *runtime)
{
    /* The server thread works already: until the next lines a StartupProfiler is refused. */
    link_sleep(runtime->behaviour->profiler_race);
    pthread_mutex_lock(&runtime->lock);
    if (runtime->behaviour->profiler_race > 0)
        runtime->is_paused_for_startup = true;
    if (ports_any_suspended(&runtime->ports))
        wait_for_resume(runtime);
    pthread_mutex_unlock(&runtime->lock);
}

static bool start_server(struct runtime *runtime)
{
    if (!ports_init(&runtime->ports, runtime))
        return false;
    runtime->has_resume_event = ports_any_suspended(&runtime->ports);
    /* Real ones race; here that is only so where it is wanted. */
    runtime->is_paused_for_startup = runtime->behaviour->profiler_race == 0;
    return picture_start_thread(picture_server_name(runtime), server_run, runtime);
}

static void start_engine(struct runtime *runtime)
{
    link_sleep(runtime->behaviour->start_delay);
    pthread_mutex_lock(&runtime->lock);
    profilers_load_stored(runtime);
    pthread_mutex_unlock(&runtime->lock);
    picture_show_running(runtime);
    pthread_mutex_lock(&runtime->lock);
    sessions_start(runtime);
    runtime->is_started = true;
    hooks_run_stored(runtime);
    pthread_mutex_unlock(&runtime->lock);
}

bool startup_run(struct runtime *runtime)
{
    bool with_server = has_server(runtime);

    picture_show_early(runtime, with_server);
    if (with_server) {
        if (!start_server(runtime))
            return false;
        pause_for_tools(runtime);
    }
    start_engine(runtime);
    ending_begin();
    pthread_mutex_lock(&runtime->lock);
    runtime->is_managed = true;
    report_write(runtime, "start", NULL);
    pthread_mutex_unlock(&runtime->lock);
    return true;
}
