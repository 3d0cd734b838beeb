/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/hresult.h"

const char *hresult_meaning(uint32_t hresult)
{
    switch (hresult) {
    case HRESULT_OK:
        return "done";
    case HRESULT_FAIL:
        return "failed inside the runtime";
    case HRESULT_INVALID_ARGUMENT:
        return "invalid argument, or a startup profiler for a runtime that is not suspended";
    case HRESULT_VARIABLE_NOT_FOUND:
        return "the variable to unset was not set";
    case HRESULT_NOT_YET_AVAILABLE:
        return "not before the runtime has started";
    case UINT32_C(0x8013136A):
        return "a profiler is already active";
    case UINT32_C(0x80131371):
        return "the profiling interface is not initialised";
    case HRESULT_BAD_ENCODING:
        return "the runtime could not read the message";
    case HRESULT_UNKNOWN_COMMAND:
        return "this runtime does not know the command";
    case HRESULT_UNKNOWN_MAGIC:
        return "the runtime does not know the protocol version";
    case HRESULT_NOT_SUPPORTED:
        return "this kind of runtime does not support the command";
    case UINT32_C(0x80070008):
        return "the runtime is out of memory";
    case UINT32_C(0x8007007E):
        return "the library could not be loaded";
    case UINT32_C(0x8007007F):
        return "the library has no DllGetClassObject";
    default:
        return "";
    }
}
