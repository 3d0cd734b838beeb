/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/procfs.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

#define ID "3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f"

/* The recorded cases: tests/fixtures/cgroup/README.md says what they are. */

enum field {
    FIELD_SLICE,
    FIELD_UNIT,
    FIELD_USER_UNIT,
    FIELD_ENGINE,
    FIELD_CONTAINER,
    FIELD_POD,
    FIELD_OWNER,
    FIELD_CONTAINER_STATE,
    FIELD_ADVERTISED_PID,
    FIELD_COUNT,
};

static const char *const field_names[FIELD_COUNT] = {
    "slice", "unit",  "user_unit",       "engine",         "container",
    "pod",   "owner", "container_state", "advertised_pid",
};

struct recorded {
    char name[64];
    struct bytes cgroup;
    struct bytes status;
    char expected[FIELD_COUNT][128]; /* "" for absent */
    bool is_unknown;
};

static const char *after_key(const char *line, const char *key)
{
    size_t length = strlen(key);

    return strncmp(line, key, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

static void take_line(struct recorded *recorded, const char *line)
{
    const char *value;

    if ((value = after_key(line, "case"))) {
        snprintf(recorded->name, sizeof recorded->name, "%.63s", value);
    } else if ((value = after_key(line, "cgroup"))) {
        bytes_put_format(&recorded->cgroup, "%s\n", value);
    } else if ((value = after_key(line, "status"))) {
        bytes_put_format(&recorded->status, "%s\n", value);
    } else if (strcmp(line, "unknown") == 0) {
        recorded->is_unknown = true;
    } else if (!after_key(line, "note") && !after_key(line, "source")) {
        size_t field = 0;

        while (field < FIELD_COUNT && !(value = after_key(line, field_names[field])))
            field++;
        ck_assert_msg(field < FIELD_COUNT, "%s: strange line: %s", recorded->name, line);
        snprintf(recorded->expected[field], sizeof recorded->expected[field], "%.127s", value);
    }
}

/* Reads the next case; false at the end. The caller frees its texts. */
static bool next_case(FILE *file, struct recorded *ret_recorded)
{
    char line[1024];

    *ret_recorded = (struct recorded){.is_unknown = false};
    bytes_init(&ret_recorded->cgroup, 65536);
    bytes_init(&ret_recorded->status, 65536);
    while (fgets(line, sizeof line, file) && line[0] != '\n') {
        line[strcspn(line, "\n")] = '\0';
        take_line(ret_recorded, line);
    }
    ck_assert_int_eq(bytes_finish(&ret_recorded->cgroup), 0);
    ck_assert_int_eq(bytes_finish(&ret_recorded->status), 0);
    return ret_recorded->name[0] != '\0';
}

static const char *state_name(enum attribute_state state)
{
    return state == ATTRIBUTE_PRESENT  ? "present"
           : state == ATTRIBUTE_ABSENT ? "absent"
                                       : "unknown";
}

static void assert_field(const struct recorded *recorded, enum field field, const char *found)
{
    const char *expected = recorded->expected[field];

    ck_assert_msg(strcmp(expected, found ? found : "") == 0, "%s: %s is \"%s\", not \"%s\"",
                  recorded->name, field_names[field], found ? found : "", expected);
}

static void assert_case(const struct recorded *recorded)
{
    char *text = (char *)unit_copy(recorded->cgroup.data, recorded->cgroup.length);
    char owner[16] = "", pid[24];
    struct procfs_status status;
    struct cgroup cgroup;

    ck_assert_msg(procfs_read_status((char *)recorded->status.data, recorded->status.length,
                                     &status),
                  "%s: status is not read", recorded->name);
    ck_assert_int_eq(cgroup_read(text, recorded->cgroup.length, status.n_ns_pids, &cgroup), 0);
    ck_assert_msg(cgroup.is_known == !recorded->is_unknown, "%s: known: %d", recorded->name,
                  cgroup.is_known);
    if (cgroup.has_owner)
        snprintf(owner, sizeof owner, "%u", cgroup.owner);
    assert_field(recorded, FIELD_SLICE, cgroup.slice);
    assert_field(recorded, FIELD_UNIT, cgroup.unit);
    assert_field(recorded, FIELD_USER_UNIT, cgroup.user_unit);
    assert_field(recorded, FIELD_ENGINE, cgroup.engine);
    assert_field(recorded, FIELD_CONTAINER, cgroup.container);
    assert_field(recorded, FIELD_POD, cgroup.pod);
    assert_field(recorded, FIELD_OWNER, owner);
    if (recorded->is_unknown) {
        ck_assert_int_eq(cgroup.container_state, ATTRIBUTE_UNKNOWN);
    } else {
        snprintf(pid, sizeof pid, "%llu", (unsigned long long)status.ns_pid);
        assert_field(recorded, FIELD_CONTAINER_STATE, state_name(cgroup.container_state));
        assert_field(recorded, FIELD_ADVERTISED_PID, pid);
    }
    cgroup_deinit(&cgroup);
    ck_assert_ptr_null(cgroup.path);
    free(status.groups);
    free(text);
}

START_TEST(recorded_cases_are_understood)
{
    FILE *file = fopen(FIXTURES "/cgroup/cases.txt", "r");
    struct recorded recorded;
    unsigned n_cases = 0;

    ck_assert_ptr_nonnull(file);
    while (next_case(file, &recorded)) {
        assert_case(&recorded);
        n_cases++;
        bytes_deinit(&recorded.cgroup);
        bytes_deinit(&recorded.status);
    }
    bytes_deinit(&recorded.cgroup);
    bytes_deinit(&recorded.status);
    fclose(file);
    ck_assert_uint_eq(n_cases, 89);
}
END_TEST

/* Every recorded text, cut at every length: nothing to assert but that the sanitizers are silent,
 * and that a cut can only lose a container, never make one. */
START_TEST(recorded_cases_may_be_cut)
{
    FILE *file = fopen(FIXTURES "/cgroup/cases.txt", "r");
    struct recorded recorded;

    ck_assert_ptr_nonnull(file);
    while (next_case(file, &recorded)) {
        for (size_t length = 0; length < recorded.cgroup.length; length++) {
            char *text = (char *)unit_copy(recorded.cgroup.data, length);
            struct cgroup cgroup;

            ck_assert_int_eq(cgroup_read(text, length, 1, &cgroup), 0);
            ck_assert(!cgroup.container ||
                      strcmp(recorded.expected[FIELD_CONTAINER_STATE], "present") == 0 ||
                      strcmp(recorded.expected[FIELD_CONTAINER_STATE], "unknown") == 0);
            cgroup_deinit(&cgroup);
            free(text);
        }
        bytes_deinit(&recorded.cgroup);
        bytes_deinit(&recorded.status);
    }
    bytes_deinit(&recorded.cgroup);
    bytes_deinit(&recorded.status);
    fclose(file);
}
END_TEST

/* Says everything in one line: slice|unit|user unit|engine|container|pod|owner. */
static void describe(const struct cgroup *cgroup, char *ret_text, size_t size)
{
    char owner[16] = "";

    if (cgroup->has_owner)
        snprintf(owner, sizeof owner, "%u", cgroup->owner);
    snprintf(ret_text, size, "%s|%s|%s|%s|%s|%s|%s", cgroup->slice ? cgroup->slice : "",
             cgroup->unit ? cgroup->unit : "", cgroup->user_unit ? cgroup->user_unit : "",
             cgroup->engine ? cgroup->engine : "", cgroup->container ? cgroup->container : "",
             cgroup->pod ? cgroup->pod : "", owner);
}

static void assert_text(const char *text, const char *expected)
{
    struct cgroup cgroup;
    char found[1000];

    ck_assert_int_eq(cgroup_read(text, strlen(text), 1, &cgroup), 0);
    describe(&cgroup, found, sizeof found);
    ck_assert_msg(strcmp(found, expected) == 0, "%s gives %s, not %s", text, found, expected);
    cgroup_deinit(&cgroup);
}

START_TEST(names_of_container_units)
{
    static const char *const cases[][2] = {
        {"nerdctl-" ID ".scope", "nerdctl|" ID},
        {"any-prefix-" ID ".scope", "oci|" ID},
        {"x-" ID ".scope", "oci|" ID},
        {"libpod-conmon-" ID ".scope", "|"},
        {"crio-conmon-" ID ".scope", "|"},
        {"-" ID ".scope", "|"},
        {ID ".scope", "|"},
        {"docker_" ID ".scope", "|"},
        {"docker-" ID "a.scope", "|"},
        {"docker-" ID ".service", "|"},
        {"machine-" ID ".scope", "nspawn|" ID},
        {"machine-a\\x2db\\x2F\\x2fc.scope", "nspawn|a-b\\x2F/c"},
        {"machine-a\\x00b\\x2.scope", "nspawn|a\\x00b\\x2"},
        {"machine-a\\x30\\x39\\x0a\\x20\\xc3\\xa9.scope", "nspawn|a09\n \xC3\xA9"},
        {"machine-.scope", "|"},
        {"systemd-nspawn@.service", "|"},
        {"systemd-nspawn@a\\x2db.service", "nspawn|a-b"},
        {"_docker-" ID ".scope", "docker|" ID},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *unit = cases[i][0] + (cases[i][0][0] == '_');
        char text[300], expected[300];

        snprintf(text, sizeof text, "0::/system.slice/%s/below\n", cases[i][0]);
        snprintf(expected, sizeof expected, "system.slice|%s||%s||", unit, cases[i][1]);
        assert_text(text, expected);
    }
}
END_TEST

/* Whatever is below a unit belongs to whoever lives there. */
START_TEST(first_from_the_root_wins)
{
    assert_text("0::/system.slice/a.service/b.service/docker-" ID ".scope\n",
                "system.slice|a.service|||||");
    assert_text("0::/system.slice/a.service/x/libpod-payload-" ID "\n",
                "system.slice|a.service|||||");
    assert_text("0::/system.slice/a.service/payload/system.slice/docker-" ID ".scope\n",
                "system.slice|a.service||nspawn|||");
    assert_text("0::/system.slice/a.service/libpod-payload-x\n", "system.slice|a.service|||||");
    assert_text("0::/system.slice/a.service/libpod-" ID "\n", "system.slice|a.service|||||");
    assert_text("0::/system.slice/a.service/lxc.payload.x\n", "system.slice|a.service|||||");
    assert_text("0::/system.slice/a.service/" ID "\n", "system.slice|a.service|||||");
    assert_text("0::/a.scope/system.slice/b.service\n", "|a.scope|||||");
    assert_text("0::/x/system.slice/b.service\n", "||||||");
    assert_text("0::/lxc.payload.a/system.slice/docker-" ID ".scope\n", "|||lxc|a||");
    assert_text("0::/lxc.payload.a\\x2db\n", "|||lxc|a\\x2db||");
    assert_text("0::/a/b/c/" ID "\n", "||||||");
    assert_text("0::/libpod-x/libpod-payload-x/crio-x\n", "||||||");
    assert_text("0::/libpod-" ID "\n", "|||podman|" ID "||");
    assert_text("0::/libpod-payload-" ID "\n", "|||podman|" ID "||");
    assert_text("0::/crio-" ID "\n", "|||cri-o|" ID "||");
    assert_text("0::/a/b/" ID "\n", "|||oci|" ID "||");
    assert_text("0::/init.scope\n", "|init.scope|||||");
    assert_text("0::/system.slice\n", "system.slice||||||");
    assert_text("0::/\n", "||||||");
}
END_TEST

START_TEST(user_comes_from_the_path)
{
    assert_text("0::/user.slice/user-0.slice/session-1.scope\n",
                "user-0.slice|session-1.scope|||||0");
    assert_text("0::/user.slice/user-5.slice/user@5.service/init.scope\n",
                "user-5.slice|user@5.service|init.scope||||5");
    assert_text("0::/user.slice/user-5.slice/user@5.service\n",
                "user-5.slice|user@5.service|||||5");
    assert_text("0::/user.slice/user-4294967294.slice/a.scope\n",
                "user-4294967294.slice|a.scope|||||4294967294");
    /* no numbers of users */
    assert_text("0::/user.slice/user-4294967295.slice/a.scope\n",
                "user-4294967295.slice|a.scope|||||");
    assert_text("0::/user.slice/user-05.slice/user@05.service/b.service\n",
                "user-05.slice|user@05.service|||||");
    assert_text("0::/user.slice/user-x.slice/user@x.service/b.service\n",
                "user-x.slice|user@x.service|||||");
    /* a user's own slices do not count, and neither does a manager in a manager */
    assert_text("0::/user.slice/user-5.slice/user@5.service/user-6.slice/user@6.service/"
                "x.service\n",
                "user-5.slice|user@5.service|user@6.service||||5");
    assert_text("0::/user.slice/user-5.slice/user@5.service/a.slice/d.service/" ID "\n",
                "user-5.slice|user@5.service|d.service|oci|" ID "||5");
    assert_text("0::/user.slice/user-5.slice/user@5.service/a.slice/d.service/payload\n",
                "user-5.slice|user@5.service|d.service|nspawn|||5");
}
END_TEST

START_TEST(pods_are_read)
{
    assert_text("0::/kubepods.slice/kubepods-pod12_ab.slice/x.scope\n",
                "kubepods-pod12_ab.slice|x.scope||||12-ab|");
    assert_text("0::/a.slice/a-kubepods.slice/a-kubepods-burstable.slice/"
                "a-kubepods-burstable-pod1.slice/x.scope\n",
                "a-kubepods-burstable-pod1.slice|x.scope||||1|");
    assert_text("0::/a.slice/a-pod1.slice/x.scope\n", "a-pod1.slice|x.scope|||||");
    assert_text("0::/pod1.slice/x.scope\n", "pod1.slice|x.scope|||||");
    assert_text("0::/kubepods.slice/kubepods-podxyz.slice/x.scope\n",
                "kubepods-podxyz.slice|x.scope|||||");
    assert_text("0::/kubepods.slice/kubepods-pod.slice/x.scope\n",
                "kubepods-pod.slice|x.scope|||||");
    assert_text("0::/kubepods-pod1.slice/kubepods-pod1-x.slice/x.scope\n",
                "kubepods-pod1-x.slice|x.scope|||||");
    assert_text("0::/notkubepods-pod1.slice/x.scope\n", "notkubepods-pod1.slice|x.scope|||||");
    assert_text("0::/kubepods/burstable/pod1-2/" ID "/more\n", "|||containerd|" ID "|1-2|");
    assert_text("0::/kubepods/pod1-2/x\n", "|||||1-2|");
    assert_text("0::/kubepods/pod1-2\n", "|||||1-2|");
    assert_text("0::/kubepods/podxyz/" ID "\n", "||||||");
    assert_text("0::/kubepods/burstable\n", "||||||");
    assert_text("0::/kubepods/guaranteed/pod1/" ID "\n", "||||||");
    assert_text("0::/kubepods\n", "||||||");
}
END_TEST

/* On a hybrid host a user can write the line of systemd's own hierarchy, and not that of v2. */
START_TEST(line_of_v2_counts_where_it_says_anything)
{
    static const char fake[] = "1:name=systemd:/system.slice/docker-" ID ".scope\n";
    char text[400];

    snprintf(text, sizeof text, "%s0::/system.slice/a.service\n", fake);
    assert_text(text, "system.slice|a.service|||||");
    snprintf(text, sizeof text, "%s0::/lxc.payload.b\n", fake);
    assert_text(text, "|||lxc|b||");
    snprintf(text, sizeof text, "%s0::/system.slice\n", fake);
    assert_text(text, "system.slice||||||");
    snprintf(text, sizeof text, "%s0::/x/y/" ID "\n", fake);
    assert_text(text, "|||oci|" ID "||");
    snprintf(text, sizeof text, "%s0::/container\n", fake);
    assert_text(text, "system.slice|docker-" ID ".scope||docker|" ID "||");
    snprintf(text, sizeof text, "0::/\n%s", fake);
    assert_text(text, "system.slice|docker-" ID ".scope||docker|" ID "||");
    assert_text(fake, "system.slice|docker-" ID ".scope||docker|" ID "||");
    /* controllers prove nothing */
    assert_text("3:memory:/system.slice/a.service\n", "||||||");
    assert_text("3:cpu,name=systemd:/system.slice/a.service\n", "||||||");
    assert_text("0:memory:/system.slice/a.service\n", "||||||");
}
END_TEST

static void assert_path(const char *text, const char *path, bool is_known)
{
    struct cgroup cgroup;

    ck_assert_int_eq(cgroup_read(text, strlen(text), 1, &cgroup), 0);
    if (path)
        ck_assert_str_eq(cgroup.path, path);
    else
        ck_assert_ptr_null(cgroup.path);
    ck_assert(cgroup.is_known == is_known);
    ck_assert_int_eq(cgroup.container_state, is_known ? ATTRIBUTE_ABSENT : ATTRIBUTE_UNKNOWN);
    cgroup_deinit(&cgroup);
}

START_TEST(path_is_the_line_that_was_used)
{
    assert_path("0::/system.slice/a.service\n", "/system.slice/a.service", true);
    assert_path("0::/a:b/c\n", "/a:b/c", true);
    assert_path("1:name=systemd:/x.service\n0::/\n", "/x.service", true);
    assert_path("1:name=systemd:/\n0::/default/x\n", "/default/x", true);
    assert_path("1:name=systemd:/\n0::/\n", "/", true);
    assert_path("0::/first.service\n0::/second.service\n", "/first.service", true);
    assert_path("0::/no-newline.service", "/no-newline.service", true);
    /* a name may begin with two dots */
    assert_path("0::/..a.service\n", "/..a.service", true);
}
END_TEST

START_TEST(what_is_outside_is_unknown)
{
    assert_path("0::/..\n", "/..", false);
    assert_path("0::/../x.service\n", "/../x.service", false);
    assert_path("0::/../../init.scope\n1:name=systemd:/x.service\n", "/../../init.scope", false);
    assert_path("0::/\n1:name=systemd:/../x.service\n", "/../x.service", false);
    assert_text("0::/\n1:name=systemd:/../x.service\n", "||||||");
    assert_path("", NULL, false);
    assert_path("3:memory:/x\n", NULL, false);
}
END_TEST

START_TEST(malformed_lines_are_skipped)
{
    static const char *const lines[] = {
        "\n\n\n",
        "0\n",
        "0:\n",
        "0::\n",
        "0::x.service\n",
        "::/y.service\n",
        "00::/y.service\n",
        ":\n",
        " 0::/y.service\n",
        "0 ::/y.service\n",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
        char text[100];

        assert_path(lines[i], NULL, false);
        snprintf(text, sizeof text, "%s0::/a.service\n", lines[i]);
        assert_path(text, "/a.service", true);
    }
    ck_assert_int_eq(cgroup_read(NULL, 0, 1, &(struct cgroup){.path = NULL}), 0);
}
END_TEST

START_TEST(nul_makes_no_name)
{
    static const char text[] = "0::/a.service\0.scope\n0::/b.service\n";
    struct cgroup cgroup;

    ck_assert_int_eq(cgroup_read(text, sizeof text - 1, 1, &cgroup), 0);
    ck_assert_str_eq(cgroup.path, "/b.service");
    cgroup_deinit(&cgroup);
}
END_TEST

/* Only what is known to be in our own pid namespace is known to be in no container. */
START_TEST(absence_needs_one_pid_namespace)
{
    static const struct {
        size_t n_ns_pids;
        enum attribute_state state;
    } cases[] = {
        {0, ATTRIBUTE_UNKNOWN},
        {1, ATTRIBUTE_ABSENT},
        {2, ATTRIBUTE_UNKNOWN},
        {9, ATTRIBUTE_UNKNOWN},
    };
    static const char host[] = "0::/a.service\n", payload[] = "0::/a.service/payload\n",
                      docker[] = "0::/docker/" ID "\n";

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct cgroup cgroup;

        ck_assert_int_eq(cgroup_read(host, strlen(host), cases[i].n_ns_pids, &cgroup), 0);
        ck_assert_int_eq(cgroup.container_state, cases[i].state);
        cgroup_deinit(&cgroup);
        ck_assert_int_eq(cgroup_read(payload, strlen(payload), cases[i].n_ns_pids, &cgroup), 0);
        ck_assert_int_eq(cgroup.container_state, ATTRIBUTE_UNKNOWN);
        cgroup_deinit(&cgroup);
        ck_assert_int_eq(cgroup_read(docker, strlen(docker), cases[i].n_ns_pids, &cgroup), 0);
        ck_assert_int_eq(cgroup.container_state, ATTRIBUTE_PRESENT);
        cgroup_deinit(&cgroup);
    }
}
END_TEST

START_TEST(random_texts_do_no_harm)
{
    static const char *const words[] = {
        "0::/",    "name=systemd:/", "/",          "\n",       ":",       ".slice",
        ".scope",  ".service",       "user@5",     "user-5",   "docker-", ID,
        "machine", "\\x2d",          "_",          "kubepods", "pod1-2",  "payload",
        "..",      "lxc.payload.",   "burstable/", "-",        "\\x",     "a",
    };
    uint64_t state = 19;

    for (unsigned round = 0; round < 20000; round++) {
        struct bytes text;
        struct cgroup cgroup;
        char *copy;

        bytes_init(&text, 4096);
        for (unsigned i = unit_random(&state) % 16; i > 0; i--)
            bytes_put_string(&text, words[unit_random(&state) % ARRAY_LENGTH(words)]);
        copy = (char *)unit_copy(text.data, text.length);
        ck_assert_int_eq(cgroup_read(copy, text.length, 1, &cgroup), 0);
        cgroup_deinit(&cgroup);
        free(copy);
        bytes_deinit(&text);
    }
}
END_TEST

static int read_text(void *context)
{
    struct cgroup cgroup;
    int error = cgroup_read(context, strlen(context), 1, &cgroup);

    if (error == 0)
        cgroup_deinit(&cgroup);
    return error;
}

START_TEST(running_out_of_memory_is_said)
{
    char user[] = "0::/user.slice/user-5.slice/user@5.service/docker-" ID ".scope\n";
    char pod[] = "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope\n";

    ck_assert_uint_eq(unit_memory_exhaust(read_text, user, -ENOMEM), 6);
    ck_assert_uint_eq(unit_memory_exhaust(read_text, pod, -ENOMEM), 6);
}
END_TEST

UNIT_TESTS(recorded_cases_are_understood, recorded_cases_may_be_cut, names_of_container_units,
           first_from_the_root_wins, user_comes_from_the_path, pods_are_read,
           line_of_v2_counts_where_it_says_anything, path_is_the_line_that_was_used,
           what_is_outside_is_unknown, malformed_lines_are_skipped, nul_makes_no_name,
           absence_needs_one_pid_namespace, random_texts_do_no_harm, running_out_of_memory_is_said);
