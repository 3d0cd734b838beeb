/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The kernel finds the owner of a socket, and looks at our right to write to it, before it minds
 * that a stream socket takes no datagrams. */
int socket_probe(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, error = 0;

    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        error = -EPROTOTYPE; /* who takes datagrams is nobody for us */
    else if (errno != EPROTOTYPE)
        error = -errno;
    close(fd);
    return error;
}
