/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl: which commands there are. Nothing else.
 */

#include <string.h>

#include "ctl/arguments.h"
#include "ctl/command.h"
#include "ctl/output.h"

const struct command *const commands[] = {
    &command_status,
    &command_list,
    &command_show,
    &command_resume,
    &command_hold,
    &command_kill,
    &command_attach_profiler,
    &command_events,
    &command_explain,
    &command_rules,
    &command_metrics,
    &command_check,
    &command_reload,
    &command_run,
    &command_env,
    &command_help,
    NULL,
};

static const char *const later[] = {
    "doctor", "pause", "plan", "test", "unpause", NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

const char *command_find_later(const char *name)
{
    for (size_t i = 0; later[i]; i++) {
        if (strcmp(later[i], name) == 0)
            return later[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct call call;
    int status;

    output_open();
    status = arguments_read(argc, argv, &call);
    if (status < 0)
        status = call.command->run(&call);
    return output_close(status);
}
