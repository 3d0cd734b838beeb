/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/ports.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/peer.h"
#include "daemon/service.h"
#include "lib/broker.h"
#include "lib/policy.h"
#include "lib/tree.h"

enum { ACCEPTS_PER_TURN = 64 };

#define RETRY_TIME span_from_ms(100)

struct rights {
    uint32_t mode;
    char *owner;
    char *group;
};

/* What becomes of a port when the change at hand is carried out. */
enum port_change {
    PORT_STAYS,
    PORT_COMES, /* opened for the change, and not accepted from before */
    PORT_GOES,
};

struct port {
    TAILQ_ENTRY(port) link;
    struct ports *ports;
    uint32_t number;
    char *name;
    char *path;
    struct rights rights;
    struct rights old_rights; /* while a change of them is staged */
    bool has_new_rights;
    struct listener_socket socket;
    struct loop_watch *watch;
    bool was_passed_in;
    bool is_missing; /* the last look found that its file was removed or replaced; it was told */
    enum port_change change;
};

struct ports {
    struct loop *loop;
    struct broker *broker;
    struct peer_owner *peers;
    TAILQ_HEAD(, port) list;
    uint32_t n_numbers;
    uint32_t last; /* number of the port that accepted last */
    bool is_paused;
    struct moment retry; /* something about a listener could not be done */
};

struct ports *ports_new(struct loop *loop, struct broker *broker, struct peer_owner *peers)
{
    struct ports *ports = calloc(1, sizeof *ports);

    if (!ports)
        return NULL;
    ports->loop = loop;
    ports->broker = broker;
    ports->peers = peers;
    ports->retry = MOMENT_NEVER;
    TAILQ_INIT(&ports->list);
    return ports;
}

static void rights_deinit(struct rights *rights)
{
    free(rights->owner);
    free(rights->group);
    *rights = (struct rights){0};
}

static bool rights_copy(struct rights *rights, const struct policy_listen *listen)
{
    rights->mode = listen->mode;
    rights->owner = listen->owner ? strdup(listen->owner) : NULL;
    rights->group = listen->group ? strdup(listen->group) : NULL;
    return (!listen->owner || rights->owner) && (!listen->group || rights->group);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool rights_are(const struct rights *rights, const struct policy_listen *listen)
{
    return rights->mode == listen->mode && same_text(rights->owner, listen->owner) &&
           same_text(rights->group, listen->group);
}

static struct listener_rights rights_of(const struct rights *rights)
{
    return (struct listener_rights){.mode = rights->mode,
                                    .owner = rights->owner,
                                    .group = rights->group};
}

static void close_port(struct port *port)
{
    TAILQ_REMOVE(&port->ports->list, port, link);
    loop_watch_free(port->watch);
    listener_close(&port->socket);
    rights_deinit(&port->rights);
    rights_deinit(&port->old_rights);
    free(port->name);
    free(port->path);
    free(port);
}

struct ports *ports_free(struct ports *ports)
{
    if (!ports)
        return NULL;
    while (!TAILQ_EMPTY(&ports->list))
        close_port(TAILQ_FIRST(&ports->list));
    free(ports);
    return NULL;
}

static int explain(int error, char **ret_why, const char *format, ...) PRINTF_LIKE(3, 4);

static int explain(int error, char **ret_why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(ret_why, format, arguments) < 0)
        *ret_why = NULL;
    va_end(arguments);
    return error;
}

/* Accepting. */

static void try_again_later(struct ports *ports)
{
    ports->retry = moment_after(clock_now(), RETRY_TIME);
}

static void judge_port(struct port *port)
{
    struct ports *ports = port->ports;

    if (!port->watch)
        return;
    loop_watch_pause(port->watch);
    if (!ports->is_paused && !loop_watch_go_on(port->watch)) {
        log_error("the listener %s cannot be watched now: %s", port->name, strerror(errno));
        try_again_later(ports);
    }
}

/* Those after the one that accepted last come first: where places come free one at a time, each
 * listener gets its share of them. */
static void judge(struct ports *ports)
{
    struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (port->number > ports->last)
            judge_port(port);
    }
    TAILQ_FOREACH(port, &ports->list, link) {
        if (port->number <= ports->last)
            judge_port(port);
    }
}

static void accept_peers(void *context)
{
    struct port *port = context;
    struct ports *ports = port->ports;

    for (int i = 0; i < ACCEPTS_PER_TURN && !ports->is_paused; i++) {
        int fd = accept4(port->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            ports->last = port->number;
            peer_open(ports->peers, fd, port->number);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            /* Whatever it is: who waits there stays readable, and would be tried without end. */
            broker_descriptors_ran_out(ports->broker, clock_now());
            ports->peers->settle(ports->peers->context);
        }
    }
}

void ports_accept(struct ports *ports)
{
    struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (port->watch)
            accept_peers(port);
    }
}

void ports_pause(struct ports *ports, bool is_paused)
{
    ports->is_paused = is_paused;
    judge(ports);
}

struct moment ports_retry(const struct ports *ports)
{
    return ports->retry;
}

static int start_port(struct port *port, char **ret_why);

void ports_try_again(struct ports *ports, struct moment now)
{
    struct port *port;

    if (!moment_is_due(ports->retry, now))
        return;
    ports->retry = MOMENT_NEVER;
    TAILQ_FOREACH(port, &ports->list, link) {
        char *why = NULL;

        if (!port->watch && port->change == PORT_STAYS && start_port(port, &why) != 0)
            try_again_later(ports);
        free(why);
    }
    judge(ports);
}

/* Opening. */

static struct port *new_port(struct ports *ports, const struct policy_listen *listen)
{
    struct port *port = calloc(1, sizeof *port);

    if (!port)
        return NULL;
    port->ports = ports;
    port->socket = (struct listener_socket){.fd = -1, .lock = -1};
    port->name = strdup(listen->name);
    port->path = strdup(listen->path);
    TAILQ_INSERT_TAIL(&ports->list, port, link);
    if (rights_copy(&port->rights, listen) && port->name && port->path)
        return port;
    close_port(port);
    return NULL;
}

/* Opens it without accepting from it yet. */
static int open_port(struct ports *ports, const struct policy_listen *listen, int passed,
                     struct port **ret_port, char **ret_why)
{
    struct port *port = new_port(ports, listen);
    struct listener_rights rights;
    char *why = NULL;
    int error;

    if (!port)
        return explain(-ENOMEM, ret_why, "memory ran out");
    port->was_passed_in = passed >= 0;
    rights = rights_of(&port->rights);
    error = passed >= 0 ? listener_adopt(passed, listen->path, &port->socket, &why)
                        : listener_make(listen->path, &rights, &port->socket, &why);
    if (error == 0) {
        *ret_port = port;
        return 0;
    }
    explain(error, ret_why, "the listener %s cannot be opened: %s", listen->name,
            why ? why : strerror(-error));
    free(why);
    close_port(port);
    return error;
}

static int start_port(struct port *port, char **ret_why)
{
    struct ports *ports = port->ports;

    port->change = PORT_STAYS;
    port->number = ports->n_numbers;
    port->watch = loop_watch_new(ports->loop, port->socket.fd, accept_peers, port);
    if (!port->watch || broker_listener_add(ports->broker, port->number, port->name, port->path,
                                            port->socket.device, port->socket.inode) != 0) {
        port->watch = loop_watch_free(port->watch);
        return explain(-ENOMEM, ret_why, "memory ran out for the listener %s", port->name);
    }
    ports->n_numbers++;
    if (ports->is_paused)
        loop_watch_pause(port->watch);
    log_info("listening on %s as %s%s", port->path, port->name,
             port->was_passed_in ? ", passed in" : "");
    return 0;
}

int ports_open(struct ports *ports, const struct policy *policy, struct service_sockets *passed,
               char **ret_why)
{
    *ret_why = NULL;
    for (size_t i = 0; i < policy->n_listens; i++) {
        const struct policy_listen *listen = &policy->listens[i];
        int fd = service_take_socket(passed, listen->name);
        struct port *port;
        int error = open_port(ports, listen, fd, &port, ret_why);

        if (error == 0)
            error = start_port(port, ret_why);
        if (error != 0)
            return error;
    }
    return 0;
}

void ports_keep_folders(struct ports *ports)
{
    struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        port->socket.has_made_folder = false;
    }
}

/* Files that go missing. */

static char *explain_missing(const struct port *port)
{
    char *what, *why;

    if (asprintf(&what, "the listener %s", port->name) < 0)
        return NULL;
    why = listener_explain(&port->socket, what, "diagportd.socket");
    free(what);
    return why;
}

bool ports_look(struct ports *ports, char **ret_why)
{
    struct port *port;
    bool are_in_place = true;

    *ret_why = NULL;
    TAILQ_FOREACH(port, &ports->list, link) {
        bool was_missing = port->is_missing;
        char *why;

        port->is_missing = !listener_is_in_place(&port->socket);
        if (!port->is_missing)
            continue;
        why = explain_missing(port);
        if (!was_missing)
            log_error("%s", why ? why : "memory ran out for telling what is wrong with a socket");
        if (!*ret_why)
            *ret_why = util_take(&why);
        free(why);
        are_in_place = false;
    }
    return are_in_place;
}

static void make_anew(struct port *port)
{
    struct listener_rights rights = rights_of(&port->rights);
    char *why = NULL;
    int old;

    if (listener_make_anew(&port->socket, &rights, &old, &why) != 0) {
        log_error("the listener %s stays without its socket file: %s", port->name,
                  why ? why : "memory ran out");
    } else {
        /* Those in the queue of the old one connect again. */
        port->watch = loop_watch_free(port->watch);
        close(old);
        free(util_take(&why));
        if (start_port(port, &why) != 0) {
            log_error("%s; it is tried again", why ? why : "memory ran out");
            try_again_later(port->ports);
        }
    }
    free(why);
}

void ports_repair(struct ports *ports)
{
    struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (!port->was_passed_in && !listener_is_in_place(&port->socket))
            make_anew(port);
    }
}

/* Changing. */

static struct port *find(const struct ports *ports, const char *name)
{
    struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (port->change != PORT_COMES && strcmp(port->name, name) == 0)
            return port;
    }
    return NULL;
}

static const struct port *find_path(const struct ports *ports, const char *path)
{
    const struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (strcmp(port->path, path) == 0)
            return port;
    }
    return NULL;
}

static int stage_rights(struct port *port, const struct policy_listen *listen, char **ret_why)
{
    struct rights rights = {0};
    struct listener_rights wanted;
    char *why = NULL;
    int error;

    if (!rights_copy(&rights, listen)) {
        rights_deinit(&rights);
        return explain(-ENOMEM, ret_why, "memory ran out");
    }
    wanted = rights_of(&rights);
    error = listener_set_rights(&port->socket, &wanted, &why);
    if (error != 0) {
        rights_deinit(&rights);
        explain(error, ret_why, "mode, owner and group of the listener %s cannot be changed: %s",
                port->name, why ? why : strerror(-error));
        free(why);
        return error;
    }
    port->old_rights = port->rights;
    port->rights = rights;
    port->has_new_rights = true;
    return 0;
}

static int stage_listen(struct ports *ports, const struct policy_listen *listen, char **ret_why)
{
    struct port *port = find(ports, listen->name), *opened;
    const struct port *in_the_way = find_path(ports, listen->path);
    int error;

    if (port && strcmp(port->path, listen->path) == 0) {
        port->change = PORT_STAYS;
        if (port->was_passed_in || rights_are(&port->rights, listen))
            return 0;
        return stage_rights(port, listen, ret_why);
    }
    if (port && port->was_passed_in)
        return explain(-EINVAL, ret_why,
                       "the path of the listener %s cannot be changed by a reload: its socket was "
                       "passed in; restart the socket unit and the daemon",
                       listen->name);
    if (in_the_way)
        return explain(-EBUSY, ret_why,
                       "the socket %s is that of the listener %s, and a reload can neither rename "
                       "a listener nor let two change places; restart the daemon",
                       listen->path, in_the_way->name);
    error = open_port(ports, listen, -1, &opened, ret_why);
    if (error == 0)
        opened->change = PORT_COMES;
    return error;
}

/* The service manager goes on listening on what it passed in, and nobody would accept. */
static int stage_removals(const struct ports *ports, char **ret_why)
{
    const struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (port->change == PORT_GOES && port->was_passed_in)
            return explain(-EINVAL, ret_why,
                           "the listener %s cannot be removed by a reload: its socket was passed "
                           "in; stop its socket unit and restart the daemon",
                           port->name);
    }
    return 0;
}

int ports_stage(struct ports *ports, const struct policy *policy, char **ret_why)
{
    struct port *port;
    int error = 0;

    *ret_why = NULL;
    TAILQ_FOREACH(port, &ports->list, link) {
        port->change = PORT_GOES;
    }
    for (size_t i = 0; i < policy->n_listens && error == 0; i++)
        error = stage_listen(ports, &policy->listens[i], ret_why);
    if (error == 0)
        error = stage_removals(ports, ret_why);
    if (error != 0)
        ports_abandon(ports);
    return error;
}

void ports_commit(struct ports *ports)
{
    struct port *port, *following;

    TAILQ_FOREACH_SAFE(port, &ports->list, link, following) {
        char *why = NULL;

        port->has_new_rights = false;
        port->socket.has_made_folder = false;
        rights_deinit(&port->old_rights);
        if (port->change == PORT_GOES) {
            log_info("not listening on %s any more", port->path);
            close_port(port);
        } else if (port->change == PORT_COMES && start_port(port, &why) != 0) {
            /* It is open, so whoever comes waits in its queue until it can be watched. */
            log_error("%s; it is tried again", why ? why : "memory ran out");
            free(why);
            try_again_later(ports);
        }
    }
}

void ports_abandon(struct ports *ports)
{
    struct port *port, *following;

    TAILQ_FOREACH_SAFE(port, &ports->list, link, following) {
        struct listener_rights old = rights_of(&port->old_rights);
        char *why = NULL;

        if (port->change == PORT_COMES) {
            close_port(port);
            continue;
        }
        port->change = PORT_STAYS;
        if (!port->has_new_rights)
            continue;
        if (listener_set_rights(&port->socket, &old, &why) != 0)
            log_error("the listener %s keeps new rights: %s", port->name,
                      why ? why : "memory ran out");
        free(why);
        rights_deinit(&port->rights);
        port->rights = port->old_rights;
        port->old_rights = (struct rights){0};
        port->has_new_rights = false;
    }
}

/* A connection has the address of the socket that it was accepted from, whoever listened there. */
static bool has_address_of(int connection, int listener)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX}, other = {.sun_family = AF_UNIX};
    socklen_t own_size = sizeof own, other_size = sizeof other;

    return getsockname(connection, (struct sockaddr *)&own, &own_size) == 0 &&
           getsockname(listener, (struct sockaddr *)&other, &other_size) == 0 &&
           own_size == other_size && memcmp(&own, &other, own_size) == 0;
}

uint32_t ports_number_of(const struct ports *ports, int connection)
{
    const struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (has_address_of(connection, port->socket.fd))
            return port->number;
    }
    return UINT32_MAX;
}

bool ports_has_passed_in(const struct ports *ports)
{
    const struct port *port;

    TAILQ_FOREACH(port, &ports->list, link) {
        if (port->was_passed_in)
            return true;
    }
    return false;
}

size_t ports_count(const struct ports *ports)
{
    const struct port *port;
    size_t n = 0;

    TAILQ_FOREACH(port, &ports->list, link) {
        n++;
    }
    return n;
}

struct ports_entry ports_get(const struct ports *ports, size_t index)
{
    const struct port *port = TAILQ_FIRST(&ports->list);

    while (index-- > 0)
        port = TAILQ_NEXT(port, link);
    return (struct ports_entry){
        .name = port->name,
        .path = port->path,
        .was_passed_in = port->was_passed_in,
        .is_in_place = listener_is_in_place(&port->socket),
    };
}
