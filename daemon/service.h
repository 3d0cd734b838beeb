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

/* Copies of those that listen and that nobody has taken yet. 0 or a negative errno. */
int service_copy_sockets(const struct service_sockets *sockets,
                         struct service_sockets *ret_copy) MUST_CHECK;

/* Closes those that nobody took. */
void service_sockets_deinit(struct service_sockets *sockets);

bool service_has_manager(void);

enum service_told {
    SERVICE_TOLD,
    SERVICE_IS_BUSY,    /* it may be told later */
    SERVICE_HAS_NOBODY, /* there is no manager, or none that could ever be told */
};

/* Sends one datagram to the manager, and a descriptor with it unless that is -1. Never waits. */
enum service_told service_tell(const char *text, int fd) MUST_CHECK;

/*
 * What is told to the manager. Nothing here ever waits: what cannot be sent at once is sent again
 * later, and the manager's own time for us goes on meanwhile.
 */
struct service;

/* NULL when memory is out. */
struct service *service_new(void) MUST_CHECK;
/* Returns NULL. NULL is allowed. */
struct service *service_free(struct service *service);

/*
 * From the beginning until it is ready, and from service_tell_stopping on: that
 * it goes on, so that the manager waits longer than it would. Nothing at other
 * times. To be called where there was progress, as often as one likes.
 */
void service_tell_progress(struct service *service, struct moment now);

/* Started, or done with a reload. */
void service_tell_ready(struct service *service, struct moment now);
void service_tell_reloading(struct service *service, struct moment now);
void service_tell_stopping(struct service *service, struct moment now);

/* When service_run has to be called at the latest; MOMENT_NEVER when nothing is due. */
struct moment service_next(const struct service *service);

/* Once in each turn of the loop, and from nowhere else: that is what the manager's watchdog
 * watches. */
void service_run(struct service *service, struct moment now);

/* Whether the manager would hear of a new status now: one a second at most. */
bool service_wants_status(const struct service *service, struct moment now);
/* One line for people. */
void service_tell_status(struct service *service, const char *status, struct moment now);
