/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Handles (pidfds) of processes that somebody has to be told about at once when
 * they end, or that may have to be killed. A process id can be given to another
 * process; a handle cannot.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/util.h"

struct handle_table;
struct loop;

/* `ended` is called once for each process that ends, with the number it was put in under. NULL when
 * memory is out. */
struct handle_table *handle_table_new(struct loop *loop,
                                      void (*ended)(void *context, uint64_t process),
                                      void *context) MUST_CHECK;
/* Closes all. Returns NULL. */
struct handle_table *handle_table_free(struct handle_table *table);

/* Takes a pidfd. False when memory is out: it is closed, and the end of that process will not be
 * told. */
bool handle_put(struct handle_table *table, uint64_t process, int pidfd) MUST_CHECK;

/* -1 when there is none. The table keeps it. */
int handle_get(const struct handle_table *table, uint64_t process);

void handle_drop(struct handle_table *table, uint64_t process);

/* SIGKILL. 0 or a negative errno. */
int handle_kill(const struct handle_table *table, uint64_t process) MUST_CHECK;

/* The pidfd of whoever made the connection, or -errno; ENOPROTOOPT before kernel 6.5. */
int handle_of_peer(int socket);

/* The pidfd of a process by its number, or -errno. */
int handle_of_pid(pid_t pid);

/* True when the process has not ended yet. */
bool handle_is_alive(int pidfd);
