/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Why a process gets the rule that it gets, and what that comes to: the parts
 * that a runtime's page and an explanation have in common.
 */

#include <jansson.h>

#include "ctl/output.h"

/*
 * Each appends a title and a table for that member of an answer, and nothing for
 * an empty one. The times of steps count from `start`, which may be NULL.
 */
void decision_put_steps(const json_t *steps, const char *start, const char *title,
                        struct page *page);
void decision_put_trace(const json_t *trace, struct page *page);
void decision_put_attributes(const json_t *attributes, struct page *page);
