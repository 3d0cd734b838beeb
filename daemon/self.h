/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kernel says about this process, for the metrics that every process has. */

#include <stdint.h>

struct self {
    double cpu_seconds;
    uint64_t n_open_fds;
    uint64_t n_max_fds;
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
};

/* What cannot be read is 0. */
void self_look(struct self *ret_self);
