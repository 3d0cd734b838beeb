/* SPDX-License-Identifier: Apache-2.0 */

#include "rescue/line.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* At most PIPE_BUF: a pipe that can be written at all takes that much without blocking. */
enum { LINE_MAX_SIZE = 1024 };

static bool writes_levels;
static bool is_socket;

/* $JOURNAL_STREAM names the device and inode of what systemd connected; a redirection since then
 * makes it somebody else's. */
void line_open(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status = {0};

    is_socket = fstat(STDERR_FILENO, &status) == 0 && S_ISSOCK(status.st_mode);
    writes_levels = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                    status.st_dev == device && status.st_ino == inode;
}

static void write_line(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written = -1;

    if (is_socket)
        written = send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT))
        written = write(STDERR_FILENO, line, length);
    (void)written;
}

void line_write(enum line_level level, const char *format, ...)
{
    char line[LINE_MAX_SIZE];
    int length = writes_levels ? snprintf(line, sizeof line, "<%d>", (int)level)
                               : snprintf(line, sizeof line, "diagport-rescue: ");
    va_list arguments;
    size_t left;
    int n;

    va_start(arguments, format);
    left = sizeof line - (size_t)length - 1;
    n = vsnprintf(line + length, left, format, arguments);
    va_end(arguments);
    if (n < 0)
        return;
    length += (size_t)n < left ? n : (int)left - 1;
    line[length++] = '\n';
    write_line(line, (size_t)length);
}
