/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/guid.h"
#include "lib/primer_names.h"
#include "lib/record.h"
#include "lib/text.h"

/* Either makes children of managed code connect (measured: the second one is used where the first
 * is empty), so both are blanked. */
static const char *const port_variables[] = {"DOTNET_DiagnosticPorts", "COMPlus_DiagnosticPorts"};

void plan_init(struct plan *plan)
{
    *plan = (struct plan){0};
}

void plan_deinit(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        free(plan->steps[i].old_value);
        free(plan->steps[i].detail);
        free(plan->steps[i].own_name);
    }
    free(plan->steps);
    free(plan->primer_names);
    free(plan->primer_libraries);
    plan_init(plan);
}

static struct step *add(struct plan *plan, enum step_kind kind, const char *name, bool is_required)
{
    struct step *step;

    if (plan->n_steps == plan->capacity) {
        size_t capacity = plan->capacity == 0 ? 4 : 2 * plan->capacity;
        struct step *steps = realloc(plan->steps, capacity * sizeof *steps);

        if (!steps)
            return NULL;
        plan->steps = steps;
        plan->capacity = capacity;
    }
    step = &plan->steps[plan->n_steps++];
    *step = (struct step){
        .kind = kind,
        .name = name,
        .is_required = is_required,
        .at = MOMENT_NEVER,
        .retry_until = MOMENT_NEVER,
    };
    return step;
}

static int add_variables(struct plan *plan, const struct policy_rule *rule)
{
    for (size_t i = 0; i < rule->n_variables; i++) {
        const struct policy_variable *variable = &rule->variables[i];
        struct step *step = add(plan, STEP_VARIABLE, variable->name, variable->is_required);

        if (!step)
            return -ENOMEM;
        step->value = variable->value;
    }
    if (rule->keys.children != POLICY_CHILDREN_DETACH)
        return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(port_variables); i++) {
        struct step *step = add(plan, STEP_VARIABLE, port_variables[i], true);

        if (!step)
            return -ENOMEM;
        step->value = "";
    }
    return 0;
}

static bool has_variable(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind == STEP_VARIABLE && strcmp(plan->steps[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Whether they are needed turns out later; what the rule itself says of them wins. */
static int add_switches(struct plan *plan, const struct policy_rule *rule)
{
    static const char *const names[] = {PLAN_SWITCH, PLAN_SWITCH_NEW};

    if (rule->keys.on_conflict != POLICY_CONFLICT_REPLACE || rule->n_profilers == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct step *step;

        if (has_variable(plan, names[i]))
            continue;
        step = add(plan, STEP_VARIABLE, names[i], true);
        if (!step)
            return -ENOMEM;
        step->value = "0";
        step->is_for_conflict = true;
    }
    return 0;
}

/* The primer. */

static const struct guid primer_clsid = {{PRIMER_CLSID_BYTES}};

static void put_entry(struct bytes *list, const char *text)
{
    if (list->length > 0)
        bytes_put_u8(list, PRIMER_SEPARATOR);
    bytes_put_string(list, text);
}

/* A list that is done; NULL when memory ran out. */
static char *end_list(struct bytes *list)
{
    return bytes_finish(list) == 0 ? (char *)bytes_take(list) : NULL;
}

/* All variables that are laid out so far, set and unset alike. */
static char *list_names(const struct plan *plan)
{
    struct bytes CLEANUP(bytes_deinit) list;

    bytes_init(&list, SIZE_MAX - 1);
    for (size_t i = 0; i < plan->n_steps; i++)
        put_entry(&list, plan->steps[i].name);
    return end_list(&list);
}

/* In the order of wish; they are sent the other way round. */
static char *list_libraries(const struct plan *plan)
{
    struct bytes CLEANUP(bytes_deinit) list;
    size_t n = 0;

    bytes_init(&list, SIZE_MAX - 1);
    for (size_t i = plan->n_steps; i-- > 0 && n < PRIMER_LIBRARIES_MAX;) {
        const struct step *step = &plan->steps[i];

        if (step->kind != STEP_PROFILER || step->primer == POLICY_PRIMER_NEVER)
            continue;
        put_entry(&list, step->name);
        n++;
    }
    return end_list(&list);
}

/* True when a profiler of the rule may need it. `ret_is_required`: one that is required does not
 * do without. */
static bool may_need_primer(const struct policy_rule *rule, bool *ret_is_required)
{
    bool may_need = false;

    *ret_is_required = false;
    for (size_t i = 0; i < rule->n_profilers; i++) {
        const struct policy_profiler *profiler = &rule->profilers[i];

        may_need |= plan_needs_primer(profiler->primer, PLAN_READING_UNKNOWN);
        *ret_is_required |= profiler->is_required && profiler->primer == POLICY_PRIMER_ALWAYS;
    }
    return may_need;
}

static void give_primer(struct step *step, const char *value)
{
    step->value = value;
    if (text_utf16_units(step->name) + text_utf16_units(value) > COMMAND_VARIABLE_UNITS_MAX)
        plan_refuse(step, "does not fit into a message of the protocol");
}

static int add_primer_variable(struct plan *plan, const char *name, const char *value,
                               bool is_required)
{
    struct step *step = add(plan, STEP_VARIABLE, name, is_required);

    if (!step)
        return -ENOMEM;
    step->is_for_primer = true;
    give_primer(step, value);
    return 0;
}

int plan_name_libraries(struct plan *plan)
{
    char *list;

    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (!step->is_for_primer || strcmp(step->name, PRIMER_LIBRARIES) != 0)
            continue;
        list = list_libraries(plan);
        if (!list)
            return -ENOMEM;
        free(plan->primer_libraries);
        plan->primer_libraries = list;
        give_primer(step, list);
    }
    return 0;
}

/* Behind the variables, which it has to be told of. */
static int add_primer_variables(struct plan *plan, bool is_required)
{
    plan->primer_names = list_names(plan);
    if (!plan->primer_names ||
        add_primer_variable(plan, PRIMER_NAMES, plan->primer_names, is_required) != 0)
        return -ENOMEM;
    return add_primer_variable(plan, PRIMER_LIBRARIES, "", false);
}

static int add_primer(struct plan *plan, const struct policy_rule *rule, bool is_required)
{
    const char *path = rule->keys.primer_path ? rule->keys.primer_path : PRIMER_PATH;
    struct step *step = add(plan, STEP_PRIMER, path, is_required);

    if (!step)
        return -ENOMEM;
    step->clsid = &primer_clsid;
    return 0;
}

static int add_profilers(struct plan *plan, const struct policy_rule *rule)
{
    for (size_t i = rule->n_profilers; i-- > 0;) {
        const struct policy_profiler *profiler = &rule->profilers[i];
        struct step *step = add(plan, STEP_PROFILER, profiler->path, profiler->is_required);

        if (!step)
            return -ENOMEM;
        step->pattern = profiler->pattern;
        step->clsid = &profiler->clsid;
        step->primer = profiler->primer;
    }
    return 0;
}

int plan_build(struct plan *plan, const struct policy_rule *rule, bool knows_primer)
{
    bool has_primer, is_required;

    plan->knows_primer = knows_primer;
    if (add_variables(plan, rule) != 0)
        return -ENOMEM;
    has_primer = knows_primer && plan->n_steps > 0 && may_need_primer(rule, &is_required);
    if (has_primer && add_primer_variables(plan, is_required) != 0)
        return -ENOMEM;
    if (add_switches(plan, rule) != 0)
        return -ENOMEM;
    if (add_profilers(plan, rule) != 0 || plan_name_libraries(plan) != 0)
        return -ENOMEM;
    if (has_primer && add_primer(plan, rule, is_required) != 0)
        return -ENOMEM;
    for (size_t i = 0; i < rule->n_hooks; i++) {
        if (!add(plan, STEP_HOOK, rule->hooks[i].path, rule->hooks[i].is_required))
            return -ENOMEM;
    }
    return 0;
}

/* All hooks that are still pending go out in one command and share its fate. */
static bool shares_fate(const struct step *step, const struct step *with)
{
    return step == with ||
           (with->kind == STEP_HOOK && step->kind == STEP_HOOK && step->result == STEP_PENDING);
}

static enum record_step record_of(const struct step *step, const struct step *sending)
{
    switch (step->result) {
    case STEP_PENDING:
        return step->is_unanswered || (sending && shares_fate(step, sending)) ? RECORD_STEP_SENT
                                                                              : RECORD_STEP_PENDING;
    case STEP_OK:
        if (step->may_be_undone || step == sending)
            return RECORD_STEP_UNDOING;
        return step->undo_failed ? RECORD_STEP_STAYS : RECORD_STEP_OK;
    case STEP_REFUSED:
        if (step->was_lost)
            return RECORD_STEP_LOST;
        return step->was_sent ? RECORD_STEP_REFUSED : RECORD_STEP_BARRED;
    case STEP_LOST:
        return RECORD_STEP_LOST;
    case STEP_SKIPPED:
        return step->is_left_out ? RECORD_STEP_LEFT_OUT : RECORD_STEP_SKIPPED;
    case STEP_ROLLED_BACK:
        return RECORD_STEP_ROLLED_BACK;
    }
    return RECORD_STEP_SKIPPED;
}

void plan_record(const struct plan *plan, const struct step *sending, struct record *record)
{
    record->n_runs = 0;
    record->is_tangled = false;
    record->knows_primer = plan->knows_primer;
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind != STEP_RESUME)
            record_add_step(record, record_of(&plan->steps[i], sending));
    }
}

/* It was sent once at least, whatever came of it. */
static void recall_sent(struct step *step, enum step_result result)
{
    step->result = result;
    step->was_sent = true;
    step->attempts = 1;
}

static void recall_step(struct step *step, enum record_step recorded, bool is_awaited,
                        bool is_lost_forgiven)
{
    switch (recorded) {
    case RECORD_STEP_PENDING:
        return;
    case RECORD_STEP_SENT:
        recall_sent(step, step->kind == STEP_VARIABLE || is_awaited ? STEP_PENDING : STEP_LOST);
        step->is_unanswered = step->result == STEP_PENDING;
        step->is_forgiven = step->kind != STEP_VARIABLE && is_lost_forgiven;
        break;
    case RECORD_STEP_OK:
        recall_sent(step, STEP_OK);
        break;
    case RECORD_STEP_REFUSED:
        recall_sent(step, STEP_REFUSED);
        step->why = "was refused by the runtime before the daemon was started anew";
        break;
    case RECORD_STEP_BARRED:
        step->result = STEP_REFUSED;
        step->why = "was refused before the daemon was started anew";
        break;
    case RECORD_STEP_LOST:
        recall_sent(step, STEP_LOST);
        break;
    case RECORD_STEP_SKIPPED:
        step->result = STEP_SKIPPED;
        step->why = "the plan ended before it";
        break;
    case RECORD_STEP_LEFT_OUT:
        plan_leave_out(step, "was left out before the daemon was started anew");
        break;
    case RECORD_STEP_ROLLED_BACK:
        recall_sent(step, STEP_ROLLED_BACK);
        break;
    case RECORD_STEP_STAYS:
        recall_sent(step, STEP_OK);
        step->undo_failed = true;
        break;
    case RECORD_STEP_UNDOING:
        recall_sent(step, STEP_OK);
        step->may_be_undone = true;
        break;
    }
}

struct step *plan_awaited(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (step->kind != STEP_VARIABLE && step->result == STEP_PENDING && step->is_unanswered)
            return step;
    }
    return NULL;
}

bool plan_recall(struct plan *plan, const struct record *record, bool is_awaited,
                 bool is_lost_forgiven, struct moment now)
{
    size_t n = 0;

    for (size_t i = 0; i < record->n_runs; i++) {
        for (size_t end = n + record->runs[i].n; n < end; n++) {
            if (n == plan->n_steps)
                return false;
            recall_step(&plan->steps[n], record->runs[i].step, is_awaited, is_lost_forgiven);
            if (plan->steps[n].result != STEP_PENDING)
                plan->steps[n].at = now;
        }
    }
    return n == plan->n_steps && !record->is_tangled && (!is_awaited || plan_awaited(plan));
}

struct step *plan_add_resume(struct plan *plan)
{
    struct step *last = plan->n_steps > 0 ? &plan->steps[plan->n_steps - 1] : NULL;
    struct step *step;
    size_t n_resumes = 0;

    if (last && last->kind != STEP_RESUME)
        last = NULL;
    for (size_t i = 0; i < plan->n_steps; i++)
        n_resumes += plan->steps[i].kind == STEP_RESUME;
    if (n_resumes >= PLAN_RESUMES_MAX)
        return last;
    step = add(plan, STEP_RESUME, NULL, true);
    return step ? step : last;
}

enum command_id plan_command(const struct step *step)
{
    switch (step->kind) {
    case STEP_VARIABLE:
        return COMMAND_SET_ENVIRONMENT;
    case STEP_PROFILER:
    case STEP_PRIMER:
        return COMMAND_STARTUP_PROFILER;
    case STEP_HOOK:
        return COMMAND_APPLY_STARTUP_HOOK;
    case STEP_RESUME:
        return COMMAND_RESUME;
    case STEP_ATTACH:
        return COMMAND_ATTACH_PROFILER;
    }
    return COMMAND_RESUME;
}

bool plan_has_file(const struct step *step)
{
    return step->kind != STEP_VARIABLE && step->kind != STEP_RESUME;
}

bool plan_is_unset(const struct step *step)
{
    return step->kind == STEP_VARIABLE && !step->value;
}

static size_t old_values_size(const struct plan *plan)
{
    size_t size = 0;

    for (size_t i = 0; i < plan->n_steps; i++)
        size += plan->steps[i].old_value ? strlen(plan->steps[i].old_value) : 0;
    return size;
}

static int set_old_value(struct plan *plan, struct step *step, const char *value)
{
    if (step->kind != STEP_VARIABLE || step->old != STEP_OLD_UNKNOWN)
        return 0;
    if (!value) {
        step->old = STEP_OLD_ABSENT;
        return 0;
    }
    if (strlen(value) > PLAN_OLD_VALUES_MAX - old_values_size(plan))
        return 0;
    step->old_value = strdup(value);
    if (!step->old_value)
        return -ENOMEM;
    step->old = STEP_OLD_PRESENT;
    return 0;
}

int plan_set_old_value(struct plan *plan, const char *name, const char *value)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        if (step->kind == STEP_VARIABLE && strcmp(step->name, name) == 0 &&
            set_old_value(plan, step, value) != 0)
            return -ENOMEM;
    }
    return 0;
}

int plan_take_old_values(struct plan *plan, const struct attributes *attributes)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];
        const char *value = NULL;

        if (step->kind != STEP_VARIABLE ||
            attributes_variable(attributes, step->name, &value) == ATTRIBUTE_UNKNOWN)
            continue;
        if (set_old_value(plan, step, value) != 0)
            return -ENOMEM;
    }
    return 0;
}

/* True when the runtime keeps, or may keep, something of the step. */
static bool stays(const struct step *step)
{
    return step->kind != STEP_RESUME && step->was_sent &&
           (step->result == STEP_OK || step->result == STEP_LOST ||
            (step->result == STEP_REFUSED && step->was_lost));
}

bool plan_needs_target(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (step->kind == STEP_VARIABLE ? (step->result == STEP_PENDING || stays(step)) &&
                                              (plan_is_unset(step) || step->old != STEP_OLD_PRESENT)
                                        : step->kind != STEP_RESUME && step->result == STEP_PENDING)
            return true;
    }
    return false;
}

bool plan_needs_old_values(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        /* What was sent may be what the runtime would say. */
        if (step->kind == STEP_VARIABLE && step->result == STEP_PENDING && !step->was_sent &&
            step->old == STEP_OLD_UNKNOWN)
            return true;
    }
    return false;
}

bool plan_has_failed(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (step->kind != STEP_RESUME && step->is_required && step->result != STEP_PENDING &&
            step->result != STEP_OK && !step->is_forgiven && !step->is_left_out)
            return true;
    }
    return false;
}

bool plan_was_sent(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind != STEP_RESUME && plan->steps[i].was_sent)
            return true;
    }
    return false;
}

struct step *plan_next(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kind != STEP_RESUME && plan->steps[i].result == STEP_PENDING)
            return &plan->steps[i];
    }
    return NULL;
}

static int write_hooks(const struct plan *plan, struct bytes *message)
{
    struct bytes paths;
    int error;

    bytes_init(&paths, 1024 * 1024);
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (step->kind != STEP_HOOK || step->result != STEP_PENDING)
            continue;
        if (paths.length > 0)
            bytes_put_u8(&paths, ':');
        bytes_put_string(&paths, step->name);
    }
    error = bytes_finish(&paths);
    if (error == 0)
        error = command_write_apply_startup_hook(message, (const char *)paths.data);
    bytes_deinit(&paths);
    return error;
}

int plan_write(const struct plan *plan, const struct step *step, struct bytes *message)
{
    switch (step->kind) {
    case STEP_VARIABLE:
        return command_write_set_environment(message, step->name, step->value);
    case STEP_PROFILER:
    case STEP_PRIMER:
        return command_write_startup_profiler(message, step->clsid, step->name);
    case STEP_HOOK:
        return write_hooks(plan, message);
    case STEP_RESUME:
    case STEP_ATTACH:
        break;
    }
    return command_write_plain(message, COMMAND_RESUME);
}

void plan_sent(struct plan *plan, struct step *step)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (shares_fate(&plan->steps[i], step)) {
            plan->steps[i].attempts++;
            plan->steps[i].was_lost |= plan->steps[i].is_unanswered;
            plan->steps[i].was_sent = true;
            plan->steps[i].is_unanswered = true;
            plan->steps[i].is_forgiven = false;
        }
    }
}

void plan_answered(struct plan *plan, struct step *step, enum step_result result, uint32_t hresult,
                   struct moment now)
{
    const struct step with = *step;

    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *other = &plan->steps[i];

        if (other != step && !shares_fate(other, &with))
            continue;
        other->result = result;
        other->hresult = hresult;
        other->at = now;
        other->is_unanswered = false;
        other->is_forgiven &= result == STEP_LOST;
    }
    plan_judge_primer(plan);
}

struct step *plan_next_undo(struct plan *plan)
{
    for (size_t i = plan->n_steps; i-- > 0;) {
        struct step *step = &plan->steps[i];

        if (step->kind == STEP_VARIABLE && !step->undo_failed && stays(step))
            return step;
    }
    return NULL;
}

bool plan_can_undo(const struct step *step, const struct command_target *target)
{
    switch (step->old) {
    case STEP_OLD_UNKNOWN:
        return false;
    case STEP_OLD_ABSENT:
        return !command_deadly(COMMAND_SET_ENVIRONMENT, target, true);
    case STEP_OLD_PRESENT:
        return true;
    }
    return false;
}

void plan_forget_old_values(struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct step *step = &plan->steps[i];

        free(step->old_value);
        step->old_value = NULL;
        step->old = STEP_OLD_UNKNOWN;
    }
}

int plan_write_undo(const struct step *step, struct bytes *message)
{
    assert(step->old != STEP_OLD_UNKNOWN);
    return command_write_set_environment(message, step->name, step->old_value);
}

void plan_undo_sent(struct step *step)
{
    step->undo_attempts++;
    step->may_be_undone = true;
}

void plan_undo_answered(struct step *step, bool is_done, struct moment now)
{
    if (is_done) {
        step->result = STEP_ROLLED_BACK;
        step->at = now;
    } else {
        step->undo_failed = true;
    }
    if (is_done || step->undo_attempts == 1)
        step->may_be_undone = false;
}

bool plan_doubt(struct step *step, struct moment now)
{
    if (step->result != STEP_OK || !step->may_be_undone)
        return false;
    step->result = STEP_LOST;
    step->hresult = 0;
    step->at = now;
    step->why = "taking it back was not answered";
    return true;
}

bool plan_skip(struct step *step, const char *why, struct moment now)
{
    if (plan_doubt(step, now))
        return true;
    if (step->kind == STEP_RESUME || step->result != STEP_PENDING)
        return false;
    step->result = step->is_unanswered ? STEP_LOST : STEP_SKIPPED;
    step->why = step->is_unanswered ? NULL : why;
    step->at = now;
    return true;
}

void plan_skip_rest(struct plan *plan, const char *why, struct moment now)
{
    for (size_t i = 0; i < plan->n_steps; i++)
        plan_skip(&plan->steps[i], why, now);
}

const char *plan_shortfall(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct step *step = &plan->steps[i];

        if (step->is_forgiven)
            return "the answer to a step was lost with the daemon before";
        /* A hook that is left out is there, and a variable was not needed. */
        if (step->is_left_out && step->is_required && step->kind == STEP_PROFILER)
            return "a profiler was left out";
    }
    return NULL;
}

enum plan_outcome plan_outcome(const struct plan *plan)
{
    if (!plan_has_failed(plan) && !plan_shortfall(plan))
        return PLAN_APPLIED;
    if (!plan_was_sent(plan))
        return PLAN_FAILED;
    if (!plan_has_failed(plan))
        return PLAN_PARTIAL;
    for (size_t i = 0; i < plan->n_steps; i++) {
        if (stays(&plan->steps[i]))
            return PLAN_PARTIAL;
    }
    return PLAN_ROLLED_BACK;
}

const char *step_kind_name(enum step_kind kind)
{
    switch (kind) {
    case STEP_VARIABLE:
        return "env";
    case STEP_PROFILER:
        return "profiler";
    case STEP_PRIMER:
        return "primer";
    case STEP_HOOK:
        return "hook";
    case STEP_RESUME:
        return "resume";
    case STEP_ATTACH:
        return "attach";
    }
    return "resume";
}

const char *step_result_name(enum step_result result)
{
    switch (result) {
    case STEP_PENDING:
        return "pending";
    case STEP_OK:
        return "ok";
    case STEP_REFUSED:
        return "refused";
    case STEP_LOST:
        return "lost";
    case STEP_SKIPPED:
        return "skipped";
    case STEP_ROLLED_BACK:
        return "rolled_back";
    }
    return "pending";
}

const char *step_proof_name(enum step_proof proof)
{
    switch (proof) {
    case PROOF_LOADED:
        return "loaded";
    case PROOF_NOT_LOADED:
        return "not_loaded";
    case PROOF_OPEN:
    case PROOF_UNKNOWN:
        break;
    }
    return "unknown";
}
