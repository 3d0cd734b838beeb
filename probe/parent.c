/* SPDX-License-Identifier: Apache-2.0 */

#include "probe/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "host/rights.h"
#include "probe/channel.h"
#include "probe/probe.h"
#include "probe/worker.h"

/* Far more than the daemon has at once, those it gave up among them. */
enum { WORKERS_MAX = 32 };

struct child {
    pid_t pid; /* 0: a free place */
    uint64_t serial;
};

struct parent {
    int channel;
    int ends; /* becomes readable when a child ends */
    struct child children[WORKERS_MAX];
};

/* With the daemon everything ends: a worker that hangs in the kernel does so when it comes back. */
_Noreturn static void end(const struct parent *parent)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        if (parent->children[i].pid > 0)
            kill(parent->children[i].pid, SIGKILL);
    }
    _exit(EXIT_SUCCESS);
}

static void report(const struct parent *parent, uint64_t serial, int status, int descriptor)
{
    struct channel_report report = {.serial = serial, .status = status};

    /* A daemon that does not hear of it would count wrongly for ever. */
    if (channel_report(parent->channel, &report, descriptor) != 0)
        end(parent);
}

/* Tells whether a child waits for a processor or for what it looks at; -1 when it cannot be told.
 */
static int open_status(pid_t pid)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/%d/status", (int)pid);
    return open(name, O_RDONLY | O_CLOEXEC);
}

static struct child *find(struct parent *parent, uint64_t serial)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        if (parent->children[i].pid > 0 && parent->children[i].serial == serial)
            return &parent->children[i];
    }
    return NULL;
}

static struct child *find_place(struct parent *parent)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        if (parent->children[i].pid == 0)
            return &parent->children[i];
    }
    return NULL;
}

_Noreturn static void be_worker(const struct parent *parent, pid_t parent_pid,
                                const struct channel_order *order,
                                const int descriptors[static CHANNEL_DESCRIPTORS])
{
    bool kills = order->kind == CHANNEL_KILL;
    sigset_t none;

    close(parent->channel);
    close(parent->ends);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0 ||
        rights_give_up(NULL, kills ? probe_rights_to_kill() : probe_rights_to_look()) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent_pid)
        _exit(EX_OSERR);
    if (kills)
        worker_kill(descriptors[0], descriptors[1]);
    worker_look(descriptors[0]);
}

static void fork_worker(struct parent *parent, const struct channel_order *order,
                        const int descriptors[static CHANNEL_DESCRIPTORS])
{
    struct child *place = find_place(parent);
    pid_t self = getpid(), pid = place ? fork() : -1;
    int status;

    if (pid == 0)
        be_worker(parent, self, order, descriptors);
    if (pid > 0)
        *place = (struct child){.pid = pid, .serial = order->serial};
    status = pid > 0 ? open_status(pid) : -1;
    report(parent, order->serial, pid > 0 ? CHANNEL_FORKED : CHANNEL_NOT_FORKED, status);
    if (status >= 0)
        close(status);
}

static void obey(struct parent *parent, const struct channel_order *order,
                 const int descriptors[static CHANNEL_DESCRIPTORS])
{
    const struct child *child;

    switch ((enum channel_order_kind)order->kind) {
    case CHANNEL_LOOK:
        if (descriptors[0] >= 0)
            fork_worker(parent, order, descriptors);
        break;
    case CHANNEL_KILL:
        if (descriptors[0] >= 0 && descriptors[1] >= 0)
            fork_worker(parent, order, descriptors);
        break;
    case CHANNEL_ABANDON:
        child = find(parent, order->serial);
        if (child)
            kill(child->pid, SIGKILL);
        break;
    }
}

static void take_order(struct parent *parent)
{
    int descriptors[CHANNEL_DESCRIPTORS];
    struct channel_order order;
    int error = channel_take_order(parent->channel, &order, descriptors);

    if (error == -EPIPE || error == -ECONNRESET)
        end(parent);
    if (error != 0)
        return;
    obey(parent, &order, descriptors);
    for (size_t i = 0; i < CHANNEL_DESCRIPTORS; i++) {
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    }
}

static void reap(struct parent *parent)
{
    struct signalfd_siginfo ignored;
    pid_t pid;
    int status;

    (void)!read(parent->ends, &ignored, sizeof ignored);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t i = 0; i < WORKERS_MAX; i++) {
            struct child *child = &parent->children[i];

            if (child->pid != pid)
                continue;
            child->pid = 0;
            report(parent, child->serial, status, -1);
        }
    }
}

void parent_run(int channel)
{
    struct parent parent = {.channel = channel};
    struct pollfd ready[2];
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &ends, NULL) != 0)
        _exit(EXIT_FAILURE);
    parent.ends = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (parent.ends < 0)
        _exit(EXIT_FAILURE);
    ready[0] = (struct pollfd){.fd = channel, .events = POLLIN};
    ready[1] = (struct pollfd){.fd = parent.ends, .events = POLLIN};
    for (;;) {
        if (poll(ready, ARRAY_LENGTH(ready), -1) < 0)
            continue;
        if (ready[1].revents != 0)
            reap(&parent);
        if (ready[0].revents != 0)
            take_order(&parent);
    }
}
