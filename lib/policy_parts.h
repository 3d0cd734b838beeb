/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Parts of a policy, for those who make policies: everybody else has whole
 * ones, see policy.h.
 */

#include <stddef.h>

#include "lib/policy.h"

struct bytes;

/* Each frees what the part holds; a part that was only begun is allowed. */
void policy_rule_deinit(struct policy_rule *rule);
void policy_listens_free(struct policy_listen *listens, size_t n);
void policy_control_deinit(struct policy_control *control);

/* Appends the canonical form of one selector, as an entry of a mapping indented by `indent`. */
void policy_print_selector(const struct selector *selector, size_t indent, struct bytes *out);
