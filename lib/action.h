/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the core wants done. Every call into the core leaves a queue of actions;
 * the shell carries them out in order, and only then calls again. So the core
 * is never re-entered, and a mark on disk is always there before the message
 * that it speaks of.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record.h"
#include "lib/tree.h"
#include "lib/util.h"

enum action_kind {
    /* Write `bytes` to the connection in one piece. If not all of them can be written at once, call
     * broker_connection_ended for it. */
    ACTION_SEND,
    /* Close the connection. Nothing about it may be reported after that. */
    ACTION_CLOSE,
    /* Read what the connection has now, and report it, before the next action. */
    ACTION_READ,
    /* Look at a process and call broker_answer once, after this action at the earliest and maybe
     * much later. By then the connection may be closed, if nobody awaits the answer any more. */
    ACTION_ASK,
    /* Keep the handle (pidfd) that was opened for the question just answered as that of process
     * `process`, and report its end with broker_process_ended. */
    ACTION_HOLD_PROCESS,
    /* Give it back; it is not there any more where it could not be kept. */
    ACTION_RELEASE_PROCESS,
    /* SIGKILL by the handle of `process`; call broker_kill_failed if it cannot be sent. */
    ACTION_KILL,
    /* Put a mark into a slot of the record file, with record_put. */
    ACTION_MARK,
    /* Have the connection kept under the serial number `kept`, so that it outlives us. It is in the
     * keeper's hands before the next action; one that cannot be is not kept, and nobody is told. */
    ACTION_KEEP,
    /* What was to be kept under that serial number need not be any more. */
    ACTION_UNKEEP,
};

struct action_question {
    uint64_t id;
    int32_t pid;
    uint32_t uid;        /* whose process it is, for taking turns */
    uint64_t start_time; /* what it must be for the answer to be alive; 0: any */
    uint32_t wanted;     /* FACTS_* */
    char **files;
    size_t n_files;
};

struct action {
    STAILQ_ENTRY(action) link;
    enum action_kind kind;
    void *connection; /* the shell's own handle; NULL where there is none any more */
    uint64_t process; /* of the actions with a process; ACTION_ASK: 0 when no handle is held */
    uint8_t *bytes;
    size_t length;
    struct action_question question;
    uint32_t slot;
    uint8_t mark[RECORD_MARK_SIZE];
    uint64_t kept;
};

STAILQ_HEAD(action_queue, action);

/* Frees an action and what it carries. Returns NULL. */
struct action *action_free(struct action *action);

void action_queue_init(struct action_queue *queue);
void action_queue_deinit(struct action_queue *queue);

/* Adds an action that is all zero but for its kind; NULL when memory is out. */
struct action *action_add(struct action_queue *queue, enum action_kind kind) MUST_CHECK;

/* Takes the next one, which the caller frees; NULL when there is none. */
struct action *action_take(struct action_queue *queue);
