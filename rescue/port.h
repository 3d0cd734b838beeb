/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sockets that runtimes connect to: bound here, or passed in by a service
 * manager. A left-over file is replaced as the daemon does it, a socket that
 * somebody listens on never.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

struct port {
    int fd;
    int lock;         /* -1 for one that was passed in */
    const char *path; /* NULL for one that was passed in; the caller's */
    uint64_t device, inode;
};

/* Binds one, for everybody to connect to. False, and a line says why. */
bool port_make(const char *path, struct port *ret_port) MUST_CHECK;

/* How many descriptors were passed to this very process, the first of them being 3. */
int port_n_passed(void);

/* Takes over one that was passed in. False, and it is closed, when it is no listening Unix socket.
 */
bool port_adopt(int fd, struct port *ret_port) MUST_CHECK;

/* Closes it, and removes the file if it is still the one that was made here. */
void port_close(struct port *port);
