/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/socket.h"

#define SYSTEM_SOCKET "/run/diagport/control.sock"

static int take(const char *path, const char *origin, struct place *ret_place)
{
    *ret_place = (struct place){
        .path = strdup(path),
        .origin = origin,
        .is_system = strcmp(path, SYSTEM_SOCKET) == 0,
    };
    return ret_place->path ? 0 : -ENOMEM;
}

/* In /tmp somebody else could have made the folder first. */
static bool is_ours(const char *folder, const char *path)
{
    struct stat status;

    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && lstat(path, &status) == 0 &&
           S_ISSOCK(status.st_mode) && status.st_uid == geteuid();
}

/* Takes the socket in the folder if it is that of an instance of ours that runs. 0 when it is not,
 * 1 when it is, or -ENOMEM; sets `*is_dead` where one has left its socket behind. */
static int try_own(const char *folder, struct place *ret_place, bool *is_dead)
{
    char *path = NULL;
    int found = 0;

    if (asprintf(&path, "%s/control.sock", folder) < 0)
        return -ENOMEM;
    if (!is_ours(folder, path))
        found = 0;
    else if (socket_probe(path) == -ECONNREFUSED)
        *is_dead = true;
    else
        found = take(path, "your own instance", ret_place) == 0 ? 1 : -ENOMEM;
    free(path);
    return found;
}

/* 0 when there is a folder; else why there is none. */
static int seek_folder(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

static int find_own(struct place *ret_place, bool *is_dead)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *folder = NULL;
    int found = 0;

    if (runtime && runtime[0] == '/') {
        if (asprintf(&folder, "%s/diagport", runtime) < 0)
            return -ENOMEM;
        found = try_own(folder, ret_place, is_dead);
        free(folder);
    }
    if (found != 0)
        return found;
    if (asprintf(&folder, "/tmp/diagport-%u", geteuid()) < 0)
        return -ENOMEM;
    found = try_own(folder, ret_place, is_dead);
    free(folder);
    return found;
}

static void find_stray(struct place *place)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    place->stray_error = runtime && runtime[0] == '/' ? seek_folder(runtime) : 0;
    if (place->stray_error != 0)
        place->stray = runtime;
}

int place_find(const char *option, struct place *ret_place)
{
    const char *variable = getenv("DIAGPORT_CONTROL");
    bool is_dead = false;
    int found;

    if (option)
        return take(option, "--socket", ret_place);
    if (variable && variable[0] != '\0')
        return take(variable, "$DIAGPORT_CONTROL", ret_place);
    found = find_own(ret_place, &is_dead);
    if (found == 0) {
        found = take(SYSTEM_SOCKET, "default", ret_place);
        find_stray(ret_place);
    }
    ret_place->is_second = is_dead;
    return found < 0 ? found : 0;
}

void place_deinit(struct place *place)
{
    free(place->path);
    *place = (struct place){.path = NULL};
}
