/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a rule got its verdict, as one sentence for people. Nothing is decided
 * here: the reason names the selector that did.
 */

#include <string.h>

#include "lib/attributes.h"
#include "lib/bytes.h"
#include "lib/match.h"
#include "lib/text.h"

enum {
    SHOWN_TEXTS_MAX = 3,
    SHOWN_TEXT_MAX = 80, /* bytes */
};

static void put_text(struct bytes *out, const char *text)
{
    const size_t length = strlen(text);

    bytes_put_u8(out, '"');
    if (length <= SHOWN_TEXT_MAX) {
        text_put_escaped(out, text, length);
    } else {
        size_t cut = SHOWN_TEXT_MAX;

        /* Not in the middle of a character. */
        while (cut > SHOWN_TEXT_MAX - 4 && ((unsigned char)text[cut] & 0xC0) == 0x80)
            cut--;
        text_put_escaped(out, text, cut);
        bytes_put_string(out, "...");
    }
    bytes_put_u8(out, '"');
}

static void put_texts(struct bytes *out, const char *const *texts, size_t n)
{
    const size_t n_shown = n > SHOWN_TEXTS_MAX ? SHOWN_TEXTS_MAX : n;

    for (size_t i = 0; i < n_shown; i++) {
        bytes_put_string(out, i > 0 ? ", " : "");
        put_text(out, texts[i]);
    }
    if (n > n_shown)
        bytes_put_format(out, " and %zu more", n - n_shown);
}

static void put_globs(struct bytes *out, const struct selector *selector)
{
    bytes_put_string(out, "none of ");
    put_texts(out, (const char *const *)selector->globs, selector->n_globs);
}

static void put_unreadable(struct bytes *out, enum attribute_id id,
                           const struct attribute *attribute)
{
    bytes_put_format(out, "%s could not be read", attribute_name(id));
    if (attribute->why && attribute->why[0] != '\0')
        bytes_put_format(out, ": %s", attribute->why);
}

static const char too_long[] = ", as far as that was compared before it took too long";

static void explain_text(const struct selector *selector, enum match_verdict verdict,
                         const struct attribute *attribute, struct bytes *out)
{
    const char *name = attribute_name(selector->attribute);
    const size_t first = selector->attribute == ATTRIBUTE_ARGUMENTS ? 1 : 0;

    if (attribute->state == ATTRIBUTE_UNKNOWN) {
        put_unreadable(out, selector->attribute, attribute);
        return;
    }
    if (attribute->state == ATTRIBUTE_ABSENT) {
        bytes_put_format(out, "%s is absent", name);
        if (attribute->why && attribute->why[0] != '\0')
            bytes_put_format(out, " (%s)", attribute->why);
        bytes_put_string(out, ", ");
    } else if (attribute->n_texts <= first) {
        bytes_put_format(out, "%s is empty, ", name);
    } else {
        bytes_put_format(out, "%s ", name);
        put_texts(out, attribute->texts + first, attribute->n_texts - first);
        bytes_put_string(out, attribute->n_texts - first == 1 ? " is " : " are ");
    }
    put_globs(out, selector);
    if (attribute->is_cut)
        bytes_put_string(out, ", and there is more than was kept");
    else if (verdict == MATCH_UNKNOWN)
        bytes_put_string(out, too_long);
}

/* After the decision the environment is forgotten, and it is not known any more which of the two it
 * was. */
static void explain_forgotten_variable(const struct selector *selector, struct bytes *out)
{
    bytes_put_string(out, "the variable ");
    put_text(out, selector->name);
    bytes_put_string(out, " was not set, or its value was ");
    put_globs(out, selector);
}

static void explain_variable(const struct selector *selector, enum match_verdict verdict,
                             const struct attributes *attributes, struct bytes *out)
{
    const char *value;

    if (verdict == MATCH_UNKNOWN &&
        attributes->list[ATTRIBUTE_ENVIRON].state == ATTRIBUTE_PRESENT &&
        !attributes->list[ATTRIBUTE_ENVIRON].is_cut) {
        bytes_put_string(out, "comparing the variable ");
        put_text(out, selector->name);
        bytes_put_string(out, " would have taken too long");
        return;
    }
    switch (attributes_variable(attributes, selector->name, &value)) {
    case ATTRIBUTE_UNKNOWN:
        bytes_put_string(out, "the variable ");
        put_text(out, selector->name);
        bytes_put_string(out, " is not known: ");
        if (attributes->list[ATTRIBUTE_ENVIRON].state == ATTRIBUTE_UNKNOWN)
            put_unreadable(out, ATTRIBUTE_ENVIRON, &attributes->list[ATTRIBUTE_ENVIRON]);
        else
            bytes_put_string(out, "there are more than were kept");
        break;
    case ATTRIBUTE_ABSENT:
        bytes_put_string(out, "the variable ");
        put_text(out, selector->name);
        bytes_put_string(out, " is not set");
        break;
    case ATTRIBUTE_PRESENT:
        bytes_put_string(out, "the value of ");
        put_text(out, selector->name);
        bytes_put_string(out, " is ");
        put_globs(out, selector);
        break;
    }
}

static void explain_selector(const struct selector *selector, enum match_verdict verdict,
                             const struct attributes *attributes, struct bytes *out)
{
    switch (selector->kind) {
    case SELECTOR_TEXT:
        explain_text(selector, verdict, &attributes->list[selector->attribute], out);
        break;
    case SELECTOR_VARIABLE:
        if (verdict == MATCH_NO && attributes->list[ATTRIBUTE_ENVIRON].state == ATTRIBUTE_UNKNOWN)
            explain_forgotten_variable(selector, out);
        else
            explain_variable(selector, verdict, attributes, out);
        break;
    case SELECTOR_ANY:
        bytes_put_format(out, "none of the %zu mappings in \"any\" (line %u) holds",
                         selector->n_children, selector->place.line);
        break;
    case SELECTOR_NOT:
        bytes_put_format(out, "everything in \"not\" (line %u) holds", selector->place.line);
        break;
    case SELECTOR_ALL:
        bytes_put_format(out, "not everything in line %u holds", selector->place.line);
        break;
    }
}

static void explain_container(const struct attribute *container, struct bytes *out)
{
    if (container->state == ATTRIBUTE_UNKNOWN) {
        put_unreadable(out, ATTRIBUTE_CONTAINER, container);
        return;
    }
    bytes_put_string(out, "it runs in container ");
    put_texts(out, container->texts, container->n_texts);
    bytes_put_string(out, ", and the rule is for processes of the host (\"container: any\" lifts "
                          "that)");
}

void match_explain(const struct policy_rule *rule, const struct match_reason *reason,
                   const struct attributes *attributes, struct bytes *out)
{
    const struct selector *selector = match_selector(rule, reason->selector);

    switch ((enum match_verdict)reason->verdict) {
    case MATCH_YES:
        bytes_put_string(out, "every selector holds");
        break;
    case MATCH_BARRED:
        bytes_put_string(out, "every selector holds, but an earlier rule could not be decided, and "
                              "this one has a hook or profiler");
        break;
    case MATCH_NOT_ASKED:
        bytes_put_string(out, "an earlier rule matched");
        break;
    case MATCH_NO:
    case MATCH_UNKNOWN:
        if (reason->selector == MATCH_SELECTOR_CONTAINER)
            explain_container(&attributes->list[ATTRIBUTE_CONTAINER], out);
        else if (selector)
            explain_selector(selector, (enum match_verdict)reason->verdict, attributes, out);
        if (reason->verdict == MATCH_UNKNOWN && rule->ignore &&
            rule->match_unknown == POLICY_UNKNOWN_STOP)
            bytes_put_string(out, "; a rule that ignores counts as matched then");
        break;
    }
}
