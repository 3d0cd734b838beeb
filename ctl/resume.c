/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl resume: lets one runtime go.
 */

#include "ctl/command.h"
#include "ctl/operate.h"
#include "ctl/runtime.h"

static int run(const struct call *call)
{
    return operate(call, NULL);
}

const struct command command_resume = {
    .name = "resume",
    .operands = "ID",
    .summary = "let a runtime go, whatever is left to do",
    .help = "Resumes the runtime. While its rule is being applied this is as if its deadline\n"
            "had come: what was begun is taken back as far as it can be, then it is resumed.\n"
            "\n" RUNTIME_ID_HELP,
    .n_operands_min = 1,
    .n_operands_max = 1,
    .is_weighty = true,
    .run = run,
};
