/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a runtime says about profilers: the text of its event ProfilerMessage,
 * id 299 of Microsoft-Windows-DotNETRuntime with keyword 0x20000000000, level 4.
 *
 * Source: dotnet/runtime src/coreclr/dlls/mscorrc/mscorrc.rc and
 * src/coreclr/vm/profilinghelper.cpp. The texts are the same, and English, on
 * 8.0.34, 9.0.23, 10.0.15 and 11.0.0 (measured); a text that is not known is
 * handed on as it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/guid.h"
#include "lib/util.h"

enum profiler_message_kind {
    PROFILER_MESSAGE_OTHER,                 /* nothing that is known here */
    PROFILER_MESSAGE_LOADED,                /* it is in, and its Initialize succeeded */
    PROFILER_MESSAGE_FAILED_INSTANTIATION,  /* the file, its export, or its class */
    PROFILER_MESSAGE_FAILED_INITIALIZATION, /* its Initialize returned that code */
    PROFILER_MESSAGE_FAILED,                /* for a reason that only the text tells */
    PROFILER_MESSAGE_MISCONFIGURED,         /* the variables that name one are wrong */
    PROFILER_MESSAGE_ALREADY_LOADED,        /* a second main one was refused; not said which */
    PROFILER_MESSAGE_CANCELLED,             /* it wants no part in this process */
    PROFILER_MESSAGE_OLDER_VERSION,         /* made for older runtimes; it may be in all the same */
    PROFILER_MESSAGE_PREVENTED,             /* a setting of the program keeps it out */
    PROFILER_MESSAGE_ATTACH_REQUESTED,      /* AttachProfiler has arrived, no more */
};

enum { PROFILER_MESSAGE_TEXT_MAX = 256 };

enum profiler_message_error {
    PROFILER_MESSAGE_E_PAYLOAD = 1, /* not a number of two bytes and a text with its end */
};

struct profiler_message {
    enum profiler_message_kind kind;
    bool has_clsid;
    bool has_hresult;
    struct guid clsid;
    uint32_t hresult;
    /* Its first line where the kind does not say enough, escaped, cut to PROFILER_MESSAGE_TEXT_MAX
     * bytes; NULL elsewhere, and where it repeats the value of a variable. */
    char *text;
};

/* Reads the payload of the event: 0, -ENOMEM or PROFILER_MESSAGE_E_PAYLOAD. The caller deinits. */
int profiler_message_read(const uint8_t *payload, size_t length,
                          struct profiler_message *ret_message) MUST_CHECK;

void profiler_message_deinit(struct profiler_message *message);

/* "loaded", "failed_instantiation" and so on. */
const char *profiler_message_kind_name(enum profiler_message_kind kind);
