/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportd: what it was called with, and what it ends with. Nothing else.
 */

#include <config.h>

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_read.h"

enum { EXIT_USAGE = 2 };

enum mode { MODE_RUN, MODE_CHECK, MODE_PRINT };

static const char usage[] =
    "Usage: diagportd [--config FILE] [--state FOLDER] [--user] [--check] [--print] [--version]\n"
    "\n"
    "Holds .NET runtimes that connect to its diagnostic ports, applies what the\n"
    "policy says, and resumes them. Always runs in the foreground.\n"
    "\n"
    "  --config FILE   the policy; FILE's folder may hold policy.d/*.yaml\n"
    "                  (default: /etc/diagport/diagport.yaml)\n"
    "  --state FOLDER  where it is recorded what was applied to whom\n"
    "                  (default: /run/diagportd)\n"
    "  --user          an instance of your own, that needs no root and no file:\n"
    "                  sockets and state under $XDG_RUNTIME_DIR/diagport\n"
    "  --check         say what is wrong with the policy; exit status 0 or 1\n"
    "  --print         write the policy in its canonical form\n"
    "  --version       say which version this is\n"
    "  --help          say this\n";

struct arguments {
    enum mode mode;
    const char *config;
    const char *state;
    bool is_user;
};

/* -1: go on; else the status to exit with. */
static int read_arguments(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"state", required_argument, NULL, 's'},
        {"user", no_argument, NULL, 'u'},         {"check", no_argument, NULL, 'k'},
        {"print", no_argument, NULL, 'p'},        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            arguments->config = optarg;
            break;
        case 's':
            arguments->state = optarg;
            break;
        case 'u':
            arguments->is_user = true;
            break;
        case 'k':
            arguments->mode = MODE_CHECK;
            break;
        case 'p':
            arguments->mode = MODE_PRINT;
            break;
        case 'v':
            printf("diagportd %s\n", PACKAGE_VERSION);
            return EXIT_SUCCESS;
        case 'h':
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        default:
            fputs("see diagportd --help\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "diagportd: %s was not expected\nsee diagportd --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (!arguments->is_user && !arguments->config)
        arguments->config = "/etc/diagport/diagport.yaml";
    return -1;
}

static void print_problems(const struct policy_problems *problems)
{
    for (size_t i = 0; i < problems->n; i++) {
        struct bytes line;

        bytes_init(&line, SIZE_MAX - 1);
        policy_problem_print(&problems->list[i], &line);
        if (bytes_finish(&line) == 0)
            fputs((const char *)line.data, stderr);
        bytes_deinit(&line);
    }
    if (problems->n_dropped > 0)
        fprintf(stderr, "diagportd: %zu more problems are not shown\n", problems->n_dropped);
}

static int print_policy(const struct policy *policy)
{
    struct bytes text;
    int status = EXIT_FAILURE;

    bytes_init(&text, SIZE_MAX - 1);
    policy_print(policy, &text);
    if (bytes_finish(&text) == 0 && fwrite(text.data, 1, text.length, stdout) == text.length &&
        fflush(stdout) == 0)
        status = EXIT_SUCCESS;
    bytes_deinit(&text);
    return status;
}

static int check(const struct arguments *arguments)
{
    struct config_options options = {.file = arguments->config, .is_user = arguments->is_user};
    struct config_loaded loaded;
    int error = config_load(&options, &loaded), status;

    if (error != 0) {
        fprintf(stderr, "diagportd: the policy could not be read: %s\n", strerror(-error));
        return EXIT_FAILURE;
    }
    print_problems(&loaded.problems);
    status = loaded.policy ? EXIT_SUCCESS : EXIT_FAILURE;
    if (loaded.policy && arguments->mode == MODE_PRINT)
        status = print_policy(loaded.policy);
    config_loaded_deinit(&loaded);
    return status;
}

/* The folder of a --user instance is private: in /tmp somebody else could have made it first. */
static char *make_user_state(void)
{
    char *folder = config_user_folder();
    char *state = NULL;
    struct stat status;

    if (!folder)
        return NULL;
    if (mkdir(folder, 0700) != 0 && (lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode) ||
                                     status.st_uid != geteuid() || (status.st_mode & 077)))
        log_error("the folder %s must be yours alone (mode 0700); remove it or set "
                  "XDG_RUNTIME_DIR",
                  folder);
    else if (asprintf(&state, "%s/state", folder) < 0)
        state = NULL;
    free(folder);
    return state;
}

static int run(const struct arguments *arguments)
{
    char *user_state = arguments->is_user && !arguments->state ? make_user_state() : NULL;
    struct daemon_options options = {
        .config = arguments->config,
        .state = arguments->state ? arguments->state : user_state,
        .is_user = arguments->is_user,
    };
    struct daemon *daemon;

    if (!options.state && !arguments->is_user)
        options.state = "/run/diagportd";
    if (!options.state)
        return EXIT_FAILURE;
    daemon = daemon_new(&options);
    if (daemon)
        daemon_run(daemon);
    free(user_state);
    if (!daemon)
        return EXIT_FAILURE;
    daemon_free(daemon);
    return EXIT_SUCCESS;
}

/* Nothing that a signal asks for may be lost, or end us, before somebody can listen to it. */
static void block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.mode = MODE_RUN};
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    if (arguments.mode != MODE_RUN)
        return check(&arguments);
    block_signals();
    log_open(LOG_JOURNAL);
    return run(&arguments);
}
