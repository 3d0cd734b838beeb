/* SPDX-License-Identifier: Apache-2.0 */

/* An answer as the daemon may get it from a worker that was taken over: first how many files were
 * asked about and what was wanted, then frames. */

#include <errno.h>

#include "lib/bytes.h"
#include "lib/seam.h"
#include "tests/fuzz/fuzz.h"

enum { FILES_MAX = 4 };

static void check_text(const struct facts_text *text)
{
    FUZZ_HOLDS(text->length <= FACTS_ENVIRON_MAX);
    FUZZ_HOLDS((text->error == 0) == (text->data != NULL));
    FUZZ_HOLDS(text->error == 0 || (text->length == 0 && !text->is_cut));
    FUZZ_HOLDS(!text->data || text->data[text->length] == '\0');
}

static void check_facts(const struct facts *facts, const struct action_question *question,
                        bool is_whole)
{
    check_text(&facts->stat);
    check_text(&facts->status);
    check_text(&facts->exe);
    check_text(&facts->arguments);
    check_text(&facts->cwd);
    check_text(&facts->cgroup);
    check_text(&facts->environ);
    check_text(&facts->parent_exe);
    FUZZ_HOLDS(is_whole || !facts->is_alive);
    FUZZ_HOLDS(!facts->has_handle);
    for (size_t i = 0; i < facts->n_threads && i < FACTS_THREADS_MAX; i++)
        FUZZ_HOLDS(memchr(facts->threads[i].name, '\0', sizeof facts->threads[i].name));
    FUZZ_HOLDS(facts->n_files == question->n_files);
    for (size_t i = 0; i < facts->n_files; i++) {
        FUZZ_HOLDS(strcmp(facts->files[i].path, question->files[i]) == 0);
        FUZZ_HOLDS(facts->files[i].n_nodes <= FACTS_NODES_MAX);
    }
}

/* What was taken can be put, and is taken again. */
static void check_again(const struct facts *facts, const struct action_question *question)
{
    struct seam_answer answer;
    size_t at = 0, size;
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    for (uint32_t fact = 1; fact <= FACTS_IMAGES; fact <<= 1) {
        if (fact != FACTS_FILES && fact != FACTS_IMAGES && ((question->wanted | FACTS_STAT) & fact))
            seam_put_fact(&out, facts, fact);
    }
    for (size_t i = 0; i < facts->n_files; i++)
        seam_put_file(&out, &facts->files[i]);
    seam_put_end(&out, facts->is_alive);
    FUZZ_HOLDS(bytes_finish(&out) == 0);
    FUZZ_HOLDS(seam_answer_init(&answer, question) == 0);
    for (; at < out.length; at += size) {
        FUZZ_HOLDS(seam_frame(out.data + at, out.length - at, SEAM_ANSWER_MAX, &size) == 0);
        FUZZ_HOLDS(seam_answer_take(&answer, out.data + at, size) == 0);
    }
    FUZZ_HOLDS(answer.is_whole);
    seam_answer_deinit(&answer);
    bytes_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "/opt/a.so";
    char *files[FILES_MAX] = {name, name, name, name};
    struct fuzz_input input = {data, size};
    struct action_question question = {.pid = 1, .files = files};
    struct seam_answer answer;
    struct facts *facts;
    size_t frame_size;
    bool is_whole;

    question.n_files = fuzz_take_u8(&input) % (FILES_MAX + 1);
    question.wanted = fuzz_take_u8(&input);
    question.wanted |= (fuzz_take_u8(&input) % 16U) << 8;
    if (!(question.wanted & FACTS_FILES))
        question.n_files = 0;
    FUZZ_HOLDS(seam_answer_init(&answer, &question) == 0);
    while (seam_frame(input.at, input.left, SEAM_ANSWER_MAX, &frame_size) == 0) {
        uint8_t *frame = fuzz_copy(fuzz_take(&input, frame_size), frame_size);
        int error = seam_answer_take(&answer, frame, frame_size);

        free(frame);
        if (error != 0)
            break;
    }
    is_whole = answer.is_whole;
    facts = seam_answer_finish(&answer);
    check_facts(facts, &question, is_whole);
    if (is_whole)
        check_again(facts, &question);
    facts_free(facts);
    return 0;
}
