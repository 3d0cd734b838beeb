/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What can be said of a policy only as a whole. The rules of all files are
 * there, in order; how they were written is not known any more, only where.
 */

#include <errno.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/facts.h"
#include "lib/policy_parts.h"
#include "lib/policy_reader.h"

static void check_names(struct reader *reader)
{
    const struct policy *policy = reader->policy;
    struct reader_name *names = reader_alloc(reader, policy->n_rules, sizeof *names);
    size_t n = 0;

    for (size_t i = 0; names && i < policy->n_rules; i++) {
        if (policy->rules[i].name)
            names[n++] = (struct reader_name){policy->rules[i].name, policy->rules[i].place};
        else
            reader->is_incomplete = true;
    }
    if (n > 0)
        reader_find_repeats(reader, names, n, "the rule", "give one of them another name");
    free(names);
}

static int compare_rule_names(const void *a, const void *b)
{
    const struct policy_rule *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int compare_to_rule(const void *name, const void *rule)
{
    const struct policy_rule *const *y = rule;

    return strcmp(name, (*y)->name);
}

/* Takes the rules out whose place in `is_out` is set. */
static void remove_rules(struct policy *policy, const bool *is_out)
{
    size_t n = 0;

    for (size_t i = 0; i < policy->n_rules; i++) {
        if (is_out[i])
            policy_rule_deinit(&policy->rules[i]);
        else
            policy->rules[n++] = policy->rules[i];
    }
    policy->n_rules = n;
}

static void disable_rules(struct reader *reader, const struct reader_disable *disables,
                          size_t n_disables)
{
    struct policy *policy = reader->policy;
    const struct policy_rule **sorted = reader_alloc(reader, policy->n_rules, sizeof *sorted);
    bool *is_out = reader_alloc(reader, policy->n_rules, sizeof *is_out);
    size_t n = 0;

    for (size_t i = 0; sorted && i < policy->n_rules; i++) {
        if (policy->rules[i].name)
            sorted[n++] = &policy->rules[i];
    }
    if (n > 0)
        qsort(sorted, n, sizeof *sorted, compare_rule_names);
    for (size_t i = 0; i < n_disables; i++) {
        const struct policy_rule *const *found =
            n > 0 ? bsearch(disables[i].name, sorted, n, sizeof *sorted, compare_to_rule) : NULL;

        if (found && is_out)
            is_out[*found - policy->rules] = true;
        else if (!found && !reader->is_incomplete && reader->error == 0)
            reader_error_at(reader, &disables[i].place,
                            "there is no rule \"%s\" to disable; correct the name, or leave it out",
                            reader_show(reader, disables[i].name));
    }
    if (is_out)
        remove_rules(policy, is_out);
    free(is_out);
    free(sorted);
}

/*
 * Rules that are never reached.
 *
 * A rule takes every process that a later one would when the later one has all
 * of its selectors. Selectors are compared by their canonical form; each form
 * has a number, so a rule becomes a sorted list of numbers.
 */

struct form {
    char *text;
    size_t rule;
    size_t number;
};

struct outline {
    size_t *forms; /* numbers, ascending */
    size_t n_forms;
    bool is_behind; /* another one is before it */
};

struct outlines {
    struct reader *reader;
    struct form *forms; /* of all rules, by text, then by rule */
    size_t n_forms;
    size_t *first; /* where in `forms` those of each number begin; one more than there are */
    size_t n_numbers;
    struct outline *list; /* one per rule */
    size_t *numbers;      /* memory of all lists */
};

static int compare_forms(const void *a, const void *b)
{
    const struct form *x = a, *y = b;
    const int order = strcmp(x->text, y->text);

    return order != 0 ? order : (x->rule > y->rule) - (x->rule < y->rule);
}

static int compare_numbers(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

/* The canonical form of one selector; NULL when memory is out, which the reader is told. */
static char *form_of(struct reader *reader, const struct selector *selector)
{
    struct bytes out;

    bytes_init(&out, SIZE_MAX - 1);
    policy_print_selector(selector, 0, &out);
    if (bytes_finish(&out) != 0) {
        bytes_deinit(&out);
        reader->error = -ENOMEM;
        return NULL;
    }
    return (char *)bytes_take(&out);
}

static size_t count_forms(const struct policy *policy)
{
    size_t n = 0;

    for (size_t i = 0; i < policy->n_rules; i++)
        n += policy->rules[i].match.n_children;
    return n;
}

/* Writes down all selectors directly below `match`, and numbers their forms. */
static bool number_forms(struct outlines *outlines)
{
    struct reader *reader = outlines->reader;
    const struct policy *policy = reader->policy;

    for (size_t i = 0; i < policy->n_rules; i++) {
        for (size_t j = 0; j < policy->rules[i].match.n_children; j++) {
            char *text = form_of(reader, &policy->rules[i].match.children[j]);

            if (!text)
                return false;
            outlines->forms[outlines->n_forms++] = (struct form){.text = text, .rule = i};
        }
    }
    if (outlines->n_forms > 0)
        qsort(outlines->forms, outlines->n_forms, sizeof *outlines->forms, compare_forms);
    for (size_t i = 0; i < outlines->n_forms; i++) {
        struct form *form = &outlines->forms[i];

        if (i == 0 || strcmp(form->text, outlines->forms[i - 1].text) != 0)
            outlines->first[outlines->n_numbers++] = i;
        form->number = outlines->n_numbers - 1;
    }
    outlines->first[outlines->n_numbers] = outlines->n_forms;
    return true;
}

/* Gives every rule the numbers of its forms. */
static void draw_outlines(struct outlines *outlines)
{
    const struct policy *policy = outlines->reader->policy;
    size_t *at = outlines->numbers;

    for (size_t i = 0; i < policy->n_rules; i++) {
        outlines->list[i].forms = at;
        at += policy->rules[i].match.n_children;
    }
    for (size_t i = 0; i < outlines->n_forms; i++) {
        struct outline *outline = &outlines->list[outlines->forms[i].rule];

        outline->forms[outline->n_forms++] = outlines->forms[i].number;
    }
    for (size_t i = 0; i < policy->n_rules; i++) {
        struct outline *outline = &outlines->list[i];

        if (outline->n_forms > 0)
            qsort(outline->forms, outline->n_forms, sizeof *outline->forms, compare_numbers);
    }
}

/* True when every number of `part` is in `whole`. */
static bool is_part_of(const struct outline *part, const struct outline *whole)
{
    size_t at = 0;

    for (size_t i = 0; i < part->n_forms; i++) {
        while (at < whole->n_forms && whole->forms[at] < part->forms[i])
            at++;
        if (at == whole->n_forms || whole->forms[at] != part->forms[i])
            return false;
    }
    return true;
}

static bool can_be_unknown(const struct policy_rule *rule)
{
    return rule->match.n_children > 0 || !rule->any_container;
}

/* True when processes that cannot be told count as matched. */
static bool takes_unknown(const struct policy_rule *rule)
{
    return rule->ignore && rule->match_unknown == POLICY_UNKNOWN_STOP;
}

/*
 * True when no process ever gets to `later`, whose selectors have all those of
 * `earlier`. `is_barred_at_times`: a rule before both can keep guarded ones
 * from matching.
 */
static bool hides(const struct policy_rule *earlier, const struct policy_rule *later,
                  bool is_barred_at_times)
{
    if (later->any_container && !earlier->any_container)
        return false;
    if (takes_unknown(later) && !takes_unknown(earlier) && can_be_unknown(earlier))
        return false;
    return !(is_barred_at_times && policy_rule_is_guarded(earlier) &&
             !policy_rule_is_guarded(later));
}

static void warn_if_hidden(struct outlines *outlines, size_t earlier, size_t later,
                           bool is_barred_at_times)
{
    struct reader *reader = outlines->reader;
    const struct policy_rule *rules = reader->policy->rules;

    if (outlines->list[later].is_behind ||
        !hides(&rules[earlier], &rules[later], is_barred_at_times) ||
        !is_part_of(&outlines->list[earlier], &outlines->list[later]))
        return;
    outlines->list[later].is_behind = true;
    reader_warn_at(reader, &rules[later].place,
                   "the rule \"%s\" is never reached: \"%s\" at %s takes every process that it "
                   "would; move it up, or leave it out",
                   reader_show(reader, rules[later].name), reader_show(reader, rules[earlier].name),
                   reader_show_place(reader, &rules[earlier].place));
}

/* Of the forms that a rule has, the one that fewest rules have. */
static size_t rarest_form(const struct outlines *outlines, const struct outline *outline)
{
    size_t rarest = outline->forms[0];

    for (size_t i = 1; i < outline->n_forms; i++) {
        const size_t number = outline->forms[i];

        if (outlines->first[number + 1] - outlines->first[number] <
            outlines->first[rarest + 1] - outlines->first[rarest])
            rarest = number;
    }
    return rarest;
}

/* Compares a rule with those later ones that can have all of its selectors. */
static void find_hidden_by(struct outlines *outlines, size_t earlier, bool is_barred_at_times)
{
    const struct outline *outline = &outlines->list[earlier];

    if (outline->n_forms == 0) {
        for (size_t later = earlier + 1; later < outlines->reader->policy->n_rules; later++)
            warn_if_hidden(outlines, earlier, later, is_barred_at_times);
    } else {
        const size_t form = rarest_form(outlines, outline);

        for (size_t i = outlines->first[form]; i < outlines->first[form + 1]; i++) {
            if (outlines->forms[i].rule > earlier)
                warn_if_hidden(outlines, earlier, outlines->forms[i].rule, is_barred_at_times);
        }
    }
}

static void find_hidden(struct outlines *outlines)
{
    const struct policy *policy = outlines->reader->policy;
    bool is_barred_at_times = false;

    for (size_t i = 0; i < policy->n_rules; i++) {
        const struct policy_rule *rule = &policy->rules[i];

        /* What hides this one hides what this one would. */
        if (!outlines->list[i].is_behind)
            find_hidden_by(outlines, i, is_barred_at_times);
        is_barred_at_times |=
            rule->match_unknown == POLICY_UNKNOWN_STOP && !rule->ignore && can_be_unknown(rule);
    }
}

static void check_reach(struct reader *reader)
{
    const size_t n_rules = reader->policy->n_rules, n_forms = count_forms(reader->policy);
    struct outlines outlines = {.reader = reader};

    outlines.forms = reader_alloc(reader, n_forms + 1, sizeof *outlines.forms);
    outlines.first = reader_alloc(reader, n_forms + 1, sizeof *outlines.first);
    outlines.list = reader_alloc(reader, n_rules + 1, sizeof *outlines.list);
    outlines.numbers = reader_alloc(reader, n_forms + 1, sizeof *outlines.numbers);
    if (reader->error == 0 && number_forms(&outlines)) {
        draw_outlines(&outlines);
        find_hidden(&outlines);
    }
    for (size_t i = 0; i < outlines.n_forms; i++)
        free(outlines.forms[i].text);
    free(outlines.forms);
    free(outlines.first);
    free(outlines.list);
    free(outlines.numbers);
}

static uint32_t facts_of_attribute(enum attribute_id attribute)
{
    switch (attribute) {
    case ATTRIBUTE_EXE:
        return FACTS_EXE;
    case ATTRIBUTE_ARGUMENTS:
        return FACTS_ARGUMENTS;
    case ATTRIBUTE_ASSEMBLY:
        return FACTS_EXE | FACTS_ARGUMENTS;
    case ATTRIBUTE_CWD:
        return FACTS_CWD;
    case ATTRIBUTE_USER: /* the owner is in the path of the control group */
    case ATTRIBUTE_UNIT: /* another pid namespace makes it unknown */
    case ATTRIBUTE_USER_UNIT:
    case ATTRIBUTE_SLICE:
    case ATTRIBUTE_CGROUP:
    case ATTRIBUTE_CONTAINER:
        return FACTS_STATUS | FACTS_CGROUP;
    case ATTRIBUTE_GROUP:
        return FACTS_STATUS;
    case ATTRIBUTE_ENVIRON:
        return FACTS_ENVIRON;
    case ATTRIBUTE_PARENT:
        return FACTS_PARENT;
    case ATTRIBUTE_PORT:
        return 0;
    }
    return 0;
}

static uint32_t facts_of(const struct selector *selector)
{
    uint32_t facts = 0;

    if (selector->kind == SELECTOR_TEXT)
        facts |= facts_of_attribute(selector->attribute);
    if (selector->kind == SELECTOR_VARIABLE)
        facts |= facts_of_attribute(ATTRIBUTE_ENVIRON);
    for (size_t i = 0; i < selector->n_children; i++)
        facts |= facts_of(&selector->children[i]);
    return facts;
}

static uint32_t facts_of_policy(const struct policy *policy)
{
    uint32_t facts = 0;

    for (size_t i = 0; i < policy->n_rules; i++) {
        facts |= facts_of(&policy->rules[i].match);
        if (!policy->rules[i].any_container)
            facts |= facts_of_attribute(ATTRIBUTE_CONTAINER);
    }
    return facts;
}

void policy_read_whole(struct reader *reader, const struct reader_disable *disables,
                       size_t n_disables)
{
    check_names(reader);
    disable_rules(reader, disables, n_disables);
    /* A rule that was read in part seems to have fewer selectors. */
    if (reader->n_errors == 0 && reader->error == 0)
        check_reach(reader);
    reader->policy->facts_wanted = facts_of_policy(reader->policy);
}
