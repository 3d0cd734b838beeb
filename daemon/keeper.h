/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connections in the descriptor store of the service manager, which gives them to
 * the next daemon (FDSTORE= of sd_notify(3), and FileDescriptorStoreMax= in the
 * unit). They are named r- and a serial number. What they are for is not known
 * here. Beside them there may be a file, that of the records.
 *
 * The manager does not say whether it has kept one; so one is taken to be there
 * from when it was sent until its removal was. Nothing here ever waits for it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/moment.h"
#include "lib/util.h"

struct keeper;
struct service_sockets;

/* NULL when memory is out. */
struct keeper *keeper_new(void) MUST_CHECK;
/* What is kept stays. Returns NULL. NULL is allowed. */
struct keeper *keeper_free(struct keeper *keeper);

/* Has a copy of the descriptor kept under that number, which no other ever had. False when it is
 * not. */
bool keeper_put(struct keeper *keeper, int fd, uint64_t kept) MUST_CHECK;

/* It is not needed any more, if it is there; the manager is told when it can be. */
void keeper_remove(struct keeper *keeper, uint64_t kept, struct moment now);

/*
 * Takes those that were passed in, and offers each to `take`, which returns false
 * when it does not want it. Then it is hung up and removed.
 */
void keeper_adopt(struct keeper *keeper, struct service_sockets *passed,
                  bool (*take)(void *context, int fd, uint64_t kept), void *context);

/*
 * The file of records, while the next daemon would not find it by its name: kept under
 * a name of its own. To be called again as long as that is so; nothing happens when it
 * was done.
 */
void keeper_put_records(struct keeper *keeper, int fd);
/* The one that was passed in, which the caller owns from now on; -1 when there is none. Before
 * keeper_adopt. */
int keeper_take_records(struct keeper *keeper, struct service_sockets *passed);
/* It is not needed any more, if it is there; to be called again until it is gone, likewise. */
void keeper_remove_records(struct keeper *keeper);

/* When keeper_run has to be called at the latest; MOMENT_NEVER when nothing is due. */
struct moment keeper_next(const struct keeper *keeper);
void keeper_run(struct keeper *keeper, struct moment now);
