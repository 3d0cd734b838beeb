/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/needs.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/image.h"
#include "lib/util.h"

enum {
    PATH_SIZE = 4096,
    CACHE_HEAD_SIZE = 48,
    CACHE_ENTRY_SIZE = 24,
    CACHE_ENTRIES_MAX = 65536,
};

struct needs_library {
    char *name; /* by which it is needed */
    char *path; /* NULL when it was not found, and may be there all the same */
    struct image_elf image;
    bool is_known;
};

/* What became of looking for a library in one place or another. */
enum search {
    SEARCH_FOUND,
    SEARCH_NOT_HERE,
    SEARCH_UNKNOWN,
    SEARCH_NO_MEMORY,
};

static struct needs_library *library_free(struct needs_library *library)
{
    if (library) {
        image_elf_deinit(&library->image);
        free(library->name);
        free(library->path);
        free(library);
    }
    return NULL;
}

/* Of an image that was read, which it takes, or of none. NULL when memory is out. */
static struct needs_library *library_new(const char *name, const char *path,
                                         struct image_elf *image)
{
    struct needs_library *library = calloc(1, sizeof *library);

    if (library) {
        library->name = strdup(name);
        library->path = path ? strdup(path) : NULL;
    }
    if (!library || !library->name || (path && !library->path)) {
        if (image)
            image_elf_deinit(image);
        return library_free(library);
    }
    if (image) {
        library->image = *image;
        library->is_known = true;
    }
    return library;
}

/* The program. */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void tell_loader(struct needs *needs)
{
    const char *interpreter = needs->program->image.interpreter;
    const char *name = interpreter ? base_name(interpreter) : "";

    needs->is_musl = strncmp(name, "ld-musl-", 8) == 0;
    needs->is_glibc = strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 ||
                      strcmp(name, "ld.so.1") == 0;
}

int needs_init(struct needs *needs, const struct needs_view *view)
{
    struct image_elf image;
    int error;

    *needs = (struct needs){.view = view};
    error = image_elf_init(&image, view->program.data, view->program.length);
    if (error != 0)
        return error < 0 ? error : 0;
    needs->program = library_new("", view->program_path, &image);
    if (!needs->program)
        return -ENOMEM;
    tell_loader(needs);
    return 0;
}

static void forget(struct needs *needs, size_t n_kept)
{
    while (needs->n_libraries > n_kept)
        library_free(needs->libraries[--needs->n_libraries]);
}

void needs_deinit(struct needs *needs)
{
    forget(needs, 0);
    library_free(needs->program);
    *needs = (struct needs){0};
}

/* Places. */

static bool is_for_program(const struct needs *needs, const struct image_elf *image)
{
    const struct image_elf *program = &needs->program->image;

    return image->is_64 == program->is_64 && image->is_big_endian == program->is_big_endian &&
           image->machine == program->machine;
}

static enum needs_found open_at(const struct needs *needs, const char *path,
                                struct needs_bytes *ret_content)
{
    return needs->view->open(needs->view->context, path, ret_content);
}

/* What that says of the search. */
static enum search search_of(enum needs_found found)
{
    switch (found) {
    case NEEDS_ABSENT:
        return SEARCH_NOT_HERE;
    case NEEDS_FOUND:
        return SEARCH_FOUND;
    case NEEDS_UNKNOWN:
        break;
    }
    return SEARCH_UNKNOWN;
}

/* Takes what is at a path, when it is a library of the process's kind: loaders pass over others. */
static enum search try_path(struct needs *needs, const char *name, const char *path)
{
    struct needs_bytes content;
    struct image_elf image;
    enum needs_found found = open_at(needs, path, &content);
    int error;

    if (found != NEEDS_FOUND)
        return search_of(found);
    error = image_elf_init(&image, content.data, content.length);
    if (error < 0)
        return SEARCH_NO_MEMORY;
    if (error != 0)
        return error == IMAGE_E_OTHER ? SEARCH_NOT_HERE : SEARCH_UNKNOWN;
    if (!is_for_program(needs, &image)) {
        image_elf_deinit(&image);
        return SEARCH_NOT_HERE;
    }
    needs->libraries[needs->n_libraries] = library_new(name, path, &image);
    if (!needs->libraries[needs->n_libraries])
        return SEARCH_NO_MEMORY;
    needs->n_libraries++;
    return SEARCH_FOUND;
}

/* A folder of a search list, with $ORIGIN put in; false when it has something that we do not know,
 * or is no absolute path. */
static bool expand(const char *entry, size_t length, const char *origin,
                   char path[static PATH_SIZE])
{
    static const char *const forms[] = {"$ORIGIN", "${ORIGIN}"};
    const char *slash = origin ? strrchr(origin, '/') : NULL;
    int n;

    for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
        size_t size = strlen(forms[i]);

        if (length < size || strncmp(entry, forms[i], size) != 0)
            continue;
        if (!slash || memchr(entry + size, '$', length - size))
            return false;
        n = snprintf(path, PATH_SIZE, "%.*s%.*s", (int)(slash - origin), origin,
                     (int)(length - size), entry + size);
        return n > 0 && n < PATH_SIZE;
    }
    if (length == 0 || length >= PATH_SIZE || entry[0] != '/' || memchr(entry, '$', length))
        return false;
    memcpy(path, entry, length);
    path[length] = '\0';
    return true;
}

static enum search try_folder(struct needs *needs, const char *name, const char *folder)
{
    char path[2 * PATH_SIZE];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return try_path(needs, name, path);
}

/* A list of folders with colons, or what else is in `between`, between them. */
static enum search try_list(struct needs *needs, const char *name, const char *list,
                            const char *between, const char *origin)
{
    enum search found = SEARCH_NOT_HERE;

    if (!list)
        return found;
    for (size_t length;; list += length + 1) {
        char folder[PATH_SIZE];
        enum search one = SEARCH_UNKNOWN;

        length = strcspn(list, between);
        if (expand(list, length, origin, folder))
            one = try_folder(needs, name, folder);
        if (one == SEARCH_FOUND || one == SEARCH_NO_MEMORY)
            return one;
        if (one == SEARCH_UNKNOWN && length > 0)
            found = SEARCH_UNKNOWN;
        if (list[length] == '\0')
            return found;
    }
}

/* The folders of a library or program that lists some. The old kind of list goes for what those
 * need, too, and does not count beside the new one. */
static enum search try_own(struct needs *needs, const char *name,
                           const struct needs_library *library, bool is_old)
{
    const struct image_elf *image = &library->image;
    const char *list = is_old ? image->runpath ? NULL : image->rpath : image->runpath;

    return library->is_known ? try_list(needs, name, list, ":", library->path) : SEARCH_NOT_HERE;
}

/* The folders that a loader looks into by itself. */

/* Debian's names of folders for more than one architecture. */
static const char *multiarch_name(const struct needs *needs)
{
    switch (needs->program->image.machine) {
    case EM_X86_64:
        return "x86_64-linux-gnu";
    case EM_AARCH64:
        return "aarch64-linux-gnu";
    case EM_ARM:
        return "arm-linux-gnueabihf";
    case EM_386:
        return "i386-linux-gnu";
    case EM_S390:
        return "s390x-linux-gnu";
    case EM_PPC64:
        return "powerpc64le-linux-gnu";
    case EM_RISCV:
        return "riscv64-linux-gnu";
    default:
        return "";
    }
}

static enum search try_beside_loader(struct needs *needs, const char *name)
{
    const char *interpreter = needs->program->image.interpreter;
    char folder[PATH_SIZE];
    size_t length = (size_t)(base_name(interpreter) - interpreter);

    if (length < 2 || length >= sizeof folder)
        return SEARCH_NOT_HERE;
    memcpy(folder, interpreter, length - 1);
    folder[length - 1] = '\0';
    return try_folder(needs, name, folder);
}

/* What the loader's own list leads to (ld.so.cache, "glibc-ld.so.cache1.1"): in each entry, a name
 * and a path by their offsets. */
static enum search try_cache_entry(struct needs *needs, const char *name,
                                   const struct needs_bytes *cache, size_t at)
{
    struct bytes_reader reader = bytes_reader_over(cache->data + at + 4, 8);
    uint32_t key, value;

    if (!bytes_get_u32(&reader, &key) || !bytes_get_u32(&reader, &value) || key >= cache->length ||
        value >= cache->length || !memchr(cache->data + key, '\0', cache->length - key) ||
        !memchr(cache->data + value, '\0', cache->length - value))
        return SEARCH_UNKNOWN;
    if (strcmp((const char *)cache->data + key, name) != 0)
        return SEARCH_NOT_HERE;
    return try_path(needs, name, (const char *)cache->data + value);
}

/* It is looked into for each library, and opened once. */
static enum needs_found open_cache(struct needs *needs)
{
    static const char magic[20] = "glibc-ld.so.cache1.1";
    struct needs_bytes *cache = &needs->cache;
    struct bytes_reader reader;
    enum needs_found found = open_at(needs, "/etc/ld.so.cache", cache);

    if (found != NEEDS_FOUND)
        return found;
    if (cache->length < CACHE_HEAD_SIZE || memcmp(cache->data, magic, sizeof magic) != 0)
        return NEEDS_UNKNOWN;
    reader = bytes_reader_over(cache->data + sizeof magic, 4);
    if (!bytes_get_u32(&reader, &needs->n_cached) || needs->n_cached > CACHE_ENTRIES_MAX ||
        CACHE_HEAD_SIZE + (size_t)needs->n_cached * CACHE_ENTRY_SIZE > cache->length)
        return NEEDS_UNKNOWN;
    return NEEDS_FOUND;
}

static enum search try_cache(struct needs *needs, const char *name)
{
    enum search found = SEARCH_NOT_HERE;

    if (!needs->has_cache) {
        needs->has_cache = true;
        needs->cache_found = open_cache(needs);
    }
    if (needs->cache_found != NEEDS_FOUND)
        return search_of(needs->cache_found);
    for (size_t i = 0; i < needs->n_cached && found == SEARCH_NOT_HERE; i++)
        found = try_cache_entry(needs, name, &needs->cache, CACHE_HEAD_SIZE + i * CACHE_ENTRY_SIZE);
    return found;
}

static enum search try_glibc_folders(struct needs *needs, const char *name)
{
    const char *multiarch = multiarch_name(needs);
    enum search found = try_cache(needs, name);
    char folders[256];

    if (found != SEARCH_NOT_HERE)
        return found;
    snprintf(folders, sizeof folders, "/lib/%s:/usr/lib/%s:/lib64:/usr/lib64:/lib:/usr/lib",
             multiarch, multiarch);
    found = try_list(needs, name, folders, ":", NULL);
    return found == SEARCH_NOT_HERE ? try_beside_loader(needs, name) : found;
}

/* musl has a file with its list, named like the loader and beside its folder. */
static enum search try_musl_folders(struct needs *needs, const char *name)
{
    const char *loader = base_name(needs->program->image.interpreter);
    size_t length = strcspn(loader, ".");
    char path[PATH_SIZE], list[PATH_SIZE];
    struct needs_bytes content;
    enum needs_found found;

    if (snprintf(path, sizeof path, "/etc/%.*s.path", (int)length, loader) >= (int)sizeof path)
        return SEARCH_UNKNOWN;
    found = open_at(needs, path, &content);
    if (found == NEEDS_ABSENT)
        return try_list(needs, name, "/lib:/usr/local/lib:/usr/lib", ":", NULL);
    if (found != NEEDS_FOUND || content.length >= sizeof list)
        return SEARCH_UNKNOWN;
    memcpy(list, content.data, content.length);
    list[content.length] = '\0';
    return try_list(needs, name, list, ":\n", NULL);
}

/* Libraries. */

/* musl is all of these by itself. */
static bool is_part_of_musl(const char *name)
{
    static const char *const parts[] = {"libc.",  "libpthread.", "librt.",  "libm.",
                                        "libdl.", "libutil.",    "libxnet."};

    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        if (strncmp(name, parts[i], strlen(parts[i])) == 0)
            return true;
    }
    return false;
}

static struct needs_library *find_known(const struct needs *needs, const char *name)
{
    for (size_t i = 0; i < needs->n_libraries; i++) {
        struct needs_library *library = needs->libraries[i];
        const char *soname = library->image.soname;

        if (strcmp(library->name, name) == 0 || (soname && strcmp(soname, name) == 0))
            return library;
    }
    return NULL;
}

/* The places of glibc in its order, which for musl is another one; there, lists of both kinds go
 * for what those need, too. */

static enum search try_old_lists(struct needs *needs, const char *name,
                                 const struct needs_library *by)
{
    enum search found = try_own(needs, name, by, true);

    for (size_t i = 0; i < needs->n_libraries && found == SEARCH_NOT_HERE; i++)
        found = try_own(needs, name, needs->libraries[i], true);
    return found == SEARCH_NOT_HERE ? try_own(needs, name, needs->program, true) : found;
}

static enum search try_library_path(struct needs *needs, const char *name,
                                    const struct needs_library *by)
{
    const char *list = needs->view->library_path;

    (void)by;
    if (needs->view->has_unknown_environment)
        return SEARCH_UNKNOWN;
    return list && *list != '\0' ? try_list(needs, name, list, ":;", needs->view->program_path)
                                 : SEARCH_NOT_HERE;
}

static enum search try_new_lists(struct needs *needs, const char *name,
                                 const struct needs_library *by)
{
    enum search found = try_own(needs, name, by, false);

    if (!needs->is_musl)
        return found;
    for (size_t i = 0; i < needs->n_libraries && found == SEARCH_NOT_HERE; i++)
        found = try_own(needs, name, needs->libraries[i], false);
    return found == SEARCH_NOT_HERE ? try_own(needs, name, needs->program, false) : found;
}

static enum search try_standard(struct needs *needs, const char *name,
                                const struct needs_library *by)
{
    (void)by;
    return needs->is_musl ? try_musl_folders(needs, name) : try_glibc_folders(needs, name);
}

static enum search search(struct needs *needs, const char *name, const struct needs_library *by)
{
    static enum search (*const places[])(struct needs *, const char *,
                                         const struct needs_library *) = {try_old_lists,
                                                                          try_library_path,
                                                                          try_new_lists,
                                                                          try_standard};
    bool is_unsure = false;

    if (strchr(name, '/'))
        return name[0] == '/' ? try_path(needs, name, name) : SEARCH_UNKNOWN;
    if (needs->is_musl && is_part_of_musl(name))
        return try_path(needs, name, needs->program->image.interpreter);
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
        enum search found = places[i](needs, name, by);

        /* What comes after a place that is not known may be another one than the loader takes. */
        if (found == SEARCH_NO_MEMORY || (found == SEARCH_FOUND && !is_unsure))
            return found;
        if (found == SEARCH_FOUND)
            forget(needs, needs->n_libraries - 1);
        is_unsure |= found != SEARCH_NOT_HERE;
    }
    return is_unsure || needs->view->is_loaded(needs->view->context, name) ? SEARCH_UNKNOWN
                                                                           : SEARCH_NOT_HERE;
}

/* Adds one that is needed, unless it is there. SEARCH_UNKNOWN adds one of which nothing is known.
 */
static enum search add(struct needs *needs, const char *name, const struct needs_library *by)
{
    enum search found;

    if (find_known(needs, name))
        return SEARCH_FOUND;
    if (needs->n_libraries == NEEDS_LIBRARIES_MAX)
        return SEARCH_UNKNOWN;
    found = search(needs, name, by);
    if (found != SEARCH_UNKNOWN)
        return found;
    needs->libraries[needs->n_libraries] = library_new(name, NULL, NULL);
    if (!needs->libraries[needs->n_libraries])
        return SEARCH_NO_MEMORY;
    needs->n_libraries++;
    return found;
}

/* Adds those that a library needs. The name of the one that is not there, or NULL. */
static int add_all(struct needs *needs, const struct needs_library *by, const char **ret_missing)
{
    for (size_t i = 0; i < by->image.n_needed; i++) {
        switch (add(needs, by->image.needed[i], by)) {
        case SEARCH_NO_MEMORY:
            return -ENOMEM;
        case SEARCH_NOT_HERE:
            *ret_missing = by->image.needed[i];
            return 0;
        case SEARCH_FOUND:
        case SEARCH_UNKNOWN:
            break;
        }
    }
    return 0;
}

/* What a library needs, and what that needs, from the first one that was added for it on. */
static int add_closure(struct needs *needs, const struct needs_library *of,
                       const char **ret_missing)
{
    size_t at = needs->n_libraries;
    int error = add_all(needs, of, ret_missing);

    for (; error == 0 && !*ret_missing && at < needs->n_libraries; at++)
        error = add_all(needs, needs->libraries[at], ret_missing);
    return error;
}

/* What the program has by itself. One that is missing there is one that we do not find: it runs. */
static int find_scope(struct needs *needs)
{
    const char *missing = NULL;
    int error = 0;

    if (needs->has_scope)
        return 0;
    error = add_closure(needs, needs->program, &missing);
    if (error == 0 && missing) {
        struct needs_library *library = library_new(missing, NULL, NULL);

        if (!library)
            error = -ENOMEM;
        else if (needs->n_libraries < NEEDS_LIBRARIES_MAX)
            needs->libraries[needs->n_libraries++] = library;
        else
            library_free(library);
    }
    needs->n_scope = needs->n_libraries;
    needs->has_scope = error == 0;
    return error;
}

/* Judgements. */

static enum preflight judge_kind(const struct needs *needs, const struct image_elf *image)
{
    const struct image_elf *program = needs->program ? &needs->program->image : NULL;

    if (program && image->is_64 != program->is_64)
        return PREFLIGHT_WRONG_CLASS;
    if (program && image->is_big_endian != program->is_big_endian)
        return PREFLIGHT_WRONG_BYTE_ORDER;
    if (program && image->machine != program->machine)
        return PREFLIGHT_WRONG_MACHINE;
    return image->is_library ? PREFLIGHT_GOOD : PREFLIGHT_NOT_A_LIBRARY;
}

/* The library by which one tells that a file was built for the other of the two, or NULL. Under
 * musl, libraries of glibc are only missing: what needs no more than the names that musl has goes.
 */
static const char *foreign_libc(const struct needs *needs, const struct image_elf *image)
{
    for (size_t i = 0; needs->is_glibc && i < image->n_needed; i++) {
        if (strncmp(image->needed[i], "libc.musl-", 10) == 0 ||
            strcmp(image->needed[i], "libc.so") == 0)
            return image->needed[i];
    }
    return NULL;
}

/* A version that is not there, in the words of loaders: those of musl do not look. */
static const struct image_version *missing_version(const struct needs *needs,
                                                   const struct image_elf *image)
{
    for (size_t i = 0; needs->is_glibc && i < image->n_versions; i++) {
        const struct image_version *version = &image->versions[i];
        const struct needs_library *library = find_known(needs, version->library);

        if (!version->is_weak && library && library->is_known && library->image.defines_versions &&
            !image_elf_defines_version(&library->image, version->name))
            return version;
    }
    return NULL;
}

static bool knows_all(const struct needs *needs)
{
    for (size_t i = 0; i < needs->n_libraries; i++) {
        if (!needs->libraries[i]->is_known)
            return false;
    }
    return !needs->view->has_preload && !needs->view->has_unknown_environment;
}

static bool is_exported(const struct needs *needs, const char *name)
{
    for (size_t i = 0; i < needs->n_libraries; i++) {
        if (image_elf_exports(&needs->libraries[i]->image, name))
            return true;
    }
    return image_elf_exports(&needs->program->image, name);
}

/* A symbol that nobody has. It has to be there at once, or the program ends when it is called. */
static const char *missing_symbol(const struct needs *needs, const struct image_elf *image)
{
    const char *name;
    bool is_weak;
    size_t at = 0;

    if (!knows_all(needs))
        return NULL;
    while ((name = image_elf_next_undefined(image, &at, &is_weak))) {
        if (!is_weak && !is_exported(needs, name))
            return name;
    }
    return NULL;
}

static void tell(struct needs_verdict *verdict, enum preflight problem, const char *detail)
{
    verdict->problem = problem;
    snprintf(verdict->detail, sizeof verdict->detail, "%s", detail);
}

static void judge_versions(const struct needs *needs, const struct image_elf *image,
                           struct needs_verdict *verdict)
{
    const struct image_version *version = missing_version(needs, image);

    for (size_t i = needs->n_scope; !version && i < needs->n_libraries; i++)
        version = missing_version(needs, &needs->libraries[i]->image);
    if (version) {
        verdict->problem = PREFLIGHT_NEEDS_VERSION;
        snprintf(verdict->detail, sizeof verdict->detail, "%s of %s", version->name,
                 version->library);
    }
}

/* By what it needs, beside what was found before. */
static int judge_closure(struct needs *needs, const struct needs_library *library,
                         struct needs_verdict *verdict)
{
    const char *missing = NULL, *symbol;
    int error = add_closure(needs, library, &missing);

    if (error != 0)
        return error;
    if (missing) {
        tell(verdict,
             needs->is_musl && strncmp(missing, "ld-linux", 8) == 0 ? PREFLIGHT_WRONG_LIBC
                                                                    : PREFLIGHT_NEEDS_LIBRARY,
             missing);
        return 0;
    }
    judge_versions(needs, &library->image, verdict);
    symbol = verdict->problem == PREFLIGHT_GOOD ? missing_symbol(needs, &library->image) : NULL;
    if (symbol)
        tell(verdict, PREFLIGHT_NEEDS_SYMBOL, symbol);
    return 0;
}

/* Where the program looks where everybody does, what it has is what the library finds; so all of
 * that is only looked at to confirm a problem. Most libraries have none. */
static int judge_needs(struct needs *needs, const struct needs_library *library,
                       struct needs_verdict *verdict)
{
    const struct image_elf *program = &needs->program->image;
    int error;

    if (!needs->has_scope && !program->rpath && !program->runpath) {
        error = judge_closure(needs, library, verdict);
        if (error != 0 || verdict->problem == PREFLIGHT_GOOD)
            return error;
        forget(needs, 0);
        tell(verdict, PREFLIGHT_GOOD, "");
    }
    error = find_scope(needs);
    return error == 0 ? judge_closure(needs, library, verdict) : error;
}

static int judge(struct needs *needs, const struct needs_library *library,
                 struct needs_verdict *verdict)
{
    const struct image_elf *image = &library->image;
    const char *libc;
    int error = 0;

    verdict->reads_environment = image_elf_reads_environment(image);
    verdict->problem = judge_kind(needs, image);
    if (verdict->problem != PREFLIGHT_GOOD)
        return 0;
    libc = foreign_libc(needs, image);
    if (libc)
        tell(verdict, PREFLIGHT_WRONG_LIBC, libc);
    else if (!image_elf_exports(image, "DllGetClassObject"))
        verdict->problem = PREFLIGHT_NO_ENTRY_POINT;
    else if (needs->is_glibc || needs->is_musl)
        error = judge_needs(needs, library, verdict);
    forget(needs, needs->n_scope);
    return error;
}

int needs_check(struct needs *needs, const char *path, struct needs_bytes content,
                struct needs_verdict *ret_verdict)
{
    struct needs_verdict verdict = {.problem = PREFLIGHT_GOOD};
    struct needs_library *library;
    struct image_elf image;
    int error = image_elf_init(&image, content.data, content.length);

    if (error < 0)
        return error;
    if (error == 0) {
        library = library_new("", path, &image);
        error = library ? judge(needs, library, &verdict) : -ENOMEM;
        library_free(library);
        if (error != 0)
            return error;
    } else if (error != IMAGE_E_UNKNOWN) {
        verdict.problem = error == IMAGE_E_OTHER ? PREFLIGHT_NOT_ELF : PREFLIGHT_DAMAGED;
    }
    *ret_verdict = verdict;
    return 0;
}
