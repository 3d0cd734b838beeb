/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What policies ask about the host they are for: numbers of users and groups,
 * where links lead, what its kernel can do. For whoever reads policy files, the
 * daemon or a person's tool. Nothing is kept here, and nothing is decided.
 */

#include <stdbool.h>

struct policy_host;

/* Fills in what is the same for everybody who asks. What may be done, `may_kill`, is for the caller
 * to say; looking up names may block. */
void host_init(struct policy_host *ret_host);
