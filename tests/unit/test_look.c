/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looking at processes (probe/look.h): at this one, at a child, at one that
 * ended, and at files as a process with another root sees them.
 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/handle.h"
#include "daemon/looks.h"
#include "lib/facts.h"
#include "lib/procfs.h"
#include "probe/look.h"
#include "tests/unit/unit_folder.h"

/* As a worker looks, and the daemon judges. */
static struct facts *facts_look(const struct action_question *question, int pidfd)
{
    struct facts *facts = look_at(question, NULL);

    ck_assert_ptr_nonnull(facts);
    looks_judge(facts, question, pidfd);
    return facts;
}

static uint64_t start_time_of(const struct facts *facts)
{
    struct procfs_stat stat;

    ck_assert(procfs_read_stat(facts->stat.data, facts->stat.length, &stat));
    return stat.start_time;
}

START_TEST(everything_about_ourselves)
{
    struct action_question question = {
        .pid = getpid(),
        .wanted = FACTS_STAT | FACTS_STATUS | FACTS_EXE | FACTS_ARGUMENTS | FACTS_CWD |
                  FACTS_CGROUP | FACTS_ENVIRON | FACTS_PARENT | FACTS_THREADS | FACTS_FREEZER,
    };
    struct facts *facts = facts_look(&question, -1);
    char exe[4096];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);

    ck_assert(facts->is_alive);
    ck_assert(!facts->has_handle);
    ck_assert_int_ge(facts->age.us, 0);
    ck_assert_int_lt(facts->age.us, INT64_C(3600) * 1000000);
    ck_assert_int_eq(facts->exe.error, 0);
    ck_assert_uint_eq(facts->exe.length, (size_t)length);
    ck_assert_mem_eq(facts->exe.data, exe, (size_t)length);
    ck_assert_int_eq(facts->status.error, 0);
    ck_assert_int_eq(facts->arguments.error, 0);
    ck_assert_uint_gt(facts->arguments.length, 0);
    ck_assert_int_eq(facts->cwd.error, 0);
    ck_assert_int_eq(facts->cgroup.error, 0);
    ck_assert_int_eq(facts->environ.error, 0);
    ck_assert_int_eq(facts->parent_exe.error, 0);
    ck_assert_int_eq(facts->threads_error, 0);
    ck_assert_uint_ge(facts->n_threads, 1);
    ck_assert_int_eq(facts->threads[0].id, getpid());
    ck_assert(!facts->is_frozen);
    facts_free(facts);
}
END_TEST

START_TEST(what_was_not_asked_is_not_there)
{
    struct action_question question = {.pid = getpid(), .wanted = FACTS_STAT};
    struct facts *facts = facts_look(&question, -1);

    ck_assert_int_eq(facts->exe.error, ENODATA);
    ck_assert_int_eq(facts->environ.error, ENODATA);
    ck_assert_int_eq(facts->threads_error, ENODATA);
    facts_free(facts);
}
END_TEST

static void *be_named(void *context)
{
    prctl(PR_SET_NAME, ".NET SynchManager and more");
    if (write(*(int *)context, "x", 1) == 1)
        pause();
    return NULL;
}

START_TEST(threads_have_their_names)
{
    struct action_question question = {.pid = getpid(), .wanted = FACTS_STAT | FACTS_THREADS};
    struct facts *facts;
    pthread_t thread;
    bool is_found = false;
    int ready[2];
    char byte;

    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, be_named, &ready[1]), 0);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    facts = facts_look(&question, -1);
    for (size_t i = 0; i < facts->n_threads; i++)
        is_found |= strcmp(facts->threads[i].name, ".NET SynchManag") == 0;
    ck_assert(is_found);
    facts_free(facts);
}
END_TEST

START_TEST(one_that_ended_is_not_alive)
{
    struct action_question question = {.wanted = FACTS_STAT | FACTS_STATUS | FACTS_EXE};
    struct facts *facts;
    siginfo_t ended;
    pid_t pid = fork();
    int pidfd;

    if (pid == 0)
        _exit(0);
    question.pid = pid;
    /* Kernels before 5.3 have no handles, and valgrind 3.19 knows none. */
    pidfd = handle_of_pid(pid);
    ck_assert(pidfd >= 0 || pidfd == -ENOSYS);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    /* A zombie still has its number, and is dead. */
    facts = facts_look(&question, pidfd);
    ck_assert(!facts->is_alive);
    facts_free(facts);
    facts = facts_look(&question, -1);
    ck_assert(!facts->is_alive);
    facts_free(facts);
    waitpid(pid, NULL, 0);
    facts = facts_look(&question, -1);
    ck_assert(!facts->is_alive);
    ck_assert_int_eq(facts->stat.error, ENOENT);
    ck_assert_int_lt(facts->age.us, 0);
    facts_free(facts);
    if (pidfd >= 0)
        close(pidfd);
}
END_TEST

START_TEST(another_start_time_is_somebody_else)
{
    struct action_question question = {.pid = getpid(), .wanted = FACTS_STAT};
    struct facts *facts = facts_look(&question, -1);

    question.start_time = start_time_of(facts);
    facts_free(facts);
    facts = facts_look(&question, -1);
    ck_assert(facts->is_alive);
    facts_free(facts);
    question.start_time++;
    facts = facts_look(&question, -1);
    ck_assert(!facts->is_alive);
    facts_free(facts);
}
END_TEST

static struct facts *look_at_path(int32_t pid, char *path)
{
    char *paths[] = {path};
    struct action_question question = {.pid = pid,
                                       .wanted = FACTS_STAT | FACTS_FILES,
                                       .files = paths,
                                       .n_files = 1};
    struct facts *facts = facts_look(&question, -1);

    ck_assert_uint_eq(facts->n_files, 1);
    ck_assert_str_eq(facts->files[0].path, path);
    return facts;
}

START_TEST(every_component_of_a_path_is_looked_at)
{
    char folder[64], path[128], link[128];
    struct facts *facts;
    struct stat status;

    unit_folder_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/inner", folder);
    ck_assert_int_eq(mkdir(path, 0711), 0);
    unit_folder_write("inner/file", "x", 0640);
    snprintf(path, sizeof path, "%s/inner//file", folder);
    facts = look_at_path(getpid(), path);
    ck_assert_int_eq(facts->files[0].error, 0);
    /* The root, /tmp, the folder, the inner one, the file. */
    ck_assert_uint_eq(facts->files[0].n_nodes, 5);
    ck_assert_uint_eq(facts->files[0].nodes[3].mode & 07777, 0711);
    ck_assert_uint_eq(facts->files[0].nodes[4].mode & 07777, 0640);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(facts->files[0].identity.inode, status.st_ino);
    ck_assert_uint_eq(facts->files[0].identity.device, status.st_dev);
    ck_assert_uint_eq(facts->files[0].identity.size, 1);
    ck_assert_int_eq(facts->files[0].identity.modified_ns,
                     status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec);
    ck_assert_int_eq(facts->files[0].identity.changed_ns,
                     status.st_ctim.tv_sec * 1000000000 + status.st_ctim.tv_nsec);
    facts_free(facts);
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink("inner/file", link), 0);
    facts = look_at_path(getpid(), link);
    ck_assert_int_eq(facts->files[0].error, 0);
    ck_assert_uint_eq(facts->files[0].identity.inode, status.st_ino);
    facts_free(facts);
    /* The folder that a link leads through is on the way, too. */
    snprintf(path, sizeof path, "%s/to-inner", folder);
    ck_assert_int_eq(symlink("inner/file", path), 0);
    facts = look_at_path(getpid(), path);
    ck_assert_uint_eq(facts->files[0].n_nodes, 5);
    ck_assert_uint_eq(facts->files[0].nodes[3].mode & 07777, 0711);
    facts_free(facts);
    snprintf(path, sizeof path, "%s/nowhere/file", folder);
    facts = look_at_path(getpid(), path);
    ck_assert_int_eq(facts->files[0].error, ENOENT);
    facts_free(facts);
    snprintf(path, sizeof path, "%s/inner/file/more", folder);
    facts = look_at_path(getpid(), path);
    ck_assert_int_eq(facts->files[0].error, ENOTDIR);
    facts_free(facts);
    snprintf(link, sizeof link, "%s/loop", folder);
    ck_assert_int_eq(symlink("loop", link), 0);
    facts = look_at_path(getpid(), link);
    ck_assert_int_eq(facts->files[0].error, ELOOP);
    facts_free(facts);
    unit_folder_remove();
}
END_TEST

/* A child whose root is the folder sees other files than we do; a link to the real root is its own.
 */
START_TEST(files_are_those_of_the_process)
{
    char folder[64], link[128];
    struct facts *facts;
    int ready[2];
    char byte;
    pid_t pid;

    if (geteuid() != 0) {
        fprintf(stderr, "skipped: chroot needs root\n");
        return;
    }
    unit_folder_make(folder, sizeof folder);
    unit_folder_write("only-here", "x", 0644);
    snprintf(link, sizeof link, "%s/absolute", folder);
    ck_assert_int_eq(symlink("/only-here", link), 0);
    ck_assert_int_eq(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chroot(folder) != 0 || chdir("/") != 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    facts = look_at_path(pid, (char[]){"/only-here"});
    ck_assert_int_eq(facts->files[0].error, 0);
    facts_free(facts);
    facts = look_at_path(pid, (char[]){"/absolute"});
    ck_assert_int_eq(facts->files[0].error, 0);
    facts_free(facts);
    facts = look_at_path(pid, (char[]){"/../../etc/passwd"});
    ck_assert_int_eq(facts->files[0].error, ENOENT);
    facts_free(facts);
    facts = look_at_path(pid, (char[]){"only-here"});
    ck_assert_int_eq(facts->files[0].error, 0);
    facts_free(facts);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unit_folder_remove();
}
END_TEST

/* A program with arguments of 300 kB that waits for its standard input. */
static pid_t start_long(void)
{
    char *argument = malloc(100001);
    char *arguments[] = {(char[]){"sh"},
                         (char[]){"-c"},
                         (char[]){"echo x; read line"},
                         argument,
                         argument,
                         argument,
                         NULL};
    int out[2], in[2];
    char byte;
    pid_t pid;

    memset(argument, 'a', 100000);
    argument[100000] = '\0';
    ck_assert_int_eq(pipe(out), 0);
    ck_assert_int_eq(pipe(in), 0);
    pid = fork();
    if (pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execv("/bin/sh", arguments);
        _exit(1);
    }
    ck_assert_int_eq(read(out[0], &byte, 1), 1);
    free(argument);
    return pid;
}

START_TEST(long_texts_are_cut)
{
    struct action_question question = {.wanted = FACTS_STAT | FACTS_ARGUMENTS};
    struct facts *facts;

    question.pid = start_long();
    facts = facts_look(&question, -1);
    kill(question.pid, SIGKILL);
    waitpid(question.pid, NULL, 0);
    ck_assert(facts->arguments.is_cut);
    ck_assert_uint_eq(facts->arguments.length, FACTS_ARGUMENTS_MAX);
    facts_free(facts);
}
END_TEST

UNIT_TESTS(everything_about_ourselves, what_was_not_asked_is_not_there, threads_have_their_names,
           one_that_ended_is_not_alive, another_start_time_is_somebody_else,
           every_component_of_a_path_is_looked_at, files_are_those_of_the_process,
           long_texts_are_cut);
