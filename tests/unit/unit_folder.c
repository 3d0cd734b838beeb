/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit_folder.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

void unit_folder_remove(void)
{
    if (folder[0] != '\0')
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

void unit_folder_make(char *ret_path, size_t size)
{
    unit_folder_remove();
    strcpy(folder, "/tmp/diagport-unit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(ret_path, size, "%s", folder);
}

size_t unit_folder_count(void)
{
    DIR *entries = opendir(folder);
    size_t n = 0;

    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return n;
}

void unit_folder_write(const char *name, const char *content, unsigned mode)
{
    size_t length = strlen(content);
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, length), (ssize_t)length);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

uint8_t *unit_file_read(const char *path, size_t *ret_length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    uint8_t *content;

    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_int_eq(fstat(fd, &status), 0);
    content = malloc((size_t)status.st_size);
    ck_assert_ptr_nonnull(content);
    ck_assert_int_eq(read(fd, content, (size_t)status.st_size), status.st_size);
    close(fd);
    *ret_length = (size_t)status.st_size;
    return content;
}
