/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/policy.h"
#include "lib/policy_key.h"

static const struct policy_key *row(size_t i)
{
    return policy_key_row((enum policy_key_id)i);
}

START_TEST(every_row_is_whole)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        ck_assert_msg(row(i)->name != NULL, "row %zu", i);
        ck_assert_msg(row(i)->name[0] != '\0' && row(i)->help[0] != '\0', "%s", row(i)->name);
        ck_assert_msg(row(i)->sections != 0, "%s", row(i)->name);
        ck_assert_msg(row(i)->least <= row(i)->most, "%s", row(i)->name);
        if (row(i)->type == TYPE_CHOICE)
            ck_assert_str_eq(row(i)->choices[0], row(i)->fallback);
        if (row(i)->type == TYPE_NUMBER || row(i)->type == TYPE_SPAN)
            ck_assert_msg(row(i)->least > 0, "%s", row(i)->name);
    }
}
END_TEST

START_TEST(a_key_is_found_where_it_stands_and_nowhere_else)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        for (unsigned section = 0; section < SECTION_COUNT; section++) {
            enum policy_key_id id;
            bool stands = (row(i)->sections & 1U << section) != 0;

            if (!policy_key_find((enum policy_section)section, row(i)->name, &id))
                ck_assert_msg(!stands, "%s in %u", row(i)->name, section);
            else if (stands)
                ck_assert_msg((size_t)id == i, "%s is twice in %u", row(i)->name, section);
        }
    }
}
END_TEST

START_TEST(every_section_has_a_name_and_keys)
{
    for (unsigned section = 0; section < SECTION_COUNT; section++) {
        size_t n = 0;

        ck_assert_ptr_nonnull(policy_section_name((enum policy_section)section));
        for (size_t i = 0; i < KEY_COUNT; i++)
            n += (row(i)->sections & 1U << section) != 0;
        ck_assert_msg(n > 0, "section %u", section);
    }
}
END_TEST

static void assert_choices(enum policy_key_id id, const char *(*name)(unsigned))
{
    const char *const *choices = policy_key_row(id)->choices;
    unsigned i = 0;

    for (; choices[i]; i++)
        ck_assert_str_eq(choices[i], name(i));
    ck_assert_ptr_null(name(i));
}

#define NAME_OF(type)                                       \
    static const char *type##_of(unsigned i)                \
    {                                                       \
        return policy_##type##_name((enum policy_##type)i); \
    }

NAME_OF(mode)
NAME_OF(match_unknown)
NAME_OF(children)
NAME_OF(on_failure)
NAME_OF(on_stop)

START_TEST(choices_are_the_names_of_the_enums_in_order)
{
    assert_choices(KEY_MODE, mode_of);
    assert_choices(KEY_MATCH_UNKNOWN, match_unknown_of);
    assert_choices(KEY_CHILDREN, children_of);
    assert_choices(KEY_ON_FAILURE, on_failure_of);
    assert_choices(KEY_ON_STOP, on_stop_of);
}
END_TEST

static void assert_default(enum policy_key_id id, const char *form)
{
    const struct policy_key *key = policy_key_row(id);
    struct bytes line;

    bytes_init(&line, 256);
    bytes_put_format(&line, " %s: %s\n", key->name, key->fallback);
    ck_assert_int_eq(bytes_finish(&line), 0);
    ck_assert_msg(strstr(form, (const char *)line.data) != NULL, "%s", (const char *)line.data);
    bytes_deinit(&line);
}

/* An empty policy printed: every default is in it. */
START_TEST(defaults_are_those_of_a_new_policy)
{
    struct policy *policy = policy_new();
    struct bytes form;

    ck_assert_ptr_nonnull(policy);
    bytes_init(&form, SIZE_MAX - 1);
    bytes_put_u8(&form, ' ');
    policy_print(policy, &form);
    ck_assert_int_eq(bytes_finish(&form), 0);
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const uint32_t shown =
            1U << SECTION_LIMITS | 1U << SECTION_HISTORY | 1U << SECTION_DEFAULTS;

        if ((row(i)->sections & shown) != 0 && row(i)->since && row(i)->fallback &&
            i != KEY_CONNECTIONS_PER_USER)
            assert_default((enum policy_key_id)i, (const char *)form.data);
    }
    ck_assert_ptr_nonnull(strstr((const char *)form.data, "\non_stop: auto\n"));
    bytes_deinit(&form);
    policy_unref(policy);
}
END_TEST

static char *finish(struct bytes *out)
{
    ck_assert_int_eq(bytes_finish(out), 0);
    return (char *)bytes_take(out);
}

START_TEST(what_a_key_takes_is_said)
{
    static const struct {
        enum policy_key_id id;
        const char *takes;
    } rows[] = {
        {KEY_IGNORE, "true or false"},
        {KEY_VERSION, "1"},
        {KEY_COOKIES_PER_PROCESS, "a whole number from 1 to 64"},
        {KEY_DEADLINE, "a time from 10ms to 10m with its unit (ms, s, m, h)"},
        {KEY_HOLD_LIMIT, "a time from 10ms to 168h with its unit (ms, s, m, h), or forever"},
        {KEY_MODE, "apply or observe"},
        {KEY_ON_FAILURE, "resume, hold or kill"},
        {KEY_LISTEN_PATH, "an absolute path"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct bytes out;
        char *takes;

        bytes_init(&out, 256);
        policy_key_put_takes(policy_key_row(rows[i].id), &out);
        takes = finish(&out);
        ck_assert_str_eq(takes, rows[i].takes);
        free(takes);
    }
    for (size_t i = 0; i < KEY_COUNT; i++) {
        struct bytes out;

        bytes_init(&out, 256);
        policy_key_put_takes(row(i), &out);
        ck_assert_msg(out.length > 0, "%s", row(i)->name);
        bytes_deinit(&out);
    }
}
END_TEST

START_TEST(advice_fits_the_mistake)
{
    static const struct {
        enum policy_section section;
        const char *name;
        const char *advice;
    } rows[] = {
        {SECTION_RULE, "enviroment", "; did you mean \"env\"?"},
        {SECTION_RULE, "nmae", "; did you mean \"name\"?"},
        {SECTION_RULE, "mach", "; did you mean \"match\"?"},
        {SECTION_RULE, "startupHooks", "; did you mean \"startup_hooks\"?"},
        {SECTION_RULE, "startup-hook", "; did you mean \"startup_hooks\"?"},
        {SECTION_RULE, "Ignore", "; did you mean \"ignore\"?"},
        {SECTION_RULE, "command_timeouts", "; did you mean \"command_timeout\"?"},
        {SECTION_RIGHT, "user", "; did you mean \"users\"?"},
        {SECTION_MATCH, "units", "; did you mean \"unit\"?"},
        {SECTION_MATCH, "deadline", "; it belongs in a rule or in \"defaults\""},
        {SECTION_MAIN, "match", "; it belongs in a rule"},
        {SECTION_MAIN, "disable", "; it belongs at the top level of a drop-in file"},
        {SECTION_BUNDLE, "rules", "; it belongs at the top level of a file"},
        {SECTION_DROP_IN, "listen", "; it belongs at the top level of the main file"},
        {SECTION_HOOK, "clsid", "; it belongs in a profiler"},
        {SECTION_HOOK, "xyzzy", "; its keys are path, required"},
        {SECTION_HOOK, "deaths", "; its keys are path, required"},
        {SECTION_HISTORY, "x", "; its keys are records, age"},
        {SECTION_HISTORY, "", "; its keys are records, age"},
        {SECTION_HISTORY, "a_name_that_is_longer_than_any_key_there_is",
         "; its keys are records, age"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        enum policy_key_id meant = KEY_VERSION;
        struct bytes out;
        bool is_alike;
        char *advice;

        bytes_init(&out, 256);
        is_alike = policy_key_put_advice(rows[i].section, rows[i].name, &out, &meant);
        advice = finish(&out);
        ck_assert_str_eq(advice, rows[i].advice);
        ck_assert_int_eq(is_alike, strstr(advice, "did you mean") != NULL);
        if (is_alike)
            ck_assert_ptr_nonnull(strstr(advice, policy_key_row(meant)->name));
        free(advice);
    }
}
END_TEST

START_TEST(times_are_shown_in_their_largest_unit)
{
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {
        {0, "0ms"},       {1000, "1ms"},     {1500000, "1500ms"}, {2000000, "2s"},
        {60000000, "1m"}, {90000000, "90s"}, {3600000000, "1h"},  {172800000000, "48h"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct bytes out;
        char *text;

        bytes_init(&out, 64);
        policy_key_put_span(rows[i].us, &out);
        text = finish(&out);
        ck_assert_str_eq(text, rows[i].text);
        free(text);
    }
}
END_TEST

START_TEST(a_length_of_time_is_a_number_with_a_unit)
{
    static const struct {
        const char *text;
        int64_t us; /* -1: it is none */
    } rows[] = {
        {"0ms", 0},
        {"500ms", 500000},
        {"3s", 3000000},
        {"10m", 600000000},
        {"2h", 7200000000},
        {"2562047788h", 9223372036800000000},
        {"2562047789h", -1},
        {"99999999999999999999h", -1},
        {"", -1},
        {"3", -1},
        {"s", -1},
        {"03s", -1},
        {"-3s", -1},
        {"+3s", -1},
        {" 3s", -1},
        {"3 s", -1},
        {"3s ", -1},
        {"3S", -1},
        {"1.5s", -1},
        {"3us", -1},
        {"1m30s", -1},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int64_t us = -1;

        ck_assert_msg(policy_key_read_span(rows[i].text, &us) == (rows[i].us >= 0), "%s",
                      rows[i].text);
        ck_assert_msg(us == rows[i].us, "%s", rows[i].text);
    }
}
END_TEST

UNIT_TESTS(every_row_is_whole, a_key_is_found_where_it_stands_and_nowhere_else,
           every_section_has_a_name_and_keys, choices_are_the_names_of_the_enums_in_order,
           defaults_are_those_of_a_new_policy, what_a_key_takes_is_said, advice_fits_the_mistake,
           times_are_shown_in_their_largest_unit, a_length_of_time_is_a_number_with_a_unit);
