/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The environment as a runtime keeps it. CoreCLR copies the real one when it
 * starts, and commands change the copy only; NativeAOT and Mono change the real
 * one. Nothing here knows of commands: the functions answer with the code that
 * the runtime answers with.
 *
 * The ways of the copy were measured on CoreCLR 8.0.34 to 11.0.0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;

struct variables {
    bool is_private;
    char **list; /* the copy, "NAME=VALUE" each; a private one only */
    size_t n;
    char **launched; /* what was there in the beginning, "NAME=VALUE" each */
    size_t n_launched;
};

/* Copies the environment of the process. False when memory is out. */
bool variables_init(struct variables *variables, bool is_private);
void variables_deinit(struct variables *variables);

/* Adds variables to a private copy until its continuation has `size` bytes. */
bool variables_fill(struct variables *variables, size_t size);

/* The value, or NULL. */
const char *variables_get(const struct variables *variables, const char *name);

/* The value at launch, or NULL. */
const char *variables_get_launched(const struct variables *variables, const char *name);

/*
 * SetEnvironmentVariable: the HRESULT. `value` NULL unsets. A private copy
 * splits a name with '=' there, ignores an empty one and puts the last variable
 * into the place of one that is unset; the real environment refuses both names.
 */
uint32_t variables_set(struct variables *variables, const char *name, const char *value);

/* Appends what follows the reply to ProcessEnvironment. False when one of the strings is not UTF-8,
 * which only a real environment can have. */
bool variables_put(const struct variables *variables, struct bytes *out);

/* Appends a JSON object of what is not as it was at launch; null for what is gone. */
void variables_put_changes(const struct variables *variables, struct bytes *out);

/* The variables as execve wants them; the array, not the strings, is the caller's to free. */
char **variables_array(const struct variables *variables);
