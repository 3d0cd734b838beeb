/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* At most PIPE_BUF: a pipe that can be written at all takes that much without blocking. */
enum { LINE_MAX_SIZE = 4096 };

static bool writes_levels;
static bool is_socket;
static unsigned long n_lost;

/* $JOURNAL_STREAM names the device and inode of what systemd connected; a redirection since then
 * makes it somebody else's. */
void log_open(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status = {0};

    is_socket = fstat(STDERR_FILENO, &status) == 0 && S_ISSOCK(status.st_mode);
    writes_levels = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                    status.st_dev == device && status.st_ino == inode;
}

/* A reader that is stuck must not stop us: then the line is lost, and counted. */
static ssize_t write_line(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (is_socket)
        return send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
        return -1;
    return write(STDERR_FILENO, line, length);
}

static size_t begin_line(char *line, size_t size, enum log_level level)
{
    int length = writes_levels ? snprintf(line, size, "<%d>", (int)level)
                               : snprintf(line, size, "diagportd: ");

    if (n_lost > 0)
        length += snprintf(line + length, size - (size_t)length,
                           "(%lu lines before this one were lost) ", n_lost);
    return (size_t)length;
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LINE_MAX_SIZE];
    size_t length = begin_line(line, sizeof line, level);
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    va_end(arguments);
    if (n < 0)
        return;
    length += (size_t)n < sizeof line - length - 1 ? (size_t)n : sizeof line - length - 2;
    line[length++] = '\n';
    if (write_line(line, length) == (ssize_t)length)
        n_lost = 0;
    else
        n_lost++;
}
