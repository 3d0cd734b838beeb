/* SPDX-License-Identifier: Apache-2.0 */

/*
 * TARGET FILE...: feeds a fuzz target with files, each in a block of exactly its
 * size. In place of a fuzzer, so that what was found once is tried again with
 * any compiler. A file that is fed and breaks something ends the program.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static void feed(const char *path)
{
    FILE *file = fopen(path, "r");
    struct stat status;
    size_t size;
    uint8_t *data;

    if (!file || fstat(fileno(file), &status) != 0)
        err(2, "%s", path);
    size = (size_t)status.st_size;
    data = malloc(size);
    if ((!data && size > 0) || fread(data, 1, size, file) != size)
        err(2, "%s", path);
    fclose(file);
    fprintf(stderr, "Running: %s\n", path);
    FUZZ_HOLDS(LLVMFuzzerTestOneInput(data, size) == 0);
    free(data);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        feed(argv[i]);
    return EXIT_SUCCESS;
}
