/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The primer as a profiler: how a runtime loads it. It asks DllGetClassObject for
 * a factory and that for the profiler, and calls its Initialize, in which all is
 * done; then the runtime is told to go on without it, whatever came of it.
 *
 * It says that it is a notification-only profiler: so it is asked to initialize
 * where a main one is there already, and takes nobody's place (measured on 8 to
 * 11). The runtime loads the real profilers after it, by itself, so the primer
 * is in none of their calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/primer_names.h"
#include "shim/com.h"
#include "shim/native.h"
#include "shim/primer.h"

/* Places in the factory's table. */
enum { CREATE_INSTANCE = COM_FIRST, LOCK_SERVER, FACTORY_METHODS };

/* Places in the profiler's table. Each callback interface appends to the one before it:
 * ICorProfilerCallback has 69 methods of its own, 2 has 8, 3 has 3, 4 has 6, 5, 6 and 7 have one
 * each, 8 has 2, 9 has 1, 10 has 2 and 11 the last. */
enum {
    INITIALIZE = COM_FIRST,
    LOAD_AS_NOTIFICATION_ONLY = COM_FIRST + 69 + 8 + 3 + 6 + 1 + 1 + 1 + 2 + 1 + 2,
    PROFILER_METHODS
};

static const struct com_guid primer_class = PRIMER_CLSID_FIELDS;

/* ICorProfilerCallback, 2, 3 and so on to 11: one object answers to all of them, as each begins
 * like the one before. */
static const struct com_guid callbacks[] = {
    {0x176FBED1, 0xA55C, 0x4796, {0x98, 0xCA, 0xA9, 0xDA, 0x0E, 0xF8, 0x83, 0xE7}},
    {0x8A8CC829, 0xCCF2, 0x49FE, {0xBB, 0xAE, 0x0F, 0x02, 0x22, 0x28, 0x07, 0x1A}},
    {0x4FD2ED52, 0x7731, 0x4B8D, {0x94, 0x69, 0x03, 0xD2, 0xCC, 0x30, 0x86, 0xC5}},
    {0x7B63B2E3, 0x107D, 0x4D48, {0xB2, 0xF6, 0xF6, 0x1E, 0x22, 0x94, 0x70, 0xD2}},
    {0x8DFBA405, 0x8C9F, 0x45F8, {0xBF, 0xFA, 0x83, 0xB1, 0x4C, 0xEF, 0x78, 0xB5}},
    {0xFC13DF4B, 0x4448, 0x4F4F, {0x95, 0x0C, 0xBA, 0x8D, 0x19, 0xD0, 0x0C, 0x36}},
    {0xF76A2DBA, 0x1D52, 0x4539, {0x86, 0x6C, 0x2A, 0xA5, 0x18, 0xF9, 0xEF, 0xC3}},
    {0x5BED9B15, 0xC079, 0x4D47, {0xBF, 0xE2, 0x21, 0x5A, 0x14, 0x0C, 0x07, 0xE0}},
    {0x27583EC3, 0xC8F5, 0x482F, {0x80, 0x52, 0x19, 0x4B, 0x8C, 0xE4, 0x70, 0x5A}},
    {0xCEC5B60E, 0xC69C, 0x495F, {0x87, 0xF6, 0x84, 0xD2, 0x8E, 0xE1, 0x6F, 0xFB}},
    {0x42350846, 0xAAED, 0x47F7, {0xB1, 0x28, 0xFD, 0x0C, 0x98, 0x88, 0x1C, 0xDE}},
};

/* The one factory and the one profiler are static and live as long as the library, so nothing
 * counts references. */
static uint32_t keep_reference(struct com_object *self)
{
    (void)self;
    return 1;
}

/* The primer asks for no events; whatever the runtime reports all the same is accepted unread. */
static int32_t ignore_event(void)
{
    return COM_OK;
}

static int32_t initialize(struct com_object *self, struct com_object *info)
{
    struct native native;

    (void)self;
    native_borrow(&native);
    primer_run(info, &native);
    return COM_CANCEL_ACTIVATION;
}

static int32_t load_as_notification_only(struct com_object *self, int32_t *ret_answer)
{
    (void)self;
    if (!ret_answer)
        return COM_BAD_POINTER;
    *ret_answer = 1;
    return COM_OK;
}

static int32_t answer(bool is_known, struct com_object *object, void **ret_result)
{
    *ret_result = is_known ? object : NULL;
    return is_known ? COM_OK : COM_NO_INTERFACE;
}

static int32_t query_profiler(struct com_object *self, const struct com_guid *interface,
                              void **ret_result)
{
    bool is_known;

    if (!interface || !ret_result)
        return COM_BAD_POINTER;
    is_known = com_is_same(interface, &com_unknown);
    for (size_t i = 0; i < sizeof callbacks / sizeof callbacks[0]; i++)
        is_known = is_known || com_is_same(interface, &callbacks[i]);
    return answer(is_known, self, ret_result);
}

static com_method profiler_methods[PROFILER_METHODS];
static struct com_object profiler = {profiler_methods};

static int32_t create_instance(struct com_object *self, struct com_object *outer,
                               const struct com_guid *interface, void **ret_result)
{
    (void)self;
    if (!ret_result)
        return COM_BAD_POINTER;
    *ret_result = NULL;
    for (size_t i = 0; i < PROFILER_METHODS; i++)
        profiler_methods[i] = (com_method)ignore_event;
    profiler_methods[COM_QUERY_INTERFACE] = (com_method)query_profiler;
    profiler_methods[COM_ADD_REF] = (com_method)keep_reference;
    profiler_methods[COM_RELEASE] = (com_method)keep_reference;
    profiler_methods[INITIALIZE] = (com_method)initialize;
    profiler_methods[LOAD_AS_NOTIFICATION_ONLY] = (com_method)load_as_notification_only;
    return outer ? COM_NO_AGGREGATION : query_profiler(&profiler, interface, ret_result);
}

static int32_t query_factory(struct com_object *self, const struct com_guid *interface,
                             void **ret_result)
{
    if (!interface || !ret_result)
        return COM_BAD_POINTER;
    return answer(com_is_same(interface, &com_unknown) ||
                      com_is_same(interface, &com_class_factory),
                  self, ret_result);
}

static const com_method factory_methods[FACTORY_METHODS] = {
    [COM_QUERY_INTERFACE] = (com_method)query_factory,
    [COM_ADD_REF] = (com_method)keep_reference,
    [COM_RELEASE] = (com_method)keep_reference,
    [CREATE_INSTANCE] = (com_method)create_instance,
    [LOCK_SERVER] = (com_method)ignore_event,
};
static struct com_object factory = {factory_methods};

__attribute__((visibility("default"))) int32_t DllGetClassObject(const struct com_guid *class,
                                                                 const struct com_guid *interface,
                                                                 void **ret_result);

int32_t DllGetClassObject(const struct com_guid *class, const struct com_guid *interface,
                          void **ret_result)
{
    if (!class || !ret_result)
        return COM_BAD_POINTER;
    *ret_result = NULL;
    return com_is_same(class, &primer_class) ? query_factory(&factory, interface, ret_result)
                                             : COM_NO_CLASS;
}
