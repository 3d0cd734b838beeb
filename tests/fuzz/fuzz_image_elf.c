/* SPDX-License-Identifier: Apache-2.0 */

/* A file that is to be loaded as a shared library. */

#include "lib/image.h"
#include "tests/fuzz/fuzz.h"

/* Texts are in the file, and end there. */
static void check_text(const uint8_t *data, size_t size, const char *text)
{
    const uint8_t *at = (const uint8_t *)text;

    if (text)
        FUZZ_HOLDS(at >= data && at < data + size && memchr(at, 0, size - (size_t)(at - data)));
}

static void check_undefined(const struct image_elf *image)
{
    const char *name;
    bool is_weak;
    size_t at = 0;

    while ((name = image_elf_next_undefined(image, &at, &is_weak)))
        FUZZ_HOLDS(*name != '\0');
    image_elf_reads_environment(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct image_elf image;

    image_names_info11(copy, size);
    if (image_elf_init(&image, copy, size) == 0) {
        check_text(copy, size, image.interpreter);
        check_text(copy, size, image.soname);
        check_text(copy, size, image.rpath);
        check_text(copy, size, image.runpath);
        for (size_t i = 0; i < image.n_needed; i++)
            check_text(copy, size, image.needed[i]);
        for (size_t i = 0; i < image.n_versions; i++) {
            check_text(copy, size, image.versions[i].library);
            check_text(copy, size, image.versions[i].name);
            image_elf_defines_version(&image, image.versions[i].name);
        }
        image_elf_exports(&image, "DllGetClassObject");
        check_undefined(&image);
        image_elf_deinit(&image);
    }
    free(copy);
    return 0;
}
