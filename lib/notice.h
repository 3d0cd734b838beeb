/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One record per thing that happened, for logs and followers: a runtime changed
 * its state, a step got its result, a peer misbehaved, an alarm began or ended.
 *
 * A notice is complete in itself, so it outlives the runtime it tells of. Texts
 * in it may be a peer's and are escaped where they are shown.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/moment.h"
#include "lib/tree.h"
#include "lib/util.h"

enum notice_kind {
    NOTICE_RUNTIME,    /* a runtime changed its state */
    NOTICE_STEP,       /* a step got its result */
    NOTICE_PROOF,      /* it is known whether what a step sent was loaded, or that it will not be */
    NOTICE_PEER_ERROR, /* a peer did what no runtime does, or went over a limit */
    NOTICE_ALARM,      /* something needs an operator, or does no longer */
    NOTICE_ADMIN,      /* somebody asked for what needs the admin right; pid and uid are theirs */
};

enum notice_peer_error {
    PEER_SENT_NO_ADVERTISE, /* closed or silent past limits.hello */
    PEER_SENT_GARBAGE,      /* something else than an advertise, or bytes nobody asked for */
    PEER_SENT_BAD_REPLY,    /* a reply that is none */
    PEER_CLAIMED_WRONG,     /* its advertise disagrees with the kernel */
    PEER_OVER_LIMIT,        /* more connections, cookies or runtimes than its user may have */
    PEER_EVICTED,           /* silent, when descriptors or places ran short */
};

enum { PEER_ERROR_COUNT = PEER_EVICTED + 1 };

enum alarm {
    ALARM_DESCRIPTORS, /* listeners are paused: descriptors have run short */
    ALARM_RECORDS,     /* no record can be kept, so nothing is applied */
    ALARM_MEMORY,      /* memory has run out somewhere */
    ALARM_POLICY,      /* the policy on disk could not be loaded */
    ALARM_SOCKETS,     /* the file of a socket that is listened on was removed or replaced */
    ALARM_PROBE,       /* looks at processes hang, so no more of them are begun */
};

enum { ALARM_COUNT = ALARM_PROBE + 1 };

struct notice {
    STAILQ_ENTRY(notice) link;
    enum notice_kind kind;
    struct moment at;
    int32_t pid; /* 0 when it is not known, or not about a process */
    uint32_t uid;
    bool has_runtime;
    struct guid cookie;    /* of the runtime */
    uint64_t start_time;   /* likewise */
    const char *state;     /* likewise, constants: the state's name, */
    const char *old_state; /* the one before, */
    const char *outcome;   /* and the outcome, NULL while there is none */
    const char *step;      /* NOTICE_STEP, NOTICE_PROOF, constants: the step's kind */
    const char *result;    /* likewise, and of NOTICE_ADMIN: what came of it */
    const char *what;      /* NOTICE_ADMIN, a constant: what was asked for */
    bool is_required;
    uint32_t hresult;
    unsigned attempts;
    enum notice_peer_error peer_error;
    enum alarm alarm;
    bool is_on;      /* NOTICE_ALARM: it began */
    const char *why; /* a constant, or NULL; NOTICE_ALARM: the name */
    char *rule;      /* name of the rule, or NULL */
    char *name;      /* what the step is about: a variable's name, a path; NOTICE_ALARM: why */
};

/* Copies the texts; NULL when memory is out. */
struct notice *notice_new(const struct notice *content, const char *rule,
                          const char *name) MUST_CHECK;

/* Returns NULL. */
struct notice *notice_free(struct notice *notice);

const char *notice_kind_name(enum notice_kind kind);
const char *peer_error_name(enum notice_peer_error error);
const char *alarm_name(enum alarm alarm);
