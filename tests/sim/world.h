/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A world for the broker to live in: a clock that tests move, processes whose
 * facts tests write, connections whose bytes they send, and runtimes that
 * behave like real ones until they are told otherwise. The broker in it is the
 * one that ships; the world is its shell.
 *
 * After every event everything that must hold of the broker is checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/advertise.h"
#include "lib/broker.h"
#include "lib/command.h"
#include "lib/facts.h"
#include "lib/moment.h"
#include "lib/runtime.h"

struct action;

enum {
    WORLD_CONNECTIONS_MAX = 65536,
    WORLD_PROCESSES_MAX = 2048,
    WORLD_COMMANDS_MAX = 256,
    WORLD_PORTS_MAX = 16,
    WORLD_POLICIES_MAX = 32,
    WORLD_VARIABLES_MAX = 32,
    WORLD_LISTENERS = 3,
};

enum world_picture { WORLD_SUSPENDED, WORLD_RUNNING, WORLD_UNREADABLE, WORLD_STRANGE };

struct world_file {
    const char *path;
    uint32_t mode;
    uint32_t owner;
    int error;
    uint64_t inode; /* sockets of the world's listeners have 100, 101, 102 */
};

struct world_process {
    int32_t pid;
    uint64_t start_time;
    uint32_t uid;
    uint64_t ns_pid; /* 0: as pid, in our namespace */
    struct span age; /* when it was made */
    struct moment made_at;
    const char *exe;       /* NULL: not permitted to read it */
    const char *arguments; /* each ends with a NUL, the last one with two; NULL: not permitted */
    const char *cgroup;
    const char *cwd;        /* NULL: "/" */
    const char *parent_exe; /* NULL: "/bin/sh" */
    const char *environ;    /* likewise */
    enum world_picture picture;
    /* What its threads show up to then, when it runs already. */
    enum world_picture late_picture;
    struct moment shows_at;
    char state; /* of /proc/PID/stat */
    const struct world_file *files;
    size_t n_files;
    unsigned n_replaced; /* how often others were put in the place of its regular files */
    bool is_dead;
    bool has_no_handle;
    bool hides_pid;      /* its connections have no pid in our namespace */
    bool hides_environ;  /* not permitted to read it */
    bool is_silent;      /* questions about it are never answered */
    uint64_t held;       /* the number under which its handle is held, 0 when it is not */
    bool was_told_ended; /* to this daemon, while its handle was held */
    bool was_killed;
    const char *killed_as; /* what it ran then */
};

struct world_connection {
    struct world *world;
    struct connection *core; /* NULL when it was closed by us */
    struct world_process *process;
    struct world_runtime *runtime; /* NULL for one that a test plays by hand */
    uint32_t listener;
    bool is_accepted;
    bool is_closed;   /* by the broker */
    bool has_ended;   /* by the peer */
    bool is_end_told; /* and the broker knows */
    bool is_asked;    /* the broker wants all that is there to be read */
    uint64_t kept;    /* in the store, under that serial number; 0 when it is not */
    uint8_t *inbox;   /* sent by the peer and not yet reported */
    size_t inbox_length;
    uint8_t *message; /* sent to it and not yet taken */
    size_t message_length;
    unsigned n_messages; /* in all */
};

/* A command that a runtime got. */
struct world_command {
    enum command_id id;
    uint32_t listener;
    char name[128]; /* variable, path or paths */
    char value[128];
    bool is_unset;
    bool is_primer;   /* the profiler that it loads is the primer */
    bool was_refused; /* the answer was an error */
    bool was_answered;
    bool came_late;       /* every port had been resumed */
    bool is_version_told; /* to the daemon that sent it */
    unsigned n_more;      /* Resumes that followed at once and were the same */
    struct moment at;
};

struct world_variable {
    char name[32];
    char value[128];
};

/* What a runtime does with a command instead of what real ones do. */
enum world_fault {
    WORLD_ANSWERS,    /* nothing else */
    WORLD_REFUSES,    /* with `hresult` */
    WORLD_READS_ONLY, /* and never answers */
    WORLD_ANSWERS_HALF,
    WORLD_ANSWERS_GARBAGE,
    WORLD_CLOSES,     /* without an answer, and comes back */
    WORLD_DROPS,      /* the same, and did not do it */
    WORLD_DIES,       /* before the answer */
    WORLD_DIES_AFTER, /* it */
};

struct world_runtime {
    struct world *world;
    struct world_process *process;
    struct guid cookie;
    int32_t claimed_pid; /* instead of its own; 0 */
    unsigned major;
    enum runtime_kind kind;
    uint32_t ports[WORLD_PORTS_MAX]; /* its listeners, in the order of its list */
    bool suspends[WORLD_PORTS_MAX];
    bool is_resumed[WORLD_PORTS_MAX];
    struct world_connection *connections[WORLD_PORTS_MAX];
    size_t n_ports;
    struct world_connection *session; /* in which it says what it loaded */
    unsigned n_sessions;              /* that it opened */
    const void *said;                 /* there, once it runs */
    size_t said_length;
    bool has_foreign_port; /* one more that suspends and is not ours */
    struct world_command commands[WORLD_COMMANDS_MAX];
    size_t n_commands;
    unsigned n_taken; /* in all, the same Resumes among them */
    /* What to do about a command, asked before it is taken; NULL: all as real ones do. */
    enum world_fault (*fault)(struct world_runtime *runtime, const struct world_command *command,
                              uint32_t *ret_hresult);
    void *context;
    bool has_told_version;
    bool is_stuck;            /* its server thread waits for somebody else: nothing is read */
    unsigned n_refusals_left; /* of a profiler, as in the start-up race */
    /* What is in force in it: all that it did, answered or not. */
    struct world_variable variables[WORLD_VARIABLES_MAX];
    size_t n_variables;
    unsigned n_hooks;
    unsigned n_profilers; /* without the primer */
    unsigned n_primers;
    unsigned n_attached;
};

struct world {
    struct moment now;
    struct broker *broker;
    struct policy *policy; /* in force; the last one of these */
    struct policy *policies[WORLD_POLICIES_MAX];
    size_t n_policies;
    bool are_policies_lost; /* the next daemon finds none of an earlier one */
    struct world_connection *connections[WORLD_CONNECTIONS_MAX];
    size_t n_connections;
    struct world_connection *open[WORLD_CONNECTIONS_MAX]; /* those that are not closed, and more */
    size_t n_open;
    size_t n_accepted; /* none before these waits to be accepted */
    size_t n_waiting;  /* to be accepted */
    size_t n_asked;
    struct world_process processes[WORLD_PROCESSES_MAX];
    size_t n_processes;
    uint8_t marks[RECORD_SLOTS][RECORD_SLOT_SIZE];
    uint64_t n_marks;
    uint32_t n_slots; /* none behind these was ever written */
    uint64_t distrusted_until;
    struct world_runtime *runtimes[WORLD_PROCESSES_MAX];
    size_t n_runtimes;
    size_t usable_descriptors;
    size_t n_keepable;
    uint32_t last_listener; /* of which a connection was accepted */
    bool is_paused;
    bool is_judging; /* deadlines are acted on */
    size_t n_unread; /* connections that were closed then, and had something to be read */
    /* Connections wait to be accepted, and what peers send to be read, until somebody delivers
     * them; questions to be answered, until somebody answers. Else all this is done at once. */
    bool is_network_slow;
    bool are_answers_slow;
    /* Around every call into the broker, for whoever wants to make memory run short in it. */
    void (*before_call)(void *context);
    void (*after_call)(void *context);
    void *context;
    /* What the shell cannot do the next time. */
    bool fails_to_hold;
    bool fails_to_kill;
    bool fails_to_send;
    /* Before that many actions more the daemon dies; 0: it lives. Of a mark that it dies in so many
     * bytes are changed. */
    uint32_t n_actions_left;
    uint32_t n_torn;
    bool is_daemon_dead;
    bool refuses_to_keep; /* the store does, from now on */
    struct span lag;      /* from Resume until threads show that a runtime runs */
    uint64_t piece_state; /* not 0: bytes arrive in pieces, whose sizes come out of it */
    size_t n_notices;
    struct world_question *questions; /* open ones */
    uint32_t wanted;                  /* by the last question */
    struct world_process nobody;      /* who is asked about when a pid is not known here */
    struct world_process *answering;  /* the one whose answer is being given */
};

/* A world with a broker under that policy, in YAML; fails the test when it has errors. */
struct world *world_new(const char *policy);
struct world *world_new_with(const char *policy, enum broker_trust trust,
                             size_t usable_descriptors);
/* With a store for as many connections; the others have none. */
struct world *world_new_keeping(const char *policy, size_t usable_descriptors, size_t n_keepable);
void world_free(struct world *world);

/* The daemon dies and is started anew: connections end but those in the store; records stay, or,
 * where the new one distrusts them, are lost. */
void world_restart(struct world *world, enum broker_trust trust);

/* What the records say of it; false when that is nothing. */
bool world_find_record(const struct world *world, const struct world_runtime *runtime,
                       struct record *ret_record);

/* The daemon is dead from its action with that number on, which is not done; of a mark it changes
 * the first `n_torn` bytes that would change. Nothing it wants is done any more, up to the restart.
 */
void world_let_die(struct world *world, uint32_t at_action, uint32_t n_torn);
/* The service is stopped for good: what is in the store ends, too. */
void world_drop_store(struct world *world);

/* A suspended CoreCLR program of the host, uid 1000, one port. */
struct world_process *world_process(struct world *world, const char *exe, const char *environ);

/* A connection whose peer a test plays by hand. */
struct world_connection *world_connect(struct world *world, struct world_process *process,
                                       uint32_t listener);
void world_advertise(struct world_connection *connection, const struct guid *cookie, uint64_t pid);
void world_send(struct world_connection *connection, const void *bytes, size_t length);
void world_send_status(struct world_connection *connection, bool is_ok, uint32_t hresult);
void world_end(struct world_connection *connection);

/* On a slow network: accepts the connection that has waited longest for that listener; reports at
 * most `size` bytes of a connection, or its end; or all there is of everything. False when there
 * was nothing. */
bool world_accept(struct world *world, uint32_t listener);
bool world_deliver(struct world_connection *connection, size_t size);
void world_deliver_all(struct world *world);

/* The command that was sent to it and not yet taken; false when there is none. */
bool world_take_command(struct world_connection *connection, struct world_command *ret_command);
bool world_peek_command(struct world_connection *connection, struct world_command *ret_command);

/* A runtime of .NET 10 that behaves, with suspending ports on these listeners. `cookie` is eight
 * hexadecimal digits. */
struct world_runtime *world_runtime(struct world *world, struct world_process *process,
                                    const char *cookie, const uint32_t *ports, size_t n_ports);

/* It connects and advertises, on all its ports or on one. */
void world_start(struct world_runtime *runtime);
void world_connect_port(struct world_runtime *runtime, size_t port);

/* Lets every runtime answer everything until nothing is in flight. */
void world_serve(struct world *world);

/* Lets one runtime take and answer one command; false when it has none. */
bool world_serve_one(struct world_runtime *runtime);

/* After a test has called the broker itself: carries out what it wants. */
void world_settle(struct world *world);

/* Moves the clock, acting on every deadline on the way; with `is_served` runtimes answer. */
void world_pass(struct world *world, struct span length, bool is_served);

/* Moves the clock without anybody looking: a stall; and what is done after one about
 * everything that is due. */
void world_stall(struct world *world, struct span length);
void world_wake(struct world *world);

/* The network is slow no more: what waits is heard. */
void world_hear(struct world *world);

/* Another policy is put in force; false when memory ran out: the old one stays. */
bool world_set_policy(struct world *world, const char *policy);

/* The daemon is told to stop. */
void world_stop(struct world *world, enum broker_stop stop);

/* The process ends: its connections and, if its handle is held, its end is told. */
void world_kill(struct world *world, struct world_process *process);

/* The broker's runtime with that cookie; NULL when there is none. */
const struct runtime *world_find(struct world *world, const char *cookie);

/* Its last answer is whole, in the store, and read by nobody. */
bool world_is_answer_kept(const struct world_runtime *runtime);

/* The value of a variable; NULL when it is not set. */
const char *world_variable(const struct world_runtime *runtime, const char *name);
void world_set_variable(struct world_runtime *runtime, const char *name, const char *value);

/* All its commands as text: "kind, info3, env A=1, profiler /p, hook /a:/b, resume". */
const char *world_story(const struct world_runtime *runtime);

struct guid world_cookie(const char *text);

/* Answers all questions that were left open, those about silent processes among them. */
void world_answer_late(struct world *world);

/* Answers one question, the `nth` of those that are open and not about a silent process; false when
 * there is none. */
bool world_answer_one(struct world *world, size_t nth);

/* For the rooms of the world itself. */

/* Ends the test with a sentence. */
_Noreturn void world_fail(const char *format, ...) PRINTF_LIKE(1, 2);
/* The memory, or the end of the test. */
void *world_need(void *memory);
struct facts *world_look(const struct world_process *process,
                         const struct action_question *question, struct moment now);

/* Around every call into the broker. */
static inline void world_before_call(struct world *world)
{
    if (world->before_call)
        world->before_call(world->context);
}

static inline void world_after_call(struct world *world)
{
    if (world->after_call)
        world->after_call(world->context);
}

/* Carries out everything but what waits in queues of listeners. */
void world_settle_all_but_queues(struct world *world);

/* world_network.c */

/* What the broker wants of a connection: that it is sent, closed or read to its end. */
void world_take_message(struct world_connection *connection, struct action *action);
void world_close(struct world_connection *connection);
void world_ask_read(struct world_connection *connection);
/* Reads once from one of those that are to be read; false when there is nothing more. */
bool world_read_asked(struct world *world);
/* Accepts one of those that wait, of one listener after the other. */
bool world_accept_next(struct world *world);
/* The daemon is gone, and with it its ends of all connections but those in the store. */
void world_cut_connections(struct world *world);
/* The next one gets those. */
void world_adopt_connections(struct world *world);
void world_keep(struct world_connection *connection, uint64_t kept);
void world_unkeep(struct world *world, uint64_t kept);
void world_free_connections(struct world *world);
void world_drop_message(struct world_connection *connection);
void world_send_reply(struct world_connection *connection, bool is_ok, const void *payload,
                      size_t length);
