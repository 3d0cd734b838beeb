/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/last_good.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store.h"
#include "host/file.h"
#include "host/rights.h"
#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_read.h"

/*
 * The file that names it: these lines in this order, and nothing else. The path
 * may have line feeds in it, since all that follows it has a fixed length.
 */
#define FILE_NAME    "last-good"
#define TEMPORARY    "last-good.new"
#define TITLE        "diagport last good policy 1\n"
#define BOOT_LABEL   "boot "
#define POLICY_LABEL "\npolicy "
#define TEXT_LABEL   "\ntext "
#define FROM_LABEL   "\nfrom "
#define SUM_LABEL    "\nsum "

enum {
    HASH_LENGTH = POLICY_HASH_SIZE - 1,
    BOOT_LENGTH = 2 * RECORD_BOOT_SIZE,
    SUM_LENGTH = sizeof SUM_LABEL - 1 + HASH_LENGTH + 1, /* with the last line feed */
    FILE_MAX = 8192,
};

/* What the file says. */
struct content {
    char boot[BOOT_LENGTH + 1];
    struct snapshot_name name;
    char *from;
};

struct last_good {
    struct last_good_options options;
    bool is_known;
    uint8_t id[RECORD_POLICY_SIZE];
};

struct last_good *last_good_new(const struct last_good_options *options)
{
    struct last_good *last_good = calloc(1, sizeof *last_good);

    if (last_good)
        last_good->options = *options;
    return last_good;
}

struct last_good *last_good_free(struct last_good *last_good)
{
    free(last_good);
    return NULL;
}

static void print_boot(const uint8_t *boot, char ret_text[static BOOT_LENGTH + 1])
{
    for (size_t i = 0; i < RECORD_BOOT_SIZE; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", boot[i]);
}

static void remember(struct last_good *last_good, const struct snapshot_name *name)
{
    struct policy named = {.n_references = 1};

    memcpy(named.hash, name->policy, sizeof named.hash);
    policy_id(&named, last_good->id);
    last_good->is_known = true;
}

static int explain(char **ret_why, const char *format, ...) PRINTF_LIKE(2, 3);

static int explain(char **ret_why, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vasprintf(ret_why, format, arguments);
    va_end(arguments);
    if (length >= 0)
        return 0;
    *ret_why = NULL;
    return -ENOMEM;
}

/* The form of the file. */

static void print_content(const struct content *content, struct bytes *out)
{
    struct policy_source printed;
    char sum[POLICY_HASH_SIZE];

    bytes_put_format(out, TITLE BOOT_LABEL "%s" POLICY_LABEL "%s" TEXT_LABEL "%s" FROM_LABEL "%s",
                     content->boot, content->name.policy, content->name.text, content->from);
    if (out->error != 0)
        return;
    printed = (struct policy_source){.bytes = (const char *)out->data, .length = out->length};
    policy_source_hash(&printed, sum);
    bytes_put_format(out, SUM_LABEL "%s\n", sum);
}

/* A label and then so many hexadecimal digits. */
static bool take_digits(const char **at, const char *label, size_t length, char *ret_digits)
{
    size_t label_length = strlen(label);

    if (strncmp(*at, label, label_length) != 0 ||
        strspn(*at + label_length, "0123456789abcdef") != length)
        return false;
    memcpy(ret_digits, *at + label_length, length);
    ret_digits[length] = '\0';
    *at += label_length + length;
    return true;
}

static bool is_printed_so(const struct content *content, const char *text, size_t length)
{
    struct bytes printed;
    bool is_same;

    bytes_init(&printed, FILE_MAX);
    print_content(content, &printed);
    is_same = bytes_finish(&printed) == 0 && printed.length == length &&
              memcmp(printed.data, text, length) == 0;
    bytes_deinit(&printed);
    return is_same;
}

/* False when it is not exactly what is written; memory that has run out is no other case. */
static bool read_content(const char *text, size_t length, struct content *ret_content)
{
    struct content content;
    const char *at = text, *end = text + length;

    if (length < SUM_LENGTH || memchr(text, '\0', length) ||
        !take_digits(&at, TITLE BOOT_LABEL, BOOT_LENGTH, content.boot) ||
        !take_digits(&at, POLICY_LABEL, HASH_LENGTH, content.name.policy) ||
        !take_digits(&at, TEXT_LABEL, HASH_LENGTH, content.name.text) ||
        strncmp(at, FROM_LABEL, sizeof FROM_LABEL - 1) != 0)
        return false;
    at += sizeof FROM_LABEL - 1;
    if (end - at < SUM_LENGTH)
        return false;
    content.from = strndup(at, (size_t)(end - at) - SUM_LENGTH);
    if (content.from && is_printed_so(&content, text, length)) {
        *ret_content = content;
        return true;
    }
    free(content.from);
    return false;
}

/* Reading. */

static int explain_problems(const struct policy_problems *problems, char **ret_why)
{
    const struct policy_problem *first = problems->n > 0 ? &problems->list[0] : NULL;

    for (size_t i = 0; i < problems->n; i++) {
        if (problems->list[i].severity == POLICY_ERROR) {
            first = &problems->list[i];
            break;
        }
    }
    return first ? explain(ret_why, "it cannot be read by this version: %s:%u:%u: %s", first->file,
                           first->line, first->column, first->text)
                 : explain(ret_why, "it cannot be read by this version");
}

static int load_policy(const struct last_good *last_good, const struct content *content,
                       struct policy **ret_policy, char **ret_why)
{
    struct policy_problems problems;
    struct policy *policy;
    int error = snapshots_load(last_good->options.snapshots, &content->name, &policy, &problems);

    if (error == 0 && !policy)
        error = explain_problems(&problems, ret_why);
    else if (error == -EBADMSG)
        error = explain(ret_why, "its file policy-%s.yaml is not as it was written",
                        content->name.policy);
    else if (error != 0 && error != -ENOMEM)
        error = explain(ret_why, "its file policy-%s.yaml cannot be used: %s", content->name.policy,
                        strerror(-error));
    policy_problems_deinit(&problems);
    *ret_policy = policy;
    return error;
}

static bool is_of_this_boot(const struct last_good *last_good, const struct content *content)
{
    const uint8_t *boot = store_boot(last_good->options.store);
    char own[BOOT_LENGTH + 1];

    if (!boot)
        return false;
    print_boot(boot, own);
    return strcmp(own, content->boot) == 0;
}

static int judge(struct last_good *last_good, const struct content *content,
                 struct policy **ret_policy, char **ret_why)
{
    const char *main_file = last_good->options.main_file;

    if (!is_of_this_boot(last_good, content))
        return explain(ret_why, "it is not of this boot");
    /* It stays the last good one of its own file, for when that is named again. */
    remember(last_good, &content->name);
    if (!main_file || strcmp(content->from, main_file) != 0)
        return explain(ret_why, "it was loaded from %s", content->from);
    return load_policy(last_good, content, ret_policy, ret_why);
}

int last_good_load(struct last_good *last_good, struct policy **ret_policy, char **ret_why)
{
    int folder = store_folder(last_good->options.store), error;
    struct content content;
    size_t length;
    char *text;

    *ret_policy = NULL;
    *ret_why = NULL;
    if (folder < 0)
        return 0;
    error = file_read_own(folder, FILE_NAME, rights_own_uid(), FILE_MAX, &text, &length);
    if (error == -ENOENT || error == -ENOMEM)
        return error == -ENOENT ? 0 : error;
    if (error != 0)
        return explain(ret_why, "the file %s/" FILE_NAME " cannot be used: %s",
                       store_path(last_good->options.store), strerror(-error));
    if (read_content(text, length, &content)) {
        error = judge(last_good, &content, ret_policy, ret_why);
        free(content.from);
    } else {
        error = explain(ret_why, "the file %s/" FILE_NAME " is not as it was written",
                        store_path(last_good->options.store));
    }
    free(text);
    return error;
}

/* Writing. */

static int write_content(int folder, const struct content *content)
{
    const struct file_place place = {
        .folder = folder,
        .name = FILE_NAME,
        .temporary = TEMPORARY,
        .mode = 0600,
        .owner = rights_own_uid(),
        .group = rights_own_gid(),
    };
    struct bytes text;
    int error;

    bytes_init(&text, FILE_MAX);
    print_content(content, &text);
    error = bytes_finish(&text);
    if (error == 0)
        error = file_ensure(&place, text.data, text.length);
    bytes_deinit(&text);
    return error;
}

int last_good_set(struct last_good *last_good, const struct snapshot_name *name)
{
    const struct store *store = last_good->options.store;
    const char *main_file = last_good->options.main_file;
    struct content content = {.name = *name, .from = (char *)(uintptr_t)main_file};
    int error;

    if (!main_file)
        return 0;
    if (store_folder(store) < 0 || !store_boot(store))
        return -ENOENT;
    print_boot(store_boot(store), content.boot);
    error = write_content(store_folder(store), &content);
    if (error == 0)
        remember(last_good, name);
    else
        last_good_clear(last_good);
    return error;
}

void last_good_clear(struct last_good *last_good)
{
    int folder = store_folder(last_good->options.store);

    last_good->is_known = false;
    if (folder >= 0)
        unlinkat(folder, FILE_NAME, 0);
}

bool last_good_is(const struct last_good *last_good, const uint8_t id[static RECORD_POLICY_SIZE])
{
    return last_good->is_known && memcmp(id, last_good->id, RECORD_POLICY_SIZE) == 0;
}
