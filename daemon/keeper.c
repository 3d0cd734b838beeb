/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/keeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/log.h"
#include "daemon/service.h"
#include "lib/broker.h"

#define REMOVE_AGAIN span_from_ms(100)

enum { REMOVALS_PER_TURN = 64, NAME_SIZE = 32 /* of a connection */ };

static const char prefix[] = "r-";
/* Not the name of a connection: whoever does not know it removes it. */
static const char records_name[] = "r-records";

struct entry {
    uint64_t kept;
    bool is_leaving; /* the manager is still to be told */
};

struct keeper {
    struct entry entries[BROKER_KEPT_MAX];
    size_t n_entries;
    bool has_records;
    bool are_records_leaving; /* likewise */
    struct moment remove_at;  /* MOMENT_NEVER: nothing is leaving */
};

struct keeper *keeper_new(void)
{
    struct keeper *keeper = calloc(1, sizeof *keeper);

    if (keeper)
        keeper->remove_at = MOMENT_NEVER;
    return keeper;
}

struct keeper *keeper_free(struct keeper *keeper)
{
    free(keeper);
    return NULL;
}

static bool is_full(const struct keeper *keeper)
{
    return keeper->n_entries == BROKER_KEPT_MAX;
}

static void add(struct keeper *keeper, uint64_t kept)
{
    keeper->entries[keeper->n_entries++] = (struct entry){.kept = kept};
}

static struct entry *find(struct keeper *keeper, uint64_t kept)
{
    for (size_t i = 0; i < keeper->n_entries; i++) {
        if (keeper->entries[i].kept == kept)
            return &keeper->entries[i];
    }
    return NULL;
}

/* FDPOLL=0: else the manager lets go of a connection when its peer has hung up, and the answer that
 * was sent before that is lost. */
static bool tell_keep(const char *name, int fd)
{
    char text[320];

    snprintf(text, sizeof text, "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
    return service_tell(text, fd) == SERVICE_TOLD;
}

static void name_entry(uint64_t kept, char ret_name[static NAME_SIZE])
{
    snprintf(ret_name, NAME_SIZE, "%s%" PRIu64, prefix, kept);
}

bool keeper_put(struct keeper *keeper, int fd, uint64_t kept)
{
    char name[NAME_SIZE];

    name_entry(kept, name);
    if (is_full(keeper) || !tell_keep(name, fd))
        return false;
    add(keeper, kept);
    return true;
}

/* False when it has to be told again later. */
static bool tell_removal(const char *name)
{
    char text[320];

    snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", name);
    return service_tell(text, -1) != SERVICE_IS_BUSY;
}

static bool try_to_remove(struct keeper *keeper, struct entry *entry)
{
    char name[NAME_SIZE];

    name_entry(entry->kept, name);
    if (!tell_removal(name))
        return false;
    *entry = keeper->entries[--keeper->n_entries];
    return true;
}

void keeper_remove(struct keeper *keeper, uint64_t kept, struct moment now)
{
    struct entry *entry = find(keeper, kept);

    if (!entry || try_to_remove(keeper, entry))
        return;
    entry->is_leaving = true;
    keeper->remove_at = moment_earlier(keeper->remove_at, moment_after(now, REMOVE_AGAIN));
}

struct moment keeper_next(const struct keeper *keeper)
{
    return keeper->remove_at;
}

void keeper_run(struct keeper *keeper, struct moment now)
{
    size_t n = 0;

    if (!moment_is_due(keeper->remove_at, now))
        return;
    keeper->remove_at = MOMENT_NEVER;
    for (size_t i = keeper->n_entries; i-- > 0;) {
        struct entry *entry = &keeper->entries[i];

        if (!entry->is_leaving)
            continue;
        if (n++ == REMOVALS_PER_TURN || !try_to_remove(keeper, entry)) {
            keeper->remove_at = moment_after(now, REMOVE_AGAIN);
            return;
        }
    }
}

/* The records. */

void keeper_put_records(struct keeper *keeper, int fd)
{
    /* What is there then is another file. */
    if (keeper->are_records_leaving)
        keeper_remove_records(keeper);
    if (keeper->has_records || fd < 0)
        return;
    keeper->has_records = tell_keep(records_name, fd);
}

int keeper_take_records(struct keeper *keeper, struct service_sockets *passed)
{
    int fd = service_take_socket(passed, records_name);

    keeper->has_records = fd >= 0;
    return fd;
}

void keeper_remove_records(struct keeper *keeper)
{
    if (keeper->has_records)
        keeper->has_records = !tell_removal(records_name);
    keeper->are_records_leaving = keeper->has_records;
}

/* What was kept at the start. */

static bool read_name(const char *name, uint64_t *ret_kept)
{
    const char *digits = name + strlen(prefix);
    char *end;

    *ret_kept = strtoull(digits, &end, 10);
    return *digits >= '1' && *digits <= '9' && *end == '\0' && *ret_kept < INT64_MAX;
}

/* Closing alone would not hang up while the manager has it. */
static void hang_up(struct keeper *keeper, int fd, const char *name)
{
    uint64_t kept;

    shutdown(fd, SHUT_RDWR);
    if (read_name(name, &kept) && find(keeper, kept))
        keeper_remove(keeper, kept, clock_now());
    else
        (void)tell_removal(name);
    close(fd);
}

void keeper_adopt(struct keeper *keeper, struct service_sockets *passed,
                  bool (*take)(void *context, int fd, uint64_t kept), void *context)
{
    size_t n_taken = 0, n_hung_up = 0;

    for (size_t i = 0; i < passed->n; i++) {
        struct service_socket *socket = &passed->list[i];
        bool is_taken = false;
        uint64_t kept;

        if (socket->fd < 0 || strncmp(socket->name, prefix, strlen(prefix)) != 0)
            continue;
        if (read_name(socket->name, &kept) && !is_full(keeper) && !find(keeper, kept)) {
            add(keeper, kept);
            is_taken = take(context, socket->fd, kept);
        }
        if (!is_taken)
            hang_up(keeper, socket->fd, socket->name);
        socket->fd = -1;
        n_taken += is_taken;
        n_hung_up += !is_taken;
    }
    if (n_taken + n_hung_up > 0)
        log_info("of %zu connections that were kept for this daemon %zu are gone on with, and the "
                 "others are hung up",
                 n_taken + n_hung_up, n_taken);
}
