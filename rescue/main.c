/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagport-rescue: what it was called with, its sockets and signals, and what it
 * ends with. Nothing else.
 */

#include <config.h>

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rescue/ledger.h"
#include "rescue/line.h"
#include "rescue/port.h"
#include "rescue/rescue.h"

enum { EXIT_USAGE = 2, FIRST_PASSED = 3, SECONDS_MAX = 1000000 };

static const char usage[] =
    "Usage: diagport-rescue [--socket PATH]... [--state FOLDER] [SECONDS]\n"
    "\n"
    "Resumes every .NET runtime that connects, untouched, while no diagportd can\n"
    "run. Ends after SECONDS, or when it is told to.\n"
    "\n"
    "  --socket PATH   where runtimes connect; up to 16\n"
    "                  (default: the sockets that were passed in, else\n"
    "                  /run/diagport/runtime.sock)\n"
    "  --state FOLDER  the daemon's folder, where it is recorded who was resumed\n"
    "                  (default: /run/diagportd)\n"
    "  --version       say which version this is\n"
    "  --help          say this\n";

struct arguments {
    const char *paths[LEDGER_LISTENERS_MAX];
    size_t n_paths;
    const char *state;
    struct span seconds;
};

static volatile sig_atomic_t is_told_to_end;

static void be_told(int signal_number)
{
    (void)signal_number;
    is_told_to_end = 1;
}

static int misuse(const char *what, const char *why)
{
    fprintf(stderr, "diagport-rescue: %s %s\nsee diagport-rescue --help\n", what, why);
    return EXIT_USAGE;
}

static bool read_seconds(const char *text, struct span *ret_seconds)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || number > SECONDS_MAX)
        return false;
    *ret_seconds = span_from_s(number);
    return true;
}

/* -1: go on; else the status to exit with. */
static int read_arguments(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 'o'},
        {"state", required_argument, NULL, 's'},
        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            if (arguments->n_paths == LEDGER_LISTENERS_MAX)
                return misuse(optarg, "is one socket too many");
            arguments->paths[arguments->n_paths++] = optarg;
            break;
        case 's':
            arguments->state = optarg;
            break;
        case 'v':
            printf("diagport-rescue %s\n", PACKAGE_VERSION);
            return EXIT_SUCCESS;
        case 'h':
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        default:
            fputs("see diagport-rescue --help\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc && !read_seconds(argv[optind++], &arguments->seconds))
        return misuse(argv[optind - 1], "is no number of seconds");
    return optind < argc ? misuse(argv[optind], "was not expected") : -1;
}

/* All that can be had: one that cannot costs only its own runtimes. */
static size_t make_ports(const struct arguments *arguments, struct port *ports)
{
    static const char *const usual = "/run/diagport/runtime.sock";
    const char *const *paths = arguments->paths;
    size_t n_paths = arguments->n_paths, n = 0;
    int n_passed = port_n_passed();

    for (int i = 0; i < n_passed && n < LEDGER_LISTENERS_MAX; i++)
        n += port_adopt(FIRST_PASSED + i, &ports[n]);
    if (n < (size_t)n_passed)
        line_write(LINE_WARNING,
                   "of %d descriptors that were passed in %zu are listening Unix sockets that can "
                   "be used",
                   n_passed, n);
    if (n_paths == 0 && n == 0) {
        paths = &usual;
        n_paths = 1;
    }
    for (size_t i = 0; i < n_paths && n < LEDGER_LISTENERS_MAX; i++)
        n += port_make(paths[i], &ports[n]);
    return n;
}

/* Those that end it come only while it waits, so that none is missed. */
static void set_signals(sigset_t *ret_waiting_mask)
{
    struct sigaction told = {.sa_handler = be_told};
    sigset_t signals;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, ret_waiting_mask);
    sigdelset(ret_waiting_mask, SIGTERM);
    sigdelset(ret_waiting_mask, SIGINT);
    sigaction(SIGTERM, &told, NULL);
    sigaction(SIGINT, &told, NULL);
}

static int run(const struct arguments *arguments)
{
    struct port ports[LEDGER_LISTENERS_MAX];
    sigset_t waiting_mask;
    struct rescue_options options = {
        .ports = ports,
        .state = arguments->state,
        .seconds = arguments->seconds,
        .waiting_mask = &waiting_mask,
        .is_told_to_end = &is_told_to_end,
    };
    int error;

    set_signals(&waiting_mask);
    options.n_ports = make_ports(arguments, ports);
    if (options.n_ports == 0)
        return EXIT_FAILURE;
    error = rescue_run(&options);
    if (error != 0)
        line_write(LINE_ERROR, "nobody can be resumed: %s", strerror(-error));
    for (size_t i = 0; i < options.n_ports; i++)
        port_close(&ports[i]);
    return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.state = "/run/diagportd", .seconds = SPAN_FOREVER};
    int status;

    /* A reload that is meant for the daemon must not end us. */
    signal(SIGHUP, SIG_IGN);
    line_open();
    status = read_arguments(argc, argv, &arguments);
    return status >= 0 ? status : run(&arguments);
}
