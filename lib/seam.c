/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/seam.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"

enum {
    LENGTH_SIZE = 4,
    /* Length, pid, start time, what is wanted, number of files. */
    QUESTION_HEAD_SIZE = LENGTH_SIZE + 4 + 8 + 4 + 4,
    FILE_OVERHEAD = 4 + 1,
    ERRNO_MAX = 4095,
    LINK_MAX_SIZE = 16 * 1024,
    THREAD_SIZE = 4 + 16,
    FACT_END = 0,
    FACTS_ALL = FACTS_STAT | FACTS_STATUS | FACTS_EXE | FACTS_ARGUMENTS | FACTS_CWD | FACTS_CGROUP |
                FACTS_ENVIRON | FACTS_PARENT | FACTS_THREADS | FACTS_FILES | FACTS_FREEZER |
                FACTS_IMAGES,
    /* Those that come with each file, and not by themselves. */
    FACTS_OF_FILES = FACTS_FILES | FACTS_IMAGES,
};

/* Frames. */

int seam_frame(const uint8_t *data, size_t length, size_t max, size_t *ret_size)
{
    struct bytes_reader reader = bytes_reader_over(data, length);
    uint32_t rest;

    if (!bytes_get_u32(&reader, &rest))
        return SEAM_E_MORE;
    if (rest > max - LENGTH_SIZE)
        return SEAM_E_MALFORMED;
    if (reader.left < rest)
        return SEAM_E_MORE;
    *ret_size = LENGTH_SIZE + rest;
    return 0;
}

size_t seam_frame_lacks(const uint8_t *data, size_t length)
{
    struct bytes_reader reader = bytes_reader_over(data, length);
    uint32_t rest;

    return bytes_get_u32(&reader, &rest) ? rest - reader.left : LENGTH_SIZE - length;
}

/* The content of what has to be one whole frame. */
static bool open_frame(const uint8_t *frame, size_t size, size_t max,
                       struct bytes_reader *ret_reader)
{
    size_t whole;

    if (seam_frame(frame, size, max, &whole) != 0 || whole != size)
        return false;
    *ret_reader = bytes_reader_over(frame + LENGTH_SIZE, size - LENGTH_SIZE);
    return true;
}

static bool get_bool(struct bytes_reader *reader, bool *ret_value)
{
    uint8_t value;

    if (!bytes_get_u8(reader, &value) || value > 1)
        return false;
    *ret_value = value;
    return true;
}

static bool get_error(struct bytes_reader *reader, int *ret_error)
{
    uint32_t value;

    if (!bytes_get_u32(reader, &value) || value > ERRNO_MAX)
        return false;
    *ret_error = (int)value;
    return true;
}

/* Questions. */

size_t seam_question_files(const struct action_question *question)
{
    size_t size = QUESTION_HEAD_SIZE, n = 0;

    if (!(question->wanted & FACTS_FILES))
        return 0;
    while (n < question->n_files) {
        size_t length = strlen(question->files[n]);

        if (length + FILE_OVERHEAD > SEAM_QUESTION_MAX - size)
            break;
        size += length + FILE_OVERHEAD;
        n++;
    }
    return n;
}

void seam_put_question(struct bytes *out, const struct action_question *question)
{
    size_t n_files = seam_question_files(question), size = QUESTION_HEAD_SIZE;

    for (size_t i = 0; i < n_files; i++)
        size += strlen(question->files[i]) + FILE_OVERHEAD;
    bytes_put_u32(out, (uint32_t)(size - LENGTH_SIZE));
    bytes_put_u32(out, (uint32_t)question->pid);
    bytes_put_u64(out, question->start_time);
    bytes_put_u32(out, question->wanted);
    bytes_put_u32(out, (uint32_t)n_files);
    for (size_t i = 0; i < n_files; i++) {
        size_t length = strlen(question->files[i]);

        bytes_put_u32(out, (uint32_t)length);
        bytes_put_run(out, question->files[i], length + 1);
    }
}

static bool get_name(struct bytes_reader *reader, char **ret_name)
{
    const uint8_t *name;
    uint32_t length;

    if (!bytes_get_u32(reader, &length) || length >= reader->left ||
        !bytes_get_run(reader, (size_t)length + 1, &name) ||
        memchr(name, '\0', (size_t)length + 1) != name + length)
        return false;
    *ret_name = (char *)(uintptr_t)name;
    return true;
}

static bool get_names(struct bytes_reader *reader, struct action_question *question)
{
    for (size_t i = 0; i < question->n_files; i++) {
        if (!get_name(reader, &question->files[i]))
            return false;
    }
    return reader->left == 0;
}

int seam_read_question(const uint8_t *frame, size_t size, struct action_question *ret_question)
{
    struct action_question question = {0};
    struct bytes_reader reader;
    uint32_t pid, n_files;

    if (!open_frame(frame, size, SEAM_QUESTION_MAX, &reader) || !bytes_get_u32(&reader, &pid) ||
        !bytes_get_u64(&reader, &question.start_time) ||
        !bytes_get_u32(&reader, &question.wanted) || !bytes_get_u32(&reader, &n_files))
        return SEAM_E_MALFORMED;
    if (pid == 0 || pid > INT32_MAX || (question.wanted & ~(uint32_t)FACTS_ALL) ||
        n_files > reader.left / FILE_OVERHEAD || (n_files > 0 && !(question.wanted & FACTS_FILES)))
        return SEAM_E_MALFORMED;
    question.pid = (int32_t)pid;
    question.n_files = n_files;
    question.files = calloc((size_t)n_files + 1, sizeof *question.files);
    if (!question.files)
        return -ENOMEM;
    if (!get_names(&reader, &question)) {
        free(question.files);
        return SEAM_E_MALFORMED;
    }
    *ret_question = question;
    return 0;
}

/* Facts. */

/* The text of a fact and how long it may be; NULL for the others. */
static struct facts_text *text_of(struct facts *facts, uint32_t fact, size_t *ret_max)
{
    *ret_max = FACTS_TEXT_MAX;
    switch (fact) {
    case FACTS_STAT:
        return &facts->stat;
    case FACTS_STATUS:
        return &facts->status;
    case FACTS_CGROUP:
        return &facts->cgroup;
    case FACTS_ARGUMENTS:
        *ret_max = FACTS_ARGUMENTS_MAX;
        return &facts->arguments;
    case FACTS_ENVIRON:
        *ret_max = FACTS_ENVIRON_MAX;
        return &facts->environ;
    case FACTS_EXE:
        *ret_max = LINK_MAX_SIZE;
        return &facts->exe;
    case FACTS_CWD:
        *ret_max = LINK_MAX_SIZE;
        return &facts->cwd;
    case FACTS_PARENT:
        *ret_max = LINK_MAX_SIZE;
        return &facts->parent_exe;
    default:
        return NULL;
    }
}

static void put_head(struct bytes *out, size_t payload, uint32_t fact)
{
    bytes_put_u32(out, (uint32_t)(4 + payload));
    bytes_put_u32(out, fact);
}

static void put_text(struct bytes *out, uint32_t fact, const struct facts_text *text)
{
    size_t length = text->error == 0 ? text->length : 0;

    put_head(out, 4 + 1 + length, fact);
    bytes_put_u32(out, (uint32_t)text->error);
    bytes_put_u8(out, text->error == 0 && text->is_cut);
    if (length > 0)
        bytes_put_run(out, text->data, length);
}

static size_t listed_threads(size_t n_threads)
{
    return n_threads < FACTS_THREADS_MAX ? n_threads : FACTS_THREADS_MAX;
}

static void put_threads(struct bytes *out, const struct facts *facts)
{
    size_t n = listed_threads(facts->n_threads);

    put_head(out, 4 + 4 + n * THREAD_SIZE, FACTS_THREADS);
    bytes_put_u32(out, (uint32_t)facts->threads_error);
    bytes_put_u32(out, (uint32_t)facts->n_threads);
    for (size_t i = 0; i < n; i++) {
        char name[sizeof facts->threads[i].name] = {0};

        strncpy(name, facts->threads[i].name, sizeof name - 1);
        bytes_put_u32(out, (uint32_t)facts->threads[i].id);
        bytes_put_run(out, name, sizeof name);
    }
}

void seam_put_fact(struct bytes *out, const struct facts *facts, uint32_t fact)
{
    size_t max;
    const struct facts_text *text = text_of((struct facts *)(uintptr_t)facts, fact, &max);

    if (text) {
        put_text(out, fact, text);
    } else if (fact == FACTS_THREADS) {
        put_threads(out, facts);
    } else if (fact == FACTS_FREEZER) {
        put_head(out, 1, fact);
        bytes_put_u8(out, facts->is_frozen);
    }
}

static void put_node(struct bytes *out, const struct facts_node *node)
{
    bytes_put_u32(out, node->mode);
    bytes_put_u32(out, node->owner);
    bytes_put_u32(out, node->group);
    bytes_put_u8(out, (uint8_t)node->override);
    bytes_put_u8(out, node->has_unknown_acl);
    bytes_put_u16(out, (uint16_t)node->acl_length);
    if (node->acl_length > 0)
        bytes_put_run(out, node->acl, node->acl_length);
}

static void put_image(struct bytes *out, const struct facts_image *image)
{
    size_t length = image->detail ? strlen(image->detail) : 0;

    bytes_put_u8(out, (uint8_t)image->kind);
    bytes_put_u8(out, image->is_noexec);
    bytes_put_u8(out, image->reads_environment);
    bytes_put_u8(out, image->names_info11);
    bytes_put_u8(out, (uint8_t)image->problem);
    bytes_put_u16(out, (uint16_t)length);
    if (length > 0)
        bytes_put_run(out, image->detail, length);
}

static void put_identity(struct bytes *out, const struct facts_identity *identity)
{
    bytes_put_u64(out, identity->device);
    bytes_put_u64(out, identity->inode);
    bytes_put_u64(out, identity->size);
    bytes_put_u64(out, (uint64_t)identity->modified_ns);
    bytes_put_u64(out, (uint64_t)identity->changed_ns);
}

/* What comes before a frame's content is its length, so that is put together first. */
void seam_put_file(struct bytes *out, const struct facts_file *file)
{
    struct bytes content;

    bytes_init(&content, SEAM_ANSWER_MAX);
    bytes_put_u32(&content, (uint32_t)file->error);
    put_identity(&content, &file->identity);
    bytes_put_u32(&content, (uint32_t)file->n_nodes);
    for (size_t i = 0; i < file->n_nodes; i++)
        put_node(&content, &file->nodes[i]);
    bytes_put_u8(&content, (uint8_t)file->platform.arch);
    bytes_put_u8(&content, (uint8_t)file->platform.libc);
    put_image(&content, &file->image);
    if (bytes_finish(&content) == 0) {
        put_head(out, content.length, FACTS_FILES);
        bytes_put_run(out, content.data, content.length);
    } else {
        out->error = content.error;
    }
    bytes_deinit(&content);
}

void seam_put_end(struct bytes *out, bool is_alive)
{
    put_head(out, 1, FACT_END);
    bytes_put_u8(out, is_alive);
}

/* Answers. */

static bool take_text(struct facts_text *text, size_t max, struct bytes_reader *reader)
{
    const uint8_t *data;
    bool is_cut;
    int error;

    if (!get_error(reader, &error) || !get_bool(reader, &is_cut) || reader->left > max ||
        (error != 0 && (is_cut || reader->left > 0)))
        return false;
    text->error = error;
    if (error != 0 || !bytes_get_run(reader, reader->left, &data))
        return error != 0;
    facts_text_set(text, data, (size_t)(reader->at - data));
    text->is_cut = is_cut && text->error == 0;
    return true;
}

static bool take_thread(struct facts_thread *thread, struct bytes_reader *reader)
{
    const uint8_t *name;
    uint32_t id;

    if (!bytes_get_u32(reader, &id) || id > INT32_MAX ||
        !bytes_get_run(reader, sizeof thread->name, &name) ||
        !memchr(name, '\0', sizeof thread->name))
        return false;
    thread->id = (int32_t)id;
    memcpy(thread->name, name, sizeof thread->name);
    return true;
}

static bool take_threads(struct facts *facts, struct bytes_reader *reader)
{
    uint32_t n_threads;
    int error;

    if (!get_error(reader, &error) || !bytes_get_u32(reader, &n_threads) ||
        n_threads > FACTS_THREADS_MAX + 1 || (error != 0 && n_threads > 0) ||
        reader->left != listed_threads(n_threads) * THREAD_SIZE)
        return false;
    for (size_t i = 0; i < listed_threads(n_threads); i++) {
        if (!take_thread(&facts->threads[i], reader))
            return false;
    }
    facts->threads_error = error;
    facts->n_threads = n_threads;
    return true;
}

/* False when it is malformed; where memory runs out, `*ret_error` is ENOMEM. */
static bool take_acl(struct facts_node *node, struct bytes_reader *reader, int *ret_error)
{
    const uint8_t *acl;
    uint16_t length;

    if (!bytes_get_u16(reader, &length) || length > FACTS_ACL_MAX ||
        !bytes_get_run(reader, length, &acl) || (length > 0 && node->has_unknown_acl))
        return false;
    if (length == 0)
        return true;
    node->acl = malloc(length);
    if (!node->acl) {
        *ret_error = ENOMEM;
        return true;
    }
    memcpy(node->acl, acl, length);
    node->acl_length = length;
    return true;
}

static bool take_node(struct facts_node *node, struct bytes_reader *reader, int *ret_error)
{
    uint8_t override;

    if (!bytes_get_u32(reader, &node->mode) || !bytes_get_u32(reader, &node->owner) ||
        !bytes_get_u32(reader, &node->group) || !bytes_get_u8(reader, &override) ||
        override >= FACTS_OVERRIDES || !get_bool(reader, &node->has_unknown_acl))
        return false;
    node->override = override;
    return take_acl(node, reader, ret_error);
}

static bool take_nodes(struct facts_file *file, struct bytes_reader *reader, int *ret_error)
{
    uint32_t n_nodes;

    if (!bytes_get_u32(reader, &n_nodes) || n_nodes > FACTS_NODES_MAX)
        return false;
    file->nodes = calloc((size_t)n_nodes + 1, sizeof *file->nodes);
    if (!file->nodes)
        *ret_error = ENOMEM;
    while (file->nodes && file->n_nodes < n_nodes) {
        if (!take_node(&file->nodes[file->n_nodes++], reader, ret_error))
            return false;
    }
    return true;
}

static bool take_platform(struct platform *platform, struct bytes_reader *reader)
{
    uint8_t arch, libc;

    if (!bytes_get_u8(reader, &arch) || arch >= PLATFORM_ARCHES || !bytes_get_u8(reader, &libc) ||
        libc >= PLATFORM_LIBCS)
        return false;
    *platform = (struct platform){arch, libc};
    return true;
}

static bool take_image(struct facts_image *image, struct bytes_reader *reader, int *ret_error)
{
    const uint8_t *detail;
    uint8_t kind, problem;
    uint16_t length;

    if (!bytes_get_u8(reader, &kind) || kind >= FACTS_IMAGE_KINDS ||
        !get_bool(reader, &image->is_noexec) || !get_bool(reader, &image->reads_environment) ||
        !get_bool(reader, &image->names_info11) || !bytes_get_u8(reader, &problem) ||
        problem >= PREFLIGHT_COUNT || !bytes_get_u16(reader, &length) ||
        length >= FACTS_DETAIL_MAX || !bytes_get_run(reader, length, &detail) ||
        memchr(detail, '\0', length) || reader->left != 0)
        return false;
    image->kind = kind;
    image->problem = problem;
    if (length == 0)
        return true;
    image->detail = strndup((const char *)detail, length);
    if (!image->detail)
        *ret_error = ENOMEM;
    return true;
}

static bool take_identity(struct facts_identity *identity, struct bytes_reader *reader)
{
    uint64_t modified_ns, changed_ns;

    if (!bytes_get_u64(reader, &identity->device) || !bytes_get_u64(reader, &identity->inode) ||
        !bytes_get_u64(reader, &identity->size) || !bytes_get_u64(reader, &modified_ns) ||
        !bytes_get_u64(reader, &changed_ns))
        return false;
    identity->modified_ns = (int64_t)modified_ns;
    identity->changed_ns = (int64_t)changed_ns;
    return true;
}

/* Without memory for all of it, the file is one of which nothing is known. */
static bool take_file(struct seam_answer *answer, struct bytes_reader *reader)
{
    struct facts_identity identity;
    struct facts_file *file;
    int error, own_error = 0;

    if (answer->n_files == answer->n_sent || !get_error(reader, &error) ||
        !take_identity(&identity, reader))
        return false;
    file = &answer->facts->files[answer->n_files];
    if (!take_nodes(file, reader, &own_error))
        return false;
    if (own_error == 0 &&
        (!take_platform(&file->platform, reader) || !take_image(&file->image, reader, &own_error)))
        return false;
    answer->n_files++;
    file->error = own_error != 0 ? own_error : error;
    file->identity = identity;
    return true;
}

static bool take_end(struct seam_answer *answer, struct bytes_reader *reader)
{
    bool is_alive;

    if (answer->missing != 0 || answer->n_files != answer->n_sent || !get_bool(reader, &is_alive) ||
        reader->left != 0)
        return false;
    answer->facts->is_alive = is_alive;
    answer->is_whole = true;
    return true;
}

static bool take_fact(struct seam_answer *answer, uint32_t fact, struct bytes_reader *reader)
{
    struct facts *facts = answer->facts;
    struct facts_text *text;
    bool is_taken;
    size_t max;

    if (!(answer->missing & fact))
        return false;
    text = text_of(facts, fact, &max);
    if (text)
        is_taken = take_text(text, max, reader);
    else if (fact == FACTS_THREADS)
        is_taken = take_threads(facts, reader);
    else
        is_taken = fact == FACTS_FREEZER && get_bool(reader, &facts->is_frozen);
    if (is_taken)
        answer->missing &= ~fact;
    return is_taken && reader->left == 0;
}

int seam_answer_take(struct seam_answer *answer, const uint8_t *frame, size_t size)
{
    struct bytes_reader reader;
    bool is_taken;
    uint32_t fact;

    if (answer->is_whole || !open_frame(frame, size, SEAM_ANSWER_MAX, &reader) ||
        !bytes_get_u32(&reader, &fact))
        return SEAM_E_MALFORMED;
    if (fact == FACT_END)
        is_taken = take_end(answer, &reader);
    else if (fact == FACTS_FILES)
        is_taken = take_file(answer, &reader);
    else
        is_taken = take_fact(answer, fact, &reader);
    return is_taken ? 0 : SEAM_E_MALFORMED;
}

/* Files that did not fit into the question are known to be unknown. */
static int add_files(struct seam_answer *answer, const struct action_question *question)
{
    struct facts *facts = answer->facts;

    if (!(question->wanted & FACTS_FILES))
        return 0;
    facts->files = calloc(question->n_files + 1, sizeof *facts->files);
    if (!facts->files)
        return -ENOMEM;
    for (size_t i = 0; i < question->n_files; i++) {
        facts->files[i].path = strdup(question->files[i]);
        if (!facts->files[i].path)
            return -ENOMEM;
        facts->files[i].error = i < answer->n_sent ? ETIMEDOUT : E2BIG;
        facts->n_files++;
    }
    return 0;
}

int seam_answer_init(struct seam_answer *answer, const struct action_question *question)
{
    *answer = (struct seam_answer){
        .facts = facts_new(question->wanted, ENODATA),
        /* What the process is has to be known of each answer. */
        .missing = (question->wanted | FACTS_STAT) & ~(uint32_t)FACTS_OF_FILES,
        .n_sent = seam_question_files(question),
    };
    if (answer->facts && add_files(answer, question) == 0)
        return 0;
    seam_answer_deinit(answer);
    return -ENOMEM;
}

void seam_answer_deinit(struct seam_answer *answer)
{
    answer->facts = facts_free(answer->facts);
}

struct facts *seam_answer_finish(struct seam_answer *answer)
{
    struct facts *facts = util_take(&answer->facts);

    for (uint32_t fact = 1; fact <= FACTS_ALL; fact <<= 1) {
        size_t max;
        struct facts_text *text = answer->missing & fact ? text_of(facts, fact, &max) : NULL;

        if (text) {
            free(text->data);
            *text = (struct facts_text){.error = ETIMEDOUT};
        }
    }
    if (answer->missing & FACTS_THREADS)
        facts->threads_error = ETIMEDOUT;
    return facts;
}

struct facts *seam_unknown(const struct action_question *question)
{
    struct seam_answer answer;

    return seam_answer_init(&answer, question) == 0 ? seam_answer_finish(&answer) : NULL;
}
