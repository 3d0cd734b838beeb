/* SPDX-License-Identifier: Apache-2.0 */

/*
 * diagportctl hold: keeps one runtime from being resumed for a while.
 */

#include "ctl/command.h"
#include "ctl/operate.h"
#include "ctl/output.h"
#include "ctl/runtime.h"
#include "lib/util.h"

enum { OPTION_FOR };

static const struct command_option options[] = {
    [OPTION_FOR] = {"for", '\0', "TIME",
                    "how long, as 500ms, 30s, 10m or 2h, or forever (default: hold_limit)"},
};

static int run(const struct call *call)
{
    const char *length = call->values[OPTION_FOR];
    json_t *body;
    int status;

    if (!length)
        return operate(call, NULL);
    body = json_pack("{s:s}", "for", length);
    if (!body) {
        output_error("--for takes a time such as 10m, or forever");
        return STATUS_USAGE;
    }
    status = operate(call, body);
    json_decref(body);
    return status;
}

const struct command command_hold = {
    .name = "hold",
    .operands = "ID",
    .summary = "keep a runtime from being resumed for a while",
    .help = "Holds a runtime that is not resumed yet, at most as long as the hold_limit of its\n"
            "rule says; then it is resumed. One that is held already gets the new time.\n"
            "\n" RUNTIME_ID_HELP,
    .options = options,
    .n_options = ARRAY_LENGTH(options),
    .n_operands_min = 1,
    .n_operands_max = 1,
    .is_weighty = true,
    .run = run,
};
