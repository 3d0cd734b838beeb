// SPDX-License-Identifier: Apache-2.0
//
// The startup hook behind HookA and HookB. Each run appends the name of its assembly to one list, so that the probe
// shows the order of the hooks, and a hook that ran twice shows twice.

using System;

// The runtime looks for exactly this class, outside any namespace, and calls Initialize.
internal static class StartupHook
{
    // Kept beside the program's settings and not in the environment: children would inherit it from there.
    private const string ListName = "DIAGPORT_TEST_HOOKS";

    public static void Initialize()
    {
        string? name = typeof(StartupHook).Assembly.GetName().Name;
        string? earlier = AppContext.GetData(ListName) as string;

        AppContext.SetData(ListName, earlier is null ? name : earlier + "," + name);
    }
}
