/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fake-abuse: one process with many connections to one listener, none of which
 * is what a runtime would be. For what the listener does under rudeness; whoever
 * needs runtimes takes fake-fleet.
 */

#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/advertise.h"
#include "lib/wire.h"
#include "tests/fake/link.h"

enum { STATUS_USAGE = 2, EVENTS_AT_ONCE = 256, DESCRIPTORS_BESIDE = 16, PATIENCE_MS = 1 };

enum send { SEND_NOTHING, SEND_HALF, SEND_GARBAGE, SEND_HTTP, SEND_ADVERTISE };

static const char *const send_names[] = {"nothing", "half", "garbage", "http", "advertise"};

struct place {
    int fd;
    unsigned long number;
};

struct abuse {
    const char *path;
    unsigned long connections;
    unsigned long cookies;
    unsigned long hold_ms;
    unsigned long rate; /* connections a second, for ever; 0: `connections` at once */
    bool holds_for_input;
    bool again;   /* open another one for each that is closed */
    bool answers; /* OK to every command, then close */
    enum send send;

    struct guid cookie;
    int epoll_fd;
    long began_at;          /* in link_now's milliseconds */
    struct place *places;   /* with a rate: the latest `connections` that were opened */
    unsigned long *numbers; /* of the connection that a descriptor is, counted from 1; 0: none */
    unsigned long n_tried;  /* connects, successful or not */
    unsigned long n_open;
    unsigned long n_opened;
    unsigned long n_refused;
    unsigned long n_closed; /* by the peer */
    unsigned long n_reset;  /* likewise, with ECONNRESET */
    unsigned long n_commands;
    unsigned long n_resumes;
    unsigned long long n_bytes; /* received */
};

static void print_help(void)
{
    printf(
        "usage: fake-abuse --socket PATH [OPTION]...\n"
        "\n"
        "Opens many connections from one process, and prints one line of JSON when all have been\n"
        "tried and one at the end.\n"
        "\n"
        "  --socket PATH      the listener\n"
        "  --connections N    how many (1000); the limit of descriptors is raised as far as it "
        "goes\n"
        "  --send WHAT        nothing, half (of an advertise), garbage, http, or advertise "
        "(nothing)\n"
        "  --cookies N        advertise N cookies in turn (1)\n"
        "  --answer           answer every command with OK and close, as a runtime does\n"
        "  --again            open another connection for each one that is closed\n"
        "  --rate N           N connections a second without end, and no more than --connections\n"
        "                     at once: the oldest one is closed for the next. The line \"open\"\n"
        "                     comes after every N of them\n"
        "  --hold input|MS    keep them until the end of standard input (input), or for MS\n"
        "  --help             this text\n"
        "\n"
        "Keys of a line: event (\"open\" or \"end\"), opened, refused (the connect failed), open "
        "(now),\n"
        "closed (by the peer), reset (of these, with ECONNRESET), bytes (received), commands\n"
        "(received whole) and resumes (ResumeRuntime among them).\n"
        "\n"
        "Exit status: 0 when every connection could be opened, else 1; 2 for a wrong command "
        "line.\n");
}

static bool read_number(const char *text, unsigned long *ret_number)
{
    char *end;

    *ret_number = strtoul(text, &end, 10);
    return end != text && *end == '\0';
}

static bool read_send(struct abuse *abuse, const char *text)
{
    for (size_t i = 0; i < sizeof send_names / sizeof send_names[0]; i++) {
        if (strcmp(send_names[i], text) == 0) {
            abuse->send = (enum send)i;
            return true;
        }
    }
    return false;
}

static bool take_option(struct abuse *abuse, int option, const char *value)
{
    switch (option) {
    case 's':
        abuse->path = value;
        return strlen(value) < sizeof((struct sockaddr_un *)0)->sun_path;
    case 'n':
        return read_number(value, &abuse->connections);
    case 'w':
        return read_send(abuse, value);
    case 'c':
        return read_number(value, &abuse->cookies) && abuse->cookies > 0;
    case 'a':
        abuse->answers = true;
        return true;
    case 'g':
        abuse->again = true;
        return true;
    case 'r':
        return read_number(value, &abuse->rate) && abuse->rate > 0;
    case 'h':
        abuse->holds_for_input = strcmp(value, "input") == 0;
        return abuse->holds_for_input || read_number(value, &abuse->hold_ms);
    default:
        return false;
    }
}

static bool read_options(struct abuse *abuse, int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'}, {"connections", required_argument, NULL, 'n'},
        {"send", required_argument, NULL, 'w'},   {"cookies", required_argument, NULL, 'c'},
        {"answer", no_argument, NULL, 'a'},       {"again", no_argument, NULL, 'g'},
        {"rate", required_argument, NULL, 'r'},   {"hold", required_argument, NULL, 'h'},
        {"help", no_argument, NULL, 'H'},         {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'H') {
            print_help();
            exit(EXIT_SUCCESS);
        }
        if (!take_option(abuse, option, optarg))
            return false;
    }
    return abuse->path && optind == argc && (abuse->rate == 0 || abuse->connections > 0);
}

/* As many descriptors as we may have; false when that is not enough. */
static bool raise_limit(unsigned long wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= wanted + DESCRIPTORS_BESIDE)
        return true;
    fprintf(stderr, "fake-abuse: %lu connections do not fit into %llu descriptors\n", wanted,
            (unsigned long long)limit.rlim_cur);
    return false;
}

static void say_hello(const struct abuse *abuse, int fd)
{
    static const char http[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct advertise advertise = {abuse->cookie, (uint64_t)getpid()};
    unsigned long turn = (abuse->n_opened - 1) % abuse->cookies;
    uint8_t bytes[ADVERTISE_SIZE];

    for (unsigned i = 0; i < 4; i++)
        advertise.cookie.bytes[i] = (uint8_t)(advertise.cookie.bytes[i] ^ (turn >> (8 * i)));
    advertise_write(&advertise, bytes);
    switch (abuse->send) {
    case SEND_NOTHING:
        break;
    case SEND_HALF:
        link_write(fd, bytes, sizeof bytes / 2, 0);
        break;
    case SEND_GARBAGE:
        if (getrandom(bytes, sizeof bytes, 0) > 0)
            link_write(fd, bytes, sizeof bytes, 0);
        break;
    case SEND_HTTP:
        link_write(fd, http, sizeof http - 1, 0);
        break;
    case SEND_ADVERTISE:
        link_write(fd, bytes, sizeof bytes, 0);
        break;
    }
}

/* In the place of the oldest one, which may have been closed by its peer meanwhile. */
static void take_place(struct abuse *abuse, int fd)
{
    struct place *place = &abuse->places[abuse->n_opened % abuse->connections];

    if (place->number > 0 && abuse->numbers[place->fd] == place->number) {
        abuse->numbers[place->fd] = 0;
        abuse->n_open--;
        close(place->fd);
    }
    *place = (struct place){fd, abuse->n_opened};
    abuse->numbers[fd] = abuse->n_opened;
}

/* Opens one connection. False when the accept queue is full and it has to be tried again. */
static bool open_one(struct abuse *abuse)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLIN};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    strcpy(address.sun_path, abuse->path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        abuse->n_opened++;
        abuse->n_open++;
        say_hello(abuse, fd);
        event.data.fd = fd;
        epoll_ctl(abuse->epoll_fd, EPOLL_CTL_ADD, fd, &event);
        if (abuse->rate > 0)
            take_place(abuse, fd);
        return true;
    }
    if (fd >= 0) {
        int error = errno;

        close(fd);
        if (error == EAGAIN)
            return false;
    }
    abuse->n_refused++;
    return true;
}

static void take_command(struct abuse *abuse, int fd, const uint8_t *bytes, size_t length)
{
    static const uint8_t ok[] = "DOTNET_IPC_V1\0\x18\0\xFF\0\0\0\0\0\0"; /* and the closing NUL */
    struct wire_header header;

    if (length < WIRE_HEADER_SIZE || wire_header_read(bytes, &header) != 0 || header.size > length)
        return;
    abuse->n_commands++;
    if (header.set == 4 && header.id == 1)
        abuse->n_resumes++;
    if (abuse->answers) {
        link_write(fd, ok, sizeof ok, 0);
        shutdown(fd, SHUT_RDWR);
    }
}

static void take_event(struct abuse *abuse, int fd)
{
    static uint8_t buffer[WIRE_MESSAGE_MAX];
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);

    if (n > 0) {
        abuse->n_bytes += (unsigned long long)n;
        take_command(abuse, fd, buffer, (size_t)n);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    abuse->n_closed++;
    if (n < 0 && errno == ECONNRESET)
        abuse->n_reset++;
    abuse->n_open--;
    if (abuse->rate > 0)
        abuse->numbers[fd] = 0;
    close(fd);
    if (abuse->again)
        abuse->n_tried--;
}

/* Returns how many there were of the connections. */
static int take_events(struct abuse *abuse, int timeout_ms)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(abuse->epoll_fd, events, EVENTS_AT_ONCE, timeout_ms), n_taken = 0;

    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == STDIN_FILENO)
            continue;
        take_event(abuse, events[i].data.fd);
        n_taken++;
    }
    return n_taken;
}

static void print_line(const struct abuse *abuse, const char *event)
{
    printf("{\"event\":\"%s\",\"opened\":%lu,\"refused\":%lu,\"open\":%lu,\"closed\":%lu,"
           "\"reset\":%lu,\"bytes\":%llu,\"commands\":%lu,\"resumes\":%lu}\n",
           event, abuse->n_opened, abuse->n_refused, abuse->n_open, abuse->n_closed, abuse->n_reset,
           abuse->n_bytes, abuse->n_commands, abuse->n_resumes);
    fflush(stdout);
}

static unsigned long n_wanted(const struct abuse *abuse)
{
    if (abuse->rate == 0)
        return abuse->connections;
    return (unsigned long)(link_now() - abuse->began_at) * abuse->rate / 1000;
}

/* Tries what is still to be tried, as long as the listener has room. True when nothing is left. */
static bool open_more(struct abuse *abuse)
{
    while (abuse->n_tried < n_wanted(abuse)) {
        if (!open_one(abuse))
            return false;
        abuse->n_tried++;
        if (abuse->rate > 0 && abuse->n_tried % abuse->rate == 0)
            print_line(abuse, "open");
    }
    return true;
}

static bool input_has_ended(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char buffer[512];

    return poll(&input, 1, 0) == 1 && read(STDIN_FILENO, buffer, sizeof buffer) <= 0;
}

static void run(struct abuse *abuse)
{
    abuse->began_at = link_now();
    while (abuse->rate == 0 && !open_more(abuse))
        take_events(abuse, PATIENCE_MS);
    if (abuse->rate == 0)
        print_line(abuse, "open");
    for (long end = link_now() + (long)abuse->hold_ms;
         abuse->holds_for_input ? !input_has_ended() : link_now() < end;) {
        take_events(abuse, abuse->rate > 0 ? PATIENCE_MS : 10 * PATIENCE_MS);
        open_more(abuse);
    }
    /* What has happened by now counts. */
    while (take_events(abuse, 0) > 0)
        ;
    print_line(abuse, "end");
}

/* Descriptors are given from the lowest on, so that their numbers end where these do. */
static bool make_places(struct abuse *abuse)
{
    if (abuse->rate == 0)
        return true;
    abuse->places = calloc(abuse->connections, sizeof *abuse->places);
    abuse->numbers = calloc(abuse->connections + DESCRIPTORS_BESIDE + 1, sizeof *abuse->numbers);
    return abuse->places && abuse->numbers;
}

int main(int argc, char **argv)
{
    static struct abuse abuse = {.connections = 1000, .cookies = 1, .holds_for_input = true};

    if (!read_options(&abuse, argc, argv)) {
        fprintf(stderr, "fake-abuse: see --help\n");
        return STATUS_USAGE;
    }
    abuse.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (abuse.epoll_fd < 0 || !raise_limit(abuse.connections) || !make_places(&abuse) ||
        getrandom(abuse.cookie.bytes, GUID_SIZE, 0) != GUID_SIZE)
        return EXIT_FAILURE;
    run(&abuse);
    free(abuse.places);
    free(abuse.numbers);
    return abuse.n_refused == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
