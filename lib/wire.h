/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Framing of the .NET diagnostics protocol: the 20-byte header and the
 * primitive encodings every message is made of. Little endian throughout.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-protocol.c and ds-types.h
 * (.NET 6 to 11); confirmed on 8.0.0, 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
 *
 * What the messages mean is not known here: see command.h and reply.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

struct bytes;
struct bytes_reader;

enum {
    WIRE_HEADER_SIZE = 20,
    /* The size field is a u16 and counts the header. */
    WIRE_MESSAGE_MAX = 65535,
    WIRE_PAYLOAD_MAX = WIRE_MESSAGE_MAX - WIRE_HEADER_SIZE,
    /* A string is a u32 count and its UTF-16 code units, the closing NUL among them. */
    WIRE_STRING_OVERHEAD = 4 + 2,
};

/* The command set of every reply. */
enum { WIRE_SET_SERVER = 0xFF };

enum wire_error {
    WIRE_E_MAGIC = 1, /* the first 14 bytes are not "DOTNET_IPC_V1" and NUL */
    WIRE_E_SIZE,      /* the size field is smaller than the header */
    WIRE_E_TOO_LONG,  /* the message would need more than WIRE_MESSAGE_MAX bytes */
    WIRE_E_TEXT,      /* a text to be sent is not UTF-8 */
};

struct wire_header {
    uint16_t size; /* header and payload */
    uint8_t set;
    uint8_t id;
};

/* Reads a header. 0, WIRE_E_MAGIC or WIRE_E_SIZE. The two reserved bytes are not looked at, as the
 * runtime does not either. */
int wire_header_read(const uint8_t bytes[static WIRE_HEADER_SIZE],
                     struct wire_header *ret_header) MUST_CHECK;

/* True when `length` bytes are a possible beginning of a header's magic. */
bool wire_magic_is_possible(const uint8_t *bytes, size_t length);

/* Starts a message in an empty buffer; its size is filled in by wire_message_end. */
void wire_message_begin(struct bytes *message, uint8_t set, uint8_t id);

/* Ends it: 0, -ENOMEM, WIRE_E_TOO_LONG, or WIRE_E_TEXT when one of its strings was not UTF-8. */
int wire_message_end(struct bytes *message) MUST_CHECK;

/* Appends a string. NULL is the null string (count 0), which several commands tell from "". */
void wire_put_string(struct bytes *message, const char *text);

void wire_put_guid(struct bytes *message, const struct guid *guid);

/* Bytes that a string takes in a message. */
size_t wire_string_size(const char *text);

/*
 * Reads a string as UTF-8 that the caller frees. `*ret_text` is NULL for the
 * null string. Text after an embedded NUL is dropped, as C code on the other
 * side never sees it. False, and nothing returned, when the count does not fit
 * what is left, the last unit is not NUL, or memory is out.
 */
bool wire_get_string(struct bytes_reader *reader, char **ret_text) MUST_CHECK;

bool wire_get_guid(struct bytes_reader *reader, struct guid *ret_guid) MUST_CHECK;
