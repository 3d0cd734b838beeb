/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/cgroup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

enum { ID_LENGTH = 64 };

/* A part of the text; `at` is NULL when there is none. */
struct piece {
    const char *at;
    size_t length;
};

/* What a path tells, as parts of it. */
struct findings {
    struct piece slice;
    struct piece unit;
    struct piece user_unit;
    struct piece pod;
    struct piece container;
    bool is_escaped; /* the container's name is written as systemd writes it */
    const char *engine;
    bool has_owner;
    uint32_t owner;
};

static bool is(struct piece piece, const char *text)
{
    return piece.length == strlen(text) && memcmp(piece.at, text, piece.length) == 0;
}

/* What is between two ends, when both are there and something is between them. */
static bool between(struct piece piece, const char *start, const char *end,
                    struct piece *ret_middle)
{
    size_t before = strlen(start), after = strlen(end);

    if (piece.length <= before + after || memcmp(piece.at, start, before) != 0 ||
        memcmp(piece.at + piece.length - after, end, after) != 0)
        return false;
    *ret_middle = (struct piece){piece.at + before, piece.length - before - after};
    return true;
}

static bool consists_of(struct piece piece, const char *letters)
{
    for (size_t i = 0; i < piece.length; i++) {
        if (piece.at[i] == '\0' || !strchr(letters, piece.at[i]))
            return false;
    }
    return piece.length > 0;
}

static bool is_id(struct piece piece)
{
    return piece.length == ID_LENGTH && consists_of(piece, "0123456789abcdef");
}

static bool is_slice(struct piece piece)
{
    struct piece name;

    return between(piece, "", ".slice", &name);
}

static bool is_unit(struct piece piece)
{
    struct piece name;

    return between(piece, "", ".service", &name) || between(piece, "", ".scope", &name);
}

/* Takes what is before the next separator; false at the end. */
static bool next_part(struct piece *rest, char separator, struct piece *ret_part)
{
    const char *end;

    while (rest->length > 0 && *rest->at == separator)
        *rest = (struct piece){rest->at + 1, rest->length - 1};
    if (rest->length == 0)
        return false;
    end = memchr(rest->at, separator, rest->length);
    *ret_part = (struct piece){rest->at, end ? (size_t)(end - rest->at) : rest->length};
    *rest = (struct piece){rest->at + ret_part->length, rest->length - ret_part->length};
    return true;
}

/* Takes the next component of a path. systemd writes one '_' before names that look like files of
 * the cgroup file system, and before no others that begin with one. */
static bool next_component(struct piece *path, struct piece *ret_component)
{
    if (!next_part(path, '/', ret_component))
        return false;
    if (*ret_component->at == '_')
        *ret_component = (struct piece){ret_component->at + 1, ret_component->length - 1};
    return true;
}

static bool read_uid(struct piece piece, const char *start, const char *end, struct findings *found)
{
    struct piece number;
    uint64_t uid;

    if (!between(piece, start, end, &number) ||
        !text_number(number.at, number.length, UINT32_MAX - 1, &uid))
        return false;
    found->has_owner = true;
    found->owner = (uint32_t)uid;
    return true;
}

static bool found_container(struct findings *found, const char *engine, struct piece container)
{
    found->engine = engine;
    found->container = container;
    return true;
}

/* kubepods-burstable-podUID.slice, whatever is before "kubepods". */
static void read_pod_slice(struct piece slice, struct findings *found)
{
    struct piece name, word, pod;
    bool is_kubernetes = false;

    if (!between(slice, "", ".slice", &name))
        return;
    while (next_part(&name, '-', &word)) {
        if (name.length > 0)
            is_kubernetes = is_kubernetes || is(word, "kubepods");
        else if (is_kubernetes && between(word, "pod", "", &pod) &&
                 consists_of(pod, "0123456789abcdef_"))
            found->pod = pod;
    }
}

/* Takes the slices at the start of a path. */
static void read_slices(struct piece *path, struct findings *found)
{
    struct piece rest = *path, component;

    while (next_component(&rest, &component) && is_slice(component)) {
        found->slice = component;
        read_uid(component, "user-", ".slice", found);
        *path = rest;
    }
    if (found->slice.at)
        read_pod_slice(found->slice, found);
}

static void skip_slices(struct piece *path)
{
    struct piece rest = *path, component;

    while (next_component(&rest, &component) && is_slice(component))
        *path = rest;
}

/* The engine that names its scopes PREFIX-ID.scope; NULL when what has such a name is none. */
static const char *engine_of_scope(struct piece prefix)
{
    static const struct {
        const char *prefix, *engine;
    } engines[] = {
        {"docker", "docker"},
        {"libpod", "podman"},
        {"crio", "cri-o"},
        {"cri-containerd", "containerd"},
        {"nerdctl", "nerdctl"},
        /* the monitors beside the containers */
        {"libpod-conmon", NULL},
        {"crio-conmon", NULL},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(engines); i++) {
        if (is(prefix, engines[i].prefix))
            return engines[i].engine;
    }
    return "oci";
}

/* A container that is a unit of its own. */
static bool read_container_unit(struct piece unit, struct findings *found)
{
    struct piece name, prefix, id;
    const char *engine;

    if (between(unit, "machine-", ".scope", &name) ||
        between(unit, "systemd-nspawn@", ".service", &name)) {
        found->is_escaped = true;
        return found_container(found, "nspawn", name);
    }
    if (!between(unit, "", ".scope", &name) || name.length < ID_LENGTH + 2)
        return false;
    prefix = (struct piece){name.at, name.length - ID_LENGTH - 1};
    id = (struct piece){prefix.at + prefix.length + 1, ID_LENGTH};
    if (prefix.at[prefix.length] != '-' || !is_id(id))
        return false;
    engine = engine_of_scope(prefix);
    return engine && found_container(found, engine, id);
}

/* A container inside a unit, which keeps the unit's name: podman with split cgroups, nspawn without
 * a scope of its own. */
static void read_payload(struct piece component, struct findings *found)
{
    struct piece id;

    if (between(component, "libpod-payload-", "", &id) && is_id(id))
        found_container(found, "podman", id);
    else if (is(component, "payload"))
        found->engine = "nspawn";
}

/* A container by its id alone, or with the prefix of an engine. */
static bool read_id(struct piece component, const char *bare_engine, struct findings *found)
{
    struct piece id;

    if (is_id(component))
        return found_container(found, bare_engine, component);
    if ((between(component, "libpod-", "", &id) && is_id(id)) ||
        (between(component, "libpod-payload-", "", &id) && is_id(id)))
        return found_container(found, "podman", id);
    if (between(component, "crio-", "", &id) && is_id(id))
        return found_container(found, "cri-o", id);
    return false;
}

/* kubepods/podUID/ID or kubepods/QOS/podUID/ID, after the first component. */
static void read_kubepods(struct piece path, struct findings *found)
{
    struct piece component, pod;

    if (!next_component(&path, &component))
        return;
    if ((is(component, "burstable") || is(component, "besteffort")) &&
        !next_component(&path, &component))
        return;
    if (!between(component, "pod", "", &pod) || !consists_of(pod, "0123456789abcdef-"))
        return;
    found->pod = pod;
    if (next_component(&path, &component))
        read_id(component, "containerd", found);
}

/* Containers that are in no unit. */
static void read_loose(struct piece path, struct findings *found)
{
    const char *bare_engine = "oci";
    struct piece component, name;

    for (unsigned depth = 0; depth < 3 && next_component(&path, &component); depth++) {
        if (depth == 0) {
            if (between(component, "lxc.payload.", "", &name)) {
                found_container(found, "lxc", name);
                return;
            }
            if (is(component, "payload")) {
                found->engine = "nspawn";
                return;
            }
            if (is(component, "kubepods")) {
                read_kubepods(path, found);
                return;
            }
        }
        if (read_id(component, bare_engine, found))
            return;
        bare_engine = depth == 0 && is(component, "docker") ? "docker" : "oci";
    }
}

/* Below user@UID.service: whatever the user likes to have there. */
static void read_user_manager(struct piece path, struct findings *found)
{
    struct piece rest, component;

    skip_slices(&path);
    rest = path;
    if (next_component(&rest, &component) && is_unit(component)) {
        found->user_unit = component;
        if (read_container_unit(component, found))
            return;
        path = rest;
    }
    read_loose(path, found);
}

static struct findings read_path(struct piece path)
{
    struct findings found = {.is_escaped = false};
    struct piece rest, component;

    read_slices(&path, &found);
    rest = path;
    if (!next_component(&rest, &component))
        return found;
    if (!is_unit(component)) {
        read_loose(path, &found);
        return found;
    }
    found.unit = component;
    if (read_uid(component, "user@", ".service", &found))
        read_user_manager(rest, &found);
    else if (!read_container_unit(component, &found) && next_component(&rest, &component))
        read_payload(component, &found);
    return found;
}

struct lines {
    struct piece unified; /* the line of v2 */
    struct piece systemd; /* systemd's own hierarchy of v1; a user may move processes in it */
};

/* Takes a line apart at its first two colons; a name of a cgroup may hold more of them. */
static void read_line(struct piece line, struct lines *lines)
{
    const char *first = memchr(line.at, ':', line.length), *second;
    struct piece hierarchy, controllers, path;

    if (!first)
        return;
    hierarchy = (struct piece){line.at, (size_t)(first - line.at)};
    second = memchr(first + 1, ':', line.length - hierarchy.length - 1);
    if (!second)
        return;
    controllers = (struct piece){first + 1, (size_t)(second - first - 1)};
    path = (struct piece){second + 1, line.length - hierarchy.length - controllers.length - 2};
    if (path.length == 0 || *path.at != '/' || memchr(path.at, '\0', path.length))
        return;
    if (!lines->unified.at && is(hierarchy, "0") && controllers.length == 0)
        lines->unified = path;
    if (!lines->systemd.at && is(controllers, "name=systemd"))
        lines->systemd = path;
}

static struct lines read_lines(const char *text, size_t length)
{
    struct piece rest = {text, length}, line;
    struct lines lines = {.unified = {NULL, 0}};

    while (next_part(&rest, '\n', &line))
        read_line(line, &lines);
    return lines;
}

/* A path out of the daemon's own cgroup namespace. */
static bool is_outside(struct piece path)
{
    struct piece component;

    return next_part(&path, '/', &component) && is(component, "..");
}

/* On a hybrid host the line of v2 may be "/", or what a runtime put there for itself. */
static bool says_nothing(struct piece path, const struct findings *found)
{
    struct piece component;

    if (!next_component(&path, &component))
        return true;
    return !is_slice(component) && !is_unit(component) && !found->engine && !found->pod.at;
}

/* The line that counts: that of v2, which a user cannot write, where it says anything. */
static struct piece choose_path(const struct lines *lines, struct findings *ret_found)
{
    struct findings found = {.is_escaped = false};
    struct piece path = lines->unified;

    if (path.at && is_outside(path)) {
        *ret_found = found;
        return path;
    }
    if (path.at)
        found = read_path(path);
    if (lines->systemd.at &&
        (!path.at || (says_nothing(path, &found) && !is(lines->systemd, "/")))) {
        path = lines->systemd;
        found = is_outside(path) ? (struct findings){.is_escaped = false} : read_path(path);
    }
    *ret_found = found;
    return path;
}

static bool copy(struct piece piece, char **ret_text)
{
    if (!piece.at)
        return true;
    *ret_text = strndup(piece.at, piece.length);
    return *ret_text != NULL;
}

static int digit_value(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

/* "\x2d" and the like become the byte. A NUL stays as it is written. */
static void unescape(char *text)
{
    char *out = text;

    while (*text != '\0') {
        int high = text[0] == '\\' && text[1] == 'x' ? digit_value(text[2]) : -1;
        int low = high >= 0 ? digit_value(text[3]) : -1;

        if (low >= 0 && high + low > 0) {
            *out++ = (char)(high << 4 | low);
            text += 4;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

static bool copy_findings(const struct findings *found, struct cgroup *cgroup)
{
    struct piece engine = {found->engine, found->engine ? strlen(found->engine) : 0};

    if (!copy(found->slice, &cgroup->slice) || !copy(found->unit, &cgroup->unit) ||
        !copy(found->user_unit, &cgroup->user_unit) || !copy(engine, &cgroup->engine) ||
        !copy(found->container, &cgroup->container) || !copy(found->pod, &cgroup->pod))
        return false;
    if (cgroup->container && found->is_escaped)
        unescape(cgroup->container);
    /* A slice cannot have '-' in its own part of the name. */
    for (char *at = cgroup->pod; at && *at != '\0'; at++) {
        if (*at == '_')
            *at = '-';
    }
    cgroup->has_owner = found->has_owner;
    cgroup->owner = found->owner;
    return true;
}

static enum attribute_state container_state(const struct cgroup *cgroup, size_t n_ns_pids)
{
    if (!cgroup->is_known)
        return ATTRIBUTE_UNKNOWN;
    if (cgroup->container)
        return ATTRIBUTE_PRESENT;
    /* Only a pid namespace that is ours shows that there is none. */
    return cgroup->engine || n_ns_pids != 1 ? ATTRIBUTE_UNKNOWN : ATTRIBUTE_ABSENT;
}

int cgroup_read(const char *text, size_t length, size_t n_ns_pids, struct cgroup *ret_cgroup)
{
    struct lines lines = read_lines(text, length);
    struct findings found;
    struct piece path = choose_path(&lines, &found);
    struct cgroup cgroup = {.is_known = path.at && !is_outside(path)};

    if (!copy(path, &cgroup.path) || !copy_findings(&found, &cgroup)) {
        cgroup_deinit(&cgroup);
        return -ENOMEM;
    }
    cgroup.container_state = container_state(&cgroup, n_ns_pids);
    *ret_cgroup = cgroup;
    return 0;
}

void cgroup_deinit(struct cgroup *cgroup)
{
    free(cgroup->path);
    free(cgroup->slice);
    free(cgroup->unit);
    free(cgroup->user_unit);
    free(cgroup->engine);
    free(cgroup->container);
    free(cgroup->pod);
    *cgroup = (struct cgroup){.is_known = false};
}
