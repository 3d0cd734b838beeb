/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much may be said about what one user does, and all of them, in some time:
 * who misbehaves a lot must neither fill a disk nor hide what others do.
 *
 * The second half of all lines is for users of whom little was said yet. Users
 * that there is no room for share what one has. Which time it is, and what is
 * said, is not known here. All zeros is one that nothing was taken from.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

struct bytes;

enum {
    RATION_USERS = 256,
    RATION_USERS_NAMED = 8,
};

/* How many lines there are; the first `sure` ones of a user are told out of the second half, too.
 */
struct ration_bounds {
    unsigned sure, of_user, of_all;
};

/* In a second, of what somebody does wrong or must not do. */
extern const struct ration_bounds ration_few;

struct ration {
    struct ration_user {
        uint32_t uid;
        unsigned n;
        unsigned n_left_out;
    } users[RATION_USERS];
    size_t n_users;
    struct ration_user others; /* that there was no room for */
    unsigned n;
};

/* Takes one line about that user; false, and counted, when there is none left. */
bool ration_take(struct ration *ration, const struct ration_bounds *bounds,
                 uint32_t uid) MUST_CHECK;

bool ration_has_left_out(const struct ration *ration);

/* Appends how many lines there were none for, by user: "12 of uid=1000, 3 of uid=33". */
void ration_put_left_out(const struct ration *ration, struct bytes *out);
