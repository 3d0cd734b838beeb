/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/output.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/command.h"
#include "lib/text.h"

enum {
    ERROR_SIZE_MAX = 8192,
    LABEL_WIDTH = 12,
    WIDTH_UNKNOWN = 80,
    WIDTH_MIN = 40,
    HEIGHT_UNKNOWN = 24,
    HEIGHT_MIN = 5,
    /* As many as every decimal number survives with. */
    REAL_DIGITS = 15,
};

static bool is_utf8;
static bool has_colour;
static bool is_terminal;

static bool is_dumb(void)
{
    const char *terminal = getenv("TERM");

    return !terminal || strcmp(terminal, "dumb") == 0;
}

static bool wants_colour(void)
{
    const char *refusal = getenv("NO_COLOR");

    return is_terminal && !is_dumb() && !(refusal && refusal[0] != '\0');
}

void output_open(void)
{
    setlocale(LC_CTYPE, "");
    is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    is_terminal = isatty(STDOUT_FILENO) == 1;
    has_colour = wants_colour();
}

int output_close(int status)
{
    /* A program that `run` has become is not here any more; everybody else comes by. */
    bool is_written = ferror(stdout) == 0;

    if (fclose(stdout) == 0 && is_written)
        return status;
    output_error("standard output could not be written: %s", strerror(errno));
    return status == STATUS_DONE ? STATUS_NO : status;
}

size_t output_width(void)
{
    struct winsize size;

    if (!is_terminal)
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_UNKNOWN;
    return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

size_t output_height(void)
{
    struct winsize size;

    if (!is_terminal || is_dumb())
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return HEIGHT_UNKNOWN;
    return size.ws_row < HEIGHT_MIN ? HEIGHT_MIN : size.ws_row;
}

const char *output_style_begin(enum output_style style)
{
    if (!has_colour)
        return "";
    switch (style) {
    case STYLE_PLAIN:
        return "";
    case STYLE_STRONG:
        return "\033[1m";
    case STYLE_FAINT:
        return "\033[2m";
    case STYLE_GOOD:
        return "\033[32m";
    case STYLE_WARNING:
        return "\033[33m";
    case STYLE_BAD:
        return "\033[31m";
    }
    return "";
}

const char *output_style_end(enum output_style style)
{
    return has_colour && style != STYLE_PLAIN ? "\033[0m" : "";
}

/* Without a backslash in it. */
static void put_run(struct bytes *out, const char *run, size_t length)
{
    if (is_utf8) {
        text_put_escaped(out, run, length);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)run[i] < 0x80)
            text_put_escaped(out, run + i, 1);
        else
            bytes_put_format(out, "\\x%02x", (unsigned char)run[i]);
    }
}

void output_put_text(struct bytes *out, const char *text)
{
    for (;;) {
        const size_t length = strcspn(text, "\\");

        put_run(out, text, length);
        if (text[length] == '\0')
            return;
        bytes_put_u8(out, '\\');
        text += length + 1;
    }
}

void page_init(struct page *page)
{
    bytes_init(&page->bytes, SIZE_MAX - 1);
}

void page_deinit(struct page *page)
{
    bytes_deinit(&page->bytes);
}

void page_text(struct page *page, const char *text)
{
    output_put_text(&page->bytes, text);
}

static void PRINTF_LIKE(2, 0) put_format(struct page *page, const char *format, va_list arguments)
{
    char *text = NULL;

    if (vasprintf(&text, format, arguments) < 0) {
        page->bytes.error = -ENOMEM;
        return;
    }
    page_text(page, text);
    free(text);
}

void page_format(struct page *page, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_format(page, format, arguments);
    va_end(arguments);
}

void page_styled(struct page *page, enum output_style style, const char *text)
{
    if (text[0] == '\0')
        return;
    bytes_put_string(&page->bytes, output_style_begin(style));
    page_text(page, text);
    bytes_put_string(&page->bytes, output_style_end(style));
}

void page_end_line(struct page *page)
{
    bytes_put_u8(&page->bytes, '\n');
}

void page_indent(struct page *page, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes_put_u8(&page->bytes, ' ');
}

void page_label(struct page *page, const char *label)
{
    const size_t length = strlen(label);

    page_styled(page, STYLE_FAINT, label);
    page_indent(page, length < LABEL_WIDTH ? LABEL_WIDTH - length : 1);
}

void page_field(struct page *page, const char *label, const char *format, ...)
{
    va_list arguments;

    page_label(page, label);
    va_start(arguments, format);
    put_format(page, format, arguments);
    va_end(arguments);
    page_end_line(page);
}

void page_take(struct page *page, const char *text, size_t length)
{
    bytes_put_run(&page->bytes, text, length);
}

void page_clear_screen(struct page *page)
{
    bytes_put_string(&page->bytes, "\033[H\033[2J");
}

static int write_page(struct page *page, FILE *file)
{
    const int error = bytes_finish(&page->bytes);

    if (error == 0) {
        fwrite(page->bytes.data, 1, page->bytes.length, file);
        fflush(file);
    }
    page_deinit(page);
    return error == 0 ? STATUS_DONE : output_no_memory();
}

int page_write(struct page *page)
{
    return write_page(page, stdout);
}

int page_write_error(struct page *page)
{
    return write_page(page, stderr);
}

/* DEL is ASCII, and JSON lets it through. */
static void put_json(const char *text)
{
    for (;;) {
        const size_t length = strcspn(text, "\x7f");

        fwrite(text, 1, length, stdout);
        if (text[length] == '\0')
            break;
        fputs("\\u007f", stdout);
        text += length + 1;
    }
    putchar('\n');
}

/* ASCII only: nothing that a terminal obeys is left, and every reader of JSON undoes it. */
static int write_json(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags | JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
                                       JSON_REAL_PRECISION(REAL_DIGITS));

    if (!text)
        return output_no_memory();
    put_json(text);
    fflush(stdout);
    free(text);
    return STATUS_DONE;
}

int output_json(const json_t *value)
{
    return write_json(value, JSON_INDENT(2));
}

int output_json_line(const json_t *value)
{
    return write_json(value, JSON_COMPACT);
}

static void PRINTF_LIKE(2, 0) say(const char *severity, const char *format, va_list arguments)
{
    char text[ERROR_SIZE_MAX];
    struct bytes line;

    vsnprintf(text, sizeof text, format, arguments);
    bytes_init(&line, SIZE_MAX - 1);
    output_put_text(&line, text);
    fprintf(stderr, "diagportctl: %s%s\n", severity,
            bytes_finish(&line) == 0 ? (const char *)line.data : "memory ran out");
    bytes_deinit(&line);
}

void output_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

void output_note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("note: ", format, arguments);
    va_end(arguments);
}

void output_warning(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say("warning: ", format, arguments);
    va_end(arguments);
}

int output_no_memory(void)
{
    output_error("memory ran out");
    return STATUS_NO;
}

static void leave(int signal)
{
    (void)signal;
    _exit(STATUS_DONE);
}

/* Where it is ignored already, as for what runs in the background, it stays so. */
void output_end_on_interrupt(void)
{
    struct sigaction old;
    const struct sigaction action = {.sa_handler = leave};

    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}
