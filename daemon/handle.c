/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/handle.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/loop.h"
#include "lib/tree.h"

/* Newer than the headers of some systems we build on. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct handle {
    RB_ENTRY(handle) link;
    struct handle_table *table;
    uint64_t process;
    int pidfd;
    struct loop_watch *watch;
};

struct handle_table {
    struct loop *loop;
    void (*ended)(void *context, uint64_t process);
    void *context;
    RB_HEAD(handle_tree, handle) tree;
};

static int compare(const struct handle *a, const struct handle *b)
{
    return a->process < b->process ? -1 : a->process > b->process;
}

TREE_GENERATE(handle_tree, handle, link, compare)

struct handle_table *handle_table_new(struct loop *loop,
                                      void (*ended)(void *context, uint64_t process), void *context)
{
    struct handle_table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    table->loop = loop;
    table->ended = ended;
    table->context = context;
    RB_INIT(&table->tree);
    return table;
}

static void remove_handle(struct handle *handle)
{
    RB_REMOVE(handle_tree, &handle->table->tree, handle);
    loop_watch_free(handle->watch);
    close(handle->pidfd);
    free(handle);
}

struct handle_table *handle_table_free(struct handle_table *table)
{
    struct handle *handle, *following;

    if (!table)
        return NULL;
    RB_FOREACH_SAFE(handle, handle_tree, &table->tree, following) {
        remove_handle(handle);
    }
    free(table);
    return NULL;
}

static void on_end(void *context)
{
    struct handle *handle = context;

    /* It stays readable; the owner drops it when it has acted. */
    loop_watch_pause(handle->watch);
    handle->table->ended(handle->table->context, handle->process);
}

bool handle_put(struct handle_table *table, uint64_t process, int pidfd)
{
    struct handle *handle = calloc(1, sizeof *handle);

    if (!handle) {
        close(pidfd);
        return false;
    }
    *handle = (struct handle){.table = table, .process = process, .pidfd = pidfd};
    handle->watch = loop_watch_new(table->loop, pidfd, on_end, handle);
    if (!handle->watch || RB_INSERT(handle_tree, &table->tree, handle)) {
        loop_watch_free(handle->watch);
        close(pidfd);
        free(handle);
        return false;
    }
    return true;
}

static struct handle *find(const struct handle_table *table, uint64_t process)
{
    struct handle_tree tree = {table->tree.rbh_root};
    struct handle key = {.process = process};

    return RB_FIND(handle_tree, &tree, &key);
}

int handle_get(const struct handle_table *table, uint64_t process)
{
    const struct handle *handle = find(table, process);

    return handle ? handle->pidfd : -1;
}

void handle_drop(struct handle_table *table, uint64_t process)
{
    struct handle *handle = find(table, process);

    if (handle)
        remove_handle(handle);
}

int handle_kill(const struct handle_table *table, uint64_t process)
{
    int pidfd = handle_get(table, process);

    if (pidfd < 0)
        return -ESRCH;
    return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0 ? 0 : -errno;
}

int handle_of_peer(int socket)
{
    int pidfd = -1;
    socklen_t size = sizeof pidfd;

    return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0 ? pidfd : -errno;
}

int handle_of_pid(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    return pidfd >= 0 ? pidfd : -errno;
}

bool handle_is_alive(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    return poll(&end, 1, 0) == 0;
}
