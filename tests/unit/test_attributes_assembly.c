/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/attributes.h"
#include "tests/unit/unit.h"
#include "tests/unit/unit_memory.h"

enum { ARGUMENTS_MAX = 16 };

struct command_line {
    const char *exe;
    const char *arguments[ARGUMENTS_MAX];
    const char *assembly; /* NULL: cannot be told */
};

static size_t count(const char *const *arguments)
{
    size_t n = 0;

    while (n < ARGUMENTS_MAX && arguments[n])
        n++;
    return n;
}

static void assert_assemblies(const struct command_line *cases, size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        char nothing = 0, *assembly = &nothing;
        bool is_told = attributes_assembly(cases[i].exe, cases[i].arguments,
                                           count(cases[i].arguments), &assembly);

        ck_assert_msg(is_told == (cases[i].assembly != NULL), "case %zu", i);
        if (is_told) {
            ck_assert_msg(strcmp(assembly, cases[i].assembly) == 0, "case %zu: %s, not %s", i,
                          assembly, cases[i].assembly);
            free(assembly);
        } else {
            ck_assert_ptr_eq(assembly, &nothing);
        }
    }
}

#define DOTNET "/usr/share/dotnet/dotnet"

START_TEST(apps_are_found)
{
    static const struct command_line cases[] = {
        {DOTNET, {"dotnet", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "/srv/app/My.Web.App.dll", "--urls", "x"}, "My.Web.App"},
        {DOTNET, {"/usr/bin/dotnet", "bin/App.exe"}, "App"},
        {DOTNET, {"dotnet", "App.DLL"}, "App"},
        {DOTNET, {"dotnet", "build.dll"}, "build"},
        {DOTNET, {"dotnet", "App.dll", "build"}, "App"},
        {DOTNET, {"dotnet", "App.dll", "exec", "Other.dll"}, "App"},
        {DOTNET, {"dotnet", "exec", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "EXEC", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "exec", "/sdk/Roslyn/bincore/csc.dll", "@x.rsp"}, "csc"},
        {DOTNET, {"dotnet", "exec", "exec.dll"}, "exec"},
        /* whatever argv[0] says */
        {DOTNET, {"web", "App.dll"}, "App"},
        {DOTNET, {"", "App.dll"}, "App"},
    };

    assert_assemblies(cases, ARRAY_LENGTH(cases));
}
END_TEST

START_TEST(host_options_are_skipped)
{
    static const struct command_line cases[] = {
        {DOTNET, {"dotnet", "--fx-version", "10.0.12", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "--roll-forward", "Major", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "--Roll-Forward", "Major", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "--roll-forward-on-no-candidate-fx", "2", "App.dll"}, "App"},
        {DOTNET, {"dotnet", "--additional-deps", "x.dll", "App.dll"}, "App"},
        {DOTNET,
         {"dotnet", "--additionalprobingpath", "a.dll", "--additionalprobingpath", "b", "App.dll"},
         "App"},
        {DOTNET, {"dotnet", "exec", "--depsfile", "x.dll", "App.dll"}, "App"},
        {DOTNET,
         {"dotnet", "exec", "--runtimeconfig", "x", "--fx-version", "8.0.0", "App.dll"},
         "App"},
        /* two options are known after `exec` only; without it they are for the SDK */
        {DOTNET, {"dotnet", "--depsfile", "x", "App.dll"}, "dotnet"},
        {DOTNET, {"dotnet", "--runtimeconfig", "x", "App.dll"}, "dotnet"},
        /* an option before `exec` makes it a verb like any other */
        {DOTNET, {"dotnet", "--fx-version", "8.0.0", "exec", "App.dll"}, "dotnet"},
        {DOTNET, {"dotnet", "--roll-forward=Major", "App.dll"}, "dotnet"},
        /* the host refuses an option without its value */
        {DOTNET, {"dotnet", "--fx-version"}, NULL},
        {DOTNET, {"dotnet", "--fx-version", "8.0.0"}, NULL},
        {DOTNET, {"dotnet", "exec", "--depsfile"}, NULL},
    };

    assert_assemblies(cases, ARRAY_LENGTH(cases));
}
END_TEST

START_TEST(everything_else_is_the_sdk)
{
    static const struct command_line cases[] = {
        {DOTNET, {"dotnet", "build"}, "dotnet"},
        {DOTNET, {"dotnet", "run", "--project", "App.dll"}, "dotnet"},
        {DOTNET, {"dotnet", "./publish"}, "dotnet"},
        {DOTNET, {"dotnet", "--info"}, "dotnet"},
        {DOTNET, {"dotnet", "--version"}, "dotnet"},
        {DOTNET, {"dotnet", "App"}, "dotnet"},
        {DOTNET, {"dotnet", "App.dl"}, "dotnet"},
        {DOTNET, {"dotnet", "Appdll"}, "dotnet"},
        {DOTNET, {"dotnet", "dll"}, "dotnet"},
        {DOTNET, {"dotnet", ""}, "dotnet"},
        {DOTNET, {"dotnet", "--roll-forward", "Major", "build"}, "dotnet"},
    };

    assert_assemblies(cases, ARRAY_LENGTH(cases));
}
END_TEST

/* The host ends without a runtime, or what it starts is not in the arguments. */
START_TEST(some_cannot_be_told)
{
    static const struct command_line cases[] = {
        {DOTNET, {NULL}, NULL},
        {DOTNET, {"dotnet"}, NULL},
        {DOTNET, {"dotnet", "exec"}, NULL},
        {DOTNET, {"dotnet", "exec", "build"}, NULL},
        {DOTNET, {"dotnet", "exec", "App"}, NULL},
        {DOTNET, {"dotnet", ".dll"}, NULL},
        {DOTNET, {"dotnet", "/opt/.exe"}, NULL},
        {"/opt/", {"x"}, NULL},
        {"", {"x"}, NULL},
    };

    assert_assemblies(cases, ARRAY_LENGTH(cases));
}
END_TEST

START_TEST(apps_have_hosts_of_their_own)
{
    static const struct command_line cases[] = {
        {"/opt/App", {"/opt/App", "Other.dll"}, "App"},
        {"/opt/My.Web.App", {"./x"}, "My.Web.App"},
        {"/opt/App", {NULL}, "App"},
        {"App", {"App"}, "App"},
        {"/opt/App.exe", {"App.exe"}, "App.exe"},
        {"/opt/dotnet-tool", {"dotnet", "App.dll"}, "dotnet-tool"},
        {"/opt/dotnet/csc", {"csc"}, "csc"},
    };

    assert_assemblies(cases, ARRAY_LENGTH(cases));
}
END_TEST

/* Without the exe only the host's own name in argv[0] is believed. */
START_TEST(exe_may_be_unknown)
{
    static const struct command_line cases[] = {
        {NULL, {"dotnet", "App.dll"}, "App"},
        {NULL, {"/usr/bin/dotnet", "exec", "App.dll"}, "App"},
        {NULL, {"dotnet", "build"}, "dotnet"},
        {NULL, {"/opt/App"}, NULL},
        {NULL, {"App", "dotnet", "App.dll"}, NULL},
        {NULL, {""}, NULL},
        {NULL, {NULL}, NULL},
    };

    assert_assemblies(cases, ARRAY_LENGTH(cases));
}
END_TEST

static int find(void *context)
{
    const struct command_line *line = context;
    char *assembly;

    if (!attributes_assembly(line->exe, line->arguments, count(line->arguments), &assembly))
        return -ENOMEM;
    free(assembly);
    return 0;
}

START_TEST(running_out_of_memory_is_said)
{
    struct command_line line = {DOTNET, {"dotnet", "App.dll"}, NULL};

    ck_assert_uint_eq(unit_memory_exhaust(find, &line, -ENOMEM), 1);
    line.arguments[1] = "build";
    ck_assert_uint_eq(unit_memory_exhaust(find, &line, -ENOMEM), 1);
}
END_TEST

UNIT_TESTS(apps_are_found, host_options_are_skipped, everything_else_is_the_sdk,
           some_cannot_be_told, apps_have_hosts_of_their_own, exe_may_be_unknown,
           running_out_of_memory_is_said);
