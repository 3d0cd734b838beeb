/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/settings.h"

#include <stdlib.h>
#include <strings.h>

enum attribute_state settings_ports(const struct attributes *attributes, const char **ret_value)
{
    enum attribute_state state =
        attributes_variable(attributes, "DOTNET_DiagnosticPorts", ret_value);

    if (state == ATTRIBUTE_PRESENT && **ret_value != '\0')
        return state;
    if (state == ATTRIBUTE_UNKNOWN)
        return state;
    return attributes_variable(attributes, "COMPlus_DiagnosticPorts", ret_value);
}

enum settings_switch settings_switch(const char *value)
{
    char *end = NULL;
    unsigned long number = value ? strtoul(value, &end, 16) : 0;

    if (end == value)
        return SETTINGS_NOTHING;
    return number == 0 ? SETTINGS_OFF : SETTINGS_ON;
}

bool settings_suspends_default_port(const struct attributes *attributes)
{
    static const char *const names[] = {"DOTNET_DefaultDiagnosticPortSuspend",
                                        "COMPlus_DefaultDiagnosticPortSuspend"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *value = NULL;

        if (attributes_variable(attributes, names[i], &value) == ATTRIBUTE_PRESENT &&
            settings_switch(value) == SETTINGS_ON)
            return true;
    }
    return false;
}

bool settings_switch_profilers_off(const struct attributes *attributes)
{
    static const char *const names[] = {"DOTNET_EnableDiagnostics_Profiler",
                                        "COMPlus_EnableDiagnostics_Profiler"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *value = NULL;

        if (attributes_variable(attributes, names[i], &value) == ATTRIBUTE_PRESENT)
            return settings_switch(value) == SETTINGS_OFF;
    }
    return false;
}

bool settings_prevent_profilers(const struct attributes *attributes)
{
    static const char *const names[] = {"DOTNET_ProfAPI_ProfilerCompatibilitySetting",
                                        "COMPlus_ProfAPI_ProfilerCompatibilitySetting"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *value = NULL;

        if (attributes_variable(attributes, names[i], &value) == ATTRIBUTE_PRESENT &&
            strcasecmp(value, "PreventLoad") == 0)
            return true;
    }
    return false;
}
