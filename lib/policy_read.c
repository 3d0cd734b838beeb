/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/policy_read.h"

#include <assert.h>
#include <errno.h>
#include <sha2.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/policy_parts.h"
#include "lib/policy_reader.h"
#include "lib/text.h"

_Static_assert(POLICY_HASH_SIZE == SHA256_DIGEST_STRING_LENGTH, "a hash in hexadecimal");

/* What is read over several files. */
struct reading {
    struct reader reader;
    struct reader_disable *disables;
    size_t n_disables;
};

void policy_source_hash(const struct policy_source *source, char ret_hash[static POLICY_HASH_SIZE])
{
    SHA256Data((const uint8_t *)source->bytes, source->length, ret_hash);
}

static void add_file(struct reader *reader, const struct policy_source *source)
{
    struct policy *policy = reader->policy;
    struct policy_file *files = realloc(policy->files, (policy->n_files + 1) * sizeof *files);
    struct policy_file file = {.name = reader_copy(reader, source->name)};

    if (files)
        policy->files = files;
    if (!files || !file.name) {
        free(file.name);
        reader->error = -ENOMEM;
        return;
    }
    policy_source_hash(source, file.hash);
    files[policy->n_files++] = file;
}

/* Of the hashes of all files, one a line. */
static void hash_policy(struct policy *policy)
{
    SHA2_CTX context;

    SHA256Init(&context);
    for (size_t i = 0; i < policy->n_files; i++) {
        SHA256Update(&context, (const uint8_t *)policy->files[i].hash,
                     strlen(policy->files[i].hash));
        SHA256Update(&context, (const uint8_t *)"\n", 1);
    }
    SHA256End(&context, policy->hash);
}

static void read_disable(struct reading *reading, const struct yaml_node *node)
{
    struct reader *reader = &reading->reader;
    const struct yaml_node *item = node->first;
    struct reader_disable *disables;
    char **names;
    size_t n;

    if (!value_name_list(reader, KEY_DISABLE, node, &names, &n))
        return;
    disables = realloc(reading->disables, (reading->n_disables + n) * sizeof *disables);
    if (disables)
        reading->disables = disables;
    else
        reader->error = -ENOMEM;
    for (size_t i = 0; i < n; i++, item = item->next) {
        if (disables)
            disables[reading->n_disables++] =
                (struct reader_disable){names[i], reader_place(reader, item)};
        else
            free(names[i]);
    }
    free(names);
}

static void reading_deinit(struct reading *reading)
{
    for (size_t i = 0; i < reading->n_disables; i++)
        free(reading->disables[i].name);
    free(reading->disables);
    reader_deinit(&reading->reader);
}

/* The sections that are of use without the others. */
static bool is_left_out(const struct reader_view *view, enum policy_key_id id)
{
    return !view->keys[id] && !view->is_misspelt[id];
}

static void read_sections(struct reader *reader, const struct reader_view *view)
{
    const struct yaml_node *const *values = view->values;

    if (values[KEY_LISTEN])
        policy_read_listens(reader, values[KEY_LISTEN]);
    else if (is_left_out(view, KEY_LISTEN))
        policy_take_usual_listen(reader);
    if (values[KEY_CONTROL])
        policy_read_control(reader, values[KEY_CONTROL]);
    else if (is_left_out(view, KEY_CONTROL))
        policy_take_usual_control(reader);
    if (values[KEY_LIMITS])
        policy_read_limits(reader, values[KEY_LIMITS]);
}

static void read_file_rules(struct reader *reader, const struct reader_view *view)
{
    /* Where they are misspelt, repeated or without value, some are missing. */
    if (view->has_repeats[KEY_RULES] || view->is_misspelt[KEY_RULES] ||
        (view->keys[KEY_RULES] && !view->values[KEY_RULES]))
        reader->is_incomplete = true;
    if (view->values[KEY_RULES])
        policy_read_rules(reader, view->values[KEY_RULES]);
}

static void read_main(struct reader *reader, const struct yaml_node *root)
{
    struct policy *policy = reader->policy;
    struct reader_view view;
    uint32_t version;
    unsigned choice;

    if (!reader_view(reader, &view, SECTION_MAIN, "the main file", root))
        return;
    if (!view.keys[KEY_VERSION] && !view.is_misspelt[KEY_VERSION])
        reader_error(reader, root,
                     "the main file has to say its version; write \"version: 1\" at its top");
    else if (view.values[KEY_VERSION])
        (void)!value_number(reader, KEY_VERSION, view.values[KEY_VERSION], &version);
    read_sections(reader, &view);
    if (view.values[KEY_ON_STOP] &&
        value_choice(reader, KEY_ON_STOP, view.values[KEY_ON_STOP], &choice))
        policy->on_stop = (enum policy_on_stop)choice;
    if (view.values[KEY_DEFAULTS])
        policy_read_defaults(reader, view.values[KEY_DEFAULTS]);
    read_file_rules(reader, &view);
}

static void read_drop_in(struct reading *reading, const struct yaml_node *root)
{
    struct reader_view view;

    if (!reader_view(&reading->reader, &view, SECTION_DROP_IN, "a drop-in file", root))
        return;
    read_file_rules(&reading->reader, &view);
    if (view.values[KEY_DISABLE])
        read_disable(reading, view.values[KEY_DISABLE]);
}

static void read_root(struct reading *reading, const struct yaml_node *root, bool is_main)
{
    struct reader *reader = &reading->reader;
    const struct policy_place whole = {reader->file, 0, 0};

    if (root && root->kind != YAML_NODE_MAPPING)
        reader->is_incomplete = true;
    if (!root || value_is_empty(root) || (root->kind == YAML_NODE_MAPPING && root->n == 0))
        reader_error_at(reader, &whole, "the file is empty; %s",
                        is_main ? "write at least \"version: 1\""
                                : "write \"rules:\" and rules below it, or remove the file");
    else if (root->kind == YAML_NODE_LIST)
        reader_error(reader, root,
                     "a policy file is a mapping of keys and values, not a list; write \"rules:\" "
                     "above the rules");
    else if (is_main)
        read_main(reader, root);
    else
        read_drop_in(reading, root);
}

static void read_source(struct reading *reading, const struct policy_source *source, bool is_main)
{
    struct reader *reader = &reading->reader;
    struct yaml_tree *tree = NULL;
    int r;

    reader_enter_file(reader, source->name);
    add_file(reader, source);
    r = yaml_tree_read(source->bytes, source->length, POLICY_SOURCE_MAX, &tree);
    if (r != 0) {
        reader->error = r;
        return;
    }
    if (tree->problem) {
        const struct policy_place place = {reader->file, tree->line, tree->column};

        reader_error_at(reader, &place, "%s", tree->problem);
        reader->is_incomplete = true;
    } else {
        read_root(reading, tree->root, is_main);
    }
    yaml_tree_free(tree);
}

int policy_read(const struct policy_source *sources, size_t n_sources,
                const struct policy_host *host, struct policy **ret_policy,
                struct policy_problems *ret_problems)
{
    struct policy *policy = policy_new();
    struct reading reading = {.disables = NULL};
    int r;

    assert(n_sources > 0);
    *ret_policy = NULL;
    *ret_problems = (struct policy_problems){.list = NULL};
    if (!policy)
        return -ENOMEM;
    reader_init(&reading.reader, policy, host);
    for (size_t i = 0; i < n_sources && reading.reader.error == 0; i++)
        read_source(&reading, &sources[i], i == 0);
    if (reading.reader.error == 0)
        policy_read_whole(&reading.reader, reading.disables, reading.n_disables);
    hash_policy(policy);
    if (reading.reader.error == 0)
        reader_take_problems(&reading.reader, ret_problems);
    r = reading.reader.error;
    if (r == 0 && ret_problems->n_errors == 0)
        *ret_policy = policy_ref(policy);
    reading_deinit(&reading);
    policy_unref(policy);
    return r;
}

/* Reads one section into a policy that has none of it yet; true when it is without error. */
static bool salvage_section(struct reader *reader, const struct reader_view *view,
                            enum policy_key_id id,
                            void (*read)(struct reader *, const struct yaml_node *))
{
    const size_t n_errors = reader->n_errors;

    if (!view->values[id] || view->has_repeats[id])
        return false;
    read(reader, view->values[id]);
    return reader->n_errors == n_errors;
}

static void salvage(struct reader *reader, const struct yaml_node *root)
{
    struct policy *policy = reader->policy;
    const struct policy_limits limits = policy->limits;
    struct reader_view view;

    if (!reader_view(reader, &view, SECTION_MAIN, NULL, root))
        return;
    if (is_left_out(&view, KEY_LISTEN)) {
        policy_take_usual_listen(reader);
    } else if (!salvage_section(reader, &view, KEY_LISTEN, policy_read_listens)) {
        policy_listens_free(policy->listens, policy->n_listens);
        policy->listens = NULL;
        policy->n_listens = 0;
    }
    if (is_left_out(&view, KEY_CONTROL)) {
        policy_take_usual_control(reader);
    } else if (!salvage_section(reader, &view, KEY_CONTROL, policy_read_control)) {
        policy_control_deinit(&policy->control);
        policy->control = (struct policy_control){.path = NULL};
    }
    if (!salvage_section(reader, &view, KEY_LIMITS, policy_read_limits))
        policy->limits = limits;
}

struct policy *policy_salvage(const struct policy_source *main, const struct policy_host *host)
{
    struct policy *policy = policy_new();
    struct yaml_tree *tree = NULL;
    struct reader reader;

    if (!policy)
        return NULL;
    reader_init(&reader, policy, host);
    reader_enter_file(&reader, main->name);
    if (reader.error == 0)
        reader.error = yaml_tree_read(main->bytes, main->length, POLICY_SOURCE_MAX, &tree);
    if (reader.error == 0 && tree->root)
        salvage(&reader, tree->root);
    yaml_tree_free(tree);
    if (reader.error != 0)
        policy = policy_unref(policy);
    reader_deinit(&reader);
    return policy;
}

void policy_problem_print(const struct policy_problem *problem, struct bytes *out)
{
    text_put_escaped(out, problem->file, strlen(problem->file));
    if (problem->line > 0)
        bytes_put_format(out, ":%u:%u", problem->line, problem->column);
    bytes_put_format(out, ": %s%s\n", problem->severity == POLICY_WARNING ? "warning: " : "",
                     problem->text);
}

void policy_problems_deinit(struct policy_problems *problems)
{
    for (size_t i = 0; i < problems->n; i++) {
        free(problems->list[i].file);
        free(problems->list[i].text);
    }
    free(problems->list);
    *problems = (struct policy_problems){.list = NULL};
}
