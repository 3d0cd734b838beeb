/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files that a runtime would load: profilers and hooks. Nothing of them is
 * run here. What they would do is read from their first bytes:
 *
 *   fake-profiler: main | notify | fails | no-export | wrong-class | aborts | undefined
 *   fake-hook: ok | throws | no-type | no-initialize
 *
 * anywhere in the first 4096 bytes; without such a mark an ELF file of this
 * machine is a good main profiler, and a file that begins with "MZ" a good hook.
 */

#include <stdbool.h>
#include <stddef.h>

enum { LOADED_FILE_WORD_MAX = 32 };

struct loaded_file {
    bool is_there; /* it could be read */
    bool is_elf;   /* of this machine */
    bool is_mz;
    char mark[LOADED_FILE_WORD_MAX]; /* the word after `label`, or "" */
};

/* Reads the beginning of a file; `label` is "fake-profiler: " or "fake-hook: ". */
struct loaded_file loaded_file_read(const char *path, const char *label);

/* Maps the file for good, as loading it would: it shows in /proc/PID/maps. */
void loaded_file_map(const char *path, bool executable);
