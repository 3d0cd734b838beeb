/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the environment of a process tells its runtime about diagnostics: both
 * prefixes are read, the way the runtime does it.
 */

#include <stdbool.h>

#include "lib/attributes.h"
#include "lib/util.h"

/*
 * Its list of diagnostic ports, for portspec.h: DOTNET_ first; the other prefix
 * is used where that one is not set or empty.
 */
enum attribute_state settings_ports(const struct attributes *attributes,
                                    const char **ret_value) MUST_CHECK;

/* True when its own port suspends it too. The runtime reads the number as hexadecimal. */
bool settings_suspends_default_port(const struct attributes *attributes);

/* What a number in a variable of the runtime says, which reads it as hexadecimal; what is none, or
 * NULL, says nothing. */
enum settings_switch { SETTINGS_NOTHING, SETTINGS_OFF, SETTINGS_ON };
enum settings_switch settings_switch(const char *value);

/* True when it loads no profilers at its start: DOTNET_EnableDiagnostics_Profiler is 0. The first
 * prefix counts where both are set. */
bool settings_switch_profilers_off(const struct attributes *attributes);

/* True for PreventLoad: it makes a runtime fail to start when a profiler is loaded into it. */
bool settings_prevent_profilers(const struct attributes *attributes);
