/* SPDX-License-Identifier: Apache-2.0 */

/*
 * load-primer LIBRARY: loads the primer as it ships, the way a runtime does, and
 * shows it an environment with two variables. Built with either C library, since
 * one primer serves both. Prints what native code sees then, and the result.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uchar.h>

#include "lib/primer_names.h"
#include "shim/com.h"

enum { NOT_FOUND = (int32_t)0x800700CB, INFO_METHODS = 101 };

static const struct com_guid class = PRIMER_CLSID_FIELDS;
static const struct com_guid factory_interface = {0x00000001, 0, 0, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
static const struct com_guid callback_2 = {0x8A8CC829,
                                           0xCCF2,
                                           0x49FE,
                                           {0xBB, 0xAE, 0x0F, 0x02, 0x22, 0x28, 0x07, 0x1A}};

static struct {
    const char16_t *name;
    const char16_t *value;
} variables[] = {
    {u"" PRIMER_NAMES, u"PRIMED\nGONE"},
    {u"" PRIMER_LIBRARIES, u"/nowhere/absent.so"},
    {u"PRIMED", u"gr\u00FC\u00DFe"},
};

static size_t size_of(const char16_t *text)
{
    size_t n = 0;

    while (text[n] != 0)
        n++;
    return 2 * (n + 1);
}

static int32_t get_variable(struct com_object *self, const uint16_t *name, uint32_t capacity,
                            uint32_t *ret_length, uint16_t *ret_value)
{
    (void)self;
    (void)capacity;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const size_t size = size_of(variables[i].name);

        if (!variables[i].value || size != size_of(name) ||
            memcmp(name, variables[i].name, size) != 0)
            continue;
        memcpy(ret_value, variables[i].value, size_of(variables[i].value));
        *ret_length = (uint32_t)(size_of(variables[i].value) / 2 - 1);
        return COM_OK;
    }
    return NOT_FOUND;
}

static int32_t set_variable(struct com_object *self, const uint16_t *name, const uint16_t *value)
{
    (void)self;
    (void)name;
    /* Only the result is set; all of it but the loader's words is ASCII. */
    for (; value && *value != 0; value++)
        putchar(*value < 0x80 ? *value : '?');
    return COM_OK;
}

static int32_t query_info(struct com_object *self, const struct com_guid *interface,
                          void **ret_result)
{
    (void)interface;
    *ret_result = self;
    return COM_OK;
}

static uint32_t release(struct com_object *self)
{
    (void)self;
    return 1;
}

static const com_method info_methods[INFO_METHODS] = {
    [COM_QUERY_INTERFACE] = (com_method)query_info,
    [COM_RELEASE] = (com_method)release,
    [99] = (com_method)get_variable,
    [100] = (com_method)set_variable,
};
static struct com_object info = {info_methods};

typedef int32_t (*get_class_function)(const struct com_guid *class,
                                      const struct com_guid *interface, void **ret_result);
typedef int32_t (*create_method)(struct com_object *self, struct com_object *outer,
                                 const struct com_guid *interface, void **ret_result);
typedef int32_t (*initialize_method)(struct com_object *self, struct com_object *info);

static struct com_object *load(void *library)
{
    get_class_function get_class;
    struct com_object *factory;
    void *symbol = dlsym(library, "DllGetClassObject"), *result = NULL;

    memcpy(&get_class, &symbol, sizeof symbol);
    if (!symbol || get_class(&class, &factory_interface, &result) != COM_OK)
        return NULL;
    factory = result;
    if (((create_method)factory->methods[3])(factory, NULL, &callback_2, &result) != COM_OK)
        return NULL;
    return result;
}

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    struct com_object *profiler = library ? load(library) : NULL;

    if (!profiler) {
        fprintf(stderr, "load-primer: it does not load: %s\n", dlerror());
        return 1;
    }
    setenv("GONE", "still there", 1);
    if (((initialize_method)profiler->methods[3])(profiler, &info) != COM_CANCEL_ACTIVATION)
        return 1;
    printf("PRIMED=%s GONE=%s\n", getenv("PRIMED"), getenv("GONE") ? getenv("GONE") : "-");
    /* A runtime lets go of a profiler that does not stay. */
    return dlclose(library) == 0 ? 0 : 1;
}
