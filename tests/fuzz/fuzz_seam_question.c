/* SPDX-License-Identifier: Apache-2.0 */

/* A question as a worker of the probe may get it from a daemon that was taken over. */

#include "lib/bytes.h"
#include "lib/seam.h"
#include "tests/fuzz/fuzz.h"

/* What is read is put again as it was. */
static void check_question(const uint8_t *frame, size_t size)
{
    struct action_question question;
    struct bytes again;

    if (seam_read_question(frame, size, &question) != 0)
        return;
    FUZZ_HOLDS(question.pid > 0);
    for (size_t i = 0; i < question.n_files; i++)
        FUZZ_HOLDS(strlen(question.files[i]) < size);
    bytes_init(&again, SEAM_QUESTION_MAX);
    seam_put_question(&again, &question);
    FUZZ_HOLDS(bytes_finish(&again) == 0);
    FUZZ_HOLDS(again.length == size && memcmp(again.data, frame, size) == 0);
    bytes_deinit(&again);
    free(question.files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    size_t frame_size;

    while (seam_frame(input.at, input.left, SEAM_QUESTION_MAX, &frame_size) == 0) {
        uint8_t *frame = fuzz_copy(fuzz_take(&input, frame_size), frame_size);

        check_question(frame, frame_size);
        free(frame);
    }
    return 0;
}
