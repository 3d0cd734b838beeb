/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The journal's native protocol (systemd, docs/JOURNAL_NATIVE_PROTOCOL.md): one
 * datagram per entry, fields in it as "NAME=value" lines.
 *
 * Nothing here ever waits: libsystemd's own sd_journal_send() does when journald
 * stands still. What entries mean is not known here.
 */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/util.h"

struct bytes;

struct journal {
    int fd; /* -1 when there is none */
    struct sockaddr_un address;
    socklen_t address_length;
};

/* Nobody has to listen at `path` yet. 0; -ENAMETOOLONG; or a negative errno for want of descriptors
 * or memory. */
int journal_open(struct journal *journal, const char *path) MUST_CHECK;

/* Closes it; a second time does nothing. */
void journal_close(struct journal *journal);

/* Appends a field. The name is in capitals, digits and '_'; the value may be any text. */
void journal_put(struct bytes *entry, const char *name, const char *value);

/* Sends an entry that was finished. 0; a negative errno for which journal_is_full() holds when
 * the journal cannot take it now; any other when it does not listen, or not to us. */
int journal_send(const struct journal *journal, const struct bytes *entry) MUST_CHECK;

bool journal_is_full(int error);
