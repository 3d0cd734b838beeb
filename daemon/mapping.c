/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/mapping.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the handler needs, so there is one for the process. */
static struct mapping {
    uint8_t *start; /* NULL: a free place */
    size_t length;
    int protection;
    volatile sig_atomic_t was_cut;
} mappings[MAPPINGS_MAX];

static uintptr_t page_size;

static struct mapping *find(const uint8_t *at)
{
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        struct mapping *mapping = &mappings[i];

        if (mapping->start && at >= mapping->start && at < mapping->start + mapping->length)
            return mapping;
    }
    return NULL;
}

/* What it did is done again when this returns: with memory in the place of the file, or, for all
 * else, as if nobody had taken the signal. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    struct mapping *mapping = find(info->si_addr);
    uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);
    int error = errno;

    (void)context;
    if (mapping && mmap((void *)page, page_size, mapping->protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        mapping->was_cut = true;
    else
        signal(number, SIG_DFL);
    errno = error;
}

static bool take_signal(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART};

    if (page_size > 0)
        return true;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, NULL) != 0)
        return false;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    return true;
}

static struct mapping *find_place(void)
{
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        if (!mappings[i].start)
            return &mappings[i];
    }
    errno = ENOSPC;
    return NULL;
}

uint8_t *mapping_new(int fd, size_t length, bool is_shared)
{
    struct mapping *place = find_place();
    int protection = PROT_READ | (is_shared ? PROT_WRITE : 0);
    void *map;

    if (!place || !take_signal())
        return NULL;
    map = mmap(NULL, length, protection, is_shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    *place = (struct mapping){.start = map, .length = length, .protection = protection};
    return map;
}

bool mapping_was_cut(const uint8_t *map)
{
    const struct mapping *mapping = find(map);

    return mapping && mapping->was_cut;
}

uint8_t *mapping_free(uint8_t *map)
{
    struct mapping *mapping = find(map);

    if (map && mapping) {
        munmap(mapping->start, mapping->length);
        mapping->start = NULL;
    }
    return NULL;
}
