/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl kill: ends the process of one runtime.
 */

#include "ctl/command.h"
#include "ctl/operate.h"
#include "ctl/runtime.h"

static int run(const struct call *call)
{
    return operate(call, NULL);
}

const struct command command_kill = {
    .name = "kill",
    .operands = "ID",
    .summary = "end the process of a runtime (SIGKILL)",
    .help = "Ends the process of the runtime with SIGKILL: a suspended .NET 8 or 9 does not\n"
            "react to SIGTERM. The daemon needs the right to do so.\n"
            "\n" RUNTIME_ID_HELP,
    .n_operands_min = 1,
    .n_operands_max = 1,
    .is_weighty = true,
    .run = run,
};
