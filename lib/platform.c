/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/platform.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "lib/bytes.h"

static const struct {
    const char *name; /* as in the runtime identifiers of .NET */
    uint16_t machine;
    bool is_64;
    bool is_big_endian;
} arches[PLATFORM_ARCHES] = {
    [PLATFORM_X64] = {"x64", EM_X86_64, true, false},
    [PLATFORM_X86] = {"x86", EM_386, false, false},
    [PLATFORM_ARM64] = {"arm64", EM_AARCH64, true, false},
    [PLATFORM_ARM] = {"arm", EM_ARM, false, false},
    [PLATFORM_S390X] = {"s390x", EM_S390, true, true},
    [PLATFORM_PPC64LE] = {"ppc64le", EM_PPC64, true, false},
    [PLATFORM_RISCV64] = {"riscv64", EM_RISCV, true, false},
    [PLATFORM_LOONGARCH64] = {"loongarch64", 258, true, false}, /* older headers have no name */
};

static const char *const libcs[PLATFORM_LIBCS] = {
    [PLATFORM_GLIBC] = "glibc",
    [PLATFORM_MUSL] = "musl",
};

static const struct {
    const char *name;
    enum platform_word word;
} words[] = {{"rid", PLATFORM_RID}, {"arch", PLATFORM_ARCH}, {"libc", PLATFORM_LIBC}};

enum platform_arch platform_arch_of(uint16_t machine, bool is_64, bool is_big_endian)
{
    for (int i = PLATFORM_ARCH_UNKNOWN + 1; i < PLATFORM_ARCHES; i++) {
        if (arches[i].machine == machine && arches[i].is_64 == is_64 &&
            arches[i].is_big_endian == is_big_endian)
            return (enum platform_arch)i;
    }
    return PLATFORM_ARCH_UNKNOWN;
}

bool platform_find(const char *name, size_t length, enum platform_word *ret_word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        if (strlen(words[i].name) == length && memcmp(words[i].name, name, length) == 0) {
            *ret_word = words[i].word;
            return true;
        }
    }
    return false;
}

bool platform_is_pattern(const char *path)
{
    static const char marks[] = {PLATFORM_RID, PLATFORM_ARCH, PLATFORM_LIBC, '\0'};

    return strpbrk(path, marks) != NULL;
}

/* False when it is not known. */
static bool put_word(struct bytes *out, enum platform_word word, const struct platform *platform)
{
    bool needs_arch = word != PLATFORM_LIBC, needs_libc = word != PLATFORM_ARCH;

    if ((needs_arch && platform->arch == PLATFORM_ARCH_UNKNOWN) ||
        (needs_libc && platform->libc == PLATFORM_LIBC_UNKNOWN))
        return false;
    if (word == PLATFORM_RID)
        bytes_put_string(out, platform->libc == PLATFORM_MUSL ? "linux-musl-" : "linux-");
    bytes_put_string(out, needs_arch ? arches[platform->arch].name : libcs[platform->libc]);
    return true;
}

int platform_expand(const char *pattern, const struct platform *platform, char **ret_path)
{
    struct bytes CLEANUP(bytes_deinit) out;
    int error;

    bytes_init(&out, SIZE_MAX - 1);
    for (; *pattern != '\0'; pattern++) {
        if (*pattern < PLATFORM_RID || *pattern > PLATFORM_LIBC)
            bytes_put_u8(&out, (uint8_t)*pattern);
        else if (!put_word(&out, (enum platform_word) * pattern, platform))
            return -ENODATA;
    }
    error = bytes_finish(&out);
    if (error == 0)
        *ret_path = (char *)bytes_take(&out);
    return error;
}
