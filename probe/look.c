/* SPDX-License-Identifier: Apache-2.0 */

#include "probe/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host/path.h"
#include "lib/bytes.h"
#include "lib/procfs.h"
#include "probe/images.h"

enum {
    NAME_SIZE = 64, /* of "/proc/PID/task/TID/comm" and the like */
    CHUNK_SIZE = 32 * 1024,
};

static void proc_name(char name[static NAME_SIZE], int32_t pid, const char *file)
{
    snprintf(name, NAME_SIZE, "/proc/%d/%s", pid, file);
}

/* Reads a file of /proc whole, up to a limit; they say their length only by ending. */
static void read_text(struct facts_text *text, const char *name, size_t limit)
{
    static char chunk[CHUNK_SIZE];
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct bytes content;
    ssize_t length;

    if (fd < 0) {
        text->error = errno;
        return;
    }
    text->error = 0;
    bytes_init(&content, limit);
    do {
        length = read(fd, chunk, sizeof chunk);
        if (length < 0)
            text->error = errno;
        else if ((size_t)length > limit - content.length) {
            text->is_cut = true;
            length = (ssize_t)(limit - content.length);
        }
        if (length > 0)
            bytes_put_run(&content, chunk, (size_t)length);
    } while (length > 0 && !text->is_cut);
    close(fd);
    if (text->error == 0)
        text->error = -bytes_finish(&content);
    if (text->error == 0) {
        text->length = content.length;
        text->data = (char *)bytes_take(&content);
    }
    bytes_deinit(&content);
}

static void read_proc(struct facts_text *text, int32_t pid, const char *file, size_t limit)
{
    char name[NAME_SIZE];

    proc_name(name, pid, file);
    read_text(text, name, limit);
}

static void read_link(struct facts_text *text, int32_t pid, const char *file)
{
    static char target[16 * 1024];
    char name[NAME_SIZE];
    ssize_t length;

    proc_name(name, pid, file);
    length = readlink(name, target, sizeof target);
    if (length < 0)
        text->error = errno;
    else if ((size_t)length == sizeof target)
        text->error = ENAMETOOLONG;
    else
        facts_text_set(text, target, (size_t)length);
}

static void read_parent(struct facts *facts)
{
    struct procfs_stat stat;

    if (facts->stat.error != 0)
        facts->parent_exe.error = facts->stat.error;
    else if (!procfs_read_stat(facts->stat.data, facts->stat.length, &stat) || stat.parent <= 0)
        facts->parent_exe.error = ENOENT;
    else
        read_link(&facts->parent_exe, stat.parent, "exe");
}

static bool read_thread(int task, const char *id, struct facts_thread *thread)
{
    char name[NAME_SIZE];
    ssize_t length;
    int fd;

    snprintf(name, sizeof name, "%.20s/comm", id);
    fd = openat(task, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, thread->name, sizeof thread->name - 1);
    close(fd);
    if (length <= 0)
        return false;
    thread->name[length] = '\0';
    thread->name[strcspn(thread->name, "\n")] = '\0';
    thread->id = (int32_t)strtol(id, NULL, 10);
    return true;
}

static void read_threads(struct facts *facts, int32_t pid)
{
    char name[NAME_SIZE];
    const struct dirent *entry;
    DIR *task;

    proc_name(name, pid, "task");
    task = opendir(name);
    if (!task) {
        facts->threads_error = errno;
        return;
    }
    facts->threads_error = 0;
    while (facts->n_threads <= FACTS_THREADS_MAX && (entry = readdir(task))) {
        struct facts_thread thread;

        if (entry->d_name[0] == '.')
            continue;
        /* A thread that ended meanwhile is none. */
        if (!read_thread(dirfd(task), entry->d_name, &thread))
            continue;
        if (facts->n_threads < FACTS_THREADS_MAX)
            facts->threads[facts->n_threads] = thread;
        facts->n_threads++;
    }
    closedir(task);
}

/* The path of the process in the unified hierarchy, and how long it is. */
static const char *unified_path(const char *cgroup, size_t *ret_length)
{
    for (const char *line = cgroup; line && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "0::/", 4) == 0) {
            *ret_length = strcspn(line + 3, "\n");
            return line + 3;
        }
    }
    return NULL;
}

/* A frozen process answers nothing. The unified hierarchy is at the first of these places, or in
 * hybrid mode at the second. */
static void read_freezer(struct facts *facts, int32_t pid)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    struct facts_text cgroup = {0};
    const char *path;
    size_t length;

    read_proc(&cgroup, pid, "cgroup", FACTS_TEXT_MAX);
    path = cgroup.data ? unified_path(cgroup.data, &length) : NULL;
    for (size_t i = 0; path && i < ARRAY_LENGTH(mounts); i++) {
        struct facts_text events = {0};
        char *name = NULL;

        if (asprintf(&name, "%s%.*s/cgroup.events", mounts[i], (int)length, path) < 0)
            break;
        read_text(&events, name, FACTS_TEXT_MAX);
        facts->is_frozen |= events.data && strstr(events.data, "frozen 1");
        free(name);
        free(events.data);
    }
    free(cgroup.data);
}

/* What it takes to tell what the process may do with files. */
struct looker {
    struct facts_file *file;
    struct facts_text status;
    struct facts_text users; /* of its user namespace */
    struct facts_text groups;
    struct images *images; /* NULL when nobody asked what is in the files */
};

static void looker_init(struct looker *looker, const struct facts *facts,
                        const struct action_question *question, int root)
{
    *looker = (struct looker){.file = NULL};
    if (!(question->wanted & FACTS_IMAGES) || root < 0)
        return;
    read_proc(&looker->status, question->pid, "status", FACTS_TEXT_MAX);
    read_proc(&looker->users, question->pid, "uid_map", FACTS_TEXT_MAX);
    read_proc(&looker->groups, question->pid, "gid_map", FACTS_TEXT_MAX);
    looker->images = images_new(question->pid, root, &facts->environ);
}

static void looker_deinit(struct looker *looker)
{
    free(looker->status.data);
    free(looker->users.data);
    free(looker->groups.data);
    images_free(looker->images);
}

/* Rights over files go before their mode bits when the user namespace has both of their ids. */
static enum facts_override override_of(const struct looker *looker, const struct stat *status)
{
    static const uint64_t may_read = 1 << 1 | 1 << 2; /* CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH */
    uint64_t rights;

    if (looker->users.length == 0 || looker->groups.length == 0 || looker->status.length == 0 ||
        !procfs_read_capabilities(looker->status.data, looker->status.length, &rights))
        return FACTS_OVERRIDE_UNKNOWN;
    return (rights & may_read) != 0 &&
                   procfs_map_has(looker->users.data, looker->users.length, status->st_uid) &&
                   procfs_map_has(looker->groups.data, looker->groups.length, status->st_gid)
               ? FACTS_OVERRIDE_YES
               : FACTS_OVERRIDE_NO;
}

static void read_acl(struct facts_node *node, int place)
{
    uint8_t acl[FACTS_ACL_MAX];
    char name[NAME_SIZE];
    ssize_t length;

    snprintf(name, sizeof name, "/proc/self/fd/%d", place);
    length = getxattr(name, "system.posix_acl_access", acl, sizeof acl);
    if (length > 0)
        node->acl = malloc((size_t)length);
    if (node->acl) {
        memcpy(node->acl, acl, (size_t)length);
        node->acl_length = (size_t)length;
    } else {
        node->has_unknown_acl = length > 0 || (length < 0 && errno != ENODATA && errno != ENOTSUP);
    }
}

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)((uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec);
}

static bool add_node(void *context, const struct stat *status, int place)
{
    struct looker *looker = context;
    struct facts_file *file = looker->file;
    struct facts_node *node;

    if (file->n_nodes == FACTS_NODES_MAX)
        return false;
    node = &file->nodes[file->n_nodes++];
    *node = (struct facts_node){.mode = status->st_mode,
                                .owner = status->st_uid,
                                .group = status->st_gid};
    if (looker->images) {
        node->override = override_of(looker, status);
        read_acl(node, place);
    }
    file->identity = (struct facts_identity){
        .device = status->st_dev,
        .inode = status->st_ino,
        .size = (uint64_t)status->st_size,
        .modified_ns = nanoseconds(&status->st_mtim),
        .changed_ns = nanoseconds(&status->st_ctim),
    };
    return true;
}

/* Looks at everything on the way and at the file itself, which is opened only to look into it. */
static void look_at_file(struct looker *looker, int root, int cwd)
{
    struct facts_file *file = looker->file;
    struct path_walk walk = {
        .root = root,
        .start = cwd,
        .bound = PATH_IN_ROOT,
        .step = add_node,
        .context = looker,
    };
    char *path = file->path;
    int fd;

    file->nodes = calloc(FACTS_NODES_MAX, sizeof *file->nodes);
    if (!file->nodes) {
        file->error = ENOMEM;
        return;
    }
    if (looker->images && platform_is_pattern(path)) {
        file->platform = images_platform(looker->images);
        file->error = -platform_expand(file->path, &file->platform, &path);
        if (file->error != 0)
            return;
    }
    fd = path_follow(&walk, path);
    file->error = fd >= 0 ? 0 : fd == -ECANCELED ? ENAMETOOLONG : -fd;
    if (fd >= 0 && looker->images)
        images_look(looker->images, fd, path, &file->image);
    if (fd >= 0)
        close(fd);
    if (path != file->path)
        free(path);
}

static int open_start(int32_t pid, const char *link)
{
    char name[NAME_SIZE];

    proc_name(name, pid, link);
    return open(name, O_PATH | O_CLOEXEC | O_DIRECTORY);
}

/* Those that memory ran out for are not told of, and with that the answer never becomes whole. */
static void look_at_files(struct facts *facts, const struct action_question *question,
                          const struct look_listener *listener)
{
    int root = open_start(question->pid, "root"), cwd = -1;
    struct looker looker;

    looker_init(&looker, facts, question, root);
    facts->files = calloc(question->n_files, sizeof *facts->files);
    for (size_t i = 0; facts->files && i < question->n_files; i++) {
        struct facts_file *file = &facts->files[facts->n_files];
        bool is_relative = question->files[i][0] != '/';

        looker.file = file;
        file->path = strdup(question->files[i]);
        if (!file->path)
            break;
        facts->n_files++;
        if (is_relative && cwd < 0)
            cwd = open_start(question->pid, "cwd");
        if (root < 0 || (is_relative && cwd < 0))
            file->error = EACCES;
        else
            look_at_file(&looker, root, cwd);
        if (listener)
            listener->file(listener->context, file);
    }
    looker_deinit(&looker);
    if (root >= 0)
        close(root);
    if (cwd >= 0)
        close(cwd);
}

static void read_fact(struct facts *facts, int32_t pid, uint32_t fact)
{
    switch (fact) {
    case FACTS_STAT:
        read_proc(&facts->stat, pid, "stat", FACTS_TEXT_MAX);
        break;
    case FACTS_STATUS:
        read_proc(&facts->status, pid, "status", FACTS_TEXT_MAX);
        break;
    case FACTS_CGROUP:
        read_proc(&facts->cgroup, pid, "cgroup", FACTS_TEXT_MAX);
        break;
    case FACTS_FREEZER:
        read_freezer(facts, pid);
        break;
    case FACTS_THREADS:
        read_threads(facts, pid);
        break;
    case FACTS_EXE:
        read_link(&facts->exe, pid, "exe");
        break;
    case FACTS_CWD:
        read_link(&facts->cwd, pid, "cwd");
        break;
    case FACTS_PARENT:
        read_parent(facts);
        break;
    case FACTS_ARGUMENTS:
        read_proc(&facts->arguments, pid, "cmdline", FACTS_ARGUMENTS_MAX);
        break;
    case FACTS_ENVIRON:
        read_proc(&facts->environ, pid, "environ", FACTS_ENVIRON_MAX);
        break;
    default:
        break;
    }
}

/* What the kernel knows by itself comes before what it may have to read from somewhere. */
static void read_facts(struct facts *facts, const struct action_question *question,
                       const struct look_listener *listener)
{
    static const uint32_t order[] = {
        FACTS_STAT, FACTS_STATUS, FACTS_CGROUP, FACTS_FREEZER,   FACTS_THREADS,
        FACTS_EXE,  FACTS_CWD,    FACTS_PARENT, FACTS_ARGUMENTS, FACTS_ENVIRON,
    };

    for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
        if (!((question->wanted | FACTS_STAT) & order[i]))
            continue;
        read_fact(facts, question->pid, order[i]);
        if (listener)
            listener->fact(listener->context, facts, order[i]);
    }
    if (question->wanted & FACTS_FILES)
        look_at_files(facts, question, listener);
}

/* The process of that number is still, or again, one with the same start time. */
static bool is_same(const struct facts *facts, const struct action_question *question)
{
    struct facts_text again = {0};
    struct procfs_stat before, after;
    bool is_same;

    if (facts->stat.error != 0 ||
        !procfs_read_stat(facts->stat.data, facts->stat.length, &before) ||
        (question->start_time != 0 && before.start_time != question->start_time))
        return false;
    read_proc(&again, question->pid, "stat", FACTS_TEXT_MAX);
    is_same = again.error == 0 && procfs_read_stat(again.data, again.length, &after) &&
              after.start_time == before.start_time && !after.has_ended;
    free(again.data);
    return is_same;
}

struct facts *look_at(const struct action_question *question, const struct look_listener *listener)
{
    struct facts *facts = facts_new(question->wanted, ENODATA);

    if (!facts)
        return NULL;
    read_facts(facts, question, listener);
    facts->is_alive = is_same(facts, question);
    return facts;
}
