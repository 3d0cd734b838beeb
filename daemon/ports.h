/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The diagnostic ports that are listened on, as the policy has them, and how
 * they change with it: all of a change or nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/util.h"

struct broker;
struct loop;
struct peer_owner;
struct policy;
struct ports;
struct service_sockets;

/* NULL when memory is out. */
struct ports *ports_new(struct loop *loop, struct broker *broker,
                        struct peer_owner *peers) MUST_CHECK;

/* Closes them and removes the socket files that were made here. Returns NULL. */
struct ports *ports_free(struct ports *ports);

/*
 * Opens those of a policy, taking sockets that were passed in under their
 * names. 0, or a negative errno and `*ret_why`, one line, which the caller
 * frees; those that could be opened stay open.
 */
int ports_open(struct ports *ports, const struct policy *policy, struct service_sockets *passed,
               char **ret_why) MUST_CHECK;

/* The folders that were made for them stay when they are closed: the start has been successful. */
void ports_keep_folders(struct ports *ports);

/*
 * The first half of a reload: opens what is new, changes rights, and touches
 * nothing that is in use. 0; or a negative errno and `*ret_why`, and everything
 * is as before. After it exactly one of the other two has to be called.
 */
int ports_stage(struct ports *ports, const struct policy *policy, char **ret_why) MUST_CHECK;
void ports_commit(struct ports *ports);
void ports_abandon(struct ports *ports);

/* Accepts whoever waits, before the loop comes to it. */
void ports_accept(struct ports *ports);

/* Looks whether the files of all are still there, and tells once of each that is not. True when all
 * are; else `*ret_why` says what is wrong with the first, for the caller to free, or NULL when
 * memory is out. */
bool ports_look(struct ports *ports, char **ret_why);

/* Makes the files anew that are not there, with the rights that they had, but for those that were
 * passed in. What is in the way is logged. */
void ports_repair(struct ports *ports);

/* Nobody is accepted while this is so. */
void ports_pause(struct ports *ports, bool is_paused);

/* When to call ports_try_again: a listener could not be watched. MOMENT_NEVER: not at all. */
struct moment ports_retry(const struct ports *ports);
void ports_try_again(struct ports *ports, struct moment now);

/* The number of the port that an accepted connection came by; one that none has where that is not
 * listened on any more. */
uint32_t ports_number_of(const struct ports *ports, int connection);

bool ports_has_passed_in(const struct ports *ports);

struct ports_entry {
    const char *name;
    const char *path;
    bool was_passed_in;
    bool is_in_place; /* the file at the path is still the socket that is listened on */
};

size_t ports_count(const struct ports *ports);
struct ports_entry ports_get(const struct ports *ports, size_t index);
