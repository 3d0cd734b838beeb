/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Preloaded into a daemon, it makes its system calls fail when a test wants
 * that, and those of its probe's workers, and moves its clocks. What is wanted stands in a file
 * that the test and the daemon share, faults.py is the other end. It knows the calls and nothing of
 * why they are made.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 192,
    NAME_SIZE = 24,
    DESCRIPTORS = 1024,
};

/* One kind of call. Those from `first` on and before `end`, counted from 0, fail with `error`, or,
 * with no error, read or write only `length` bytes; those that do neither take as many
 * milliseconds longer. */
struct slot {
    char name[NAME_SIZE];
    _Atomic uint64_t count;
    _Atomic uint64_t first;
    _Atomic uint64_t end;
    _Atomic uint64_t hits;
    _Atomic uint32_t error;
    _Atomic uint32_t length;
};

/* In the place of an error: they never return, and wait for ever or never rest. */
#define HANGS 0xffffffffu
#define SPINS 0xfffffffeu

/* Shared with the test: 64 bytes of clocks, in nanoseconds, then the slots. */
struct shared {
    _Atomic int64_t calendar;
    _Atomic int64_t since_boot;
    _Atomic bool is_locked; /* while somebody names a slot */
    char unused[47];
    struct slot slots[SLOTS];
};

_Static_assert(sizeof(struct slot) == 64 && sizeof(struct shared) == (SLOTS + 1) * 64,
               "faults.py reads it like that");

static struct shared *shared;
/* Ends of pipes between the daemon and itself: nothing happens to them. */
static bool is_inner[DESCRIPTORS];

/* Who we are: the daemon forks the probe's parent, and that its workers. Calls of workers have
 * names of their own, and nothing but its forks happens to the parent, which the daemon ends with.
 */
static enum { DAEMON, PARENT, WORKER } role;
static const char worker_prefix[] = "probe.";

static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (!function)
        abort();
    return function;
}

#define REAL(name) ((__typeof__(name) *)real(#name))

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("DIAGPORT_FAULTS");
    void *map;
    int fd;

    /* Whatever starts the daemon is not meant. */
    if (!path || strcmp(program_invocation_short_name, "diagportd") != 0)
        return;
    fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        abort();
    map = REAL(mmap)(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REAL(close)(fd);
    if (map == MAP_FAILED)
        abort();
    shared = map;
}

static struct slot *look_up(const char *name)
{
    for (size_t i = 0; i < SLOTS && shared->slots[i].name[0] != '\0'; i++) {
        if (strncmp(shared->slots[i].name, name, NAME_SIZE) == 0)
            return &shared->slots[i];
    }
    return NULL;
}

/* Several processes may want the same one at once. */
static struct slot *add(const char *name)
{
    struct slot *slot;

    while (atomic_exchange(&shared->is_locked, true))
        sched_yield();
    slot = look_up(name);
    for (size_t i = 0; i < SLOTS && !slot; i++) {
        if (shared->slots[i].name[0] != '\0')
            continue;
        slot = &shared->slots[i];
        memcpy(slot->name, name, strnlen(name, NAME_SIZE - 1));
    }
    atomic_store(&shared->is_locked, false);
    if (!slot)
        abort();
    return slot;
}

static struct slot *find(const char *name)
{
    char full[NAME_SIZE] = "";
    struct slot *slot;

    snprintf(full, sizeof full, "%s%s", role == DAEMON ? "" : worker_prefix, name);
    slot = look_up(full);
    return slot ? slot : add(full);
}

static void stay(uint32_t error)
{
    while (error == HANGS)
        pause();
    while (error == SPINS)
        atomic_signal_fence(memory_order_seq_cst);
}

/* Counts a call; true when something is to happen to it. */
static bool strikes(const char *name, struct slot **ret_slot)
{
    struct slot *slot;
    uint64_t n;

    if (!shared || (role == PARENT && strcmp(name, "fork") != 0))
        return false;
    slot = find(name);
    n = slot->count++;
    if (n < slot->first || n >= slot->end)
        return false;
    slot->hits++;
    stay(slot->error);
    *ret_slot = slot;
    return true;
}

/* 0, or what the call is to fail with. */
static int error_of(const char *name)
{
    struct slot *slot;

    if (!strikes(name, &slot))
        return 0;
    if (slot->error == 0)
        REAL(usleep)(1000 * slot->length);
    return (int)slot->error;
}

static bool is_inside(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS && is_inner[fd];
}

/* Likewise, of what moves bytes; it may become shorter instead. */
static int error_of_bytes(const char *name, int fd, size_t *length)
{
    struct slot *slot;

    if (is_inside(fd) || !strikes(name, &slot))
        return 0;
    if (slot->error == 0 && *length > slot->length)
        *length = slot->length;
    return (int)slot->error;
}

#define FAILS(error, result)  \
    do {                      \
        int failure_ = error; \
                              \
        if (failure_ != 0) {  \
            errno = failure_; \
            return result;    \
        }                     \
    } while (0)

/* A call that does nothing when it fails. */
#define CALL(type, name, failure, parameters, ...) \
    type name parameters                           \
    {                                              \
        FAILS(error_of(#name), failure);           \
        return REAL(name)(__VA_ARGS__);            \
    }

/* clang-format off */
CALL(int, accept4, -1, (int fd, __SOCKADDR_ARG to, socklen_t *size, int flags), fd, to, size, flags)
CALL(int, bind, -1, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), fd, to, size)
CALL(int, chmod, -1, (const char *path, mode_t mode), path, mode)
CALL(int, connect, -1, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), fd, to, size)
CALL(int, dup, -1, (int fd), fd)
CALL(int, epoll_create1, -1, (int flags), flags)
CALL(int, epoll_wait, -1, (int fd, struct epoll_event *list, int n, int ms), fd, list, n, ms)
CALL(int, faccessat, -1, (int fd, const char *path, int mode, int flags), fd, path, mode, flags)
CALL(DIR *, fdopendir, NULL, (int fd), fd)
CALL(int, flock, -1, (int fd, int how), fd, how)
CALL(FILE *, fopen, NULL, (const char *path, const char *mode), path, mode)
CALL(int, fstat, -1, (int fd, struct stat *status), fd, status)
CALL(int, fstatat, -1, (int fd, const char *path, struct stat *status, int flags), fd, path, status, flags)
CALL(int, getsockopt, -1, (int fd, int level, int name, void *value, socklen_t *size), fd, level, name, value, size)
CALL(int, lchown, -1, (const char *path, uid_t uid, gid_t gid), path, uid, gid)
CALL(int, listen, -1, (int fd, int n), fd, n)
CALL(int, lstat, -1, (const char *path, struct stat *status), path, status)
CALL(void *, mmap, MAP_FAILED, (void *at, size_t size, int prot, int flags, int fd, off_t from), at, size, prot, flags, fd, from)
CALL(DIR *, opendir, NULL, (const char *path), path)
CALL(int, poll, -1, (struct pollfd *list, nfds_t n, int ms), list, n, ms)
CALL(struct dirent *, readdir, NULL, (DIR *folder), folder)
CALL(ssize_t, readlink, -1, (const char *path, char *target, size_t size), path, target, size)
CALL(ssize_t, readlinkat, -1, (int fd, const char *path, char *target, size_t size), fd, path, target, size)
CALL(int, renameat, -1, (int from, const char *old, int to, const char *new), from, old, to, new)
CALL(int, scandirat, -1, (int fd, const char *path, struct dirent ***list, int (*select)(const struct dirent *), int (*order)(const struct dirent **, const struct dirent **)), fd, path, list, select, order)
CALL(int, setsockopt, -1, (int fd, int level, int name, const void *value, socklen_t size), fd, level, name, value, size)
CALL(int, shutdown, -1, (int fd, int how), fd, how)
CALL(int, sigaction, -1, (int number, const struct sigaction *new, struct sigaction *old), number, new, old)
CALL(int, socket, -1, (int domain, int type, int protocol), domain, type, protocol)
CALL(int, timerfd_create, -1, (clockid_t clock, int flags), clock, flags)
CALL(int, unlink, -1, (const char *path), path)
CALL(int, unlinkat, -1, (int fd, const char *path, int flags), fd, path, flags)
CALL(struct passwd *, getpwnam, NULL, (const char *name), name)
/* clang-format on */

#define MOVES(name, parameters, ...)                              \
    ssize_t name parameters                                       \
    {                                                             \
        FAILS(error_of_bytes(#name, fd, &length), -1);            \
        return ((ssize_t(*) parameters)real(#name))(__VA_ARGS__); \
    }

/* clang-format off */
MOVES(read, (int fd, void *bytes, size_t length), fd, bytes, length)
MOVES(pread, (int fd, void *bytes, size_t length, off_t at), fd, bytes, length, at)
MOVES(recv, (int fd, void *bytes, size_t length, int flags), fd, bytes, length, flags)
MOVES(write, (int fd, const void *bytes, size_t length), fd, bytes, length)
MOVES(pwrite, (int fd, const void *bytes, size_t length, off_t at), fd, bytes, length, at)
MOVES(send, (int fd, const void *bytes, size_t length, int flags), fd, bytes, length, flags)
/* clang-format on */

pid_t fork(void)
{
    pid_t pid;

    FAILS(error_of("fork"), -1);
    pid = REAL(fork)();
    if (pid == 0)
        role = role == DAEMON ? PARENT : WORKER;
    return pid;
}

/* As fortified callers name it. */
ssize_t __read_chk(int fd, void *bytes, size_t length, size_t size);
ssize_t __read_chk(int fd, void *bytes, size_t length, size_t size)
{
    (void)size;
    return read(fd, bytes, length);
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t size)
{
    FAILS(error_of_bytes("sendto", fd, &length), -1);
    return REAL(sendto)(fd, bytes, length, flags, to, size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t length = SIZE_MAX;

    FAILS(error_of_bytes("sendmsg", fd, &length), -1);
    if (length < SIZE_MAX && message->msg_iovlen > 0 && message->msg_iov[0].iov_len >= length)
        return REAL(send)(fd, message->msg_iov[0].iov_base, length, flags);
    return REAL(sendmsg)(fd, message, flags);
}

/* A policy that cannot be read does not say where to listen. Where everybody looks for a daemon is
 * nothing for one that is tested. */
int mkdir(const char *path, mode_t mode)
{
    FAILS(error_of("mkdir"), -1);
    if (shared && strncmp(path, "/run/diagport", strlen("/run/diagport")) == 0)
        FAILS(EACCES, -1);
    return REAL(mkdir)(path, mode);
}

/* It is closed whatever it says. */
int close(int fd)
{
    int error = error_of("close"), result = REAL(close)(fd);

    if (fd >= 0 && fd < DESCRIPTORS)
        is_inner[fd] = false;
    FAILS(error, -1);
    return result;
}

int posix_fallocate(int fd, off_t from, off_t length)
{
    int error = error_of("posix_fallocate");

    return error != 0 ? error : REAL(posix_fallocate)(fd, from, length);
}

static void be_inner(const int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0 && fds[i] < DESCRIPTORS)
            is_inner[fds[i]] = true;
    }
}

int pipe2(int fds[2], int flags)
{
    int result;

    FAILS(error_of("pipe2"), -1);
    result = REAL(pipe2)(fds, flags);
    if (result == 0)
        be_inner(fds);
    return result;
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
    int result;

    FAILS(error_of("socketpair"), -1);
    result = REAL(socketpair)(domain, type, protocol, fds);
    if (result == 0)
        be_inner(fds);
    return result;
}

/* To take something off a set can only fail where nothing was there. */
int epoll_ctl(int fd, int what, int of, struct epoll_event *event)
{
    if (what == EPOLL_CTL_ADD)
        FAILS(error_of("epoll_ctl"), -1);
    return REAL(epoll_ctl)(fd, what, of, event);
}

static mode_t mode_in(va_list arguments, int flags)
{
    return (flags & (O_CREAT | O_TMPFILE)) ? (mode_t)va_arg(arguments, unsigned) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = mode_in(arguments, flags);
    va_end(arguments);
    FAILS(error_of("open"), -1);
    return REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = mode_in(arguments, flags);
    va_end(arguments);
    FAILS(error_of("openat"), -1);
    return REAL(openat)(folder, path, flags, mode);
}

/* What the C library has no function for. */
long syscall(long number, ...)
{
    va_list arguments;
    long values[6];

    va_start(arguments, number);
    for (size_t i = 0; i < 6; i++)
        values[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_pidfd_open)
        FAILS(error_of("pidfd_open"), -1);
    if (number == SYS_pidfd_send_signal)
        FAILS(error_of("pidfd_send_signal"), -1);
    return REAL(syscall)(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

/* Clocks. */

static int64_t offset_of(clockid_t clock)
{
    if (!shared)
        return 0;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return shared->calendar;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
        return shared->since_boot;
    default:
        return 0;
    }
}

static void move(struct timespec *time, int64_t by)
{
    int64_t ns = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + by;

    /* All zero would turn a timer off. */
    if (ns < 1)
        ns = 1;
    time->tv_sec = (time_t)(ns / 1000000000);
    time->tv_nsec = (long)(ns % 1000000000);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = REAL(clock_gettime)(clock, time);

    if (result == 0)
        move(time, offset_of(clock));
    return result;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    struct itimerspec moved = *new;

    if ((flags & TFD_TIMER_ABSTIME) && (new->it_value.tv_sec != 0 || new->it_value.tv_nsec != 0))
        move(&moved.it_value, -offset_of(CLOCK_MONOTONIC));
    return REAL(timerfd_settime)(fd, flags, &moved, old);
}
