/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads a runtime's reply as its bytes arrive, in pieces of any size: the
 * header, then the payload that the header announces, of which no more is kept
 * than is wanted. What follows the reply (a continuation, a session's
 * stream) is left to the caller.
 *
 * Replies: an id of 00 is OK and FF an error, whatever the code in the payload
 * says (NativeAOT has sent errors with a code that looks like success). The
 * runtime never sends the bare 20-byte OK of the design document, but it would
 * be understood. Source: ds-protocol.c, ds_ipc_message_send_success/_error.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "lib/wire.h"

enum reply_result {
    REPLY_MORE = 0, /* everything was taken, the reply is not whole yet */
    REPLY_WHOLE,    /* the reply is whole; bytes after it were not taken */
    REPLY_E_MAGIC,  /* these are not the bytes of a reply */
    REPLY_E_SIZE,   /* the header announces less than itself */
    REPLY_E_SET,    /* a command set or an id that no reply has */
    REPLY_E_MEMORY,
};

struct reply {
    uint8_t header_bytes[WIRE_HEADER_SIZE];
    size_t n_header;
    struct wire_header header;
    uint8_t *payload; /* its beginning, */
    size_t n_payload; /* so far, */
    size_t kept_size; /* and when it is there */
    size_t left;      /* of the rest, still to come */
    size_t kept_max;
};

/* What is kept of a reply that is only OK or an error. */
enum { REPLY_STATUS_MAX = 64 };

/* Keeps all of its payload; or, told before its first byte, no more than that. */
void reply_init(struct reply *reply);
void reply_keep(struct reply *reply, size_t kept_max);
void reply_deinit(struct reply *reply);

/* Takes bytes of a reply; `*ret_taken` says how many. After an error nothing more may be fed. */
enum reply_result reply_feed(struct reply *reply, const uint8_t *bytes, size_t length,
                             size_t *ret_taken) MUST_CHECK;

/* Of a whole reply: true when its id says OK. */
bool reply_is_ok(const struct reply *reply);

/* Of a whole reply: the u32 result code that its payload starts with; 0 when it has none. */
uint32_t reply_hresult(const struct reply *reply);
