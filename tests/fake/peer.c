/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/peer.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fake/fault.h"
#include "tests/fake/link.h"

static bool stands(const char *folder, const char *thread)
{
    char path[600], text[512];
    const char *at;
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s/stat", folder, thread);
    file = fopen(path, "re");
    if (!file)
        return true;
    length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    at = strrchr(text, ')');
    return !at || at[1] == '\0' || strchr("TtZX", at[2]) != NULL;
}

static bool all_stand(pid_t pid)
{
    const struct dirent *entry;
    bool all = true;
    char folder[64];
    DIR *threads;

    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    threads = opendir(folder);
    if (!threads)
        return true;
    while (all && (entry = readdir(threads)))
        all = entry->d_name[0] == '.' || stands(folder, entry->d_name);
    closedir(threads);
    return all;
}

pid_t peer_stop(int fd, const struct fault *fault)
{
    struct ucred peer = {.pid = 0};
    socklen_t length = sizeof peer;
    pid_t pid;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return 0;
    pid = fault->has_argument ? (pid_t)fault->argument : peer.pid;
    if (pid <= 0 || pid == getpid())
        return 0;
    if (kill(pid, SIGSTOP) != 0) {
        fprintf(stderr, "fake-runtime: process %d is not stopped: %s\n", (int)pid, strerror(errno));
        return 0;
    }
    while (!all_stand(pid))
        link_sleep(1);
    return pid;
}
