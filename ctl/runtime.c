/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/runtime.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/answer.h"
#include "ctl/client.h"
#include "ctl/command.h"
#include "lib/util.h"

/* NULL when memory is out. */
static char *make_target(const char *id, const char *verb)
{
    struct bytes target;

    bytes_init(&target, SIZE_MAX - 1);
    bytes_put_string(&target, "/v1/runtimes/");
    client_put_part(&target, id);
    if (verb)
        bytes_put_format(&target, "/%s", verb);
    if (bytes_finish(&target) != 0) {
        bytes_deinit(&target);
        return NULL;
    }
    return (char *)bytes_take(&target);
}

int runtime_make_target(const char *id, const char *verb, char **ret_target)
{
    /* Without one it would be the list of all. */
    if (id[0] == '\0') {
        output_error("the id of a runtime cannot be empty");
        return STATUS_USAGE;
    }
    *ret_target = make_target(id, verb);
    return *ret_target ? STATUS_DONE : output_no_memory();
}

void runtime_put_user(const json_t *runtime, struct bytes *out)
{
    const char *user = answer_text(runtime, "user");

    if (user)
        bytes_put_string(out, user);
    else if (json_is_integer(answer_member(runtime, "uid")))
        bytes_put_format(out, "%" PRId64, answer_number(runtime, "uid"));
}

/* A blank in one is shown in quotes; quotes of its own are left alone: this is for people. */
void runtime_put_arguments(const json_t *cmdline, struct bytes *out)
{
    for (size_t i = 0; i < json_array_size(cmdline); i++) {
        const char *word = json_string_value(json_array_get(cmdline, i));
        const char *quote = word && word[0] != '\0' && !strchr(word, ' ') ? "" : "\"";

        bytes_put_format(out, "%s%s%s%s", i > 0 ? " " : "", quote, word ? word : "?", quote);
    }
}

void runtime_put_command(const json_t *runtime, struct bytes *out)
{
    const json_t *cmdline = answer_member(runtime, "cmdline");

    if (json_array_size(cmdline) > 0)
        runtime_put_arguments(cmdline, out);
    else
        bytes_put_string(out, answer_text_or_empty(runtime, "exe"));
}

const char *runtime_blocked_words(const json_t *runtime)
{
    static const struct {
        const char *name, *words;
    } reasons[] = {
        {"stopped", "it is stopped by a signal, and goes on with SIGCONT"},
        {"traced", "a debugger has stopped it"},
        {"frozen", "its control group is frozen"},
        {"server_busy", "its diagnostic server is busy with somebody else"},
        {"other_port", "ports that are not ours wait for a Resume of their own"},
    };
    const char *blocked = answer_text(runtime, "blocked");

    for (size_t i = 0; blocked && i < ARRAY_LENGTH(reasons); i++) {
        if (strcmp(blocked, reasons[i].name) == 0)
            return reasons[i].words;
    }
    return blocked;
}

static bool has_state(const json_t *runtime, const char *state)
{
    return strcmp(answer_text_or_empty(runtime, "state"), state) == 0;
}

enum output_style runtime_style(const json_t *runtime)
{
    if (has_state(runtime, "gone") || has_state(runtime, "killed"))
        return STYLE_FAINT;
    if (answer_text(runtime, "blocked"))
        return STYLE_BAD;
    return has_state(runtime, "held") ? STYLE_WARNING : STYLE_PLAIN;
}

void runtime_put_name(const json_t *runtime, struct page *page)
{
    const char *exe = answer_text(runtime, "exe");

    page_text(page, answer_text_or_empty(runtime, "id"));
    page_format(page, " (process %" PRId64 "%s%s)", answer_number(runtime, "pid"), exe ? ", " : "",
                exe ? exe : "");
}
