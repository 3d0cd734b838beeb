/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The primer in a runtime that is not one: the tests have the tables that a
 * runtime would call and show, and a C library whose calls can fail.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uchar.h>

#include "lib/primer.h"
#include "lib/util.h"
#include "shim/com.h"
#include "shim/environment.h"
#include "shim/native.h"
#include "shim/primer.h"
#include "shim/wide.h"
#include "tests/unit/unit.h"

int32_t DllGetClassObject(const struct com_guid *class, const struct com_guid *interface,
                          void **ret_result);

enum {
    NOT_FOUND = (int32_t)0x800700CB,
    SHORT_BUFFER = (int32_t)0x8007007A,
    FAILED = (int32_t)0x80004005,
    /* Of the runtime's side, with the last one that is called. */
    INFO_METHODS = 101,
    VARIABLES_MAX = 8,
};

/* The runtime's environment. */

struct variable {
    const char16_t *name;
    const char16_t *value; /* NULL: it is not there */
    int32_t result;        /* of the question for it, where it is no success */
    uint32_t length;       /* what is told of it, where it is not its own */
};

static struct variable variables[VARIABLES_MAX];
static size_t n_variables;
static bool has_info_11;
static bool is_frozen; /* every change is refused */
static char16_t result_units[PRIMER_RESULT_MAX];
static char result_text[4 * PRIMER_RESULT_MAX];
static int n_results;
static int n_open; /* interfaces that were not given back */

static size_t length_of(const char16_t *units)
{
    size_t n = 0;

    while (units[n] != 0)
        n++;
    return n;
}

static bool is_same_text(const char16_t *a, const char16_t *b)
{
    return length_of(a) == length_of(b) && memcmp(a, b, 2 * length_of(a)) == 0;
}

static struct variable *find_variable(const char16_t *name)
{
    for (size_t i = 0; i < n_variables; i++) {
        if (is_same_text(variables[i].name, name))
            return &variables[i];
    }
    return NULL;
}

static void give(const char16_t *name, const char16_t *value)
{
    ck_assert_uint_lt(n_variables, VARIABLES_MAX);
    variables[n_variables++] = (struct variable){.name = name, .value = value};
}

static int32_t get_variable(struct com_object *self, const uint16_t *name, uint32_t capacity,
                            uint32_t *ret_length, uint16_t *ret_value)
{
    struct variable *variable = find_variable(name);

    (void)self;
    if (!variable || (!variable->value && variable->result == 0))
        return NOT_FOUND;
    if (variable->length > 0)
        *ret_length = variable->length;
    if (variable->result != 0 || variable->length > 0)
        return variable->result;
    *ret_length = (uint32_t)length_of(variable->value);
    ck_assert_uint_lt(*ret_length, capacity);
    memcpy(ret_value, variable->value, 2 * (*ret_length + (size_t)1));
    return COM_OK;
}

static int32_t set_variable(struct com_object *self, const uint16_t *name, const uint16_t *value)
{
    struct variable *variable = find_variable(name);

    (void)self;
    if (is_frozen)
        return FAILED;
    if (is_same_text(name, u"" PRIMER_RESULT)) {
        ck_assert_ptr_nonnull(value);
        memcpy(result_units, value, 2 * (length_of(value) + 1));
        n_results++;
        return COM_OK;
    }
    ck_assert_ptr_null(value);
    if (!variable || !variable->value)
        return NOT_FOUND;
    variable->value = NULL;
    return COM_OK;
}

static uint32_t release(struct com_object *self)
{
    (void)self;
    n_open--;
    return 1;
}

static int32_t query_info(struct com_object *self, const struct com_guid *interface,
                          void **ret_result)
{
    static const struct com_guid info_11 = {0x06398876,
                                            0x8987,
                                            0x4154,
                                            {0xB6, 0x21, 0x40, 0xA0, 0x0D, 0x6E, 0x4D, 0x04}};

    ck_assert(com_is_same(interface, &info_11));
    if (!has_info_11)
        return COM_NO_INTERFACE;
    n_open++;
    *ret_result = self;
    return COM_OK;
}

static const com_method info_methods[INFO_METHODS] = {
    [COM_QUERY_INTERFACE] = (com_method)query_info,
    [COM_RELEASE] = (com_method)release,
    [99] = (com_method)get_variable,
    [100] = (com_method)set_variable,
};
static struct com_object info = {info_methods};

/* The C library. */

static char calls[4096];
static bool fails_to_set;
static const char *loader_words; /* NULL: what is opened is there */
static bool has_entry;

static void add_call(const char *what, const char *name, const char *value)
{
    size_t length = strlen(calls);

    snprintf(calls + length, sizeof calls - length, "%s %s%s%s\n", what, name, value ? "=" : "",
             value ? value : "");
}

static int set_native(const char *name, const char *value, int overwrite)
{
    ck_assert_int_eq(overwrite, 1);
    add_call("set", name, strlen(value) < 256 ? value : "(long)");
    return fails_to_set ? -1 : 0;
}

static int unset_native(const char *name)
{
    add_call("unset", name, NULL);
    return fails_to_set ? -1 : 0;
}

static void *open_library(const char *path, int mode)
{
    ck_assert_int_eq(mode, 2); /* RTLD_NOW */
    add_call("open", path, NULL);
    return loader_words ? NULL : &info;
}

static void *find_symbol(void *library, const char *name)
{
    ck_assert_ptr_eq(library, &info);
    ck_assert_str_eq(name, "DllGetClassObject");
    return has_entry ? library : NULL;
}

static char *tell_error(void)
{
    return (char *)(uintptr_t)loader_words;
}

static const struct native whole = {set_native, unset_native, open_library, find_symbol,
                                    tell_error};
static struct native native;

static void begin(void)
{
    n_variables = 0;
    has_info_11 = true;
    is_frozen = false;
    n_results = n_open = 0;
    calls[0] = '\0';
    fails_to_set = false;
    loader_words = NULL;
    has_entry = true;
    native = whole;
    result_text[0] = '\0';
}

/* What came of it, as the daemon would read it. */
static struct primer_result run(void)
{
    struct primer_result result;

    primer_run(&info, &native);
    ck_assert_int_eq(n_open, 0);
    ck_assert_int_eq(n_results, 1);
    ck_assert(wide_read(result_units, length_of(result_units), result_text, sizeof result_text));
    ck_assert_msg(primer_read_result(result_text, strlen(result_text), &result), "%s", result_text);
    return result;
}

static void check_words(struct primer_words words, const char *text)
{
    ck_assert_uint_eq(words.length, strlen(text));
    ck_assert_mem_eq(words.text, text, words.length);
}

START_TEST(variables_are_copied)
{
    struct primer_result result;

    begin();
    give(u"" PRIMER_NAMES, u"ONE\nEMPTY\nGONE\nGR\u00D6SSE\nEMOJI");
    give(u"ONE", u"1");
    give(u"EMPTY", u"");
    give(u"GR\u00D6SSE", u"\u4E2D\u00E9=\n");
    give(u"EMOJI", u"\U0001F600!");
    give(u"OTHER", u"not asked for");
    result = run();
    ck_assert_str_eq(calls, "set ONE=1\nset EMPTY=\nunset GONE\nset GR\xC3\x96SSE=\xE4\xB8\xAD"
                            "\xC3\xA9=\n\nset EMOJI=\xF0\x9F\x98\x80!\n");
    ck_assert_uint_eq(result.n_set, 4);
    ck_assert_uint_eq(result.n_unset, 1);
    ck_assert_uint_eq(result.n_failed, 0);
    ck_assert_uint_eq(result.n_libraries, 0);
    ck_assert_ptr_null(variables[0].value);
}
END_TEST

START_TEST(an_empty_list_has_no_name)
{
    struct primer_result result;

    begin();
    give(u"" PRIMER_NAMES, u"");
    result = run();
    ck_assert_str_eq(calls, "");
    ck_assert_uint_eq(result.n_failed, 0);
}
END_TEST

START_TEST(a_second_load_does_nothing)
{
    begin();
    primer_run(&info, &native);
    ck_assert_str_eq(calls, "");
    ck_assert_int_eq(n_results, 0);
    ck_assert_int_eq(n_open, 0);
}
END_TEST

START_TEST(a_runtime_without_the_interface_is_left_alone)
{
    begin();
    has_info_11 = false;
    give(u"" PRIMER_NAMES, u"ONE");
    primer_run(&info, &native);
    primer_run(NULL, &native);
    ck_assert_str_eq(calls, "");
    ck_assert_int_eq(n_results, 0);
}
END_TEST

START_TEST(a_runtime_that_refuses_everything_is_left_alone)
{
    begin();
    give(u"" PRIMER_NAMES, u"ONE");
    variables[0].result = FAILED;
    primer_run(&info, &native);
    ck_assert_str_eq(calls, "");

    begin();
    is_frozen = true;
    give(u"" PRIMER_NAMES, u"ONE");
    give(u"ONE", u"1");
    primer_run(&info, &native);
    ck_assert_str_eq(calls, "set ONE=1\n");
    ck_assert_int_eq(n_results, 0);
    ck_assert_int_eq(n_open, 0);
}
END_TEST

/* What fails is as it was, and the next one is done. */
static void check_failure(enum primer_failure failure, const char *name)
{
    struct primer_result result = run();

    ck_assert_int_eq(result.failure, failure);
    ck_assert_uint_eq(result.n_failed, 1);
    ck_assert_uint_eq(result.n_set, 1);
    check_words(result.failed, name);
    ck_assert_str_eq(calls, "set LAST=1\n");
}

START_TEST(half_a_pair_is_no_text)
{
    static const char16_t halves[][4] = {
        {0xD800, 0}, {0xDC00, 0}, {u'a', 0xD800, u'b', 0}, {0xDC00, 0xD800, 0}, {0xD800, 0xD800, 0},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(halves); i++) {
        begin();
        give(u"" PRIMER_NAMES, u"BAD\nLAST");
        give(u"BAD", halves[i]);
        give(u"LAST", u"1");
        check_failure(PRIMER_TEXT, "BAD");
    }
}
END_TEST

START_TEST(half_a_pair_is_no_name)
{
    static const char16_t names[] = {u'A', 0xD800, u'\n', u'L', u'A', u'S', u'T', 0};

    begin();
    give(u"" PRIMER_NAMES, names);
    give(u"LAST", u"1");
    ck_assert_int_eq(run().failure, PRIMER_NAME);
    ck_assert_str_eq(calls, "set LAST=1\n");

    begin();
    give(u"" PRIMER_NAMES, u"\nLAST");
    give(u"LAST", u"1");
    check_failure(PRIMER_NAME, "");
}
END_TEST

START_TEST(what_the_runtime_does_not_show_stays)
{
    begin();
    give(u"" PRIMER_NAMES, u"BAD\nLAST");
    give(u"BAD", NULL);
    give(u"LAST", u"1");
    variables[1].result = FAILED;
    check_failure(PRIMER_RUNTIME, "BAD");
}
END_TEST

START_TEST(what_is_too_long_stays)
{
    begin();
    give(u"" PRIMER_NAMES, u"BAD\nLAST");
    give(u"BAD", NULL);
    give(u"LAST", u"1");
    variables[1].result = SHORT_BUFFER;
    check_failure(PRIMER_LONG, "BAD");

    begin();
    give(u"" PRIMER_NAMES, u"BAD\nLAST");
    give(u"BAD", u"");
    give(u"LAST", u"1");
    variables[1].length = ENVIRONMENT_MAX;
    check_failure(PRIMER_LONG, "BAD");
}
END_TEST

START_TEST(the_longest_value_of_a_message_is_copied)
{
    static char16_t value[32751];

    for (size_t i = 0; i + 1 < ARRAY_LENGTH(value); i++)
        value[i] = 0x4E2D;
    begin();
    give(u"" PRIMER_NAMES, u"LONG");
    give(u"LONG", value);
    ck_assert_uint_eq(run().n_set, 1);
    ck_assert_str_eq(calls, "set LONG=(long)\n");
}
END_TEST

START_TEST(a_list_as_long_as_a_message_is_read)
{
    static char16_t names[32751];
    struct primer_result result;

    for (size_t i = 0; i + 1 < ARRAY_LENGTH(names); i++)
        names[i] = i % 2 == 0 ? u'A' : u'\n';
    begin();
    give(u"" PRIMER_NAMES, names);
    native.unset = NULL;
    result = run();
    ck_assert_uint_eq(result.n_failed, 32750 / 2);
    ck_assert_int_eq(result.failure, PRIMER_LIBC);
}
END_TEST

START_TEST(a_c_library_that_fails)
{
    begin();
    fails_to_set = true;
    give(u"" PRIMER_NAMES, u"GONE\nONE");
    give(u"ONE", u"1");
    ck_assert_uint_eq(run().n_failed, 2);
    ck_assert_str_eq(calls, "unset GONE\nset ONE=1\n");
}
END_TEST

START_TEST(a_c_library_without_functions)
{
    struct primer_result result;

    begin();
    native = (struct native){.set = NULL};
    give(u"" PRIMER_NAMES, u"GONE\nONE");
    give(u"ONE", u"1");
    give(u"" PRIMER_LIBRARIES, u"/a.so");
    result = run();
    ck_assert_uint_eq(result.n_failed, 2);
    ck_assert_uint_eq(result.n_libraries, 1);
    ck_assert_int_eq(result.libraries[0].state, PRIMER_UNTRIED);

    begin();
    native.error = NULL;
    loader_words = "";
    give(u"" PRIMER_LIBRARIES, u"/a.so");
    result = run();
    ck_assert_int_eq(result.libraries[0].state, PRIMER_REFUSED);
    check_words(result.libraries[0].words, "");
}
END_TEST

START_TEST(a_name_that_is_very_long_is_cut)
{
    static char16_t names[3 * PRIMER_WORDS_MAX];

    for (size_t i = 0; i + 1 < ARRAY_LENGTH(names); i++)
        names[i] = u'N';
    begin();
    fails_to_set = true;
    give(u"" PRIMER_NAMES, names);
    ck_assert_uint_eq(run().failed.length, PRIMER_WORDS_MAX);
}
END_TEST

START_TEST(libraries_are_opened_after_the_variables)
{
    struct primer_result result;

    begin();
    give(u"" PRIMER_NAMES, u"ONE");
    give(u"ONE", u"1");
    give(u"" PRIMER_LIBRARIES, u"/a.so\n/b.so");
    result = run();
    ck_assert_str_eq(calls, "set ONE=1\nopen /a.so\nopen /b.so\n");
    ck_assert_uint_eq(result.n_libraries, 2);
    ck_assert_int_eq(result.libraries[0].state, PRIMER_OPENED);
    ck_assert_ptr_null(variables[2].value);

    begin();
    has_entry = false;
    give(u"" PRIMER_LIBRARIES, u"/a.so");
    ck_assert_int_eq(run().libraries[0].state, PRIMER_NO_ENTRY);
}
END_TEST

START_TEST(the_loader_is_quoted)
{
    begin();
    loader_words = "/a\xC3\x96.so:\tno\n\xFF\xED\xA0\x80\xF0\x9F\x98\x80\xC3";
    give(u"" PRIMER_LIBRARIES, u"/a.so");
    check_words(run().libraries[0].words, "/a\xC3\x96.so:?no?????\xF0\x9F\x98\x80?");
}
END_TEST

START_TEST(the_loader_is_cut)
{
    static char words[2 * PRIMER_WORDS_MAX + 1];
    static char16_t paths[4 * PRIMER_LIBRARIES_MAX];
    struct primer_result result;

    memset(words, 'w', sizeof words - 1);
    for (size_t i = 0; i + 1 < ARRAY_LENGTH(paths); i++)
        paths[i] = i % 2 == 0 ? u'p' : u'\n';
    begin();
    loader_words = words;
    fails_to_set = true;
    give(u"" PRIMER_NAMES, u"ONE");
    give(u"" PRIMER_LIBRARIES, paths);
    result = run();
    ck_assert_uint_eq(result.n_libraries, PRIMER_LIBRARIES_MAX);
    for (size_t i = 0; i < PRIMER_LIBRARIES_MAX; i++)
        ck_assert_uint_eq(result.libraries[i].words.length, PRIMER_WORDS_MAX);
}
END_TEST

START_TEST(a_path_that_is_none_is_not_opened)
{
    static const char16_t path[] = {u'/', 0xD800, 0};

    begin();
    give(u"" PRIMER_LIBRARIES, path);
    ck_assert_int_eq(run().libraries[0].state, PRIMER_REFUSED);
    ck_assert_str_eq(calls, "");
}
END_TEST

/* As a runtime loads it. */

typedef int32_t (*create_method)(struct com_object *self, struct com_object *outer,
                                 const struct com_guid *interface, void **ret_result);
typedef int32_t (*initialize_method)(struct com_object *self, struct com_object *info);
typedef int32_t (*ask_method)(struct com_object *self, int32_t *ret_answer);

static const struct com_guid class = PRIMER_CLSID_FIELDS;
static const struct com_guid callback_2 = {0x8A8CC829,
                                           0xCCF2,
                                           0x49FE,
                                           {0xBB, 0xAE, 0x0F, 0x02, 0x22, 0x28, 0x07, 0x1A}};
static const struct com_guid callback_11 = {0x42350846,
                                            0xAAED,
                                            0x47F7,
                                            {0xB1, 0x28, 0xFD, 0x0C, 0x98, 0x88, 0x1C, 0xDE}};

static struct com_object *make_factory(void)
{
    void *result = NULL;

    ck_assert_int_eq(DllGetClassObject(&class, &com_class_factory, &result), COM_OK);
    return result;
}

static struct com_object *make_profiler(void)
{
    struct com_object *factory = make_factory();
    void *result = NULL;

    ck_assert_int_eq(((create_method)factory->methods[3])(factory, NULL, &callback_2, &result),
                     COM_OK);
    return result;
}

START_TEST(a_runtime_loads_it)
{
    struct com_object *profiler = make_profiler();
    void *newest = NULL;
    int32_t answer = 0;

    ck_assert_int_eq(((com_query_interface)profiler->methods[COM_QUERY_INTERFACE])(profiler,
                                                                                   &callback_11,
                                                                                   &newest),
                     COM_OK);
    ck_assert_ptr_eq(newest, profiler);
    ck_assert_int_eq(((ask_method)profiler->methods[97])(profiler, &answer), COM_OK);
    ck_assert_int_eq(answer, 1);

    begin();
    give(u"" PRIMER_NAMES, u"DIAGPORT_TEST_SHIM");
    give(u"DIAGPORT_TEST_SHIM", u"there");
    ck_assert_int_eq(((initialize_method)profiler->methods[3])(profiler, &info),
                     COM_CANCEL_ACTIVATION);
    ck_assert_str_eq(getenv("DIAGPORT_TEST_SHIM"), "there");
    /* Whatever else it is told does nothing. */
    for (size_t i = 4; i < 97; i++)
        ck_assert_int_eq(((int32_t(*)(void))profiler->methods[i])(), COM_OK);
    ck_assert_uint_eq(((com_release)profiler->methods[COM_RELEASE])(profiler), 1);
}
END_TEST

START_TEST(a_runtime_that_asks_for_something_else_is_refused)
{
    struct com_object *factory = make_factory(), *profiler = make_profiler();
    com_query_interface query = (com_query_interface)profiler->methods[COM_QUERY_INTERFACE];
    create_method create = (create_method)factory->methods[3];
    void *result = &info;

    ck_assert_int_eq(DllGetClassObject(&callback_2, &com_class_factory, &result), COM_NO_CLASS);
    ck_assert_ptr_null(result);
    ck_assert_int_eq(DllGetClassObject(&class, &callback_2, &result), COM_NO_INTERFACE);
    ck_assert_int_eq(create(factory, factory, &callback_2, &result), COM_NO_AGGREGATION);
    ck_assert_int_eq(create(factory, NULL, &class, &result), COM_NO_INTERFACE);
    ck_assert_int_eq(query(profiler, &com_class_factory, &result), COM_NO_INTERFACE);
    ck_assert_ptr_null(result);
    ck_assert_int_eq(query(profiler, &com_unknown, &result), COM_OK);
}
END_TEST

START_TEST(a_runtime_that_gives_no_place_for_an_answer_is_refused)
{
    struct com_object *factory = make_factory(), *profiler = make_profiler();
    void *result;

    ck_assert_int_eq(DllGetClassObject(NULL, &com_unknown, &result), COM_BAD_POINTER);
    ck_assert_int_eq(DllGetClassObject(&class, &com_unknown, NULL), COM_BAD_POINTER);
    ck_assert_int_eq(DllGetClassObject(&class, NULL, &result), COM_BAD_POINTER);
    ck_assert_int_eq(((create_method)factory->methods[3])(factory, NULL, &callback_2, NULL),
                     COM_BAD_POINTER);
    ck_assert_int_eq(((com_query_interface)profiler->methods[COM_QUERY_INTERFACE])(profiler, NULL,
                                                                                   &result),
                     COM_BAD_POINTER);
    ck_assert_int_eq(((ask_method)profiler->methods[97])(profiler, NULL), COM_BAD_POINTER);
    ck_assert_int_eq(((initialize_method)profiler->methods[3])(profiler, NULL),
                     COM_CANCEL_ACTIVATION);
}
END_TEST

UNIT_TESTS(variables_are_copied, an_empty_list_has_no_name, a_second_load_does_nothing,
           a_runtime_without_the_interface_is_left_alone,
           a_runtime_that_refuses_everything_is_left_alone, half_a_pair_is_no_text,
           half_a_pair_is_no_name, what_the_runtime_does_not_show_stays, what_is_too_long_stays,
           the_longest_value_of_a_message_is_copied, a_list_as_long_as_a_message_is_read,
           a_c_library_that_fails, a_c_library_without_functions, a_name_that_is_very_long_is_cut,
           libraries_are_opened_after_the_variables, the_loader_is_quoted, the_loader_is_cut,
           a_path_that_is_none_is_not_opened, a_runtime_loads_it,
           a_runtime_that_asks_for_something_else_is_refused,
           a_runtime_that_gives_no_place_for_an_answer_is_refused);
