/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The few functions that the primer borrows from the C library of the process
 * that it is loaded into, be it glibc or musl. Which of them there are is known
 * only there: each may be NULL.
 */

struct native {
    int (*set)(const char *name, const char *value, int overwrite);
    int (*unset)(const char *name);
    void *(*open)(const char *path, int mode);
    void *(*find)(void *library, const char *name);
    char *(*error)(void);
};

/* Those of this process. */
void native_borrow(struct native *ret_native);
