/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include "tests/fake/behaviour.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

enum row_type {
    ROW_TITLE,
    ROW_TEXT,
    ROW_NUMBER,
    ROW_CHOICE,
    ROW_COOKIE,
    ROW_COMMAND_FAULT,
    ROW_CONNECTION_FAULT,
};

struct row {
    enum row_type type;
    const char *key;
    const char *value; /* as --help shows it; for ROW_CHOICE the choices, the default first */
    const char *help;
    size_t offset;
    enum fault_id fault;
    enum fault_argument argument;
};

#define TITLE(text)                     \
    {                                   \
        .type = ROW_TITLE, .help = text \
    }
#define KEEP(row_type, name, shown, member, text)                    \
    {                                                                \
        .type = row_type, .key = name, .value = shown, .help = text, \
        .offset = offsetof(struct behaviour, member)                 \
    }
#define COMMAND(name, id, takes, shown, text)                                                      \
    {                                                                                              \
        .type = ROW_COMMAND_FAULT, .key = name, .value = shown, .help = text, .fault = FAULT_##id, \
        .argument = FAULT_ARGUMENT_##takes                                                         \
    }
#define CONNECTION(name, id, takes, shown, text)                                 \
    {                                                                            \
        .type = ROW_CONNECTION_FAULT, .key = name, .value = shown, .help = text, \
        .fault = FAULT_##id, .argument = FAULT_ARGUMENT_##takes                  \
    }

/* clang-format off */
static const struct row rows[] = {
    TITLE("Who it is"),
    KEEP(ROW_TEXT,   "version", "8|9|10|11|7|6|5|TEXT", version_text, "major version, or all of it: 8.0.0, 11.0.0-rc.1 (8)"),
    KEEP(ROW_CHOICE, "kind", "coreclr|nativeaot|mono", kind, "NativeAOT: 8 to 11, Mono: 8 to 10"),
    KEEP(ROW_COOKIE, "cookie", "GUID", cookie, "instead of a random one"),
    KEEP(ROW_NUMBER, "new-cookie-per-connection", "N", cookies, "N cookies in turn, one for each connection"),
    KEEP(ROW_NUMBER, "claim-pid", "N", claim_pid, "advertise this pid"),
    KEEP(ROW_TEXT,   "entry", "NAME", entry, "entry assembly (from the first argument, or the program)"),
    KEEP(ROW_TEXT,   "rid", "RID", rid, "portable RID (linux-x64 or what was compiled)"),

    TITLE("Its ports"),
    KEEP(ROW_TEXT,   "default-port", "PATH|auto", default_port, "also listen, on PATH or where the runtime does"),
    KEEP(ROW_NUMBER, "read-timeout", "MS", read_timeout, "give up a message after MS; real ones wait for ever"),
    KEEP(ROW_NUMBER, "slow-bytes", "MS", slow_bytes, "pause after each byte of every advertise and reply"),

    TITLE("How it starts"),
    KEEP(ROW_NUMBER, "wait-fd", "FD", wait_fd, "first wait for the end of this inherited descriptor"),
    KEEP(ROW_NUMBER, "profiler-race", "MS", profiler_race, "connect, and begin to pause only MS later"),
    KEEP(ROW_NUMBER, "start-delay", "MS", start_delay, "from Resume to the start of managed code (2)"),
    KEEP(ROW_NUMBER, "message-after", "MS", message_after, "when the pause is told on standard output (5000)"),
    KEEP(ROW_CHOICE, "picture", "honest|suspended|running|bare", picture, "thread names: true, always one picture, or none"),
    KEEP(ROW_CHOICE, "hooks", "checked|unchecked|off", hooks, "look at the files, believe in them, run none"),
    KEEP(ROW_CHOICE, "profilers", "checked|unchecked", profilers, "the same for profilers"),

    TITLE("What it answers"),
    KEEP(ROW_NUMBER, "env-bytes", "N", environment_bytes, "fill the environment to N bytes on the wire"),
    KEEP(ROW_NUMBER, "info-payload", "N", info_payload, "fill ProcessInfo to a payload of N bytes (65515 at most)"),
    KEEP(ROW_NUMBER, "rundown-bytes", "N", rundown_bytes, "what stopping a session with rundown writes (200000)"),

    TITLE("What it does once it runs"),
    KEEP(ROW_TEXT,   "report", "PATH", report, "append the report lines here, each in one write"),
    KEEP(ROW_CHOICE, "run-for", "exit|stdin|signal", run_for, "end at once, at the end of standard input, or at SIGTERM"),
    KEEP(ROW_NUMBER, "exit-status", "N", exit_status, "end with this status"),
    KEEP(ROW_CHOICE, "child", "none|managed|native", child, "start itself once more, with such a child's variables"),

    TITLE("Before a command is read"),
    COMMAND("unread", UNREAD, MAYBE, "KIND[:MS]", "the server thread is busy elsewhere for MS, or for ever"),
    COMMAND("reset", RESET, NONE, "KIND", "close without reading: the tool sees ECONNRESET"),

    TITLE("Before it is done"),
    COMMAND("stuck", STUCK, NONE, "KIND", "read it, and nothing more happens on any port"),
    COMMAND("refuse", REFUSE, HRESULT, "KIND:HRESULT[:COUNT]", "do nothing and answer with this error"),

    TITLE("After it is done"),
    COMMAND("stop-before-reply", STOP_BEFORE_REPLY, NONE, "KIND", "SIGSTOP itself"),
    COMMAND("delay", DELAY, NUMBER, "KIND:MS", "answer MS later"),
    COMMAND("die-before-reply", DIE_BEFORE_REPLY, MAYBE, "KIND[:SIGNAL]", "die (9); signal 0 is an exit with status 0"),
    COMMAND("close-before-reply", CLOSE_BEFORE_REPLY, NONE, "KIND", "close instead of answering"),
    COMMAND("silent", SILENT, NONE, "KIND", "answer nothing, and go on when the tool has closed"),
    COMMAND("wrong-magic", WRONG_MAGIC, NONE, "KIND", "another magic in the reply"),
    COMMAND("reply-size", REPLY_SIZE, NUMBER, "KIND:N", "N in the size field of the reply"),
    COMMAND("reply-set", REPLY_SET, NUMBER, "KIND:N", "N in the command set of the reply"),
    COMMAND("half-reply", HALF_REPLY, MAYBE, "KIND[:N]", "send N bytes of it (half) and nothing more; socket open"),
    COMMAND("slow-reply", SLOW_REPLY, NUMBER, "KIND:MS", "pause after each of its bytes"),
    COMMAND("extra-bytes", EXTRA_BYTES, NUMBER, "KIND:N", "N bytes too many behind the reply"),
    COMMAND("queue-next", QUEUE_NEXT, MAYBE, "KIND[:PID]", "reply, close, advertise while the tool (PID) is stopped"),

    TITLE("After the reply"),
    COMMAND("leave-open", LEAVE_OPEN, NONE, "KIND", "do not close"),
    COMMAND("stop-after-reply", STOP_AFTER_REPLY, NONE, "KIND", "SIGSTOP itself"),
    COMMAND("die-after-reply", DIE_AFTER_REPLY, MAYBE, "KIND[:SIGNAL]", "die (9)"),
    COMMAND("exec-after", EXEC_AFTER, NONE, "KIND", "become a new runtime, same process; KIND may be \"start\""),

    TITLE("On a new connection"),
    CONNECTION("no-advertise", NO_ADVERTISE, NONE, "[@WHICH]", "say nothing"),
    CONNECTION("half-advertise", HALF_ADVERTISE, MAYBE, "[@WHICH][:N]", "its first N bytes (17)"),
    CONNECTION("cut-advertise", CUT_ADVERTISE, MAYBE, "[@WHICH][:N]", "the same, then close and connect again"),
    CONNECTION("garbage-advertise", GARBAGE_ADVERTISE, TEXT, "TEXT|@WHICH:TEXT", "something else; \\xHH is a byte"),
    CONNECTION("stop-after-advertise", STOP_AFTER_ADVERTISE, NONE, "[@WHICH]", "SIGSTOP itself"),
};
/* clang-format on */

void behaviour_init(struct behaviour *behaviour)
{
    *behaviour = (struct behaviour){
        .version_text = "8",
        .start_delay = 2,
        .message_after = 5000,
        .rundown_bytes = 200000,
    };
}

void behaviour_deinit(struct behaviour *behaviour)
{
    faults_deinit(&behaviour->faults);
}

static const struct row *find_row(const char *key)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if (rows[i].key && strcmp(rows[i].key, key) == 0)
            return &rows[i];
    }
    return NULL;
}

bool behaviour_takes_value(const char *key)
{
    const struct row *row = find_row(key);

    return row && (row->type != ROW_CONNECTION_FAULT || row->argument == FAULT_ARGUMENT_TEXT);
}

static const char *set_choice(const struct row *row, const char *value, unsigned *ret_choice)
{
    const char *at = row->value;

    for (unsigned i = 0;; i++) {
        size_t length = strcspn(at, "|");

        if (strlen(value) == length && memcmp(at, value, length) == 0) {
            *ret_choice = i;
            return NULL;
        }
        if (at[length] == '\0')
            return "not one of the choices";
        at += length + 1;
    }
}

static const char *set_number(const char *value, unsigned long *ret_number)
{
    char *end;
    unsigned long number = strtoul(value, &end, 10);

    if (end == value || *end != '\0' || number > INT_MAX)
        return "not a number";
    *ret_number = number;
    return NULL;
}

static const char *set_cookie(const char *value, struct behaviour *behaviour)
{
    if (!guid_parse(value, &behaviour->cookie))
        return "not a GUID";
    behaviour->has_cookie = true;
    return NULL;
}

static const char *set_row(struct behaviour *behaviour, const struct row *row, const char *value)
{
    void *member = (char *)behaviour + row->offset;

    if (!value && row->type != ROW_CONNECTION_FAULT)
        return "it takes a value";
    switch (row->type) {
    case ROW_TITLE:
        break;
    case ROW_TEXT:
        *(const char **)member = value;
        return NULL;
    case ROW_NUMBER:
        return set_number(value, member);
    case ROW_CHOICE:
        return set_choice(row, value, member);
    case ROW_COOKIE:
        return set_cookie(value, behaviour);
    case ROW_COMMAND_FAULT:
    case ROW_CONNECTION_FAULT:
        return faults_add(&behaviour->faults, row->fault, row->argument, value ? value : "");
    }
    return NULL;
}

bool behaviour_set(struct behaviour *behaviour, const char *key, const char *value)
{
    const struct row *row = find_row(key);
    const char *error = row ? set_row(behaviour, row, value) : "there is no such behaviour";

    if (!error)
        return true;
    fprintf(stderr, "fake-runtime: %s%s%s: %s\n", key, value ? "=" : "", value ? value : "", error);
    return false;
}

/* Ends the piece at its comma and returns what follows it, or NULL. */
static char *cut_piece(char *piece)
{
    char *to = piece;

    for (char *at = piece; *at != '\0'; at++) {
        if (at[0] == '\\' && at[1] == ',') {
            at++;
        } else if (*at == ',') {
            *to = '\0';
            return at + 1;
        }
        *to++ = *at;
    }
    *to = '\0';
    return NULL;
}

bool behaviour_set_list(struct behaviour *behaviour, char *list)
{
    while (list) {
        char *rest = cut_piece(list);
        char *equals = strchr(list, '=');

        if (equals)
            *equals = '\0';
        if (*list != '\0' && !behaviour_set(behaviour, list, equals ? equals + 1 : NULL))
            return false;
        list = rest;
    }
    return true;
}

bool behaviour_complete(struct behaviour *behaviour)
{
    enum kind kind = (enum kind)behaviour->kind;
    const struct version *version = version_find(kind, behaviour->version_text);

    if (!version) {
        fprintf(stderr, "fake-runtime: there is no %s %s to play\n", kind_name(kind),
                behaviour->version_text);
        return false;
    }
    behaviour->version = version_adjust(version, behaviour->version_text);
    return true;
}

void behaviour_print_help(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        const struct row *row = &rows[i];
        int width;

        if (row->type == ROW_TITLE) {
            printf("\n%s:\n", row->help);
            continue;
        }
        width = printf("  %s%s%s", row->key, *row->value == '[' ? "[=" : "=",
                       *row->value == '[' ? row->value + 1 : row->value);
        printf("%s%*s%s\n", width < 44 ? "" : "\n", width < 44 ? 44 - width : 44, "", row->help);
    }
}

const char *behaviour_fault_name(enum fault_id id)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        if ((rows[i].type == ROW_COMMAND_FAULT || rows[i].type == ROW_CONNECTION_FAULT) &&
            rows[i].fault == id)
            return rows[i].key;
    }
    return "";
}
