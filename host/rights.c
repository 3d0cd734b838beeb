/* SPDX-License-Identifier: Apache-2.0 */

#include "host/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's sets, in halves. */
struct sets {
    struct __user_cap_header_struct header;
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

enum { CAPABILITIES_MAX = 64 };

static uint64_t join(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

static bool read_sets(struct sets *ret_sets)
{
    *ret_sets = (struct sets){.header = {.version = _LINUX_CAPABILITY_VERSION_3}};
    return syscall(SYS_capget, &ret_sets->header, ret_sets->data) == 0;
}

uint64_t rights_held(void)
{
    struct sets sets;

    if (!read_sets(&sets))
        return 0;
    return join(sets.data[0].effective, sets.data[1].effective);
}

bool rights_find_user(const char *name, struct rights_user *ret_user)
{
    const struct passwd *entry = getpwnam(name);
    struct rights_user user = {.n_groups = 0};
    int n_groups = RIGHTS_GROUPS_MAX;

    if (!entry)
        return false;
    user.uid = entry->pw_uid;
    user.gid = entry->pw_gid;
    if (getgrouplist(name, user.gid, user.groups, &n_groups) < 0)
        return false;
    user.n_groups = (size_t)n_groups;
    *ret_user = user;
    return true;
}

static const struct rights_user *own;

void rights_set_own(const struct rights_user *user)
{
    own = user;
}

uid_t rights_own_uid(void)
{
    return own ? own->uid : geteuid();
}

gid_t rights_own_gid(void)
{
    return own ? own->gid : getegid();
}

/* What is not there at the end cannot be had by starting another program. Only who has CAP_SETPCAP
 * may do it, and who has not gets nothing that way either, see no_new_privs. */
static void empty_bounding_set(void)
{
    for (unsigned long i = 0; i < CAPABILITIES_MAX && prctl(PR_CAPBSET_READ, i) >= 0; i++)
        (void)prctl(PR_CAPBSET_DROP, i);
}

static int become(const struct rights_user *user)
{
    /* A change from root to another user would take all capabilities at once. */
    if (prctl(PR_SET_KEEPCAPS, 1L) != 0 || setgroups(user->n_groups, user->groups) != 0 ||
        setresgid(user->gid, user->gid, user->gid) != 0 ||
        setresuid(user->uid, user->uid, user->uid) != 0 || prctl(PR_SET_KEEPCAPS, 0L) != 0)
        return -errno;
    return 0;
}

static int keep(uint64_t kept)
{
    struct sets sets;

    if (!read_sets(&sets))
        return -errno;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        sets.data[i].permitted &= (uint32_t)(kept >> (32 * i));
        sets.data[i].effective = sets.data[i].permitted;
        sets.data[i].inheritable = 0;
    }
    return syscall(SYS_capset, &sets.header, sets.data) == 0 ? 0 : -errno;
}

int rights_give_up(const struct rights_user *user, uint64_t kept)
{
    int error = 0;

    empty_bounding_set();
    if (user)
        error = become(user);
    if (error == 0)
        error = keep(kept);
    /* Kernels without either have nothing to take that way. */
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0L, 0L, 0L);
    if (error == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
        error = -errno;
    return error;
}
