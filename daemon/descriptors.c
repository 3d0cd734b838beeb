/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/descriptors.h"

#include <stdint.h>
#include <sys/resource.h>

#include "daemon/control.h"

enum {
    /* For our own files and sockets, and what is read of /proc and of the policy. */
    DESCRIPTORS_OWN = 64,
    DESCRIPTORS_MIN = 16,
    CONTROL_CONNECTIONS_MIN = 4,
};

/* As many as we may have, since every runtime costs one for its life. */
static size_t raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX / 2 : (size_t)limit.rlim_cur;
}

/* Where there are few, nobody gets all of them: half for us, an eighth for people. */
struct descriptors descriptors_share(void)
{
    size_t n = raise_limit();
    size_t own = n / 2 < DESCRIPTORS_OWN ? n / 2 : DESCRIPTORS_OWN;
    size_t control = n / 8 < CONTROL_CONNECTIONS_MAX ? n / 8 : CONTROL_CONNECTIONS_MAX;

    if (control < CONTROL_CONNECTIONS_MIN)
        control = CONTROL_CONNECTIONS_MIN;
    return (struct descriptors){
        .n_usable = n > own + control + DESCRIPTORS_MIN ? n - own - control : DESCRIPTORS_MIN,
        .n_control = (unsigned)control,
    };
}
