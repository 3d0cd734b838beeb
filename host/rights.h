/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a process may do: the capabilities it has, who it is, and giving both
 * up for good. Who keeps what, and why, is not known here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/util.h"

enum { RIGHTS_GROUPS_MAX = 64 };

/* Capabilities as bits of their numbers, as in /proc/PID/status. */
#define RIGHTS_BIT(capability) (UINT64_C(1) << (capability))

/* Somebody to become. */
struct rights_user {
    uid_t uid;
    gid_t gid;
    gid_t groups[RIGHTS_GROUPS_MAX];
    size_t n_groups;
};

/* The capabilities that this process has and may use; 0 when the kernel does not say. */
uint64_t rights_held(void);

/* Looks a user up, which may block. False when there is none, or one of too many groups. */
bool rights_find_user(const char *name, struct rights_user *ret_user) MUST_CHECK;

/*
 * Whose the daemon's own files are: those of the user that it runs as, or will,
 * which it says as soon as it knows.
 */
void rights_set_own(const struct rights_user *user);
uid_t rights_own_uid(void);
gid_t rights_own_gid(void);

/*
 * Becomes that user (NULL: stays who it is) and keeps, of the capabilities it
 * has, those in `kept`; nothing that it will ever run gets more, neither by
 * capabilities of files nor by set-user-id. 0, or a negative errno: then it may
 * still be anybody, and has to end.
 */
int rights_give_up(const struct rights_user *user, uint64_t kept) MUST_CHECK;
