/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/link.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

void link_sleep(unsigned long ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (ms > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

long link_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

size_t link_read(int fd, void *data, size_t length)
{
    size_t have = 0;

    while (have < length) {
        ssize_t n = recv(fd, (char *)data + have, length - have, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    return have;
}

void link_write(int fd, const void *data, size_t length, unsigned long pause_ms)
{
    const char *at = data;

    while (length > 0) {
        ssize_t n = send(fd, at, pause_ms > 0 ? 1 : length, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        at += n;
        length -= (size_t)n;
        link_sleep(pause_ms);
    }
}
