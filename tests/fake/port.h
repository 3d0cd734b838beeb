/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The diagnostic ports and their connections: connect, advertise, wait. One
 * thread does all of it, and while it is blocked in one place (a full accept
 * queue, a half message) nothing happens on any port: that is how the runtime
 * is built, and what the tests need.
 *
 * What comes in over a connection is not known here.
 */

#include <stdbool.h>
#include <stddef.h>

struct runtime;

struct port {
    char *path;
    bool suspends;
    bool is_too_long; /* connects to an address that nobody can have */
    bool is_default;  /* the runtime listens there itself */
    int fd;           /* the idle connection, or the listening socket; -1 */
    bool is_resumed;
    unsigned connections; /* made or accepted so far; with the runtime's lock */
    unsigned resumes;     /* ResumeRuntime commands so far; with the runtime's lock */
};

enum { PORT_WAITS_MAX = 24 };

struct ports {
    struct runtime *runtime;
    struct port *list; /* as listed, the default port last */
    size_t n;
    const char *value; /* the setting they came from, "" for none */
    bool default_suspends;
    unsigned connections;      /* of all ports; with the runtime's lock */
    long advertised_at;        /* the first time, in link_now's milliseconds; 0 before */
    int waits[PORT_WAITS_MAX]; /* the first time-outs of unconnected polls; with the lock */
    size_t n_waits;
};

/* Makes the ports from the environment, and binds the default one. False with a line on standard
 * error. */
bool ports_init(struct ports *ports, struct runtime *runtime);

bool ports_any_suspended(const struct ports *ports);

/* Connects that port, unless it is connected, and advertises; false when that failed. Blocks as
 * long as the accept queue of the listener is full. */
bool ports_connect(struct ports *ports, struct port *port);

/* Waits for the next connection on which something can be read, takes it out and returns its
 * descriptor. */
int ports_next(struct ports *ports, struct port **ret_port);

/* Removes the file of the default port, as an orderly end does. */
void ports_remove_default(struct ports *ports);
