/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/entry.h"

#include <inttypes.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/guid.h"
#include "lib/notice.h"
#include "lib/plan.h"
#include "lib/text.h"

#define BIT(field) (1U << (field))

/* Of everything that is about a peer, whose process is the object of the entry. */
#define OF_PEER (BIT(FIELD_UID) | BIT(FIELD_PID) | BIT(FIELD_OBJECT_PID))
#define OF_RUNTIME                                                                           \
    (OF_PEER | BIT(FIELD_COOKIE) | BIT(FIELD_RULE) | BIT(FIELD_STATE) | BIT(FIELD_OUTCOME) | \
     BIT(FIELD_NAME))

static const struct {
    const char *name;
    const char *id;
    unsigned fields;
} kinds[ENTRY_KINDS] = {
    [ENTRY_LINE] = {"line", NULL, 0},
    [ENTRY_START] = {"start", "5787144696114b59bb3b69b2e596db04", 0},
    [ENTRY_STOP] = {"stop", "12673d3da9b94d6389025b0d12ee54c6", 0},
    [ENTRY_RELOAD] = {"reload", "25d605aff250420c9cf356583eebf485", 0},
    [ENTRY_RELOAD_FAILED] = {"reload_failed", "ab857bdad7b64c3090ba6fc9eb0fe61b", 0},
    [ENTRY_LAST_GOOD] = {"last_good", "a5fe7fba971547ac9f9ba8a4dda6595d", 0},
    [ENTRY_RUNTIME] = {"runtime", "8988e7c98a5f4956a2807a9cdb328878", OF_RUNTIME},
    [ENTRY_STEP] = {"step", "54c73d0291794484a4301902bf688786",
                    OF_RUNTIME | BIT(FIELD_STEP) | BIT(FIELD_RESULT) | BIT(FIELD_HRESULT)},
    [ENTRY_PROOF] = {"proof", "b593a9a689ab4dfca8058d6acecd64e5",
                     OF_RUNTIME | BIT(FIELD_STEP) | BIT(FIELD_RESULT) | BIT(FIELD_HRESULT)},
    [ENTRY_PEER_ERROR] = {"peer_error", "1671359c031d4a45abb6ddc43702edf4",
                          OF_PEER | BIT(FIELD_COOKIE) | BIT(FIELD_STATE) | BIT(FIELD_ERROR)},
    [ENTRY_LEFT_OUT] = {"left_out", "2aedcd20e13846f2b858776d84ca1575", 0},
    [ENTRY_ALARM_ON] = {"alarm_on", "d8e5c12f6cfe4628b7a8e8190a194d05", BIT(FIELD_ALARM)},
    [ENTRY_ALARM_OFF] = {"alarm_off", "5214697a9fc64634b090995d3b1ce282", BIT(FIELD_ALARM)},
    /* The process is that of who asked, and no object. */
    [ENTRY_ADMIN] = {"admin", "69629b2c17df4a248c61565338207e9c",
                     BIT(FIELD_COOKIE) | BIT(FIELD_NAME) | BIT(FIELD_RESULT) | BIT(FIELD_UID) |
                         BIT(FIELD_PID)},
};

const char *entry_kind_name(enum entry_kind kind)
{
    return kinds[kind].name;
}

const char *entry_kind_id(enum entry_kind kind)
{
    return kinds[kind].id;
}

bool entry_kind_has(enum entry_kind kind, enum entry_field field)
{
    return (kinds[kind].fields & BIT(field)) != 0;
}

enum entry_kind entry_kind_of(const struct notice *notice)
{
    switch (notice->kind) {
    case NOTICE_RUNTIME:
        return ENTRY_RUNTIME;
    case NOTICE_STEP:
        return ENTRY_STEP;
    case NOTICE_PROOF:
        return ENTRY_PROOF;
    case NOTICE_PEER_ERROR:
        return ENTRY_PEER_ERROR;
    case NOTICE_ALARM:
        return notice->is_on ? ENTRY_ALARM_ON : ENTRY_ALARM_OFF;
    case NOTICE_ADMIN:
        return ENTRY_ADMIN;
    }
    return ENTRY_LINE;
}

const char *entry_field_name(enum entry_field field)
{
    switch (field) {
    case FIELD_COOKIE:
        return "DIAGPORT_COOKIE";
    case FIELD_RULE:
        return "DIAGPORT_RULE";
    case FIELD_STATE:
        return "DIAGPORT_STATE";
    case FIELD_OUTCOME:
        return "DIAGPORT_OUTCOME";
    case FIELD_STEP:
        return "DIAGPORT_STEP";
    case FIELD_NAME:
        return "DIAGPORT_NAME";
    case FIELD_RESULT:
        return "DIAGPORT_RESULT";
    case FIELD_HRESULT:
        return "DIAGPORT_HRESULT";
    case FIELD_ERROR:
        return "DIAGPORT_ERROR";
    case FIELD_ALARM:
        return "DIAGPORT_ALARM";
    case FIELD_UID:
        return "DIAGPORT_UID";
    case FIELD_PID:
        return "DIAGPORT_PID";
    case FIELD_OBJECT_PID:
        return "OBJECT_PID";
    }
    return "DIAGPORT_NAME";
}

static bool put_text(struct bytes *out, const char *text)
{
    if (!text || *text == '\0')
        return false;
    text_put_escaped(out, text, strlen(text));
    return true;
}

static bool put_cookie(struct bytes *out, const struct notice *notice)
{
    char cookie[GUID_TEXT_SIZE];

    if (!notice->has_runtime)
        return false;
    guid_format(&notice->cookie, cookie);
    bytes_put_string(out, cookie);
    return true;
}

/* Of 0 nobody knows which process it is. */
static bool put_pid(struct bytes *out, const struct notice *notice)
{
    if (notice->pid == 0)
        return false;
    bytes_put_format(out, "%" PRId32, notice->pid);
    return true;
}

/* Only an answer has a code, and what a runtime says of what it could not load. */
static bool put_hresult(struct bytes *out, const struct notice *notice)
{
    bool is_proof = notice->kind == NOTICE_PROOF;
    bool was_answered =
        notice->attempts > 0 && strcmp(notice->result, step_result_name(STEP_LOST)) != 0;

    if (is_proof ? notice->hresult == 0 : !was_answered)
        return false;
    bytes_put_format(out, "0x%08" PRIx32, notice->hresult);
    return true;
}

bool entry_put_field(enum entry_field field, const struct notice *notice, struct bytes *out)
{
    switch (field) {
    case FIELD_COOKIE:
        return put_cookie(out, notice);
    case FIELD_RULE:
        return put_text(out, notice->rule);
    case FIELD_STATE:
        return put_text(out, notice->state);
    case FIELD_OUTCOME:
        return put_text(out, notice->outcome);
    case FIELD_STEP:
        return put_text(out, notice->step);
    case FIELD_NAME:
        return put_text(out, notice->kind == NOTICE_ADMIN ? notice->what : notice->name);
    case FIELD_RESULT:
        return put_text(out, notice->result);
    case FIELD_HRESULT:
        return put_hresult(out, notice);
    case FIELD_ERROR:
        return put_text(out, peer_error_name(notice->peer_error));
    case FIELD_ALARM:
        return put_text(out, alarm_name(notice->alarm));
    case FIELD_UID:
        bytes_put_format(out, "%" PRIu32, notice->uid);
        return true;
    case FIELD_PID:
    case FIELD_OBJECT_PID:
        return put_pid(out, notice);
    }
    return false;
}
