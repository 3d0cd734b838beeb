/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/hresult.h"
#include "lib/wire.h"
#include "tests/fake/commands.h"
#include "tests/fake/link.h"
#include "tests/fake/peer.h"
#include "tests/fake/runtime.h"

/* Where things are in a header. */
enum { AT_SIZE = 14, AT_SET = 16, AT_ID = 17 };

struct message {
    uint8_t header[WIRE_HEADER_SIZE];
    uint8_t payload[WIRE_PAYLOAD_MAX];
    size_t n_payload;
};

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

/* Waits until the tool has closed its end. */
static void wait_for_close(int fd)
{
    struct pollfd closed = {.fd = fd};

    while (poll(&closed, 1, -1) < 0 && errno == EINTR)
        ;
}

static bool is_closed(int fd)
{
    struct pollfd closed = {.fd = fd};

    return poll(&closed, 1, 0) == 1;
}

static const struct fault *due(const struct call *call, enum fault_id id)
{
    return call->plan.due[id];
}

/* The first of the faults that will be seen, for the report. */
static const char *name_of_fault(const struct fault_plan *plan)
{
    for (unsigned id = 0; id < FAULT_COUNT; id++) {
        if (plan->due[id])
            return behaviour_fault_name((enum fault_id)id);
    }
    return NULL;
}

/* What happens before a byte is read. False when there is nothing to read any more. */
static bool arrive(struct call *call)
{
    uint8_t header[WIRE_HEADER_SIZE] = {0};
    const struct fault *unread;

    if (recv(call->fd, header, sizeof header, MSG_PEEK | MSG_DONTWAIT) < 0)
        return true;
    call->plan =
        faults_command(&call->runtime->behaviour->faults, header[AT_SET], header[AT_ID], false);
    unread = due(call, FAULT_UNREAD);
    if (unread && !unread->has_argument)
        hang();
    if (unread)
        link_sleep(unread->argument);
    if ((unread && is_closed(call->fd)) || due(call, FAULT_RESET)) {
        close(call->fd);
        return false;
    }
    return true;
}

/* 0, or what the runtime answers to what it could not read. */
static uint32_t read_message(int fd, struct message *message)
{
    struct wire_header header;
    size_t size;

    if (link_read(fd, message->header, WIRE_HEADER_SIZE) < WIRE_HEADER_SIZE)
        return HRESULT_BAD_ENCODING;
    size = message->header[AT_SIZE] | (size_t)message->header[AT_SIZE + 1] << 8;
    if (size < WIRE_HEADER_SIZE)
        return HRESULT_BAD_ENCODING;
    /* A wrong magic is only noticed after what its size announces has come. */
    message->n_payload = size - WIRE_HEADER_SIZE;
    if (link_read(fd, message->payload, message->n_payload) < message->n_payload)
        return HRESULT_BAD_ENCODING;
    return wire_header_read(message->header, &header) == 0 ? 0 : HRESULT_UNKNOWN_MAGIC;
}

/* The deed, with the lock held. */
static void act(struct call *call, uint32_t unreadable)
{
    const struct fault *refusal = due(call, FAULT_REFUSE);

    if (unreadable != 0)
        commands_fail(call, unreadable);
    else if (refusal)
        commands_fail(call, (uint32_t)refusal->argument);
    else
        commands_run(call);
    if (call->record) {
        call->record->has_result = true;
        call->record->result = call->result;
    }
}

static void carry_out(struct call *call, const struct message *message, uint32_t unreadable)
{
    struct runtime *runtime = call->runtime;
    bool is_stuck;

    call->set = message->header[AT_SET];
    call->id = message->header[AT_ID];
    call->payload = bytes_reader_over(message->payload, message->n_payload);
    call->is_empty = message->n_payload == 0;
    pthread_mutex_lock(&runtime->lock);
    call->plan = (struct fault_plan){{NULL}};
    if (unreadable == 0)
        call->plan = faults_command(&runtime->behaviour->faults, call->set, call->id, true);
    call->record = report_command(runtime, call->port, call->set, call->id);
    if (call->record)
        call->record->fault = name_of_fault(&call->plan);
    is_stuck = due(call, FAULT_STUCK) != NULL;
    if (!is_stuck)
        act(call, unreadable);
    pthread_mutex_unlock(&runtime->lock);
    if (is_stuck)
        hang();
}

static int signal_of(const struct fault *fault)
{
    return fault->has_argument ? (int)fault->argument : SIGKILL;
}

/* What happens between the deed and the answer. False when there is to be no answer. */
static bool before_reply(struct call *call)
{
    const struct fault *fault;

    if (due(call, FAULT_STOP_BEFORE_REPLY))
        raise(SIGSTOP);
    fault = due(call, FAULT_DELAY);
    if (fault)
        link_sleep(fault->argument);
    fault = due(call, FAULT_DIE_BEFORE_REPLY);
    if (fault)
        runtime_die(signal_of(fault), NULL);
    if (due(call, FAULT_CLOSE_BEFORE_REPLY))
        return false;
    if (due(call, FAULT_SILENT)) {
        wait_for_close(call->fd);
        return false;
    }
    return true;
}

/* Bends the reply; returns how much of it is sent. */
static size_t bend(struct call *call)
{
    struct bytes *reply = &call->reply;
    const struct fault *fault;
    size_t length;

    if (due(call, FAULT_WRONG_MAGIC))
        memcpy(reply->data, "DOTNET_IPC_V9", 13);
    fault = due(call, FAULT_REPLY_SIZE);
    if (fault) {
        reply->data[AT_SIZE] = (uint8_t)fault->argument;
        reply->data[AT_SIZE + 1] = (uint8_t)(fault->argument >> 8);
    }
    fault = due(call, FAULT_REPLY_SET);
    if (fault)
        reply->data[AT_SET] = (uint8_t)fault->argument;
    bytes_put_run(reply, call->continuation.data, call->continuation.length);
    fault = due(call, FAULT_EXTRA_BYTES);
    for (size_t i = 0; fault && i < fault->argument; i++)
        bytes_put_u8(reply, 'x');
    length = reply->length;
    fault = due(call, FAULT_HALF_REPLY);
    if (fault && !fault->has_argument)
        return length / 2;
    return fault && fault->argument < length ? fault->argument : length;
}

static void send_reply(struct call *call)
{
    const struct fault *queue = due(call, FAULT_QUEUE_NEXT);
    const struct fault *slow = due(call, FAULT_SLOW_REPLY);
    bool stays = due(call, FAULT_LEAVE_OPEN) || call->leaves_open || call->session != 0;
    size_t length = bend(call);
    pid_t stopped = queue ? peer_stop(call->fd, queue) : 0;

    link_write(call->fd, call->reply.data, length,
               slow ? slow->argument : call->runtime->behaviour->slow_bytes);
    if (length < call->reply.length)
        wait_for_close(call->fd);
    if (!stays)
        close(call->fd);
    if (queue && !call->port->is_default)
        ports_connect(&call->runtime->ports, call->port);
    if (stopped > 0)
        kill(stopped, SIGCONT);
}

/* A session's thread keeps the descriptor. */
static void close_unanswered(const struct call *call)
{
    if (call->session != 0)
        shutdown(call->fd, SHUT_RDWR);
    else
        close(call->fd);
}

static void begin_session(const struct call *call)
{
    if (call->session == 0)
        return;
    pthread_mutex_lock(&call->runtime->lock);
    sessions_begin(call->runtime, call->session);
    pthread_mutex_unlock(&call->runtime->lock);
}

static void after_reply(struct call *call)
{
    const struct fault *fault;

    if (due(call, FAULT_STOP_AFTER_REPLY))
        raise(SIGSTOP);
    fault = due(call, FAULT_DIE_AFTER_REPLY);
    if (fault)
        runtime_die(signal_of(fault), NULL);
    /* Once is enough: the new runtime reads the same rules. */
    if (due(call, FAULT_EXEC_AFTER) && call->runtime->generation == 0)
        runtime_exec(call->runtime);
}

static void set_time_out(int fd, unsigned long ms)
{
    struct timeval limit = {.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    if (ms > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static void serve(struct runtime *runtime, struct port *port, int fd, struct message *message)
{
    struct call call = {.runtime = runtime, .port = port, .fd = fd};
    uint32_t unreadable;

    bytes_init(&call.reply, SIZE_MAX - 1);
    bytes_init(&call.continuation, SIZE_MAX - 1);
    set_time_out(fd, runtime->behaviour->read_timeout);
    if (arrive(&call)) {
        memset(message->header, 0, sizeof message->header);
        message->n_payload = 0;
        unreadable = read_message(fd, message);
        carry_out(&call, message, unreadable);
        if (before_reply(&call)) {
            send_reply(&call);
            begin_session(&call);
        } else {
            close_unanswered(&call);
        }
        after_reply(&call);
    }
    bytes_deinit(&call.reply);
    bytes_deinit(&call.continuation);
}

void *server_run(void *argument)
{
    struct runtime *runtime = argument;
    struct message *message = malloc(sizeof *message);

    if (!message)
        abort();
    for (;;) {
        struct port *port;
        int fd = ports_next(&runtime->ports, &port);

        serve(runtime, port, fd, message);
    }
}
