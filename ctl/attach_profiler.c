/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl attach-profiler: has a profiler loaded into a runtime that runs,
 * and waits for what comes of it.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/runtime.h"
#include "lib/bytes.h"
#include "lib/util.h"

enum {
    /* No message of the protocol has more. */
    DATA_MAX = 64 * 1024,
    /* Between two looks at what has come of it: the first wait, and the longest. */
    WAIT_MS = 20,
    WAIT_MS_MAX = 250,
    /* The daemon gives up sooner, with the longest time that it allows. */
    PATIENCE_MS = 180 * 1000,
};

enum { OPTION_CLSID, OPTION_PATH, OPTION_DATA, OPTION_DATA_FILE, OPTION_TIMEOUT };

static const struct command_option options[] = {
    [OPTION_CLSID] = {"clsid", '\0', "GUID", "the class id of the profiler; has to be given"},
    [OPTION_PATH] = {"path", '\0', "FILE", "its library, as the process sees it; has to be given"},
    [OPTION_DATA] = {"data", '\0', "TEXT", "what the profiler is given with it"},
    [OPTION_DATA_FILE] = {"data-file", '\0', "FILE", "the same, all bytes of a file"},
    [OPTION_TIMEOUT] = {"timeout", '\0', "TIME",
                        "how long it may take, as 500ms or 5s (default: 5s, at most 1m)"},
};

/* What is asked for. */

/* One byte more than is allowed is read, so that it is seen to be too much. 0 or a negative errno.
 */
static int read_all(int fd, struct bytes *data)
{
    uint8_t part[4096];
    ssize_t n;

    while ((n = read(fd, part, sizeof part)) > 0 && data->length <= DATA_MAX)
        bytes_put_run(data, part, (size_t)n);
    if (n < 0)
        return -errno;
    if (data->length > DATA_MAX)
        return -EFBIG;
    return data->error;
}

static int read_data(const char *path, struct bytes *data)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int error = fd < 0 ? -errno : read_all(fd, data);

    if (fd >= 0)
        close(fd);
    if (error == 0)
        return STATUS_DONE;
    if (error == -ENOMEM)
        return output_no_memory();
    output_error("%s cannot be read: %s", path, strerror(-error));
    return STATUS_NO;
}

/* The form of bytes that JSON can carry; NULL when memory is out. */
static json_t *make_hex(const struct bytes *data)
{
    struct bytes text;
    json_t *value = NULL;

    bytes_init(&text, 2 * DATA_MAX);
    for (size_t i = 0; i < data->length; i++)
        bytes_put_format(&text, "%02x", data->data[i]);
    if (bytes_finish(&text) == 0)
        value = json_stringn((const char *)text.data, text.length);
    bytes_deinit(&text);
    return value;
}

static int put_data_file(json_t *body, const char *path)
{
    struct bytes data;
    int status;

    bytes_init(&data, DATA_MAX + 4096);
    status = read_data(path, &data);
    if (status == STATUS_DONE && json_object_set_new(body, "data_hex", make_hex(&data)) != 0)
        status = output_no_memory();
    bytes_deinit(&data);
    return status;
}

/* Texts that are given as they are. */
static int put_texts(const struct call *call, json_t *body)
{
    static const struct {
        int option;
        const char *key;
    } texts[] = {{OPTION_CLSID, "clsid"},
                 {OPTION_PATH, "path"},
                 {OPTION_DATA, "data"},
                 {OPTION_TIMEOUT, "timeout"}};

    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        const char *text = call->values[texts[i].option];

        if (text && json_object_set_new(body, texts[i].key, json_string(text)) != 0) {
            output_error("--%s has to be UTF-8%s", options[texts[i].option].name,
                         texts[i].option == OPTION_DATA ? "; give other bytes with --data-file"
                                                        : "");
            return STATUS_USAGE;
        }
    }
    return STATUS_DONE;
}

static int make_body(const struct call *call, json_t *body)
{
    int status;

    if (!call->values[OPTION_CLSID] || !call->values[OPTION_PATH]) {
        output_error("--clsid and --path have to be given; see \"diagportctl help "
                     "attach-profiler\"");
        return STATUS_USAGE;
    }
    if (call->values[OPTION_DATA] && call->values[OPTION_DATA_FILE]) {
        output_error("--data and --data-file are two forms of the same; give one of them");
        return STATUS_USAGE;
    }
    status = put_texts(call, body);
    if (status == STATUS_DONE && call->values[OPTION_DATA_FILE])
        status = put_data_file(body, call->values[OPTION_DATA_FILE]);
    return status;
}

/* What comes of it. */

static bool is_pending(const json_t *step)
{
    return strcmp(answer_text_or_empty(step, "result"), "pending") == 0;
}

/* NULL when there is none of that number. */
static const json_t *find_step(const json_t *runtime, int64_t number)
{
    const json_t *steps = answer_member(runtime, "steps");

    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);

        if (strcmp(answer_text_or_empty(step, "kind"), "attach") == 0 &&
            answer_number(step, "number") == number)
            return step;
    }
    return NULL;
}

/* What is wrong with its file, and what to do about that. */
static void put_file(const json_t *step, struct page *page)
{
    const char *code = answer_text(step, "code"), *detail = answer_text(step, "detail");
    const char *remedy = answer_text(step, "remedy");

    if (detail)
        page_format(page, ": %s", detail);
    if (code)
        page_format(page, " (%s)", code);
    if (remedy)
        page_format(page, ". %s", remedy);
}

/* Why the profiler is not there, or nobody knows. What was refused without asking the runtime goes
 * on from its path. */
static void put_failure(const json_t *step, struct page *page)
{
    const char *result = answer_text_or_empty(step, "result"), *why = answer_text(step, "why");
    const char *hresult = answer_text(step, "hresult"), *meaning = answer_text(step, "meaning");

    page_format(page, "%s ", answer_text_or_empty(step, "name"));
    if (strcmp(result, "lost") == 0)
        page_format(page, "may be loaded or not: %s", why ? why : "no answer came");
    else if (hresult)
        page_format(page, "was not loaded: the runtime answered %s", hresult);
    else
        page_format(page, "%s%s",
                    strcmp(result, "refused") == 0 ? "" : "was not loaded: ", why ? why : "");
    if (hresult && meaning)
        page_format(page, " (%s)", meaning);
    put_file(step, page);
    page_end_line(page);
}

static int print(const json_t *runtime, const json_t *step)
{
    const bool is_done = strcmp(answer_text_or_empty(step, "result"), "ok") == 0;
    struct page page;
    int status;

    page_init(&page);
    page_format(&page, "attach-profiler: %s; runtime ", is_done ? "done" : "failed");
    runtime_put_name(runtime, &page);
    if (is_done) {
        page_format(&page, " has loaded %s", answer_text_or_empty(step, "name"));
        page_end_line(&page);
    } else {
        page_text(&page, ": ");
        put_failure(step, &page);
    }
    status = page_write(&page);
    return status == STATUS_DONE && !is_done ? STATUS_NO : status;
}

static int show(const struct call *call, const json_t *runtime, const json_t *step)
{
    int status;

    if (!call->is_json)
        return print(runtime, step);
    status = output_json(step);
    return status == STATUS_DONE && strcmp(answer_text_or_empty(step, "result"), "ok") != 0
               ? STATUS_NO
               : status;
}

/* The status, or -1 when nothing has come of it yet. */
static int look(const struct call *call, struct client *client, const char *target, int64_t number)
{
    json_t *runtime = NULL;
    const json_t *step;
    int status = client_get(client, target, &runtime);

    if (status == STATUS_DONE) {
        step = find_step(runtime, number);
        if (step)
            status = is_pending(step) ? -1 : show(call, runtime, step);
        if (!step) {
            output_error("the daemon does not know any more what came of it");
            status = STATUS_NO;
        }
    }
    json_decref(runtime);
    return status;
}

static void wait_ms(long ms)
{
    const struct timespec length = {.tv_nsec = ms * 1000000};

    nanosleep(&length, NULL);
}

static int await(const struct call *call, struct client *client, const char *cookie, int64_t number)
{
    long wait = WAIT_MS;
    char *target;
    int status = runtime_make_target(cookie, NULL, &target);

    if (status != STATUS_DONE)
        return status;
    status = look(call, client, target, number);
    for (long waited = 0; status < 0 && waited < PATIENCE_MS; waited += wait) {
        wait = waited == 0 ? WAIT_MS : wait * 2 < WAIT_MS_MAX ? wait * 2 : WAIT_MS_MAX;
        wait_ms(wait);
        status = look(call, client, target, number);
    }
    free(target);
    if (status >= 0)
        return status;
    output_error("nothing has come of it yet; see \"diagportctl show %s\"", cookie);
    return STATUS_NO;
}

/* From its beginning to its end. */
static int attach(const struct call *call, struct client *client, const char *target,
                  const json_t *body)
{
    json_t *answer = NULL;
    const char *cookie;
    int status = client_post(client, target, body, &answer);

    if (status == STATUS_DONE) {
        cookie = answer_text(answer_member(answer, "runtime"), "cookie");
        if (cookie) {
            status = await(call, client, cookie, answer_number(answer, "number"));
        } else {
            output_error("the runtime has ended");
            status = STATUS_NO;
        }
    }
    json_decref(answer);
    return status;
}

static int ask(const struct call *call, const json_t *body)
{
    struct client *client = NULL;
    char *target;
    int status = runtime_make_target(call->operands[0], call->command->name, &target);

    if (status != STATUS_DONE)
        return status;
    status = client_open(call, &client);
    if (status == STATUS_DONE)
        status = attach(call, client, target, body);
    client_free(client);
    free(target);
    return status;
}

static int run(const struct call *call)
{
    json_t *body = json_object();
    int status = body ? make_body(call, body) : output_no_memory();

    if (status == STATUS_DONE)
        status = ask(call, body);
    json_decref(body);
    return status;
}

const struct command command_attach_profiler = {
    .name = "attach-profiler",
    .operands = "ID",
    .summary = "have a profiler loaded into a runtime that runs",
    .help = "Has the profiler loaded by a runtime that runs (not NativeAOT), and waits for what\n"
            "comes of it. Its file is looked at first, as for profilers of rules. One profiler is\n"
            "loaded at a time, and the runtime answers to nobody else meanwhile; what does not\n"
            "answer in time is lost: nobody knows whether it is there. A runtime that waits to be\n"
            "resumed gets its profilers by a rule.\n"
            "\n"
            "The data is handed to the profiler as it is (InitializeForAttach), and is shown\n"
            "nowhere. No variable of a rule is set for it.\n"
            "\n" RUNTIME_ID_HELP,
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .n_operands_min = 1,
    .n_operands_max = 1,
    .is_weighty = true,
    .run = run,
};
