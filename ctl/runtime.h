/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a runtime of the daemon's answers is put into words, wherever one is
 * shown.
 */

#include <jansson.h>

#include "ctl/output.h"
#include "lib/bytes.h"
#include "lib/util.h"

/* A paragraph for the help of commands that take one. */
#define RUNTIME_ID_HELP \
    "ID is the cookie of the runtime, its first digits (four or more), or pid:N.\n"

/* The target of a runtime by its id as the user wrote it, or of a verb to it; the caller frees it.
 * The status, everything said. */
int runtime_make_target(const char *id, const char *verb, char **ret_target) MUST_CHECK;

/* Appends the name of its user, or the number. */
void runtime_put_user(const json_t *runtime, struct bytes *out);

/* Appends its command line, or, when that is not known, its program. */
void runtime_put_command(const json_t *runtime, struct bytes *out);

/* Appends the words of a command line, those in quotes that would not be seen as one. */
void runtime_put_arguments(const json_t *cmdline, struct bytes *out);

/* What keeps it from running, for people; NULL when nothing does. */
const char *runtime_blocked_words(const json_t *runtime);

enum output_style runtime_style(const json_t *runtime);

/* Appends "1f3a5c7e (process 4711, /opt/pay/app)". */
void runtime_put_name(const json_t *runtime, struct page *page);
