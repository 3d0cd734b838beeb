/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a program was built for, in the words that .NET has for it, and paths in
 * which these words stand for themselves: "/opt/agent/{rid}/native.so".
 *
 * A path with such a template is kept as a pattern: each template is one byte,
 * PLATFORM_RID and the like, which no path has otherwise.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

/* The first bytes that are not allowed in paths of a policy. */
enum platform_word {
    PLATFORM_RID = 1, /* linux-x64, linux-musl-arm64 */
    PLATFORM_ARCH,    /* x64 */
    PLATFORM_LIBC,    /* glibc, musl */
};

enum platform_arch {
    PLATFORM_ARCH_UNKNOWN,
    PLATFORM_X64,
    PLATFORM_X86,
    PLATFORM_ARM64,
    PLATFORM_ARM,
    PLATFORM_S390X,
    PLATFORM_PPC64LE,
    PLATFORM_RISCV64,
    PLATFORM_LOONGARCH64,
};

enum { PLATFORM_ARCHES = PLATFORM_LOONGARCH64 + 1 };

enum platform_libc {
    PLATFORM_LIBC_UNKNOWN,
    PLATFORM_GLIBC,
    PLATFORM_MUSL,
};

enum { PLATFORM_LIBCS = PLATFORM_MUSL + 1 };

struct platform {
    enum platform_arch arch;
    enum platform_libc libc;
};

/* By the head of an ELF file, and by whose loader it asks for. */
enum platform_arch platform_arch_of(uint16_t machine, bool is_64, bool is_big_endian);

/* The word with that name; false when there is none. */
bool platform_find(const char *name, size_t length, enum platform_word *ret_word) MUST_CHECK;

/* True of a pattern, false of a plain path. */
bool platform_is_pattern(const char *path);

/* The path for a platform, for the caller to free. 0, -ENODATA when a word of it is not known, or
 * -ENOMEM. */
int platform_expand(const char *pattern, const struct platform *platform,
                    char **ret_path) MUST_CHECK;
