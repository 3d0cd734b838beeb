/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/loop.h"
#include "lib/broker.h"

enum {
    READ_SIZE = 16 * 1024,
    /* So much of one connection per turn of the loop; the others wait no longer than that. It is
     * more than the kernel keeps of a connection unread. */
    READS_PER_TURN = 16,
};

struct peer {
    TAILQ_ENTRY(peer) in_all;
    TAILQ_ENTRY(peer) in_asked;
    int n_asked; /* reads that it is still to have */
    struct peer_owner *owner;
    struct connection *connection;
    struct loop_watch *watch;
    int fd;
    bool is_kept; /* somebody else has it, too: closing it does not hang up */
};

static void on_ready(void *context);

void peer_owner_init(struct peer_owner *owner, struct broker *broker, struct loop *loop,
                     void (*settle)(void *context), void *context)
{
    *owner =
        (struct peer_owner){.broker = broker, .loop = loop, .settle = settle, .context = context};
    TAILQ_INIT(&owner->asked);
    TAILQ_INIT(&owner->all);
}

static void forget_asked(struct peer *peer)
{
    if (peer->n_asked == 0)
        return;
    peer->n_asked = 0;
    TAILQ_REMOVE(&peer->owner->asked, peer, in_asked);
}

static void drop(struct peer *peer)
{
    if (peer->owner->reading == peer)
        peer->owner->reading = NULL;
    forget_asked(peer);
    TAILQ_REMOVE(&peer->owner->all, peer, in_all);
    loop_watch_free(peer->watch);
    close(peer->fd);
    free(peer);
}

void peer_owner_deinit(struct peer_owner *owner)
{
    while (!TAILQ_EMPTY(&owner->all))
        drop(TAILQ_FIRST(&owner->all));
}

static bool credentials(int fd, struct broker_peer *ret_peer)
{
    struct ucred credentials = {0};
    socklen_t size = sizeof credentials;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
        return false;
    *ret_peer = (struct broker_peer){.pid = credentials.pid,
                                     .uid = credentials.uid,
                                     .gid = credentials.gid};
    return true;
}

/* The core does not know it yet. */
static struct peer *peer_new(struct peer_owner *owner, int fd)
{
    struct peer *peer = calloc(1, sizeof *peer);

    if (!peer)
        return NULL;
    peer->owner = owner;
    peer->fd = fd;
    peer->watch = loop_watch_new(owner->loop, fd, on_ready, peer);
    if (peer->watch)
        return peer;
    free(peer);
    return NULL;
}

static void give_up(struct peer *peer)
{
    if (peer)
        loop_watch_free(peer->watch);
    free(peer);
}

bool peer_adopt(struct peer_owner *owner, int fd, uint32_t listener, uint64_t kept)
{
    struct peer *peer = peer_new(owner, fd);
    struct broker_peer who;

    if (!peer || !credentials(fd, &who) ||
        broker_adopt(owner->broker, listener, peer, &who, kept, clock_now(), &peer->connection) !=
            0) {
        give_up(peer);
        return false;
    }
    peer->is_kept = true;
    TAILQ_INSERT_TAIL(&owner->all, peer, in_all);
    owner->settle(owner->context);
    return true;
}

void peer_open(struct peer_owner *owner, int fd, uint32_t listener)
{
    struct peer *peer = peer_new(owner, fd);
    struct broker_peer who;

    if (!peer || !credentials(fd, &who) ||
        broker_connection_new(owner->broker, listener, peer, &who, clock_now(),
                              &peer->connection) != 0) {
        give_up(peer);
        close(fd);
        return;
    }
    TAILQ_INSERT_TAIL(&owner->all, peer, in_all);
    owner->reading = peer;
    owner->settle(owner->context);
    /* A runtime has sent its advertise by now, so it must not count as silent when places run
     * short.
     */
    if (owner->reading == peer)
        on_ready(peer);
}

enum reading {
    READ_NOTHING, /* nothing there, or the end */
    READ_SOME,    /* less than asked for: nothing more was there just now, except maybe the end */
    READ_FULL,
};

/* Reads once and reports what was there. */
static enum reading read_once(struct peer *peer)
{
    static uint8_t buffer[READ_SIZE];
    ssize_t length;

    do
        length = recv(peer->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return READ_NOTHING;
    if (length <= 0) {
        broker_connection_ended(peer->connection, clock_now());
        return READ_NOTHING;
    }
    broker_connection_bytes(peer->connection, buffer, (size_t)length, clock_now());
    return length == sizeof buffer ? READ_FULL : READ_SOME;
}

static void on_ready(void *context)
{
    struct peer *peer = context;
    struct peer_owner *owner = peer->owner;
    bool has_more = true;

    owner->reading = peer;
    for (int i = 0; i < READS_PER_TURN && has_more && owner->reading == peer; i++) {
        has_more = read_once(peer) == READ_FULL;
        owner->settle(owner->context);
    }
    owner->reading = NULL;
}

void peer_ask_read(struct peer *peer)
{
    if (peer->n_asked == 0)
        TAILQ_INSERT_TAIL(&peer->owner->asked, peer, in_asked);
    peer->n_asked = READS_PER_TURN;
}

bool peer_read_asked(struct peer_owner *owner)
{
    struct peer *peer = TAILQ_FIRST(&owner->asked);

    if (!peer)
        return false;
    /* After its end it is closed, and with that out of the list. Who sends as fast as we read is
     * not read to an end that never comes. */
    if (read_once(peer) == READ_NOTHING || peer->n_asked == 1)
        forget_asked(peer);
    else
        peer->n_asked--;
    return true;
}

void peer_send(struct peer *peer, const uint8_t *bytes, size_t length)
{
    ssize_t sent;

    do
        sent = send(peer->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    /* Half a message would keep the runtime's only server thread reading for ever. */
    if (sent != (ssize_t)length)
        shutdown(peer->fd, SHUT_RDWR);
}

void peer_close(struct peer *peer)
{
    if (peer->is_kept)
        shutdown(peer->fd, SHUT_RDWR);
    drop(peer);
}

void peer_be_kept(struct peer *peer)
{
    peer->is_kept = true;
}

int peer_descriptor(const struct peer *peer)
{
    return peer->fd;
}
