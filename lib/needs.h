/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a process could load a shared library: worked out as its dynamic
 * loader would do it, from the bytes of the files that it would find.
 *
 * Whoever asks says what the process sees (struct needs_view); nothing here
 * opens a file. What cannot be told is no problem: only what is wrong for sure
 * is one. Work is bounded: by the number of libraries, and of places each is
 * looked for in.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/preflight.h"
#include "lib/util.h"

enum needs_found {
    NEEDS_FOUND,
    NEEDS_ABSENT,
    NEEDS_UNKNOWN,
};

struct needs_bytes {
    const uint8_t *data;
    size_t length;
};

struct needs_view {
    /* The content of a file, by an absolute path; it stays there as long as the view. */
    enum needs_found (*open)(void *context, const char *path, struct needs_bytes *ret_content);
    /* Whether the process has a library of that file name already, or may have. */
    bool (*is_loaded)(void *context, const char *name);
    void *context;
    struct needs_bytes program; /* its executable; length 0 when it could not be read */
    const char *program_path;   /* NULL when that is not known */
    const char *library_path;   /* LD_LIBRARY_PATH; NULL when there is none */
    bool has_unknown_environment;
    bool has_preload; /* LD_PRELOAD brings libraries that are not looked for */
};

enum { NEEDS_LIBRARIES_MAX = 64, NEEDS_DETAIL_MAX = 256 };

struct needs_library;

struct needs {
    const struct needs_view *view;
    struct needs_library *program; /* NULL when it could not be read */
    bool is_musl;
    bool is_glibc;  /* neither: nothing is known of its loader */
    bool has_cache; /* the loader's own list was looked for; what came of that, and its entries */
    enum needs_found cache_found;
    struct needs_bytes cache;
    uint32_t n_cached;
    bool has_scope;
    struct needs_library *libraries[NEEDS_LIBRARIES_MAX];
    size_t n_libraries;
    size_t n_scope; /* the first ones: those that the program itself has */
};

struct needs_verdict {
    enum preflight problem;        /* PREFLIGHT_GOOD when nothing is known against it */
    char detail[NEEDS_DETAIL_MAX]; /* the library, version or symbol; foreign text */
    bool reads_environment;        /* it takes variables from the C library */
};

/* 0 or -ENOMEM. The view has to live as long. */
int needs_init(struct needs *needs, const struct needs_view *view) MUST_CHECK;
void needs_deinit(struct needs *needs);

/*
 * Judges a library of which `path` is where the process finds it. 0, or -ENOMEM,
 * when nothing is known. What is no ELF file is PREFLIGHT_NOT_ELF.
 */
int needs_check(struct needs *needs, const char *path, struct needs_bytes content,
                struct needs_verdict *ret_verdict) MUST_CHECK;
