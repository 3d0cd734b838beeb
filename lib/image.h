/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that a runtime is to load, read from their bytes: what a dynamic loader
 * or a .NET runtime finds in them before it runs any of their code. The bytes
 * are whatever is in the file: each offset is checked, and the work is bounded
 * by their number.
 *
 * It knows nothing of where the files are, nor of what else is there (needs.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum image_error {
    IMAGE_E_OTHER = 1, /* it is something else */
    IMAGE_E_DAMAGED,   /* it is cut, or contradicts itself: nobody can load it */
    IMAGE_E_UNKNOWN,   /* it has more, or something else, than we read; others may load it */
};

/* ELF: programs and shared libraries. */

enum {
    IMAGE_NEEDED_MAX = 128,
    IMAGE_VERSIONS_MAX = 512,
};

/* A version of a library that has to be there. */
struct image_version {
    const char *library;
    const char *name;
    bool is_weak; /* it may be missing */
};

/* The texts are in the bytes that were read, and live as long as those. */
struct image_elf {
    bool is_64;
    bool is_big_endian;
    uint16_t machine;        /* EM_* */
    bool is_library;         /* it can be loaded into a process that is there */
    bool binds_now;          /* undefined functions are looked for when it is loaded */
    const char *interpreter; /* PT_INTERP; NULL when there is none */
    const char *soname;      /* NULL when there is none, as the next two */
    const char *rpath;
    const char *runpath;
    const char *needed[IMAGE_NEEDED_MAX];
    size_t n_needed;
    struct image_version versions[IMAGE_VERSIONS_MAX];
    size_t n_versions;
    bool defines_versions;
    struct image_elf_tables *tables;
};

/*
 * 0, and the caller calls image_elf_deinit; IMAGE_E_OTHER, IMAGE_E_DAMAGED,
 * IMAGE_E_UNKNOWN, or -ENOMEM. It is read as loaders read it: by its segments,
 * since its sections may be missing.
 */
int image_elf_init(struct image_elf *image, const uint8_t *data, size_t length) MUST_CHECK;
void image_elf_deinit(struct image_elf *image);

/* Whether dlsym would find the name in it. */
bool image_elf_exports(const struct image_elf *image, const char *name);

/* Whether it has that version of itself. */
bool image_elf_defines_version(const struct image_elf *image, const char *name);

/*
 * The undefined symbols, one after the other: `*at` is 0 before the first one.
 * NULL after the last one. Weak ones, which may stay undefined, are among them.
 */
const char *image_elf_next_undefined(const struct image_elf *image, size_t *at, bool *ret_is_weak);

/* Whether the file takes variables from the C library: getenv and the like are undefined in it. */
bool image_elf_reads_environment(const struct image_elf *image);

/* Whether the id of ICorProfilerInfo11 is in the file, by which a profiler gets at the runtime's
 * own variables. In the first 32 MiB. */
bool image_names_info11(const uint8_t *data, size_t length);

/* PE: assemblies. */

struct image_pe {
    bool is_assembly;    /* there is a CLI header, metadata, and an assembly in that */
    bool has_hook;       /* a type StartupHook outside of any namespace */
    bool has_initialize; /* of it, a static method Initialize that takes nothing */
};

/*
 * 0, IMAGE_E_OTHER, IMAGE_E_DAMAGED, or IMAGE_E_UNKNOWN: where its tables are not in the compact
 * form, or its types may be in another file.
 */
int image_pe_read(const uint8_t *data, size_t length, struct image_pe *ret_image) MUST_CHECK;
