/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the programs behind the golden tests share: policy files from the disk,
 * and a host that is the same everywhere.
 */

#include <stdio.h>

#include "lib/policy_read.h"

struct golden_sources {
    struct policy_source *list;
    size_t n;
};

/*
 * Reads a file, or all *.yaml of a folder in name order, the first of which is
 * the main file. Their names are those in the folder. Ends the program when it
 * cannot.
 */
void golden_read_sources(const char *path, struct golden_sources *ret_sources);
void golden_free_sources(struct golden_sources *sources);

/*
 * A host with the users root and toor (0), acme (1000), payments (1001) and build
 * (61234), the groups root (0), diagport (990) and diagport-admin (991), and
 * /usr/bin/dotnet as a link. What its kernel can do is said in a comment at the
 * top of the main file: "# host: no-kill", "# host: no-pidfd".
 */
struct policy_host golden_host(const struct golden_sources *sources);

/* Writes what is wrong, in the order of reading. */
void golden_print_problems(const struct policy_problems *problems, FILE *out);
