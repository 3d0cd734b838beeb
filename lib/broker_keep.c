/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections that outlive the daemon, with what their runtimes write on them
 * meanwhile: which are kept for the next one, and those that were kept for this
 * one. What was sent on one, and what its answer means, is not known here.
 *
 * A runtime has one kept connection at most, which its record names. It ends with
 * the connection, and when its runtime has got all that it is to get.
 */

#include "lib/broker.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/broker_core.h"

static bool has_room(const struct broker *broker, const struct user *user)
{
    return broker->n_kept < broker->n_keepable &&
           user->n_kept < (broker->n_keepable + BROKER_KEPT_SHARES - 1) / BROKER_KEPT_SHARES;
}

static struct action *new_unkeep(uint64_t kept)
{
    struct action *action = calloc(1, sizeof *action);

    if (!action)
        return NULL;
    action->kind = ACTION_UNKEEP;
    action->kept = kept;
    return action;
}

/* Takes what ends it again. */
static void be_kept(struct connection *connection, struct action *unkeep)
{
    connection->unkeep = unkeep;
    connection->kept = unkeep->kept;
    connection->broker->n_kept++;
    connection->user->n_kept++;
}

void keep_begin(struct connection *connection, struct moment now)
{
    struct broker *broker = connection->broker;
    struct runtime *runtime = connection->runtime;
    struct action *keep, *unkeep;

    if (connection->kept != 0)
        return;
    if (runtime->kept)
        keep_end(runtime->kept);
    /* Without a record, or with one that says that it may run or is of an earlier daemon, nobody
     * would go on with it. */
    if (!has_room(broker, connection->user) || !runtime->process->is_identified ||
        runtime->is_marked_resumed || memory_of(runtime) || broker->trust == BROKER_HAS_NO_RECORDS)
        return;
    unkeep = new_unkeep(broker->last_kept + 1);
    keep = unkeep ? action_add(&broker->actions, ACTION_KEEP) : NULL;
    if (!keep) {
        free(unkeep);
        broker_out_of_memory(broker, now);
        return;
    }
    keep->connection = connection->handle;
    keep->kept = ++broker->last_kept;
    be_kept(connection, unkeep);
    runtime->kept = connection;
}

bool keep_held(struct runtime *runtime, struct moment now)
{
    struct connection *connection =
        runtime->state == RUNTIME_HELD && !runtime->kept ? runtime_free_connection(runtime) : NULL;

    if (connection)
        keep_begin(connection, now);
    return connection && connection->kept != 0;
}

void keep_end(struct connection *connection)
{
    struct broker *broker = connection->broker;

    if (connection->kept == 0)
        return;
    STAILQ_INSERT_TAIL(&broker->actions, connection->unkeep, link);
    connection->unkeep = NULL;
    connection->kept = 0;
    broker->n_kept--;
    connection->user->n_kept--;
    if (connection->runtime)
        connection->runtime->kept = NULL;
}

/* Its process, which lived when its record was read. */
static struct process *get_process(struct broker *broker, const struct record *record,
                                   const struct broker_peer *peer)
{
    struct process *process = process_find(broker, record->pid, record->start_time);

    if (!process)
        process = process_new(broker, record->pid, record->start_time, true, peer->uid);
    if (!process || process_remember_cookie(process, &record->cookie))
        return process;
    process_settle(broker, process);
    return NULL;
}

/* It said who it is to an earlier daemon. */
static void be_advertised(struct connection *connection, const struct guid *cookie,
                          struct moment now)
{
    connection->n_advertise = ADVERTISE_SIZE;
    connection->advertise.cookie = *cookie;
    connection->advertised_at = now;
}

int broker_adopt(struct broker *broker, uint32_t listener, void *handle,
                 const struct broker_peer *peer, uint64_t kept, struct moment now,
                 struct connection **ret_connection)
{
    const struct record *record = memory_find_kept(broker, peer->pid, kept);
    struct action *unkeep = record ? new_unkeep(kept) : NULL;
    struct process *process = unkeep ? get_process(broker, record, peer) : NULL;
    struct connection *connection;
    struct runtime *runtime;

    if (kept > broker->last_kept)
        broker->last_kept = kept;
    if (!record)
        return -ENOENT;
    if (!process || broker_connection_new(broker, listener, handle, peer, now, &connection) != 0) {
        broker_out_of_memory(broker, now);
        free(unkeep);
        if (process)
            process_settle(broker, process);
        return -ENOMEM;
    }
    be_kept(connection, unkeep);
    be_advertised(connection, &record->cookie, now);
    *ret_connection = connection;
    runtime = runtime_new(broker, process, connection);
    if (!runtime) {
        broker_out_of_memory(broker, now);
        connection_close(connection, now);
        process_settle(broker, process);
        return 0;
    }
    runtime->kept = connection;
    recall_adopted(runtime, now);
    return 0;
}
