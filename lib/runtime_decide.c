/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which rule a runtime gets, and whether a plan may still be applied to it: a
 * runtime that is already running, or of which we cannot tell, gets Resume and
 * nothing else.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/broker_core.h"
#include "lib/facts.h"
#include "lib/portspec.h"
#include "lib/settings.h"

bool decide_has_all_records(const struct runtime *runtime)
{
    const struct broker *broker = runtime->broker;

    return broker->trust == BROKER_TRUSTS_RECORDS ||
           (broker->trust == BROKER_DISTRUSTS_RECORDS &&
            runtime->start_time > broker->distrusted_until);
}

/* Over a limit of runtimes that are not yet resumed; this one is counted already. */
static const char *limit_problem(const struct runtime *runtime)
{
    const struct policy_limits *limits = &runtime->broker->policy->limits;

    if (runtime->broker->counters.n_pending > limits->runtimes)
        return "more runtimes wait than limits.runtimes";
    if (runtime->broker->counters.n_pending > broker_runtimes(runtime->broker))
        return "more runtimes wait than descriptors last for";
    if (runtime->process->user->n_pending > limits->runtimes_per_user)
        return "more runtimes of its user wait than limits.runtimes_per_user";
    return NULL;
}

/* Why nothing may be applied to it whatever its rule says; NULL when nothing stands against it. */
static const char *trust_problem(const struct runtime *runtime)
{
    if (runtime->broker->trust == BROKER_HAS_NO_RECORDS)
        return "no record of it can be kept";
    if (!decide_has_all_records(runtime))
        return "it is older than the records, since those before were damaged or lost";
    return limit_problem(runtime);
}

static void observe(struct runtime *runtime, struct moment now)
{
    plan_skip_rest(&runtime->plan, "its rule only observes", now);
    resume_begin(runtime, OUTCOME_UNTOUCHED, "its rule only observes", now);
}

/* Everything that has to be known before the first command, in one question. */
static bool ask_plan_facts(struct runtime *runtime)
{
    const struct plan *plan = &runtime->plan;
    const char **files = calloc(plan->n_steps + 1, sizeof *files);
    size_t n_files;
    bool is_asked;

    if (!files)
        return false;
    n_files = plan_files(plan, files);
    is_asked = broker_ask(runtime->broker, QUESTION_PLAN, NULL, runtime,
                          FACTS_STAT | FACTS_THREADS | FACTS_ENVIRON |
                              (n_files > 0 ? FACTS_FILES | FACTS_IMAGES : 0) |
                              (runtime->is_unseen ? broker_facts_wanted(runtime->policy) : 0),
                          files, n_files);
    free(files);
    return is_asked;
}

static void be_out_of_memory(struct runtime *runtime, struct moment now)
{
    broker_out_of_memory(runtime->broker, now);
    apply_fail(runtime, "memory ran out", now);
}

static void take_rule(struct runtime *runtime, struct moment now)
{
    const struct policy_rule *rule = runtime->rule;

    runtime->deadline_length = rule->keys.deadline;
    deadline_set(&runtime->broker->ends, &runtime->end,
                 moment_after(runtime->connected_at, runtime->deadline_length));
    broker_count_match(runtime->broker, runtime->policy, rule, now);
}

void decide_begin_plan(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    if (facts && facts->has_handle)
        runtime_hold_process(runtime);
    runtime_mark_progress(runtime, now);
    if (!ask_plan_facts(runtime))
        be_out_of_memory(runtime, now);
}

void decide_by_policy(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    const struct policy_rule *rule;
    const char *problem;

    if (match_decide(runtime->policy, &runtime->attributes, &runtime->decision) != 0) {
        broker_out_of_memory(runtime->broker, now);
        resume_begin(runtime, OUTCOME_UNKNOWN, "memory ran out", now);
        return;
    }
    rule = runtime->rule = runtime->decision.rule;
    if (!rule) {
        resume_begin(runtime, OUTCOME_UNTOUCHED, "no rule matches", now);
        return;
    }
    take_rule(runtime, now);
    if (rule->ignore) {
        resume_begin(runtime, OUTCOME_UNTOUCHED,
                     runtime->decision.by_unknown
                         ? "its rule ignores it, since a selector could not be read"
                         : "its rule ignores it",
                     now);
        return;
    }
    if (plan_build(&runtime->plan, rule, true) != 0) {
        be_out_of_memory(runtime, now);
        return;
    }
    if (runtime->plan.n_steps == 0) {
        resume_begin(runtime, OUTCOME_UNTOUCHED, "its rule has nothing to apply", now);
        return;
    }
    problem = trust_problem(runtime);
    if (rule->mode == POLICY_OBSERVE) {
        observe(runtime, now);
    } else if (problem) {
        plan_skip_rest(&runtime->plan, problem, now);
        resume_begin(runtime, OUTCOME_UNKNOWN, problem, now);
    } else {
        decide_begin_plan(runtime, facts, now);
    }
}

void decide_show_match(struct runtime *runtime, struct moment now)
{
    if (match_decide(runtime->policy, &runtime->attributes, &runtime->decision) != 0)
        broker_out_of_memory(runtime->broker, now);
}

/* Whoever comes to a daemon that goes and keeps is the next daemon's. */
static void decide_while_stopping(struct runtime *runtime, struct moment now)
{
    if (runtime->broker->stop == BROKER_STOP_RESUME)
        resume_begin(runtime, memory_of(runtime) ? OUTCOME_UNKNOWN : OUTCOME_UNTOUCHED,
                     "the daemon is stopping", now);
}

static void take_port(struct runtime *runtime, struct moment now)
{
    const struct listener *listener = broker_listener(runtime->broker, runtime->listener);

    if (listener &&
        attributes_set(&runtime->attributes, ATTRIBUTE_PORT, "the socket", listener->name) != 0)
        broker_out_of_memory(runtime->broker, now);
}

/* By this daemon: by what the records say of it, and else by the policy. */
static void decide_here(struct runtime *runtime, const struct facts *facts,
                        const char *claim_problem, struct moment now)
{
    struct memory *memory = memory_take(runtime);

    runtime->process->has_more_cookies |= memory_has_neighbour(runtime);
    if (claim_problem)
        resume_begin(runtime, OUTCOME_UNKNOWN, claim_problem, now);
    else if (memory)
        recall_decide(runtime, memory, facts, now);
    else
        decide_by_policy(runtime, facts, now);
    if (memory)
        memory_free(memory);
}

void decide_runtime(struct runtime *runtime, const struct facts *facts, const char *claim_problem,
                    struct moment now)
{
    const struct broker *broker = runtime->broker;

    take_port(runtime, now);
    if (facts && facts->environ.error == 0)
        decide_ports(runtime, &runtime->attributes);
    if (broker->is_stopping && (!claim_problem || broker->stop != BROKER_STOP_RESUME))
        decide_while_stopping(runtime, now);
    else
        decide_here(runtime, facts, claim_problem, now);
    attributes_trim(&runtime->attributes, RUNTIME_ARGUMENTS_MAX);
}

/* Its process is looked at for the first time. */
static void see(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    struct attributes attributes;

    attributes_init(&attributes);
    if (attributes_take_facts(&attributes, runtime->pid, facts, runtime->policy->names) != 0) {
        broker_out_of_memory(runtime->broker, now);
        attributes_deinit(&attributes);
        return;
    }
    attributes_deinit(&runtime->attributes);
    runtime->attributes = attributes;
    runtime->claimed_pid = attributes.ns_pid;
    runtime->is_unseen = false;
    if (facts->has_handle)
        runtime_hold_process(runtime);
    take_port(runtime, now);
    if (runtime->rule)
        decide_show_match(runtime, now);
    attributes_trim(&runtime->attributes, RUNTIME_ARGUMENTS_MAX);
    if (runtime->state >= RUNTIME_HELD)
        attributes_forget_groups(&runtime->attributes);
}

static bool is_ours(const struct broker *broker, const struct portspec_entry *entry)
{
    const struct listener *listener;

    SLIST_FOREACH(listener, &broker->listeners, link) {
        if (strlen(listener->path) == entry->path_length &&
            memcmp(listener->path, entry->path, entry->path_length) == 0)
            return true;
    }
    return false;
}

static void take_other_ports(struct runtime *runtime, const struct portspec *portspec)
{
    struct bytes ports;

    bytes_init(&ports, BROKER_TEXT_MAX);
    for (size_t i = 0; i < portspec->n_entries; i++) {
        const struct portspec_entry *entry = &portspec->entries[i];

        if (entry->listens || entry->is_too_long || !entry->suspends ||
            is_ours(runtime->broker, entry))
            continue;
        if (ports.length > 0)
            bytes_put_u8(&ports, ';');
        bytes_put_run(&ports, entry->path, entry->path_length);
    }
    free(runtime->other_ports);
    runtime->other_ports = NULL;
    if (ports.length > 0 && (ports.error == 0 || ports.error == -EMSGSIZE)) {
        ports.error = 0;
        if (bytes_finish(&ports) == 0)
            runtime->other_ports = (char *)bytes_take(&ports);
    }
    bytes_deinit(&ports);
}

void decide_ports(struct runtime *runtime, const struct attributes *attributes)
{
    struct portspec portspec;
    const char *value = NULL;
    int n_suspending = 0;

    if (settings_ports(attributes, &value) != ATTRIBUTE_PRESENT)
        return;
    portspec_read(value, &portspec);
    for (size_t i = 0; i < portspec.n_entries; i++) {
        const struct portspec_entry *entry = &portspec.entries[i];

        n_suspending += entry->suspends && !entry->listens && !entry->is_too_long;
    }
    runtime->n_suspending = portspec.is_cut ? -1 : n_suspending;
    runtime->has_default_port_suspend = settings_suspends_default_port(attributes);
    take_other_ports(runtime, &portspec);
    runtime_judge_waiting(runtime);
}

static void give_up_late(struct runtime *runtime, enum runtime_outcome outcome, const char *why,
                         struct moment now)
{
    plan_skip_rest(&runtime->plan, why, now);
    if (outcome == OUTCOME_LATE && runtime->rule->keys.late == POLICY_LATE_ATTACH &&
        !plan_was_sent(&runtime->plan))
        runtime->n_late = runtime->rule->n_profilers;
    /* An earlier daemon may have sent a part of it. */
    resume_begin(runtime, plan_was_sent(&runtime->plan) ? OUTCOME_PARTIAL : outcome, why, now);
}

/* Asks which entry of its port list is our socket, as the process sees the paths. */
static bool ask_sockets(struct runtime *runtime, const struct portspec *portspec)
{
    char *paths[PORTSPEC_ENTRIES_MAX] = {0};
    const char *files[PORTSPEC_ENTRIES_MAX];
    bool is_asked = true;

    for (size_t i = 0; i < portspec->n_entries; i++) {
        paths[i] = strndup(portspec->entries[i].path, portspec->entries[i].path_length);
        files[i] = paths[i];
        is_asked = is_asked && paths[i];
    }
    is_asked = is_asked &&
               broker_ask(runtime->broker, QUESTION_SOCKETS, NULL, runtime,
                          FACTS_STAT | FACTS_ENVIRON | FACTS_FILES, files, portspec->n_entries);
    for (size_t i = 0; i < portspec->n_entries; i++)
        free(paths[i]);
    return is_asked;
}

/* Everything about the target that facts can tell is in its place: on to the plan's checks. */
static void go_on(struct runtime *runtime, enum portspec_mode mode, struct moment now)
{
    switch (mode) {
    case PORTSPEC_RUNS_ON:
        give_up_late(runtime, OUTCOME_LATE, "its port does not suspend it", now);
        return;
    case PORTSPEC_SUSPENDS:
        runtime->target.port_suspends = true;
        break;
    case PORTSPEC_UNKNOWN:
        break;
    }
    apply_begin(runtime, now);
}

static bool is_late(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    struct span late_after = runtime->policy->limits.late_after;

    switch (picture_of(facts, runtime->pid)) {
    case PICTURE_RUNNING:
        give_up_late(runtime, OUTCOME_LATE, "its threads show that it is running", now);
        return true;
    case PICTURE_SUSPENDED:
        runtime->target.shows_suspended = true;
        return false;
    case PICTURE_UNKNOWN:
        /* A record of ours says that it was not resumed. */
        if (runtime->is_recalled)
            return false;
        if (facts->age.us >= 0 && facts->age.us <= late_after.us)
            return false;
        give_up_late(runtime, OUTCOME_UNKNOWN,
                     "it is older than limits.late_after and does not show whether it is running",
                     now);
        return true;
    }
    return false;
}

static void take_plan_facts(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    struct attributes attributes;
    struct portspec portspec;
    const char *value = NULL;
    enum portspec_mode mode = PORTSPEC_UNKNOWN;
    bool is_asked = false;

    attributes_init(&attributes);
    if (attributes_take_facts(&attributes, runtime->pid, facts, runtime->policy->names) != 0 ||
        plan_take_old_values(&runtime->plan, &attributes) != 0) {
        attributes_deinit(&attributes);
        be_out_of_memory(runtime, now);
        return;
    }
    decide_ports(runtime, &attributes);
    conflict_find(&attributes, &runtime->plan, &runtime->conflict);
    runtime->target.prevents_profilers = settings_prevent_profilers(&attributes);
    plan_check_files(&runtime->plan, facts, &runtime->attributes);
    if (settings_ports(&attributes, &value) == ATTRIBUTE_PRESENT) {
        portspec_read(value, &portspec);
        mode = portspec_mode(&portspec);
        is_asked = mode == PORTSPEC_UNKNOWN && portspec.n_entries > 1 && !portspec.is_cut &&
                   ask_sockets(runtime, &portspec);
    }
    attributes_deinit(&attributes);
    if (!is_asked)
        go_on(runtime, mode, now);
}

/* The mode of the entry that is the socket it came in by, out of a list of different ones. */
static enum portspec_mode mode_of_socket(const struct runtime *runtime,
                                         const struct portspec *portspec, const struct facts *facts)
{
    const struct listener *listener = broker_listener(runtime->broker, runtime->listener);
    enum portspec_mode mode = PORTSPEC_UNKNOWN;

    for (size_t i = 0; listener && i < portspec->n_entries && i < facts->n_files; i++) {
        const struct facts_file *file = &facts->files[i];
        enum portspec_mode entry_mode =
            portspec->entries[i].suspends ? PORTSPEC_SUSPENDS : PORTSPEC_RUNS_ON;

        if (portspec->entries[i].listens || file->error != 0 || listener->inode == 0 ||
            file->identity.device != listener->device || file->identity.inode != listener->inode)
            continue;
        /* The same socket twice in two modes: nothing tells which of the two this is. */
        if (mode != PORTSPEC_UNKNOWN && mode != entry_mode)
            return PORTSPEC_UNKNOWN;
        mode = entry_mode;
    }
    return mode;
}

static void take_sockets(struct runtime *runtime, const struct facts *facts, struct moment now)
{
    struct attributes attributes;
    struct portspec portspec;
    const char *value = NULL;
    enum portspec_mode mode = PORTSPEC_UNKNOWN;

    attributes_init(&attributes);
    if (attributes_take_facts(&attributes, runtime->pid, facts, runtime->policy->names) != 0) {
        attributes_deinit(&attributes);
        be_out_of_memory(runtime, now);
        return;
    }
    if (settings_ports(&attributes, &value) == ATTRIBUTE_PRESENT) {
        portspec_read(value, &portspec);
        mode = mode_of_socket(runtime, &portspec, facts);
    }
    attributes_deinit(&attributes);
    go_on(runtime, mode, now);
}

void decide_facts(struct runtime *runtime, enum question_purpose purpose, const struct facts *facts,
                  struct moment now)
{
    if (runtime->is_unseen && facts->is_alive && (facts->wanted & FACTS_EXE))
        see(runtime, facts, now);
    if (runtime->state != RUNTIME_DECIDING)
        return;
    if (!facts->is_alive)
        give_up_late(runtime, OUTCOME_UNKNOWN, "its process could not be looked at any more", now);
    else if (purpose == QUESTION_SOCKETS)
        take_sockets(runtime, facts, now);
    else if (!is_late(runtime, facts, now))
        take_plan_facts(runtime, facts, now);
}
