/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is connected to the rescue, and who gets Resume next. No descriptor, no
 * clock, no memory that is asked for: events and a time in, answers out, and all
 * tables are as large as they will ever be.
 *
 * A connection, in the order of its life:
 *
 *   GREETING  waits for its advertise          closed after LEDGER_HELLO
 *   IDLE      nothing is to be sent now        stays, silent: see below
 *   DUE       Resume is to be written          now, by the caller
 *   FLYING    Resume was written               after LEDGER_PATIENCE: OVERDUE
 *   OVERDUE   no answer came in that time      stays: the runtime may be stopped,
 *                                              and what it has not read would be lost
 *
 * IDLE has no deadline since closing it makes its runtime connect again within a
 * tenth of a millisecond; OVERDUE has none since Resume is never taken back. Both
 * end when room is needed, see ledger_make_room.
 *
 * A runtime is its process, the start time of that and its cookie:
 *
 *   ABSENT    has no connection                forgotten when the table is full
 *   BUSY      one of its is DUE or FLYING      that one's
 *   SETTLING  see LEDGER_SETTLE                that
 *   QUIET     nothing is wanted                until one of its connections says something
 *   STUCK     all of its are OVERDUE           likewise
 *
 * Resume counts for the port whose connection carried it, and nothing tells
 * which port that is. So, per listener: while more connections are open than
 * Resumes were answered, the oldest IDLE one gets one. One too many is harmless,
 * one too few hangs the program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/moment.h"
#include "lib/tree.h"
#include "lib/util.h"

enum {
    LEDGER_CONNECTIONS_MAX = 16384,
    /* So that there is always an absent one to forget. */
    LEDGER_RUNTIMES_MAX = 2 * LEDGER_CONNECTIONS_MAX,
    LEDGER_LISTENERS_MAX = 16,
    /* More ports than anybody lists; and looking for the oldest one stays short. */
    LEDGER_PER_RUNTIME_MIN = 4,
    LEDGER_PER_RUNTIME_MAX = 128,
};

enum { LEDGER_NOBODY = UINT16_MAX };

/* From the accept to the whole advertise. */
#define LEDGER_HELLO (span_from_s(1))

/* From Resume to its answer, until the other connections of the same runtime are tried. */
#define LEDGER_PATIENCE (span_from_s(1))

/* The same where somebody else waits to be let in, and nobody else can go. Whoever is closed before
 * it has read its Resume connects again, and gets another one. */
#define LEDGER_HASTE (span_from_ms(100))

/* After a second Resume was answered on one listener, that might have been the first port again and
 * not the second one, which may not even have been met: then whatever is idle gets one more, which
 * is not counted, so many times and that long apart. */
#define LEDGER_SETTLE (span_from_ms(100))
enum { LEDGER_SETTLE_ROUNDS = 5 };

/* What the kernel says of a peer, and the cookie that it says itself. */
struct ledger_who {
    int32_t pid; /* 0 where it has none that we could see */
    uint32_t uid;
    uint64_t start_time; /* clock ticks after boot; 0 where it could not be read */
    struct guid cookie;
};

enum ledger_connection_state {
    LEDGER_FREE,
    LEDGER_GREETING,
    LEDGER_IDLE,
    LEDGER_DUE,
    LEDGER_FLYING,
    LEDGER_OVERDUE,
};
enum { LEDGER_CONNECTION_STATES = LEDGER_OVERDUE + 1 };

enum ledger_runtime_state {
    LEDGER_UNKNOWN,
    LEDGER_ABSENT,
    LEDGER_BUSY,
    LEDGER_SETTLING,
    LEDGER_QUIET,
    LEDGER_STUCK,
};
enum { LEDGER_RUNTIME_STATES = LEDGER_STUCK + 1 };

struct ledger_connection {
    TAILQ_ENTRY(ledger_connection) in_state; /* in the order in which they came into it */
    TAILQ_ENTRY(ledger_connection) in_runtime;
    struct ledger_runtime *runtime; /* NULL while greeting */
    struct moment deadline;         /* GREETING and FLYING */
    struct moment sent_at;          /* FLYING and OVERDUE */
    enum ledger_connection_state state;
    uint8_t listener;
    bool is_counted; /* its Resume is one of those that are counted */
    bool is_again;   /* it gets one although the count does not ask for it */
    bool is_leaving; /* that one is for making room */
};

TAILQ_HEAD(ledger_connections, ledger_connection);

struct ledger_runtime {
    RB_ENTRY(ledger_runtime) link;
    TAILQ_ENTRY(ledger_runtime) in_state;
    struct ledger_connections connections; /* the oldest one first */
    struct ledger_who who;
    struct moment settle_at;
    enum ledger_runtime_state state;
    uint32_t evicted_in; /* the round in which it last had to make room */
    uint32_t n_connections;
    uint32_t n_busy; /* DUE or FLYING */
    uint32_t n_overdue;
    uint8_t n_rounds; /* of settling that are left */
    bool was_resumed;
    uint8_t n_open[LEDGER_LISTENERS_MAX];
    uint8_t n_answered[LEDGER_LISTENERS_MAX];
};

TAILQ_HEAD(ledger_runtimes, ledger_runtime);
RB_HEAD(ledger_tree, ledger_runtime);

/* For people. */
struct ledger_counters {
    uint64_t n_connections;
    uint64_t n_runtimes;  /* that got Resume */
    uint64_t n_resumes;   /* messages */
    uint64_t n_strangers; /* connections that never said who they are, or were dead by then */
    uint64_t n_evicted;
};

/* Too large for the stack. */
struct ledger {
    uint32_t n_usable; /* connections that there are descriptors for */
    uint32_t n_open;
    uint32_t n_leaving;                           /* those of them that wait for an answer */
    uint32_t n_connections_used, n_runtimes_used; /* of the tables; what is behind was never used */
    struct ledger_connections in_state[LEDGER_CONNECTION_STATES];
    struct ledger_runtimes runtimes_in_state[LEDGER_RUNTIME_STATES];
    struct ledger_tree by_who;
    uint32_t round; /* of making room */
    uint32_t n_evicted_in_round;
    struct moment room_after;
    struct ledger_counters counters;
    struct ledger_connection connections[LEDGER_CONNECTIONS_MAX];
    struct ledger_runtime runtimes[LEDGER_RUNTIMES_MAX];
};

/* `ledger` is all zero. `n_usable` is how many connections there may be: at least 1, and no more
 * than LEDGER_CONNECTIONS_MAX. */
void ledger_init(struct ledger *ledger, uint32_t n_usable);

/*
 * Whether one more connection can be taken in. True; or false, and what to do:
 * `*ret_connection` is one that has to be closed for it, and is gone from here,
 * or LEDGER_NOBODY: nobody can go now, try again when one has ended, or soon.
 *
 * There goes, in this order: the oldest one that has not said who it is; the
 * oldest of a QUIET runtime, which is not closed but gets Resume, so that its
 * runtime ends it; where there are none, the oldest of a STUCK one, and after
 * LEDGER_HASTE the oldest FLYING one.
 *
 * All but the first come back at once, behind those that wait already. So when the
 * first one of them is met again, everybody has been let in once, and that was
 * enough for a while.
 */
bool ledger_make_room(struct ledger *ledger, struct moment now,
                      uint16_t *ret_connection) MUST_CHECK;

/* A connection was accepted; there is room. */
uint16_t ledger_accept(struct ledger *ledger, uint8_t listener, struct moment now) MUST_CHECK;

/* It said who it is. LEDGER_NOBODY; or the connection itself, which is gone from here and has to be
 * closed, since its runtime has too many. */
uint16_t ledger_introduce(struct ledger *ledger, uint16_t connection, const struct ledger_who *who,
                          struct moment now) MUST_CHECK;

/* Who gets Resume now: it is FLYING from here on. `*ret_is_first`: the runtime had none yet. False
 * when nobody does. */
bool ledger_next_resume(struct ledger *ledger, struct moment now, uint16_t *ret_connection,
                        struct ledger_who *ret_who, bool *ret_is_first) MUST_CHECK;

/* True until it has said who it is. */
bool ledger_is_greeting(const struct ledger *ledger, uint16_t connection);

/* True when it waits for the answer to a Resume. */
bool ledger_awaits_answer(const struct ledger *ledger, uint16_t connection);

/* Its Resume was answered; the caller closes it. It is gone from here. */
void ledger_answered(struct ledger *ledger, uint16_t connection, struct moment now);

/* It ended, or is closed, without that. It is gone from here. */
void ledger_ended(struct ledger *ledger, uint16_t connection);

/* The next moment at which ledger_expire or ledger_make_room has something new to say. */
struct moment ledger_deadline(const struct ledger *ledger);

/* Does what is due. Returns a connection that has to be closed, and is gone from here; call again
 * until it is LEDGER_NOBODY. */
uint16_t ledger_expire(struct ledger *ledger, struct moment now) MUST_CHECK;

/* True while a Resume is due, or was written and its patience is not over. */
bool ledger_is_busy(const struct ledger *ledger);

/* Connections that there are, and may be. */
uint32_t ledger_n_open(const struct ledger *ledger);
uint32_t ledger_usable(const struct ledger *ledger);

/* There are descriptors for more or fewer than was said at first; the same limits. */
void ledger_set_usable(struct ledger *ledger, uint32_t n_usable);

/* Says what does not fit together, NULL when all does. For tests. */
const char *ledger_check(const struct ledger *ledger);
