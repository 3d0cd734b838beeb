/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What operators ask for: to find a runtime, to resume it, to hold or to kill
 * it. Who may ask is not known here.
 */

#include "lib/broker.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"

enum { ID_DIGITS_MIN = 4, ID_DIGITS = 32 };

static int compare_serials(const struct runtime *a, const struct runtime *b)
{
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

TREE_GENERATE(serial_tree, runtime, by_serial, compare_serials)

void broker_enlist(struct runtime *runtime)
{
    TAILQ_INSERT_TAIL(&runtime->broker->runtimes, runtime, in_order);
    RB_INSERT(serial_tree, &runtime->broker->serials, runtime);
}

void broker_delist(struct runtime *runtime)
{
    TAILQ_REMOVE(&runtime->broker->runtimes, runtime, in_order);
    RB_REMOVE(serial_tree, &runtime->broker->serials, runtime);
}

/* A cookie or the beginning of one as bare digits in lower case; false for anything else. */
static bool read_id(const char *id, char digits[static ID_DIGITS + 1])
{
    size_t n = 0;

    for (; *id != '\0'; id++) {
        if (*id == '-')
            continue;
        if (!isxdigit((unsigned char)*id) || n == ID_DIGITS)
            return false;
        digits[n++] = (char)tolower((unsigned char)*id);
    }
    digits[n] = '\0';
    return n >= ID_DIGITS_MIN;
}

static bool has_id(const struct runtime *runtime, const char *digits)
{
    char text[GUID_TEXT_SIZE], own[ID_DIGITS + 1];

    guid_format(&runtime->cookie, text);
    return read_id(text, own) && strncmp(own, digits, strlen(digits)) == 0;
}

/* Somebody alive is meant before somebody who was. */
static void count_found(struct runtime *runtime, struct runtime **found, size_t *n_found,
                        bool *found_alive)
{
    bool is_alive = !runtime_has_ended(runtime);

    if (is_alive && !*found_alive) {
        *found_alive = true;
        *n_found = 0;
    }
    if (is_alive != *found_alive)
        return;
    if (*n_found == 0 || !is_alive)
        *found = runtime;
    (*n_found)++;
}

/* What an id asks for. */
struct wanted {
    long pid; /* 0: a cookie */
    char digits[ID_DIGITS + 1];
};

static bool read_wanted(const char *id, struct wanted *wanted)
{
    char *end = NULL;

    *wanted = (struct wanted){.pid = 0};
    if (strncmp(id, "pid:", 4) != 0)
        return read_id(id, wanted->digits);
    wanted->pid = strtol(id + 4, &end, 10);
    return wanted->pid > 0 && *end == '\0' && isdigit((unsigned char)id[4]);
}

static bool is_wanted(const struct runtime *runtime, const struct wanted *wanted)
{
    return wanted->pid > 0 ? runtime->pid == wanted->pid : has_id(runtime, wanted->digits);
}

enum broker_found broker_find(const struct broker *broker, const char *id,
                              struct runtime **ret_runtime)
{
    struct runtime *runtime, *found = NULL;
    struct wanted wanted;
    bool found_alive = false;
    size_t n_found = 0;

    if (!read_wanted(id, &wanted))
        return BROKER_FOUND_NONE;
    TAILQ_FOREACH(runtime, &broker->runtimes, in_order) {
        if (is_wanted(runtime, &wanted))
            count_found(runtime, &found, &n_found, &found_alive);
    }
    if (n_found == 0)
        return BROKER_FOUND_NONE;
    *ret_runtime = found;
    return n_found == 1 ? BROKER_FOUND_ONE : BROKER_FOUND_MANY;
}

size_t broker_find_all(const struct broker *broker, const char *id, struct runtime **ret_list,
                       size_t capacity)
{
    struct runtime *runtime = NULL, *first = NULL;
    struct wanted wanted;
    size_t n = 0;

    if (broker_find(broker, id, &first) == BROKER_FOUND_NONE || !read_wanted(id, &wanted))
        return 0;
    TAILQ_FOREACH(runtime, &broker->runtimes, in_order) {
        if (n < capacity && is_wanted(runtime, &wanted) &&
            runtime_has_ended(runtime) == runtime_has_ended(first))
            ret_list[n++] = runtime;
    }
    return n;
}

struct runtime *broker_next_runtime(const struct broker *broker, const struct runtime *runtime)
{
    return runtime ? TAILQ_NEXT(runtime, in_order) : TAILQ_FIRST(&broker->runtimes);
}

struct runtime *broker_runtime_after(const struct broker *broker, uint64_t serial)
{
    struct serial_tree serials = {broker->serials.rbh_root};
    struct runtime key = {.serial = serial + 1};

    return RB_NFIND(serial_tree, &serials, &key);
}

size_t broker_count(const struct broker *broker, enum runtime_state state)
{
    return broker->n_by_state[state];
}

/* Each costs the handle of its process, and needs to be let in again for every step. */
size_t broker_runtimes(const struct broker *broker)
{
    size_t limit = broker->policy->limits.runtimes, n_lasting = broker->usable_descriptors / 2;

    return limit < n_lasting ? limit : n_lasting;
}

size_t broker_runtimes_per_user(const struct broker *broker)
{
    size_t limit = broker->policy->limits.runtimes_per_user, all = broker_runtimes(broker);

    return limit < all ? limit : all;
}

size_t broker_connections_per_user(const struct broker *broker)
{
    size_t limit = broker->policy->limits.connections_per_user;

    return limit > 0 ? limit : broker->usable_descriptors / 4;
}

enum broker_verdict broker_resume(struct runtime *runtime, struct moment now)
{
    if (runtime_has_ended(runtime))
        return BROKER_TOO_LATE;
    if (runtime->state >= RUNTIME_RESUMING)
        return BROKER_ALREADY;
    runtime->is_hold_wished = false;
    apply_stop(runtime, "an operator resumed it", true, now);
    return BROKER_DONE;
}

enum broker_verdict broker_hold(struct runtime *runtime, struct span length, struct moment now)
{
    if (runtime->state >= RUNTIME_KILLING)
        return BROKER_TOO_LATE;
    runtime->is_hold_wished = true;
    runtime->hold_until = span_is_forever(length) ? MOMENT_NEVER : moment_after(now, length);
    if (runtime->state == RUNTIME_HELD)
        runtime_set_next(runtime, runtime->hold_until);
    return BROKER_DONE;
}

enum broker_verdict broker_kill(struct runtime *runtime, struct moment now)
{
    if (runtime_has_ended(runtime) || runtime->state == RUNTIME_KILLING)
        return runtime_has_ended(runtime) ? BROKER_TOO_LATE : BROKER_ALREADY;
    if (!runtime->process->is_identified)
        return BROKER_NO_HANDLE;
    apply_abandon(runtime, "an operator killed it", now);
    return BROKER_DONE;
}
