/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl run: becomes an app that waits for the daemon. It refuses where
 * the app would wait for nobody.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/port.h"
#include "ctl/socket.h"
#include "lib/util.h"

enum { OPTION_PORT };

static const struct command_option options[] = {
    [OPTION_PORT] = {"port", '\0', "NAME", "the listener (default: the only one, or \"runtime\")"},
};

/* As of a shell that cannot start a program. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

/* With one of them a runtime has no diagnostic port at all, and does not wait. */
static const char *find_switch(void)
{
    static const char *const names[] = {
        "DOTNET_EnableDiagnostics",
        "DOTNET_EnableDiagnostics_IPC",
        "COMPlus_EnableDiagnostics",
        "COMPlus_EnableDiagnostics_IPC",
    };

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *value = getenv(names[i]);

        if (value && strcmp(value, "0") == 0)
            return names[i];
    }
    return NULL;
}

/* A value that somebody else set would be lost: it is not ours to replace. */
static int check_environment(const char *path)
{
    const char *value = getenv(PORT_VARIABLE), *off = find_switch();

    if (value && value[0] != '\0' && strcmp(value, path) != 0) {
        output_error(PORT_VARIABLE
                     " is set to something else already; take it away with \"env -u " PORT_VARIABLE
                     "\" before diagportctl, or run the command as it "
                     "is");
        return STATUS_NO;
    }
    if (off)
        output_warning("%s=0 switches diagnostic ports off, so the app will not connect", off);
    return STATUS_DONE;
}

static int check_listener(const char *path)
{
    const int error = socket_probe(path);

    switch (-error) {
    case 0:
        return STATUS_DONE;
    case EACCES:
    case EPERM:
        output_error("you may not write to %s, so the app would wait for ever; the listener needs "
                     "another \"mode\"",
                     path);
        return STATUS_REFUSED;
    case ENOENT:
    case ECONNREFUSED:
        output_error("nobody listens on %s, so the app would wait for ever; restart the daemon",
                     path);
        return STATUS_NO;
    default:
        output_error("%s cannot be connected to: %s", path, strerror(-error));
        return STATUS_NO;
    }
}

static int become(char *const *words)
{
    execvp(words[0], words);
    output_error("%s cannot be run: %s", words[0], strerror(errno));
    return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static int run(const struct call *call)
{
    char *path;
    int status = port_find(call, call->values[OPTION_PORT], &path);

    if (status != STATUS_DONE)
        return status;
    status = check_environment(path);
    if (status == STATUS_DONE)
        status = check_listener(path);
    if (status == STATUS_DONE && setenv(PORT_VARIABLE, path, 1) != 0)
        status = output_no_memory();
    free(path);
    return status == STATUS_DONE ? become(call->operands) : status;
}

const struct command command_run = {
    .name = "run",
    .operands = "-- CMD...",
    .summary = "start an app that waits for the daemon",
    .help = "Starts CMD with " PORT_VARIABLE " set, so that every .NET runtime in it\n"
            "connects to the daemon before its first instruction and waits to be resumed. CMD\n"
            "is not started when nobody listens there. The exit status is that of CMD; 127 if\n"
            "there is no such command, 126 if it cannot be run.\n",
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .n_operands_min = 1,
    .n_operands_max = COMMAND_OPERANDS_UNLIMITED,
    .ends_options = true,
    .is_weighty = true,
    .run = run,
};
