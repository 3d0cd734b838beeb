/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/golden/golden.h"

#include <dirent.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/bytes.h"

static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        err(2, "memory");
    return copy;
}

/* The content and a NUL. */
static char *read_file(const char *path, size_t *ret_length)
{
    FILE *file = fopen(path, "r");
    struct stat status;
    char *bytes;

    if (!file || fstat(fileno(file), &status) != 0)
        err(2, "%s", path);
    *ret_length = (size_t)status.st_size;
    bytes = calloc(1, *ret_length + 1);
    if (!bytes || fread(bytes, 1, *ret_length, file) != *ret_length)
        err(2, "%s", path);
    fclose(file);
    return bytes;
}

static void add_source(struct golden_sources *sources, const char *path, const char *name)
{
    struct policy_source source = {.name = copy_text(name)};

    source.bytes = read_file(path, &source.length);
    sources->list = realloc(sources->list, (sources->n + 1) * sizeof *sources->list);
    if (!sources->list)
        err(2, "memory");
    sources->list[sources->n++] = source;
}

static int is_policy(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);

    return length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_folder(struct golden_sources *sources, const char *folder)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_policy, compare_entries);

    if (n < 0)
        err(2, "%s", folder);
    for (int i = 0; i < n; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        add_source(sources, path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

void golden_read_sources(const char *path, struct golden_sources *ret_sources)
{
    struct stat status;
    const char *slash = strrchr(path, '/');

    *ret_sources = (struct golden_sources){.list = NULL};
    if (stat(path, &status) != 0)
        err(2, "%s", path);
    if (S_ISDIR(status.st_mode))
        add_folder(ret_sources, path);
    else
        add_source(ret_sources, path, slash ? slash + 1 : path);
    if (ret_sources->n == 0)
        errx(2, "%s: no policy file in it", path);
}

void golden_free_sources(struct golden_sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        free((void *)(uintptr_t)sources->list[i].name);
        free((void *)(uintptr_t)sources->list[i].bytes);
    }
    free(sources->list);
}

struct entry {
    const char *name;
    uint32_t number;
};

static bool find(const struct entry *entries, size_t n, const char *name, uint32_t *ret_number)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(entries[i].name, name) == 0) {
            *ret_number = entries[i].number;
            return true;
        }
    }
    return false;
}

static bool user_number(void *context, const char *name, uint32_t *ret_number)
{
    static const struct entry users[] = {{"root", 0},
                                         {"toor", 0},
                                         {"acme", 1000},
                                         {"payments", 1001},
                                         {"build", 61234}};

    (void)context;
    return find(users, ARRAY_LENGTH(users), name, ret_number);
}

static bool group_number(void *context, const char *name, uint32_t *ret_number)
{
    static const struct entry groups[] = {{"root", 0}, {"diagport", 990}, {"diagport-admin", 991}};

    (void)context;
    return find(groups, ARRAY_LENGTH(groups), name, ret_number);
}

static bool link_target(void *context, const char *path, char **ret_target)
{
    (void)context;
    if (strcmp(path, "/usr/bin/dotnet") != 0)
        return false;
    *ret_target = copy_text("/usr/lib/dotnet/dotnet");
    return true;
}

static bool has_comment(const struct golden_sources *sources, const char *comment)
{
    return strstr(sources->list[0].bytes, comment) != NULL;
}

struct policy_host golden_host(const struct golden_sources *sources)
{
    return (struct policy_host){
        .user_number = user_number,
        .group_number = group_number,
        .link_target = link_target,
        .may_kill = !has_comment(sources, "# host: no-kill"),
        .has_peer_pidfd = !has_comment(sources, "# host: no-pidfd"),
    };
}

void golden_print_problems(const struct policy_problems *problems, FILE *out)
{
    struct bytes text;

    bytes_init(&text, SIZE_MAX - 1);
    for (size_t i = 0; i < problems->n; i++)
        policy_problem_print(&problems->list[i], &text);
    if (bytes_finish(&text) != 0)
        errx(2, "memory");
    fwrite(text.data, 1, text.length, out);
    bytes_deinit(&text);
    if (problems->n_dropped > 0)
        fprintf(out, "%zu more\n", problems->n_dropped);
}
