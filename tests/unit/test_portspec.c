/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/portspec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* Says what was read, one entry after the other: the path, + for listen, ! for nosuspend, and
 * "..." when it is too long. */
static void describe(const struct portspec *portspec, char *ret_text, size_t size)
{
    size_t length = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < portspec->n_entries; i++) {
        const struct portspec_entry *entry = &portspec->entries[i];

        length += (size_t)snprintf(ret_text + length, size - length, "[%.*s%s%s%s]",
                                   (int)(entry->is_too_long ? 3 : entry->path_length), entry->path,
                                   entry->is_too_long ? "..." : "", entry->listens ? "+" : "",
                                   entry->suspends ? "" : "!");
    }
}

static void assert_spec(const char *value, const char *expected, enum portspec_mode mode)
{
    struct portspec portspec;
    char *copy = strdup(value), text[2000];

    ck_assert_ptr_nonnull(copy);
    portspec_read(copy, &portspec);
    describe(&portspec, text, sizeof text);
    ck_assert_msg(strcmp(text, expected) == 0, "\"%s\" gives %s, not %s", value, text, expected);
    ck_assert_msg(portspec_mode(&portspec) == mode, "\"%s\" has mode %d", value,
                  (int)portspec_mode(&portspec));
    free(copy);
}

/* Every line of the grammar that was measured on 8.0.0 to 11.0.0. */
START_TEST(grammar_is_the_runtimes)
{
    static const struct {
        const char *value, *entries;
        enum portspec_mode mode;
    } cases[] = {
        {"p1;p2", "[p1][p2]", PORTSPEC_SUSPENDS},
        {"p;p", "[p][p]", PORTSPEC_SUSPENDS},
        {"p", "[p]", PORTSPEC_SUSPENDS},
        {"p,connect,suspend", "[p]", PORTSPEC_SUSPENDS},
        {"p;", "[p]", PORTSPEC_SUSPENDS},
        {";;p", "[p]", PORTSPEC_SUSPENDS},
        {"p,bogus", "[p]", PORTSPEC_SUSPENDS},
        {"p,nosuspend", "[p!]", PORTSPEC_RUNS_ON},
        {"p,NoSuspend", "[p!]", PORTSPEC_RUNS_ON},
        {"p, nosuspend", "[p]", PORTSPEC_SUSPENDS},
        {"p,suspend,nosuspend", "[p]", PORTSPEC_SUSPENDS},
        {"p,nosuspend,suspend", "[p!]", PORTSPEC_RUNS_ON},
        {" p", "[ p]", PORTSPEC_SUSPENDS},
        {"p ", "[p ]", PORTSPEC_SUSPENDS},
        {"p,listen", "[p+]", PORTSPEC_UNKNOWN},
        {"", "", PORTSPEC_UNKNOWN},
        {";", "", PORTSPEC_UNKNOWN},
        {",", "", PORTSPEC_UNKNOWN},
        {"a/relative/path", "[a/relative/path]", PORTSPEC_SUSPENDS},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_spec(cases[i].value, cases[i].entries, cases[i].mode);
}
END_TEST

/* What follows from the runtime's source, in the corners. */
START_TEST(corners_are_the_runtimes)
{
    static const struct {
        const char *value, *entries;
        enum portspec_mode mode;
    } cases[] = {
        {";,;,,;", "", PORTSPEC_UNKNOWN},
        {"a;,;b", "[a][b]", PORTSPEC_SUSPENDS},
        {",,p,,nosuspend,,", "[p!]", PORTSPEC_RUNS_ON},
        /* with nothing but tags the first is the path */
        {"nosuspend", "[nosuspend]", PORTSPEC_SUSPENDS},
        {"connect,nosuspend", "[connect!]", PORTSPEC_RUNS_ON},
        {",listen", "[listen]", PORTSPEC_SUSPENDS},
        {"p,CONNECT,SUSPEND", "[p]", PORTSPEC_SUSPENDS},
        {"p,LISTEN", "[p+]", PORTSPEC_UNKNOWN},
        {"p,listen,connect", "[p+]", PORTSPEC_UNKNOWN},
        {"p,connect,listen", "[p]", PORTSPEC_SUSPENDS},
        {"p,nosuspend ,suspend", "[p]", PORTSPEC_SUSPENDS},
        {"p,nosuspen", "[p]", PORTSPEC_SUSPENDS},
        {"p,disten", "[p]", PORTSPEC_SUSPENDS},
        {"p,listem", "[p]", PORTSPEC_SUSPENDS},
        {"p,nosuspenx", "[p]", PORTSPEC_SUSPENDS},
        {"p,connecx,listen", "[p+]", PORTSPEC_UNKNOWN},
        {"p,suspenx,nosuspend", "[p!]", PORTSPEC_RUNS_ON},
        {"p,nosuspendx", "[p]", PORTSPEC_SUSPENDS},
        /* a dotless i is no i */
        {"p,l\xC4\xB1sten", "[p]", PORTSPEC_SUSPENDS},
        {"p,nosuspend\t", "[p]", PORTSPEC_SUSPENDS},
        {"\t", "[\t]", PORTSPEC_SUSPENDS},
        /* the entries differ; one that listens has no say */
        {"a;b,nosuspend", "[a][b!]", PORTSPEC_UNKNOWN},
        {"a,nosuspend;b,nosuspend", "[a!][b!]", PORTSPEC_RUNS_ON},
        {"a,listen;b,nosuspend", "[a+][b!]", PORTSPEC_RUNS_ON},
        {"a,listen,nosuspend;b", "[a+!][b]", PORTSPEC_SUSPENDS},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_spec(cases[i].value, cases[i].entries, cases[i].mode);
}
END_TEST

START_TEST(path_length_is_bounded)
{
    char value[200], expected[400];

    memset(value, 'p', 107);
    value[107] = '\0';
    snprintf(expected, sizeof expected, "[%s]", value);
    assert_spec(value, expected, PORTSPEC_SUSPENDS);
    strcat(value, "p");
    assert_spec(value, "[ppp...]", PORTSPEC_UNKNOWN);
    /* a port that is dropped has no say; 8.0.0, which waits on it for ever, is not told apart */
    strcat(value, ";good,nosuspend");
    assert_spec(value, "[ppp...][good!]", PORTSPEC_RUNS_ON);
}
END_TEST

START_TEST(entries_are_bounded)
{
    struct portspec portspec;

    portspec_read("a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;;,;", &portspec);
    ck_assert_uint_eq(portspec.n_entries, PORTSPEC_ENTRIES_MAX);
    ck_assert(!portspec.is_cut);
    ck_assert_int_eq(portspec_mode(&portspec), PORTSPEC_SUSPENDS);
    portspec_read("a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q", &portspec);
    ck_assert_uint_eq(portspec.n_entries, PORTSPEC_ENTRIES_MAX);
    ck_assert(portspec.is_cut);
    ck_assert_int_eq(portspec_mode(&portspec), PORTSPEC_UNKNOWN);
}
END_TEST

/* Against strtok itself, which is what the runtime uses. */
static void assert_like_strtok(const char *value)
{
    struct portspec portspec;
    char outer[64], *outer_state = NULL;
    size_t n = 0;

    portspec_read(value, &portspec);
    strcpy(outer, value);
    for (char *part = strtok_r(outer, ";", &outer_state); part;
         part = strtok_r(NULL, ";", &outer_state)) {
        char *inner_state = NULL, *path = strtok_r(part, ",", &inner_state);

        if (!path)
            continue;
        ck_assert_uint_lt(n, portspec.n_entries);
        ck_assert_uint_eq(portspec.entries[n].path_length, strlen(path));
        ck_assert_mem_eq(portspec.entries[n].path, path, strlen(path));
        n++;
    }
    ck_assert_uint_eq(portspec.n_entries, n);
}

START_TEST(splitting_is_that_of_strtok)
{
    uint64_t state = 17;

    for (unsigned round = 0; round < 20000; round++) {
        char value[24];
        size_t length = unit_random(&state) % sizeof value;

        for (size_t i = 0; i < length; i++)
            value[i] = ",;,;ab "[unit_random(&state) % 7];
        value[length] = '\0';
        assert_like_strtok(value);
    }
}
END_TEST

UNIT_TESTS(grammar_is_the_runtimes, corners_are_the_runtimes, path_length_is_bounded,
           entries_are_bounded, splitting_is_that_of_strtok);
