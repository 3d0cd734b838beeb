/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A service manager that tests play: what it was told, one text at a time. It lets
 * go of whatever it is given.
 */

#include <stdbool.h>

struct unit_manager {
    int fd;
    char text[1024];     /* that was heard last */
    bool has_descriptor; /* came with it */
};

/* One that $NOTIFY_SOCKET names from then on. The caller closes its descriptor. */
struct unit_manager unit_manager_new(void);

/* The next text; "" when there is nothing. */
const char *unit_manager_heard(struct unit_manager *manager);
