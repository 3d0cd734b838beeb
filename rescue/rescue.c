/* SPDX-License-Identifier: Apache-2.0 */

#include "rescue/rescue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/advertise.h"
#include "lib/bytes.h"
#include "lib/command.h"
#include "lib/procfs.h"
#include "lib/wire.h"
#include "rescue/ledger.h"
#include "rescue/line.h"
#include "rescue/records.h"

enum {
    /* For looking at a process, and for what the C library may open. */
    DESCRIPTORS_RESERVED = 8,
    /* In one turn, so that those who are here are not kept waiting by those who come. */
    EVENTS_MAX = 64,
    ACCEPTS_MAX = 64,
};

static const struct span report_every = {60000000};
/* Listeners are tried again that long after nobody could be let in. */
static const struct span accept_pause = {10000};
/* At the end, how long an answer to a Resume that was written is waited for: closing before it was
 * read would take it back. */
static const struct span end_grace = {500000};

struct peer {
    int fd;
    uint32_t serial; /* tells it from those that had its place before */
    uint8_t n;
    uint8_t bytes[ADVERTISE_SIZE]; /* what it says; then, its answer */
};

static struct {
    const struct rescue_options *options;
    int epoll;
    uint32_t n_usable;
    uint32_t last_serial;
    bool is_paused;
    struct moment accept_at; /* when it is paused */
    struct moment now;
    uint8_t resume[WIRE_HEADER_SIZE];
    struct peer peers[LEDGER_CONNECTIONS_MAX];
} rescue;

static struct ledger ledger;

static void look_at_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    rescue.now = (struct moment){(int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000};
}

/* Closes one that is gone from the ledger. */
static void close_peer(uint16_t number)
{
    struct peer *peer = &rescue.peers[number];

    close(peer->fd);
    peer->fd = -1;
    peer->serial = 0;
    rescue.accept_at = rescue.now;
}

static void end_peer(uint16_t number)
{
    ledger_ended(&ledger, number);
    close_peer(number);
}

static uint64_t start_time_of(int32_t pid)
{
    char name[32], text[1024];
    struct procfs_stat stat;
    ssize_t length;
    int fd;

    if (pid <= 0)
        return 0;
    snprintf(name, sizeof name, "/proc/%" PRId32 "/stat", pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    length = read(fd, text, sizeof text);
    close(fd);
    return length > 0 && procfs_read_stat(text, (size_t)length, &stat) ? stat.start_time : 0;
}

/* Where processes are hidden from us, one that lives looks like this, too, but for the signal. */
static bool has_died(const struct ledger_who *who)
{
    return who->pid > 0 && who->start_time == 0 && kill(who->pid, 0) != 0 && errno == ESRCH;
}

static void introduce(uint16_t number)
{
    const struct peer *peer = &rescue.peers[number];
    struct ucred credentials = {0};
    socklen_t size = sizeof credentials;
    struct advertise advertise;
    struct ledger_who who;
    uint16_t closed;

    if (!advertise_read(peer->bytes, &advertise) ||
        getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        end_peer(number);
        return;
    }
    who = (struct ledger_who){
        .pid = credentials.pid,
        .uid = credentials.uid,
        .start_time = start_time_of(credentials.pid),
        .cookie = advertise.cookie,
    };
    if (has_died(&who)) {
        end_peer(number);
        return;
    }
    closed = ledger_introduce(&ledger, number, &who, rescue.now);
    if (closed != LEDGER_NOBODY)
        close_peer(closed);
}

/* Any answer counts: no runtime refuses Resume, and one that did would get it again and again. */
static void read_answer(uint16_t number)
{
    const struct peer *peer = &rescue.peers[number];
    struct wire_header header;

    if (!wire_magic_is_possible(peer->bytes, peer->n)) {
        end_peer(number);
    } else if (peer->n >= WIRE_HEADER_SIZE) {
        if (wire_header_read(peer->bytes, &header) != 0 || header.set != WIRE_SET_SERVER) {
            end_peer(number);
        } else if (peer->n >= header.size || peer->n == sizeof peer->bytes) {
            ledger_answered(&ledger, number, rescue.now);
            close_peer(number);
        }
    }
}

static void read_peer(uint16_t number)
{
    struct peer *peer = &rescue.peers[number];
    bool is_greeting = ledger_is_greeting(&ledger, number);
    ssize_t length = recv(peer->fd, peer->bytes + peer->n, sizeof peer->bytes - peer->n, 0);

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    /* Who has nothing to answer has nothing to say. */
    if (length <= 0 || (!is_greeting && !ledger_awaits_answer(&ledger, number))) {
        end_peer(number);
        return;
    }
    peer->n += (uint8_t)length;
    if (!is_greeting)
        read_answer(number);
    else if (!advertise_is_possible(peer->bytes, peer->n))
        end_peer(number);
    else if (peer->n == ADVERTISE_SIZE) {
        peer->n = 0;
        introduce(number);
    }
}

static bool watch(int operation, int fd, uint32_t events, uint32_t serial, uint32_t number)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)serial << 32 | number};

    return epoll_ctl(rescue.epoll, operation, fd, &event) == 0;
}

static void set_paused(bool is_paused)
{
    if (rescue.is_paused == is_paused)
        return;
    rescue.is_paused = is_paused;
    rescue.accept_at = moment_after(rescue.now, accept_pause);
    for (size_t i = 0; i < rescue.options->n_ports; i++)
        (void)watch(EPOLL_CTL_MOD, rescue.options->ports[i].fd, is_paused ? 0 : EPOLLIN, 0,
                    (uint32_t)i);
}

/* Nobody can be let in now: the listeners are left alone for a moment, or they would wake us up
 * without end. */
static void pause_listeners(void)
{
    set_paused(true);
}

/* `may_evict` is false where it is not known that anybody is there to be let in. */
static bool has_room(bool may_evict)
{
    uint16_t closed;

    if (ledger_n_open(&ledger) < ledger_usable(&ledger))
        return true;
    if (!may_evict)
        return false;
    if (!ledger_make_room(&ledger, rescue.now, &closed)) {
        if (closed == LEDGER_NOBODY) {
            pause_listeners();
            return false;
        }
        close_peer(closed);
    }
    return true;
}

/* Descriptors or memory ran out earlier than was thought. */
static void be_short(void)
{
    uint32_t n = ledger_n_open(&ledger);

    ledger_set_usable(&ledger, n > 0 ? n : 1);
    pause_listeners();
}

static void take_in(int fd, uint8_t listener)
{
    uint16_t number = ledger_accept(&ledger, listener, rescue.now);
    struct peer *peer = &rescue.peers[number];

    if (++rescue.last_serial == 0)
        rescue.last_serial = 1;
    *peer = (struct peer){.fd = fd, .serial = rescue.last_serial};
    if (!watch(EPOLL_CTL_ADD, fd, EPOLLIN, peer->serial, number))
        end_peer(number);
    else
        /* Runtimes say at once who they are: then nobody takes them for somebody silent. */
        read_peer(number);
}

static void accept_from(uint8_t listener)
{
    for (int i = 0; i < ACCEPTS_MAX && has_room(i == 0); i++) {
        int fd =
            accept4(rescue.options->ports[listener].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            take_in(fd, listener);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            if (errno != EAGAIN)
                be_short();
            return;
        }
    }
}

static void send_resume(uint16_t number, const struct ledger_who *who, bool is_first)
{
    struct peer *peer = &rescue.peers[number];
    struct record record = {
        .phase = RECORD_RESUMED,
        .pid = who->pid,
        .start_time = who->start_time,
        .cookie = who->cookie,
    };

    if (is_first)
        records_mark(&record, rescue.now);
    peer->n = 0;
    if (send(peer->fd, rescue.resume, sizeof rescue.resume, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof rescue.resume)
        end_peer(number);
}

static void send_resumes(void)
{
    struct ledger_who who;
    uint16_t number;
    bool is_first;

    while (ledger_next_resume(&ledger, rescue.now, &number, &who, &is_first))
        send_resume(number, &who, is_first);
}

/* Those who are here first: an answer that is there is read before its runtime is met again. */
static void handle(const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t serial = (uint32_t)(events[i].data.u64 >> 32);
        uint16_t number = (uint16_t)events[i].data.u64;

        /* It may have been closed since, and its place taken. */
        if (serial != 0 && rescue.peers[number].serial == serial)
            read_peer(number);
    }
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 >> 32 == 0 && !rescue.is_paused)
            accept_from((uint8_t)events[i].data.u64);
    }
}

static void report(const char *what, enum line_level level)
{
    const struct ledger_counters *counters = &ledger.counters;

    line_write(records_are_owed() ? LINE_WARNING : level,
               "%s: %" PRIu64 " runtimes resumed with %" PRIu64 " messages; %" PRIu64
               " connections, of which %" PRIu32 " are open, %" PRIu64
               " never said who they are and %" PRIu64 " had to make room; %" PRIu64
               " runtimes are not in the records, which %s",
               what, counters->n_runtimes, counters->n_resumes, counters->n_connections,
               ledger_n_open(&ledger), counters->n_strangers, counters->n_evicted,
               records_n_unmarked(), records_describe());
}

/* At most once in a minute, and only when something has happened. */
static struct moment report_if_due(struct moment report_at)
{
    static uint64_t n_reported;

    if (!moment_is_due(report_at, rescue.now))
        return report_at;
    ledger_set_usable(&ledger, rescue.n_usable);
    if (ledger.counters.n_connections != n_reported)
        report("until now", LINE_INFO);
    n_reported = ledger.counters.n_connections;
    return moment_after(rescue.now, report_every);
}

static int wait_time(struct moment deadline)
{
    int64_t us;

    deadline = moment_earlier(deadline, ledger_deadline(&ledger));
    deadline = moment_earlier(deadline, records_deadline());
    if (rescue.is_paused)
        deadline = moment_earlier(deadline, rescue.accept_at);
    us = moment_between(rescue.now, deadline).us;
    return us <= 0 ? 0 : us > 60000000 ? 60000 : (int)((us + 999) / 1000);
}

static void turn(struct moment deadline)
{
    struct epoll_event events[EVENTS_MAX];
    uint16_t closed;
    int n;

    if (rescue.is_paused && rescue.accept_at.us <= rescue.now.us)
        set_paused(false);
    n = epoll_pwait(rescue.epoll, events, EVENTS_MAX, wait_time(deadline),
                    rescue.options->waiting_mask);
    look_at_clock();
    handle(events, n);
    while ((closed = ledger_expire(&ledger, rescue.now)) != LEDGER_NOBODY)
        close_peer(closed);
    send_resumes();
    records_retry(rescue.now);
}

static bool is_over(struct moment end)
{
    if (!moment_is_due(end, rescue.now))
        return false;
    return !ledger_is_busy(&ledger) || moment_is_due(moment_after(end, end_grace), rescue.now);
}

/* As many as may be, which is more than is usual for a program. */
static uint32_t count_usable(void)
{
    struct rlimit limit;
    rlim_t most = LEDGER_CONNECTIONS_MAX, used = (rlim_t)rescue.epoll + 1 + DESCRIPTORS_RESERVED;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 64;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= most + used)
        return LEDGER_CONNECTIONS_MAX;
    return limit.rlim_cur > used ? (uint32_t)(limit.rlim_cur - used) : 1;
}

static int begin(void)
{
    struct bytes message;
    int error;

    bytes_init(&message, WIRE_HEADER_SIZE);
    error = command_write_plain(&message, COMMAND_RESUME);
    if (error == 0)
        memcpy(rescue.resume, message.data, WIRE_HEADER_SIZE);
    bytes_deinit(&message);
    rescue.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (error != 0 || rescue.epoll < 0)
        return error != 0 ? error : -errno;
    for (size_t i = 0; i < rescue.options->n_ports; i++) {
        if (!watch(EPOLL_CTL_ADD, rescue.options->ports[i].fd, EPOLLIN, 0, (uint32_t)i))
            return -errno;
    }
    rescue.n_usable = count_usable();
    ledger_init(&ledger, rescue.n_usable);
    return 0;
}

int rescue_run(const struct rescue_options *options)
{
    struct moment report_at, end = MOMENT_NEVER;
    int error;

    rescue.options = options;
    look_at_clock();
    error = begin();
    if (error != 0)
        return error;
    records_open(options->state, rescue.now);
    if (!span_is_forever(options->seconds))
        end = moment_after(rescue.now, options->seconds);
    line_write(records_state() == RECORDS_KEPT ? LINE_NOTICE : LINE_WARNING,
               "no daemon runs: every runtime that connects to one of %zu sockets is resumed "
               "untouched; descriptors last for %" PRIu32 " connections; records in %s %s",
               options->n_ports, rescue.n_usable, options->state, records_describe());
    report_at = moment_after(rescue.now, report_every);
    while (!*options->is_told_to_end && !is_over(end)) {
        /* Past its end it is only waited for answers. */
        turn(moment_is_due(end, rescue.now) ? moment_after(end, end_grace)
                                            : moment_earlier(report_at, end));
        report_at = report_if_due(report_at);
    }
    report("the end", LINE_NOTICE);
    return 0;
}
