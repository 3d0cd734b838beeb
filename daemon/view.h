/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The core's objects as JSON, in the form that docs/CONTROL.md describes. Texts
 * from outside are escaped here and nowhere else; values of variables are never
 * taken up.
 *
 * Every function returns a new reference, or NULL when memory is out.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "lib/moment.h"
#include "lib/util.h"

struct attributes;
struct broker;
struct bytes;
struct guid;
struct match_decision;
struct notice;
struct plan;
struct policy;
struct policy_problems;
struct runtime;
struct broker_rule_use;

/* Puts `value`, which it takes, into `*object`, or frees both when memory is out: `*object` is NULL
 * from then on, and stays so. */
void view_put(json_t **object, const char *key, json_t *value);

/* The same at the end of a list. */
void view_append(json_t **list, json_t *value);

/* Appends it in compact form, and takes it; NULL makes the buffer's error stick. */
void view_write(json_t *value, struct bytes *out);

/* Escaped; null for NULL. */
json_t *view_text(const char *text);
/* A sentence of ours, in which whatever is foreign was escaped by whoever wrote it. */
json_t *view_escaped(const char *text);
/* The cookie of a runtime whole, and as it is shown to people. */
json_t *view_cookie(const struct guid *cookie);
json_t *view_short_cookie(const struct guid *cookie);
json_t *view_code(uint32_t hresult);
/* Null for MOMENT_NEVER. */
json_t *view_time(struct moment moment);
/* In seconds; null for SPAN_FOREVER. */
json_t *view_span(struct span length);

json_t *view_runtime(const struct runtime *runtime, struct moment now);
/* With everything that is known. */
json_t *view_runtime_whole(const struct runtime *runtime, struct moment now);

/* Steps before anything was sent. */
json_t *view_planned_steps(const struct plan *plan);

json_t *view_attributes(const struct attributes *attributes);
json_t *view_trace(const struct policy *policy, const struct match_decision *decision,
                   const struct attributes *attributes);

json_t *view_policy(const struct policy *policy, enum config_origin origin,
                    struct moment loaded_at);
/* `use`: what is known of the rule of that place in the policy. */
json_t *view_rule(const struct policy *policy, size_t place, const struct broker_rule_use *use);
/* Those in force. */
json_t *view_limits(const struct broker *broker);
json_t *view_problems(const struct policy_problems *problems);

json_t *view_notice(uint64_t number, const struct notice *notice);
