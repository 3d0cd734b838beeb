/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The broker: owns every connection, process and runtime, their limits and
 * their deadlines. It is the only entry of the core that the shell calls.
 *
 * Events go in through the functions below, each with the time at which it
 * happened. After every call the shell takes the actions (action.h) until there
 * are none, carries them out in order, and only then calls again.
 *
 * The broker knows no descriptor, no clock and no log. Nothing a peer sends can
 * make it fail: memory running out costs that peer's operation and raises an
 * alarm.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/action.h"
#include "lib/guid.h"
#include "lib/moment.h"
#include "lib/notice.h"
#include "lib/plan.h"
#include "lib/policy.h"
#include "lib/runtime.h"
#include "lib/util.h"

struct broker;
struct connection;
struct facts;
struct record;

/* How far the records of an earlier daemon can be believed. */
enum broker_trust {
    /* They are whole, or this is the first start: who has no record was never planned. */
    BROKER_TRUSTS_RECORDS, /* They were damaged or gone once: whoever is older than that gets Resume
                              only. */
    BROKER_DISTRUSTS_RECORDS,
    /* None can be kept: nothing is applied to anybody, since nobody would know later. */
    BROKER_HAS_NO_RECORDS,
};

/*
 * What the broker holds on the heap, at most, for what peers do, whatever they
 * send and whatever their processes are called: bytes, besides what depends on
 * the number of steps of a rule alone. While a plan is under way there are old
 * values, up to PLAN_OLD_VALUES_MAX; and while the answer to a question is
 * waited for, no longer than command_timeout, up to 256 KiB of it. Besides it is
 * what operators ask for: the last RUNTIME_ATTACHES_MAX profilers of a runtime
 * that they had loaded while it ran, with their paths.
 */
enum {
    BROKER_BYTES_SILENT = 2 * 1024,   /* a connection without an advertise, alone of its user */
    BROKER_BYTES_RUNTIME = 40 * 1024, /* a runtime that was resumed, with its connection */
    BROKER_BYTES_ENDED = 38 * 1024,   /* one of limits.history */
};

/*
 * Connections that can be kept for the next daemon at a time: those with a step
 * in flight that must not be sent twice, and one of each runtime that is held.
 * The service manager compares each with all that it has (1000 take it 0.6
 * seconds in all, measured on systemd 252), and hands them over in one go at the
 * start; so it is no more than that, and FileDescriptorStoreMax= is one more, for
 * the records, should they have to be kept there. One user gets a quarter of it:
 * many of one do not take all of it from others. What is over it is not kept, and
 * then an answer that is in flight when the daemon dies is lost.
 */
enum {
    BROKER_KEPT_MAX = 1023,
    BROKER_KEPT_SHARES = 4,
};

struct broker_options {
    struct policy *policy; /* the broker takes a reference */
    enum broker_trust trust;
    uint64_t distrusted_until; /* BROKER_DISTRUSTS_RECORDS: whom that is about, see lib/record.h */
    size_t usable_descriptors; /* for connections; above it listeners are paused */
    size_t n_keepable;         /* BROKER_KEPT_MAX; 0 when nobody keeps any */
};

/* NULL when memory is out. */
struct broker *broker_new(const struct broker_options *options) MUST_CHECK;

/* Frees everything without any action: the shell has closed its sockets already. Returns NULL. */
struct broker *broker_free(struct broker *broker);

/*
 * Tells of a record that was found at the start, before any connection. A plan
 * that was begun goes on where it was, under the policy that it was begun under:
 * `policy` is that one, or NULL when it is not there any more. Then, and when it
 * was resumed, its runtime gets Resume only. 0, -ENOMEM, or -EINVAL for a slot out
 * of range.
 */
int broker_remember(struct broker *broker, uint32_t slot, const struct record *record,
                    struct policy *policy) MUST_CHECK;

/* What the records are worth, as in broker_options: before anybody has come, or when some can be
 * kept where none could up to now, or none any more. */
void broker_set_trust(struct broker *broker, enum broker_trust trust, uint64_t distrusted_until);
enum broker_trust broker_trust(const struct broker *broker);

/*
 * Adds a listener under a number that no other ever had. `device` and `inode`
 * identify the socket file, 0 when they are not known. 0 or -ENOMEM.
 */
int broker_listener_add(struct broker *broker, uint32_t listener, const char *name,
                        const char *path, uint64_t device, uint64_t inode) MUST_CHECK;

/* NULL when there never was one of that number. */
const char *broker_listener_name(const struct broker *broker, uint32_t listener);

struct broker_peer {
    int32_t pid; /* SO_PEERCRED, as this pid namespace has it; 0 when it has none */
    uint32_t uid;
    uint32_t gid;
};

/*
 * A connection was accepted. `handle` comes back in the actions about it. 0;
 * -ENOMEM: the shell closes it. The connection is the broker's and is gone with
 * its ACTION_CLOSE.
 */
int broker_connection_new(struct broker *broker, uint32_t listener, void *handle,
                          const struct broker_peer *peer, struct moment now,
                          struct connection **ret_connection) MUST_CHECK;

/*
 * After all records were told of, and before anybody is accepted: a connection
 * that an earlier daemon had kept under that serial number. Nothing was read of
 * it since, and everything that is there is to be read. 0, as after
 * broker_connection_new; -ENOENT: no record can say what it is for, or it is of
 * another process than that says; or -ENOMEM. Then the shell hangs up, and its
 * runtime connects again.
 */
int broker_adopt(struct broker *broker, uint32_t listener, void *handle,
                 const struct broker_peer *peer, uint64_t kept, struct moment now,
                 struct connection **ret_connection) MUST_CHECK;

/* Bytes came in. */
void broker_connection_bytes(struct connection *connection, const uint8_t *bytes, size_t length,
                             struct moment now);

/* The peer is gone: end of file, an error, or a message that could not be written whole. The shell
 * keeps the socket until the ACTION_CLOSE that follows. */
void broker_connection_ended(struct connection *connection, struct moment now);

/* True while somebody waits for the answer to that question. */
bool broker_awaits(const struct broker *broker, uint64_t question);

/* The answer to a question, which the broker takes. An answer to a question that nobody waits for
 * any more is fine. */
void broker_answer(struct broker *broker, uint64_t question, struct facts *facts,
                   struct moment now);

/* The process whose handle is held has ended. */
void broker_process_ended(struct broker *broker, uint64_t process, struct moment now);

/* ACTION_HOLD_PROCESS could not be done: its end will not be told. */
void broker_handle_lost(struct broker *broker, uint64_t process, struct moment now);

/* ACTION_KILL could not be done. */
void broker_kill_failed(struct broker *broker, uint64_t process, struct moment now);

/* When broker_deadlines has to be called at the latest; MOMENT_NEVER when nothing waits. */
struct moment broker_next_deadline(const struct broker *broker);

/*
 * An answer that is there is an answer, however late we look: so before a
 * deadline that is due is acted on, the connections of whoever it is about are
 * read. The first of these asks for the reads, and the second, after they were
 * done, acts. The ends of all rules that are due are taken first, and then so
 * many of the rest that nobody's can keep the next end waiting: call both again
 * while broker_next_deadline is due.
 */
void broker_read_due(struct broker *broker, struct moment now);
void broker_deadlines(struct broker *broker, struct moment now);

/* The next action, which the caller frees with action_free; NULL when there is none. */
struct action *broker_take_action(struct broker *broker);

/* The system gave no descriptor, although there should be one: there is room for no more until it
 * is tried again, which a deadline tells. */
void broker_descriptors_ran_out(struct broker *broker, struct moment now);

/* True while nobody may be accepted on any listener: to be looked at whenever all actions were
 * taken. It is no action, so that it comes about without memory, too. */
bool broker_is_paused(const struct broker *broker);
/* The next notice, which the caller frees with notice_free; NULL when there is none. Telling people
 * can wait until everything else is done, and must never keep a runtime waiting. */
struct notice *broker_take_notice(struct broker *broker);

/* How many there are to take. */
size_t broker_notices(const struct broker *broker);

/* Puts a new policy in force for runtimes that connect from now on; the broker takes a reference.
 * 0, or -ENOMEM: the old one stays. */
int broker_set_policy(struct broker *broker, struct policy *policy) MUST_CHECK;

const struct policy *broker_policy(const struct broker *broker);

/* True when it is in force, or a plan by it is under way or remembered: `id` as policy_id has it.
 */
bool broker_needs_policy(const struct broker *broker, const uint8_t id[static RECORD_POLICY_SIZE]);

/* Raises or ends an alarm that only the shell can know of. `why` says why it was raised, and stays
 * the caller's, as long as the alarm is on; where it ends it is not looked at. */
void broker_alarm(struct broker *broker, enum alarm alarm, bool is_on, const char *why,
                  struct moment now);

enum broker_stop {
    BROKER_STOP_KEEP,   /* start nothing new; whoever is held stays held */
    BROKER_STOP_RESUME, /* resume everybody */
};

void broker_stop(struct broker *broker, enum broker_stop stop, struct moment now);

/* After broker_stop: true when nothing that was begun is still unanswered and, where everybody is
 * to be resumed, nobody still has to be. That may never be so: some do not come back. */
bool broker_is_quiet(const struct broker *broker);

/*
 * What operators ask for. `id` is a cookie in any of its text forms, a prefix
 * of it of at least four digits, or "pid:N".
 */
enum broker_found {
    BROKER_FOUND_ONE,
    BROKER_FOUND_NONE,
    BROKER_FOUND_MANY, /* the first one is returned */
};

enum broker_found broker_find(const struct broker *broker, const char *id,
                              struct runtime **ret_runtime);

/* All that BROKER_FOUND_MANY means, at most `capacity` of them. Returns how many. */
size_t broker_find_all(const struct broker *broker, const char *id, struct runtime **ret_list,
                       size_t capacity);

enum broker_verdict {
    BROKER_DONE,
    BROKER_ALREADY,   /* it is so already */
    BROKER_TOO_LATE,  /* the runtime runs, or is gone */
    BROKER_NO_HANDLE, /* its process cannot be identified, so it cannot be killed */
    BROKER_NOT_RUNNING,
    BROKER_DOES_NOT_FIT, /* into a message of the protocol */
    BROKER_STOPS,        /* nothing new is begun */
    BROKER_NO_MEMORY,
};

/* During a plan this acts as its deadline, except that it always ends in Resume. */
enum broker_verdict broker_resume(struct runtime *runtime, struct moment now);

/* For `length`, from now; SPAN_FOREVER for no limit. */
enum broker_verdict broker_hold(struct runtime *runtime, struct span length, struct moment now);

enum broker_verdict broker_kill(struct runtime *runtime, struct moment now);

/* A profiler that is to be loaded into a runtime that runs. */
struct broker_attach {
    struct guid clsid;
    const char *path; /* absolute */
    const void *data; /* for the profiler, as it is; NULL when there is none */
    size_t n_data;
    struct span timeout; /* up to BROKER_ATTACH_TIMEOUT_MAX */
};

#define BROKER_ATTACH_TIMEOUT_MAX span_from_s(60)

/*
 * Begins to have it loaded; everything is copied. What comes of it is told in
 * the last one of its `attaches`. BROKER_ALREADY: another one is under way.
 */
enum broker_verdict broker_attach(struct runtime *runtime, const struct broker_attach *wanted,
                                  struct moment now);

/* All runtimes in the order in which they came, the ended ones among them: the one after `runtime`,
 * the first for NULL. */
struct runtime *broker_next_runtime(const struct broker *broker, const struct runtime *runtime);

/* The first one that came after the one of that serial number, which may be forgotten by now; the
 * first of all for 0. So a walk over all of them can be left and taken up again. */
struct runtime *broker_runtime_after(const struct broker *broker, uint64_t serial);

/* How many are in that state. */
size_t broker_count(const struct broker *broker, enum runtime_state state);

/* limits.connections_per_user as it is in force. */
/* How many runtimes may wait, in all and of one user: what the limits say, and descriptors last
 * for. */
size_t broker_runtimes(const struct broker *broker);
size_t broker_runtimes_per_user(const struct broker *broker);

size_t broker_connections_per_user(const struct broker *broker);

enum {
    BROKER_HOLD_BUCKETS = 12, /* the last one has no upper bound */
    BROKER_STEP_KINDS = STEP_ATTACH + 1,
    BROKER_STEP_RESULTS = STEP_ROLLED_BACK + 1,
};

/* Upper bounds of the buckets of hold times, in microseconds. */
extern const int64_t broker_hold_bounds[BROKER_HOLD_BUCKETS - 1];

struct broker_rule_use {
    char *name;
    uint64_t n_matches;
    struct moment last; /* match; meaningless while there was none */
};

struct broker_counters {
    uint64_t n_seen; /* runtimes */
    uint64_t n_deadlines;
    uint64_t n_rollbacks;
    uint64_t n_lost_notices;
    uint64_t steps[BROKER_STEP_KINDS][BROKER_STEP_RESULTS];
    uint64_t proofs[STEP_PROOFS]; /* of profilers and hooks that were answered OK */
    uint64_t peer_errors[PEER_ERROR_COUNT];
    uint64_t hold_buckets[BROKER_HOLD_BUCKETS];
    uint64_t n_holds;
    int64_t hold_sum_us;
    size_t n_connections;
    size_t n_silent;
    size_t n_pending; /* runtimes not yet resumed */
    bool alarms[ALARM_COUNT];
    const char *alarm_reasons[ALARM_COUNT];
    struct broker_rule_use *rules; /* those of the policy in force, in its order */
    size_t n_rules;
};

const struct broker_counters *broker_counters(const struct broker *broker);

/* The facts that a decision about a process needs under the policy in force; for `explain`. */
uint32_t broker_facts_wanted(const struct policy *policy);

/* Asserts everything that must hold between two events; for tests and the simulator. */
void broker_check(const struct broker *broker);
