/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking the daemon: HTTP over its control socket, JSON in and out, and nothing
 * else: no other protocol, no proxy, no redirect, nothing from the environment.
 *
 * Every function that returns a status has said on standard error what went
 * wrong when it is not STATUS_DONE. What answers mean is not known here.
 */

#include <jansson.h>
#include <stdbool.h>

#include "lib/bytes.h"
#include "lib/util.h"

struct call;
struct client;

/* Finds the socket, and whether somebody is there; connects to nobody yet. The status. */
int client_open(const struct call *call, struct client **ret_client) MUST_CHECK;

/* Returns NULL. NULL is allowed. */
struct client *client_free(struct client *client);

/*
 * GET, or POST with `body`, which may be NULL for an empty one. The answer,
 * which the caller gives back, is an object. With a status other than
 * STATUS_DONE it is NULL, or the problem that the daemon named.
 */
int client_get(struct client *client, const char *target, json_t **ret_answer) MUST_CHECK;
int client_post(struct client *client, const char *target, const json_t *body,
                json_t **ret_answer) MUST_CHECK;

/* GET of an answer that is text, which the client keeps until it is asked the next thing. There is
 * no NUL in it but the one at its end. */
int client_get_text(struct client *client, const char *target, const char **ret_text) MUST_CHECK;

struct client_follower {
    /* One line of the answer. A status, to go on with STATUS_DONE. */
    int (*take)(void *context, const json_t *line);
    /* After what was there at once was taken, and when the answer begins. May be NULL. */
    int (*settle)(void *context);
    void *context;
};

/* GET of an answer that comes line by line; returns at its end, which is STATUS_DONE when the
 * daemon ended it properly, or with the first other status of a callback. */
int client_follow(struct client *client, const char *target,
                  const struct client_follower *follower) MUST_CHECK;

/* Appends text as a part of a target: percent-encoded. */
void client_put_part(struct bytes *target, const char *text);
