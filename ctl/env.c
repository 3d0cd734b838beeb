/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl env: the line that makes an app wait for the daemon, as a shell,
 * a unit file or Docker wants it.
 */

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/port.h"
#include "lib/bytes.h"
#include "lib/util.h"

enum { OPTION_PORT, OPTION_FORMAT };

static const struct command_option options[] = {
    [OPTION_PORT] = {"port", '\0', "NAME", "the listener (default: the only one, or \"runtime\")"},
    [OPTION_FORMAT] = {"format", '\0', "FORMAT", "shell (default), systemd, or docker"},
};

/* Lines for programs: bytes, not text for people. Control characters are not among them (port.h).
 */
typedef void put_line(struct bytes *out, const char *value);

/* In single quotes nothing means anything but the single quote. */
static void put_shell(struct bytes *out, const char *value)
{
    bytes_put_string(out, "export " PORT_VARIABLE "='");
    for (; *value != '\0'; value++) {
        if (*value == '\'')
            bytes_put_string(out, "'\\''");
        else
            bytes_put_u8(out, (uint8_t)*value);
    }
    bytes_put_string(out, "'\n");
}

/* In a unit file '%' begins a specifier, and double quotes leave the backslash its meaning. */
static void put_systemd(struct bytes *out, const char *value)
{
    bytes_put_string(out, "Environment=\"" PORT_VARIABLE "=");
    for (; *value != '\0'; value++) {
        if (*value == '%')
            bytes_put_u8(out, '%');
        else if (*value == '"' || *value == '\\')
            bytes_put_u8(out, '\\');
        bytes_put_u8(out, (uint8_t)*value);
    }
    bytes_put_string(out, "\"\n");
}

/* Docker takes everything after the first '=' as it stands. */
static void put_docker(struct bytes *out, const char *value)
{
    bytes_put_format(out, PORT_VARIABLE "=%s\n", value);
}

static put_line *find_format(const char *name)
{
    static const struct {
        const char *name;
        put_line *put;
    } formats[] = {{"shell", put_shell}, {"systemd", put_systemd}, {"docker", put_docker}};

    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
        if (strcmp(name, formats[i].name) == 0)
            return formats[i].put;
    }
    return NULL;
}

static int print(put_line *put, const char *path)
{
    struct bytes line;

    bytes_init(&line, SIZE_MAX - 1);
    put(&line, path);
    if (bytes_finish(&line) != 0) {
        bytes_deinit(&line);
        return output_no_memory();
    }
    fwrite(line.data, 1, line.length, stdout);
    bytes_deinit(&line);
    return STATUS_DONE;
}

static int print_json(const char *path)
{
    json_t *answer = json_pack("{s:s, s:s%}", "name", PORT_VARIABLE, "value", path, strlen(path));
    int status;

    if (!answer) {
        output_error("the path of the socket is not UTF-8; leave --json out");
        return STATUS_NO;
    }
    status = output_json(answer);
    json_decref(answer);
    return status;
}

static int run(const struct call *call)
{
    const char *name = call->values[OPTION_FORMAT] ? call->values[OPTION_FORMAT] : "shell";
    put_line *put = find_format(name);
    char *path;
    int status;

    if (!put) {
        output_error("there is no format \"%s\"; it is shell, systemd or docker", name);
        return STATUS_USAGE;
    }
    status = port_find(call, call->values[OPTION_PORT], &path);
    if (status != STATUS_DONE)
        return status;
    status = call->is_json ? print_json(path) : print(put, path);
    free(path);
    output_warning("with it an app waits, silently and for ever, while the socket is missing or "
                   "not writable for it; a blank in the value hangs it, a waiting .NET 8 or 9 "
                   "ignores SIGTERM; for a trial add ,nosuspend");
    return status;
}

const struct command command_env = {
    .name = "env",
    .summary = "print the line that makes an app wait for the daemon",
    .help = "Prints the line that sets " PORT_VARIABLE ": for a shell, for the\n"
            "[Service] section of a systemd unit, or for docker run --env-file.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .is_weighty = true,
    .run = run,
};
