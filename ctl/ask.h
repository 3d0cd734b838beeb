/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The whole of what most commands do: ask one question, and show the answer to
 * people or to machines.
 */

#include <jansson.h>

struct call;

/* Shows an answer to people. The status. */
typedef int ask_print(const struct call *call, const json_t *answer);

/* GET, or POST with `body`, which may be NULL. The status, everything said. */
int ask_get(const struct call *call, const char *target, ask_print *print);
int ask_post(const struct call *call, const char *target, const json_t *body, ask_print *print);
