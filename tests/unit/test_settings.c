/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/unit.h"

#include "lib/attribute.h"
#include "lib/settings.h"

static struct attributes attributes;

static void with(const char *environ, size_t length)
{
    attributes_deinit(&attributes);
    ck_assert_int_eq(attribute_set_texts(&attributes.list[ATTRIBUTE_ENVIRON], environ, length,
                                         SIZE_MAX, false),
                     0);
}

/* A literal of variables, each but the last ended by a NUL. */
#define WITH(environ) with(environ, sizeof environ)

static void ports_are(enum attribute_state state, const char *wanted)
{
    const char *value = NULL;

    ck_assert_int_eq(settings_ports(&attributes, &value), state);
    if (wanted)
        ck_assert_str_eq(value, wanted);
}

START_TEST(the_first_prefix_counts_unless_it_is_empty)
{
    attributes_init(&attributes);
    ports_are(ATTRIBUTE_UNKNOWN, NULL);
    WITH("A=1");
    ports_are(ATTRIBUTE_ABSENT, NULL);
    WITH("DOTNET_DiagnosticPorts=a\0COMPlus_DiagnosticPorts=b");
    ports_are(ATTRIBUTE_PRESENT, "a");
    WITH("COMPlus_DiagnosticPorts=b\0DOTNET_DiagnosticPorts=");
    ports_are(ATTRIBUTE_PRESENT, "b");
    WITH("COMPlus_DiagnosticPorts=b");
    ports_are(ATTRIBUTE_PRESENT, "b");
    WITH("DOTNET_DiagnosticPorts=");
    ports_are(ATTRIBUTE_ABSENT, NULL);
    attributes_deinit(&attributes);
}
END_TEST

START_TEST(switches)
{
    attributes_init(&attributes);
    ck_assert(!settings_suspends_default_port(&attributes));
    ck_assert(!settings_prevent_profilers(&attributes));
    WITH("DOTNET_DefaultDiagnosticPortSuspend=0\0DOTNET_ProfAPI_ProfilerCompatibilitySetting=");
    ck_assert(!settings_suspends_default_port(&attributes));
    ck_assert(!settings_prevent_profilers(&attributes));
    WITH("COMPlus_DefaultDiagnosticPortSuspend=a\0"
         "COMPlus_ProfAPI_ProfilerCompatibilitySetting=preventload");
    ck_assert(settings_suspends_default_port(&attributes));
    ck_assert(settings_prevent_profilers(&attributes));
    attributes_deinit(&attributes);
}
END_TEST

UNIT_TESTS(the_first_prefix_counts_unless_it_is_empty, switches);
