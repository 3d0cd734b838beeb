/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Weak, since a strong one that is missing ends the process when it is called
 * (before glibc 2.34 those of the loader are in a library of their own, which
 * the host of a runtime links); declared here, since a header of one C library
 * would ask for its versions of them.
 */

#include "shim/native.h"

__attribute__((weak)) int setenv(const char *name, const char *value, int overwrite);
__attribute__((weak)) int unsetenv(const char *name);
__attribute__((weak)) void *dlopen(const char *path, int mode);
__attribute__((weak)) void *dlsym(void *library, const char *name);
__attribute__((weak)) char *dlerror(void);

void native_borrow(struct native *ret_native)
{
    ret_native->set = setenv;
    ret_native->unset = unsetenv;
    ret_native->open = dlopen;
    ret_native->find = dlsym;
    ret_native->error = dlerror;
}
