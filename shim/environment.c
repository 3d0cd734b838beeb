/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/environment.h"

/* Places in the table of ICorProfilerInfo11, the runtime's side. */
enum { GET_ENVIRONMENT_VARIABLE = 99, SET_ENVIRONMENT_VARIABLE };

/* HRESULTs of the runtime's own errors. */
enum {
    NOT_FOUND = (int32_t)0x800700CB,
    INSUFFICIENT_BUFFER = (int32_t)0x8007007A,
};

typedef int32_t (*get_method)(struct com_object *self, const uint16_t *name, uint32_t capacity,
                              uint32_t *ret_length, uint16_t *ret_value);
typedef int32_t (*set_method)(struct com_object *self, const uint16_t *name, const uint16_t *value);

static const struct com_guid profiler_info_11 = {0x06398876,
                                                 0x8987,
                                                 0x4154,
                                                 {0xB6, 0x21, 0x40, 0xA0, 0x0D, 0x6E, 0x4D, 0x04}};

struct com_object *environment_open(struct com_object *info)
{
    void *result = NULL;

    if (!info)
        return NULL;
    if (((com_query_interface)info->methods[COM_QUERY_INTERFACE])(info, &profiler_info_11,
                                                                  &result) < 0)
        return NULL;
    return result;
}

void environment_close(struct com_object *environment)
{
    ((com_release)environment->methods[COM_RELEASE])(environment);
}

enum environment_answer environment_get(struct com_object *environment, const uint16_t *name,
                                        uint16_t ret_value[static ENVIRONMENT_MAX], size_t *ret_n)
{
    get_method get = (get_method)environment->methods[GET_ENVIRONMENT_VARIABLE];
    uint32_t length = 0;
    int32_t result;
    size_t n = 0;

    /* Of an empty one only the length may be written, and of one that is too long nothing. */
    ret_value[0] = 0;
    result = get(environment, name, ENVIRONMENT_MAX, &length, ret_value);
    if (result == NOT_FOUND)
        return ENVIRONMENT_NOT_THERE;
    if (result == INSUFFICIENT_BUFFER || (result >= 0 && length >= ENVIRONMENT_MAX))
        return ENVIRONMENT_TOO_LONG;
    if (result < 0)
        return ENVIRONMENT_FAILED;
    while (n < ENVIRONMENT_MAX && ret_value[n] != 0)
        n++;
    if (n == ENVIRONMENT_MAX)
        return ENVIRONMENT_TOO_LONG;
    *ret_n = n;
    return ENVIRONMENT_THERE;
}

bool environment_set(struct com_object *environment, const uint16_t *name, const uint16_t *value)
{
    set_method set = (set_method)environment->methods[SET_ENVIRONMENT_VARIABLE];

    return set(environment, name, value) >= 0;
}
