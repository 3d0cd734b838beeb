/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/policy_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"

enum { MESSAGE_MAX = 8192 };

void reader_init(struct reader *reader, struct policy *policy, const struct policy_host *host)
{
    static const struct policy_host nobody = {.may_kill = true, .has_peer_pidfd = true};

    *reader = (struct reader){.policy = policy, .host = host ? host : &nobody};
}

static void problem_deinit(struct reader_problem *problem)
{
    free(problem->problem.file);
    free(problem->problem.text);
}

void reader_deinit(struct reader *reader)
{
    for (size_t i = 0; i < reader->n_problems; i++)
        problem_deinit(&reader->problems[i]);
    free(reader->problems);
    for (size_t i = 0; i < READER_SHOWN_SLOTS; i++)
        free(reader->shown[i]);
}

void reader_enter_file(struct reader *reader, const char *name)
{
    struct policy *policy = reader->policy;
    char **strings = realloc(policy->strings, (policy->n_strings + 1) * sizeof *strings);
    char *copy = reader_copy(reader, name);

    if (strings)
        policy->strings = strings;
    if (!strings || !copy) {
        free(copy);
        reader->error = -ENOMEM;
        return;
    }
    strings[policy->n_strings++] = copy;
    reader->file = copy;
}

struct policy_place reader_place(const struct reader *reader, const struct yaml_node *node)
{
    return (struct policy_place){reader->file, node->line, node->column};
}

static size_t file_number(const struct reader *reader, const char *file)
{
    size_t i = 0;

    while (i < reader->policy->n_strings && reader->policy->strings[i] != file)
        i++;
    return i;
}

static int compare_sizes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/* As they are shown: by place, then as they were found. */
static int compare_places(const void *a, const void *b)
{
    const struct reader_problem *x = a, *y = b;
    int order = compare_sizes(x->file_number, y->file_number);

    if (order == 0)
        order = compare_sizes(x->problem.line, y->problem.line);
    if (order == 0)
        order = compare_sizes(x->problem.column, y->problem.column);
    return order != 0 ? order : compare_sizes(x->number, y->number);
}

/* As they are kept when there are too many: errors first. */
static int compare_worth(const struct reader_problem *a, const struct reader_problem *b)
{
    if (a->problem.severity != b->problem.severity)
        return a->problem.severity == POLICY_ERROR ? -1 : 1;
    return compare_places(a, b);
}

static struct reader_problem *worst_problem(struct reader *reader)
{
    if (!reader->worst) {
        reader->worst = reader->problems;
        for (size_t i = 1; i < reader->n_problems; i++) {
            if (compare_worth(&reader->problems[i], reader->worst) > 0)
                reader->worst = &reader->problems[i];
        }
    }
    return reader->worst;
}

/* Where a problem is to be kept; NULL when it is not worth it. */
static struct reader_problem *slot_for(struct reader *reader, const struct reader_problem *problem)
{
    struct reader_problem *worst;

    if (!reader->problems)
        reader->problems = reader_alloc(reader, POLICY_PROBLEMS_MAX, sizeof *reader->problems);
    if (!reader->problems)
        return NULL;
    if (reader->n_problems < POLICY_PROBLEMS_MAX)
        return &reader->problems[reader->n_problems++];
    worst = worst_problem(reader);
    if (compare_worth(problem, worst) > 0)
        return NULL;
    problem_deinit(worst);
    reader->worst = NULL;
    return worst;
}

PRINTF_LIKE(4, 0)
static void add_problem(struct reader *reader, enum policy_severity severity,
                        const struct policy_place *place, const char *format, va_list arguments)
{
    struct reader_problem problem = {
        .problem = {.severity = severity, .line = place->line, .column = place->column},
        .file_number = file_number(reader, place->file),
        .number = reader->n_found++,
    };
    char text[MESSAGE_MAX];
    struct reader_problem *slot;

    reader->n_errors += severity == POLICY_ERROR ? 1 : 0;
    slot = slot_for(reader, &problem);
    if (!slot)
        return;
    vsnprintf(text, sizeof text, format, arguments);
    problem.problem.file = reader_copy(reader, place->file ? place->file : "");
    problem.problem.text = reader_copy(reader, text);
    *slot = problem;
}

void reader_error_at(struct reader *reader, const struct policy_place *place, const char *format,
                     ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_problem(reader, POLICY_ERROR, place, format, arguments);
    va_end(arguments);
}

void reader_warn_at(struct reader *reader, const struct policy_place *place, const char *format,
                    ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_problem(reader, POLICY_WARNING, place, format, arguments);
    va_end(arguments);
}

void reader_error(struct reader *reader, const struct yaml_node *at, const char *format, ...)
{
    const struct policy_place place = reader_place(reader, at);
    va_list arguments;

    va_start(arguments, format);
    add_problem(reader, POLICY_ERROR, &place, format, arguments);
    va_end(arguments);
}

void reader_warn(struct reader *reader, const struct yaml_node *at, const char *format, ...)
{
    const struct policy_place place = reader_place(reader, at);
    va_list arguments;

    va_start(arguments, format);
    add_problem(reader, POLICY_WARNING, &place, format, arguments);
    va_end(arguments);
}

void reader_take_problems(struct reader *reader, struct policy_problems *ret_problems)
{
    struct policy_problems problems = {
        .n = reader->n_problems,
        .n_errors = reader->n_errors,
        .n_dropped = reader->n_found - reader->n_problems,
    };

    problems.list = reader_alloc(reader, problems.n, sizeof *problems.list);
    if (problems.n > 0 && !problems.list)
        return;
    if (problems.n > 0)
        qsort(reader->problems, problems.n, sizeof *reader->problems, compare_places);
    for (size_t i = 0; i < problems.n; i++)
        problems.list[i] = reader->problems[i].problem;
    reader->n_problems = 0;
    *ret_problems = problems;
}

/* Keeps a text for a message that is about to be written. */
static const char *keep_shown(struct reader *reader, struct bytes *text)
{
    char **slot = &reader->shown[reader->next_shown++ % READER_SHOWN_SLOTS];

    free(*slot);
    *slot = NULL;
    if (bytes_finish(text) != 0) {
        bytes_deinit(text);
        reader->error = -ENOMEM;
        return "";
    }
    *slot = (char *)bytes_take(text);
    return *slot;
}

static void put_shown(struct bytes *out, const char *text)
{
    const size_t length = strlen(text);
    size_t cut = 0;

    for (size_t n = 0; cut < length && n < READER_SHOWN_MAX; n++) {
        uint32_t code_point;
        size_t size = text_decode((const uint8_t *)text + cut, length - cut, &code_point);

        cut += size > 0 ? size : 1;
    }
    text_put_escaped(out, text, cut);
    if (cut < length)
        bytes_put_string(out, "...");
}

const char *reader_show(struct reader *reader, const char *text)
{
    struct bytes out;

    bytes_init(&out, MESSAGE_MAX);
    put_shown(&out, text);
    return keep_shown(reader, &out);
}

const char *reader_show_place(struct reader *reader, const struct policy_place *place)
{
    struct bytes out;

    bytes_init(&out, MESSAGE_MAX);
    put_shown(&out, place->file);
    bytes_put_format(&out, ":%u:%u", place->line, place->column);
    return keep_shown(reader, &out);
}

void *reader_alloc(struct reader *reader, size_t n, size_t size)
{
    void *memory = n > 0 ? calloc(n, size) : NULL;

    if (n > 0 && !memory)
        reader->error = -ENOMEM;
    return memory;
}

char *reader_copy(struct reader *reader, const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        reader->error = -ENOMEM;
    return copy;
}

static void refuse_unknown(struct reader *reader, struct reader_view *view,
                           const struct yaml_node *key)
{
    struct bytes CLEANUP(bytes_deinit) advice;
    enum policy_key_id meant;

    bytes_init(&advice, MESSAGE_MAX);
    /* Thinking about it takes time, which nobody may take up with a file full of them. */
    if (reader->n_errors < POLICY_PROBLEMS_MAX &&
        policy_key_put_advice(view->section, key->text, &advice, &meant))
        view->is_misspelt[meant] = true;
    if (bytes_finish(&advice) != 0) {
        reader->error = -ENOMEM;
        return;
    }
    reader_error(reader, key, "\"%s\" is not a key of %s%s", reader_show(reader, key->text),
                 policy_section_name(view->section), (const char *)advice.data);
}

/* Says what is wrong with a key that has no value. */
static void refuse_empty(struct reader *reader, const struct yaml_node *key, enum policy_key_id id)
{
    struct bytes CLEANUP(bytes_deinit) takes;

    bytes_init(&takes, MESSAGE_MAX);
    policy_key_put_takes(policy_key_row(id), &takes);
    if (bytes_finish(&takes) != 0) {
        reader->error = -ENOMEM;
        return;
    }
    reader_error(reader, key, "\"%s\" has no value; write %s", key->text, (const char *)takes.data);
}

static void take_pair(struct reader *reader, struct reader_view *view, const struct yaml_node *key)
{
    const struct yaml_node *value = key->next;
    enum policy_key_id id;

    if (!policy_key_find(view->section, key->text, &id)) {
        refuse_unknown(reader, view, key);
        return;
    }
    if (view->keys[id]) {
        view->has_repeats[id] = true;
        reader_error(reader, key,
                     "\"%s\" is already given at line %u, column %u; leave one of them out",
                     key->text, view->keys[id]->line, view->keys[id]->column);
        return;
    }
    view->keys[id] = key;
    if (!policy_key_row(id)->since) {
        reader_error(reader, key, "\"%s\" is not in force in this version (%s); leave it out",
                     key->text, POLICY_KEY_VERSION);
        value_check(reader, id, value);
    } else if (value_is_empty(value)) {
        refuse_empty(reader, key, id);
    } else {
        view->values[id] = value;
    }
}

/* How a mapping looks that was meant to be one. */
static void refuse_view(struct reader *reader, const char *what, const struct yaml_node *node)
{
    const char *colon = node->kind == YAML_NODE_TEXT ? strchr(node->text, ':') : NULL;

    if (node->kind == YAML_NODE_MAPPING)
        reader_error(reader, node, "%s is empty; leave it out, or write its keys", what);
    else if (node->kind == YAML_NODE_LIST)
        reader_error(reader, node, "%s is a mapping of keys and values, not a list", what);
    else if (value_is_empty(node))
        reader_error(reader, node, "nothing is written here; leave it out, or write the keys of %s",
                     what);
    else if (node->text[0] == '/')
        reader_error(reader, node,
                     "%s is a mapping of keys and values, not a text; write { path: ... }", what);
    else if (colon && colon[1] != '\0')
        reader_error(reader, node,
                     "%s is a mapping of keys and values; a blank is missing after the colon of "
                     "\"%s\"",
                     what, reader_show(reader, node->text));
    else
        reader_error(reader, node, "%s is a mapping of keys and values, not a text", what);
}

bool reader_view(struct reader *reader, struct reader_view *view, enum policy_section section,
                 const char *what, const struct yaml_node *node)
{
    if (!what)
        what = policy_section_name(section);
    *view = (struct reader_view){.section = section, .what = what, .node = node};
    if (node->kind != YAML_NODE_MAPPING || node->n == 0) {
        refuse_view(reader, what, node);
        return false;
    }
    for (const struct yaml_node *key = node->first; key; key = key->next->next)
        take_pair(reader, view, key);
    return true;
}

const struct yaml_node *reader_need(struct reader *reader, const struct reader_view *view,
                                    enum policy_key_id id)
{
    if (!view->keys[id] && !view->is_misspelt[id])
        reader_error(reader, view->node, "%s has to have a \"%s\"", view->what,
                     policy_key_row(id)->name);
    return view->values[id];
}

static int compare_names(const void *a, const void *b)
{
    const struct reader_name *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    /* Pointers into one array: the order in which the names were given. */
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

void reader_find_repeats(struct reader *reader, const struct reader_name *names, size_t n,
                         const char *what, const char *advice)
{
    const struct reader_name **sorted = reader_alloc(reader, n, sizeof *sorted);

    if (!sorted)
        return;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &names[i];
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            reader_error_at(reader, &sorted[i]->place, "%s \"%s\" is already at %s; %s", what,
                            reader_show(reader, sorted[i]->name),
                            reader_show_place(reader, &sorted[i - 1]->place), advice);
    }
    free(sorted);
}
