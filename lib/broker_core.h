/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rooms of the broker share with each other and with nobody else:
 * the registries, and the functions by which one room calls another.
 *
 * broker.c       the entry points, policies, stopping
 * broker_operate.c  what operators ask for
 * broker_check.c    what must hold between two events
 * broker_deadlines.c  what is acted on when its time has come
 * broker_keep.c  connections that are kept for the next daemon
 * broker_room.c  descriptors, and who goes when they run short
 * connection.c   bytes of one connection, up to its advertise and its replies
 * identify.c     from an advertise to a process and a runtime
 * process.c      processes and users, and what is charged to them
 * runtime.c      states, lists, notices, records
 * runtime_decide.c  which rule, and whether it may still be applied
 * runtime_ask.c     questions to the runtime itself
 * runtime_apply.c   steps, taking back
 * runtime_compare.c files that changed since they were checked
 * runtime_kill.c    the other way out
 * runtime_attach.c  profilers that operators have loaded while it runs
 * runtime_resume.c  Resume on every port, and what blocks it
 * runtime_session.c  what the runtime itself says of what it loaded
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/action.h"
#include "lib/advertise.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/deadline.h"
#include "lib/environment.h"
#include "lib/moment.h"
#include "lib/record.h"
#include "lib/reply.h"
#include "lib/runtime.h"
#include "lib/tree.h"

struct facts;

/* Times that are no policy's business. */
#define BROKER_LEAVING_TIME      span_from_s(1)    /* from Resume to our close, over a limit */
#define BROKER_MEMORY_RETRY      span_from_ms(10)  /* when memory is out, try again then */
#define BROKER_PROFILER_RACE     span_from_s(1)    /* how long a refusal may be the start-up race */
#define BROKER_PROFILER_WAIT_MAX span_from_ms(50)  /* between two tries of it */
#define BROKER_RESERVE_MAX       span_from_ms(500) /* kept back for taking steps back */
#define BROKER_PACE_WINDOW       span_from_s(1)
#define BROKER_ATTACH_GRACE      span_from_s(1)   /* beyond what the runtime was given */
#define BROKER_ATTACH_WAIT       span_from_ms(50) /* between two tries at one that just started */
/* After Resume it takes 2 to 16 ms until threads show that a runtime runs, and on a busy machine
 * much longer. */
#define BROKER_UNKNOWN_TIME span_from_s(10)

/* Of the session in which a runtime says what it loaded: after Resume, which is far more than it
 * takes on a machine that is not busy; and for its end. */
#define SESSION_TIME      span_from_s(5)
#define SESSION_STOP_TIME span_from_s(2)

enum {
    /* At a time, and the part of them that one user may have. */
    SESSION_MAX = 1024,
    SESSION_SHARES = 2,
    SESSION_HOOKS_MAX = 16,
    SESSION_BYTES_MAX = 4 * 1024 * 1024, /* far more than a program that loads 1000 assemblies */
};

enum {
    BROKER_PACE_BURST = 16, /* Resumes to connections without a runtime, per window, at once */
    BROKER_QUESTION_ATTEMPTS = 2,
    BROKER_VARIABLE_ATTEMPTS = 3,
    BROKER_UNDO_ATTEMPTS = 2,
    BROKER_NOISE_MAX = 256,        /* bytes after a reply: an error message is sent after some */
    BROKER_TEXT_MAX = 512,         /* bytes kept of a text that a runtime sent about itself */
    BROKER_DEADLINES_AT_ONCE = 64, /* besides the ends of rules */
};

enum deadline_kind {
    DEADLINE_CONNECTION,
    DEADLINE_RUNTIME_END,
    DEADLINE_RUNTIME_NEXT,
    DEADLINE_RUNTIME_ALIVE,
    DEADLINE_USER,
    DEADLINE_ROOM,
    DEADLINE_ATTACH,
};

/* Keeps peers that we do not remember from being resumed in a tight circle. */
struct pace {
    struct moment window;
    unsigned n;
};

enum { USER_UNKNOWN_MAX = 32 };

struct user {
    RB_ENTRY(user) link;
    uint32_t uid;
    size_t n_connections;
    struct connection_list silent; /* oldest first */
    size_t n_silent;
    size_t n_pending; /* runtimes not yet resumed */
    size_t n_kept;    /* connections */
    size_t n_sessions;
    size_t n_processes;
    struct pace pace;
    /* Who got Resume before it was a runtime to us, and until when that matters. */
    struct {
        struct guid cookie;
        int32_t pid;
    } unknown[USER_UNKNOWN_MAX];
    size_t n_unknown; /* one more than there is room for: too many, so it may be anybody */
    struct deadline unknown_end;
};

/* There is no record yet. */
#define PROCESS_NO_SLOT UINT32_MAX

/* What is kept of each runtime that a process has had: one that was taken for replaced may come
 * back, to us or to the next daemon. */
struct process_cookie {
    struct guid cookie;
    uint32_t slot;     /* of its record; PROCESS_NO_SLOT */
    uint32_t sequence; /* of the last mark there */
};

struct process {
    RB_ENTRY(process) link; /* pid, start time */
    RB_ENTRY(process) by_id;
    TAILQ_ENTRY(process) in_held; /* while the shell has a handle */
    uint64_t id;
    int32_t pid;
    uint64_t start_time;
    bool is_identified; /* false: pid or start time is not known, `start_time` is a serial number */
    struct user *user;
    struct process_cookie *cookies; /* seen in its life */
    size_t n_cookies;
    bool has_several;      /* runtimes at a time: a new one is no sign that the old one ended */
    bool has_more_cookies; /* than are remembered */
    /* Runtimes over the limit of cookies are resumed; with another policy up to then, a new one may
     * be one of them. */
    struct moment over_limit_until;
    unsigned n_holders; /* runtimes that need its handle */
    bool is_held;       /* the shell has a handle */
    bool has_ended;
    struct pace pace;
    TAILQ_HEAD(, runtime) runtimes;
};

/*
 * | state       | waits for                                | deadline                  |
 * |-------------|------------------------------------------|---------------------------|
 * | SILENT      | the advertise                            | limits.hello              |
 * | IDENTIFYING | facts about the process                  | defaults.deadline         |
 * | IDLE        | us; silent and open as long as it lives  | none: closing it makes    |
 * |             |                                          | its runtime come back     |
 * |             |                                          | thousands of times a s    |
 * | BUSY        | the reply to a command                   | its runtime's             |
 * | ANSWERED    | the end of file after a reply            | the command time-out      |
 * | NAMELESS    | us: Resume, without a runtime of its own | the pace of its process   |
 * | LEAVING     | our close, after Resume, over a limit    | BROKER_LEAVING_TIME       |
 * | SESSION     | what its runtime says of what it loaded  | see runtime_session.c     |
 */
enum connection_state {
    CONNECTION_SILENT,
    CONNECTION_IDENTIFYING,
    CONNECTION_IDLE,
    CONNECTION_BUSY,
    CONNECTION_ANSWERED,
    CONNECTION_NAMELESS,
    CONNECTION_LEAVING,
    CONNECTION_SESSION,
};

struct connection {
    struct broker *broker;
    TAILQ_ENTRY(connection) in_all;
    TAILQ_ENTRY(connection) in_silent;
    TAILQ_ENTRY(connection) in_silent_of_user;
    TAILQ_ENTRY(connection) in_nameless; /* NAMELESS, LEAVING */
    TAILQ_ENTRY(connection) in_runtime;
    TAILQ_ENTRY(connection) in_spare; /* IDLE, of a runtime that runs */
    uint64_t serial;
    void *handle;
    uint32_t listener;
    struct broker_peer peer;
    struct user *user;
    enum connection_state state;
    struct deadline deadline;
    uint8_t advertise_bytes[ADVERTISE_SIZE];
    size_t n_advertise;
    struct advertise advertise;
    struct moment advertised_at;
    struct question *question; /* about its process */
    bool has_read_others;      /* IDENTIFYING: what older connections of its process say was read */
    bool has_read_itself;      /* IDENTIFYING: and what it says after its advertise */
    bool was_resumed;          /* NAMELESS, LEAVING: Resume was sent, */
    struct moment resumed_at;  /* then */
    bool is_unknown;           /* NAMELESS, LEAVING: nothing else says that it was */
    uint64_t over_limit_in;    /* NAMELESS: when that process was started; 0: not for its cookies */
    bool is_spare;
    bool was_let_go; /* for somebody else's sake: it will come back */
    size_t n_noise;  /* bytes that were read and mean nothing */
    struct runtime *runtime;
    enum command_id command; /* BUSY: what was sent */
    struct reply reply;
    struct environment *environment; /* BUSY with ProcessEnvironment, once its reply is there */
    struct environment_value *values;
    size_t n_values;
    bool is_for_session;     /* it was asked to become one, or is */
    struct session *session; /* SESSION */
    struct action *close;    /* set aside, so that closing cannot fail */
    uint64_t kept;           /* the serial number that it is kept under; 0 */
    struct action *unkeep;   /* likewise set aside, while it is kept */
};

enum question_purpose {
    QUESTION_IDENTITY, /* of a connection's process */
    QUESTION_PLAN,     /* what has to be known before the first command of a plan */
    QUESTION_SOCKETS,  /* which entry of its port list is our socket */
    QUESTION_FILES,    /* are those that it is to load still the same, right before Resume */
    QUESTION_PORTS,    /* its port list, after Resume */
    QUESTION_LOOK,     /* does it run, and what blocks it */
    QUESTION_ALIVE,
    QUESTION_KILL,   /* is it still the same, right before SIGKILL */
    QUESTION_ATTACH, /* does it run, and what is wrong with the file of a profiler */
};

struct question {
    RB_ENTRY(question) link;
    uint64_t id;
    enum question_purpose purpose;
    struct connection *connection; /* the one that asked, or */
    struct runtime *runtime;
};

struct listener {
    SLIST_ENTRY(listener) link;
    uint32_t number;
    char *name;
    char *path;
    uint64_t device;
    uint64_t inode;
};

struct memory {
    RB_ENTRY(memory) link; /* pid, start time, cookie */
    uint32_t slot;
    struct record record;
    struct policy *policy; /* that of the record; NULL when it is not there any more */
};

TAILQ_HEAD(runtime_list, runtime);
TAILQ_HEAD(session_list, session);

struct broker {
    struct policy *policy;
    enum broker_trust trust;
    uint64_t distrusted_until;
    size_t usable_descriptors;
    size_t n_keepable;
    bool is_paused;
    bool is_stopping;
    enum broker_stop stop;

    struct action_queue actions;
    size_t n_reads; /* ACTION_READ in the queue */
    STAILQ_HEAD(, notice) notices;
    size_t n_notices;
    struct deadline_queue ends;      /* the deadlines of rules, which nothing else may delay */
    struct deadline_queue deadlines; /* all others */
    uint64_t n_serials;

    struct connection_list connections;
    struct connection_list silent;   /* oldest first */
    struct connection_list nameless; /* likewise */
    struct connection_list spare;    /* likewise, since they are */
    size_t n_connections;
    size_t n_silent;
    struct session_list sessions; /* oldest first */
    size_t n_sessions;            /* with those that were asked for and not answered yet */
    TAILQ_HEAD(, process) held;
    size_t n_held;               /* handles of processes, which are descriptors too */
    struct runtime_list waiting; /* they are not resumed, and have no connection */
    size_t n_waiting;
    size_t n_given; /* connections and handles when the system had no descriptor left */
    bool is_short;  /* of descriptors */
    struct deadline room;
    bool is_in_round;
    uint64_t round;
    unsigned n_elsewhere; /* came back in it, and nobody by the listener of who is missed */
    struct span round_wait;
    struct moment next_round;
    size_t n_kept;
    uint64_t last_kept;  /* the highest serial number of one that is kept, ever */
    size_t n_unanswered; /* connections with a message in flight, or answered and not yet ended */

    RB_HEAD(user_tree, user) users;
    RB_HEAD(process_tree, process) processes;
    RB_HEAD(process_id_tree, process) processes_by_id;
    RB_HEAD(question_tree, question) questions;
    RB_HEAD(memory_tree, memory) memories;
    RB_HEAD(cookie_tree, runtime) cookies;
    RB_HEAD(serial_tree, runtime) serials;
    SLIST_HEAD(, listener) listeners;

    struct runtime_list runtimes;
    struct runtime_list by_state[RUNTIME_STATES];
    size_t n_by_state[RUNTIME_STATES];

    uint8_t *taken_slots; /* one byte per slot of the record file: 1 when it is taken */
    uint32_t slot_hint;

    struct broker_counters counters;
};

/* For broker_check: not assert(), since these are its point whatever NDEBUG says. */
#define MUST(condition)                                          \
    do {                                                         \
        if (!(condition))                                        \
            broker_check_failed(#condition, __FILE__, __LINE__); \
    } while (0)

_Noreturn void broker_check_failed(const char *condition, const char *file, int line);
/* That what is charged to users and processes adds up. */
void process_check(const struct broker *broker);

/* broker.c */

uint64_t broker_serial(struct broker *broker);
const struct listener *broker_listener(const struct broker *broker, uint32_t number);
/* Raises ALARM_MEMORY. */
void broker_out_of_memory(struct broker *broker, struct moment now);
/* Queues a notice about whatever `content` says; losing one is counted, and nothing else. */
void broker_notice(struct broker *broker, const struct notice *content, const char *rule,
                   const char *name);
void broker_peer_error(struct broker *broker, enum notice_peer_error error,
                       const struct broker_peer *peer, const struct runtime *runtime,
                       const char *why, struct moment now);
/* Has a connection read before anything else happens; false when memory is out. */
bool broker_read(struct broker *broker, const struct connection *connection) MUST_CHECK;
/* It is being closed: it must not be read any more. */
void broker_forget_reads(struct broker *broker, const struct connection *connection);
/* Counts a match of a rule of the policy in force. */
void broker_count_match(struct broker *broker, const struct policy *policy,
                        const struct policy_rule *rule, struct moment now);

/*
 * Asks for facts; one question at a time per connection or runtime: an earlier one is forgotten.
 * `files` are copied. False when memory is out.
 */
bool broker_ask(struct broker *broker, enum question_purpose purpose, struct connection *connection,
                struct runtime *runtime, uint32_t wanted, const char *const *files,
                size_t n_files) MUST_CHECK;
/* Nobody waits for it any more. NULL is allowed. Returns NULL. */
struct question *broker_forget_question(struct broker *broker, struct question *question);

/* A free slot of the record file, taken; PROCESS_NO_SLOT when there is none. */
uint32_t broker_take_slot(struct broker *broker);
/* Writes a record into a slot, RECORD_NONE frees it. 0, -ENOMEM, or -ENOSPC without a place for
 * records. */
int broker_mark(struct broker *broker, uint32_t slot, const struct record *record) MUST_CHECK;

/* broker_keep.c */

/* Has a connection of a runtime kept, instead of the one that is. Where that cannot be, it is not.
 */
void keep_begin(struct connection *connection, struct moment now);
/* Of somebody who is held, one that waits: true when one is kept that was not. */
bool keep_held(struct runtime *runtime, struct moment now);
/* It need not be any more, if it was. */
void keep_end(struct connection *connection);

/* broker_room.c */

/* A connection has come by that listener: makes room for one more, if that can be done. */
void room_make(struct broker *broker, uint32_t listener, struct moment now);
/* It, or the runtime it is of, has changed: whether it is one that may go for somebody else. */
void room_consider(struct connection *connection);
/* One has gone: whether the listeners have to be paused, or need not be any more. */
void room_judge(struct broker *broker, struct moment now);
void room_deadline(struct broker *broker, struct moment now);
/* Has those read that may go then. */
void room_read_due(struct broker *broker, struct moment now);
/* One more waits without a connection. */
void room_wanted(struct broker *broker);
/* A runtime has a connection again. */
void room_came_back(struct runtime *runtime, const struct connection *connection,
                    struct moment now);

/* broker_operate.c */

/* Puts it behind all others in the order of their coming, and takes it out. */
void broker_enlist(struct runtime *runtime);
void broker_delist(struct runtime *runtime);

/* process.c */

/* NULL when memory is out. */
struct user *user_get(struct broker *broker, uint32_t uid) MUST_CHECK;
/* Frees it when nothing is charged to it any more. */
void user_settle(struct broker *broker, struct user *user);
/* A runtime was resumed that is none of ours; whether one may have been. */
void user_resumed_unknown(struct broker *broker, struct user *user, const struct guid *cookie,
                          int32_t pid, struct moment now);
bool user_may_have_resumed(const struct user *user, const struct guid *cookie);
/* Another one in that process may have been. */
bool user_may_have_resumed_beside(const struct user *user, const struct guid *cookie, int32_t pid);
/* That does not matter any more: not for one of them, or for anybody since the broker ends. */
void user_deadline(struct broker *broker, struct user *user);
void users_free(struct broker *broker);
struct process *process_find(struct broker *broker, int32_t pid, uint64_t start_time);
/* The one that was started first of those of that pid; NULL when there is none. */
struct process *process_first_of(struct broker *broker, int32_t pid);
/* Another process of that pid is known: the same one under two names, if one could not be looked
 * at, or one that it followed. */
bool process_has_namesake(struct broker *broker, const struct process *process);
struct process *process_new(struct broker *broker, int32_t pid, uint64_t start_time,
                            bool is_identified, uint32_t uid) MUST_CHECK;
/* Frees it when no runtime and no cookie of it has to be remembered any more. */
void process_settle(struct broker *broker, struct process *process);
struct process *process_by_id(struct broker *broker, uint64_t id);
/* Asks the shell to keep, or to give back, the handle of the process for one runtime. */
void process_hold(struct broker *broker, struct process *process);
void process_release(struct broker *broker, struct process *process, struct moment now);
/* Gives back one that is not needed for a kill; false when there is none. */
bool process_give_up_handle(struct broker *broker, struct moment now);
/* The shell has none any more, so whoever is in the process is looked after. */
void process_lose_handle(struct broker *broker, struct process *process, struct moment now);
bool process_knows_cookie(const struct process *process, const struct guid *cookie);
/* False when the cookie would be one more than limits.cookies_per_process. */
bool process_has_room(const struct process *process, const struct guid *cookie,
                      const struct policy_limits *limits);
/* False when memory is out. A cookie that is known already is fine. */
bool process_remember_cookie(struct process *process, const struct guid *cookie) MUST_CHECK;
/* What is kept of one of its cookies, which it knows. */
struct process_cookie *process_cookie(struct process *process, const struct guid *cookie);
/* When the next Resume to a connection without a runtime may go out. */
struct moment pace_next(struct pace *pace, struct moment now);

/* connection.c */

void connection_set_state(struct connection *connection, enum connection_state state,
                          struct moment deadline);
/* Over a limit of silent ones, or of descriptors, one of them goes: the oldest one of the user who
 * came last, or of all if he has no other. */
void connection_evict_silent(struct broker *broker, const char *why, struct moment now);
/* Takes it out of everything and has it closed. */
void connection_close(struct connection *connection, struct moment now);
/* Sends a message, which it takes, as the one in flight; false when memory is out. */
bool connection_send(struct connection *connection, enum command_id command,
                     struct bytes *message) MUST_CHECK;
/* It has no runtime of its own: Resume, at the pace of its process or user, and after that either
 * it stays open or we close it in BROKER_LEAVING_TIME. */
void connection_be_nameless(struct connection *connection, struct pace *pace,
                            enum connection_state state, struct moment now);
void connection_deadline(struct connection *connection, struct moment now);

/* identify.c */

void identify_connection(struct connection *connection, struct moment now);
/* `facts` NULL: the answer did not come in time. */
void identify_answered(struct connection *connection, const struct facts *facts, struct moment now);

/* Resume is sent to one that only its user remembers, and was sent. */
void identify_resume_unknown(const struct connection *connection);
void identify_resumed_unknown(const struct connection *connection, struct moment now);
/* Its connection ends. It may have taken its Resume only now, and shows a while later that it runs.
 */
void identify_nameless_ended(const struct connection *connection, struct moment now);

/* The registry of cookies. A runtime's place in it depends on whether it has ended: it is taken out
 * before that changes, and put in again after. */
void identify_register(struct runtime *runtime);
void identify_unregister(struct runtime *runtime);

/* runtime.c */

/* The rule's keys, or the defaults while there is no rule. */
const struct policy_defaults *runtime_keys(const struct runtime *runtime);
struct runtime *runtime_new(struct broker *broker, struct process *process,
                            struct connection *connection) MUST_CHECK;
void runtime_free(struct runtime *runtime);
void runtime_set_state(struct runtime *runtime, enum runtime_state state, struct moment deadline,
                       const char *why, struct moment now);
void runtime_set_next(struct runtime *runtime, struct moment at);
void runtime_tell_step(struct runtime *runtime, const struct step *step, struct moment now);
void runtime_tell_proof(struct runtime *runtime, const struct step *step, struct moment now);
/* It was told of before, and now there is something to say of its file. */
void runtime_tell_file(struct runtime *runtime, const struct step *step, struct moment now);
/* Its process has ended, or it was replaced by an exec. */
void runtime_end(struct runtime *runtime, const char *why, struct moment now);
/* Forgets the oldest of those that ended, down to limits.history. */
void runtime_forget_history(struct broker *broker);
/* Whether somebody has to be told at once when its process ends, or is to be killed. */
void runtime_hold_process(struct runtime *runtime);
void runtime_release_process(struct runtime *runtime, struct moment now);
/* Without a connection and without a handle nobody tells us when the process ends: then it is
 * looked at, less and less often. */
void runtime_watch_alive(struct runtime *runtime, struct moment now);
/* Whether it needs a connection and has none, after anything of that changed. */
void runtime_judge_waiting(struct runtime *runtime);
void runtime_attach(struct runtime *runtime, struct connection *connection, struct moment now);
/* A connection left the runtime; it is not in its list any more. `was_answered`: it carried a
 * command whose answer came. */
void runtime_detached(struct runtime *runtime, struct connection *connection, bool was_answered,
                      struct moment now);
/* The busy connection is none of its ports any more: it has become a session. */
void runtime_give_away(struct runtime *runtime, struct connection *connection, struct moment now);
/* The reply of the busy connection is whole. */
void runtime_answered(struct runtime *runtime, struct connection *connection, struct moment now);
void runtime_facts(struct runtime *runtime, enum question_purpose purpose, struct facts *facts,
                   struct moment now);
void runtime_deadline(struct runtime *runtime, enum deadline_kind kind, struct moment now);
/* Does whatever can be done next. */
void runtime_advance(struct runtime *runtime, struct moment now);
/* The oldest connection that waits for us; NULL when there is none. */
struct connection *runtime_free_connection(const struct runtime *runtime);
/* Sends a message, which it takes, on a connection. False when memory is out: it will be tried
 * again. */
bool runtime_send(struct runtime *runtime, struct connection *connection,
                  enum runtime_flight flight, enum command_id command, struct bytes *message,
                  struct moment deadline, struct moment now) MUST_CHECK;
bool runtime_flies_resume(const struct runtime *runtime);
/* Gives up on the message in flight, unless it is a Resume: closes its connection. */
void runtime_lose_flight(struct runtime *runtime, struct moment now);

/* runtime_mark.c */

/* Writes down how far it is: `sending` is the step whose message comes next, or NULL. 0, -ENOMEM,
 * or -ENOSPC: no record of it can be kept. */
int runtime_mark(struct runtime *runtime, enum record_phase phase,
                 const struct step *sending) MUST_CHECK;
/* Likewise after something came of it: should that fail, the record says less than is known, and
 * nothing that is not so. */
void runtime_mark_progress(struct runtime *runtime, struct moment now);

/* memory.c */

/* What an earlier daemon wrote down, which it takes; of two that say something of one runtime the
 * one that says "resumed" counts. */
void memory_add(struct broker *broker, struct memory *memory);
/* What an earlier daemon wrote down about it, until it is taken; NULL when nothing. */
struct memory *memory_of(const struct runtime *runtime);
/* Whatever is written of it from now on has to go where the last of it is. */
void memory_take_slot(struct runtime *runtime);
/* Likewise, and the caller's to free. */
struct memory *memory_take(struct runtime *runtime) MUST_CHECK;
void memory_free(struct memory *memory);
/* True when an earlier daemon knew another runtime in its process, ended by an exec or beside it.
 */
bool memory_has_neighbour(struct runtime *runtime);
/* The record that names the connection of that process, and says what is to be read there; NULL
 * when none does. */
const struct record *memory_find_kept(struct broker *broker, int32_t pid, uint64_t kept);
/* True when one of them names that policy. */
bool memory_names_policy(const struct broker *broker, const uint8_t *id);
/* Frees one of them; false when there is none. */
bool memory_drop_any(struct broker *broker);

/* runtime_recall.c */

/* Decides what becomes of it by what the records say. `facts` is NULL before it was looked at. */
void recall_decide(struct runtime *runtime, struct memory *memory, const struct facts *facts,
                   struct moment now);
/* Goes on with it by its record, which names the connection that it has. */
void recall_adopted(struct runtime *runtime, struct moment now);
/* DECIDING, and nothing is in flight. */
void recall_advance(struct runtime *runtime, struct moment now);

/* runtime_decide.c */

void decide_runtime(struct runtime *runtime, const struct facts *facts, const char *claim_problem,
                    struct moment now);
/* The first rule that matches, and the beginning of its plan where there is one. */
void decide_by_policy(struct runtime *runtime, const struct facts *facts, struct moment now);
/* On to the facts that have to be known before the first command. */
void decide_begin_plan(struct runtime *runtime, const struct facts *facts, struct moment now);
/* What matches now, only for showing: what decided is a record. */
void decide_show_match(struct runtime *runtime, struct moment now);
void decide_facts(struct runtime *runtime, enum question_purpose purpose, const struct facts *facts,
                  struct moment now);
/* False when the records may lack what earlier daemons knew of it and of others in its process. */
bool decide_has_all_records(const struct runtime *runtime);
/* What its own port list says, out of the environment in `attributes`. */
void decide_ports(struct runtime *runtime, const struct attributes *attributes);

/* runtime_ask.c */

/* Asks what has to be asked, then goes on to apply_steps. */
void ask_begin(struct runtime *runtime, struct moment now);
void ask_send(struct runtime *runtime, struct connection *connection, struct moment now);
void ask_answered(struct runtime *runtime, struct connection *connection, struct moment now);
void ask_lost(struct runtime *runtime, struct moment now);
/* Which kind it is, by the answer to the question for it. */
void ask_take_kind(struct runtime *runtime, const struct reply *reply);

/* runtime_apply.c */

/* Everything that facts can tell is known: questions, then steps. */
void apply_begin(struct runtime *runtime, struct moment now);
/* Everything that the runtime can tell is known. */
void apply_steps(struct runtime *runtime, struct moment now);
/* Until when the answer to a message that is sent now is waited for. */
struct moment apply_answer_deadline(const struct runtime *runtime, struct moment now);
void apply_advance(struct runtime *runtime, struct moment now);
void apply_answered(struct runtime *runtime, struct connection *connection, struct moment now);
/* The message in flight will not be answered. */
void apply_lost(struct runtime *runtime, struct moment now);
/* The plan ends here, at its deadline or because somebody wants it: `is_forced` is Resume whatever
 * `on_failure` says. */
void apply_stop(struct runtime *runtime, const char *why, bool is_forced, struct moment now);
/* The plan cannot be completed: take back what was done, then do as `on_failure` says. */
void apply_fail(struct runtime *runtime, const char *why, struct moment now);
/* Kills it whatever it is in the middle of. */
void apply_abandon(struct runtime *runtime, const char *why, struct moment now);
void apply_deadline(struct runtime *runtime, struct moment now);

/* runtime_compare.c */

/* Asks, where there is something to ask and time for it. `was_held`: its deadline counts no more.
 */
void compare_begin(struct runtime *runtime, bool was_held, struct moment now);
/* RESUMING: it was asked, and Resume waits for the answer. */
bool compare_is_under_way(const struct runtime *runtime);
/* The answer is waited for no longer. */
void compare_give_up(struct runtime *runtime);
void compare_facts(struct runtime *runtime, const struct facts *facts, struct moment now);

/* runtime_kill.c */

void kill_begin(struct runtime *runtime, const char *why, struct moment now);
void kill_facts(struct runtime *runtime, const struct facts *facts, struct moment now);
void kill_failed(struct runtime *runtime, struct moment now);

/* runtime_attach.c */

/* Does what can be done next about the one under way, if there is one. */
void attach_advance(struct runtime *runtime, struct moment now);
void attach_facts(struct runtime *runtime, const struct facts *facts, struct moment now);
void attach_answered(struct runtime *runtime, struct connection *connection, struct moment now);
/* The message in flight will not be answered. */
void attach_lost(struct runtime *runtime, struct moment now);
void attach_deadline(struct attach *attach, struct moment now);
/* It comes to an end here; a connection that carries a message of it is not closed. */
void attach_stop(struct runtime *runtime, const char *why, struct moment now);
void attach_free_all(struct runtime *runtime);

/* runtime_resume.c */

void resume_begin(struct runtime *runtime, enum runtime_outcome outcome, const char *why,
                  struct moment now);
/* Before a Resume of it is sent, counted or not. */
void resume_mark(struct runtime *runtime);
void resume_advance(struct runtime *runtime, struct moment now);
void resume_answered(struct runtime *runtime, struct connection *connection,
                     enum runtime_flight flight, struct moment now);
void resume_lost(struct runtime *runtime, struct moment now);
/* A connection of it that is not counted is resumed, so another one may wait for what was taken for
 * its own. */
void resume_uncounted(struct runtime *runtime, struct moment now);
/* Its process has another runtime, so if the picture said that this one runs, it said nothing. */
void resume_doubt(struct runtime *runtime, struct moment now);
void resume_facts(struct runtime *runtime, enum question_purpose purpose, const struct facts *facts,
                  struct moment now);
void resume_deadline(struct runtime *runtime, struct moment now);
/* What the threads of its process say of it. Two runtimes of one process share their names: that
 * one of them runs says nothing of the other. */
enum picture resume_picture(const struct runtime *runtime, const struct facts *facts);
/* More connections are open on some listener than Resumes were answered there: the oldest one that
 * waits. NULL when there is none. */
struct connection *resume_wanted(const struct runtime *runtime);

/* runtime_session.c */

/* True when all steps are done and a session is to be opened before Resume. */
bool session_is_wanted(struct runtime *runtime);
void session_send(struct runtime *runtime, struct connection *connection, struct moment now);
/* The reply is whole, and OK. 0 when the connection is a session now, and none of its runtime's;
 * what follows is said in it. -EBADMSG: it names no session; -ENOMEM. */
int session_open(struct connection *connection, struct moment now) MUST_CHECK;
/* It will not; on 11 the runtime waits for us to close then (measured). */
void session_refused(struct connection *connection, struct moment now);
/* Resume is next: where there is no session, nothing more will be known. */
void session_missed(struct runtime *runtime, struct moment now);
void session_resumed(struct runtime *runtime, struct moment now);
/* Asks the runtime to end it, if that is due and it can be asked now. */
void session_advance(struct runtime *runtime, struct moment now);
void session_bytes(struct connection *connection, const uint8_t *bytes, size_t length,
                   struct moment now);
void session_deadline(struct connection *connection, struct moment now);
void session_runtime_ended(struct runtime *runtime, struct moment now);
/* The runtime is freed, its session goes when it is looked at next. */
void session_forget_runtime(struct runtime *runtime);
/* Somebody needs its place: the oldest one goes, of a user or, with NULL, of all. False when there
 * is none. */
bool session_let_go(struct broker *broker, const struct user *user, struct moment now);
/* A connection ends, which may be one. */
void session_connection_closed(struct connection *connection, struct moment now);
