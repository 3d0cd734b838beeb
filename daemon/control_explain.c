/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which rule a process gets, and why: as the daemon itself would decide now, by
 * the same functions, and without a byte to anybody.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control_core.h"
#include "daemon/handle.h"
#include "daemon/looks.h"
#include "daemon/ports.h"
#include "daemon/view.h"
#include "lib/action.h"
#include "lib/attribute.h"
#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/match.h"
#include "lib/picture.h"
#include "lib/plan.h"
#include "lib/policy.h"
#include "lib/portspec.h"
#include "lib/runtime.h"
#include "lib/settings.h"

enum { ATTRIBUTE_TEXTS_MAX = 100000 };

/* What is being explained. */
struct subject {
    int32_t pid; /* 0: attributes were given */
    const struct runtime *runtime;
    struct attributes attributes;
    const struct facts *facts; /* about the process itself; NULL for given attributes */
    struct match_decision decision;
    struct plan plan;
    enum runtime_kind assumed_kind;
};

static void deinit(struct subject *subject)
{
    attributes_deinit(&subject->attributes);
    match_decision_deinit(&subject->decision);
    plan_deinit(&subject->plan);
}

/* A process. */

/*
 * Processes are looked at by others, and that takes its time: so a request is
 * put off for each look, and then begun again with what was found. It may end
 * before the look does.
 */
enum look_kind { LOOK_PROCESS, LOOK_FILES, LOOK_KINDS };

struct inquiry {
    struct look look;
    struct action_question question; /* with names of its own */
    struct http_request *request;    /* NULL when it has ended */
    bool is_looking;
    enum look_kind kind; /* of the look at hand */
    int pidfd;
    bool was_put_off[LOOK_KINDS]; /* for it */
    struct facts *found[LOOK_KINDS];
};

static struct inquiry *inquiry_of(struct look *look)
{
    return container_of(look, struct inquiry, look);
}

static void forget_question(struct inquiry *inquiry)
{
    for (size_t i = 0; i < inquiry->question.n_files; i++)
        free(inquiry->question.files[i]);
    free(inquiry->question.files);
    inquiry->question = (struct action_question){0};
}

static void free_inquiry(void *state)
{
    struct inquiry *inquiry = state;

    inquiry->request = NULL;
    if (inquiry->is_looking)
        return;
    for (size_t i = 0; i < LOOK_KINDS; i++)
        facts_free(inquiry->found[i]);
    forget_question(inquiry);
    free(inquiry);
}

static bool begin_look(struct look *look)
{
    struct inquiry *inquiry = inquiry_of(look);

    if (!inquiry->request)
        return false;
    inquiry->pidfd = handle_of_pid(inquiry->question.pid);
    return true;
}

/* Without memory for it there is an end, and no answer. */
static void take_look(struct look *look, struct facts *facts)
{
    struct inquiry *inquiry = inquiry_of(look);

    if (facts)
        looks_judge(facts, &inquiry->question, inquiry->pidfd);
    inquiry->found[inquiry->kind] = facts;
}

static void end_look(struct look *look)
{
    struct inquiry *inquiry = inquiry_of(look);

    if (inquiry->pidfd >= 0)
        close(inquiry->pidfd);
    inquiry->pidfd = -1;
    inquiry->is_looking = false;
    forget_question(inquiry);
    if (inquiry->request)
        http_call_again(inquiry->request);
    else
        free_inquiry(inquiry);
}

static bool copy_question(struct inquiry *inquiry, const struct action_question *question)
{
    struct action_question *copy = &inquiry->question;

    *copy = (struct action_question){.pid = question->pid, .wanted = question->wanted};
    copy->files = calloc(question->n_files + 1, sizeof *copy->files);
    if (!copy->files)
        return false;
    for (; copy->n_files < question->n_files; copy->n_files++) {
        copy->files[copy->n_files] = strdup(question->files[copy->n_files]);
        if (!copy->files[copy->n_files])
            return false;
    }
    return true;
}

static struct inquiry *get_inquiry(struct control_call *call)
{
    static const struct look_owner owner = {begin_look, take_look, end_look};
    struct inquiry *inquiry = http_state(call->request);

    if (inquiry)
        return inquiry;
    inquiry = calloc(1, sizeof *inquiry);
    if (!inquiry)
        return NULL;
    inquiry->look.entry.uid = LOOKS_NOBODY;
    inquiry->look.owner = &owner;
    inquiry->look.question = &inquiry->question;
    inquiry->request = call->request;
    inquiry->pidfd = -1;
    return inquiry;
}

/* What a look found: 0; -EAGAIN when the request was put off for it, or -ENOMEM. */
static int look(struct control_call *call, enum look_kind kind,
                const struct action_question *question, const struct facts **ret_found)
{
    struct inquiry *inquiry = get_inquiry(call);

    if (!inquiry)
        return -ENOMEM;
    *ret_found = inquiry->found[kind];
    if (*ret_found)
        return 0;
    /* One that found nothing ran out of memory. */
    if (!inquiry->was_put_off[kind] && copy_question(inquiry, question) &&
        looks_put(call->control->options.looks, &inquiry->look)) {
        inquiry->kind = kind;
        inquiry->is_looking = true;
        inquiry->was_put_off[kind] = true;
        http_put_off(call->request, inquiry, free_inquiry);
        return -EAGAIN;
    }
    forget_question(inquiry);
    if (!http_state(call->request))
        free_inquiry(inquiry);
    return -ENOMEM;
}

/* The runtime that is known of a process, if it is one only and lives. */
static const struct runtime *runtime_of(const struct control_call *call, int32_t pid)
{
    char id[sizeof "pid:2147483647"];
    struct runtime *runtime;

    snprintf(id, sizeof id, "pid:%d", pid);
    if (broker_find(call->control->options.broker, id, &runtime) != BROKER_FOUND_ONE ||
        runtime_has_ended(runtime))
        return NULL;
    return runtime;
}

/* The listener that it came, or would come, in by. */
static int take_port(struct subject *subject, const struct control *control)
{
    const struct broker *broker = control->options.broker;

    if (subject->runtime)
        return attributes_set(&subject->attributes, ATTRIBUTE_PORT, "the socket",
                              broker_listener_name(broker, subject->runtime->listener));
    if (ports_count(control->options.ports) == 1)
        return attributes_set(&subject->attributes, ATTRIBUTE_PORT, "there is one listener only",
                              ports_get(control->options.ports, 0).name);
    return 0;
}

/* 0, -ENOMEM, -EAGAIN when it is being looked at, -ESRCH when there is no such process, or
 * -ETIMEDOUT when looking at it hangs. */
static int take_process(struct subject *subject, struct control_call *call)
{
    const struct policy *policy = broker_policy(call->control->options.broker);
    const struct action_question question = {
        .pid = subject->pid,
        .wanted =
            broker_facts_wanted(policy) | FACTS_ENVIRON | FACTS_THREADS | FACTS_CWD | FACTS_PARENT,
    };
    int error = look(call, LOOK_PROCESS, &question, &subject->facts);

    if (error != 0)
        return error;
    if (!subject->facts->is_alive)
        return subject->facts->stat.error == ETIMEDOUT ? -ETIMEDOUT : -ESRCH;
    subject->runtime = runtime_of(call, subject->pid);
    error =
        attributes_take_facts(&subject->attributes, subject->pid, subject->facts, policy->names);
    return error != 0 ? error : take_port(subject, call->control);
}

/* Given attributes. */

static void refuse_attribute(struct control_call *call, const char *key, const char *what)
{
    http_problem(call->request, 400, NULL, "\"attributes\": \"%s\" has to be %s", key, what);
}

static bool put_texts(struct bytes *texts, const json_t *value)
{
    const json_t *item;
    size_t i;

    if (json_is_string(value)) {
        bytes_put_run(texts, json_string_value(value), json_string_length(value) + 1);
        return true;
    }
    if (!json_is_array(value) || json_array_size(value) > ATTRIBUTE_TEXTS_MAX)
        return false;
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            return false;
        bytes_put_run(texts, json_string_value(item), json_string_length(item) + 1);
    }
    return true;
}

static bool put_variables(struct bytes *texts, json_t *value)
{
    const json_t *item;
    const char *name;

    if (!json_is_object(value))
        return false;
    json_object_foreach(value, name, item)
    {
        if (!json_is_string(item) || *name == '\0' || strchr(name, '='))
            return false;
        bytes_put_string(texts, name);
        bytes_put_u8(texts, '=');
        bytes_put_run(texts, json_string_value(item), json_string_length(item) + 1);
    }
    return true;
}

static bool find_attribute(const char *name, enum attribute_id *ret_id)
{
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        if (strcmp(attribute_name((enum attribute_id)i), name) == 0) {
            *ret_id = (enum attribute_id)i;
            return true;
        }
    }
    return false;
}

/* False when that is answered, or memory is out. */
static bool take_attribute(struct subject *subject, struct control_call *call, const char *key,
                           json_t *value)
{
    enum attribute_id id;
    struct attribute *attribute;
    struct bytes texts;
    bool is_fine;

    if (!find_attribute(key, &id)) {
        http_problem(call->request, 400, NULL,
                     "\"attributes\" has a key that is not the name of an attribute");
        return false;
    }
    attribute = &subject->attributes.list[id];
    if (json_is_null(value)) {
        attribute_set_none(attribute, ATTRIBUTE_ABSENT, "given as null");
        return true;
    }
    bytes_init(&texts, HTTP_BODY_MAX);
    is_fine = id == ATTRIBUTE_ENVIRON ? put_variables(&texts, value) : put_texts(&texts, value);
    if (!is_fine)
        refuse_attribute(call, key,
                         id == ATTRIBUTE_ENVIRON ? "an object of names with texts, or null"
                                                 : "a text, a list of texts, or null");
    else if (bytes_finish(&texts) != 0 || attribute_set_texts(attribute, (const char *)texts.data,
                                                              texts.length, SIZE_MAX, false) != 0)
        is_fine = false;
    bytes_deinit(&texts);
    return is_fine;
}

/* As for a real process. */
static bool work_out_assembly(struct attributes *attributes)
{
    const struct attribute *arguments = &attributes->list[ATTRIBUTE_ARGUMENTS];
    char *assembly = NULL;
    bool is_set = true;

    if (arguments->state == ATTRIBUTE_PRESENT &&
        attributes_assembly(attributes_text(attributes, ATTRIBUTE_EXE), arguments->texts,
                            arguments->n_texts, &assembly))
        is_set = attributes_set(attributes, ATTRIBUTE_ASSEMBLY, "worked out", assembly) == 0;
    free(assembly);
    return is_set;
}

static bool take_given(struct subject *subject, struct control_call *call, json_t *given)
{
    const char *key;
    json_t *value;

    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++) {
        subject->attributes.list[i].source = "given";
        subject->attributes.list[i].why = "not given";
    }
    attribute_set_none(&subject->attributes.list[ATTRIBUTE_CONTAINER], ATTRIBUTE_ABSENT,
                       "not given");
    json_object_foreach(given, key, value)
    {
        if (!take_attribute(subject, call, key, value))
            return false;
    }
    return json_object_get(given, attribute_name(ATTRIBUTE_ASSEMBLY)) ||
           work_out_assembly(&subject->attributes);
}

/* The decision and what follows from it. */

static int check_files(struct subject *subject, struct control_call *call)
{
    struct plan *plan = &subject->plan;
    struct action_question question = {.pid = subject->pid,
                                       .wanted = FACTS_ENVIRON | FACTS_FILES | FACTS_IMAGES};
    const char **files = calloc(plan->n_steps + 1, sizeof *files);
    const struct facts *facts;
    int error = 0;

    if (!files)
        return -ENOMEM;
    question.n_files = plan_files(plan, files);
    question.files = (char **)(uintptr_t)files;
    if (question.n_files > 0)
        error = look(call, LOOK_FILES, &question, &facts);
    if (error == 0 && question.n_files > 0)
        plan_check_files(plan, facts, &subject->attributes);
    free(files);
    return error;
}

/* What the runtime said of itself, or the one that most of them are, on a port that holds it. */
static struct command_target assume_target(const struct subject *subject)
{
    struct command_target target = {.kind = RUNTIME_KIND_CORECLR};

    if (subject->runtime && subject->runtime->target.kind != RUNTIME_KIND_UNKNOWN) {
        target.kind = subject->runtime->target.kind;
        target.major = subject->runtime->target.major;
    }
    target.port_suspends = true;
    target.shows_suspended = true;
    target.prevents_profilers = settings_prevent_profilers(&subject->attributes);
    return target;
}

static int plan(struct subject *subject, struct control_call *call)
{
    const struct policy_rule *rule = subject->decision.rule;
    struct command_target target = assume_target(subject);
    int error;

    /* What a rule only observes is planned too: that is what people look at it for. */
    if (!rule || rule->ignore)
        return 0;
    error = plan_build(&subject->plan, rule, true);
    if (error == 0 && subject->pid != 0)
        error = check_files(subject, call);
    if (error != 0)
        return error;
    subject->assumed_kind = target.kind;
    plan_check_target(&subject->plan, &target);
    return 0;
}

static const char *action_of(const struct subject *subject)
{
    const struct policy_rule *rule = subject->decision.rule;

    if (!rule)
        return "untouched";
    if (rule->ignore)
        return "ignore";
    return subject->plan.n_steps == 0 ? "none" : policy_mode_name(rule->mode);
}

static const char *picture_name(enum picture picture)
{
    switch (picture) {
    case PICTURE_SUSPENDED:
        return "suspended";
    case PICTURE_RUNNING:
        return "running";
    case PICTURE_UNKNOWN:
        break;
    }
    return "unknown";
}

static const char *port_mode_name(const struct attributes *attributes)
{
    const char *value = NULL;
    struct portspec portspec;

    if (settings_ports(attributes, &value) != ATTRIBUTE_PRESENT)
        return "unknown";
    portspec_read(value, &portspec);
    switch (portspec_mode(&portspec)) {
    case PORTSPEC_SUSPENDS:
        return "suspends";
    case PORTSPEC_RUNS_ON:
        return "runs_on";
    case PORTSPEC_UNKNOWN:
        break;
    }
    return "unknown";
}

static void put_process(json_t **view, const struct subject *subject)
{
    bool is_process = subject->pid != 0;

    view_put(view, "assumed_kind", view_text(runtime_kind_name(subject->assumed_kind)));
    view_put(view, "picture",
             is_process ? json_string(picture_name(picture_of(subject->facts, subject->pid)))
                        : json_null());
    view_put(view, "port_mode",
             is_process ? json_string(port_mode_name(&subject->attributes)) : json_null());
}

static void answer(struct subject *subject, struct control_call *call)
{
    const struct policy *policy = broker_policy(call->control->options.broker);
    const struct match_decision *decision = &subject->decision;
    const struct runtime *runtime = subject->runtime;
    json_t *view = json_object();

    view_put(&view, "pid", subject->pid != 0 ? json_integer(subject->pid) : json_null());
    view_put(&view, "id", runtime ? view_short_cookie(&runtime->cookie) : json_null());
    view_put(&view, "rule", view_text(decision->rule ? decision->rule->name : NULL));
    view_put(&view, "action", json_string(action_of(subject)));
    view_put(&view, "by_unknown", json_boolean(decision->by_unknown));
    view_put(&view, "trace", view_trace(policy, decision, &subject->attributes));
    view_put(&view, "attributes", view_attributes(&subject->attributes));
    view_put(&view, "steps", view_planned_steps(&subject->plan));
    put_process(&view, subject);
    http_answer_json(call->request, 200, view);
}

static void decide_and_answer(struct subject *subject, struct control_call *call)
{
    const struct policy *policy = broker_policy(call->control->options.broker);

    if (match_decide(policy, &subject->attributes, &subject->decision) == 0 &&
        plan(subject, call) == 0)
        answer(subject, call);
}

static void explain_process(struct subject *subject, struct control_call *call, const json_t *pid)
{
    json_int_t number = json_integer_value(pid);
    int error;

    if (!json_is_integer(pid) || number <= 0 || number > INT32_MAX) {
        http_problem(call->request, 400, NULL, "\"pid\" has to be the number of a process");
        return;
    }
    subject->pid = (int32_t)number;
    error = take_process(subject, call);
    if (error == -ESRCH)
        http_problem(call->request, 404, NULL, "there is no process %d", subject->pid);
    else if (error == -ETIMEDOUT)
        http_problem(call->request, 503, NULL,
                     "process %d cannot be looked at now: looking at it, or at another one, hangs",
                     subject->pid);
    else if (error == 0)
        decide_and_answer(subject, call);
}

static void explain_given(struct subject *subject, struct control_call *call, json_t *given)
{
    if (!json_is_object(given))
        http_problem(call->request, 400, NULL, "\"attributes\" has to be an object");
    else if (take_given(subject, call, given))
        decide_and_answer(subject, call);
}

void control_explain(struct control_call *call)
{
    static const char *const keys[] = {"pid", "attributes"};
    struct subject subject = {.pid = 0};
    json_t *body, *pid, *given;

    if (!control_read_query(call, NULL, 0, NULL) ||
        !control_read_body(call, keys, ARRAY_LENGTH(keys), &body))
        return;
    attributes_init(&subject.attributes);
    plan_init(&subject.plan);
    pid = json_object_get(body, "pid");
    given = json_object_get(body, "attributes");
    if (!pid == !given)
        http_problem(call->request, 400, NULL,
                     "the body has to have either \"pid\" or \"attributes\"");
    else if (pid)
        explain_process(&subject, call, pid);
    else
        explain_given(&subject, call, given);
    deinit(&subject);
    json_decref(body);
}
