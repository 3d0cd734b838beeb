/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Metrics as node_exporter reads them from files, and such a file. Who counts
 * them is not known here.
 */

#include "lib/bytes.h"
#include "lib/util.h"

/*
 * Appends OpenMetrics text in the older text format (version 0.0.4): families are
 * named as their samples, and there are neither units nor types that it does not
 * know. Families of the process are left out: node_exporter has its own of the
 * same names.
 */
void textfile_convert(const char *openmetrics, struct bytes *out);

/* Replaces the file in one step, for everybody to read. 0 or a negative errno. */
int textfile_write(const char *path, const void *content, size_t length) MUST_CHECK;
