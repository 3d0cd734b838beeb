/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/seam.h"
#include "tests/unit/unit_memory.h"

enum {
    ALL = FACTS_STAT | FACTS_STATUS | FACTS_EXE | FACTS_ARGUMENTS | FACTS_CWD | FACTS_CGROUP |
          FACTS_ENVIRON | FACTS_PARENT | FACTS_THREADS | FACTS_FILES | FACTS_FREEZER | FACTS_IMAGES,
    DAMAGES = 20000,
};

static char *files[] = {(char[]){"/opt/a.so"}, (char[]){""}, (char[]){"relative/b.dll"}};

static const struct action_question everything = {
    .id = 7,
    .pid = 4711,
    .uid = 1000,
    .start_time = UINT64_C(0x1122334455667788),
    .wanted = ALL,
    .files = files,
    .n_files = ARRAY_LENGTH(files),
};

/* Questions. */

static struct bytes question_of(const struct action_question *question)
{
    struct bytes out;

    bytes_init(&out, SEAM_QUESTION_MAX);
    seam_put_question(&out, question);
    ck_assert_int_eq(bytes_finish(&out), 0);
    return out;
}

START_TEST(a_question_is_read_as_it_was_put)
{
    struct bytes out = question_of(&everything);
    struct action_question read;

    ck_assert_int_eq(seam_read_question(out.data, out.length, &read), 0);
    ck_assert_int_eq(read.pid, everything.pid);
    ck_assert_uint_eq(read.start_time, everything.start_time);
    ck_assert_uint_eq(read.wanted, everything.wanted);
    ck_assert_uint_eq(read.n_files, everything.n_files);
    for (size_t i = 0; i < read.n_files; i++)
        ck_assert_str_eq(read.files[i], files[i]);
    free(read.files);
    bytes_deinit(&out);
}
END_TEST

/* One byte more at a time: it is whole with the last one, and what it lacks is never too much. */
static void feed_one_by_one(const uint8_t *data, size_t length, size_t max)
{
    size_t size = 0, asked = 0;

    for (size_t n = 0; n < length; n++) {
        ck_assert_int_eq(seam_frame(data, n, max, &size), SEAM_E_MORE);
        ck_assert_uint_ge(seam_frame_lacks(data, n), 1);
        ck_assert_uint_le(n + seam_frame_lacks(data, n), length);
    }
    ck_assert_int_eq(seam_frame(data, length, max, &size), 0);
    ck_assert_uint_eq(size, length);
    for (size_t n = 0; n < length; n += seam_frame_lacks(data, n))
        asked++;
    ck_assert_uint_le(asked, 2);
}

START_TEST(a_question_comes_byte_by_byte)
{
    struct bytes out = question_of(&everything);

    feed_one_by_one(out.data, out.length, SEAM_QUESTION_MAX);
    bytes_deinit(&out);
}
END_TEST

/* A copy of exactly those bytes, for what reads past the end. */
static uint8_t *copy_of(const uint8_t *data, size_t length)
{
    uint8_t *copy = malloc(length + 1);

    ck_assert_ptr_nonnull(copy);
    copy = realloc(copy, length > 0 ? length : 1);
    memcpy(copy, data, length);
    return copy;
}

static void set_length(uint8_t *frame, size_t size)
{
    uint32_t rest = (uint32_t)size - 4;

    for (size_t i = 0; i < 4; i++)
        frame[i] = (uint8_t)(rest >> (8 * i));
}

START_TEST(a_question_that_is_cut_is_none)
{
    struct bytes out = question_of(&everything);

    for (size_t length = 4; length < out.length; length++) {
        uint8_t *cut = copy_of(out.data, length);
        struct action_question read;

        ck_assert_int_eq(seam_read_question(cut, length, &read), SEAM_E_MALFORMED);
        /* Also where its length says that this is all of it. */
        set_length(cut, length);
        ck_assert_int_eq(seam_read_question(cut, length, &read), SEAM_E_MALFORMED);
        free(cut);
    }
    bytes_deinit(&out);
}
END_TEST

static int read_changed(const struct action_question *question, size_t at, uint8_t value)
{
    struct bytes out = question_of(question);
    struct action_question read = {0};
    int error;

    ck_assert_uint_lt(at, out.length);
    out.data[at] = value;
    error = seam_read_question(out.data, out.length, &read);
    if (error == 0)
        free(read.files);
    bytes_deinit(&out);
    return error;
}

START_TEST(what_no_daemon_asks_is_refused)
{
    struct action_question question = {.pid = 1, .wanted = FACTS_STAT};

    ck_assert_int_eq(read_changed(&question, 4, 2), 0);
    ck_assert_int_eq(read_changed(&question, 4, 0), SEAM_E_MALFORMED);     /* pid 0 */
    ck_assert_int_eq(read_changed(&question, 7, 0x80), SEAM_E_MALFORMED);  /* a negative one */
    ck_assert_int_eq(read_changed(&question, 17, 0x80), SEAM_E_MALFORMED); /* an unknown fact */
    ck_assert_int_eq(read_changed(&question, 20, 1),
                     SEAM_E_MALFORMED); /* a file that is not there */
    question.wanted |= FACTS_FILES;
    question.files = files;
    question.n_files = 1;
    ck_assert_int_eq(read_changed(&question, 30, 'x'), 0);
    ck_assert_int_eq(read_changed(&question, 30, 0), SEAM_E_MALFORMED);   /* a NUL in a name */
    ck_assert_int_eq(read_changed(&question, 37, 'x'), SEAM_E_MALFORMED); /* none behind it */
    ck_assert_int_eq(read_changed(&question, 16, FACTS_STAT & 0xFF), 0);
    ck_assert_int_eq(read_changed(&question, 17, 0), SEAM_E_MALFORMED); /* files, and none wanted */
}
END_TEST

START_TEST(files_that_do_not_fit_are_not_asked_about)
{
    enum { N = 5, LENGTH = 20000 };
    char *many[N], name[LENGTH + 1];
    struct action_question question = {.pid = 1,
                                       .wanted = FACTS_FILES,
                                       .files = many,
                                       .n_files = N};
    struct facts *facts;
    struct bytes out;

    memset(name, 'x', LENGTH);
    name[LENGTH] = '\0';
    for (size_t i = 0; i < N; i++)
        many[i] = name;
    ck_assert_uint_eq(seam_question_files(&question), 3);
    out = question_of(&question);
    ck_assert_uint_le(out.length, SEAM_QUESTION_MAX);
    bytes_deinit(&out);
    facts = seam_unknown(&question);
    ck_assert_uint_eq(facts->n_files, N);
    ck_assert_int_eq(facts->files[2].error, ETIMEDOUT);
    ck_assert_int_eq(facts->files[3].error, E2BIG);
    ck_assert_int_eq(facts->files[4].error, E2BIG);
    facts_free(facts);
    question.wanted = FACTS_STAT;
    ck_assert_uint_eq(seam_question_files(&question), 0);
}
END_TEST

/* Answers. */

static struct facts *sample(void)
{
    struct facts *facts = facts_new(ALL, ENODATA);

    facts_text_set(&facts->stat, "4711 (a) S", 10);
    facts_text_set(&facts->status, "Name:\ta\n", 8);
    facts_text_set(&facts->exe, "", 0);
    facts_text_set(&facts->arguments, "a\0b\0", 4);
    facts->arguments.is_cut = true;
    facts->cwd.error = EACCES;
    facts->cgroup.error = ENOENT;
    facts_text_set(&facts->environ, "A=1", 4);
    facts_text_set(&facts->parent_exe, "/sbin/init", 10);
    facts->threads_error = 0;
    facts->n_threads = 2;
    facts->threads[0] = (struct facts_thread){4711, "a"};
    facts->threads[1] = (struct facts_thread){4712, ".NET SynchManag"};
    facts->is_frozen = true;
    return facts;
}

static const uint32_t order[] = {
    FACTS_STAT, FACTS_STATUS, FACTS_CGROUP, FACTS_FREEZER,   FACTS_THREADS,
    FACTS_EXE,  FACTS_CWD,    FACTS_PARENT, FACTS_ARGUMENTS, FACTS_ENVIRON,
};

enum { FRAMES = ARRAY_LENGTH(order) + ARRAY_LENGTH(files) + 1 };

struct frames {
    struct bytes bytes;
    size_t ends[FRAMES];
};

/* All frames of a whole answer. */
static struct frames frames_of(const struct facts *facts)
{
    uint8_t acl[] = {2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255};
    char detail[] = "libxml2.so.2";
    struct facts_node nodes[] = {
        {.mode = 040755, .has_unknown_acl = true},
        {
            .mode = 0100644,
            .owner = 1000,
            .group = 100,
            .override = FACTS_OVERRIDE_NO,
            .acl = acl,
            .acl_length = sizeof acl,
        },
    };
    struct facts_image image = {
        .kind = FACTS_IMAGE_ELF,
        .is_noexec = true,
        .names_info11 = true,
        .problem = PREFLIGHT_NEEDS_LIBRARY,
        .detail = detail,
    };
    struct facts_file file = {.identity = {.device = 1,
                                           .inode = UINT64_MAX,
                                           .size = UINT64_MAX - 1,
                                           .modified_ns = -1,
                                           .changed_ns = INT64_MAX},
                              .nodes = nodes,
                              .n_nodes = 2,
                              .image = image,
                              .platform = {PLATFORM_LOONGARCH64, PLATFORM_MUSL}};
    struct facts_file missing = {.error = ENOENT};
    struct frames frames;
    size_t n = 0;

    bytes_init(&frames.bytes, SIZE_MAX - 1);
    for (size_t i = 0; i < ARRAY_LENGTH(order); i++) {
        seam_put_fact(&frames.bytes, facts, order[i]);
        frames.ends[n++] = frames.bytes.length;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        seam_put_file(&frames.bytes, i == 1 ? &missing : &file);
        frames.ends[n++] = frames.bytes.length;
    }
    seam_put_end(&frames.bytes, true);
    frames.ends[n++] = frames.bytes.length;
    ck_assert_uint_eq(n, FRAMES);
    ck_assert_int_eq(bytes_finish(&frames.bytes), 0);
    return frames;
}

static struct frames sample_frames(void)
{
    struct facts *facts = sample();
    struct frames frames = frames_of(facts);

    facts_free(facts);
    return frames;
}

static int take(struct seam_answer *answer, const struct frames *frames, size_t n)
{
    size_t start = n > 0 ? frames->ends[n - 1] : 0, length = frames->ends[n] - start;
    uint8_t *copy = copy_of(frames->bytes.data + start, length);
    int error = seam_answer_take(answer, copy, length);

    free(copy);
    return error;
}

static void same_text(const struct facts_text *a, const struct facts_text *b)
{
    ck_assert_int_eq(a->error, b->error);
    ck_assert_int_eq(a->is_cut, b->is_cut);
    ck_assert_uint_eq(a->length, b->length);
    ck_assert(!a->data == !b->data);
    if (a->data)
        ck_assert_mem_eq(a->data, b->data, a->length + 1);
}

static void same_facts(const struct facts *a, const struct facts *b)
{
    same_text(&a->stat, &b->stat);
    same_text(&a->status, &b->status);
    same_text(&a->exe, &b->exe);
    same_text(&a->arguments, &b->arguments);
    same_text(&a->cwd, &b->cwd);
    same_text(&a->cgroup, &b->cgroup);
    same_text(&a->environ, &b->environ);
    same_text(&a->parent_exe, &b->parent_exe);
    ck_assert_int_eq(a->threads_error, b->threads_error);
    ck_assert_uint_eq(a->n_threads, b->n_threads);
    for (size_t i = 0; i < a->n_threads && i < FACTS_THREADS_MAX; i++) {
        ck_assert_int_eq(a->threads[i].id, b->threads[i].id);
        ck_assert_str_eq(a->threads[i].name, b->threads[i].name);
    }
    ck_assert_int_eq(a->is_frozen, b->is_frozen);
}

START_TEST(an_answer_is_read_as_it_was_put)
{
    struct frames frames = sample_frames();
    struct facts *facts, *wanted = sample();
    struct seam_answer answer;

    ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
    for (size_t n = 0; n < FRAMES; n++) {
        ck_assert(!answer.is_whole);
        ck_assert_int_eq(take(&answer, &frames, n), 0);
    }
    ck_assert(answer.is_whole);
    /* There is nothing after the end. */
    ck_assert_int_eq(take(&answer, &frames, FRAMES - 1), SEAM_E_MALFORMED);
    facts = seam_answer_finish(&answer);
    ck_assert_uint_eq(facts->wanted, ALL);
    ck_assert(facts->is_alive);
    same_facts(facts, wanted);
    ck_assert_uint_eq(facts->n_files, ARRAY_LENGTH(files));
    ck_assert_str_eq(facts->files[2].path, files[2]);
    ck_assert_int_eq(facts->files[0].error, 0);
    ck_assert_uint_eq(facts->files[0].identity.device, 1);
    ck_assert_uint_eq(facts->files[0].identity.inode, UINT64_MAX);
    ck_assert_uint_eq(facts->files[0].identity.size, UINT64_MAX - 1);
    ck_assert_int_eq(facts->files[0].identity.modified_ns, -1);
    ck_assert_int_eq(facts->files[0].identity.changed_ns, INT64_MAX);
    ck_assert_int_eq(facts->files[0].platform.arch, PLATFORM_LOONGARCH64);
    ck_assert_int_eq(facts->files[0].platform.libc, PLATFORM_MUSL);
    ck_assert_int_eq(facts->files[1].platform.libc, PLATFORM_LIBC_UNKNOWN);
    ck_assert_uint_eq(facts->files[0].n_nodes, 2);
    ck_assert_uint_eq(facts->files[0].nodes[1].owner, 1000);
    ck_assert(facts->files[0].nodes[0].has_unknown_acl);
    ck_assert_int_eq(facts->files[0].nodes[0].override, FACTS_OVERRIDE_UNKNOWN);
    ck_assert_int_eq(facts->files[0].nodes[1].override, FACTS_OVERRIDE_NO);
    ck_assert_uint_eq(facts->files[0].nodes[1].acl_length, 12);
    ck_assert_uint_eq(facts->files[0].nodes[1].acl[4], 1);
    ck_assert_int_eq(facts->files[0].image.kind, FACTS_IMAGE_ELF);
    ck_assert(facts->files[0].image.is_noexec && facts->files[0].image.names_info11);
    ck_assert(!facts->files[0].image.reads_environment);
    ck_assert_int_eq(facts->files[0].image.problem, PREFLIGHT_NEEDS_LIBRARY);
    ck_assert_str_eq(facts->files[0].image.detail, "libxml2.so.2");
    ck_assert_int_eq(facts->files[1].image.kind, FACTS_IMAGE_UNKNOWN);
    ck_assert_ptr_null(facts->files[1].image.detail);
    ck_assert_int_eq(facts->files[1].error, ENOENT);
    ck_assert_uint_eq(facts->files[1].n_nodes, 0);
    facts_free(facts);
    facts_free(wanted);
    bytes_deinit(&frames.bytes);
}
END_TEST

START_TEST(an_answer_comes_byte_by_byte)
{
    struct frames frames = sample_frames();

    for (size_t n = 0, start = 0; n < FRAMES; start = frames.ends[n++])
        feed_one_by_one(frames.bytes.data + start, frames.ends[n] - start, SEAM_ANSWER_MAX);
    bytes_deinit(&frames.bytes);
}
END_TEST

START_TEST(what_did_not_come_is_unknown)
{
    struct frames frames = sample_frames();

    for (size_t n_taken = 0; n_taken < FRAMES; n_taken++) {
        struct seam_answer answer;
        struct facts *facts;

        ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
        for (size_t n = 0; n < n_taken; n++)
            ck_assert_int_eq(take(&answer, &frames, n), 0);
        facts = seam_answer_finish(&answer);
        ck_assert(!facts->is_alive);
        ck_assert_int_eq(facts->stat.error, n_taken > 0 ? 0 : ETIMEDOUT);
        ck_assert_int_eq(facts->cgroup.error, n_taken > 2 ? ENOENT : ETIMEDOUT);
        ck_assert_int_eq(facts->threads_error, n_taken > 4 ? 0 : ETIMEDOUT);
        ck_assert_int_eq(facts->environ.error, n_taken > 9 ? 0 : ETIMEDOUT);
        ck_assert_int_eq(facts->files[0].error, n_taken > 10 ? 0 : ETIMEDOUT);
        ck_assert_int_eq(facts->files[2].error, n_taken > 12 ? 0 : ETIMEDOUT);
        ck_assert_str_eq(facts->files[1].path, files[1]);
        facts_free(facts);
    }
    bytes_deinit(&frames.bytes);
}
END_TEST

START_TEST(what_was_not_asked_stays_so)
{
    struct action_question question = {.pid = 1, .wanted = FACTS_STATUS};
    struct facts *facts = seam_unknown(&question);

    ck_assert_int_eq(facts->status.error, ETIMEDOUT);
    ck_assert_int_eq(facts->stat.error, ETIMEDOUT);
    ck_assert_int_eq(facts->environ.error, ENODATA);
    ck_assert_int_eq(facts->threads_error, ENODATA);
    ck_assert_uint_eq(facts->n_files, 0);
    facts_free(facts);
}
END_TEST

/* Every frame after every other one: only those that were asked for, and once. */
START_TEST(only_what_is_missing_is_taken)
{
    struct frames frames = sample_frames();
    struct action_question question = {.pid = 1, .wanted = FACTS_STATUS | FACTS_THREADS};

    for (size_t n = 0; n < FRAMES; n++) {
        struct seam_answer answer;
        bool is_wanted =
            n < ARRAY_LENGTH(order) && (order[n] & (question.wanted | (uint32_t)FACTS_STAT));

        ck_assert_int_eq(seam_answer_init(&answer, &question), 0);
        ck_assert_int_eq(take(&answer, &frames, n), is_wanted ? 0 : SEAM_E_MALFORMED);
        ck_assert_int_eq(take(&answer, &frames, n), SEAM_E_MALFORMED);
        seam_answer_deinit(&answer);
    }
    bytes_deinit(&frames.bytes);
}
END_TEST

START_TEST(an_answer_that_is_cut_is_none)
{
    struct frames frames = sample_frames();

    for (size_t n = 0, start = 0; n < FRAMES; start = frames.ends[n++]) {
        size_t whole = frames.ends[n] - start;

        for (size_t length = 0; length < whole; length++) {
            uint8_t *cut = copy_of(frames.bytes.data + start, length);
            struct seam_answer answer;

            ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
            ck_assert_int_eq(seam_answer_take(&answer, cut, length), SEAM_E_MALFORMED);
            seam_answer_deinit(&answer);
            free(cut);
        }
    }
    bytes_deinit(&frames.bytes);
}
END_TEST

/* A text that is as long as it may be, and one that is longer. */
static int take_long(uint32_t fact, size_t length)
{
    struct facts *facts = facts_new(ALL, ENODATA);
    char *text = calloc(1, length);
    struct seam_answer answer;
    struct bytes out;
    int error;

    ck_assert(facts && text);
    facts_text_set(fact == FACTS_ENVIRON ? &facts->environ : &facts->exe, text, length);
    bytes_init(&out, SIZE_MAX - 1);
    seam_put_fact(&out, facts, fact);
    ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
    error = seam_answer_take(&answer, out.data, out.length);
    seam_answer_deinit(&answer);
    bytes_deinit(&out);
    facts_free(facts);
    free(text);
    return error;
}

START_TEST(texts_are_bounded)
{
    ck_assert_int_eq(take_long(FACTS_ENVIRON, FACTS_ENVIRON_MAX), 0);
    ck_assert_int_eq(take_long(FACTS_ENVIRON, FACTS_ENVIRON_MAX + 1), SEAM_E_MALFORMED);
    ck_assert_int_eq(take_long(FACTS_EXE, 16 * 1024), 0);
    ck_assert_int_eq(take_long(FACTS_EXE, 16 * 1024 + 1), SEAM_E_MALFORMED);
}
END_TEST

static int take_many_threads(size_t n)
{
    struct facts *facts = sample();
    struct seam_answer answer;
    struct bytes out;
    int error;

    facts->n_threads = n;
    bytes_init(&out, SIZE_MAX - 1);
    seam_put_fact(&out, facts, FACTS_THREADS);
    ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
    error = seam_answer_take(&answer, out.data, out.length);
    ck_assert(error != 0 || answer.facts->n_threads == n);
    seam_answer_deinit(&answer);
    bytes_deinit(&out);
    facts_free(facts);
    return error;
}

START_TEST(threads_are_bounded)
{
    ck_assert_int_eq(take_many_threads(0), 0);
    ck_assert_int_eq(take_many_threads(FACTS_THREADS_MAX), 0);
    ck_assert_int_eq(take_many_threads(FACTS_THREADS_MAX + 1), 0);
    ck_assert_int_eq(take_many_threads(FACTS_THREADS_MAX + 2), SEAM_E_MALFORMED);
}
END_TEST

START_TEST(a_frame_that_is_too_long_is_none)
{
    static const uint8_t longest[] = {0xFC, 0xFF, 0, 0}, longer[] = {0xFD, 0xFF, 0, 0};
    size_t size;

    ck_assert_int_eq(seam_frame(longest, 4, SEAM_QUESTION_MAX, &size), SEAM_E_MORE);
    ck_assert_int_eq(seam_frame(longer, 4, SEAM_QUESTION_MAX, &size), SEAM_E_MALFORMED);
}
END_TEST

/* What the daemon makes of what a worker says of a file. */
static int take_file(const struct facts_file *file)
{
    struct seam_answer answer;
    struct bytes out;
    int error;

    bytes_init(&out, SIZE_MAX - 1);
    seam_put_file(&out, file);
    ck_assert_int_eq(bytes_finish(&out), 0);
    ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
    error = seam_answer_take(&answer, out.data, out.length);
    seam_answer_deinit(&answer);
    bytes_deinit(&out);
    return error;
}

/* What no worker says of a file. */
static int take_strange(size_t acl_length, bool has_unknown_acl, int override, int kind,
                        int problem, size_t detail_length)
{
    uint8_t acl[FACTS_ACL_MAX + 1] = {0};
    char detail[FACTS_DETAIL_MAX + 1] = "";
    struct facts_node node = {
        .override = (enum facts_override) override,
        .has_unknown_acl = has_unknown_acl,
        .acl = acl,
        .acl_length = acl_length,
    };
    struct facts_file file = {
        .nodes = &node,
        .n_nodes = 1,
        .image = {.kind = (enum facts_image_kind)kind,
                  .problem = (enum preflight)problem,
                  .detail = detail},
    };

    memset(detail, 'x', detail_length);
    return take_file(&file);
}

static int take_platform(int arch, int libc)
{
    struct facts_file file = {
        .platform = {(enum platform_arch)arch, (enum platform_libc)libc},
    };

    return take_file(&file);
}

START_TEST(platforms_are_those_that_there_are)
{
    ck_assert_int_eq(take_platform(PLATFORM_ARCHES - 1, PLATFORM_LIBCS - 1), 0);
    ck_assert_int_eq(take_platform(PLATFORM_ARCHES, 0), SEAM_E_MALFORMED);
    ck_assert_int_eq(take_platform(0, PLATFORM_LIBCS), SEAM_E_MALFORMED);
}
END_TEST

START_TEST(what_is_said_of_files_is_bounded)
{
    static const int bad = SEAM_E_MALFORMED;

    ck_assert_int_eq(take_strange(FACTS_ACL_MAX, false, 2, 3, 1, FACTS_DETAIL_MAX - 1), 0);
    ck_assert_int_eq(take_strange(0, true, 0, 0, 0, 0), 0);
    ck_assert_int_eq(take_strange(FACTS_ACL_MAX + 1, false, 0, 0, 0, 0), bad);
    ck_assert_int_eq(take_strange(1, true, 0, 0, 0, 0), bad);
    ck_assert_int_eq(take_strange(0, false, FACTS_OVERRIDES, 0, 0, 0), bad);
    ck_assert_int_eq(take_strange(0, false, 0, FACTS_IMAGE_KINDS, 0, 0), bad);
    ck_assert_int_eq(take_strange(0, false, 0, 0, PREFLIGHT_COUNT, 0), bad);
    ck_assert_int_eq(take_strange(0, false, 0, 0, 0, FACTS_DETAIL_MAX), bad);
}
END_TEST

/* Whatever comes, it is taken or refused, and what was taken is within its bounds. */
START_TEST(damage_does_no_harm)
{
    struct frames frames = sample_frames();
    uint32_t dice = 1;

    for (size_t i = 0; i < DAMAGES; i++) {
        struct seam_answer answer;
        int error = 0;

        ck_assert_int_eq(seam_answer_init(&answer, &everything), 0);
        for (size_t n = 0, start = 0; n < FRAMES && error == 0; start = frames.ends[n++]) {
            size_t length = frames.ends[n] - start;
            uint8_t *copy = copy_of(frames.bytes.data + start, length);

            dice = dice * 1664525 + 1013904223;
            if (dice >> 29 == 0)
                copy[(dice >> 8) % length] ^= (uint8_t)(1 << (dice >> 5) % 8);
            error = seam_answer_take(&answer, copy, length);
            free(copy);
        }
        facts_free(seam_answer_finish(&answer));
    }
    bytes_deinit(&frames.bytes);
}
END_TEST

static int read_all(void *context)
{
    const struct frames *frames = context;
    struct bytes out;
    struct action_question read;
    struct seam_answer answer;
    int error;

    bytes_init(&out, SEAM_QUESTION_MAX);
    seam_put_question(&out, &everything);
    error = bytes_finish(&out);
    if (error == 0)
        error = seam_read_question(out.data, out.length, &read);
    bytes_deinit(&out);
    if (error != 0)
        return error;
    free(read.files);
    error = seam_answer_init(&answer, &everything);
    if (error != 0)
        return error;
    for (size_t n = 0, start = 0; n < FRAMES && error == 0; start = frames->ends[n++])
        error = seam_answer_take(&answer, frames->bytes.data + start, frames->ends[n] - start);
    /* A fact that memory ran out for is there, and says so. */
    if (error == 0 &&
        (answer.facts->stat.error == ENOMEM || answer.facts->status.error == ENOMEM ||
         answer.facts->exe.error == ENOMEM || answer.facts->arguments.error == ENOMEM ||
         answer.facts->environ.error == ENOMEM || answer.facts->parent_exe.error == ENOMEM ||
         answer.facts->files[0].error == ENOMEM || answer.facts->files[1].error == ENOMEM ||
         answer.facts->files[2].error == ENOMEM))
        error = -ENOMEM;
    seam_answer_deinit(&answer);
    return error;
}

START_TEST(every_allocation_may_fail)
{
    struct frames frames = sample_frames();

    ck_assert_uint_ge(unit_memory_exhaust(read_all, &frames, -ENOMEM), 10);
    bytes_deinit(&frames.bytes);
}
END_TEST

UNIT_TESTS(a_question_is_read_as_it_was_put, a_question_comes_byte_by_byte,
           a_question_that_is_cut_is_none, what_no_daemon_asks_is_refused,
           files_that_do_not_fit_are_not_asked_about, an_answer_is_read_as_it_was_put,
           an_answer_comes_byte_by_byte, what_did_not_come_is_unknown, what_was_not_asked_stays_so,
           only_what_is_missing_is_taken, an_answer_that_is_cut_is_none, texts_are_bounded,
           threads_are_bounded, a_frame_that_is_too_long_is_none,
           platforms_are_those_that_there_are, what_is_said_of_files_is_bounded,
           damage_does_no_harm, every_allocation_may_fail);
