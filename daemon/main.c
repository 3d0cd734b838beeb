/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportd: what it was called with, and what it ends with. Nothing else.
 */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "host/rights.h"
#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_read.h"
#include "probe/probe.h"

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

/* As it is shown everywhere: whoever reads it need not know where we were started. NULL when that
 * cannot be told. */
static char *make_absolute(const char *path)
{
    char *folder = path[0] == '/' ? NULL : getcwd(NULL, 0), *absolute = NULL;

    if (path[0] == '/')
        return strdup(path);
    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    if (folder && asprintf(&absolute, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path) < 0)
        absolute = NULL;
    free(folder);
    return absolute;
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

static void complain_of_folder(const char *folder, int error)
{
    const char *runtime = config_runtime_folder();

    if (runtime)
        log_error("the folder %s cannot be made: %s; XDG_RUNTIME_DIR says %s, which has to be a "
                  "folder of yours: set it to one, or unset it and /tmp is used",
                  folder, strerror(error), runtime);
    else
        log_error("the folder %s cannot be made: %s; set XDG_RUNTIME_DIR to a folder of yours",
                  folder, strerror(error));
}

/* The folder of a --user instance is private: in /tmp somebody else could have made it first. */
static bool make_user_folder(const char *folder, bool *ret_has_made_it)
{
    struct stat status;
    int error;

    *ret_has_made_it = mkdir(folder, 0700) == 0;
    if (*ret_has_made_it)
        return true;
    error = errno;
    if (error != EEXIST) {
        complain_of_folder(folder, error);
        return false;
    }
    if (lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & 077) == 0)
        return true;
    log_error("the folder %s must be yours alone (mode 0700); remove it or set XDG_RUNTIME_DIR to "
              "another folder",
              folder);
    return false;
}

/* False when it could not be started. */
static bool run_daemon(const struct daemon_options *options, bool *ret_is_fine)
{
    struct daemon *daemon = daemon_new(options);

    if (!daemon)
        return false;
    *ret_is_fine = daemon_run(daemon);
    daemon_free(daemon);
    return true;
}

/* An instance of a user of his own, with its state beside its sockets. */
static void run_for_user(struct daemon_options *options, bool *ret_is_fine)
{
    char *folder = config_user_folder(), *state = NULL;
    bool has_made_it = false, has_run = false;

    if (!folder || asprintf(&state, "%s/state", folder) < 0) {
        state = NULL;
        log_error("memory ran out");
    } else if (make_user_folder(folder, &has_made_it)) {
        options->state = state;
        has_run = run_daemon(options, ret_is_fine);
    }
    /* Of a start that failed nothing stays. */
    if (!has_run && has_made_it)
        rmdir(folder);
    free(folder);
    free(state);
}

static int run_instance(const struct arguments *arguments, struct daemon_options *options)
{
    bool is_fine = false;

    options->config = arguments->config;
    options->is_user = arguments->is_user;
    options->state = arguments->state;
    if (options->is_user && !options->state) {
        run_for_user(options, &is_fine);
    } else {
        if (!options->state)
            options->state = "/run/diagportd";
        (void)run_daemon(options, &is_fine);
    }
    return is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Root becomes a user of the daemon's own, where there is one and it may. */
static bool find_user(const struct arguments *arguments, struct rights_user *ret_user)
{
    const uint64_t needed = RIGHTS_BIT(CAP_SETUID) | RIGHTS_BIT(CAP_SETGID) | RIGHTS_BIT(CAP_CHOWN);

    return geteuid() == 0 && !arguments->is_user && (rights_held() & needed) == needed &&
           rights_find_user("diagport", ret_user);
}

/* The probe comes first: it is to have nothing of the daemon's. */
static int run(const struct arguments *arguments, int argc, char **argv)
{
    struct rights_user user;
    struct daemon_options options = {.user = find_user(arguments, &user) ? &user : NULL};

    options.probe = probe_start(options.user, argc, argv);
    if (options.probe < 0) {
        log_error("diagport-probe cannot be started: %s", strerror(-options.probe));
        return EXIT_FAILURE;
    }
    rights_set_own(options.user);
    return run_instance(arguments, &options);
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

static int act(const struct arguments *arguments, int argc, char **argv)
{
    if (arguments->mode != MODE_RUN)
        return check(arguments);
    block_signals();
    log_open(LOG_JOURNAL);
    return run(arguments, argc, argv);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.mode = MODE_RUN};
    char *config = NULL;
    int status = read_arguments(argc, argv, &arguments);

    if (status >= 0)
        return status;
    if (arguments.config) {
        config = make_absolute(arguments.config);
        if (!config) {
            fprintf(stderr, "diagportd: it cannot be told where %s is: %s\n", arguments.config,
                    strerror(errno));
            return EXIT_FAILURE;
        }
        arguments.config = config;
    }
    status = act(&arguments, argc, argv);
    free(config);
    return status;
}
