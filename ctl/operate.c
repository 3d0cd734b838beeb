/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/operate.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/ask.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/runtime.h"

/* The end of a process that is killed comes a little later than the answer. */
static int print(const struct call *call, const json_t *answer)
{
    const json_t *runtime = answer_member(answer, "runtime");
    const char *until = answer_text(runtime, "hold_until");
    const bool is_old = strcmp(answer_text_or_empty(answer, "verdict"), "already") == 0;
    struct page page;

    page_init(&page);
    page_format(&page, "%s: %s; runtime ", call->command->name, is_old ? "nothing to do" : "done");
    runtime_put_name(runtime, &page);
    if (call->command == &command_kill && !is_old) {
        page_text(&page, " was sent SIGKILL");
    } else {
        page_text(&page, " is ");
        page_styled(&page, runtime_style(runtime), answer_text_or_empty(runtime, "state"));
        if (until)
            page_format(&page, " until %s", until);
    }
    page_end_line(&page);
    return page_write(&page);
}

int operate(const struct call *call, const json_t *body)
{
    char *target;
    int status = runtime_make_target(call->operands[0], call->command->name, &target);

    if (status != STATUS_DONE)
        return status;
    status = ask_post(call, target, body, print);
    free(target);
    return status;
}
