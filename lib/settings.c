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

bool settings_suspends_default_port(const struct attributes *attributes)
{
    static const char *const names[] = {"DOTNET_DefaultDiagnosticPortSuspend",
                                        "COMPlus_DefaultDiagnosticPortSuspend"};

    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const char *value = NULL;

        if (attributes_variable(attributes, names[i], &value) == ATTRIBUTE_PRESENT &&
            strtoul(value, NULL, 16) > 0)
            return true;
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
