/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The result codes a runtime answers with.
 *
 * Source: dotnet/runtime src/native/eventpipe/ds-types.h and the handlers that
 * return them; which ones occur was measured on 8.0.0 to 11.0.0.
 */

#include <stdint.h>

#define HRESULT_OK                 UINT32_C(0)
#define HRESULT_FAIL               UINT32_C(0x80004005)
#define HRESULT_INVALID_ARGUMENT   UINT32_C(0x80070057)
#define HRESULT_VARIABLE_NOT_FOUND UINT32_C(0x800700CB)
#define HRESULT_NOT_YET_AVAILABLE  UINT32_C(0x8013135B)
#define HRESULT_BAD_ENCODING       UINT32_C(0x80131384)
#define HRESULT_UNKNOWN_COMMAND    UINT32_C(0x80131385)
#define HRESULT_UNKNOWN_MAGIC      UINT32_C(0x80131386)
#define HRESULT_NOT_SUPPORTED      UINT32_C(0x80131515)

/* What the code means in this protocol, or "" for one that only the runtime's own sources explain.
 */
const char *hresult_meaning(uint32_t hresult);
