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

enum {
    WORLD_CONNECTIONS_MAX = 65536,
    WORLD_PROCESSES_MAX = 2048,
    WORLD_COMMANDS_MAX = 256,
    WORLD_PORTS_MAX = 16,
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
    struct span age;
    const char *exe;       /* NULL: not permitted to read it */
    const char *arguments; /* each ends with a NUL, the last one with two; NULL: not permitted */
    const char *cgroup;
    const char *environ; /* likewise */
    enum world_picture picture;
    char state; /* of /proc/PID/stat */
    const struct world_file *files;
    size_t n_files;
    bool is_dead;
    bool has_no_handle;
    bool hides_pid; /* its connections have no pid in our namespace */
    bool is_silent; /* questions about it are never answered */
    uint64_t held;  /* the number under which its handle is held, 0 when it is not */
    bool was_killed;
};

struct world_connection {
    struct world *world;
    struct connection *core; /* NULL when it was closed by us */
    struct world_process *process;
    struct world_runtime *runtime; /* NULL for one that a test plays by hand */
    uint32_t listener;
    bool is_closed;   /* by the broker */
    bool has_ended;   /* by the peer */
    uint8_t *message; /* sent to it and not yet taken */
    size_t message_length;
    unsigned n_messages; /* in all */
    uint8_t *unread;     /* what it sent while the world was deaf */
    size_t n_unread;
    bool is_end_unread; /* likewise */
    bool is_asked_for;  /* the broker wants it read */
};

/* A command that a runtime got. */
struct world_command {
    enum command_id id;
    uint32_t listener;
    char name[128]; /* variable, path or paths */
    char value[128];
    bool is_unset;
    bool was_refused; /* the answer was an error */
    struct moment at;
};

/* What a runtime does with a command instead of what real ones do. */
enum world_fault {
    WORLD_ANSWERS,    /* nothing else */
    WORLD_REFUSES,    /* with `hresult` */
    WORLD_READS_ONLY, /* and never answers */
    WORLD_ANSWERS_HALF,
    WORLD_ANSWERS_GARBAGE,
    WORLD_CLOSES,     /* without an answer, and comes back */
    WORLD_DIES,       /* before the answer */
    WORLD_DIES_AFTER, /* it */
};

struct world_runtime {
    struct world *world;
    struct world_process *process;
    struct guid cookie;
    unsigned major;
    enum runtime_kind kind;
    uint32_t ports[WORLD_PORTS_MAX]; /* its listeners, in the order of its list */
    bool suspends[WORLD_PORTS_MAX];
    bool is_resumed[WORLD_PORTS_MAX];
    struct world_connection *connections[WORLD_PORTS_MAX];
    size_t n_ports;
    bool has_foreign_port; /* one more that suspends and is not ours */
    struct world_command commands[WORLD_COMMANDS_MAX];
    size_t n_commands;
    /* What to do about a command, asked before it is taken; NULL: all as real ones do. */
    enum world_fault (*fault)(struct world_runtime *runtime, const struct world_command *command,
                              uint32_t *ret_hresult);
    void *context;
    bool has_told_version;
    bool is_stuck;               /* its server thread waits for somebody else: nothing is read */
    unsigned n_refusals_left;    /* of a profiler, as in the start-up race */
    const char *environment[16]; /* what ProcessEnvironment answers, "NAME=VALUE" */
};

struct world {
    struct moment now;
    struct broker *broker;
    struct policy *policy;
    struct world_connection *connections[WORLD_CONNECTIONS_MAX];
    size_t n_connections;
    struct world_process processes[WORLD_PROCESSES_MAX];
    size_t n_processes;
    uint8_t marks[RECORD_SLOTS][RECORD_SLOT_SIZE];
    uint64_t n_marks;
    struct world_runtime *runtimes[WORLD_PROCESSES_MAX];
    size_t n_runtimes;
    size_t usable_descriptors;
    bool is_paused;
    bool is_deaf;         /* what peers send stays unread, but where the broker asks for it */
    uint64_t piece_state; /* not 0: bytes arrive in pieces, whose sizes come out of it */
    size_t n_notices;
    struct world_question *questions; /* left open */
    uint32_t wanted;                  /* by the last question */
    struct world_process nobody;      /* who is asked about when a pid is not known here */
    struct world_process *answering;  /* the one whose answer is being given */
};

/* A world with a broker under that policy, in YAML; fails the test when it has errors. */
struct world *world_new(const char *policy);
struct world *world_new_with(const char *policy, enum broker_trust trust,
                             size_t usable_descriptors);
void world_free(struct world *world);

/* The daemon dies and is started anew: connections end, records stay. */
void world_restart(struct world *world, enum broker_trust trust);

/* A suspended CoreCLR program of the host, uid 1000, one port. */
struct world_process *world_process(struct world *world, const char *exe, const char *environ);

/* A connection whose peer a test plays by hand. */
struct world_connection *world_connect(struct world *world, struct world_process *process,
                                       uint32_t listener);
void world_advertise(struct world_connection *connection, const struct guid *cookie, uint64_t pid);
void world_send(struct world_connection *connection, const void *bytes, size_t length);
void world_send_status(struct world_connection *connection, bool is_ok, uint32_t hresult);
void world_end(struct world_connection *connection);

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

/* Moves the clock without anybody looking: a stall; and what is done after one, when everything
 * that could be read was read. */
void world_stall(struct world *world, struct span length);
void world_wake(struct world *world);

/* Ends deafness: what was left unread is read. */
void world_hear(struct world *world);

/* Reads what one connection has sent, as the shell does: its end would be read at the next time, or
 * when the broker asks for it. */
void world_hear_once(struct world_connection *connection);

/* The daemon is told to stop. */
void world_stop(struct world *world, enum broker_stop stop);

/* The process ends: its connections and, if its handle is held, its end is told. */
void world_kill(struct world *world, struct world_process *process);

/* The broker's runtime with that cookie; NULL when there is none. */
const struct runtime *world_find(struct world *world, const char *cookie);

/* All its commands as text: "kind, info3, env A=1, profiler /p, hook /a:/b, resume". */
const char *world_story(const struct world_runtime *runtime);

struct guid world_cookie(const char *text);

/* Answers questions that were left open for a silent process. */
void world_answer_late(struct world *world);
