/* SPDX-License-Identifier: Apache-2.0 */

/* One text of /proc, read as each of those that have a form. */

#include "lib/cgroup.h"
#include "lib/facts.h"
#include "lib/procfs.h"
#include "tests/fuzz/fuzz.h"

/* Cut after the name it is refused or read as the same: never as of another start. */
static void check_stat(const char *text, size_t size)
{
    struct procfs_stat stat, again;

    if (!procfs_read_stat(text, size, &stat))
        return;
    FUZZ_HOLDS(stat.pid >= 0 && stat.parent >= 0);
    for (size_t length = size - 1; text[length] != ')'; length--) {
        char *cut = (char *)fuzz_copy(text, length);

        if (procfs_read_stat(cut, length, &again))
            FUZZ_HOLDS(again.pid == stat.pid && again.start_time == stat.start_time);
        free(cut);
    }
}

static void check_status(const char *text, size_t size)
{
    struct procfs_status status;

    if (!procfs_read_status(text, size, &status))
        return;
    FUZZ_HOLDS(status.groups || status.n_groups == 0);
    FUZZ_HOLDS(status.n_ns_pids > 0 || status.ns_pid == 0);
    free(status.groups);
}

static void check_motion(const char *text, size_t size)
{
    struct procfs_motion motion;

    if (procfs_read_motion(text, size, &motion))
        FUZZ_HOLDS(motion.state != ' ' && motion.state != '\n');
}

static void check_cgroup(const char *text, size_t size, size_t n_ns_pids)
{
    struct cgroup cgroup;

    FUZZ_HOLDS(cgroup_read(text, size, n_ns_pids, &cgroup) == 0);
    FUZZ_HOLDS(!cgroup.is_known || cgroup.path);
    FUZZ_HOLDS(!cgroup.container || cgroup.engine);
    FUZZ_HOLDS(cgroup.container_state != ATTRIBUTE_PRESENT || cgroup.container);
    /* Whoever is in pid namespaces of others is never said to be on the host. */
    FUZZ_HOLDS(n_ns_pids == 1 || cgroup.container_state != ATTRIBUTE_ABSENT);
    cgroup_deinit(&cgroup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct facts_text text = {.error = 0};

    check_stat((const char *)data, size);
    check_status((const char *)data, size);
    check_motion((const char *)data, size);
    /* With a NUL behind it as all facts have: that much strndup may look at. */
    facts_text_set(&text, data, size);
    for (size_t n_ns_pids = 0; n_ns_pids < 3; n_ns_pids++)
        check_cgroup(text.data, text.length, n_ns_pids);
    free(text.data);
    return 0;
}
