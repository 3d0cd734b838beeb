/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_log.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.h"
#include "tests/unit/unit_folder.h"

static char folder[64];
static int journal = -1, reader = -1, saved = -1;
static char entry[65536], field[65536], lines[65536];
static size_t entry_length;

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* What systemd says of the socket that it connects standard error to. */
static void set_stream(int fd)
{
    struct stat status;
    char stream[64];

    ck_assert_int_eq(fstat(fd, &status), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
}

void unit_log_open(bool is_systemd)
{
    int ends[2];
    char path[96];

    unit_folder_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/journal", folder);
    journal = listen_at(path);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    reader = ends[0];
    unsetenv("JOURNAL_STREAM");
    if (is_systemd)
        set_stream(STDERR_FILENO);
    log_open(path);
}

void unit_log_close(void)
{
    log_close();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(reader);
    close(journal);
    unsetenv("JOURNAL_STREAM");
    unit_folder_remove();
}

void unit_log_end_journal(void)
{
    char path[96];

    snprintf(path, sizeof path, "%s/journal", folder);
    unlink(path);
}

const char *unit_log_entry(size_t *ret_length)
{
    ssize_t length = recv(journal, entry, sizeof entry - 1, 0);

    entry_length = length > 0 ? (size_t)length : 0;
    entry[entry_length] = '\0';
    if (ret_length)
        *ret_length = entry_length;
    return length > 0 ? entry : NULL;
}

const char *unit_log_field(const char *name)
{
    const char *at = entry;

    while (*at != '\0') {
        size_t length = strcspn(at, "=\n"), end = strcspn(at, "\n");

        if (length == strlen(name) && strncmp(at, name, length) == 0 && at[length] == '=') {
            snprintf(field, sizeof field, "%.*s", (int)(end - length - 1), at + length + 1);
            return field;
        }
        at += end + 1;
    }
    return "";
}

const char *unit_log_lines(void)
{
    ssize_t length = recv(reader, lines, sizeof lines - 1, MSG_DONTWAIT);

    lines[length > 0 ? length : 0] = '\0';
    return lines;
}
