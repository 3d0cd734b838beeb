/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/journal.h"
#include "lib/bytes.h"

enum {
    /* At most PIPE_BUF: a pipe that can be written at all takes that much without blocking. */
    LINE_MAX_SIZE = 4096,
    PREFIX_MAX_SIZE = 16,
    TEXT_MAX_SIZE = LINE_MAX_SIZE - PREFIX_MAX_SIZE - 1,
    FIELD_MAX_SIZE = 1024,
    ENTRY_MAX_SIZE = 16384,
};

static bool is_systemd; /* standard error is what systemd connected */
static bool is_socket;
static struct journal journal = {.fd = -1};
static unsigned long n_lost;

/* $JOURNAL_STREAM names the device and inode of what systemd connected; a redirection since then
 * makes it somebody else's. */
void log_open(const char *path)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status = {0};

    is_socket = fstat(STDERR_FILENO, &status) == 0 && S_ISSOCK(status.st_mode);
    is_systemd = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                 status.st_dev == device && status.st_ino == inode;
    if (is_systemd && journal_open(&journal, path) != 0)
        journal_close(&journal);
}

bool log_is_journal(void)
{
    return is_systemd;
}

void log_close(void)
{
    journal_close(&journal);
    is_systemd = false;
    n_lost = 0;
}

/* To the journal. */

static void put_field(struct bytes *entry, enum entry_field field, const struct notice *notice)
{
    struct bytes value;

    bytes_init(&value, FIELD_MAX_SIZE);
    if (entry_put_field(field, notice, &value)) {
        /* One that is too long is cut, not lost. */
        if (value.error == -EMSGSIZE)
            value.error = 0;
        if (bytes_finish(&value) == 0)
            journal_put(entry, entry_field_name(field), (const char *)value.data);
        else
            entry->error = -ENOMEM;
    }
    bytes_deinit(&value);
}

static void put_entry(struct bytes *entry, enum entry_kind kind, enum log_level level,
                      const struct notice *notice, const char *text)
{
    char priority[12];

    snprintf(priority, sizeof priority, "%d", (int)level);
    journal_put(entry, "MESSAGE", text);
    journal_put(entry, "PRIORITY", priority);
    journal_put(entry, "SYSLOG_IDENTIFIER", "diagportd");
    if (entry_kind_id(kind))
        journal_put(entry, "MESSAGE_ID", entry_kind_id(kind));
    for (unsigned i = 0; notice && i < ENTRY_FIELDS; i++) {
        if (entry_kind_has(kind, (enum entry_field)i))
            put_field(entry, (enum entry_field)i, notice);
    }
}

/* As journal_send(). */
static int write_entry(enum entry_kind kind, enum log_level level, const struct notice *notice,
                       const char *text)
{
    struct bytes entry;
    int error;

    bytes_init(&entry, ENTRY_MAX_SIZE);
    put_entry(&entry, kind, level, notice, text);
    error = bytes_finish(&entry);
    if (error == 0)
        error = journal_send(&journal, &entry);
    bytes_deinit(&entry);
    return error;
}

/* To standard error. */

/* A reader that is stuck must not stop us: then the line is lost, and counted. */
static ssize_t write_bytes(const char *line, size_t length)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (is_socket)
        return send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
        return -1;
    return write(STDERR_FILENO, line, length);
}

static bool write_line(enum log_level level, const char *text)
{
    char line[LINE_MAX_SIZE + 1], prefix[PREFIX_MAX_SIZE] = "diagportd: ";
    int length;

    if (is_systemd)
        snprintf(prefix, sizeof prefix, "<%d>", (int)level);
    length = snprintf(line, sizeof line, "%s%s\n", prefix, text);
    return length > 0 && write_bytes(line, (size_t)length) == length;
}

/* Either. */

static bool write_text(enum entry_kind kind, enum log_level level, const struct notice *notice,
                       const char *text)
{
    int error;

    if (journal.fd < 0)
        return write_line(level, text);
    error = write_entry(kind, level, notice, text);
    if (error == 0 || journal_is_full(error))
        return error == 0;
    return write_line(level, text);
}

/* Where a text was cut in the middle of a character, the journal would not take it for text. */
static void drop_half_character(char *text, size_t length)
{
    while (length > 0 && ((unsigned char)text[length - 1] & 0xC0) == 0x80)
        text[--length] = '\0';
    if (length > 0 && (unsigned char)text[length - 1] >= 0xC0)
        text[length - 1] = '\0';
}

static void PRINTF_LIKE(2, 0) make_text(char *text, const char *format, va_list arguments)
{
    int length = 0, n;

    if (n_lost > 0)
        length = snprintf(text, TEXT_MAX_SIZE, "(%lu lines before this one were lost) ", n_lost);
    n = vsnprintf(text + length, TEXT_MAX_SIZE - (size_t)length, format, arguments);
    if (n < 0)
        text[length] = '\0';
    else if ((size_t)n >= TEXT_MAX_SIZE - (size_t)length)
        drop_half_character(text, TEXT_MAX_SIZE - 1);
}

static void say(enum entry_kind kind, enum log_level level, const struct notice *notice,
                const char *text)
{
    if (write_text(kind, level, notice, text))
        n_lost = 0;
    else
        n_lost++;
}

void log_write(enum log_level level, const char *format, ...)
{
    char text[TEXT_MAX_SIZE];
    va_list arguments;

    va_start(arguments, format);
    make_text(text, format, arguments);
    va_end(arguments);
    say(ENTRY_LINE, level, NULL, text);
}

void log_entry(enum entry_kind kind, enum log_level level, const struct notice *notice,
               const char *format, ...)
{
    char text[TEXT_MAX_SIZE];
    va_list arguments;

    va_start(arguments, format);
    make_text(text, format, arguments);
    va_end(arguments);
    say(kind, level, notice, text);
}
