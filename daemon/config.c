/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/host.h"
#include "host/path.h"
#include "host/rights.h"
#include "lib/names.h"
#include "probe/probe.h"

enum {
    DROP_INS_MAX = 1000,
    READ_TRIES = 5, /* of a folder that changes while it is read */
};

/* What is being put together: sources and what is wrong with the files themselves. */
struct files {
    bool is_user;
    bool has_main; /* the first source is the main file */
    const struct progress *progress;
    struct policy_source *sources;
    size_t n_sources;
    struct policy_problems problems;
    int error;
};

static void files_deinit(struct files *files)
{
    for (size_t i = 0; i < files->n_sources; i++) {
        free((void *)(uintptr_t)files->sources[i].name);
        free((void *)(uintptr_t)files->sources[i].bytes);
    }
    free(files->sources);
    policy_problems_deinit(&files->problems);
    *files = (struct files){.is_user = files->is_user, .progress = files->progress};
}

/* Takes the problem, also where that fails. */
static int add_problem(struct policy_problems *problems, struct policy_problem problem)
{
    struct policy_problem *list =
        realloc(problems->list, (problems->n + 1) * sizeof *problems->list);

    if (!list) {
        free(problem.file);
        free(problem.text);
        return -ENOMEM;
    }
    problems->list = list;
    problems->list[problems->n++] = problem;
    problems->n_errors += problem.severity == POLICY_ERROR;
    return 0;
}

static void complain(struct files *files, enum policy_severity severity, const char *file,
                     const char *format, ...) PRINTF_LIKE(4, 5);

static void complain(struct files *files, enum policy_severity severity, const char *file,
                     const char *format, ...)
{
    struct policy_problem problem = {.severity = severity, .file = strdup(file)};
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&problem.text, format, arguments) < 0)
        problem.text = NULL;
    va_end(arguments);
    if (!problem.file || !problem.text) {
        free(problem.file);
        free(problem.text);
        files->error = -ENOMEM;
        return;
    }
    if (add_problem(&files->problems, problem) != 0)
        files->error = -ENOMEM;
}

/* What is wrong with a file. What will pass by itself is not: that nobody looked says nothing about
 * the policy. */
static void complain_of_call(struct files *files, const char *file, const char *what, int error)
{
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR)
        files->error = -error;
    else
        complain(files, POLICY_ERROR, file, "cannot be %s: %s", what, strerror(error));
}

/* Root's, or our own where we are not root's: nobody else may change what we do to others. */
static bool is_trusted_owner(const struct files *files, uid_t owner)
{
    return owner == rights_own_uid() || (!files->is_user && owner == 0);
}

static const char *mistrust(const struct files *files, const struct stat *status)
{
    if (!is_trusted_owner(files, status->st_uid))
        return files->is_user ? "must belong to you" : "must belong to root";
    if (status->st_mode & S_IWOTH)
        return "may be written by everybody; take that right away (chmod o-w)";
    if ((status->st_mode & S_IWGRP) && status->st_gid != 0)
        return "may be written by a group; take that right away (chmod g-w)";
    return NULL;
}

/* 0 or a negative errno. */
static int read_whole(int fd, size_t size, char **ret_bytes, size_t *ret_length)
{
    char *bytes = malloc(size + 1);
    size_t length = 0;
    ssize_t n = 0;

    if (!bytes)
        return -ENOMEM;
    while (length < size && (n = read(fd, bytes + length, size - length)) > 0)
        length += (size_t)n;
    if (n < 0) {
        int error = -errno;

        free(bytes);
        return error;
    }
    bytes[length] = '\0';
    *ret_bytes = bytes;
    *ret_length = length;
    return 0;
}

static void add_source(struct files *files, const char *name, char *bytes, size_t length)
{
    struct policy_source *sources =
        realloc(files->sources, (files->n_sources + 1) * sizeof *sources);
    char *copy = strdup(name);

    if (sources)
        files->sources = sources;
    if (!sources || !copy) {
        free(copy);
        free(bytes);
        files->error = -ENOMEM;
        return;
    }
    sources[files->n_sources++] =
        (struct policy_source){.name = copy, .bytes = bytes, .length = length};
}

/* One byte more than is allowed is read, so that the reader says that it is too much. */
static void take_file(struct files *files, const char *name, int fd)
{
    struct stat status;
    const char *problem;
    char *bytes;
    size_t length;
    int error;

    progress_tell(files->progress);
    if (fstat(fd, &status) != 0) {
        complain_of_call(files, name, "looked at", errno);
        return;
    }
    if (!S_ISREG(status.st_mode)) {
        complain(files, POLICY_ERROR, name, "is not a regular file");
        return;
    }
    problem = mistrust(files, &status);
    if (problem) {
        complain(files, POLICY_ERROR, name, "%s", problem);
        return;
    }
    error = read_whole(fd, POLICY_SOURCE_MAX + 1, &bytes, &length);
    if (error == 0)
        add_source(files, name, bytes, length);
    else
        complain_of_call(files, name, "read", -error);
}

static void take_main_file(struct files *files, const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        complain_of_call(files, name, "opened", errno);
        return;
    }
    take_file(files, name, fd);
    files->has_main = files->n_sources == 1;
    close(fd);
}

static bool trust_folder(void *context, const struct stat *status, int place)
{
    (void)place;
    return !S_ISDIR(status->st_mode) || !mistrust(context, status);
}

/* A link may lead anywhere below the policy folder, as in a mounted ConfigMap, and nowhere else;
 * and through no folder where others could make it lead elsewhere. */
static int open_drop_in(struct files *files, int folder, const char *entry)
{
    struct path_walk walk = {
        .root = folder,
        .start = folder,
        .bound = PATH_BENEATH,
        .step = trust_folder,
        .context = files,
    };
    int place = path_follow(&walk, entry), fd;
    char name[64];

    if (place < 0)
        return place;
    snprintf(name, sizeof name, "/proc/self/fd/%d", place);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        fd = -errno;
    close(place);
    return fd;
}

static void take_drop_in(struct files *files, int folder, const char *folder_name,
                         const char *entry)
{
    char *name = NULL;
    int fd;

    if (asprintf(&name, "%s/%s", folder_name, entry) < 0) {
        files->error = -ENOMEM;
        return;
    }
    fd = open_drop_in(files, folder, entry);
    if (fd == -EXDEV)
        complain(files, POLICY_ERROR, name, "is a link that leads out of the policy folder");
    else if (fd == -ECANCELED)
        complain(files, POLICY_ERROR, name, "leads through a folder that others may write to");
    else if (fd < 0)
        complain_of_call(files, name, "opened", -fd);
    else
        take_file(files, name, fd);
    if (fd >= 0)
        close(fd);
    free(name);
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int is_drop_in(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_in(entry->d_name, ".yaml");
}

static int is_near_miss(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_in(entry->d_name, ".yml");
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_entries(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
}

static void tell_near_misses(struct files *files, int folder, const char *folder_name)
{
    struct dirent **entries = NULL;
    int n = scandirat(folder, ".", &entries, is_near_miss, by_bytes);
    char *name = NULL;

    for (int i = 0; i < n; i++) {
        if (asprintf(&name, "%s/%s", folder_name, entries[i]->d_name) < 0)
            continue;
        complain(files, POLICY_WARNING, name, "is not read; only names that end in .yaml are");
        free(name);
    }
    if (n >= 0)
        free_entries(entries, n);
}

/* Something that changes with every change of what the folder holds. */
static bool folder_state(int folder, struct timespec *ret_changed)
{
    struct stat status;

    if (fstat(folder, &status) != 0)
        return false;
    *ret_changed = status.st_mtim;
    return true;
}

static void take_entries(struct files *files, int folder, const char *folder_name)
{
    struct dirent **entries = NULL;
    int n = scandirat(folder, ".", &entries, is_drop_in, by_bytes);

    if (n < 0) {
        complain_of_call(files, folder_name, "listed", errno);
        return;
    }
    if (n > DROP_INS_MAX)
        complain(files, POLICY_ERROR, folder_name, "holds %d policy files; %d are the limit", n,
                 DROP_INS_MAX);
    for (int i = 0; i < n && i < DROP_INS_MAX; i++)
        take_drop_in(files, folder, folder_name, entries[i]->d_name);
    free_entries(entries, n);
    tell_near_misses(files, folder, folder_name);
}

static void take_folder(struct files *files, const char *folder_name)
{
    int folder = open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat status;
    const char *problem;

    if (folder < 0) {
        if (errno != ENOENT)
            complain_of_call(files, folder_name, "opened", errno);
        return;
    }
    problem = fstat(folder, &status) == 0 ? mistrust(files, &status) : "cannot be looked at";
    if (problem)
        complain(files, POLICY_ERROR, folder_name, "%s", problem);
    else
        take_entries(files, folder, folder_name);
    close(folder);
}

static char *drop_in_folder(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder = NULL;
    int length = slash ? (int)(slash - file + 1) : 0;

    return asprintf(&folder, "%.*spolicy.d", length, file) < 0 ? NULL : folder;
}

static bool has_changed(const char *folder_name, const struct timespec *before)
{
    struct timespec after;
    int folder = open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool has_changed = folder >= 0 && folder_state(folder, &after) &&
                       (after.tv_sec != before->tv_sec || after.tv_nsec != before->tv_nsec);

    if (folder >= 0)
        close(folder);
    return has_changed;
}

/* A folder that is changed while it is read would give a policy that never was; then again. */
static void take_files(struct files *files, const char *file)
{
    char *folder_name = drop_in_folder(file);

    if (!folder_name) {
        files->error = -ENOMEM;
        return;
    }
    for (int i = 0; i < READ_TRIES; i++) {
        struct timespec before = {0};
        int folder = open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (folder >= 0) {
            folder_state(folder, &before);
            close(folder);
        }
        files_deinit(files);
        take_main_file(files, file);
        take_folder(files, folder_name);
        if (!has_changed(folder_name, &before))
            break;
    }
    free(folder_name);
}

const struct policy_host *config_host(void)
{
    static struct policy_host host;
    static bool is_known;

    if (!is_known) {
        host_init(&host);
        /* By the probe, when we have given the right up. */
        host.may_kill = rights_held() & probe_rights_to_kill();
        is_known = true;
    }
    return &host;
}

/* The files themselves, not the name service, which may wait for a network. */
int config_add_names(struct policy *policy)
{
    FILE *users = fopen("/etc/passwd", "re"), *groups = fopen("/etc/group", "re");
    const struct passwd *user;
    const struct group *group;
    int error = 0;

    while (users && error == 0 && (user = fgetpwent(users)))
        error = names_add_user(policy->names, user->pw_uid, user->pw_name);
    while (groups && error == 0 && (group = fgetgrent(groups)))
        error = names_add_group(policy->names, group->gr_gid, group->gr_name);
    if (users)
        fclose(users);
    if (groups)
        fclose(groups);
    return error;
}

/* What was found in the files comes after what was found about them. */
static int join_problems(struct policy_problems *problems, struct policy_problems *more)
{
    int error = 0;

    problems->n_errors += more->n_errors;
    problems->n_dropped += more->n_dropped;
    for (size_t i = 0; i < more->n; i++) {
        problems->n_errors -= more->list[i].severity == POLICY_ERROR;
        if (add_problem(problems, more->list[i]) != 0)
            error = -ENOMEM;
    }
    free(more->list);
    *more = (struct policy_problems){0};
    return error;
}

/* The usual sockets and no rule: whoever comes is resumed. */
static const char built_in[] = "version: 1\n";

/* What to do with when the files cannot be used: their own sockets, or the usual ones. */
static struct policy *salvage(const struct files *files, const struct policy_host *host,
                              bool *ret_is_built_in)
{
    struct policy_source source = {.name = "(built in)",
                                   .bytes = built_in,
                                   .length = sizeof built_in - 1};
    struct policy_problems problems = {0};
    struct policy *policy = NULL;
    int error;

    if (files->has_main) {
        policy = policy_salvage(&files->sources[0], host);
        if (!policy || policy->n_listens > 0)
            return policy;
    }
    policy = policy_unref(policy);
    *ret_is_built_in = true;
    error = policy_read(&source, 1, host, &policy, &problems);
    policy_problems_deinit(&problems);
    /* Where not even these can be had there is no socket. */
    return error != 0 || policy ? policy : policy_new();
}

static int read_sources(struct files *files, const struct policy_host *host,
                        struct config_loaded *loaded)
{
    struct policy_problems problems = {0};

    if (files->has_main) {
        int error = policy_read(files->sources, files->n_sources, host, &loaded->policy, &problems);

        if (error == 0)
            error = join_problems(&files->problems, &problems);
        policy_problems_deinit(&problems);
        if (error != 0)
            return error;
    }
    loaded->problems = files->problems;
    files->problems = (struct policy_problems){0};
    if (loaded->problems.n_errors == 0)
        return config_add_names(loaded->policy);
    loaded->policy = policy_unref(loaded->policy);
    loaded->salvage = salvage(files, host, &loaded->is_built_in);
    return loaded->salvage ? config_add_names(loaded->salvage) : -ENOMEM;
}

static void take_built_in(struct files *files)
{
    char *text = strdup(built_in);

    if (text)
        add_source(files, "(built in)", text, strlen(text));
    else
        files->error = -ENOMEM;
    files->has_main = true;
}

/* A name service may take its time for each of many names. */
static bool user_number(void *context, const char *name, uint32_t *ret_number)
{
    progress_tell(context);
    return config_host()->user_number(config_host()->context, name, ret_number);
}

static bool group_number(void *context, const char *name, uint32_t *ret_number)
{
    progress_tell(context);
    return config_host()->group_number(config_host()->context, name, ret_number);
}

static bool link_target(void *context, const char *path, char **ret_target)
{
    progress_tell(context);
    return config_host()->link_target(config_host()->context, path, ret_target);
}

static struct policy_host host_with_progress(const struct config_options *options)
{
    struct policy_host host = *config_host();

    host.context = (void *)(uintptr_t)options->progress;
    host.user_number = user_number;
    host.group_number = group_number;
    host.link_target = link_target;
    return host;
}

int config_load(const struct config_options *options, struct config_loaded *ret_loaded)
{
    struct files files = {.is_user = options->is_user, .progress = options->progress};
    struct policy_host host = host_with_progress(options);
    struct config_loaded loaded = {0};
    char *sockets = options->is_user ? config_user_folder() : NULL;
    int error;

    if (options->is_user && !sockets)
        return -ENOMEM;
    if (options->is_user) {
        host.sockets = sockets;
        host.are_sockets_private = true;
    }
    if (options->file)
        take_files(&files, options->file);
    else
        take_built_in(&files);
    error = files.error;
    if (error == 0)
        error = read_sources(&files, &host, &loaded);
    files_deinit(&files);
    free(sockets);
    if (error != 0) {
        config_loaded_deinit(&loaded);
        return error;
    }
    *ret_loaded = loaded;
    return 0;
}

void config_loaded_deinit(struct config_loaded *loaded)
{
    policy_unref(loaded->policy);
    policy_unref(loaded->salvage);
    policy_problems_deinit(&loaded->problems);
    *loaded = (struct config_loaded){0};
}

const char *config_origin_name(enum config_origin origin)
{
    switch (origin) {
    case CONFIG_FILES:
        return "files";
    case CONFIG_BUILT_IN:
        return "built_in";
    case CONFIG_LAST_GOOD:
        return "last_good";
    case CONFIG_SALVAGED:
        return "salvaged";
    }
    return "files";
}

const char *config_runtime_folder(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    return runtime && runtime[0] == '/' ? runtime : NULL;
}

char *config_user_folder(void)
{
    const char *runtime = config_runtime_folder();
    char *folder = NULL;
    int length = runtime ? asprintf(&folder, "%s/diagport", runtime)
                         : asprintf(&folder, "/tmp/diagport-%u", geteuid());

    return length < 0 ? NULL : folder;
}
