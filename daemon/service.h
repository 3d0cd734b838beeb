/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a service manager passes in and wants to be told. Without libsystemd, or
 * outside of systemd, nothing is passed and nobody is told.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/moment.h"
#include "lib/util.h"

struct service_socket {
    int fd; /* -1 once it was taken */
    char *name;
};

struct service_sockets {
    struct service_socket *list;
    size_t n;
};

/* Takes over the sockets that were passed. 0 or a negative errno. */
int service_take_sockets(struct service_sockets *ret_sockets) MUST_CHECK;

/* The descriptor passed under that name, which the caller owns from now on; -1 when there is none.
 */
int service_take_socket(struct service_sockets *sockets, const char *name);

/* Closes those that nobody took. */
void service_sockets_deinit(struct service_sockets *sockets);

/* The states of the manager's protocol; `status` is one line for people. They never block: what
 * cannot be sent at once is lost. False: readiness has to be told again later. */
bool service_tell_ready(const char *status) MUST_CHECK;
void service_tell_reloading(struct moment now);
void service_tell_stopping(void);
