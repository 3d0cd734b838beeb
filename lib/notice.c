/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/notice.h"

#include <stdlib.h>
#include <string.h>

struct notice *notice_new(const struct notice *content, const char *rule, const char *name)
{
    struct notice *notice = malloc(sizeof *notice);

    if (!notice)
        return NULL;
    *notice = *content;
    notice->rule = rule ? strdup(rule) : NULL;
    notice->name = name ? strdup(name) : NULL;
    if ((rule && !notice->rule) || (name && !notice->name))
        return notice_free(notice);
    if (notice->kind == NOTICE_ALARM)
        notice->why = notice->name;
    return notice;
}

struct notice *notice_free(struct notice *notice)
{
    if (!notice)
        return NULL;
    free(notice->rule);
    free(notice->name);
    free(notice);
    return NULL;
}

const char *notice_kind_name(enum notice_kind kind)
{
    switch (kind) {
    case NOTICE_RUNTIME:
        return "runtime";
    case NOTICE_STEP:
        return "step";
    case NOTICE_PROOF:
        return "proof";
    case NOTICE_PEER_ERROR:
        return "peer_error";
    case NOTICE_ALARM:
        return "alarm";
    case NOTICE_ADMIN:
        return "admin";
    }
    return "runtime";
}

const char *peer_error_name(enum notice_peer_error error)
{
    switch (error) {
    case PEER_SENT_NO_ADVERTISE:
        return "no_advertise";
    case PEER_SENT_GARBAGE:
        return "garbage";
    case PEER_SENT_BAD_REPLY:
        return "bad_reply";
    case PEER_CLAIMED_WRONG:
        return "wrong_claim";
    case PEER_OVER_LIMIT:
        return "over_limit";
    case PEER_EVICTED:
        return "evicted";
    }
    return "garbage";
}

const char *alarm_name(enum alarm alarm)
{
    switch (alarm) {
    case ALARM_DESCRIPTORS:
        return "descriptors";
    case ALARM_RECORDS:
        return "records";
    case ALARM_MEMORY:
        return "memory";
    case ALARM_POLICY:
        return "policy";
    case ALARM_SOCKETS:
        return "sockets";
    case ALARM_PROBE:
        return "probe";
    }
    return "memory";
}
