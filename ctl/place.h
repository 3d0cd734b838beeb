/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the control socket of the daemon to ask is. Nobody is asked here.
 */

#include <stdbool.h>

#include "lib/util.h"

struct place {
    char *path;
    const char *origin; /* what named it, as the end of "by" */
    bool is_system;     /* where the system's daemon listens, whoever named it */
    bool is_second;     /* the user has an instance of his own, which does not run */
    const char *stray;  /* where his own was looked for and cannot be: what XDG_RUNTIME_DIR says */
    int stray_error;    /* why, as errno has it */
};

/*
 * `option` is what --socket says, or NULL. After it come $DIAGPORT_CONTROL, the
 * sockets of the user's own instance if they are his and somebody listens
 * there, and the system's. 0 or -ENOMEM; place_deinit afterwards.
 */
int place_find(const char *option, struct place *ret_place) MUST_CHECK;

void place_deinit(struct place *place);
