/* SPDX-License-Identifier: Apache-2.0 */

/*
 * fake-runtime: one process that behaves on its diagnostic ports as a .NET
 * runtime does, and on demand worse. This file reads the command line and goes
 * through the life of the program; the rest is in the rooms beside it.
 */

#include "config.h"

#include <malloc.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fake/commands.h"
#include "tests/fake/ending.h"
#include "tests/fake/runtime.h"
#include "tests/fake/startup.h"

enum { STATUS_USAGE = 2 };

static void print_help(void)
{
    printf("usage: fake-runtime [OPTION]... [--] [ARGUMENT]...\n"
           "\n"
           "Behaves on its diagnostic ports (DOTNET_DiagnosticPorts) as a .NET runtime does, and\n"
           "on demand worse. The ARGUMENTs are those of the application it seems to run.\n"
           "\n"
           "  --behave KEY[=VALUE],...   any number of the behaviours below; \"\\,\" is a comma\n"
           "  --KEY VALUE, --KEY=VALUE   one of them\n"
           "  --help                     this text\n"
           "\n"
           "Behaviours are also read from the variable FAKE_BEHAVE, before the command line.\n");
    behaviour_print_help();
    printf(
        "\nKIND[@WHICH] names commands; WHICH counts those of that kind, or connections, from 1:\n"
        "N, N-M or N+. KIND is \"info\", \"collect\" or \"dump\" for a group, four hexadecimal "
        "digits\n"
        "of set and id, or one of:\n");
    commands_print_help();
    printf(
        "\nExit status: that of --exit-status; 143 or death by the signal after SIGTERM, as the\n"
        "version has it; 2 for a wrong command line.\n");
}

/* One option and its value at `*index`. False when it is not one. */
static bool read_option(struct behaviour *behaviour, char **argv, int *index)
{
    char *key = argv[*index] + 2;
    char *value = strchr(key, '=');

    if (value)
        *value++ = '\0';
    else if ((behaviour_takes_value(key) || strcmp(key, "behave") == 0) && argv[*index + 1])
        value = argv[++*index];
    if (strcmp(key, "behave") == 0)
        return value && behaviour_set_list(behaviour, value);
    return behaviour_set(behaviour, key, value);
}

/* The index of the first argument of the application; exits on --help, -1 when something is wrong.
 */
static int read_options(struct behaviour *behaviour, char **argv)
{
    int index = 1;

    for (; argv[index] && strncmp(argv[index], "--", 2) == 0; index++) {
        if (strcmp(argv[index], "--") == 0)
            return index + 1;
        if (strcmp(argv[index], "--help") == 0) {
            print_help();
            exit(EXIT_SUCCESS);
        }
        if (!read_option(behaviour, argv, &index)) {
            fprintf(stderr, "fake-runtime: see --help\n");
            return -1;
        }
    }
    return index;
}

/* Options are cut up while they are read, and /proc/PID/cmdline would show that. */
static char **copy_arguments(char **argv)
{
    size_t n = 0;
    char **copy;

    while (argv[n])
        n++;
    copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}

static void wait_for_descriptor(unsigned long fd)
{
    char byte;

    if (fd == 0)
        return;
    while (read((int)fd, &byte, 1) > 0)
        ;
    close((int)fd);
}

/* Starts this program again with the same arguments, as Process.Start or as native code would. */
static pid_t start_child(struct runtime *runtime)
{
    static char mark[] = "FAKE_CHILD=1";
    bool is_managed = runtime->behaviour->child == CHILD_MANAGED;
    char **managed = is_managed ? variables_array(&runtime->variables) : NULL;
    char **inherited = is_managed ? managed : environ;
    char **list;
    size_t n = 0;
    pid_t pid = -1;

    while (inherited && inherited[n])
        n++;
    list = calloc(n + 2, sizeof *list);
    if (list) {
        list[0] = mark;
        for (size_t i = 0; i < n; i++)
            list[i + 1] = inherited[i];
        if (posix_spawn(&pid, runtime->program, NULL, NULL, runtime->process_arguments, list) != 0)
            pid = -1;
    }
    free(list);
    free(managed);
    return pid;
}

/* A child has none of its own, nor its parent's port, and ends when it has started. */
static void adjust_to_child(struct behaviour *behaviour)
{
    if (!getenv("FAKE_CHILD"))
        return;
    behaviour->child = CHILD_NONE;
    behaviour->default_port = NULL;
    behaviour->run_for = RUN_FOR_EXIT;
    behaviour->wait_fd = 0;
}

static bool is_exec_due(struct runtime *runtime)
{
    struct fault_plan plan = faults_command(&runtime->behaviour->faults, FAULT_SET_START, 0, true);

    return plan.due[FAULT_EXEC_AFTER] != NULL;
}

static int play(struct runtime *runtime)
{
    const char *reason;
    pid_t child = -1;

    if (!startup_run(runtime))
        return EXIT_FAILURE;
    if (runtime->generation == 0 && is_exec_due(runtime))
        runtime_exec(runtime);
    if (runtime->behaviour->child != CHILD_NONE)
        child = start_child(runtime);
    reason = ending_wait(runtime);
    if (child > 0)
        waitpid(child, NULL, 0);
    return ending_end(runtime, reason);
}

int main(int argc, char **argv)
{
    /* Not on the stack: the other threads still use it while the program ends. */
    static struct runtime runtime;
    static struct behaviour behaviour;
    /* What was told, which the behaviour points into. */
    static char **options;
    static char *list;
    const char *variable = getenv("FAKE_BEHAVE");
    int first;

    /* One heap for all threads: a thousand of us have to fit. */
    mallopt(M_ARENA_MAX, 1);
    options = copy_arguments(argv);
    list = variable ? strdup(variable) : NULL;
    behaviour_init(&behaviour);
    if (!options || (list && !behaviour_set_list(&behaviour, list)))
        return STATUS_USAGE;
    first = read_options(&behaviour, options);
    if (first < 0 || !behaviour_complete(&behaviour))
        return STATUS_USAGE;
    adjust_to_child(&behaviour);
    wait_for_descriptor(behaviour.wait_fd);
    ending_prepare(&behaviour.version);
    if (!runtime_init(&runtime, &behaviour, argv, argc - first, argv + first))
        return EXIT_FAILURE;
    return play(&runtime);
}
