/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ports.h"
#include "daemon/self.h"
#include "lib/broker.h"
#include "lib/bytes.h"
#include "lib/notice.h"
#include "lib/plan.h"
#include "lib/text.h"

const char metrics_type[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

static void begin(struct bytes *out, const char *family, const char *type, const char *help)
{
    bytes_put_format(out, "# TYPE %s %s\n", family, type);
    bytes_put_format(out, "# HELP %s %s\n", family, help);
}

static void put_count(struct bytes *out, const char *name, uint64_t value)
{
    bytes_put_format(out, "%s %" PRIu64 "\n", name, value);
}

static void put_labelled(struct bytes *out, const char *name, const char *label, const char *text,
                         uint64_t value)
{
    bytes_put_format(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text, value);
}

/* A name is the operator's text: escaped as all foreign text is, which leaves no line feed,
 * and then as the format wants it. */
static void put_name(struct bytes *out, const char *name)
{
    char *escaped = text_escape(name, strlen(name));

    if (!escaped)
        out->error = -ENOMEM;
    for (const char *at = escaped; at && *at != '\0'; at++) {
        if (*at == '\\' || *at == '"')
            bytes_put_u8(out, '\\');
        bytes_put_u8(out, (uint8_t)*at);
    }
    free(escaped);
}

static void put_named(struct bytes *out, const char *metric, const char *label, const char *name,
                      uint64_t value)
{
    bytes_put_format(out, "%s{%s=\"", metric, label);
    put_name(out, name);
    bytes_put_format(out, "\"} %" PRIu64 "\n", value);
}

/* Runtimes. */

/* Several states of the core are shown as one. */
static void put_states(struct bytes *out, const struct metrics *metrics)
{
    begin(out, "diagport_runtimes", "gauge", "Runtimes that are known, by state.");
    for (size_t i = 0; i < RUNTIME_STATES; i++) {
        const char *name = runtime_state_name((enum runtime_state)i);
        uint64_t n = 0;

        if (i > 0 && strcmp(runtime_state_name((enum runtime_state)(i - 1)), name) == 0)
            continue;
        for (size_t j = i; j < RUNTIME_STATES; j++) {
            if (strcmp(runtime_state_name((enum runtime_state)j), name) == 0)
                n += metrics->by_state[j];
        }
        put_labelled(out, "diagport_runtimes", "state", name, n);
    }
    begin(out, "diagport_runtimes_seen", "counter", "Runtimes that came.");
    put_count(out, "diagport_runtimes_seen_total", metrics->counters->n_seen);
}

static void put_holds(struct bytes *out, const struct broker_counters *counters)
{
    uint64_t n = 0;

    begin(out, "diagport_hold_seconds", "histogram",
          "From the first advertise of a runtime to its last Resume.");
    bytes_put_string(out, "# UNIT diagport_hold_seconds seconds\n");
    for (size_t i = 0; i < BROKER_HOLD_BUCKETS - 1; i++) {
        n += counters->hold_buckets[i];
        /* Bounds are floating numbers to those who read them, whole ones too. */
        bytes_put_format(out, "diagport_hold_seconds_bucket{le=\"%g%s\"} %" PRIu64 "\n",
                         (double)broker_hold_bounds[i] / 1e6,
                         broker_hold_bounds[i] % 1000000 == 0 ? ".0" : "", n);
    }
    bytes_put_format(out, "diagport_hold_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n",
                     counters->n_holds);
    put_count(out, "diagport_hold_seconds_count", counters->n_holds);
    bytes_put_format(out, "diagport_hold_seconds_sum %.6f\n", (double)counters->hold_sum_us / 1e6);
}

/* Steps. */

static void put_steps(struct bytes *out, const struct broker_counters *counters)
{
    begin(out, "diagport_steps", "counter", "Results of steps, by kind of step.");
    for (size_t kind = 0; kind < BROKER_STEP_KINDS; kind++) {
        for (size_t result = 0; result < BROKER_STEP_RESULTS; result++) {
            if (result == STEP_PENDING)
                continue;
            bytes_put_format(out, "diagport_steps_total{kind=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                             step_kind_name((enum step_kind)kind),
                             step_result_name((enum step_result)result),
                             counters->steps[kind][result]);
        }
    }
}

static void put_proofs(struct bytes *out, const struct broker_counters *counters)
{
    static const enum step_proof proofs[] = {PROOF_LOADED, PROOF_NOT_LOADED, PROOF_UNKNOWN};

    begin(out, "diagport_proof", "counter",
          "What is known of profilers and hooks that were answered OK.");
    for (size_t i = 0; i < ARRAY_LENGTH(proofs); i++)
        put_labelled(out, "diagport_proof_total", "result", step_proof_name(proofs[i]),
                     counters->proofs[proofs[i]]);
}

static void put_rules(struct bytes *out, const struct broker_counters *counters)
{
    begin(out, "diagport_rule_matches", "counter", "Runtimes that a rule matched.");
    for (size_t i = 0; i < counters->n_rules; i++)
        put_named(out, "diagport_rule_matches_total", "rule", counters->rules[i].name,
                  counters->rules[i].n_matches);
    begin(out, "diagport_rule_tripped", "gauge", "1 while a rule is suspended.");
    for (size_t i = 0; i < counters->n_rules; i++)
        put_named(out, "diagport_rule_tripped", "rule", counters->rules[i].name, 0);
}

/* The rest. */

static void put_troubles(struct bytes *out, const struct broker_counters *counters)
{
    begin(out, "diagport_deadline", "counter", "Deadlines of rules that came.");
    put_count(out, "diagport_deadline_total", counters->n_deadlines);
    begin(out, "diagport_rollbacks", "counter", "Plans that had to be taken back.");
    put_count(out, "diagport_rollbacks_total", counters->n_rollbacks);
    begin(out, "diagport_peer_errors", "counter", "What peers did wrong, by kind.");
    for (size_t i = 0; i < PEER_ERROR_COUNT; i++)
        put_labelled(out, "diagport_peer_errors_total", "kind",
                     peer_error_name((enum notice_peer_error)i), counters->peer_errors[i]);
}

static void put_policy(struct bytes *out, const struct metrics *metrics)
{
    begin(out, "diagport_policy_reloads", "counter", "Reloads, by result.");
    put_labelled(out, "diagport_policy_reloads_total", "result", "ok", metrics->n_reloads_done);
    put_labelled(out, "diagport_policy_reloads_total", "result", "failed",
                 metrics->n_reloads_failed);
    begin(out, "diagport_policy", "info", "The policy in force.");
    bytes_put_format(out, "diagport_policy_info{hash=\"%s\",origin=\"%s\"} 1\n",
                     metrics->policy_hash, metrics->policy_origin);
}

static void put_health(struct bytes *out, const struct metrics *metrics)
{
    begin(out, "diagport_ready", "gauge", "1 while runtimes that come are served.");
    put_count(out, "diagport_ready", metrics->is_ready);
    begin(out, "diagport_alarm", "gauge", "1 while something needs an operator, by alarm.");
    for (size_t i = 0; i < ALARM_COUNT; i++)
        put_labelled(out, "diagport_alarm", "alarm", alarm_name((enum alarm)i),
                     metrics->counters->alarms[i]);
    begin(out, "diagport_listener_in_place", "gauge",
          "1 while the socket file of a listener is the one that is listened on.");
    for (size_t i = 0; i < metrics->n_listeners; i++)
        put_named(out, "diagport_listener_in_place", "listener", metrics->listeners[i].name,
                  metrics->listeners[i].is_in_place);
    begin(out, "diagport_control_in_place", "gauge",
          "1 while the file of the control socket is the one that is listened on.");
    put_count(out, "diagport_control_in_place", metrics->is_control_in_place);
    begin(out, "diagport_build", "info", "The version of the daemon.");
    bytes_put_format(out, "diagport_build_info{version=\"%s\"} 1\n", metrics->version);
}

static void put_self(struct bytes *out, const struct metrics *metrics)
{
    const struct self *self = metrics->self;

    begin(out, "process_cpu_seconds", "counter", "Processor time used.");
    bytes_put_string(out, "# UNIT process_cpu_seconds seconds\n");
    bytes_put_format(out, "process_cpu_seconds_total %.6f\n", self->cpu_seconds);
    begin(out, "process_open_fds", "gauge", "Open descriptors.");
    put_count(out, "process_open_fds", self->n_open_fds);
    begin(out, "process_max_fds", "gauge", "Limit of open descriptors.");
    put_count(out, "process_max_fds", self->n_max_fds);
    begin(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
    bytes_put_string(out, "# UNIT process_resident_memory_bytes bytes\n");
    put_count(out, "process_resident_memory_bytes", self->resident_bytes);
    begin(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.");
    bytes_put_string(out, "# UNIT process_virtual_memory_bytes bytes\n");
    put_count(out, "process_virtual_memory_bytes", self->virtual_bytes);
    begin(out, "process_start_time_seconds", "gauge", "Start of the daemon, in the epoch.");
    bytes_put_string(out, "# UNIT process_start_time_seconds seconds\n");
    bytes_put_format(out, "process_start_time_seconds %.3f\n", metrics->started_at);
}

void metrics_write(const struct metrics *metrics, struct bytes *out)
{
    put_states(out, metrics);
    put_holds(out, metrics->counters);
    put_steps(out, metrics->counters);
    put_proofs(out, metrics->counters);
    put_rules(out, metrics->counters);
    put_troubles(out, metrics->counters);
    put_policy(out, metrics);
    put_health(out, metrics);
    put_self(out, metrics);
    bytes_put_string(out, "# EOF\n");
}
