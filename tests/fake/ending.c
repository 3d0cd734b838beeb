/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/ending.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/fake/runtime.h"

enum { STATUS_TERMINATED = 143 };

static int terminated_fd = -1;
static volatile sig_atomic_t is_running;

static void on_terminate(int signal_number)
{
    (void)signal_number;
    if (is_running)
        eventfd_write(terminated_fd, 1);
}

static void catch_terminate(void)
{
    struct sigaction terminate = {.sa_handler = on_terminate, .sa_flags = SA_RESTART};

    sigaction(SIGTERM, &terminate, NULL);
}

void ending_prepare(const struct version *version)
{
    struct rlimit none = {0, 0};

    /* Many deaths are meant; nobody wants their cores. */
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGPIPE, SIG_IGN);
    terminated_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (version->terminate_is_lost)
        catch_terminate();
}

void ending_begin(void)
{
    is_running = 1;
    catch_terminate();
}

const char *ending_wait(const struct runtime *runtime)
{
    unsigned run_for = runtime->behaviour->run_for;
    struct pollfd events[] = {
        {.fd = terminated_fd, .events = POLLIN},
        {.fd = run_for == RUN_FOR_STDIN ? STDIN_FILENO : -1, .events = POLLIN},
    };
    char buffer[512];

    while (run_for != RUN_FOR_EXIT) {
        if (poll(events, 2, -1) < 0)
            continue;
        if (events[0].revents != 0)
            return "signal";
        if (events[1].revents != 0 && read(STDIN_FILENO, buffer, sizeof buffer) <= 0)
            return "stdin";
    }
    return NULL;
}

int ending_end(struct runtime *runtime, const char *reason)
{
    bool is_terminated = reason && strcmp(reason, "signal") == 0;

    pthread_mutex_lock(&runtime->lock);
    sessions_finish(runtime);
    if (reason)
        report_write(runtime, "end", reason);
    pthread_mutex_unlock(&runtime->lock);
    /* Who is killed leaves the file of the default port behind. */
    if (is_terminated && !runtime->version->terminate_is_clean)
        runtime_die(SIGTERM, NULL);
    ports_remove_default(&runtime->ports);
    return is_terminated ? STATUS_TERMINATED : (int)runtime->behaviour->exit_status;
}
