/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rooms of the records share, and nobody else: store.c, which opens and
 * writes them, and store_look.c, which sees to it that they stay where the next
 * daemon finds them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/record.h"
#include "lib/util.h"

struct store {
    char *path; /* of the folder */
    int folder; /* -1 while there is none that can be used */
    int fd;
    uint8_t *map;
    int kept; /* the file that the daemon before had kept, until it is opened; -1 */
    bool had_kept;
    uint8_t boot[RECORD_BOOT_SIZE];
    bool has_boot;
    /* What did not let the file of records take its name, and why; error 0: nothing. */
    struct store_obstacle {
        int error;
        dev_t device;
        ino_t inode;
        struct timespec changed_at;
    } obstacle;
};

/* Opens the folder at its path, as it is now. 0, -EPERM when others could write to it, or another
 * negative errno. */
int store_open_folder(const struct store *store, int *ret_folder) MUST_CHECK;

/* 0, or -EBUSY when another daemon uses it. */
int store_lock_folder(int folder) MUST_CHECK;

/* Has no records from then on. */
void store_forget_file(struct store *store);

/*
 * Makes the file of records anew in a folder, with all that it has; with nothing, and
 * that `distrusted_until`, where there are none. The file before counts for nobody any
 * more. 0, or a negative errno: then all is as before; -EBADMSG when what it has is no
 * longer whole. Nothing is written while what was in the way of its name still is.
 */
int store_renew(struct store *store, int folder, uint64_t distrusted_until) MUST_CHECK;

/* Now, as start times of processes are given. */
uint64_t store_ticks_after_boot(void);
