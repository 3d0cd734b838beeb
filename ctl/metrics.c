/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl metrics: what the daemon counts, for programs that collect it.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/textfile.h"
#include "lib/bytes.h"
#include "lib/text.h"
#include "lib/util.h"

enum { OPTION_TEXTFILE };

static const struct command_option options[] = {
    [OPTION_TEXTFILE] = {"textfile", '\0', "PATH", "write a file for node_exporter, in one step"},
};

/* Escapes of the format have backslashes; all else that is not plain to see is in no metrics. */
static bool is_plain(const char *text)
{
    struct bytes shown;
    bool is_same = true;

    bytes_init(&shown, SIZE_MAX - 1);
    while (is_same && *text != '\0') {
        size_t length = strcspn(text, "\\\n");

        shown.length = 0;
        text_put_escaped(&shown, text, length);
        is_same = shown.error == 0 && shown.length == length;
        text += length + (text[length] != '\0');
    }
    bytes_deinit(&shown);
    return is_same;
}

static bool is_whole(const char *text)
{
    static const char end[] = "# EOF\n";
    size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static int write_file(const char *path, const char *text)
{
    struct bytes content;
    int error;

    bytes_init(&content, SIZE_MAX - 1);
    textfile_convert(text, &content);
    error = bytes_finish(&content);
    if (error == 0)
        error = textfile_write(path, content.data, content.length);
    bytes_deinit(&content);
    if (error == 0)
        return STATUS_DONE;
    output_error("%s cannot be written: %s", path, strerror(-error));
    return STATUS_NO;
}

/* For programs: bytes as they came. */
static int show(const char *path, const char *text)
{
    if (!is_whole(text) || !is_plain(text)) {
        output_error("whoever answers is no diagportd: its answer is no metrics");
        return STATUS_NO;
    }
    if (path)
        return write_file(path, text);
    fputs(text, stdout);
    return STATUS_DONE;
}

static int run(const struct call *call)
{
    const char *path = call->values[OPTION_TEXTFILE], *text;
    struct client *client;
    int status;

    if (call->is_json) {
        output_error("metrics are no JSON; leave --json out");
        return STATUS_USAGE;
    }
    if (path && *path == '\0') {
        output_error("--textfile takes the path of a file");
        return STATUS_USAGE;
    }
    status = client_open(call, &client);
    if (status != STATUS_DONE)
        return status;
    status = client_get_text(client, "/metrics", &text);
    if (status == STATUS_DONE)
        status = show(path, text);
    client_free(client);
    return status;
}

const struct command command_metrics = {
    .name = "metrics",
    .summary = "say what is counted, for programs that collect it",
    .help = "Writes what the daemon counts, as OpenMetrics. With --textfile it is written to a\n"
            "file that everybody may read and that is replaced in one step, as the textfile\n"
            "collector of node_exporter wants it, and without what that program says of\n"
            "processes itself.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .run = run,
};
