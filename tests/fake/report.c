/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/hresult.h"
#include "tests/fake/commands.h"
#include "tests/fake/runtime.h"
#include "tests/fake/utf8.h"

struct report_command *report_command(struct runtime *runtime, const struct port *port, uint8_t set,
                                      uint8_t id)
{
    struct report *report = &runtime->report;
    struct report_command **list = realloc(report->list, (report->n + 1) * sizeof(*list));
    struct report_command *command = calloc(1, sizeof *command);

    if (list)
        report->list = list;
    if (!list || !command) {
        free(command);
        return NULL;
    }
    command->set = set;
    command->id = id;
    command->port = (size_t)(port - runtime->ports.list);
    command->connection = port->connections;
    command->is_after_resume = runtime->is_resumed;
    bytes_init(&command->arguments, SIZE_MAX - 1);
    list[report->n++] = command;
    return command;
}

static void put_name(struct bytes *out, const char *name)
{
    if (out->length > 0)
        bytes_put_u8(out, ',');
    utf8_put_json(out, name);
    bytes_put_u8(out, ':');
}

void report_text(struct report_command *command, const char *name, const char *text)
{
    if (!command)
        return;
    put_name(&command->arguments, name);
    utf8_put_json(&command->arguments, text);
}

void report_number(struct report_command *command, const char *name, uint64_t number)
{
    if (!command)
        return;
    put_name(&command->arguments, name);
    bytes_put_format(&command->arguments, "%" PRIu64, number);
}

static void put_command(struct bytes *out, const struct report_command *command)
{
    bytes_put_string(out, "{\"name\":");
    utf8_put_json(out, commands_name(command->set, command->id));
    bytes_put_format(out, ",\"set\":%u,\"id\":%u,\"port\":%zu,\"connection\":%u,\"arguments\":{",
                     command->set, command->id, command->port, command->connection);
    bytes_put_run(out, command->arguments.data, command->arguments.length);
    bytes_put_string(out, "},\"result\":");
    if (command->has_result)
        bytes_put_format(out, "\"0x%08" PRIx32 "\"", command->result);
    else
        bytes_put_string(out, "null");
    bytes_put_format(out, ",\"after_resume\":%s,\"fault\":",
                     command->is_after_resume ? "true" : "false");
    utf8_put_json(out, command->fault);
    bytes_put_u8(out, '}');
}

static void put_commands(struct bytes *out, const struct report *report, size_t first)
{
    bytes_put_string(out, ",\"commands\":[");
    for (size_t i = first; i < report->n; i++) {
        if (i > first)
            bytes_put_u8(out, ',');
        put_command(out, report->list[i]);
    }
    bytes_put_u8(out, ']');
}

static bool is_applied(const struct report_command *command)
{
    return command->subject && command->has_result && command->result == HRESULT_OK;
}

static bool is_applied_before(const struct report *report, size_t index)
{
    const struct report_command *command = report->list[index];

    for (size_t i = 0; i < index; i++) {
        const struct report_command *earlier = report->list[i];

        if (earlier->set == command->set && earlier->id == command->id && is_applied(earlier) &&
            strcmp(earlier->subject, command->subject) == 0)
            return true;
    }
    return false;
}

static bool ran_before(const struct hooks *hooks, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(hooks->ran[i], hooks->ran[index]) == 0)
            return true;
    }
    return false;
}

static void put_one_more(struct bytes *out, bool *is_first, const char *text)
{
    if (!*is_first)
        bytes_put_u8(out, ',');
    *is_first = false;
    utf8_put_json(out, text);
}

static void put_twice(struct bytes *out, const struct report *report, const struct hooks *hooks)
{
    bool is_first = true;

    bytes_put_string(out, ",\"twice\":[");
    for (size_t i = report->n_told; i < report->n; i++) {
        if (is_applied(report->list[i]) && is_applied_before(report, i))
            put_one_more(out, &is_first, report->list[i]->subject);
    }
    for (size_t i = report->n_told_hooks; i < hooks->n_ran; i++) {
        if (ran_before(hooks, i))
            put_one_more(out, &is_first, hooks->ran[i]);
    }
    bytes_put_u8(out, ']');
}

static void put_after_resume(struct bytes *out, const struct report *report)
{
    bool is_first = true;

    bytes_put_string(out, ",\"after_resume\":[");
    for (size_t i = report->n_told; i < report->n; i++) {
        if (report->list[i]->is_after_resume)
            put_one_more(out, &is_first, commands_name(report->list[i]->set, report->list[i]->id));
    }
    bytes_put_u8(out, ']');
}

static void put_ports(struct bytes *out, const struct ports *ports)
{
    bytes_put_format(out, ",\"connections\":%u,\"ports\":[", ports->connections);
    for (size_t i = 0; i < ports->n; i++) {
        const struct port *port = &ports->list[i];

        bytes_put_string(out, i > 0 ? ",{\"path\":" : "{\"path\":");
        utf8_put_json(out, port->path);
        bytes_put_format(out, ",\"suspends\":%s,\"connections\":%u,\"resumes\":%u}",
                         port->suspends ? "true" : "false", port->connections, port->resumes);
    }
    bytes_put_string(out, "],\"waits_ms\":[");
    for (size_t i = 0; i < ports->n_waits; i++)
        bytes_put_format(out, "%s%d", i > 0 ? "," : "", ports->waits[i]);
    bytes_put_u8(out, ']');
}

static void put_identity(struct bytes *out, const struct runtime *runtime, const char *event,
                         const char *reason)
{
    struct guid cookie = runtime_cookie(runtime, 1);
    char id[GUID_TEXT_SIZE];

    guid_format(&cookie, id);
    bytes_put_format(out, "{\"event\":\"%s\",\"reason\":", event);
    utf8_put_json(out, reason);
    bytes_put_format(out, ",\"pid\":%d,\"generation\":%u,\"cookie\":\"%s\",\"kind\":\"%s\"",
                     (int)getpid(), runtime->generation, id, kind_name(runtime->version->kind));
    bytes_put_string(out, ",\"version\":");
    utf8_put_json(out, runtime->version->text);
    bytes_put_string(out, ",\"arguments\":[");
    for (int i = 0; i < runtime->n_arguments; i++) {
        if (i > 0)
            bytes_put_u8(out, ',');
        utf8_put_json(out, runtime->arguments[i]);
    }
    bytes_put_string(out, "],\"ms_to_resume\":");
    if (runtime->is_resumed && runtime->ports.advertised_at > 0)
        bytes_put_format(out, "%ld", runtime->resumed_at - runtime->ports.advertised_at);
    else
        bytes_put_string(out, "null");
    bytes_put_format(out, ",\"told_pause\":%s", runtime->told_pause ? "true" : "false");
}

static void put_hooks(struct bytes *out, const struct hooks *hooks)
{
    bytes_put_string(out, ",\"hooks\":[");
    for (size_t i = 0; i < hooks->n_ran; i++) {
        if (i > 0)
            bytes_put_u8(out, ',');
        utf8_put_json(out, hooks->ran[i]);
    }
    bytes_put_u8(out, ']');
}

/* One write, so that the lines of many processes do not mix. */
static void write_line(const char *path, const struct bytes *line)
{
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : STDOUT_FILENO;
    ssize_t n = fd < 0 ? -1 : write(fd, line->data, line->length);

    if (n != (ssize_t)line->length)
        fprintf(stderr, "fake-runtime: the report is lost: %s\n", strerror(errno));
    if (path && fd >= 0)
        close(fd);
}

void report_write(struct runtime *runtime, const char *event, const char *reason)
{
    struct report *report = &runtime->report;
    struct bytes line;

    bytes_init(&line, SIZE_MAX - 1);
    put_identity(&line, runtime, event, reason);
    put_ports(&line, &runtime->ports);
    put_commands(&line, report, report->n_told);
    bytes_put_string(&line, ",\"environment\":");
    variables_put_changes(&runtime->variables, &line);
    bytes_put_format(&line, ",\"profilers\":[%s]",
                     runtime->profilers.loaded ? runtime->profilers.loaded : "");
    put_hooks(&line, &runtime->hooks);
    put_twice(&line, report, &runtime->hooks);
    put_after_resume(&line, report);
    bytes_put_string(&line, "}\n");
    if (bytes_finish(&line) == 0)
        write_line(runtime->behaviour->report, &line);
    bytes_deinit(&line);
    report->n_told = report->n;
    report->n_told_hooks = runtime->hooks.n_ran;
}
