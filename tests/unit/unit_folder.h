/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A private folder for tests that need files: short, since a socket's path must
 * fit into 107 bytes.
 */

#include <stddef.h>
#include <stdint.h>

/* Makes one, removing the one before. */
void unit_folder_make(char *ret_path, size_t size);

void unit_folder_remove(void);

/* How many names are in it. */
size_t unit_folder_count(void);

/* Writes a file of that name and mode in it. */
void unit_folder_write(const char *name, const char *content, unsigned mode);

/* What is in the file of that path, in a block of exactly its size, which the test frees. */
uint8_t *unit_file_read(const char *path, size_t *ret_length);
