/* SPDX-License-Identifier: Apache-2.0 */

/* A file that is to be loaded as an assembly. */

#include "lib/image.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct image_pe image = {0};

    if (image_pe_read(copy, size, &image) != 0)
        FUZZ_HOLDS(!image.is_assembly && !image.has_hook && !image.has_initialize);
    FUZZ_HOLDS(image.is_assembly || !image.has_hook);
    FUZZ_HOLDS(image.has_hook || !image.has_initialize);
    free(copy);
    return 0;
}
