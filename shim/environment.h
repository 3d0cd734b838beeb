/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The environment that the runtime keeps for managed code, as it shows it to
 * profilers: ICorProfilerInfo11, which every runtime has that takes the command
 * by which the primer is loaded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/com.h"

enum {
    /* Units that a name or a value may have, with the NUL. A message of the diagnostics protocol
     * carries 32751 of them, in which a runtime counts the bytes of UTF-8 (measured on 8 to 11): up
     * to three for a unit. */
    ENVIRONMENT_MAX = 3 * 32768,
};

enum environment_answer {
    ENVIRONMENT_THERE,
    ENVIRONMENT_NOT_THERE,
    ENVIRONMENT_TOO_LONG,
    ENVIRONMENT_FAILED,
};

/* The interface, which is given back; NULL when the runtime has none. */
struct com_object *environment_open(struct com_object *info);
void environment_close(struct com_object *environment);

/* Reads a variable and the number of its units, without the NUL. Unless it is there, nothing that
 * may be used is in `ret_value`. */
enum environment_answer environment_get(struct com_object *environment, const uint16_t *name,
                                        uint16_t ret_value[static ENVIRONMENT_MAX], size_t *ret_n);

/* Sets a variable; `value` NULL takes it away. False when the runtime refuses. */
bool environment_set(struct com_object *environment, const uint16_t *name, const uint16_t *value);
