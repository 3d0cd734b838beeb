/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/loaded_file.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BEGINNING = 4096 };

static bool is_elf_like_us(const char *data, size_t length)
{
    Elf64_Ehdr ours, theirs;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool same = fd >= 0 && read(fd, &ours, sizeof ours) == (ssize_t)sizeof ours;

    if (fd >= 0)
        close(fd);
    if (!same || length < sizeof theirs)
        return false;
    memcpy(&theirs, data, sizeof theirs);
    return memcmp(theirs.e_ident, ELFMAG, SELFMAG) == 0 &&
           theirs.e_ident[EI_CLASS] == ours.e_ident[EI_CLASS] && theirs.e_machine == ours.e_machine;
}

static void read_mark(const char *data, size_t length, const char *label, char *mark)
{
    const char *at = memmem(data, length, label, strlen(label));
    size_t n = 0;

    if (!at)
        return;
    at += strlen(label);
    while (at + n < data + length && n < LOADED_FILE_WORD_MAX - 1 &&
           ((at[n] >= 'a' && at[n] <= 'z') || at[n] == '-')) {
        mark[n] = at[n];
        n++;
    }
}

struct loaded_file loaded_file_read(const char *path, const char *label)
{
    struct loaded_file file = {.is_there = false};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char data[BEGINNING];
    ssize_t length;

    if (fd < 0)
        return file;
    length = read(fd, data, sizeof data);
    close(fd);
    if (length < 0)
        return file;
    file.is_there = true;
    file.is_elf = is_elf_like_us(data, (size_t)length);
    file.is_mz = length >= 2 && memcmp(data, "MZ", 2) == 0;
    read_mark(data, (size_t)length, label, file.mark);
    return file;
}

void loaded_file_map(const char *path, bool executable)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return;
    /* On a file system that forbids execution the runtime would not have come so far. */
    if (fstat(fd, &status) == 0 && status.st_size > 0)
        (void)!mmap(NULL, (size_t)status.st_size, PROT_READ | (executable ? PROT_EXEC : 0),
                    MAP_PRIVATE, fd, 0);
    close(fd);
}
