/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * As much of COM as a profiler needs. An object is a pointer to a table of
 * functions, each of which takes the object first. The tables are spelled out
 * here because no header that declares them may be included.
 */

#include <stdbool.h>
#include <stdint.h>

struct com_guid {
    uint32_t first;
    uint16_t second;
    uint16_t third;
    uint8_t rest[8];
};

/* Entries of a table have different types; each is cast back to its own before it is called. */
typedef void (*com_method)(void);

struct com_object {
    const com_method *methods;
};

/* Places in every table. */
enum { COM_QUERY_INTERFACE, COM_ADD_REF, COM_RELEASE, COM_FIRST };

typedef int32_t (*com_query_interface)(struct com_object *self, const struct com_guid *interface,
                                       void **ret_result);
typedef uint32_t (*com_release)(struct com_object *self);

enum {
    COM_OK = 0,
    COM_NO_INTERFACE = (int32_t)0x80004002,
    COM_BAD_POINTER = (int32_t)0x80004003,
    COM_NO_AGGREGATION = (int32_t)0x80040110,
    COM_NO_CLASS = (int32_t)0x80040111,
    COM_CANCEL_ACTIVATION = (int32_t)0x80131375, /* the runtime goes on without this profiler */
};

bool com_is_same(const struct com_guid *left, const struct com_guid *right);

/* The interfaces of every object and of a factory of objects. */
extern const struct com_guid com_unknown;
extern const struct com_guid com_class_factory;
