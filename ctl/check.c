/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl check: reads policy files as the daemon would, without one, and
 * says what is wrong with them. Whose files they are is not looked at: they may
 * still be on their way to the host.
 */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/output.h"
#include "host/host.h"
#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_read.h"
#include "lib/text.h"
#include "lib/util.h"

enum { OPTION_PRINT };

static const struct command_option options[] = {
    [OPTION_PRINT] = {"print", '\0', NULL, "write the policy in its canonical form"},
};

struct files {
    struct policy_source *list;
    size_t n;
};

static void files_deinit(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free((void *)(uintptr_t)files->list[i].bytes);
    free(files->list);
}

/* One byte more than is allowed is read, so that the reader says that it is too much. 0 or a
 * negative errno. */
static int read_all(int fd, struct policy_source *source)
{
    char *bytes = malloc(POLICY_SOURCE_MAX + 1);
    size_t length = 0;
    ssize_t n = 1;

    if (!bytes)
        return -ENOMEM;
    while (length <= POLICY_SOURCE_MAX && n > 0) {
        n = read(fd, bytes + length, POLICY_SOURCE_MAX + 1 - length);
        length += n > 0 ? (size_t)n : 0;
    }
    if (n < 0) {
        free(bytes);
        return -errno;
    }
    source->bytes = bytes;
    source->length = length;
    return 0;
}

static int read_file(const char *path, struct policy_source *source)
{
    const bool is_input = strcmp(path, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int error = fd < 0 ? -errno : read_all(fd, source);

    source->name = is_input ? "(standard input)" : path;
    if (fd >= 0 && !is_input)
        close(fd);
    if (error != 0)
        output_error("%s cannot be read: %s", source->name, strerror(-error));
    return error;
}

static int files_read(char *const *paths, int n, struct files *files)
{
    files->list = calloc((size_t)n, sizeof *files->list);
    if (!files->list)
        return output_no_memory();
    for (int i = 0; i < n; i++) {
        if (read_file(paths[i], &files->list[files->n]) != 0)
            return STATUS_NO;
        files->n++;
    }
    return STATUS_DONE;
}

/* The daemon's rights are not ours: that it may kill is taken for granted here. */
static int read_policy(const struct files *files, struct policy **ret_policy,
                       struct policy_problems *ret_problems)
{
    struct policy_host host;

    host_init(&host);
    host.may_kill = true;
    return policy_read(files->list, files->n, &host, ret_policy, ret_problems);
}

static void print_problems(const struct policy_problems *problems)
{
    struct bytes lines;
    struct page page;

    page_init(&page);
    for (size_t i = 0; i < problems->n; i++) {
        bytes_init(&lines, SIZE_MAX - 1);
        policy_problem_print(&problems->list[i], &lines);
        lines.length -= lines.length > 0; /* its line feed */
        if (bytes_finish(&lines) == 0)
            page_text(&page, (const char *)lines.data);
        page_end_line(&page);
        bytes_deinit(&lines);
    }
    page_write_error(&page);
    if (problems->n_dropped > 0)
        output_error("%zu more problems are not shown", problems->n_dropped);
}

/* The canonical form as a text, which the caller frees. It is a file for programs, and is not
 * escaped. NULL when memory is out. */
static char *make_canonical(const struct policy *policy)
{
    struct bytes text;

    bytes_init(&text, SIZE_MAX - 1);
    policy_print(policy, &text);
    if (bytes_finish(&text) != 0) {
        bytes_deinit(&text);
        return NULL;
    }
    return (char *)bytes_take(&text);
}

static int print_policy(const struct policy *policy)
{
    char *text = make_canonical(policy);

    if (!text)
        return output_no_memory();
    fputs(text, stdout);
    free(text);
    return STATUS_DONE;
}

/* As the daemon answers /v1/policy/check. The name of the file is all that is not escaped yet. */
static json_t *make_problem(const struct policy_problem *problem)
{
    const bool has_place = problem->line > 0;
    const char *severity = problem->severity == POLICY_WARNING ? "warning" : "error";
    char *file = text_escape(problem->file, strlen(problem->file));
    json_t *object =
        !file ? NULL
              : json_pack("{s:s, s:s, s:o, s:o, s:s}", "severity", severity, "file", file, "line",
                          has_place ? json_integer(problem->line) : json_null(), "column",
                          has_place ? json_integer(problem->column) : json_null(), "text",
                          problem->text);

    free(file);
    return object;
}

static json_t *make_problems(const struct policy_problems *problems)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < problems->n; i++) {
        if (json_array_append_new(list, make_problem(&problems->list[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static size_t count_warnings(const struct policy_problems *problems)
{
    size_t n = 0;

    for (size_t i = 0; i < problems->n; i++)
        n += problems->list[i].severity == POLICY_WARNING;
    return n;
}

static int print_json(const struct policy *policy, const struct policy_problems *problems)
{
    char *canonical = policy ? make_canonical(policy) : NULL;
    json_t *list = make_problems(problems), *answer = NULL;
    int status = STATUS_NO;

    if (list && (canonical || !policy))
        answer = json_pack("{s:b, s:I, s:I, s:O, s:I, s:s?, s:s?}", "ok", policy != NULL,
                           "n_errors", (json_int_t)problems->n_errors, "n_warnings",
                           (json_int_t)count_warnings(problems), "problems", list, "n_dropped",
                           (json_int_t)problems->n_dropped, "canonical", canonical, "hash",
                           policy ? policy->hash : NULL);
    status = answer ? output_json(answer) : output_no_memory();
    json_decref(answer);
    json_decref(list);
    free(canonical);
    return status;
}

static int check(const struct call *call, const struct files *files)
{
    struct policy_problems problems;
    struct policy *policy;
    int status;

    if (read_policy(files, &policy, &problems) != 0)
        return output_no_memory();
    status = policy ? STATUS_DONE : STATUS_NO;
    if (call->is_json) {
        if (print_json(policy, &problems) != STATUS_DONE)
            status = STATUS_NO;
    } else {
        print_problems(&problems);
        if (policy && call->values[OPTION_PRINT])
            status = print_policy(policy);
    }
    policy_unref(policy);
    policy_problems_deinit(&problems);
    return status;
}

static int run(const struct call *call)
{
    struct files files = {.list = NULL};
    int status = files_read(call->operands, call->n_operands, &files);

    if (status == STATUS_DONE)
        status = check(call, &files);
    files_deinit(&files);
    return status;
}

const struct command command_check = {
    .name = "check",
    .operands = "FILE...",
    .summary = "say what is wrong with policy files",
    .help = "Reads the first FILE as a main policy file and all others as its drop-ins, in the\n"
            "order in which they are given, and says everything that is wrong with them, as\n"
            "FILE:LINE:COLUMN: MESSAGE. \"-\" is standard input. No daemon is needed. Exit\n"
            "status 0 when it is a policy, 1 when it is none.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .n_operands_min = 1,
    .n_operands_max = COMMAND_OPERANDS_UNLIMITED,
    .run = run,
};
