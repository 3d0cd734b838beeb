/* SPDX-License-Identifier: Apache-2.0 */

#include "probe/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "lib/seam.h"
#include "probe/look.h"

/* A worker that cannot go on ends with EX_OSERR, for the daemon to replace it: whatever else it
 * ends with is a fault of ours. */

/* Ends with the daemon. */
static size_t read_some(int socket, uint8_t *data, size_t length)
{
    ssize_t n;

    do
        n = recv(socket, data, length, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        _exit(n == 0 ? EXIT_SUCCESS : EX_OSERR);
    return (size_t)n;
}

static void write_all(int socket, const uint8_t *data, size_t length)
{
    while (length > 0) {
        ssize_t n = send(socket, data, length, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(errno == EPIPE ? EXIT_SUCCESS : EX_OSERR);
        data += n;
        length -= (size_t)n;
    }
}

/* Ends when memory is out: then nothing is known. */
static void write_out(int socket, struct bytes *frame)
{
    if (bytes_finish(frame) != 0)
        _exit(EX_OSERR);
    write_all(socket, frame->data, frame->length);
    bytes_deinit(frame);
}

static void tell_fact(void *context, const struct facts *facts, uint32_t fact)
{
    struct bytes frame;

    bytes_init(&frame, SEAM_ANSWER_MAX);
    seam_put_fact(&frame, facts, fact);
    write_out(*(const int *)context, &frame);
}

static void tell_file(void *context, const struct facts_file *file)
{
    struct bytes frame;

    bytes_init(&frame, SEAM_ANSWER_MAX);
    seam_put_file(&frame, file);
    write_out(*(const int *)context, &frame);
}

static void answer(int socket, const struct action_question *question)
{
    const struct look_listener listener = {
        .fact = tell_fact,
        .file = tell_file,
        .context = &socket,
    };
    struct facts *facts = look_at(question, &listener);
    struct bytes frame;

    if (!facts)
        _exit(EX_OSERR);
    bytes_init(&frame, SEAM_ANSWER_MAX);
    seam_put_end(&frame, facts->is_alive);
    write_out(socket, &frame);
    facts_free(facts);
}

/* One frame: as much at a time as it is known to have. Returns its size. */
static size_t read_frame(int socket, uint8_t frame[static SEAM_QUESTION_MAX])
{
    size_t length = 0, size = 0;
    int error;

    while ((error = seam_frame(frame, length, SEAM_QUESTION_MAX, &size)) == SEAM_E_MORE)
        length += read_some(socket, frame + length, seam_frame_lacks(frame, length));
    if (error != 0)
        _exit(EX_OSERR);
    return size;
}

void worker_look(int socket)
{
    static uint8_t frame[SEAM_QUESTION_MAX];

    for (;;) {
        size_t size = read_frame(socket, frame);
        struct action_question question;

        if (seam_read_question(frame, size, &question) != 0)
            _exit(EX_OSERR);
        answer(socket, &question);
        free(question.files);
    }
}

void worker_kill(int socket, int pidfd)
{
    int error = syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0 ? 0 : errno;

    write_all(socket, (const uint8_t *)&error, sizeof error);
    _exit(EXIT_SUCCESS);
}
