/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kinds of entries in the log, and which fields each has in the journal: the one
 * table of it. The catalog (systemd/diagport.catalog) and the manual page are
 * held against it.
 *
 * Where entries are written is not known here. No field is ever the value of a
 * variable.
 */

#include <stdbool.h>

#include "lib/util.h"

struct bytes;
struct notice;

enum entry_kind {
    ENTRY_LINE, /* of no kind: has neither an id nor a field of its own */
    ENTRY_START,
    ENTRY_STOP,
    ENTRY_RELOAD,
    ENTRY_RELOAD_FAILED,
    ENTRY_LAST_GOOD,
    ENTRY_RUNTIME,
    ENTRY_STEP,
    ENTRY_PROOF,
    ENTRY_PEER_ERROR,
    ENTRY_LEFT_OUT,
    ENTRY_ALARM_ON,
    ENTRY_ALARM_OFF,
    ENTRY_ADMIN,
};

enum { ENTRY_KINDS = ENTRY_ADMIN + 1 };

enum entry_field {
    FIELD_COOKIE,
    FIELD_RULE,
    FIELD_STATE,
    FIELD_OUTCOME,
    FIELD_STEP,
    FIELD_NAME,
    FIELD_RESULT,
    FIELD_HRESULT,
    FIELD_ERROR,
    FIELD_ALARM,
    FIELD_UID,
    FIELD_PID,
    FIELD_OBJECT_PID,
};

enum { ENTRY_FIELDS = FIELD_OBJECT_PID + 1 };

/* What it is called in this table and in the manual page. */
const char *entry_kind_name(enum entry_kind kind);

/* Its MESSAGE_ID, 32 hexadecimal digits; NULL when it has none. These never change. */
const char *entry_kind_id(enum entry_kind kind);

bool entry_kind_has(enum entry_kind kind, enum entry_field field);

enum entry_kind entry_kind_of(const struct notice *notice);

/* As the journal knows it. */
const char *entry_field_name(enum entry_field field);

/* Appends what a notice has for that field, escaped; false when it has nothing. */
bool entry_put_field(enum entry_field field, const struct notice *notice,
                     struct bytes *out) MUST_CHECK;
