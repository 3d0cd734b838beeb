/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/journal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "lib/bytes.h"

int journal_open(struct journal *journal, const char *path)
{
    size_t length = strlen(path);

    *journal = (struct journal){.fd = -1, .address = {.sun_family = AF_UNIX}};
    if (length >= sizeof journal->address.sun_path)
        return -ENAMETOOLONG;
    memcpy(journal->address.sun_path, path, length + 1);
    journal->address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    journal->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return journal->fd < 0 ? -errno : 0;
}

void journal_close(struct journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

/* A value of several lines has its length in front of it, in little endian, instead of "=". */
void journal_put(struct bytes *entry, const char *name, const char *value)
{
    size_t length = strlen(value);

    bytes_put_string(entry, name);
    if (strchr(value, '\n')) {
        bytes_put_u8(entry, '\n');
        bytes_put_u64(entry, length);
    } else {
        bytes_put_u8(entry, '=');
    }
    bytes_put_run(entry, value, length);
    bytes_put_u8(entry, '\n');
}

/* To the path each time, and not to a connection, which would be lost for ever with the journald
 * at its end. */
int journal_send(const struct journal *journal, const struct bytes *entry)
{
    ssize_t sent = sendto(journal->fd, entry->data, entry->length, MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&journal->address, journal->address_length);

    return sent < 0 ? -errno : 0;
}

bool journal_is_full(int error)
{
    return error == -EAGAIN || error == -ENOBUFS || error == -EINTR;
}
