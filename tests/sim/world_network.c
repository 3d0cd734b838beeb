/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The network of a world: connections, what waits to be accepted or read, and
 * what was sent and not yet taken. What the bytes mean, and whose they are, is
 * not known here; what else the broker wants done is in world.c.
 */

#include <stdlib.h>
#include <string.h>

#include "lib/action.h"
#include "lib/bytes.h"
#include "lib/wire.h"
#include "tests/sim/world.h"

void world_drop_message(struct world_connection *connection)
{
    free(connection->message);
    connection->message = NULL;
    connection->message_length = 0;
}

static void drop_inbox(struct world_connection *connection)
{
    free(connection->inbox);
    connection->inbox = NULL;
    connection->inbox_length = 0;
}

/* What the broker wants done with a connection. */

void world_take_message(struct world_connection *connection, struct action *action)
{
    if (connection->is_closed)
        world_fail("a message was sent to a connection that was closed");
    if (connection->message && !connection->has_ended)
        world_fail("two messages were sent on one connection");
    world_drop_message(connection);
    connection->message = action->bytes;
    connection->message_length = action->length;
    connection->n_messages++;
    action->bytes = NULL;
    /* Half a message is none: both sides see the end of the connection. */
    if (connection->world->fails_to_send) {
        connection->world->fails_to_send = false;
        world_drop_message(connection);
        connection->has_ended = true;
    }
}

void world_close(struct world_connection *connection)
{
    if (connection->is_closed)
        world_fail("a connection was closed twice");
    connection->core = NULL;
    connection->is_asked = false;
    /* The dead let go of nothing that is in the store. */
    if (connection->kept != 0 && connection->world->is_daemon_dead)
        return;
    if (connection->kept != 0)
        world_fail("a connection was closed that is kept");
    connection->is_closed = true;
    connection->world->n_unread += connection->world->is_judging && !connection->process->is_dead &&
                                   connection->inbox_length > 0;
    drop_inbox(connection);
    /* A runtime that did not take the message yet drops it. */
    world_drop_message(connection);
}

void world_ask_read(struct world_connection *connection)
{
    struct world *world = connection->world;

    if (connection->is_asked)
        return;
    connection->is_asked = true;
    world->n_asked++;
}

/* What it is told. */

/* Reports once what a connection has; false when it has nothing. */
static bool report(struct world_connection *connection, size_t size)
{
    struct world *world = connection->world;
    size_t length = size < connection->inbox_length ? size : connection->inbox_length;
    uint8_t *bytes = connection->inbox;

    if (!connection->core)
        return false;
    if (length == 0) {
        if (!connection->has_ended || connection->is_end_told)
            return false;
        connection->is_end_told = true;
        world_before_call(world);
        broker_connection_ended(connection->core, world->now);
        world_after_call(world);
        return true;
    }
    connection->inbox_length -= length;
    connection->inbox = NULL;
    if (connection->inbox_length > 0) {
        connection->inbox = world_need(malloc(connection->inbox_length));
        memcpy(connection->inbox, bytes + length, connection->inbox_length);
    }
    world_before_call(world);
    broker_connection_bytes(connection->core, bytes, length, world->now);
    world_after_call(world);
    free(bytes);
    return true;
}

/* As the daemon does, a connection that was asked for is read until there is nothing more. */
bool world_read_asked(struct world *world)
{
    for (size_t i = 0; world->n_asked > 0 && i < world->n_open; i++) {
        struct world_connection *connection = world->open[i];

        if (!connection->is_asked)
            continue;
        if (report(connection, SIZE_MAX))
            return true;
        connection->is_asked = false;
        world->n_asked--;
    }
    return false;
}

static struct broker_peer peer_of(const struct world_process *process)
{
    return (struct broker_peer){.pid = process->hides_pid ? 0 : process->pid,
                                .uid = process->uid,
                                .gid = 5};
}

static void accept_connection(struct world_connection *connection)
{
    struct world *world = connection->world;
    struct broker_peer peer = peer_of(connection->process);
    int error;

    connection->is_accepted = true;
    world->last_listener = connection->listener;
    world->n_waiting--;
    world_before_call(world);
    error = broker_connection_new(world->broker, connection->listener, connection, &peer,
                                  world->now, &connection->core);
    world_after_call(world);
    if (error != 0 && !world->before_call)
        world_fail("a connection was not taken");
    if (error != 0)
        connection->is_closed = true;
    world_settle_all_but_queues(world);
    /* As the shell does: who has sent its advertise by now is not silent. */
    if (!connection->is_closed)
        report(connection, SIZE_MAX);
    world_settle(world);
    /* What it sent while it waited. */
    while (!world->is_network_slow && world_deliver(connection, SIZE_MAX))
        ;
}

bool world_accept(struct world *world, uint32_t listener)
{
    if (world->is_paused || world->n_waiting == 0)
        return false;
    /* Who makes room for it is nobody whose time has come. */
    world->is_judging = false;
    for (size_t i = world->n_accepted; i < world->n_connections; i++) {
        struct world_connection *connection = world->connections[i];
        bool is_waiting = !connection->is_accepted && !connection->is_closed;

        if (!is_waiting && i == world->n_accepted)
            world->n_accepted++;
        if (!is_waiting || connection->listener != listener)
            continue;
        accept_connection(connection);
        return true;
    }
    return false;
}

/* Of one listener after the other, as the shell does. */
bool world_accept_next(struct world *world)
{
    uint32_t last = world->last_listener;

    for (uint32_t i = 1; i <= WORLD_LISTENERS; i++) {
        if (world_accept(world, (last + i) % WORLD_LISTENERS))
            return true;
    }
    return false;
}

bool world_deliver(struct world_connection *connection, size_t size)
{
    if (!report(connection, size))
        return false;
    world_settle(connection->world);
    return true;
}

/* Most connections of a long history are closed. */
static void pass_over_closed(struct world *world)
{
    size_t n_open = 0;

    for (size_t i = 0; i < world->n_open; i++) {
        if (!world->open[i]->is_closed)
            world->open[n_open++] = world->open[i];
    }
    world->n_open = n_open;
}

void world_deliver_all(struct world *world)
{
    bool is_busy = true;

    pass_over_closed(world);
    while (is_busy) {
        is_busy = false;
        while (world_accept_next(world))
            is_busy = true;
        for (size_t i = 0; i < world->n_open; i++) {
            while (world_deliver(world->open[i], SIZE_MAX))
                is_busy = true;
        }
    }
}

/* What peers do. */

struct world_connection *world_connect(struct world *world, struct world_process *process,
                                       uint32_t listener)
{
    struct world_connection *connection = world_need(calloc(1, sizeof *connection));

    if (world->n_connections == WORLD_CONNECTIONS_MAX)
        world_fail("too many connections in the world");
    world->connections[world->n_connections++] = connection;
    world->open[world->n_open++] = connection;
    connection->world = world;
    connection->process = process;
    connection->listener = listener;
    world->n_waiting++;
    if (!world->is_network_slow && !world->is_paused)
        accept_connection(connection);
    return connection;
}

static size_t next_piece(struct world *world, size_t length)
{
    if (world->piece_state == 0)
        return length;
    world->piece_state = world->piece_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return 1 + (size_t)(world->piece_state >> 33) % length;
}

void world_send(struct world_connection *connection, const void *bytes, size_t length)
{
    struct world *world = connection->world;

    if (connection->is_closed || connection->has_ended || length == 0)
        return;
    connection->inbox = world_need(realloc(connection->inbox, connection->inbox_length + length));
    memcpy(connection->inbox + connection->inbox_length, bytes, length);
    connection->inbox_length += length;
    if (world->is_network_slow)
        return;
    while (connection->inbox_length > 0 &&
           world_deliver(connection, next_piece(world, connection->inbox_length)))
        ;
}

void world_advertise(struct world_connection *connection, const struct guid *cookie, uint64_t pid)
{
    struct advertise advertise = {.cookie = *cookie, .pid = pid};
    uint8_t bytes[ADVERTISE_SIZE];

    advertise_write(&advertise, bytes);
    world_send(connection, bytes, sizeof bytes);
}

void world_send_reply(struct world_connection *connection, bool is_ok, const void *payload,
                      size_t length)
{
    struct bytes reply;

    bytes_init(&reply, WIRE_MESSAGE_MAX);
    wire_message_begin(&reply, WIRE_SET_SERVER, is_ok ? 0x00 : 0xFF);
    bytes_put_run(&reply, payload, length);
    if (wire_message_end(&reply) != 0)
        world_fail("a reply does not fit");
    world_send(connection, reply.data, reply.length);
    bytes_deinit(&reply);
}

void world_send_status(struct world_connection *connection, bool is_ok, uint32_t hresult)
{
    uint8_t payload[4] = {(uint8_t)hresult, (uint8_t)(hresult >> 8), (uint8_t)(hresult >> 16),
                          (uint8_t)(hresult >> 24)};

    world_send_reply(connection, is_ok, payload, sizeof payload);
}

void world_end(struct world_connection *connection)
{
    if (connection->is_closed || connection->has_ended)
        return;
    connection->has_ended = true;
    if (!connection->world->is_network_slow)
        world_deliver(connection, SIZE_MAX);
}

/* The end. */

static void hang_up(struct world_connection *connection)
{
    connection->is_closed = true;
    connection->kept = 0;
    world_drop_message(connection);
    drop_inbox(connection);
}

void world_cut_connections(struct world *world)
{
    for (size_t i = 0; i < world->n_connections; i++) {
        struct world_connection *connection = world->connections[i];

        world->n_waiting -= !connection->is_accepted && !connection->is_closed;
        connection->core = NULL;
        connection->is_asked = false;
        if (connection->kept == 0)
            hang_up(connection);
    }
    world->n_asked = 0;
}

/* The store. */

void world_keep(struct world_connection *connection, uint64_t kept)
{
    if (connection->is_closed || connection->kept != 0)
        world_fail("a connection was to be kept that is closed, or is kept");
    /* Should the daemon die between the two, it has to be there before what is sent. */
    if (connection->message)
        world_fail("a connection was to be kept after something was sent on it");
    for (size_t i = 0; i < connection->world->n_open; i++) {
        if (connection->world->open[i]->kept == kept)
            world_fail("two connections were to be kept under one number");
    }
    if (!connection->world->refuses_to_keep)
        connection->kept = kept;
}

void world_unkeep(struct world *world, uint64_t kept)
{
    for (size_t i = 0; i < world->n_open; i++) {
        if (world->open[i]->kept == kept)
            world->open[i]->kept = 0;
    }
}

void world_drop_store(struct world *world)
{
    for (size_t i = 0; i < world->n_open; i++)
        world->open[i]->kept = 0;
}

void world_adopt_connections(struct world *world)
{
    for (size_t i = 0; i < world->n_open; i++) {
        struct world_connection *connection = world->open[i];
        struct broker_peer peer = peer_of(connection->process);
        int error;

        if (connection->kept == 0)
            continue;
        /* Every daemon sees it for itself. */
        connection->is_end_told = false;
        world_before_call(world);
        error = broker_adopt(world->broker, connection->listener, connection, &peer,
                             connection->kept, world->now, &connection->core);
        world_after_call(world);
        if (error != 0)
            hang_up(connection);
        world_settle(world);
    }
    /* What was sent meanwhile. */
    for (size_t i = 0; !world->is_network_slow && i < world->n_open; i++) {
        while (world_deliver(world->open[i], SIZE_MAX))
            ;
    }
}

void world_free_connections(struct world *world)
{
    for (size_t i = 0; i < world->n_connections; i++) {
        world_drop_message(world->connections[i]);
        drop_inbox(world->connections[i]);
        free(world->connections[i]);
    }
}
