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

/* One whole message, with the descriptors before the first -1. */
static int put(int channel, const void *data, size_t length, const int *descriptors,
               size_t n_descriptors, int flags)
{
    struct iovec content = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
    union control control = {.space = {0}};
    size_t n = 0;
    ssize_t sent;

    while (n < n_descriptors && descriptors[n] >= 0)
        n++;
    attach(&message, &control, descriptors, n);
    do
        sent = sendmsg(channel, &message, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length ? 0 : sent < 0 ? -errno : -EIO;
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

static int take(int channel, void *data, size_t size,
                int ret_descriptors[static CHANNEL_DESCRIPTORS], int flags)
{
    struct iovec content = {.iov_base = data, .iov_len = size};
    union control control = {.space = {0}};
    struct msghdr message = {
        .msg_iov = &content,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t length;

    do
        length = recvmsg(channel, &message, flags | MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length == 0 || (length < 0 && errno == ECONNRESET))
        return -EPIPE;
    if (length < 0)
        return -errno;
    detach(&message, ret_descriptors);
    if (length == (ssize_t)size)
        return 0;
    for (size_t i = 0; i < CHANNEL_DESCRIPTORS; i++) {
        if (ret_descriptors[i] >= 0)
            close(ret_descriptors[i]);
    }
    return -EBADMSG;
}

int channel_order(int channel, const struct channel_order *order,
                  const int descriptors[static CHANNEL_DESCRIPTORS])
{
    return put(channel, order, sizeof *order, descriptors, CHANNEL_DESCRIPTORS, MSG_DONTWAIT);
}

int channel_take_order(int channel, struct channel_order *ret_order,
                       int ret_descriptors[static CHANNEL_DESCRIPTORS])
{
    return take(channel, ret_order, sizeof *ret_order, ret_descriptors, 0);
}

int channel_report(int channel, const struct channel_report *report, int descriptor)
{
    return put(channel, report, sizeof *report, &descriptor, 1, 0);
}

int channel_take_report(int channel, struct channel_report *ret_report, int *ret_descriptor)
{
    int descriptors[CHANNEL_DESCRIPTORS];
    int error = take(channel, ret_report, sizeof *ret_report, descriptors, MSG_DONTWAIT);

    if (error == 0) {
        *ret_descriptor = descriptors[0];
        if (descriptors[1] >= 0)
            close(descriptors[1]);
    }
    return error;
}
