/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A history: a policy, some runtimes with their ports, kinds and bad habits, and
 * what happens to them, one event after the other. An event is a kind and a
 * number that everything it leaves open is drawn from, so that events can be
 * left out of a history without changing the others.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/world.h"

struct dice;

enum {
    HISTORY_ACTORS_MAX = 16,
    HISTORY_STRANGERS_MAX = 24,
    HISTORY_EVENTS_MAX = 600,
};

struct happening {
    uint32_t kind;
    uint32_t salt;
};

/* A runtime, and what can be asked of the broker about it. */
struct actor {
    struct world_runtime *runtime;
    const char *exe;
    uint32_t salt;
    unsigned fault_percent;
    bool is_clumsy;           /* after `n_right` commands it refuses one, and from then on */
    unsigned n_right;         /* does the same with all */
    enum world_fault habit;   /* but Resume */
    bool loses_first;         /* or the other way round */
    unsigned generation;      /* of the policy when it first connected */
    bool is_matched;          /* a rule with a plan is for it */
    bool is_unchanged;        /* nothing ever happened to it but what happens to everybody */
    bool may_be_touched;      /* what it claims is true */
    bool was_restarted;       /* the daemon was, since it came */
    bool is_forgotten;        /* and the one before did not know yet, or ever, who it was */
    struct moment planned_at; /* when it came, as a daemon that is gone wrote down */
    bool has_failed;          /* and that it was taking back what it did */
    bool is_over;             /* its process became another program */
    bool has_new_files;       /* since those of its plan were looked into, and before Resume */
    bool is_namesake;         /* another one claims the same cookie */
    bool is_attached_to;      /* an operator wanted a profiler loaded into it */
    bool has_neighbour;       /* in its process: it may be taken for one that an exec ended */
    /* When the daemon ended there was a whole answer in the store, to that; and somebody was held.
     */
    bool has_kept_answer;
    enum step_kind kept_step;
    /* Its environment before anything was done to it. */
    struct world_variable variables[WORLD_VARIABLES_MAX];
    size_t n_variables;
};

struct history {
    struct world *world;
    uint32_t salt;
    bool has_limits; /* narrow ones */
    struct actor actors[HISTORY_ACTORS_MAX];
    size_t n_actors;
    /* Connections of peers that are no runtimes. */
    struct world_connection *strangers[HISTORY_STRANGERS_MAX];
    size_t n_strangers;
    unsigned generation; /* of the policy */
    bool is_told;        /* event by event, on standard error */
    bool is_current;     /* every deadline up to now was acted on */
    bool is_stopping;
    bool resumes_all;       /* and whoever waits is resumed */
    bool has_no_records;    /* the daemon that runs can keep none */
    struct moment shortage; /* memory ran short up to then */
    bool has_run_short;     /* in the event at hand */
    bool has_ever_run_short;
    size_t failing_allocation; /* of the next call into the broker; 0: none */
    /* The most that any policy of this history allowed. */
    struct span deadline;
    size_t silent;
};

/* How many kinds there are, their names, and one of them by a number of any size, the more likely
 * ones more often. */
size_t history_n_kinds(void);
const char *history_kind_name(uint32_t kind);
bool history_find_kind(const char *name, uint32_t *ret_kind);
uint32_t history_draw_kind(uint32_t number);

/* Begins one; everything that is fixed for all of it is drawn from `salt`. */
struct history *history_new(uint32_t salt);

/* Lets something happen and checks every promise that can be checked then. A broken one ends the
 * program. */
void history_happen(struct history *history, const struct happening *happening);

/* Lets everything come to rest, checks what must be so then, and frees the history. */
void history_end(struct history *history);

/* For the rooms of the history itself. */

/* The policy of its present generation, as text. */
void history_write_policy(const struct history *history, char *text, size_t size);

/* A policy has come into force: what the broker may do is bounded by the most that any allowed. */
void history_remember_limits(struct history *history);

/* Whoever gets Resume whatever it waits for: an answer that is there may stay unread. */
void history_forget_answers(struct history *history);

/* The daemon is gone, and another one there. */
void history_begin_anew(struct history *history, enum broker_trust trust);

/* Lets time pass, with everything delivered, answered and served on the way. */
void history_live_on(struct history *history, struct span length);

/* events.c */

/* Nothing is checked. */
void history_kind_happen(struct history *history, const struct happening *happening);

/* actors.c */

/* What a process runs; NULL when nobody may read it. */
const char *actors_draw_exe(struct dice *dice);

/* The environment of a process with these ports; of three listeners at most. Not to be freed. */
const char *actors_environ(const struct history *history, size_t n_ports, const uint32_t *ports);

struct world_process *actors_add_process(struct history *history, struct dice *dice,
                                         const char *exe, const char *environ);

/* There has to be room; it connects when it is started. */
bool actors_have_room(const struct history *history);
struct actor *actors_add(struct history *history, struct dice *dice, struct world_process *process,
                         const uint32_t *ports, size_t n_ports);

/* NULL when there is nobody. */
struct actor *actors_draw(struct history *history, struct dice *dice);

/* Who lied with the cookie of another one may be the first to say it now. */
void actors_let_liars_go(struct history *history);

/* An operator wants a profiler loaded into it, or into another one of its process. */
void actors_be_attached_to(struct history *history, struct actor *actor);

/* Who was to be killed is dead at last. */
void actors_bury_killed(struct history *history);

/* promises.c */

/* Says what is known of somebody: what it got, and what the broker makes of it. */
void promises_tell(const struct history *history, const struct actor *actor);

/* What the broker has of it; NULL when that is nothing. */
const struct runtime *promises_find(const struct history *history, const struct actor *actor);

void promises_check(const struct history *history);
void promises_check_rest(struct history *history);

/* Says what was promised and what came of it, and ends the program. */
_Noreturn void promises_broken(const struct history *history, const struct actor *actor,
                               const char *promise);
