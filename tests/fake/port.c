/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/port.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/advertise.h"
#include "tests/fake/grammar.h"
#include "tests/fake/link.h"
#include "tests/fake/runtime.h"

enum { ADVERTISE_PATIENCE_MS = 100, DEFAULT_BACKLOG = 255 };

static bool add_port(struct ports *ports, const char *path, bool suspends)
{
    struct port *list = realloc(ports->list, (ports->n + 1) * sizeof *list);
    char *copy = strdup(path);

    if (list)
        ports->list = list;
    if (!list || !copy) {
        free(copy);
        return false;
    }
    list[ports->n++] = (struct port){
        .path = copy,
        .suspends = suspends,
        .is_too_long = strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path,
        .fd = -1,
    };
    return true;
}

/* Where the runtime listens: the start time makes the name unique when a pid comes again. */
static bool default_path(char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    char stat[1024];
    FILE *file = fopen("/proc/self/stat", "re");
    const char *at;
    size_t length;

    if (!file)
        return false;
    length = fread(stat, 1, sizeof stat - 1, file);
    fclose(file);
    stat[length] = '\0';
    at = strrchr(stat, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return false;
    snprintf(path, size, "%s/dotnet-diagnostic-%d-%lu-socket",
             folder && *folder != '\0' ? folder : "/tmp", (int)getpid(), strtoul(at, NULL, 10));
    return true;
}

static bool listen_default(struct port *port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strncpy(address.sun_path, port->path, sizeof address.sun_path - 1);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(port->path, 0600) != 0 || listen(fd, DEFAULT_BACKLOG) != 0) {
        fprintf(stderr, "fake-runtime: %s: %s\n", port->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    port->fd = fd;
    port->is_default = true;
    return true;
}

static bool add_default(struct ports *ports, const char *setting)
{
    char path[sizeof((struct sockaddr_un *)0)->sun_path];

    if (strcmp(setting, "auto") == 0 && !default_path(path, sizeof path))
        return false;
    if (strcmp(setting, "auto") != 0)
        snprintf(path, sizeof path, "%s", setting);
    return add_port(ports, path, ports->default_suspends) &&
           listen_default(&ports->list[ports->n - 1]);
}

bool ports_init(struct ports *ports, struct runtime *runtime)
{
    const struct behaviour *behaviour = runtime->behaviour;
    bool complus = runtime->version->complus_prefix;
    struct grammar_ports read;

    *ports = (struct ports){.runtime = runtime};
    ports->value = grammar_setting("DiagnosticPorts", complus);
    if (!ports->value)
        ports->value = "";
    ports->default_suspends = grammar_switch("DefaultDiagnosticPortSuspend", complus, false);
    if (!grammar_read(ports->value, &read))
        return false;
    for (size_t i = 0; i < read.n; i++) {
        bool fits = strlen(read.list[i].path) < sizeof((struct sockaddr_un *)0)->sun_path;

        if (!fits && !runtime->version->too_long_waits)
            continue;
        if (!add_port(ports, read.list[i].path, read.list[i].suspends)) {
            grammar_deinit(&read);
            return false;
        }
    }
    grammar_deinit(&read);
    return !behaviour->default_port || add_default(ports, behaviour->default_port);
}

bool ports_any_suspended(const struct ports *ports)
{
    for (size_t i = 0; i < ports->n; i++) {
        if (ports->list[i].suspends && !ports->list[i].is_resumed)
            return true;
    }
    return false;
}

static void close_port(struct port *port)
{
    close(port->fd);
    port->fd = -1;
}

/* Writes the advertise, or what the faults make of it. False when the connection is not to be
 * kept. */
static bool advertise(struct ports *ports, int fd, unsigned connection)
{
    struct runtime *runtime = ports->runtime;
    struct advertise frame = {runtime_cookie(runtime, connection), runtime_pid(runtime)};
    struct fault_plan plan = faults_connection(&runtime->behaviour->faults);
    const struct fault *garbage = plan.due[FAULT_GARBAGE_ADVERTISE];
    const struct fault *cut = plan.due[FAULT_CUT_ADVERTISE];
    const struct fault *part = cut ? cut : plan.due[FAULT_HALF_ADVERTISE];
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    size_t length = ADVERTISE_SIZE;
    uint8_t bytes[ADVERTISE_SIZE];

    advertise_write(&frame, bytes);
    if (part)
        length = part->has_argument ? part->argument : ADVERTISE_SIZE / 2;
    if (length > ADVERTISE_SIZE)
        length = ADVERTISE_SIZE;
    if (poll(&writable, 1, ADVERTISE_PATIENCE_MS) != 1)
        return false;
    if (garbage)
        link_write(fd, garbage->text, garbage->text_length, runtime->behaviour->slow_bytes);
    else if (!plan.due[FAULT_NO_ADVERTISE])
        link_write(fd, bytes, length, runtime->behaviour->slow_bytes);
    if (plan.due[FAULT_STOP_AFTER_ADVERTISE])
        raise(SIGSTOP);
    return cut == NULL;
}

static unsigned count_connection(struct ports *ports, struct port *port)
{
    unsigned connection;

    pthread_mutex_lock(&ports->runtime->lock);
    port->connections++;
    connection = ++ports->connections;
    if (ports->advertised_at == 0)
        ports->advertised_at = link_now();
    pthread_mutex_unlock(&ports->runtime->lock);
    return connection;
}

bool ports_connect(struct ports *ports, struct port *port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (port->fd >= 0)
        return true;
    /* What does not fit leaves an empty name, which stands for 107 NULs in the abstract space. */
    if (!port->is_too_long)
        strncpy(address.sun_path, port->path, sizeof address.sun_path - 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return false;
    }
    port->fd = fd;
    if (!advertise(ports, fd, count_connection(ports, port))) {
        close_port(port);
        return false;
    }
    return true;
}

static void note_wait(struct ports *ports, int wait)
{
    pthread_mutex_lock(&ports->runtime->lock);
    if (ports->n_waits < PORT_WAITS_MAX)
        ports->waits[ports->n_waits++] = wait;
    pthread_mutex_unlock(&ports->runtime->lock);
}

static int take_connection(struct ports *ports, struct port *port)
{
    int fd = port->fd;

    if (!port->is_default) {
        port->fd = -1;
        return fd;
    }
    fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        count_connection(ports, port);
    return fd;
}

/* The runtime keeps its connecting ports in reverse order, and the default port behind them. */
static struct port *in_poll_order(struct ports *ports, size_t i)
{
    size_t n_connecting = ports->n;

    if (ports->n > 0 && ports->list[ports->n - 1].is_default)
        n_connecting--;
    return &ports->list[i < n_connecting ? n_connecting - 1 - i : i];
}

/* One round: connects what is not connected, then waits. The descriptor of a connection to serve,
 * or -1; `*wait` is the time-out so far. */
static int next_round(struct ports *ports, struct pollfd *polled, int *wait, struct port **ret_port)
{
    bool connected = true;
    int found = -1;

    for (size_t i = 0; i < ports->n; i++) {
        struct port *port = in_poll_order(ports, i);

        if (!ports_connect(ports, port))
            connected = false;
        /* A port without a connection keeps its place; poll ignores descriptor -1. */
        polled[i] = (struct pollfd){.fd = port->fd, .events = POLLIN};
    }
    *wait = connected ? -1 : grammar_back_off(*wait);
    if (!connected)
        note_wait(ports, *wait);
    if (poll(polled, ports->n, *wait) <= 0)
        return -1;
    for (size_t i = 0; i < ports->n; i++) {
        struct port *port = in_poll_order(ports, i);

        if ((polled[i].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
            /* A command that is there already is lost with the connection. */
            close_port(port);
            *wait = 10;
        } else if ((polled[i].revents & POLLIN) != 0 && found < 0) {
            found = take_connection(ports, port);
            *ret_port = port;
        }
    }
    return found;
}

int ports_next(struct ports *ports, struct port **ret_port)
{
    struct pollfd *polled = calloc(ports->n + 1, sizeof *polled);
    int wait = -1;
    int fd = -1;

    if (!polled)
        abort();
    while (fd < 0)
        fd = next_round(ports, polled, &wait, ret_port);
    free(polled);
    return fd;
}

void ports_remove_default(struct ports *ports)
{
    if (ports->n > 0 && ports->list[ports->n - 1].is_default)
        unlink(ports->list[ports->n - 1].path);
}
