/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A listening Unix socket: made here, or adopted from the service manager.
 *
 * A left-over socket file is replaced, a live one never: whoever answers on it
 * keeps it. The first one's socket file is never removed by a second.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

/* Of a socket file. */
struct listener_rights {
    uint32_t mode;
    const char *owner; /* a name or a number; NULL: the daemon's own */
    const char *group;
};

struct listener_socket {
    int fd;
    int lock;        /* the lock file beside a socket of our own; -1 for an adopted one */
    char *path;      /* of an adopted one NULL, where it is not known */
    uint64_t device; /* of the socket file; 0 when it is not known */
    uint64_t inode;
    bool is_adopted;
    bool has_made_folder; /* its folder, which goes with it until somebody clears this */
};

/*
 * Makes one. 0, or a negative errno and `*ret_why`, one line that says what is
 * wrong and what to do, which the caller frees.
 */
int listener_make(const char *path, const struct listener_rights *rights,
                  struct listener_socket *ret_socket, char **ret_why) MUST_CHECK;

/*
 * Makes the file of a socket that was made here anew, where it was removed or
 * replaced. The descriptor is another one then; `*ret_old` is the one before,
 * which the caller closes. 0; or a negative errno and `*ret_why`, and all is as
 * before.
 */
int listener_make_anew(struct listener_socket *socket, const struct listener_rights *rights,
                       int *ret_old, char **ret_why) MUST_CHECK;

/* Gives a socket made here other rights. 0, or a negative errno and `*ret_why`. */
int listener_set_rights(const struct listener_socket *socket, const struct listener_rights *rights,
                        char **ret_why) MUST_CHECK;

/* Takes a descriptor that was passed in; it must be a listening Unix stream socket. `path` is where
 * the policy says that it is, NULL when it does not say. */
int listener_adopt(int fd, const char *path, struct listener_socket *ret_socket,
                   char **ret_why) MUST_CHECK;

/* Closes it, and removes its files if they are still those that were made here. */
void listener_close(struct listener_socket *socket);

/* True when the file at its path is still the one that is being listened on; an adopted one whose
 * path is not known is taken to be. */
bool listener_is_in_place(const struct listener_socket *socket);

/* Where that is not so: whose it is, what is wrong and what to do, in one line that the caller
 * frees; NULL when memory is out. `units` are those to restart where it was passed in. */
char *listener_explain(const struct listener_socket *socket, const char *what,
                       const char *units) MUST_CHECK;
