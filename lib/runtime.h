/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One runtime: a .NET runtime in one process, by its cookie, from its first
 * advertise to its end.
 *
 * | state       | shown as | waits for                              | deadline             |
 * |-------------|----------|----------------------------------------|----------------------|
 * | DECIDING    | known    | the answer to what an earlier daemon   | the rule's           |
 * |             |          | sent; facts about its process          |                      |
 * | ASKING      | known    | answers of the runtime to questions    | the rule's, less the |
 * |             |          |                                        | time for taking back |
 * | APPLYING    | applying | answers to steps, free connections     | likewise             |
 * | WITHDRAWING | applying | answers to what takes steps back       | the rule's           |
 * | HELD        | held     | an operator                            | the end of the hold  |
 * | KILLING     | held     | facts, right before SIGKILL            | the command time-out |
 * | RESUMING    | resuming | whether the files that it is to load   | the rule's, or the   |
 * |             |          | are those that were checked; then      | command time-out     |
 * |             |          | Resume: a connection, then its answer  | none but the next    |
 * |             |          |                                        | look at what blocks  |
 * | SETTLING    | resuming | the process to show that it runs       | the next look        |
 * | RUNNING     | running  | nothing: we owe it nothing             | none                 |
 * | GONE        | gone     | to be forgotten                        | limits.history.age   |
 * | KILLED      | killed   | likewise                               | likewise             |
 *
 * The rule's deadline is a timer of its own that no change of state stops but
 * the one to a hold, a kill or Resume and what is after them. A Resume, once written, is waited
 * for without limit.
 *
 * The bodies below are open so that answers can be written from them; nobody
 * but the rooms of the broker changes them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/attributes.h"
#include "lib/command.h"
#include "lib/conflict.h"
#include "lib/deadline.h"
#include "lib/guid.h"
#include "lib/match.h"
#include "lib/moment.h"
#include "lib/picture.h"
#include "lib/plan.h"
#include "lib/tree.h"

struct broker;
struct connection;
struct policy;
struct policy_rule;
struct process;
struct question;
struct session;

enum runtime_state {
    RUNTIME_DECIDING,
    RUNTIME_ASKING,
    RUNTIME_APPLYING,
    RUNTIME_WITHDRAWING,
    RUNTIME_HELD,
    RUNTIME_KILLING,
    RUNTIME_RESUMING,
    RUNTIME_SETTLING,
    RUNTIME_RUNNING,
    RUNTIME_GONE,
    RUNTIME_KILLED,
};

enum { RUNTIME_STATES = RUNTIME_KILLED + 1 };

enum runtime_outcome {
    OUTCOME_NONE, /* not decided yet */
    OUTCOME_UNTOUCHED,
    OUTCOME_APPLIED,
    OUTCOME_PARTIAL,
    OUTCOME_ROLLED_BACK,
    OUTCOME_FAILED,
    OUTCOME_LATE,
    OUTCOME_UNKNOWN,
};

/* Why a Resume of ours does not make it run. */
enum runtime_blocked {
    BLOCKED_NOT,
    BLOCKED_STOPPED,     /* by a signal */
    BLOCKED_TRACED,      /* by a debugger */
    BLOCKED_FROZEN,      /* its cgroup is frozen */
    BLOCKED_SERVER_BUSY, /* its server thread is stuck with somebody else */
    BLOCKED_OTHER_PORT,  /* a port that is not ours waits for its own Resume */
};

/* What the message in flight is. */
enum runtime_flight {
    FLIGHT_NONE,
    FLIGHT_QUESTION,
    FLIGHT_STEP,
    FLIGHT_UNDO,
    FLIGHT_RESUME,
    FLIGHT_RESUME_AGAIN, /* one more than the count of ports asks for */
    FLIGHT_SESSION,      /* it is asked to say what it loads */
    FLIGHT_STOP,         /* and need not any more */
    FLIGHT_ATTACH,       /* AttachProfiler, or the question that comes before it */
};

/* The questions to a runtime, in the order in which they are asked. */
enum runtime_ask {
    ASK_KIND,
    ASK_INFO_3,
    ASK_INFO_2,
    ASK_INFO,
    ASK_ENVIRONMENT,
    ASK_NOTHING,
};

enum {
    /* Listeners that are counted one by one; further ones share the last place. */
    RUNTIME_PORTS_MAX = 8,
    /* More than any runtime has ports; further ones are let go. */
    RUNTIME_CONNECTIONS_MAX = 32,
    /* Of profilers that operators had loaded the last ones are remembered. */
    RUNTIME_ATTACHES_MAX = 8,
    /* Bytes of arguments that are kept for showing them. */
    RUNTIME_ARGUMENTS_MAX = 4096,
};

struct runtime_port {
    uint32_t listener;
    uint32_t n_resumed; /* Resumes answered there since the count began */
};

TAILQ_HEAD(connection_list, connection);

/*
 * A profiler that an operator wants loaded into it while it runs. What came of
 * it is forgotten with the daemon: the runtime has what it has, and was told
 * nothing that could be taken back.
 */
struct attach {
    TAILQ_ENTRY(attach) link;
    struct runtime *runtime;
    uint64_t number;  /* of those of its runtime, from 1 on */
    struct step step; /* its name and CLSID are the next two */
    char *path;
    struct guid clsid;
    uint8_t *data; /* for the profiler, until nothing more is sent; never shown */
    size_t n_data;
    struct span timeout;
    bool is_checked;        /* nothing speaks against it */
    unsigned n_asked;       /* how often its runtime was asked for its kind */
    struct moment until;    /* it comes to its end then, whatever it waits for */
    struct moment retry_at; /* not before that */
    struct deadline deadline;
};

TAILQ_HEAD(attach_list, attach);

struct runtime {
    struct broker *broker;
    RB_ENTRY(runtime) by_cookie; /* see identify.c */
    RB_ENTRY(runtime) by_serial;
    TAILQ_ENTRY(runtime) in_order;   /* all runtimes */
    TAILQ_ENTRY(runtime) in_state;   /* those of the same state */
    TAILQ_ENTRY(runtime) in_process; /* while it is not gone */
    TAILQ_ENTRY(runtime) in_waiting;
    uint64_t serial;
    struct process *process; /* NULL when it is gone */
    bool holds_process;      /* it needs the handle of its process */
    bool is_waiting;         /* it is not resumed, and has no connection */
    uint64_t let_go_round;   /* the last one in which it was let go, see broker_room.c */
    int32_t pid;
    uint64_t start_time;
    uint32_t uid;
    struct guid cookie;
    uint64_t claimed_pid;
    uint32_t listener; /* it first came in by */
    struct attributes attributes;
    struct policy *policy; /* that decided, with a reference */
    const struct policy_rule *rule;
    struct match_decision decision;
    struct span deadline_length; /* what its deadline was, for showing it */

    enum runtime_state state;
    enum runtime_outcome outcome;
    const char *why; /* a constant: why this outcome or state; "" for nothing to say */
    enum runtime_blocked blocked;
    struct moment connected_at;
    struct moment resumed_at; /* MOMENT_NEVER while it is not */
    struct moment ended_at;   /* likewise */

    struct plan plan;
    struct command_target target;
    struct conflict conflict;
    char *version; /* as the runtime says it; NULL while it was not asked */
    char *rid;
    char *entry_assembly;
    enum runtime_ask ask;
    unsigned n_asked;  /* how often the present question was sent */
    struct step *step; /* in flight, or waiting to be sent again */
    struct moment retry_at;
    bool is_recalled; /* an earlier daemon began its plan, or held it */
    bool is_awaiting; /* DECIDING: the answer to what that one sent is read before anything else */
    bool is_unseen;   /* known by its record alone: its process was not looked at yet */
    bool has_failed;  /* likewise: its plan had failed, and is to be taken back */
    bool is_marked_resumed;
    struct moment hold_until; /* an operator wants it held until then; MOMENT_NEVER: no wish */
    bool is_hold_wished;

    struct connection_list connections; /* in the order in which they came */
    size_t n_connections;
    struct connection *busy; /* the one with a message in flight, or answered and not yet ended */
    struct connection *kept; /* for the next daemon; NULL */
    struct session *session; /* in which it says what it loaded; NULL */
    bool was_session_tried;
    const char *no_session; /* why there is none, for the proof of its steps */
    enum runtime_flight flight;
    struct moment sent_at; /* the message in flight, or the last one */
    struct runtime_port ports[RUNTIME_PORTS_MAX];
    size_t n_ports;
    uint64_t n_resumes_answered;
    uint64_t again_up_to; /* connections up to this serial number get a Resume beyond the count */
    int n_suspending;     /* ports in its own list that suspend; -1 when that is not known */
    bool has_default_port_suspend;
    bool was_asked_for_ports;
    bool is_look_late; /* a deadline has passed without the answer to it */
    bool runs_unseen;  /* RUNNING, since nothing shows that it does not */
    char *other_ports; /* in its own list and not ours, joined by ';'; NULL when none or unknown */

    struct attach_list attaches; /* oldest first */
    uint64_t n_attaches;         /* ever */
    struct attach *attach;       /* the one under way, which is the last one; NULL */
    size_t n_late; /* profilers of its rule that are to be attached, since it runs already */

    struct deadline end;   /* the rule's deadline */
    struct deadline next;  /* the state's */
    struct deadline alive; /* without connections: look whether the process lives */
    unsigned n_looks;
    unsigned n_settle_looks; /* since the last Resume that the count asked for */
    unsigned n_alive_looks;
    struct question *question; /* asked about it, not yet answered */
};

const char *runtime_state_name(enum runtime_state state);       /* as shown */
const char *runtime_outcome_name(enum runtime_outcome outcome); /* NULL for OUTCOME_NONE */
const char *runtime_blocked_name(enum runtime_blocked blocked); /* NULL for BLOCKED_NOT */

/* True before its last Resume was answered. */
bool runtime_is_pending(const struct runtime *runtime);

/* True when it is gone or killed. */
bool runtime_has_ended(const struct runtime *runtime);
