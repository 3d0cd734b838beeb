/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_ledger.h"

#include <stdlib.h>

#include "rescue/ledger.h"

/* `REST`: turns until everybody has come to rest. */
enum { RUNTIMES = 16, PORTS = 3, REST = 800 };

enum link {
    LINK_NONE,      /* not connected: it tries again */
    LINK_QUEUED,    /* connected, and not accepted yet */
    LINK_SILENT,    /* accepted; its advertise was not read yet */
    LINK_IDLE,      /* it was */
    LINK_COMMANDED, /* Resume was sent, and not read yet */
    LINK_ANSWERED,  /* read and answered; the answer was not read yet */
};

struct port {
    uint8_t listener;
    enum link link;
    uint16_t connection;
    uint64_t queued_at; /* place in the accept queue */
    bool is_resumed;
};

struct runtime {
    struct ledger_who who;
    struct port ports[PORTS];
    uint32_t n_ports;
    uint32_t n_resumes;
};

struct world {
    struct ledger *ledger;
    const struct unit_ledger_options *options;
    struct runtime runtimes[RUNTIMES];
    struct moment now;
    uint64_t n_queued;
    uint32_t n_born;
    struct unit_ledger_outcome outcome;
};

static uint32_t choose(struct world *world, uint32_t n)
{
    return world->options->choose(world->options->context, n);
}

static void holds(struct world *world, bool condition, const char *otherwise)
{
    if (!condition && !world->outcome.problem)
        world->outcome.problem = otherwise;
}

static void be_born(struct world *world, struct runtime *runtime)
{
    uint32_t n = ++world->n_born;

    *runtime = (struct runtime){.n_ports = 1 + choose(world, PORTS)};
    runtime->who = (struct ledger_who){
        /* Some are of one process, and of some nothing but the cookie is known. */
        .pid = (int32_t)choose(world, 4),
        .uid = choose(world, 2),
        .start_time = choose(world, 2),
        .cookie = {{(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16)}},
    };
    for (uint32_t i = 0; i < runtime->n_ports; i++)
        runtime->ports[i].listener = (uint8_t)choose(world, 2);
}

static struct port *port_of(struct world *world, uint16_t connection)
{
    for (uint32_t i = 0; i < world->options->n_runtimes; i++) {
        struct runtime *runtime = &world->runtimes[i];

        for (uint32_t k = 0; k < runtime->n_ports; k++) {
            if (runtime->ports[k].link > LINK_QUEUED && runtime->ports[k].connection == connection)
                return &runtime->ports[k];
        }
    }
    return NULL;
}

/* What had been sent is lost with it. */
static void be_closed(struct world *world, uint16_t connection)
{
    struct port *port = port_of(world, connection);

    holds(world, port != NULL, "a connection that nobody has was closed");
    if (port)
        port->link = LINK_NONE;
}

static void send_resumes(struct world *world)
{
    struct ledger_who who;
    uint16_t connection;
    bool is_first;

    while (ledger_next_resume(world->ledger, world->now, &connection, &who, &is_first)) {
        struct port *port = port_of(world, connection);

        holds(world, port && port->link == LINK_IDLE, "Resume for somebody who does not wait");
        if (port)
            port->link = LINK_COMMANDED;
    }
}

/* The accept queue is one, and in order. */
static void accept_one(struct world *world)
{
    struct port *first = NULL;
    uint16_t closed;

    for (uint32_t i = 0; i < world->options->n_runtimes; i++) {
        struct runtime *runtime = &world->runtimes[i];

        for (uint32_t k = 0; k < runtime->n_ports; k++) {
            struct port *port = &runtime->ports[k];

            if (port->link == LINK_QUEUED && (!first || port->queued_at < first->queued_at))
                first = port;
        }
    }
    if (!first)
        return;
    if (!ledger_make_room(world->ledger, world->now, &closed)) {
        if (closed == LEDGER_NOBODY)
            return;
        be_closed(world, closed);
    }
    first->connection = ledger_accept(world->ledger, first->listener, world->now);
    first->link = LINK_SILENT;
}

/* The server thread of a runtime connects every port before it reads a command. */
static bool is_connected(const struct runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->n_ports; i++) {
        if (runtime->ports[i].link == LINK_NONE)
            return false;
    }
    return true;
}

static void step_port(struct world *world, struct runtime *runtime, struct port *port)
{
    switch (port->link) {
    case LINK_NONE:
        port->link = LINK_QUEUED;
        port->queued_at = world->n_queued++;
        break;
    case LINK_SILENT:
        port->link = LINK_IDLE;
        if (ledger_introduce(world->ledger, port->connection, &runtime->who, world->now) !=
            LEDGER_NOBODY)
            port->link = LINK_NONE;
        break;
    case LINK_COMMANDED:
        if (!is_connected(runtime))
            break;
        port->is_resumed = true;
        port->link = LINK_ANSWERED;
        runtime->n_resumes++;
        break;
    case LINK_ANSWERED:
        ledger_answered(world->ledger, port->connection, world->now);
        port->link = LINK_NONE;
        break;
    case LINK_QUEUED:
    case LINK_IDLE:
        break;
    }
}

static void end_port(struct world *world, struct port *port)
{
    if (port->link > LINK_QUEUED)
        ledger_ended(world->ledger, port->connection);
    port->link = LINK_NONE;
}

static void pass_time(struct world *world, int64_t us)
{
    uint16_t closed;

    world->now.us += us;
    while ((closed = ledger_expire(world->ledger, world->now)) != LEDGER_NOBODY)
        be_closed(world, closed);
}

static void check(struct world *world)
{
    const char *problem = ledger_check(world->ledger);

    if (problem)
        holds(world, false, problem);
}

static void step(struct world *world)
{
    struct runtime *runtime = &world->runtimes[choose(world, world->options->n_runtimes)];
    struct port *port = &runtime->ports[choose(world, runtime->n_ports)];

    switch (choose(world, 16)) {
    case 0:
        for (uint32_t i = 0; i < runtime->n_ports; i++)
            end_port(world, &runtime->ports[i]);
        be_born(world, runtime);
        break;
    case 1:
        end_port(world, port);
        break;
    case 2:
        pass_time(world, 1000 * (int64_t)choose(world, 2000));
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        accept_one(world);
        break;
    default:
        step_port(world, runtime, port);
        break;
    }
    /* Not in every turn of the loop: what is due may be overtaken by an end. */
    if (choose(world, 4) > 0)
        send_resumes(world);
    check(world);
}

/* Everybody does what is next, again and again. */
static void come_to_rest(struct world *world)
{
    for (int i = 0; i < REST; i++) {
        for (uint32_t k = 0; k < world->options->n_runtimes; k++) {
            struct runtime *runtime = &world->runtimes[k];

            for (uint32_t p = 0; p < runtime->n_ports; p++) {
                step_port(world, runtime, &runtime->ports[p]);
                send_resumes(world);
            }
        }
        accept_one(world);
        pass_time(world, 10000);
        send_resumes(world);
        check(world);
    }
}

void unit_ledger_play(const struct unit_ledger_options *options,
                      struct unit_ledger_outcome *ret_outcome)
{
    struct world world = {.options = options, .ledger = calloc(1, sizeof *world.ledger)};

    holds(&world, world.ledger != NULL, "memory ran out");
    if (!world.ledger) {
        *ret_outcome = world.outcome;
        return;
    }
    ledger_init(world.ledger, options->n_usable);
    for (uint32_t i = 0; i < options->n_runtimes; i++)
        be_born(&world, &world.runtimes[i]);
    for (uint32_t i = 0; i < options->n_steps; i++)
        step(&world);
    come_to_rest(&world);
    for (uint32_t i = 0; i < options->n_runtimes; i++) {
        const struct runtime *runtime = &world.runtimes[i];

        for (uint32_t k = 0; k < runtime->n_ports; k++)
            holds(&world, runtime->ports[k].is_resumed, "a port was never resumed");
        if (runtime->n_resumes > world.outcome.n_resumes_most)
            world.outcome.n_resumes_most = runtime->n_resumes;
    }
    world.outcome.n_connections = world.ledger->counters.n_connections;
    free(world.ledger);
    *ret_outcome = world.outcome;
}
