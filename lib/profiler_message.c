/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/profiler_message.h"

#include <errno.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/text.h"

enum { UNIT_SIZE = 2, WHOLE_TEXT_MAX = 32768, GUID_LENGTH = 38, HEX_DIGITS_MAX = 8 };

/* What a text has to have besides its beginning; without it, it is not known. */
enum { HAS_CLSID = 1, HAS_HRESULT = 2 };

/* The first that fits counts. */
static const struct known_text {
    const char *begin;
    enum profiler_message_kind kind;
    unsigned has;
} known_texts[] = {
    {"The profiler was loaded successfully.  ", PROFILER_MESSAGE_LOADED, HAS_CLSID},
    {"Loading profiler failed during instantiation.  ", PROFILER_MESSAGE_FAILED_INSTANTIATION,
     HAS_CLSID | HAS_HRESULT},
    {"Loading profiler failed.  The profiler was instantiated, but the profiler failed during its "
     "initialization callback.  ",
     PROFILER_MESSAGE_FAILED_INITIALIZATION, HAS_CLSID | HAS_HRESULT},
    {"A request was made to load a profiler when a profiler was already loaded.",
     PROFILER_MESSAGE_ALREADY_LOADED, 0},
    {"The profiler has requested that the CLR instance not load the profiler into this process.  ",
     PROFILER_MESSAGE_CANCELLED, HAS_CLSID},
    {"Loading profiler failed.   The profiler that was configured to load was designed for an "
     "older version of the CLR.  ",
     PROFILER_MESSAGE_OLDER_VERSION, HAS_CLSID},
    {"A profiler designed for an older version of the CLR was loaded because of ",
     PROFILER_MESSAGE_OLDER_VERSION, HAS_CLSID},
    {"Profilers will not be loaded by the current version of the CLR because of ",
     PROFILER_MESSAGE_PREVENTED, HAS_CLSID},
    {"Notification profiler was prevented from loading because ", PROFILER_MESSAGE_PREVENTED, 0},
    {"The CLR received a request to attach a profiler. ", PROFILER_MESSAGE_ATTACH_REQUESTED,
     HAS_CLSID},
    /* This one has the same beginning as those about variables. */
    {"Loading profiler failed.  CORECLR_PROFILER is set to a CLSID of a COM object that does not ",
     PROFILER_MESSAGE_FAILED, HAS_CLSID},
    {"Loading profiler failed.  CORECLR_", PROFILER_MESSAGE_MISCONFIGURED, 0},
    {"Loading profiler failed", PROFILER_MESSAGE_FAILED, 0},
    {"Profiler timed out on waiting for concurrent GC to finish ", PROFILER_MESSAGE_FAILED,
     HAS_CLSID},
};

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* The last one: before it there may be the value of a variable, which could be anything. */
static const char *find_last(const char *text, const char *what)
{
    const char *last = NULL;

    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        last = at + strlen(what);
    return last;
}

static const char *find_clsid(const char *text, struct profiler_message *message)
{
    const char *at = find_last(text, "Profiler CLSID: '");
    char guid[GUID_LENGTH + 1];

    if (!at || strnlen(at, GUID_LENGTH + 1) <= GUID_LENGTH || at[GUID_LENGTH] != '\'')
        return NULL;
    memcpy(guid, at, GUID_LENGTH);
    guid[GUID_LENGTH] = '\0';
    message->has_clsid = guid_parse(guid, &message->clsid);
    return message->has_clsid ? at + GUID_LENGTH + 1 : NULL;
}

/* `at` is behind the class. The runtime writes the code without leading zeros. */
static void find_hresult(const char *at, struct profiler_message *message)
{
    static const char before[] = ".  HRESULT: 0x";
    uint32_t hresult = 0;
    size_t n;

    if (!begins_with(at, before))
        return;
    at += sizeof before - 1;
    n = strspn(at, "0123456789abcdefABCDEF");
    if (n == 0 || n > HEX_DIGITS_MAX || at[n] != '.')
        return;
    for (size_t i = 0; i < n; i++) {
        uint32_t digit = (uint32_t)(at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);

        hresult = hresult << 4 | digit;
    }
    message->has_hresult = true;
    message->hresult = hresult;
}

static bool has_all(const struct profiler_message *message, unsigned has)
{
    return (message->has_clsid || (has & HAS_CLSID) == 0) &&
           (message->has_hresult || (has & HAS_HRESULT) == 0);
}

static enum profiler_message_kind find_kind(const char *text,
                                            const struct profiler_message *message)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known_texts); i++) {
        if (begins_with(text, known_texts[i].begin))
            return has_all(message, known_texts[i].has) ? known_texts[i].kind
                                                        : PROFILER_MESSAGE_OTHER;
    }
    return PROFILER_MESSAGE_OTHER;
}

/* Only where there is more to know; and a value of a variable is not for anybody to see. */
static bool is_worth_keeping(const char *text, enum profiler_message_kind kind)
{
    return (kind == PROFILER_MESSAGE_OTHER || kind == PROFILER_MESSAGE_FAILED ||
            kind == PROFILER_MESSAGE_MISCONFIGURED) &&
           !strstr(text, "Environment variable setting:") &&
           !strstr(text, "CORECLR_PROFILER is set to an invalid CLSID");
}

static int keep_text(const char *text, struct profiler_message *message)
{
    struct bytes out;
    int error;

    bytes_init(&out, PROFILER_MESSAGE_TEXT_MAX);
    text_put_escaped(&out, text, strcspn(text, "\n"));
    if (out.error == -EMSGSIZE)
        out.error = 0;
    error = bytes_finish(&out);
    if (error == 0)
        message->text = (char *)bytes_take(&out);
    bytes_deinit(&out);
    return error;
}

static int read_text(const char *text, struct profiler_message *ret_message)
{
    struct profiler_message message = {.text = NULL};
    const char *rest = find_clsid(text, &message);
    int error = 0;

    if (rest)
        find_hresult(rest, &message);
    message.kind = find_kind(text, &message);
    if (is_worth_keeping(text, message.kind))
        error = keep_text(text, &message);
    if (error == 0)
        *ret_message = message;
    return error;
}

int profiler_message_read(const uint8_t *payload, size_t length,
                          struct profiler_message *ret_message)
{
    struct bytes_reader reader = bytes_reader_over(payload, length);
    uint16_t instance, unit = 1;
    struct bytes text;
    size_t units = 0;
    int error;

    if (!bytes_get_u16(&reader, &instance))
        return PROFILER_MESSAGE_E_PAYLOAD;
    while (unit != 0) {
        if (!bytes_get_u16(&reader, &unit))
            return PROFILER_MESSAGE_E_PAYLOAD;
        units++;
    }
    bytes_init(&text, WHOLE_TEXT_MAX);
    text_put_utf8(&text, payload + UNIT_SIZE, units);
    error = bytes_finish(&text);
    if (error == 0)
        error = read_text((const char *)text.data, ret_message);
    bytes_deinit(&text);
    return error == -EMSGSIZE ? PROFILER_MESSAGE_E_PAYLOAD : error;
}

void profiler_message_deinit(struct profiler_message *message)
{
    free(message->text);
    message->text = NULL;
}

const char *profiler_message_kind_name(enum profiler_message_kind kind)
{
    switch (kind) {
    case PROFILER_MESSAGE_OTHER:
        return "other";
    case PROFILER_MESSAGE_LOADED:
        return "loaded";
    case PROFILER_MESSAGE_FAILED_INSTANTIATION:
        return "failed_instantiation";
    case PROFILER_MESSAGE_FAILED_INITIALIZATION:
        return "failed_initialization";
    case PROFILER_MESSAGE_FAILED:
        return "failed";
    case PROFILER_MESSAGE_MISCONFIGURED:
        return "misconfigured";
    case PROFILER_MESSAGE_ALREADY_LOADED:
        return "already_loaded";
    case PROFILER_MESSAGE_CANCELLED:
        return "cancelled";
    case PROFILER_MESSAGE_OLDER_VERSION:
        return "older_version";
    case PROFILER_MESSAGE_PREVENTED:
        return "prevented";
    case PROFILER_MESSAGE_ATTACH_REQUESTED:
        return "attach_requested";
    }
    return "other";
}
