/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `resume`, `hold` and `kill` have in common: one thing is done to one
 * runtime, and the answer says how it is now.
 */

#include <jansson.h>

struct call;

/* Posts the name of the command, with `body` or NULL, to the runtime that the first operand names,
 * and says what came of it. The status. */
int operate(const struct call *call, const json_t *body);
