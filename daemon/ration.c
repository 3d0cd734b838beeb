/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/ration.h"

#include <inttypes.h>

#include "lib/bytes.h"

const struct ration_bounds ration_few = {.sure = 1, .of_user = 5, .of_all = 40};

static struct ration_user *find_user(struct ration *ration, uint32_t uid)
{
    for (size_t i = 0; i < ration->n_users; i++) {
        if (ration->users[i].uid == uid)
            return &ration->users[i];
    }
    if (ration->n_users == RATION_USERS)
        return &ration->others;
    ration->users[ration->n_users] = (struct ration_user){.uid = uid};
    return &ration->users[ration->n_users++];
}

bool ration_take(struct ration *ration, const struct ration_bounds *bounds, uint32_t uid)
{
    struct ration_user *user = find_user(ration, uid);
    bool may = user->n < bounds->of_user &&
               ration->n < (user->n < bounds->sure ? bounds->of_all : bounds->of_all / 2);

    if (may) {
        user->n++;
        ration->n++;
    } else {
        user->n_left_out++;
    }
    return may;
}

bool ration_has_left_out(const struct ration *ration)
{
    for (size_t i = 0; i < ration->n_users; i++) {
        if (ration->users[i].n_left_out > 0)
            return true;
    }
    return ration->others.n_left_out > 0;
}

void ration_put_left_out(const struct ration *ration, struct bytes *out)
{
    unsigned n_others = ration->others.n_left_out, n_named = 0;
    const char *separator = "";

    for (size_t i = 0; i < ration->n_users; i++) {
        const struct ration_user *user = &ration->users[i];

        if (user->n_left_out == 0)
            continue;
        if (n_named++ >= RATION_USERS_NAMED) {
            n_others += user->n_left_out;
            continue;
        }
        bytes_put_format(out, "%s%u of uid=%" PRIu32, separator, user->n_left_out, user->uid);
        separator = ", ";
    }
    if (n_others > 0)
        bytes_put_format(out, "%s%u of others", separator, n_others);
}
