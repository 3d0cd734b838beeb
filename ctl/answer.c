/* SPDX-License-Identifier: Apache-2.0 */

#include "ctl/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const json_t *answer_member(const json_t *object, const char *member)
{
    return json_object_get(object, member);
}

const char *answer_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

const char *answer_text_or_empty(const json_t *object, const char *member)
{
    const char *text = answer_text(object, member);

    return text ? text : "";
}

int64_t answer_number(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

bool answer_seconds(const json_t *object, const char *member, double *ret_seconds)
{
    const json_t *value = json_object_get(object, member);

    if (!json_is_number(value))
        return false;
    *ret_seconds = json_number_value(value);
    return true;
}

/* RFC 3339 in UTC with a fraction, as the daemon writes it. */
static bool read_time(const char *text, double *ret_seconds)
{
    struct tm time = {.tm_sec = 0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &time) : NULL;
    char *end;

    if (!rest || rest[0] != '.' || rest[1] < '0' || rest[1] > '9')
        return false;
    *ret_seconds = (double)timegm(&time) + strtod(rest, &end);
    return strcmp(end, "Z") == 0;
}

bool answer_seconds_between(const char *start, const char *end, double *ret_seconds)
{
    double first, last;

    if (!read_time(start, &first) || !read_time(end, &last))
        return false;
    *ret_seconds = last - first;
    return true;
}

bool answer_is_true(const json_t *object, const char *member)
{
    return json_is_true(json_object_get(object, member));
}

const char *answer_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

const char *answer_span(double seconds, char text[static ANSWER_SPAN_SIZE])
{
    const double minute = 60, hour = 60 * minute, day = 24 * hour, most = 1e6 * day;
    const long whole = seconds > 0 && seconds < most ? (long)seconds : 0;

    if (!(seconds >= 0 && seconds < most))
        snprintf(text, ANSWER_SPAN_SIZE, "-");
    else if (seconds < 0.01)
        snprintf(text, ANSWER_SPAN_SIZE, "%ld.%ldms", (long)(seconds * 1000),
                 (long)(seconds * 10000) % 10);
    else if (seconds < 1)
        snprintf(text, ANSWER_SPAN_SIZE, "%ldms", (long)(seconds * 1000));
    else if (seconds < minute)
        snprintf(text, ANSWER_SPAN_SIZE, "%ld.%lds", whole, (long)(seconds * 10) % 10);
    else if (seconds < hour)
        snprintf(text, ANSWER_SPAN_SIZE, "%ldm%02lds", whole / 60, whole % 60);
    else if (seconds < day)
        snprintf(text, ANSWER_SPAN_SIZE, "%ldh%02ldm", whole / 3600, whole / 60 % 60);
    else
        snprintf(text, ANSWER_SPAN_SIZE, "%ldd%02ldh", whole / 86400, whole / 3600 % 24);
    return text;
}

const char *answer_member_span(const json_t *object, const char *member,
                               char text[static ANSWER_SPAN_SIZE])
{
    double seconds;

    return answer_span(answer_seconds(object, member, &seconds) ? seconds : -1, text);
}

void answer_put_list(struct bytes *out, const json_t *list, const char *separator)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        bytes_put_string(out, i > 0 ? separator : "");
        bytes_put_string(out, text ? text : "?");
    }
}

static int digit(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

char *answer_unescape(const char *text)
{
    char *bytes = malloc(strlen(text) + 1), *at = bytes;

    while (bytes && *text != '\0') {
        int high, low;

        if (*text != '\\') {
            *at++ = *text++;
            continue;
        }
        high = text[1] == 'x' ? digit(text[2]) : -1;
        low = high >= 0 ? digit(text[3]) : -1;
        if (low < 0 || (high | low) == 0) {
            free(bytes);
            return NULL;
        }
        *at++ = (char)(high << 4 | low);
        text += 4;
    }
    if (bytes)
        *at = '\0';
    return bytes;
}
