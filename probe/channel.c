/* SPDX-License-Identifier: Apache-2.0 */

#include "probe/channel.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the descriptors of one message, as the kernel wants it to be aligned. */
union control {
    struct cmsghdr header;
    char space[CMSG_SPACE(CHANNEL_DESCRIPTORS * sizeof(int))];
};

static void attach(struct msghdr *message, union control *control, const int *descriptors, size_t n)
{
    struct cmsghdr *header;

    if (n == 0)
        return;
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(n * sizeof *descriptors);
    header = CMSG_FIRSTHDR(message);
    assert(header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(n * sizeof *descriptors);
    memcpy(CMSG_DATA(header), descriptors, n * sizeof *descriptors);
}

int channel_order(int channel, const struct channel_order *order,
                  const int descriptors[static CHANNEL_DESCRIPTORS])
{
    struct iovec content = {.iov_base = (void *)(uintptr_t)order, .iov_len = sizeof *order};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
    union control control = {.space = {0}};
    size_t n = 0;
    ssize_t sent;

    while (n < CHANNEL_DESCRIPTORS && descriptors[n] >= 0)
        n++;
    attach(&message, &control, descriptors, n);
    do
        sent = sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *order ? 0 : sent < 0 ? -errno : -EIO;
}

/* The kernel gives no more than there is room for, and closes the others. */
static void detach(struct msghdr *message, int descriptors[static CHANNEL_DESCRIPTORS])
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    size_t n = 0;

    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        n = (header->cmsg_len - CMSG_LEN(0)) / sizeof *descriptors;
    for (size_t i = 0; i < CHANNEL_DESCRIPTORS; i++)
        descriptors[i] = -1;
    if (n > 0 && n <= CHANNEL_DESCRIPTORS)
        memcpy(descriptors, CMSG_DATA(header), n * sizeof *descriptors);
}

int channel_take_order(int channel, struct channel_order *ret_order,
                       int ret_descriptors[static CHANNEL_DESCRIPTORS])
{
    struct iovec content = {.iov_base = ret_order, .iov_len = sizeof *ret_order};
    union control control = {.space = {0}};
    struct msghdr message = {
        .msg_iov = &content,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t length;

    do
        length = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length <= 0)
        return length == 0 ? -EPIPE : -errno;
    detach(&message, ret_descriptors);
    if (length == (ssize_t)sizeof *ret_order)
        return 0;
    for (size_t i = 0; i < CHANNEL_DESCRIPTORS; i++) {
        if (ret_descriptors[i] >= 0)
            close(ret_descriptors[i]);
    }
    return -EBADMSG;
}

int channel_report(int channel, const struct channel_report *report)
{
    ssize_t sent;

    do
        sent = send(channel, report, sizeof *report, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *report ? 0 : sent < 0 ? -errno : -EIO;
}

int channel_take_report(int channel, struct channel_report *ret_report)
{
    ssize_t length;

    do
        length = recv(channel, ret_report, sizeof *ret_report, MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    if (length == (ssize_t)sizeof *ret_report)
        return 0;
    return length == 0 || (length < 0 && errno == ECONNRESET) ? -EPIPE
           : length < 0                                       ? -errno
                                                              : -EBADMSG;
}
