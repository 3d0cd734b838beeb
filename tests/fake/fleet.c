/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fake-fleet: starts many runtimes, waits for their ends and adds up what they
 * report. One process each, as cheap as a process can be: the thing under test
 * tells runtimes apart by process.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/bytes.h"
#include "tests/fake/link.h"
#include "tests/fake/summary.h"

enum { STATUS_USAGE = 2, BARRIER_FD = 3, EXPECTATIONS_MAX = 32, VARIABLES_MAX = 32, TICK_MS = 20 };

struct fleet {
    size_t count;
    const char *program;
    const char *reports; /* NULL: a temporary file */
    bool together;
    bool terminates; /* once all have reported */
    long limit;      /* when who still lives is killed, in link_now's milliseconds */
    const char *variables[VARIABLES_MAX];
    size_t n_variables;
    struct summary_expectation expectations[EXPECTATIONS_MAX];
    size_t n_expectations;
    bool may_repeat;
    char **template; /* the arguments of each */

    char report_path[4096];
    pid_t *pids;
    size_t n_alive;
    int barrier[2];
    struct summary summary;
};

static void print_help(void)
{
    printf(
        "usage: fake-fleet --count N [OPTION]... [--] [ARGUMENT]...\n"
        "\n"
        "Starts N fake-runtimes, each with the ARGUMENTs (options of fake-runtime, then \"--\" "
        "and\n"
        "those of the application), waits for their ends and prints one line of JSON. In\n"
        "ARGUMENTs and variables \"%%d\" is the number of the runtime, from 0, and \"%%%%\" is "
        "\"%%\".\n"
        "\n"
        "  --count N              how many\n"
        "  --program PATH         instead of the fake-runtime beside this program\n"
        "  --env NAME=VALUE       a variable for each, any number of times\n"
        "  --together             let all connect at one moment, when the last one is started\n"
        "  --terminate            SIGTERM for all once all have reported their start\n"
        "  --timeout SECONDS      kill those that are not done by then (60)\n"
        "  --reports PATH         append the report lines here instead of a temporary file\n"
        "  --expect NAME=COUNT    each has to have got COUNT commands NAME answered with OK by\n"
        "                         its start, for example ResumeRuntime=1\n"
        "  --may-repeat           a variable may come twice: the answer was lost with a daemon\n"
        "  --expect-env NAME=TEXT each has to have this variable set by command\n"
        "  --help                 this text\n"
        "\n"
        "The line has: count, started, resumed, told_pause (the message after five seconds),\n"
        "connections, ms_to_resume (min, median, p99, max), commands (name: how many), signals\n"
        "(number: how many died by it) and anomalies: no_report, unreadable (report lines),\n"
        "died, failed (exit status not 0), unfinished, twice (a variable with its value, a\n"
        "profiler or a hook came twice), after_resume (commands after Resume, other than Resume\n"
        "and StopTracing) and unexpected (expectations not met).\n"
        "\n"
        "Exit status: 0 without an anomaly, 1 with one, 2 for a wrong command line.\n");
}

static bool read_number(const char *text, unsigned long *ret_number)
{
    char *end;

    *ret_number = strtoul(text, &end, 10);
    return end != text && *end == '\0';
}

static bool add_expectation(struct fleet *fleet, char *text, bool is_variable)
{
    struct summary_expectation *expectation = &fleet->expectations[fleet->n_expectations];
    char *equals = strchr(text, '=');

    if (!equals || fleet->n_expectations == EXPECTATIONS_MAX)
        return false;
    *equals = '\0';
    *expectation = (struct summary_expectation){.name = text};
    if (is_variable)
        expectation->value = equals + 1;
    else if (!read_number(equals + 1, &expectation->count))
        return false;
    fleet->n_expectations++;
    return true;
}

static bool take_option(struct fleet *fleet, int option, char *value)
{
    unsigned long number = 0;

    switch (option) {
    case 'c':
        if (!read_number(value, &number) || number == 0 || number > 100000)
            return false;
        fleet->count = number;
        return true;
    case 'p':
        fleet->program = value;
        return true;
    case 'e':
        /* That one is ours; what we were started with goes into it. */
        if (fleet->n_variables == VARIABLES_MAX || !strchr(value, '=') ||
            strncmp(value, "FAKE_BEHAVE=", strlen("FAKE_BEHAVE=")) == 0)
            return false;
        fleet->variables[fleet->n_variables++] = value;
        return true;
    case 'b':
        fleet->together = true;
        return true;
    case 'k':
        fleet->terminates = true;
        return true;
    case 't':
        if (!read_number(value, &number))
            return false;
        fleet->limit = link_now() + (long)number * 1000;
        return true;
    case 'r':
        fleet->reports = value;
        return true;
    case 'm':
        fleet->may_repeat = true;
        return true;
    case 'x':
    case 'v':
        return add_expectation(fleet, value, option == 'v');
    default:
        return false;
    }
}

static bool read_options(struct fleet *fleet, int argc, char **argv)
{
    static const struct option options[] = {
        {"count", required_argument, NULL, 'c'},
        {"program", required_argument, NULL, 'p'},
        {"env", required_argument, NULL, 'e'},
        {"together", no_argument, NULL, 'b'},
        {"terminate", no_argument, NULL, 'k'},
        {"timeout", required_argument, NULL, 't'},
        {"reports", required_argument, NULL, 'r'},
        {"expect", required_argument, NULL, 'x'},
        {"expect-env", required_argument, NULL, 'v'},
        {"may-repeat", no_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    fleet->limit = link_now() + 60000;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            exit(EXIT_SUCCESS);
        }
        if (!take_option(fleet, option, optarg))
            return false;
    }
    fleet->template = argv + optind;
    return fleet->count > 0;
}

/* The text with the runtime's number in it; the caller frees it. */
static char *fill_in(const char *template, size_t number)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    for (const char *at = template; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 'd')
            bytes_put_format(&out, "%zu", number);
        else
            bytes_put_u8(&out, (uint8_t)*at);
        if (at[0] == '%' && (at[1] == 'd' || at[1] == '%'))
            at++;
    }
    if (bytes_finish(&out) != 0)
        abort();
    return (char *)bytes_take(&out);
}

/* FAKE_BEHAVE for all of them: what we were given, the report, the barrier. */
static char *behave_variable(const struct fleet *fleet)
{
    const char *given = getenv("FAKE_BEHAVE");
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    bytes_put_format(&out, "FAKE_BEHAVE=%s%sreport=", given ? given : "", given ? "," : "");
    for (const char *at = fleet->report_path; *at != '\0'; at++)
        bytes_put_format(&out, *at == ',' ? "\\%c" : "%c", *at);
    if (fleet->together)
        bytes_put_format(&out, ",wait-fd=%d", BARRIER_FD);
    if (bytes_finish(&out) != 0)
        abort();
    return (char *)bytes_take(&out);
}

static bool is_overridden(const struct fleet *fleet, const char *string)
{
    size_t length = strcspn(string, "=");

    if (strncmp(string, "FAKE_BEHAVE=", strlen("FAKE_BEHAVE=")) == 0)
        return true;
    for (size_t i = 0; i < fleet->n_variables; i++) {
        if (strncmp(fleet->variables[i], string, length) == 0 && fleet->variables[i][length] == '=')
            return true;
    }
    return false;
}

/* The environment of one runtime. The first `n_variables` strings are to be freed with the array.
 */
static char **make_environment(const struct fleet *fleet, size_t number, char *behave)
{
    size_t n = 0, n_inherited = 0;
    char **list;

    while (environ[n_inherited])
        n_inherited++;
    list = calloc(fleet->n_variables + n_inherited + 2, sizeof *list);
    if (!list)
        abort();
    for (; n < fleet->n_variables; n++)
        list[n] = fill_in(fleet->variables[n], number);
    list[n++] = behave;
    for (size_t i = 0; i < n_inherited; i++) {
        if (!is_overridden(fleet, environ[i]))
            list[n++] = environ[i];
    }
    return list;
}

static char **make_arguments(const struct fleet *fleet, size_t number)
{
    size_t n = 0;
    char **list;

    while (fleet->template[n])
        n++;
    list = calloc(n + 2, sizeof *list);
    if (!list)
        abort();
    list[0] = fill_in(fleet->program, number);
    for (size_t i = 0; i < n; i++)
        list[i + 1] = fill_in(fleet->template[i], number);
    return list;
}

static void free_strings(char **list, size_t n)
{
    for (size_t i = 0; list[i] && i < n; i++)
        free(list[i]);
    free(list);
}

static bool start_one(struct fleet *fleet, size_t number, char *behave)
{
    char **arguments = make_arguments(fleet, number);
    char **variables = make_environment(fleet, number, behave);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error;

    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (fleet->together)
        posix_spawn_file_actions_adddup2(&actions, fleet->barrier[0], BARRIER_FD);
    error = posix_spawn(&fleet->pids[number], arguments[0], &actions, &attributes, arguments,
                        variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free_strings(variables, fleet->n_variables);
    free_strings(arguments, SIZE_MAX);
    if (error != 0) {
        fprintf(stderr, "fake-fleet: runtime %zu: %s\n", number, strerror(error));
        return false;
    }
    fleet->n_alive++;
    return true;
}

static bool start_all(struct fleet *fleet)
{
    char *behave = behave_variable(fleet);
    bool ok = true;

    if (fleet->together && pipe2(fleet->barrier, O_CLOEXEC) != 0)
        return false;
    /* The duplicate must not be the descriptor that is closed on exec. */
    if (fleet->together && fleet->barrier[0] == BARRIER_FD)
        fleet->barrier[0] = fcntl(BARRIER_FD, F_DUPFD_CLOEXEC, BARRIER_FD + 1);
    for (size_t i = 0; ok && i < fleet->count; i++)
        ok = start_one(fleet, i, behave);
    if (fleet->together) {
        close(fleet->barrier[0]);
        close(fleet->barrier[1]);
    }
    free(behave);
    return ok;
}

static void signal_all(const struct fleet *fleet, int number)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->pids[i] > 0)
            kill(fleet->pids[i], number);
    }
}

static void forget(struct fleet *fleet, pid_t pid)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->pids[i] == pid)
            fleet->pids[i] = 0;
    }
    fleet->n_alive--;
}

/* Gathers who has ended. */
static void reap(struct fleet *fleet, bool is_ours)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        forget(fleet, pid);
        summary_take_status(&fleet->summary, status, is_ours);
    }
}

static size_t count_lines(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t n = 0;
    int c;

    if (!file)
        return 0;
    while ((c = getc_unlocked(file)) != EOF)
        n += c == '\n';
    fclose(file);
    return n;
}

static void wait_for_all(struct fleet *fleet)
{
    struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    bool is_ours = false;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (fleet->n_alive > 0) {
        sigtimedwait(&child, NULL, &tick);
        reap(fleet, is_ours);
        if (fleet->terminates && !is_ours && count_lines(fleet->report_path) >= fleet->count) {
            signal_all(fleet, SIGTERM);
            is_ours = true;
        }
        if (link_now() >= fleet->limit && fleet->n_alive > 0) {
            fleet->summary.n_unfinished = fleet->n_alive;
            fleet->limit += 1000000;
            is_ours = true;
            signal_all(fleet, SIGKILL);
        }
    }
}

static void read_reports(struct fleet *fleet)
{
    FILE *file = fopen(fleet->report_path, "re");
    char *line = NULL;
    size_t size = 0;

    while (file && getline(&line, &size, file) > 0)
        summary_take_line(&fleet->summary, line);
    free(line);
    if (file)
        fclose(file);
}

static bool make_report_file(struct fleet *fleet)
{
    const char *folder = getenv("TMPDIR");
    int fd;

    if (fleet->reports) {
        snprintf(fleet->report_path, sizeof fleet->report_path, "%s", fleet->reports);
        return true;
    }
    snprintf(fleet->report_path, sizeof fleet->report_path, "%s/fake-fleet-XXXXXX",
             folder && *folder != '\0' ? folder : "/tmp");
    fd = mkostemp(fleet->report_path, O_CLOEXEC);
    if (fd < 0)
        fprintf(stderr, "fake-fleet: %s: %s\n", fleet->report_path, strerror(errno));
    else
        close(fd);
    return fd >= 0;
}

static char *program_beside_us(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "fake-runtime");
    char *slash;

    if (length < 0)
        return NULL;
    path[length] = '\0';
    slash = strrchr(path, '/');
    strcpy(slash + 1, "fake-runtime");
    return path;
}

static bool sail(struct fleet *fleet)
{
    bool ok;

    fleet->pids = calloc(fleet->count, sizeof *fleet->pids);
    if (!fleet->pids || !make_report_file(fleet) ||
        !summary_init(&fleet->summary, fleet->count, fleet->expectations, fleet->n_expectations))
        return false;
    fleet->summary.may_repeat = fleet->may_repeat;
    if (!start_all(fleet))
        fleet->limit = 0;
    wait_for_all(fleet);
    read_reports(fleet);
    if (!fleet->reports)
        unlink(fleet->report_path);
    ok = summary_print(&fleet->summary);
    summary_deinit(&fleet->summary);
    free(fleet->pids);
    return ok;
}

int main(int argc, char **argv)
{
    static struct fleet fleet;
    sigset_t child;

    fleet.program = program_beside_us();
    if (!read_options(&fleet, argc, argv) || !fleet.program) {
        fprintf(stderr, "fake-fleet: see --help\n");
        return STATUS_USAGE;
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    return sail(&fleet) ? EXIT_SUCCESS : EXIT_FAILURE;
}
