/* SPDX-License-Identifier: Apache-2.0 */

#include "probe/images.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "host/path.h"
#include "lib/image.h"
#include "lib/needs.h"

enum {
    NAME_SIZE = 64,
    FILE_MAX = 256 * 1024 * 1024,
    SMALL_MAX = 256 * 1024, /* what costs less to read than to map and to forget */
    ROOM_SIZE = 2 * 1024 * 1024,
    MAPPINGS_MAX = 512,
    MAPS_MAX = 1024 * 1024, /* of /proc/PID/maps */
};

struct mapping {
    void *content;
    size_t length;
    bool is_copy;
};

struct images {
    int32_t pid;
    int root;
    struct needs_view view;
    struct needs needs;
    bool has_needs;
    char program_path[PATH_MAX];
    char *library_path;
    struct mapping mappings[MAPPINGS_MAX];
    size_t n_mappings;
    size_t room_used; /* of the room for small files */
    char *maps;       /* /proc/PID/maps, read when it is first asked for */
    bool has_maps;
};

/* Contents. */

/* As much as is there by now, into memory that is there for the next process, too: to give it back
 * and take it again each time costs more than all of the look. */
static int read_small(struct images *images, int fd, struct mapping *mapping)
{
    static uint8_t room[ROOM_SIZE];
    size_t length = 0;
    ssize_t n;

    mapping->is_copy = true;
    mapping->content = room + images->room_used;
    do {
        n = read(fd, (char *)mapping->content + length, mapping->length - length);
        if (n > 0)
            length += (size_t)n;
    } while (n > 0 && length < mapping->length);
    if (n < 0)
        return -errno;
    mapping->length = length;
    images->room_used += (length + 63) / 64 * 64;
    return 0;
}

static int map_large(int fd, struct mapping *mapping)
{
    mapping->content = mmap(NULL, mapping->length, PROT_READ, MAP_PRIVATE, fd, 0);
    return mapping->content == MAP_FAILED ? -errno : 0;
}

/* A regular file behind an O_PATH descriptor, which stays for as long as we look. -EFBIG for one
 * that is too large. */
static int take_content(struct images *images, int place, struct needs_bytes *ret_content)
{
    struct mapping mapping = {.length = 0};
    char name[NAME_SIZE];
    struct stat status;
    int fd, error;

    if (fstat(place, &status) != 0 || !S_ISREG(status.st_mode) ||
        images->n_mappings == MAPPINGS_MAX)
        return -EINVAL;
    if (status.st_size > FILE_MAX)
        return -EFBIG;
    *ret_content = (struct needs_bytes){.length = 0};
    if (status.st_size == 0)
        return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", place);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    mapping.length = (size_t)status.st_size;
    error = mapping.length <= SMALL_MAX && mapping.length + 64 <= ROOM_SIZE - images->room_used
                ? read_small(images, fd, &mapping)
                : map_large(fd, &mapping);
    close(fd);
    if (error != 0)
        return error;
    images->mappings[images->n_mappings++] = mapping;
    *ret_content = (struct needs_bytes){mapping.content, mapping.length};
    return 0;
}

static bool go_on(void *context, const struct stat *status, int place)
{
    (void)context;
    (void)status;
    (void)place;
    return true;
}

/* As the loader of the process would open it. */
static enum needs_found open_file(void *context, const char *path, struct needs_bytes *ret_content)
{
    struct images *images = context;
    struct path_walk walk = {.root = images->root,
                             .start = images->root,
                             .bound = PATH_IN_ROOT,
                             .step = go_on};
    int place = path_follow(&walk, path), error;

    if (place < 0)
        return place == -ENOENT || place == -ENOTDIR ? NEEDS_ABSENT : NEEDS_UNKNOWN;
    error = take_content(images, place, ret_content);
    close(place);
    return error == 0 ? NEEDS_FOUND : NEEDS_UNKNOWN;
}

/* What the process has mapped, for libraries that came from nobody knows where. */
static void read_maps(struct images *images)
{
    char name[NAME_SIZE];
    size_t length = 0;
    ssize_t n;
    int fd;

    images->has_maps = true;
    snprintf(name, sizeof name, "/proc/%d/maps", images->pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    images->maps = fd >= 0 ? malloc(MAPS_MAX + 1) : NULL;
    while (images->maps && (n = read(fd, images->maps + length, MAPS_MAX - length)) != 0) {
        if (n > 0) {
            length += (size_t)n;
            continue;
        }
        free(images->maps);
        images->maps = NULL;
    }
    if (images->maps)
        images->maps[length] = '\0';
    if (length == MAPS_MAX) {
        free(images->maps);
        images->maps = NULL;
    }
    if (fd >= 0)
        close(fd);
}

static bool is_loaded(void *context, const char *name)
{
    struct images *images = context;
    size_t length = strlen(name);

    if (!images->has_maps)
        read_maps(images);
    if (!images->maps)
        return true;
    for (const char *at = images->maps; (at = strstr(at, name)); at += length) {
        if (at > images->maps && at[-1] == '/' && (at[length] == '\n' || at[length] == ' '))
            return true;
    }
    return false;
}

/* The process. */

/* A variable of the block that a program is started with. */
static const char *variable(const struct facts_text *variables, const char *name)
{
    size_t length = strlen(name);

    for (size_t at = 0; at < variables->length; at += strlen(variables->data + at) + 1) {
        const char *entry = variables->data + at;

        if (strncmp(entry, name, length) == 0 && entry[length] == '=')
            return entry + length + 1;
    }
    return NULL;
}

static int take_environment(struct images *images, const struct facts_text *variables)
{
    const char *path, *preload;

    if (variables->error != 0 || variables->is_cut) {
        images->view.has_unknown_environment = true;
        return 0;
    }
    path = variable(variables, "LD_LIBRARY_PATH");
    preload = variable(variables, "LD_PRELOAD");
    images->view.has_preload = preload && *preload != '\0';
    images->library_path = path ? strdup(path) : NULL;
    images->view.library_path = images->library_path;
    return path && !images->library_path ? -ENOMEM : 0;
}

/* The program itself, whatever is at its path by now. */
static void take_program(struct images *images)
{
    char name[NAME_SIZE];
    ssize_t length;
    int place;

    snprintf(name, sizeof name, "/proc/%d/exe", images->pid);
    length = readlink(name, images->program_path, sizeof images->program_path - 1);
    if (length > 0) {
        images->program_path[length] = '\0';
        images->view.program_path = images->program_path;
    }
    place = open(name, O_PATH | O_CLOEXEC);
    if (place < 0)
        return;
    if (take_content(images, place, &images->view.program) != 0)
        images->view.program = (struct needs_bytes){.length = 0};
    close(place);
}

struct images *images_new(int32_t pid, int root, const struct facts_text *variables)
{
    struct images *images = calloc(1, sizeof *images);

    if (!images)
        return NULL;
    images->pid = pid;
    images->root = root;
    images->view.open = open_file;
    images->view.is_loaded = is_loaded;
    images->view.context = images;
    return take_environment(images, variables) == 0 ? images : images_free(images);
}

struct images *images_free(struct images *images)
{
    if (!images)
        return NULL;
    if (images->has_needs)
        needs_deinit(&images->needs);
    for (size_t i = 0; i < images->n_mappings; i++) {
        struct mapping *mapping = &images->mappings[i];

        if (!mapping->is_copy)
            munmap(mapping->content, mapping->length);
    }
    free(images->library_path);
    free(images->maps);
    free(images);
    return NULL;
}

/* Kinds of files. */

static bool begins_with(const struct needs_bytes *content, const char *magic)
{
    size_t length = strlen(magic);

    return content->length >= length && memcmp(content->data, magic, length) == 0;
}

/* Once the program is looked into; false when memory is out. */
static bool begin_needs(struct images *images)
{
    if (images->has_needs)
        return true;
    take_program(images);
    images->has_needs = needs_init(&images->needs, &images->view) == 0;
    return images->has_needs;
}

struct platform images_platform(struct images *images)
{
    struct platform platform = {PLATFORM_ARCH_UNKNOWN, PLATFORM_LIBC_UNKNOWN};
    struct image_elf program;

    if (!begin_needs(images) ||
        image_elf_init(&program, images->view.program.data, images->view.program.length) != 0)
        return platform;
    platform.arch = platform_arch_of(program.machine, program.is_64, program.is_big_endian);
    image_elf_deinit(&program);
    if (images->needs.is_glibc || images->needs.is_musl)
        platform.libc = images->needs.is_musl ? PLATFORM_MUSL : PLATFORM_GLIBC;
    return platform;
}

/* What memory runs out for stays unknown. */
static void look_into_library(struct images *images, const char *path, struct needs_bytes content,
                              struct facts_image *image)
{
    struct needs_verdict verdict;

    if (!begin_needs(images))
        return;
    if (needs_check(&images->needs, path, content, &verdict) != 0)
        return;
    image->kind = FACTS_IMAGE_ELF;
    image->problem = verdict.problem;
    image->reads_environment = verdict.reads_environment;
    image->names_info11 = image_names_info11(content.data, content.length);
    if (verdict.detail[0] != '\0')
        image->detail = strdup(verdict.detail);
}

static void look_into_assembly(struct needs_bytes content, struct facts_image *image)
{
    struct image_pe assembly = {0};
    int error = image_pe_read(content.data, content.length, &assembly);

    image->kind = error == IMAGE_E_OTHER ? FACTS_IMAGE_OTHER : FACTS_IMAGE_PE;
    if (error == IMAGE_E_DAMAGED)
        image->problem = PREFLIGHT_DAMAGED;
    else if (error != 0)
        return;
    else if (!assembly.is_assembly)
        image->problem = PREFLIGHT_NOT_MANAGED;
    else if (!assembly.has_hook)
        image->problem = PREFLIGHT_NO_STARTUP_HOOK;
    else if (!assembly.has_initialize)
        image->problem = PREFLIGHT_NO_INITIALIZE;
}

void images_look(struct images *images, int place, const char *path, struct facts_image *image)
{
    struct needs_bytes content;
    struct statvfs system;
    int error = take_content(images, place, &content);

    if (error == -EFBIG)
        image->problem = PREFLIGHT_TOO_LARGE;
    if (error != 0)
        return;
    image->is_noexec = fstatvfs(place, &system) == 0 && (system.f_flag & ST_NOEXEC);
    if (begins_with(&content, "\x7f"
                              "ELF"))
        look_into_library(images, path, content, image);
    else if (begins_with(&content, "MZ"))
        look_into_assembly(content, image);
    else
        image->kind = FACTS_IMAGE_OTHER;
}
