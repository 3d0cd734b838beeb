/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Deadlines that are due: what has to be read before, in which order they are
 * taken, and whose they are. What is done about them is their owners' business.
 */

#include "lib/broker.h"

#include "lib/broker_core.h"

struct moment broker_next_deadline(const struct broker *broker)
{
    return moment_earlier(deadline_queue_next(&broker->ends),
                          deadline_queue_next(&broker->deadlines));
}

/* Without memory for it, it is judged by what was read before. */
static void read_connection(const struct connection *connection, struct moment now)
{
    if (!broker_read(connection->broker, connection))
        broker_out_of_memory(connection->broker, now);
}

static void read_runtime(const struct runtime *runtime, struct moment now)
{
    const struct connection *connection;

    TAILQ_FOREACH(connection, &runtime->connections, in_runtime) {
        read_connection(connection, now);
    }
}

static void prepare(struct deadline_queue *queue, struct deadline *deadline, struct moment now)
{
    deadline_prepare(queue, deadline);
    switch ((enum deadline_kind)deadline->kind) {
    case DEADLINE_CONNECTION:
        read_connection(container_of(deadline, struct connection, deadline), now);
        break;
    case DEADLINE_RUNTIME_END:
        read_runtime(container_of(deadline, struct runtime, end), now);
        break;
    case DEADLINE_RUNTIME_NEXT:
        read_runtime(container_of(deadline, struct runtime, next), now);
        break;
    case DEADLINE_ROOM:
        room_read_due(container_of(deadline, struct broker, room), now);
        break;
    case DEADLINE_ATTACH:
        read_runtime(container_of(deadline, struct attach, deadline)->runtime, now);
        break;
    case DEADLINE_RUNTIME_ALIVE:
    case DEADLINE_USER:
        /* There is no connection to read. */
        break;
    }
}

void broker_read_due(struct broker *broker, struct moment now)
{
    struct deadline *deadline;
    size_t n = 0;

    for (deadline = deadline_queue_due(&broker->ends, now); deadline;
         deadline = deadline_queue_due_after(deadline, now))
        prepare(&broker->ends, deadline, now);
    for (deadline = deadline_queue_due(&broker->deadlines, now);
         deadline && n < BROKER_DEADLINES_AT_ONCE;
         deadline = deadline_queue_due_after(deadline, now), n++)
        prepare(&broker->deadlines, deadline, now);
}

static void act(struct broker *broker, struct deadline *deadline, struct moment now)
{
    switch ((enum deadline_kind)deadline->kind) {
    case DEADLINE_CONNECTION:
        connection_deadline(container_of(deadline, struct connection, deadline), now);
        break;
    case DEADLINE_RUNTIME_END:
        runtime_deadline(container_of(deadline, struct runtime, end), DEADLINE_RUNTIME_END, now);
        break;
    case DEADLINE_RUNTIME_NEXT:
        runtime_deadline(container_of(deadline, struct runtime, next), DEADLINE_RUNTIME_NEXT, now);
        break;
    case DEADLINE_RUNTIME_ALIVE:
        runtime_deadline(container_of(deadline, struct runtime, alive), DEADLINE_RUNTIME_ALIVE,
                         now);
        break;
    case DEADLINE_USER:
        user_deadline(broker, container_of(deadline, struct user, unknown_end));
        break;
    case DEADLINE_ROOM:
        room_deadline(broker, now);
        break;
    case DEADLINE_ATTACH:
        attach_deadline(container_of(deadline, struct attach, deadline), now);
        break;
    }
}

void broker_deadlines(struct broker *broker, struct moment now)
{
    struct deadline *deadline;

    while ((deadline = deadline_queue_take_prepared(&broker->ends, now)) ||
           (deadline = deadline_queue_take_prepared(&broker->deadlines, now)))
        act(broker, deadline, now);
}
